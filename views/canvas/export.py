"""The canvas as a picture: an image of the present view, or the whole graph as SVG."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from PySide6.QtCore import QRectF, QSize
from PySide6.QtGui import QImage, QPainter

from views.canvas.camera import Camera
from views.canvas.highlights import Highlights
from views.canvas.painting import ScenePainter
from views.canvas.palette import CanvasPalette
from views.canvas.scene import Scene
from views.look.theme import Theme

_MARGIN = 24.0


def image(
    painter: ScenePainter | None,
    palette: CanvasPalette,
    marks: Highlights,
    camera: Camera,
    view: QSize,
    size: QSize,
) -> QImage:
    """What ``camera`` shows in a view of one size, drawn for another size; the middle stays in the middle."""
    picture = QImage(size, QImage.Format.Format_ARGB32_Premultiplied)
    picture.fill(palette.background)
    if painter is not None:
        share = min(size.width() / max(view.width(), 1), size.height() / max(view.height(), 1))
        middle = camera.to_scene(view.width() / 2, view.height() / 2)
        shown = camera.centred(*middle, size.width(), size.height(), camera.scale * share)
        canvas = QPainter(picture)
        painter.paint(canvas, shown, QRectF(0, 0, size.width(), size.height()))
        marks.paint(canvas, painter, shown, size)
        canvas.end()
    return picture


def svg_writer(scene: Scene | None, theme: Theme, path: Path) -> Callable[[], None]:
    """What writes a whole graph at scale 1 as SVG, on any thread: it draws with nothing of a canvas's own.

    Raises:
        OSError: the file cannot be written.
    """
    with path.open("wb"):
        pass  # QSvgGenerator reports no reason when it cannot write
    return lambda: _write_svg(ScenePainter(scene, CanvasPalette(theme)) if scene is not None else None, path)


def _write_svg(painter: ScenePainter | None, path: Path) -> None:
    from PySide6.QtSvg import QSvgGenerator

    left, top, width, height = painter.scene.bounds if painter is not None else (0.0, 0.0, 1.0, 1.0)
    size = QSize(round(width + 2 * _MARGIN), round(height + 2 * _MARGIN))
    generator = QSvgGenerator()
    generator.setFileName(str(path))
    generator.setSize(size)
    generator.setViewBox(QRectF(0, 0, size.width(), size.height()))
    generator.setTitle("Fusescope graph")
    canvas = QPainter(generator)
    if painter is not None:
        canvas.fillRect(QRectF(0, 0, size.width(), size.height()), painter.palette.background)
        painter.paint(canvas, Camera(left - _MARGIN, top - _MARGIN, 1.0), QRectF(0, 0, size.width(), size.height()))
    canvas.end()
