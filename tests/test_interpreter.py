"""Runs ``tests/interpret`` in a process where Triton interprets kernels: the choice is made when Triton is imported.

The backend's own tests run there once more: then it is the generated wrappers and kernels that must pass them.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("triton", reason="torch's CPU wheels bring no Triton, and kernels are written in it")
FOLDER = Path(__file__).parent / "interpret"
BACKEND = Path(__file__).parent / "test_backend.py"


@pytest.mark.timeout(900)
def test_generated_kernels_give_the_right_numbers_in_tritons_interpreter() -> None:
    without = ["-p", "no:cacheprovider", "-p", "no:pytest-qt"]  # Qt's import hook slows every import statement
    command = [sys.executable, "-m", "pytest", "-q", *without, "--tb=short", str(FOLDER), str(BACKEND)]
    environment = {**os.environ, "TRITON_INTERPRET": "1"}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, cwd=FOLDER.parents[1], check=False)
    assert done.returncode == 0, done.stdout[-12_000:] + done.stderr[-2_000:]
