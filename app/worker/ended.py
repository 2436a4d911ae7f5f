"""What to say of a process that was to work on a model and ended in the midst of it."""

from __future__ import annotations

import signal

from app.worker.protocol import LOAD_STAGE

_CRASHES = frozenset({"SIGSEGV", "SIGBUS", "SIGABRT", "SIGILL", "SIGFPE", "SIGTRAP"})


def work_text(source: str, stage: str = "", region: str = "") -> str:
    """What a process does that compiles ``source``, in words that go on from "while it"."""
    if stage == LOAD_STAGE:
        return f"loaded {source}"
    return f"compiled {source}" + (f" in stage {stage}" if stage else "") + (f" of region {region}" if region else "")


def exit_text(code: int) -> str:
    """An exit code as people say it: "signal SIGKILL", "exit status 1"."""
    return f"signal {_signal(code)}" if code < 0 else f"exit status {code}"


def exit_cause(code: int) -> str:
    """What ends the process that runs a model in this way, and what to do, in a sentence; "" where nobody knows."""
    if code >= 0:
        return "Something in the model ends its process, as os._exit does: take it out."
    if is_crash(code):
        return "Something that the model calls crashed outside of Python."
    if _signal(code) == "SIGKILL":
        return "Linux does so where memory runs out: use a smaller batch, or close what else uses the memory."
    return ""


def is_crash(code: int) -> bool:
    """Whether native code failed: faulthandler then shows the Python lines that led there."""
    return code < 0 and _signal(code) in _CRASHES


def _signal(code: int) -> str:
    try:
        return signal.Signals(-code).name
    except ValueError:
        return str(-code)
