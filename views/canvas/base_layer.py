"""The drawn graph, kept as a pixmap: a pan redraws only the strip that came into view, hovering redraws nothing."""

from __future__ import annotations

from dataclasses import replace
from time import perf_counter

from PySide6.QtCore import QRect, QRectF, QSize
from PySide6.QtGui import QPainter, QPixmap, QRegion

from views.canvas.camera import Camera
from views.canvas.painting import ScenePainter

_SLOW = 0.009  # seconds; a graph that takes longer is shown scaled while it zooms, and sharp when it rests
_LEAST_COVER = 0.5  # share of the view that a scaled picture must fill
_STRIP_MS, _MOST_STRIPS = 6, 8  # what a strip of a sharp picture takes, about, and how many there are at most
_REACH = 300.0  # scene pixels that texts reach beyond their boxes


class _Next:
    """A picture that is drawn strip by strip."""

    def __init__(self, camera: Camera, size: QSize, ratio: float) -> None:
        self.camera, self.size, self.ratio = camera, size, ratio
        self.pixmap = QPixmap(size * ratio)
        self.pixmap.setDevicePixelRatio(ratio)
        self.drawn = 0  # view pixels from the top
        self.cost = 0.0  # seconds so far


class BaseLayer:
    """The graph without highlights, at one camera."""

    def __init__(self) -> None:
        self._pixmap = QPixmap()
        self._camera: Camera | None = None
        self._asked: Camera | None = None  # of the last frame, as it was wished for
        self._is_coarse = False  # the last frame was a scaled picture
        self._cost = 0.0
        self._next: _Next | None = None

    def invalidate(self) -> None:
        """Forgets the picture: the scene, theme or size is another one."""
        self._camera = self._next = None

    def draw(
        self, painter: QPainter, scene: ScenePainter, camera: Camera, size: QSize, ratio: float, moving: bool
    ) -> tuple[Camera, bool]:
        """Draws the graph into a view.

        Returns:
            The camera that was drawn (less than a device pixel from the wished one), and whether it is sharp. If not,
            draw again when the view rests.
        """
        if self._pixmap.size() != size * ratio or self._pixmap.devicePixelRatio() != ratio:
            self._pixmap = QPixmap(size * ratio)
            self._pixmap.setDevicePixelRatio(ratio)
            self._camera = self._next = None
        old = self._camera
        may_wait = old is not None and self._may_wait(camera, moving) and _cover(old, camera, size) >= _LEAST_COVER
        self._asked = camera
        if old is not None and abs(old.scale / camera.scale - 1) < 1e-9:
            self._shift(scene, old, camera, size, ratio)
        elif old is not None and may_wait:
            self._is_coarse = True
            self._draw_scaled(painter, scene, old, camera, size)
            return camera, False
        else:
            started = perf_counter()
            self._render(scene, camera, QRect(0, 0, size.width(), size.height()))
            self._cost = perf_counter() - started
            self._camera, self._next = camera, None
        self._is_coarse = False
        painter.drawPixmap(0, 0, self._pixmap)
        return self._camera or camera, True

    def _may_wait(self, camera: Camera, moving: bool) -> bool:
        """Whether a scaled picture will do until the view rests: while it zooms, and while it only waits for that."""
        if self._cost <= _SLOW:
            return False
        is_zooming = moving and (self._asked is None or camera.scale != self._asked.scale)
        return is_zooming or (self._is_coarse and camera == self._asked)

    def sharpen(self, scene: ScenePainter, camera: Camera, size: QSize, ratio: float) -> bool:
        """Draws a strip of a sharp picture; one that takes over a frame comes in several, the last of which shows it.

        Returns:
            Whether the picture is whole.
        """
        if self._cost <= _SLOW or self._camera is None or abs(self._camera.scale / camera.scale - 1) < 1e-9:
            return True  # ``draw`` draws it at once
        if self._next is None or (self._next.camera, self._next.size, self._next.ratio) != (camera, size, ratio):
            self._next = _Next(camera, size, ratio)
        height = -(-size.height() // min(-(-int(self._cost * 1e3) // _STRIP_MS), _MOST_STRIPS))
        started = perf_counter()
        self._render(scene, camera, QRect(0, self._next.drawn, size.width(), height), self._next.pixmap)
        self._next.cost += perf_counter() - started
        self._next.drawn += height
        if self._next.drawn < size.height():
            return False
        self._pixmap, self._camera, self._cost = self._next.pixmap, camera, self._next.cost
        self._next = None
        return True

    def _shift(self, scene: ScenePainter, old: Camera, new: Camera, size: QSize, ratio: float) -> None:
        """Moves the picture by whole device pixels and draws what came into view."""
        dx = round((old.x - new.x) * new.scale * ratio)
        dy = round((old.y - new.y) * new.scale * ratio)
        if not dx and not dy:
            return
        moved = replace(old, x=old.x - dx / new.scale / ratio, y=old.y - dy / new.scale / ratio)
        self._camera = moved
        view = QRect(0, 0, size.width(), size.height())
        if abs(dx) >= size.width() * ratio or abs(dy) >= size.height() * ratio:
            self._render(scene, moved, view)
            return
        # Qt scrolls in the pixmap's own pixels whatever its ratio.
        self._pixmap.scroll(dx, dy, self._pixmap.rect())
        if dx:
            width = -(-abs(dx) // ratio) + 1
            left = 0 if dx > 0 else size.width() - width
            self._render(scene, moved, QRect(int(left), 0, int(width), size.height()))
        if dy:
            height = -(-abs(dy) // ratio) + 1
            top = 0 if dy > 0 else size.height() - height
            self._render(scene, moved, QRect(0, int(top), size.width(), int(height)))

    def _render(self, scene: ScenePainter, camera: Camera, area: QRect, pixmap: QPixmap | None = None) -> None:
        reach = _REACH * camera.scale
        with QPainter(pixmap if pixmap is not None else self._pixmap) as painter:
            painter.setClipRegion(QRegion(area))
            painter.fillRect(area, scene.palette.background)
            scene.paint(painter, camera, QRectF(area).adjusted(-reach, -20, 12, 12))

    def _draw_scaled(self, painter: QPainter, scene: ScenePainter, old: Camera, new: Camera, size: QSize) -> None:
        """The old picture where it belongs at the new scale."""
        painter.fillRect(QRect(0, 0, size.width(), size.height()), scene.palette.background)
        factor = new.scale / old.scale
        left, top = new.to_view(old.x, old.y)
        target = QRectF(left, top, size.width() * factor, size.height() * factor)
        painter.drawPixmap(target, self._pixmap, QRectF(self._pixmap.rect()))


def _cover(old: Camera, new: Camera, size: QSize) -> float:
    """The share (0..1) of a view that the picture of another camera fills."""
    view = QRectF(0, 0, size.width(), size.height())
    left, top = new.to_view(old.x, old.y)
    factor = new.scale / old.scale
    seen = QRectF(left, top, size.width() * factor, size.height() * factor).intersected(view)
    return seen.width() * seen.height() / max(view.width() * view.height(), 1.0)
