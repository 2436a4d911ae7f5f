"""The pictures of README and docs, all anew, so that they show the window as it is.

    python -m tests.benchmarks.document_pictures [FOLDER]

FOLDER is docs/screenshots unless another is named. They show the sample session, but for the one of numerical errors:
for that an example is compiled for an H200 and its values are compared with float64 by Triton's interpreter (a minute).
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")

import msgspec
from PySide6.QtGui import QImage

from app.session import Session, open_session
from compiler.report import Numerics
from tests.benchmarks.screenshots import in_few_colors, opened, save, settle
from views.app import make_application
from views.screenshot import screenshot, show_view
from views.window.start_page import samples

_SIZE = (1440, 900)
_CHECKED = ("example:transformer_block", "--train")


@dataclass(frozen=True)
class Picture:
    """What the window shows: views one after another, and what is selected then."""

    name: str
    views: tuple[str, ...]
    select: str = ""
    theme: str = "light"


_OF_SAMPLE = (
    Picture("gpt2-graph", ("run",), "group4"), Picture("gpt2-dark", ("run",), theme="dark"),
    Picture("gpt2-run", ("run-overlaid",)), Picture("gpt2-timeline", ("timeline",)),
    Picture("gpt2-topology", ("topology",)), Picture("gpt2-roofline", ("roofline",)),
)  # fmt: skip
_OF_CHECKED = Picture("numerical-error", ("memory", "by-error"), "group6")


def draw(session: Session, picture: Picture, folder: Path) -> None:
    """One picture, in 256 colours."""
    window = opened(session, _SIZE, picture.theme)
    for view in picture.views:
        show_view(window, view)
        settle()
    if picture.select:
        window.workspace.select_unit(picture.select)
    window.workspace.inspector.make_all()
    settle(3.0)  # until the minimap has made way
    save(in_few_colors(window.grab().toImage()), folder / f"{picture.name}.png")
    window.session.discard_changes()
    window.close()


def draw_start(folder: Path) -> None:
    """The first page of somebody who has opened nothing yet."""
    file = folder / "start.png"
    screenshot(None, file, size=_SIZE)
    save(in_few_colors(QImage(str(file))), file)


def checked_session(folder: Path) -> Session:
    """An example in training with its numerical errors."""
    file = folder / "checked.fscope"
    main = [sys.executable, "main.py"]
    subprocess.run([*main, "compile", *_CHECKED, "--target", "h200", "-o", str(file)], check=True)
    told = subprocess.run([*main, "numerics", *_CHECKED, "--interpret", "--json"], check=True, capture_output=True)
    session = open_session(file)
    session.report.numerics = msgspec.json.decode(told.stdout, type=Numerics)
    return session


def main() -> int:
    """Draw all of them."""
    parser = argparse.ArgumentParser(description="Draws the pictures of README and docs.")
    parser.add_argument("folder", nargs="?", type=Path, default=Path("docs/screenshots"))
    folder: Path = parser.parse_args().folder
    folder.mkdir(parents=True, exist_ok=True)
    make_application()
    for picture in _OF_SAMPLE:
        draw(open_session(samples()[0]), picture, folder)
    draw_start(folder)
    with tempfile.TemporaryDirectory() as made:
        draw(checked_session(Path(made)), _OF_CHECKED, folder)
    return 0


if __name__ == "__main__":
    sys.exit(main())
