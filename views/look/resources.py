"""Files shipped with the app: where they are, and the fonts loaded once."""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from pathlib import Path

from PySide6.QtGui import QFontDatabase


def resource(*parts: str) -> Path:
    """The path of a shipped file, for example ``resource("icons", "play.svg")``."""
    return Path(str(files("resources").joinpath(*parts)))


@cache
def load_fonts() -> tuple[str, ...]:
    """Register the bundled fonts (needs a QGuiApplication) and return their families.

    Bundled because a minimal machine has no font at all, and so that screenshots look alike everywhere.
    """
    families: list[str] = []
    for path in sorted(resource("fonts").glob("*.[ot]tf")):
        families += QFontDatabase.applicationFontFamilies(QFontDatabase.addApplicationFont(str(path)))
    return tuple(dict.fromkeys(families))
