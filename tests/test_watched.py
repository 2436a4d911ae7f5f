"""What is left of a process that a model ended: a sentence, an exit status, and nothing in the temporary folder."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pytest

from app.cli import run_watched
from app.worker.ended import exit_cause, exit_text, is_crash

pytestmark = pytest.mark.skipif(not hasattr(os, "fork"), reason="the process that waits is its parent")
ROOT = Path(__file__).resolve().parents[1]

# A command line whose command is BODY, told what to do by "doing".
COMMAND = """
import os, sys, time
from pathlib import Path
from app.cli import watched

def run(arguments, doing):
    cache = Path(os.environ["TORCHINDUCTOR_CACHE_DIR"])
    cache.mkdir()
    (cache / "kernel.py").write_text("x = 1")
    doing("loaded m.py")
    BODY

watched.run = run
sys.exit(watched.run_watched(sys.argv[1:]))
"""


def start(body: str, temporary: Path, *arguments: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", COMMAND.replace("BODY", body), *(arguments or ("compile", "m.py"))]
    environment = {**os.environ, "TMPDIR": str(temporary), "PYTHONPATH": str(ROOT)}
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    return subprocess.Popen(command, text=True, env=environment, **pipes, preexec_fn=_interruptible)  # type: ignore[call-overload, no-any-return]


def _interruptible() -> None:
    """Ctrl+C ends the command, also where this process was told to ignore it."""
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.mark.parametrize(
    ("body", "sentence"),
    [
        ("os.abort()", "ended with signal SIGABRT while it loaded m.py. Something that the model calls crashed"),
        ("os._exit(9)", "ended with exit status 9 while it loaded m.py. Something in the model ends its process"),
        ("os._exit(0)", "ended with exit status 0 while it loaded m.py."),
        ("os.kill(os.getpid(), 9)", "ended with signal SIGKILL while it loaded m.py. Linux does so where memory runs"),
    ],
)
def test_a_model_that_ends_its_process_is_told_of_in_a_sentence(body: str, sentence: str, tmp_path: Path) -> None:
    process = start(body, tmp_path)
    out, errors = process.communicate()
    assert (process.returncode, out) == (1, "")
    (line,) = errors.splitlines()
    assert line.startswith("fusescope: The process that runs the model ")
    assert sentence in line
    assert ("--debug shows" in line) is ("SIGABRT" in line)
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("status", [0, 1, 130])
@pytest.mark.parametrize("body", ["return {}", "sys.exit({})"])
def test_a_command_that_ends_by_itself_ends_as_it_says(body: str, status: int, tmp_path: Path) -> None:
    process = start(f"print('done'); {body.format(status)}", tmp_path)
    out, errors = process.communicate()
    assert (process.returncode, out, errors) == (status, "done\n", "")
    assert not list(tmp_path.iterdir())


@pytest.mark.timeout(60)
@pytest.mark.skipif(sys.platform != "linux", reason="where a parent's end is not told, a killed one leaves its child")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_a_signal_to_the_command_ends_the_model_too(number: signal.Signals, tmp_path: Path) -> None:
    wait = "import signal; signal.signal(2, signal.SIG_DFL); print(os.getpid(), flush=True); time.sleep(60)"
    process = start(wait, tmp_path)
    assert process.stdout is not None
    child = int(process.stdout.readline())
    process.send_signal(number)
    _, errors = process.communicate()
    assert (process.returncode, errors) == (-number, "")
    while Path(f"/proc/{child}").exists() or list(tmp_path.iterdir()):
        time.sleep(0.01)  # another process sees to it


def test_no_place_for_temporary_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "gone"))
    assert run_watched(["compile", "m.py"]) == 1
    assert capsys.readouterr().err.startswith("fusescope: There is no place for temporary files: No such file")


def test_how_a_process_ended() -> None:
    assert [exit_text(code) for code in (3, -11, -200)] == ["exit status 3", "signal SIGSEGV", "signal 200"]
    assert [is_crash(code) for code in (3, -11, -9)] == [False, True, False]
    assert exit_cause(-15) == ""
