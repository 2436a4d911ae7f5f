"""What every test needs before anything is imported: no display, and settings of its own."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")


@pytest.fixture(autouse=True)
def own_settings(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A settings folder that no other test and no user shares."""
    folder = tmp_path_factory.mktemp("config")
    monkeypatch.setenv("FUSESCOPE_CONFIG", str(folder))
    return folder
