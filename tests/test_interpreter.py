"""Kernels give the right numbers in Triton's interpreter, which Triton chooses when it is imported.

So ``tests/interpret`` runs in a process of its own. The backend's tests run there once more: then it is the generated
wrappers and kernels that must pass them. It takes longer than anything else and is begun first (``conftest.py``).
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("triton", reason="torch's CPU wheels bring no Triton, and kernels are written in it")
TESTS = Path(__file__).parent


@pytest.mark.timeout(900)
def test_generated_kernels_give_the_right_numbers_in_tritons_interpreter() -> None:
    options = ["-q", "-p", "no:cacheprovider", "-p", "no:pytest-qt", "--tb=short"]
    command = [sys.executable, "-m", "pytest", *options, TESTS / "interpret", TESTS / "test_backend.py"]
    environment = {**os.environ, "TRITON_INTERPRET": "1"}
    done = subprocess.run(command, env=environment, cwd=TESTS.parent, capture_output=True, text=True, errors="replace")
    assert done.returncode == 0, done.stdout[-14_000:] + done.stderr[-2_000:]
