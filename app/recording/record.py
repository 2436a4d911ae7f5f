"""Run a program with its compilations watched, and write a session for each process that compiled something."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec

from app.importing import ImportingError, import_traces
from app.session import save_session
from app.worker.client import main_script
from app.worker.ended import exit_text
from app.worker.paths import make_portable, user_sources
from compiler.report import Report

_INJECTED = Path(__file__).parent / "inject"


class ProgramError(Exception):
    """The program could not be started. The message is one sentence."""


def run_recorded(program: Sequence[str], output: Path, say: Callable[[str], None]) -> int:
    """Run ``program`` as it is, and write what torch.compile did in it to ``output``; more processes' to output-2, ….

    The program keeps its arguments, its streams and its signals. It is told where to leave what is seen by its
    environment alone: Python finds our ``sitecustomize`` first, torch writes its log, and its caches are off so that
    everything is compiled in sight.

    Returns:
        The program's exit status as a shell has it, or 1 where it was 0 but there is no session.

    Raises:
        ProgramError: there is no such program.
    """
    with tempfile.TemporaryDirectory(prefix="fusescope-record-") as folder:
        traces = Path(os.environ.get("TORCH_TRACE") or Path(folder, "trace"))
        known = set(traces.glob("*"))
        status = _run(program, _environment(Path(folder), traces))
        if status < 0:
            say(f"fusescope: the program ended with {exit_text(status)}.")
            status = 128 - status
        reports = _reports(Path(folder))
        if not reports:
            reports = _from_log(traces, known, _reasons(Path(folder)))
    if not reports:
        say("fusescope: the program compiled nothing with torch.compile, so there is no session.")
        return status or 1
    for number, report in enumerate(reports):
        place = output if number == 0 else output.with_name(f"{output.stem}-{number + 1}{output.suffix}")
        report.source = "record:" + " ".join(program)
        report.sources |= user_sources(report, {})
        make_portable(report)
        save_session(place, report)
        regions = "1 region" if len(report.regions) == 1 else f"{len(report.regions)} regions"
        say(f"fusescope: wrote {place} ({regions}, {report.compiler}).")
    return status


def _environment(folder: Path, traces: Path) -> dict[str, str]:
    environment = dict(os.environ)
    paths = [str(_INJECTED), *filter(None, [environment.get("PYTHONPATH")])]
    environment["PYTHONPATH"] = os.pathsep.join(paths)
    environment["FUSESCOPE_RECORD"] = str(folder)
    environment["FUSESCOPE_ROOT"] = str(main_script().parent)
    environment["TORCH_TRACE"] = str(traces)
    environment["TORCHINDUCTOR_FX_GRAPH_CACHE"] = environment["TORCHINDUCTOR_AUTOGRAD_CACHE"] = "0"
    environment["TORCHINDUCTOR_CACHE_DIR"] = str(folder / "inductor")  # what is in no cache goes where it is removed
    environment.setdefault("INDUCTOR_PROVENANCE", "1")
    if not (environment.get("VIRTUAL_ENV") or environment.get("CONDA_PREFIX")):
        # with no environment of the user's own active, "python" is the one that has torch: ours
        own = str(Path(sys.executable).parent)
        environment["PATH"] = os.pathsep.join([own, *filter(None, [environment.get("PATH")])])
    return environment


def _run(program: Sequence[str], environment: dict[str, str]) -> int:
    """Returns the exit status, or the signal that ended the program as a negative number."""
    command = list(program)
    if command[0].endswith(".py") and not os.access(command[0], os.X_OK):
        command.insert(0, sys.executable)
    executable = shutil.which(command[0], path=environment.get("PATH"))
    if executable is None:
        raise ProgramError(f"There is no program {command[0]!r}.")
    try:
        process = subprocess.Popen([executable, *command[1:]], env=environment)
    except OSError as error:
        raise ProgramError(f"{command[0]} cannot be started: {error.strerror}.") from error
    # Ctrl-C reaches the program by itself; what would end us is passed on, and we stay to write the session
    before = {
        signal.SIGINT: signal.signal(signal.SIGINT, signal.SIG_IGN),
        signal.SIGTERM: signal.signal(signal.SIGTERM, lambda number, frame: process.send_signal(number)),
    }
    try:
        status = process.wait()
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
    return status


def _reports(folder: Path) -> list[Report]:
    """What the processes left, the one with the most regions first."""
    found = []
    for file in sorted(folder.glob("*.msgpack")):
        try:
            found.append(msgspec.msgpack.decode(file.read_bytes(), type=Report))
        except (msgspec.MsgspecError, OSError):
            continue
    return sorted(found, key=lambda report: -len(report.regions))


def _reasons(folder: Path) -> list[str]:
    return [file.read_text(errors="replace") for file in sorted(folder.glob("*.reason"))]


def _from_log(traces: Path, known: set[Path], reasons: Sequence[str]) -> list[Report]:
    """What torch's own log of this run says: a program that was killed, or that cannot be watched from within."""
    why = f" ({reasons[0]})" if reasons else ""
    found = []
    for log in sorted(set(traces.glob("*.log")) - known):
        try:
            report = import_traces(log)
        except ImportingError:
            continue
        report.notes.insert(0, f"The program could not say itself what it compiled{why}; this is from torch's log.")
        found.append(report)
    return sorted(found, key=lambda report: -len(report.regions))
