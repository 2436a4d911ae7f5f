"""The commands that need Qt: the app itself, and pictures of it drawn without a display."""

from __future__ import annotations

import argparse
import os
import signal
import sys
from pathlib import Path

from app.cli.errors import CommandError
from app.places import check_place, replaced, told
from app.session import Session, no_file, open_session
from app.sources import SourceError, is_source, parse_source


def open_app(options: argparse.Namespace) -> int:
    """Open the window, and in it the file or source that was named; one that is not there is told without a window."""
    if options.file:
        _check_that_there_is(options.file)
    if _is_headless():
        hint = "compile, show and screenshot work without one; 'make run' shows how."
        raise CommandError("There is no display to open the window on.", hint)
    from views.app import run

    signal.signal(signal.SIGINT, signal.SIG_DFL)  # Qt's loop runs no Python that could raise KeyboardInterrupt
    return run([options.file] if options.file else [])


def screenshot(options: argparse.Namespace) -> int:
    """Write a picture of the window with a session."""
    check_place(options.output, ".png")
    session = open_session(options.session)
    compare = open_session(options.compare).report if options.compare else None
    _draw_offscreen()
    from views.screenshot import VIEWS
    from views.screenshot import screenshot as draw

    if options.view not in VIEWS:
        raise CommandError(f"There is no view called '{options.view}'.", f"Choose one of {', '.join(VIEWS)}.", status=2)
    try:
        with told(options.output), replaced(options.output) as temporary:
            draw(
                session,
                temporary,
                view=options.view,
                select=options.select,
                size=options.size,
                compare=compare,
                theme=options.theme,
            )
    except ValueError as error:
        raise CommandError(str(error)) from error
    print(f"Wrote {options.output}")
    return 0


def write_svg(session: Session, path: Path) -> None:
    """Draw the first region's whole graph.

    Raises:
        CommandError: the session has no graph.
        PlaceError: the place cannot be written.
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
    with told(path), replaced(path) as temporary:
        canvas.to_svg(temporary)


def _check_that_there_is(file: str) -> None:
    if not is_source(file):
        if not os.path.exists(file):  # a name that is too long is none, too
            raise no_file(Path(file))
        return
    try:
        parse_source(file)
    except SourceError as error:
        raise CommandError(error.message, error.hint) from error


def _is_headless() -> bool:
    if sys.platform != "linux" or os.environ.get("QT_QPA_PLATFORM"):
        return False
    return not (os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))


def _draw_offscreen() -> None:
    os.environ["QT_QPA_PLATFORM"] = "offscreen"  # a picture must not open a window on the user's desktop
    os.environ.setdefault("QT_LOGGING_RULES", "default.warning=false")  # the offscreen platform warns that it is one
