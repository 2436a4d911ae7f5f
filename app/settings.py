"""What the app remembers between starts: recent files, window state, theme, last target. One JSON file."""

from __future__ import annotations

import contextlib
import os
import sys
from collections.abc import Mapping
from pathlib import Path

import msgspec

_MAX_RECENT = 12


class Settings(msgspec.Struct, omit_defaults=True):
    """The remembered values. ``geometry`` and ``window_state`` are opaque bytes of the window's."""

    recent: list[str] = []  # sources and session paths, the latest first
    theme: str = "system"  # "system", "light" or "dark"
    last_target: str = ""
    geometry: bytes = b""
    window_state: bytes = b""
    layouts: dict[str, bytes] = {}  # the user's name -> bytes as ``window_state``
    splitters: dict[str, bytes] = {}  # object name -> its saved state
    trusted: dict[str, int] = {}  # file -> its modification time (ns) when the user agreed that its code may run

    def remember(self, source: str) -> None:
        """Put ``source`` first among the recent ones."""
        self.recent = [source, *(item for item in self.recent if item != source)][:_MAX_RECENT]

    def forget(self, source: str) -> None:
        """Take ``source`` out of the recent ones, for example because its file is gone."""
        self.recent = [item for item in self.recent if item != source]


def settings_path(environ: Mapping[str, str] = os.environ, platform: str = sys.platform) -> Path:
    """Where the settings live on this platform; FUSESCOPE_CONFIG names another folder."""
    if folder := environ.get("FUSESCOPE_CONFIG"):
        return Path(folder) / "settings.json"
    if platform == "win32":
        base = Path(environ.get("APPDATA") or Path.home() / "AppData" / "Roaming")
    elif platform == "darwin":
        base = Path.home() / "Library" / "Application Support"
    else:
        base = Path(environ.get("XDG_CONFIG_HOME") or Path.home() / ".config")
    return base / "fusescope" / "settings.json"


def load_settings(path: Path) -> Settings:
    """The settings at ``path``; defaults where there are none or they cannot be read."""
    try:
        return msgspec.json.decode(path.read_bytes(), type=Settings)
    except (OSError, msgspec.MsgspecError, UnicodeDecodeError):
        return Settings()  # losing a window position is better than not starting


def save_settings(path: Path, settings: Settings) -> bool:
    """Write the settings in one step; False where the place cannot be written (the app goes on without)."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        temporary.write_bytes(msgspec.json.format(msgspec.json.encode(settings), indent=1))
        os.replace(temporary, path)
    except OSError:
        return False
    finally:
        with contextlib.suppress(OSError):
            temporary.unlink(missing_ok=True)
    return True
