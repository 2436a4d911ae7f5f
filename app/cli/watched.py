"""Commands that run the user's model do so in a process of their own, and this one waits for it.

A model can end its process without a word: by a crash outside of Python, by ``os._exit``, by taking all the memory. Who
waits says so in a sentence, and ends as for any other fault of a model's.
"""

from __future__ import annotations

import ctypes
import faulthandler
import os
import signal
import sys
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from types import FrameType

from app.cli.entry import command_of, run, tell
from app.worker.ended import exit_cause, exit_text, is_crash
from app.worker.torch_cache import own_torch_cache

_RUN_MODELS = frozenset({"compile", "bench", "verify", "numerics", "minify"})
_IMPORT_TORCH = _RUN_MODELS | {"options"}
_GRACE_S = 0.2
_PR_SET_PDEATHSIG = 1


def run_watched(arguments: Sequence[str]) -> int:
    """Run one command line as ``entry.run`` does, what runs a model in a process of its own."""
    command = command_of(arguments)
    if command not in _IMPORT_TORCH:
        return run(arguments)
    with ExitStack() as stack:
        try:
            folder = stack.enter_context(own_torch_cache())
        except OSError as error:
            hint = "TMPDIR can name a folder to write to."
            tell(f"There is no place for temporary files: {error.strerror}.", hint)
            return 1
        if command not in _RUN_MODELS or not hasattr(os, "fork"):
            return run(arguments)
        doing, status = folder / "doing", folder / "status"
        signals = _PassedOn()
        child = os.fork()
        if not child:
            signals.leave()
            return _run_in_child(arguments, doing, status)
        code = signals.until_ended(child)
        if status.exists():
            return int(status.read_text())
        what = doing.read_text() if doing.exists() else f"began with '{command}'"
    if -code in signals.received:
        signals.leave()
        signal.signal(-code, signal.SIG_DFL)
        os.kill(os.getpid(), -code)
    hint = exit_cause(code)
    if is_crash(code) and "--debug" not in arguments:
        hint += " --debug shows where it was."
    tell(f"The process that runs the model ended with {exit_text(code)} while it {what}.", hint)
    return 1


def _run_in_child(arguments: Sequence[str], doing: Path, status: Path) -> int:
    """Run the command line, and leave what it is doing and in the end its exit status in these files."""
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)  # nobody is left to wait
    if "--debug" in arguments:
        faulthandler.enable()  # a crash outside of Python shows the Python lines that led there

    def note(text: str) -> None:
        doing.write_text(text)

    try:
        code = run(arguments, note)
    except SystemExit as ended:  # argparse's
        code = ended.code if isinstance(ended.code, int) else 1
    status.write_text(str(code))
    return code


class _PassedOn:
    """What would end this process goes to the one that it waits for, which ends as it sees fit."""

    def __init__(self) -> None:
        self.received: set[int] = set()
        self._child = 0
        handlers = {signal.SIGINT: self._interrupted, signal.SIGTERM: self._pass_on, signal.SIGALRM: self._still_there}
        self._before = {
            number: signal.signal(number, handler)
            for number, handler in handlers.items()
            if signal.getsignal(number) is not signal.SIG_IGN  # as it is in a shell's background
        }

    def leave(self) -> None:
        """Let the signals do what they did before."""
        for number, handler in self._before.items():
            signal.signal(number, handler)

    def until_ended(self, child: int) -> int:
        """Wait for ``child``. Returns its exit status, or the signal that ended it as a negative number."""
        self._child = child
        for number in self.received:
            os.kill(child, number)
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])

    def _interrupted(self, number: int, frame: FrameType | None) -> None:
        """A terminal sends Ctrl+C to both, and the child needs it once: it gets ours if it has not ended by its own."""
        self.received.add(number)
        signal.setitimer(signal.ITIMER_REAL, _GRACE_S)

    def _still_there(self, number: int, frame: FrameType | None) -> None:
        self._pass_on(signal.SIGINT, frame)

    def _pass_on(self, number: int, frame: FrameType | None) -> None:
        self.received.add(number)
        if self._child:
            os.kill(self._child, number)
