"""Runs ``tests/interpret`` in a process where Triton interprets kernels: the choice is made when Triton is imported.

The backend's own tests run there once more: then it is the generated wrappers and kernels that must pass them. It takes
as long as all other tests together, so it is started before them and waited for at the end (``test_interpreter.py``).
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from pathlib import Path

FOLDER = Path(__file__).parent / "interpret"
BACKEND = Path(__file__).parent / "test_backend.py"


class InterpretedTests:
    """The process, and what it prints."""

    def __init__(self) -> None:
        without = ["-p", "no:cacheprovider", "-p", "no:pytest-qt"]  # Qt's import hook slows every import statement
        command = [sys.executable, "-m", "pytest", "-q", *without, "--tb=short", str(FOLDER), str(BACKEND)]
        environment = {**os.environ, "TRITON_INTERPRET": "1"}
        self._output = tempfile.TemporaryFile()  # noqa: SIM115 (open for as long as the process runs)
        self._process = subprocess.Popen(
            command, stdout=self._output, stderr=subprocess.STDOUT, env=environment, cwd=FOLDER.parents[1]
        )

    def wait(self) -> tuple[int, str]:
        """Its exit status, and the end of what it printed."""
        status = self._process.wait()
        self._output.seek(0)
        return status, self._output.read().decode(errors="replace")[-14_000:]

    def stop(self) -> None:
        """End it, where it has not."""
        self._process.kill()
        self._process.wait()
        self._output.close()
