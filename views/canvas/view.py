"""The moving part of the canvas: a camera over a painted scene, with wheel, drag, gestures and smooth glides.

Navigation follows map applications: a mouse wheel zooms about the cursor, a trackpad's two fingers pan and its pinch
zooms, Ctrl+wheel always zooms, Shift+wheel pans sideways, dragging pans.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QEvent, QPoint, QPointF, QRectF, QSize, Qt, QTimer, Signal
from PySide6.QtGui import (
    QFocusEvent,
    QMouseEvent,
    QNativeGestureEvent,
    QPainter,
    QPaintEvent,
    QPen,
    QResizeEvent,
    QWheelEvent,
)
from PySide6.QtWidgets import QAbstractScrollArea, QApplication, QFrame, QWidget

from views.background.turns import in_a_turn
from views.canvas.base_layer import BaseLayer
from views.canvas.camera import Bounds, Camera, fitted, opening
from views.canvas.highlights import Highlights
from views.canvas.motion import GLIDE_MS, ZOOM_MS, Motion
from views.canvas.painting import ScenePainter
from views.canvas.palette import CanvasPalette
from views.canvas.scene import Scene
from views.look.theme import Theme, light
from views.widgets.basic import BY_KEYBOARD

READABLE = 0.65  # share of the window's size of texts below which going to a node also zooms in
_NEAR = 1.0
_NOTCH = 1.25  # zoom of one wheel notch or key press
_REST_MS = 90  # after the last move, until a coarse picture is drawn sharp


class CanvasView(QAbstractScrollArea):
    """Shows a scene through a camera. What is marked on top, and what a click means, its subclass knows."""

    camera_changed = Signal()
    resized = Signal()
    scene_changed = Signal()  # another region or theme
    jumping = Signal()  # the view is about to go somewhere else, not just a little on

    def __init__(self, parent: QWidget | None = None, theme: Theme | None = None) -> None:
        super().__init__(parent)
        self._palette = CanvasPalette(theme or light())
        self._scene: Scene | None = None
        self._painter: ScenePainter | None = None
        self._marks = Highlights()
        self._camera = Camera()
        self._base = BaseLayer()
        self._motion = Motion(self, self._apply_camera)
        self._moving = False
        self._ringed = False
        self._without_scene = "Compile a model to see its graph"
        self._press: QPointF | None = None
        self._drag: QPointF | None = None
        self._opened = False  # whether the first view of this scene was chosen
        self._first: Camera | None = None  # that view
        self._rest = QTimer(self)
        self._rest.setSingleShot(True)
        self._rest.setInterval(_REST_MS)
        self._rest.timeout.connect(self._come_to_rest)
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setVerticalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.viewport().setMouseTracking(True)
        self.viewport().setAttribute(Qt.WidgetAttribute.WA_OpaquePaintEvent)

    @property
    def scene(self) -> Scene | None:
        """What is shown."""
        return self._scene

    @property
    def camera(self) -> Camera:
        """Where the canvas looks now."""
        return self._camera

    @property
    def is_as_opened(self) -> bool:
        """Whether the view is the first one still, or again."""
        return self._camera == self._first

    @property
    def canvas_palette(self) -> CanvasPalette:
        """The colours in use."""
        return self._palette

    @property
    def scene_painter(self) -> ScenePainter | None:
        """What draws the scene in these colours, with the buffers and texts that it keeps."""
        return self._painter

    def view_bounds(self) -> QRectF:
        """The part of the scene that is visible."""
        x, y = self._camera.to_scene(0, 0)
        return QRectF(x, y, self._width / self._camera.scale, self._height / self._camera.scale)

    def set_theme(self, theme: Theme) -> None:
        """Draws in another theme."""
        larger = theme.zoom / self._text_scale
        if theme != self._palette.theme:
            self._palette = CanvasPalette(theme)
        self._show_scene(self._scene)
        if larger != 1.0:
            self.move_to(self._camera.zoomed(larger, self._width / 2, self._height / 2))

    def fit(self) -> None:
        """Shows the whole graph."""
        if self._scene is not None:
            self._jump(self._fitted(self._scene.bounds))

    def go_home(self) -> None:
        """Shows what was shown first."""
        if self._scene is not None:
            self._jump(self._opening(self._scene))

    def zoom_in(self) -> None:
        """One step closer, about the middle."""
        self._zoom(_NOTCH, QPointF(self._width / 2, self._height / 2))

    def zoom_out(self) -> None:
        """One step away, about the middle."""
        self._zoom(1 / _NOTCH, QPointF(self._width / 2, self._height / 2))

    def actual_size(self) -> None:
        """Texts as large as the window's, about the middle."""
        self._zoom(self._text_scale / self._camera.scale, QPointF(self._width / 2, self._height / 2))

    def move_to(self, camera: Camera) -> None:
        """Looks through another camera, at once."""
        self._motion.stop()
        self._apply_camera(camera, True)

    def glide_to(self, camera: Camera) -> None:
        """Looks through another camera, smoothly."""
        self._glide(camera, GLIDE_MS)

    def look_at(self, x: float, y: float) -> None:
        """Puts a scene point in the middle, at once."""
        self.move_to(self._camera.centred(x, y, self._width, self._height))

    def center_on(self, name: str) -> None:
        """Glides to a node, group or extern call, and zooms in if it would be unreadable. Unknown names do nothing."""
        rect = self._scene.locate(name) if self._scene is not None else None
        if rect is None:
            return
        left, top, width, height = rect
        whole = self._fitted(rect)
        scale = self._camera.scale if self._is_readable else _NEAR * self._text_scale
        goal = Camera().centred(left + width / 2, top + height / 2, self._width, self._height, min(scale, whole.scale))
        self._jump(goal)

    def center_on_all(self, names: Iterable[str]) -> None:
        """Glides to where all of some nodes or groups are in sight, no nearer than they are read well."""
        if self._scene is None or not len(rects := self._scene.rects_of(names)):
            return
        left, top = rects[:, :2].min(axis=0).tolist()
        right, bottom = (rects[:, :2] + rects[:, 2:]).max(axis=0).tolist()
        whole = self._fitted((left, top, right - left, bottom - top))
        scale = min(whole.scale, self._camera.scale if self._is_readable else _NEAR * self._text_scale)
        middle = (left + right) / 2, (top + bottom) / 2
        self._jump(Camera().centred(*middle, self._width, self._height, scale))

    def shows(self, names: Iterable[str]) -> bool:
        """Whether all of some nodes or boxes are in sight and large enough to read."""
        if self._scene is None or not self._is_readable:
            return False
        rects, (left, top, right, bottom) = self._scene.rects_of(names), self.view_bounds().getCoords()
        ends = rects[:, :2] + rects[:, 2:]
        return bool((rects[:, :2] >= (left, top)).all() and (ends <= (right, bottom)).all())

    def view_position(self, name: str) -> QPoint:
        """The middle of a node, group or extern call in viewport pixels. Raises KeyError for an unknown name."""
        rect = self._scene.locate(name) if self._scene is not None else None
        if rect is None:
            raise KeyError(name)
        x, y = self._camera.to_view(rect[0] + rect[2] / 2, rect[1] + rect[3] / 2)
        return QPoint(round(x), round(y))

    def _bring_into_view(self, name: str, rect: NDArray[np.float32]) -> None:
        """Glides only if something is not well inside the view."""
        left, top, width, height = (float(v) for v in rect)
        view = self.view_bounds()
        margin = 0.08 * view.height()
        inner = view.adjusted(margin, margin, -margin, -margin)
        if not self._is_readable or not inner.contains(QRectF(left, top, width, height)):
            self.center_on(name)

    @property
    def _is_readable(self) -> bool:
        return self._camera.scale >= READABLE * self._text_scale

    @property
    def _width(self) -> float:
        return float(max(self.viewport().width(), 1))

    @property
    def _height(self) -> float:
        return float(max(self.viewport().height(), 1))

    def _view_size(self) -> QSize:
        return QSize(int(self._width), int(self._height))

    def _show_scene(self, scene: Scene | None) -> None:
        self._scene = scene
        self._painter = ScenePainter(scene, self._palette) if scene is not None else None
        self._base.invalidate()
        self.scene_changed.emit()
        self.viewport().update()

    def _opening(self, scene: Scene) -> Camera:
        return opening(scene.bounds, scene.start_x(), self._width, self._height, zoom=self._text_scale)

    @property
    def _text_scale(self) -> float:
        """The scale at which texts are as large as the window's."""
        return self._palette.theme.zoom

    def _fitted(self, bounds: Bounds) -> Camera:
        return fitted(bounds, self._width, self._height, zoom=self._text_scale)

    def _open_view(self) -> None:
        """Chooses the first view, again for each size until somebody moves it: docks take their room a little later."""
        if self._scene is not None and (not self._opened or self._camera == self._first):
            self._opened = self.isVisible()
            self._first = self._opening(self._scene)
            self._apply_camera(self._first, False)

    def _glide(self, goal: Camera, duration_ms: int) -> None:
        self._opened = True
        if self.isVisible():
            self._motion.go(self._camera, goal, duration_ms)
        else:
            self._apply_camera(goal, False)

    def _jump(self, goal: Camera) -> None:
        self.jumping.emit()
        self._glide(goal, GLIDE_MS)

    def _zoom(self, factor: float, at: QPointF) -> None:
        if self._scene is not None:
            start = self._motion.goal or self._camera
            self._glide(start.zoomed(factor, at.x(), at.y()), ZOOM_MS)

    def _pan(self, dx: float, dy: float) -> None:
        self.move_to(self._camera.panned(dx, dy))

    def _glide_by(self, dx: float, dy: float) -> None:
        self._glide((self._motion.goal or self._camera).panned(dx, dy), GLIDE_MS)

    def _apply_camera(self, camera: Camera, moving: bool) -> None:
        self._camera = camera
        self._moving = moving
        if moving:
            self._rest.start()
        self.viewport().update()
        self.camera_changed.emit()

    def _come_to_rest(self) -> None:
        self._moving = False
        self._sharpen()

    def _sharpen(self) -> None:
        if self._painter is None or self._moving:
            return  # it moves again, and comes to rest again
        ratio = self.viewport().devicePixelRatioF()
        if self._base.sharpen(self._painter, self._camera, self._view_size(), ratio):
            self.viewport().update()
        else:
            in_a_turn(self, self._sharpen)

    def paintEvent(self, event: QPaintEvent) -> None:
        with QPainter(self.viewport()) as painter:
            if self._painter is None:
                painter.fillRect(self.viewport().rect(), self._palette.background)
                painter.setPen(self._palette.theme.muted)
                painter.setFont(self._palette.theme.ui_font(11))
                where = self.viewport().rect()
                painter.drawText(where, Qt.AlignmentFlag.AlignCenter, self._without_scene)
                return
            ratio, size = self.viewport().devicePixelRatioF(), self._view_size()
            camera, sharp = self._base.draw(painter, self._painter, self._camera, size, ratio, self._moving)
            self._marks.paint(painter, self._painter, camera, size)
            if self._ringed:
                painter.setRenderHint(QPainter.RenderHint.Antialiasing)
                painter.setBrush(Qt.BrushStyle.NoBrush)
                painter.setPen(QPen(self._palette.theme.accent, 1.5))
                painter.drawRoundedRect(QRectF(self.viewport().rect()).adjusted(1, 1, -1, -1), 4, 4)
        if not sharp:
            self._rest.start()

    def focusInEvent(self, event: QFocusEvent) -> None:
        """A ring shows where the keyboard is, if the keyboard brought it here."""
        super().focusInEvent(event)
        self._ringed = event.reason() in BY_KEYBOARD
        self.viewport().update()

    def focusOutEvent(self, event: QFocusEvent) -> None:
        """The ring goes with the keyboard."""
        super().focusOutEvent(event)
        self._ringed = False
        self.viewport().update()

    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._open_view()
        self.resized.emit()
        self.camera_changed.emit()

    def viewportEvent(self, event: QEvent) -> bool:
        if isinstance(event, QNativeGestureEvent):
            if event.gestureType() == Qt.NativeGestureType.ZoomNativeGesture and self._scene is not None:
                at = event.position()
                self.move_to(self._camera.zoomed(1.0 + event.value(), at.x(), at.y()))
            return True
        return super().viewportEvent(event)

    def wheelEvent(self, event: QWheelEvent) -> None:
        pixels, angle, keys = event.pixelDelta(), event.angleDelta(), event.modifiers()
        if keys & Qt.KeyboardModifier.ControlModifier:
            self._zoom(_NOTCH ** ((angle.y() or angle.x()) / 120.0), event.position())
        elif not pixels.isNull() and event.phase() != Qt.ScrollPhase.NoScrollPhase:
            self._pan(pixels.x(), pixels.y())  # fingers on a trackpad
        elif keys & Qt.KeyboardModifier.ShiftModifier or (angle.x() and not angle.y()):
            self._pan((angle.y() or angle.x()) * 0.75, 0.0)
        else:
            self._zoom(_NOTCH ** (angle.y() / 120.0), event.position())
        event.accept()

    def mousePressEvent(self, event: QMouseEvent) -> None:
        if event.button() in (Qt.MouseButton.LeftButton, Qt.MouseButton.MiddleButton):
            self._motion.stop()
            self._press = event.position()
            self._drag = event.position() if event.button() == Qt.MouseButton.MiddleButton else None

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        at = event.position()
        if self._press is None:
            self._pointed(at)
            return
        if self._drag is None:
            if (at - self._press).manhattanLength() < QApplication.startDragDistance():
                return
            self._drag = self._press
        self.viewport().setCursor(Qt.CursorShape.ClosedHandCursor)
        move = at - self._drag
        self._drag = at
        self._pan(move.x(), move.y())

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        clicked = self._drag is None and self._press is not None and event.button() == Qt.MouseButton.LeftButton
        self._press = self._drag = None
        self._pointed(event.position())
        if clicked:
            self._clicked(event.position(), event.modifiers())

    def _pointed(self, at: QPointF) -> None:
        """The mouse is at a view point, with no button down."""
        raise NotImplementedError

    def _clicked(self, at: QPointF, keys: Qt.KeyboardModifier) -> None:
        """A view point was clicked without dragging."""
        raise NotImplementedError
