"""What is committed is whole on any machine: no link that leads out of it, no environment."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


def test_no_link_is_committed() -> None:
    """A committed .venv that was a link took the place of the environment wherever it was checked out."""
    listed = subprocess.run(["git", "ls-files", "--stage"], cwd=ROOT, capture_output=True, text=True, check=False)
    if listed.returncode:
        pytest.skip("not a checkout of git")
    files = [line.split(maxsplit=3) for line in listed.stdout.splitlines()]
    assert [name for mode, _, _, name in files if mode == "120000" or name.startswith(".venv")] == []
