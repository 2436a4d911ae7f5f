"""Draws modules: frames around open ones, cards for closed ones, sheets behind a stack, a mark that opens them."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QPointF, QRectF, Qt
from PySide6.QtGui import QColor, QPainter, QPainterPath, QPen, QPolygonF

from app.layout.labels import TITLE_HEIGHT
from app.layout.nested import Box
from views.canvas.module_scene import ModuleScene
from views.canvas.palette import CanvasPalette, GroupInk
from views.canvas.primitives import ShapeBuffer
from views.canvas.texts import TextCache

_ROUND = 9.0
_SHEET = 4.0  # between two sheets of a stack
_MOST_SINGLE = 300  # boxes a frame drawn one by one, with round corners and sheets
MARK = 24.0  # width of the place at a box's left that opens and closes it

Indices = NDArray[np.int64]


def card_rect(box: Box, rect: QRectF) -> QRectF:
    """The front of a closed box: a stack has sheets behind it."""
    return rect.adjusted(0, 2 * _SHEET, -2 * _SHEET, 0) if box.count > 1 and not box.is_open else rect


def mark_rect(box: Box, rect: QRectF) -> QRectF:
    """Where a click opens or closes a box."""
    front = card_rect(box, rect)
    return QRectF(front.left(), front.top(), MARK, front.height() if not box.is_open else TITLE_HEIGHT - 4)


def ink_of(scene: ModuleScene, palette: CanvasPalette, group: int) -> GroupInk:
    """A box's colours; plain ones where an overlay says nothing of it."""
    color = int(scene.group_color[group])
    return palette.group(color) if color >= 0 else palette.plain_box


def paint_frames(
    painter: QPainter,
    scene: ModuleScene,
    palette: CanvasPalette,
    groups: Indices,
    buffer: ShapeBuffer[QRectF],
    *,
    smooth: bool,
    far: bool,
) -> None:
    """Fills of boxes, the outer ones first."""
    if far or len(groups) > _MOST_SINGLE:
        _paint_plain(painter, scene, palette, groups, buffer, far=far)
        return
    for group in groups[np.argsort(scene.depth[groups], kind="stable")]:
        box, rect = scene.boxes[group], QRectF(*(float(v) for v in scene.group_rect[group]))
        ink = ink_of(scene, palette, int(group))
        painter.setPen(QPen(ink.border, 1.2))
        painter.setBrush(ink.fill)
        if not box.is_open:
            rect = card_rect(box, rect)
            for step in (2, 1) if box.count > 1 else ():
                _box(painter, rect.translated(step * _SHEET, -step * _SHEET), smooth)
            painter.setBrush(ink.strip)
        _box(painter, rect, smooth)


def _paint_plain(
    painter: QPainter,
    scene: ModuleScene,
    palette: CanvasPalette,
    groups: Indices,
    buffer: ShapeBuffer[QRectF],
    *,
    far: bool,
) -> None:
    """Many boxes at once, in one colour after the other within a depth."""
    looks = (scene.depth[groups].astype(np.int64) << 32) + (scene.group_color[groups] << 1) + scene.is_closed[groups]
    order = np.argsort(looks, kind="stable")
    starts = np.flatnonzero(np.diff(looks[order], prepend=-(1 << 40))).tolist()
    rects = buffer.fill(scene.group_rect[groups[order]])
    for begin, end in pairwise([*starts, len(order)]):
        first = int(groups[order[begin]])
        ink, is_closed = ink_of(scene, palette, first), bool(scene.is_closed[first])
        pen = QPen(ink.border, 0.0)
        pen.setCosmetic(True)
        painter.setPen(Qt.PenStyle.NoPen if far else pen)
        painter.setBrush(ink.fill if not is_closed else ink.far if far else ink.strip)
        painter.drawRects(rects[begin:end])


def _box(painter: QPainter, rect: QRectF, smooth: bool) -> None:
    if smooth:
        painter.drawRoundedRect(rect, _ROUND, _ROUND)
    else:
        painter.drawRect(rect)


def paint_titles(
    painter: QPainter,
    scene: ModuleScene,
    palette: CanvasPalette,
    groups: Indices,
    title: TextCache,
    small: TextCache,
) -> None:
    """Names and types, and the marks that open and close."""
    for group in groups:
        box, rect = scene.boxes[group], QRectF(*(float(v) for v in scene.group_rect[group]))
        ink = ink_of(scene, palette, int(group))
        front = card_rect(box, rect)
        strip = QRectF(front.left(), front.top(), front.width(), TITLE_HEIGHT - 4)
        if box.is_open:
            painter.setPen(QPen(ink.border, 1.2))
            painter.setBrush(ink.strip)
            painter.drawPath(tab(strip, _ROUND))
        _mark(painter, QPointF(strip.left() + 13, strip.center().y()), box.is_open, ink)
        text = QRectF(strip.left() + 24, strip.top(), strip.width() - 34, strip.height())
        if box.is_open:
            used = _line(painter, title, box.title, text, ink.text)
            beside = "each like this one" if box.is_single else box.type_name if box.type_name not in box.title else ""
            if beside:
                room = text.adjusted(used + 8, 0, 0, 0)
                if small.metrics.horizontalAdvance(beside) <= room.width():
                    _line(painter, small, beside, room, ink.muted)
            continue
        _line(painter, title, box.title, text.translated(0, 1), ink.text)
        below = text.translated(0, 19)
        kind = f"{box.type_name} · " if box.type_name and box.type_name not in box.title else ""
        _line(painter, small, f"{kind}{len(box.members):,} nodes", below, ink.muted)


def _line(painter: QPainter, font: TextCache, text: str, where: QRectF, color: QColor) -> float:
    painter.setFont(font.font)
    painter.setPen(color)
    return font.draw_left(painter, text, where)


def tab(strip: QRectF, radius: float) -> QPainterPath:
    """A strip with round upper and square lower corners."""
    size = 2 * radius
    path = QPainterPath(strip.bottomLeft())
    path.arcTo(QRectF(strip.left(), strip.top(), size, size), 180.0, -90.0)
    path.arcTo(QRectF(strip.right() - size, strip.top(), size, size), 90.0, -90.0)
    path.lineTo(strip.bottomRight())
    path.closeSubpath()
    return path


def _mark(painter: QPainter, middle: QPointF, is_open: bool, ink: GroupInk) -> None:
    """A triangle: to the right where there is more inside, down where it is shown."""
    x, y, size = middle.x(), middle.y(), 3.6
    if is_open:
        points = [QPointF(x - size, y - size / 2), QPointF(x + size, y - size / 2), QPointF(x, y + size * 0.8)]
    else:
        points = [QPointF(x - size / 2, y - size), QPointF(x - size / 2, y + size), QPointF(x + size * 0.8, y)]
    painter.setPen(Qt.PenStyle.NoPen)
    painter.setBrush(ink.text)
    painter.drawPolygon(QPolygonF(points))
