"""An overview in the canvas's corner, with the visible part framed; click or drag to move there.

Graphs are often a thousand times taller than wide. Then the map is a strip that shows a part of the graph and slides
along with the view, as a code editor's minimap does. Where it would lie over nodes it is a button that the mouse
opens, and a map only while the view moves.
"""

from __future__ import annotations

from PySide6.QtCore import QEvent, QPointF, QRectF, QSize, Qt, QTimer
from PySide6.QtGui import QColor, QEnterEvent, QMouseEvent, QPainter, QPainterPath, QPaintEvent, QPen, QPixmap
from PySide6.QtWidgets import QWidget

from views.canvas.camera import Camera
from views.canvas.canvas import GraphCanvas
from views.look.icons import pixmap

_WIDEST, _NARROWEST = 190.0, 84.0
_HEIGHT_SHARE = 0.36  # of the canvas's height
_LEAST_ROOM = 300  # pixels of the canvas's height: below, the map hides more than it shows
_LEGIBLE = 0.4  # scale from which a graph that is all in view needs no map
_PADDING = 6.0
_INSET = 14  # from the canvas's corner
_BUTTON, _ICON = 30, 16
_LINGER_MS = 1200  # after the view has moved or the mouse has gone, until the map makes way


class Minimap(QWidget):
    """Lies over its canvas at the bottom right."""

    def __init__(self, canvas: GraphCanvas) -> None:
        super().__init__(canvas)
        self._canvas = canvas
        self._pixmap = QPixmap()
        self._pixmap_of: tuple[float, float, int, int, float] | None = None  # what the pixmap shows
        self._scale = 1.0
        self._press: QPointF | None = None
        self._whole = QSize()  # of the map
        self._is_button = False
        self._camera = canvas.camera  # that was seen last
        self._linger = QTimer(self)
        self._linger.setSingleShot(True)
        self._linger.setInterval(_LINGER_MS)
        self._linger.timeout.connect(self._make_way)
        self.setAccessibleName("Minimap")
        self.setAccessibleDescription("Overview of the graph. Click or drag to move the view.")
        self.setCursor(Qt.CursorShape.PointingHandCursor)
        canvas.resized.connect(self._arrange)
        canvas.camera_changed.connect(self._camera_changed)
        canvas.scene_changed.connect(self._scene_changed)
        self._scene_changed()

    def _scene_changed(self) -> None:
        self._pixmap_of = None
        self._arrange()
        self.update()

    def _camera_changed(self) -> None:
        moved, self._camera = self._canvas.camera != self._camera, self._canvas.camera
        self.setVisible(self._is_useful())
        if self._canvas.is_as_opened:
            self._make_way()
        elif moved and self.isVisible():
            self._open()
            self._linger.start()
        self.update()

    def _is_useful(self) -> bool:
        """Whether there is a graph, room for a map, and anything that the view does not show large enough."""
        scene, area = self._canvas.scene, self._canvas.viewport().size()
        if scene is None or not len(scene.nodes):
            return False
        if area.width() < 2 * self._whole.width() or area.height() < max(1.5 * self._whole.height(), _LEAST_ROOM):
            return False
        return self._canvas.camera.scale < _LEGIBLE or not self._canvas.view_bounds().contains(QRectF(*scene.bounds))

    def _arrange(self) -> None:
        """Chooses the size and the scale for the present graph and canvas."""
        scene = self._canvas.scene
        if scene is None or not len(scene.nodes):
            self.hide()
            return
        _, _, width, height = scene.bounds
        tallest = self._canvas.height() * _HEIGHT_SHARE
        scale = min(_WIDEST / max(width, 1.0), tallest / max(height, 1.0))
        if width * scale < _NARROWEST:
            scale = min(_NARROWEST / max(width, 1.0), 0.2)
        self._scale = scale
        own_width = max(min(width * scale, _WIDEST), 40.0) + 2 * _PADDING
        own_height = max(min(height * scale, tallest), 24.0) + 2 * _PADDING
        self._whole = QSize(round(own_width), round(own_height))
        self._make_way()
        self.setVisible(self._is_useful())

    def _open(self) -> None:
        """A map, whatever is below it."""
        self._place(is_button=False)

    def _make_way(self) -> None:
        """A button where a map would hide nodes, unless the mouse is at work on it."""
        self._place(is_button=not self.underMouse() and self._press is None and self._hides_nodes())

    def _place(self, *, is_button: bool) -> None:
        self._is_button = is_button
        self.setToolTip("Minimap" if is_button else "")
        size = QSize(_BUTTON, _BUTTON) if is_button else self._whole
        area = self._canvas.viewport().geometry()
        self.setGeometry(
            area.right() - size.width() - _INSET, area.bottom() - size.height() - _INSET, size.width(), size.height()
        )
        self.update()

    def _hides_nodes(self) -> bool:
        scene, camera = self._canvas.scene, self._canvas.camera
        area = self._canvas.viewport().geometry()
        right, bottom = area.right() - _INSET, area.bottom() - _INSET
        left_top = camera.to_scene(right - self._whole.width(), bottom - self._whole.height())
        return scene is not None and scene.has_text_in((*left_top, *camera.to_scene(right, bottom)))

    def map_camera(self) -> Camera:
        """The camera of the map itself: the whole graph in the middle, or the part around the view."""
        scene = self._canvas.scene
        assert scene is not None
        left, top, width, height = scene.bounds
        shown = (self._whole.height() - 2 * _PADDING) / self._scale
        x = left + width / 2 - self._whole.width() / 2 / self._scale
        if height <= shown:
            return Camera(x, top + height / 2 - self._whole.height() / 2 / self._scale, self._scale)
        view = self._canvas.view_bounds()
        progress = (view.top() - top) / max(height - view.height(), 1.0)
        start = top + min(max(progress, 0.0), 1.0) * (height - shown)
        return Camera(x, start - _PADDING / self._scale, self._scale)

    def paintEvent(self, event: QPaintEvent) -> None:
        scene = self._canvas.scene
        if scene is None:
            return
        with QPainter(self) as painter:
            painter.setRenderHint(QPainter.RenderHint.Antialiasing)
            if self._is_button:
                self._paint_button(painter)
            else:
                self._paint_map(painter)

    def _paint_button(self, painter: QPainter) -> None:
        theme = self._canvas.canvas_palette.theme
        painter.setBrush(theme.surface)
        painter.setPen(QPen(theme.border, 1.0))
        painter.drawRoundedRect(QRectF(self.rect()).adjusted(0.5, 0.5, -0.5, -0.5), 8, 8)
        at = (_BUTTON - _ICON) // 2
        painter.drawPixmap(at, at, pixmap("map", theme.muted, _ICON, self.devicePixelRatioF()))

    def _paint_map(self, painter: QPainter) -> None:
        palette = self._canvas.canvas_palette
        camera = self.map_camera()
        self._render(camera)
        frame = QRectF(self.rect()).adjusted(0.5, 0.5, -0.5, -0.5)
        outline = QPainterPath()
        outline.addRoundedRect(frame, 8, 8)
        painter.setClipPath(outline)
        painter.drawPixmap(0, 0, self._pixmap)
        view = self._canvas.view_bounds()
        x, y = camera.to_view(view.left(), view.top())
        seen = QRectF(x, y, max(view.width() * self._scale, 6.0), max(view.height() * self._scale, 4.0))
        seen = seen.intersected(frame.adjusted(1.5, 1.5, -1.5, -1.5))
        tint = QColor(palette.theme.accent)
        tint.setAlphaF(0.14)
        painter.setBrush(tint)
        painter.setPen(QPen(palette.theme.accent, 1.4))
        painter.drawRoundedRect(seen, 2.5, 2.5)
        painter.setClipping(False)
        painter.setBrush(Qt.BrushStyle.NoBrush)
        painter.setPen(QPen(palette.theme.border, 1.0))
        painter.drawRoundedRect(frame, 8, 8)

    def _render(self, camera: Camera) -> None:
        """Draws the graph's part into the pixmap, if it is another one than last time."""
        scene_painter = self._canvas.scene_painter
        ratio = self.devicePixelRatioF()
        key = (camera.x, round(camera.y * camera.scale * ratio), self.width(), self.height(), ratio)
        if scene_painter is None or key == self._pixmap_of:
            return
        self._pixmap_of = key
        self._pixmap = QPixmap(self.size() * ratio)
        self._pixmap.setDevicePixelRatio(ratio)
        self._pixmap.fill(scene_painter.palette.theme.surface)
        with QPainter(self._pixmap) as painter:
            scene_painter.paint_far(painter, camera, QRectF(self.rect()))

    def enterEvent(self, event: QEnterEvent) -> None:
        """The map is wanted."""
        self._linger.stop()
        self._open()

    def leaveEvent(self, event: QEvent) -> None:
        """It is not wanted any more, or it is in a moment."""
        self._linger.start()

    def mousePressEvent(self, event: QMouseEvent) -> None:
        """Goes to the point under the mouse."""
        if self._is_button:
            self._open()  # a finger, which entered nothing before
            return
        if event.button() == Qt.MouseButton.LeftButton and self._canvas.scene is not None:
            self._press = event.position()
            self._canvas.look_at(*self.map_camera().to_scene(event.position().x(), event.position().y()))

    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        """Moves the view along; over a sliding map, one map height is the whole graph."""
        scene = self._canvas.scene
        if self._press is None or scene is None:
            return
        move = event.position() - self._press
        self._press = event.position()
        shown = self._whole.height() - 2 * _PADDING
        share = max(1.0, scene.bounds[3] * self._scale / shown)
        middle = self._canvas.view_bounds().center()
        self._canvas.look_at(middle.x() + move.x() / self._scale, middle.y() + share * move.y() / self._scale)

    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        self._press = None
        self._linger.start()
