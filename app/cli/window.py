"""The commands that need Qt: the app itself, and pictures of it drawn without a display."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

from app.cli.errors import CommandError
from app.session import Session, open_session


def open_app(options: argparse.Namespace) -> int:
    """Open the window, and in it the file or source that was named."""
    if _is_headless():
        hint = "compile, show and screenshot work without one; 'make run' shows how."
        raise CommandError("There is no display to open the window on.", hint)
    from views.app import run

    return run([options.file] if options.file else [])


def screenshot(options: argparse.Namespace) -> int:
    """Write a picture of the window with a session."""
    session = open_session(options.session)
    _draw_offscreen()
    from views.screenshot import screenshot as draw

    try:
        draw(
            session,
            options.output,
            view=options.view or "graph",
            select=options.select,
            size=options.size,
            compare=open_session(options.compare).report if options.compare else None,
            theme=options.theme,
        )
    except ValueError as error:
        raise CommandError(str(error)) from error
    except OSError as error:
        raise CommandError(f"{options.output} cannot be written.", "Choose another folder.") from error
    print(f"Wrote {options.output}")
    return 0


def write_svg(session: Session, path: Path) -> None:
    """Draw the first region's whole graph.

    Raises:
        CommandError: the session has no graph, or the place cannot be written.
    """
    if not session.report.regions:
        raise CommandError("The session has no region, so there is no graph to draw.")
    _draw_offscreen()
    from app.layout import layout_region
    from views.app import make_application
    from views.canvas.canvas import GraphCanvas
    from views.look.theme import light

    region = session.report.regions[0]
    application = make_application()  # kept until the drawing is done
    canvas = GraphCanvas(theme=light())
    canvas.resize(application.primaryScreen().size())
    canvas.set_region(region, layout_region(region))
    try:
        canvas.to_svg(path)
    except OSError as error:
        raise CommandError(f"{path} cannot be written: {error.strerror}.", "Choose another folder.") from error


def _is_headless() -> bool:
    if sys.platform != "linux" or os.environ.get("QT_QPA_PLATFORM"):
        return False
    return not (os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))


def _draw_offscreen() -> None:
    os.environ["QT_QPA_PLATFORM"] = "offscreen"  # a picture must not open a window on the user's desktop
    os.environ.setdefault("QT_LOGGING_RULES", "default.warning=false")  # the offscreen platform warns that it is one
