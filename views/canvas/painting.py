"""Paints a scene: culls with numpy, buckets by colour, and shows as much detail as the scale allows."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from PySide6.QtCore import QLineF, QPointF, QRectF, Qt
from PySide6.QtGui import QBrush, QColor, QPainter, QPainterPath, QPen

from app.layout import NodeStyle
from app.layout.labels import OP_PX, SHAPE_PX, TITLE_HEIGHT
from views.canvas import module_boxes
from views.canvas.camera import Camera
from views.canvas.curves import segments
from views.canvas.module_scene import ModuleScene
from views.canvas.palette import CanvasPalette, GroupInk, Ink
from views.canvas.primitives import ShapeBuffer
from views.canvas.scene import EXTERN, Scene
from views.canvas.texts import TextCache, canvas_font

# Scales from which each detail is drawn.
SCALE_TEXT = 0.35
SCALE_SUBTITLE = 0.55
SCALE_SMOOTH = 0.5  # antialiased round boxes
SCALE_CURVES = 0.12  # S-curves and not straight stretches
SCALE_INNER_EDGES = 0.1
SCALE_EDGES = 0.025
SCALE_EDGE_LABELS = 1.2
SCALE_NODES = 0.03  # below, only group boxes and lone nodes

_ROUND_NODE, _ROUND_GROUP = 6.0, 10.0
_FAR_TITLE_PX = 9.0
_ARROW, _ARROW_HALF = 6.0, 3.2  # length and half width of arrow heads
_MOST_ROUND = 2500  # boxes a frame drawn one by one
_PIECES_AT_ONCE = 1000
_MOST_OUTLINED = 400  # nodes that are marked with round corners: of more in sight, each is small

# Width of an edge by how many values it bundles: at least, below, pixels at scale 1.
_BUNDLES = ((0, 2, 1.2), (2, 4, 2.2), (4, 8, 3.2), (8, 16, 4.4), (16, 1 << 30, 6.0))

Indices = NDArray[np.int64]


def among(seen: Indices, chosen: Sequence[int] | Indices) -> Indices:
    """Which of ``seen`` are chosen, in their order. Both may be thousands, in every frame."""
    return seen[np.isin(seen, np.asarray(chosen, np.int64), kind="table")] if len(chosen) else seen[:0]


class ScenePainter:
    """Draws one scene in one theme. Keeps buffers and texts between frames."""

    def __init__(self, scene: Scene, palette: CanvasPalette) -> None:
        self.scene = scene
        self.palette = palette
        base = palette.theme.ui_font()
        self.op_text = TextCache(canvas_font(base, OP_PX, bold=True))
        self.small_text = TextCache(canvas_font(base, SHAPE_PX))
        self.title_text = TextCache(canvas_font(base, SHAPE_PX, bold=True))
        self.far_text = TextCache(canvas_font(base, _FAR_TITLE_PX, bold=True))
        self._rects = ShapeBuffer(QRectF)
        self._group_rects = ShapeBuffer(QRectF)
        self._lines = ShapeBuffer(QLineF)
        self._cone: tuple[tuple[int, ...], NDArray[np.bool_]] | None = None

    def paint(self, painter: QPainter, camera: Camera, area: QRectF) -> None:
        """Draws what falls into ``area`` (view pixels). The painter is in view pixels and stays so."""
        left, top = camera.to_scene(area.left(), area.top())
        right, bottom = camera.to_scene(area.right(), area.bottom())
        window = (left, top, right, bottom)
        scene, scale = self.scene, camera.scale
        groups = scene.group_blocks.touching(window)
        nodes = scene.node_blocks.touching(window)
        stubs = scene.stub_blocks.touching(window)
        if scale < SCALE_NODES:
            nodes = nodes[scene.layout.node_group[nodes] < 0]
        painter.save()
        painter.setRenderHint(QPainter.RenderHint.Antialiasing, scale >= SCALE_SMOOTH)
        painter.scale(scale, scale)
        painter.translate(-camera.x, -camera.y)
        self._paint_groups(painter, groups, scale)
        self._paint_edges(painter, window, scale)
        if scale >= SCALE_TEXT:
            self._paint_strips(painter, groups, scale)
            self._paint_stubs(painter, stubs)
        self._paint_nodes(painter, nodes, scale)
        if scale >= SCALE_EDGE_LABELS:
            self._paint_edge_labels(painter, nodes)
        painter.restore()
        if SCALE_NODES <= scale < SCALE_TEXT:
            self._paint_far_titles(painter, groups, camera)

    def paint_far(self, painter: QPainter, camera: Camera, area: QRectF) -> None:
        """Draws boxes in plain colours only, for overviews."""
        window = (*camera.to_scene(area.left(), area.top()), *camera.to_scene(area.right(), area.bottom()))
        scene = self.scene
        groups = scene.group_blocks.touching(window)
        nodes = scene.node_blocks.touching(window)
        nodes = nodes[scene.layout.node_group[nodes] < 0]
        painter.save()
        painter.scale(camera.scale, camera.scale)
        painter.translate(-camera.x, -camera.y)
        self._paint_groups(painter, groups, 0.0)
        self._paint_nodes(painter, nodes, 0.0)
        painter.restore()

    def _paint_groups(self, painter: QPainter, groups: Indices, scale: float) -> None:
        scene = self.scene
        if isinstance(scene, ModuleScene):
            smooth, far = scale >= SCALE_SMOOTH and len(groups) <= _MOST_ROUND, scale < SCALE_INNER_EDGES
            self._paint_frames(painter, scene, groups, smooth=smooth, far=far)
            return
        rects = self._group_rects.fill(scene.group_rect[groups])
        round_corners = scale >= SCALE_SMOOTH and len(groups) <= _MOST_ROUND
        colors = self.palette.group_inks(scene.group_color[groups])
        for color in np.unique(colors):
            ink = self.palette.group(int(color))
            chosen = [rects[i] for i in np.flatnonzero(colors == color)]
            if scale < SCALE_INNER_EDGES:
                painter.setPen(Qt.PenStyle.NoPen)
                painter.setBrush(ink.far)
                painter.drawRects(chosen)
                continue
            painter.setBrush(ink.fill)
            painter.setPen(_pen(ink.border, 1.2 if round_corners else 0.0))
            if not round_corners:
                painter.drawRects(chosen)
                continue
            for rect in chosen:
                painter.drawRoundedRect(rect, _ROUND_GROUP, _ROUND_GROUP)

    def _paint_frames(self, painter: QPainter, scene: ModuleScene, groups: Indices, *, smooth: bool, far: bool) -> None:
        buffer = self._group_rects
        module_boxes.paint_frames(painter, scene, self.palette, groups, buffer, smooth=smooth, far=far)

    def _paint_strips(self, painter: QPainter, groups: Indices, scale: float) -> None:
        """Title strips, over the edges that enter at a group's top side."""
        scene = self.scene
        if isinstance(scene, ModuleScene):
            module_boxes.paint_titles(painter, scene, self.palette, groups, self.title_text, self.small_text)
            return
        smooth = scale >= SCALE_SMOOTH
        for group in groups:
            x, y, width, _ = (float(v) for v in scene.group_rect[group])
            ink = self.palette.group(int(scene.group_color[group]))
            strip = QRectF(x, y, width, TITLE_HEIGHT - 4)
            painter.setPen(_pen(ink.border, 1.2))
            painter.setBrush(ink.strip)
            if smooth:
                painter.drawPath(module_boxes.tab(strip, _ROUND_GROUP))
            else:
                painter.drawRect(strip)
            self._paint_title(painter, scene.layout.group_names[group], ink, strip)

    def _paint_title(self, painter: QPainter, name: str, ink: GroupInk, strip: QRectF) -> None:
        painter.setPen(_pen(ink.border, 1.0))  # the coolest level of an overlay is next to the strip's own colour
        painter.setBrush(ink.swatch)
        painter.drawEllipse(QPointF(strip.left() + 12, strip.center().y()), 3.5, 3.5)
        kind = self._kind(name)
        free = strip.width() - 32
        painter.setFont(self.title_text.font)
        painter.setPen(ink.text)
        used = self.title_text.draw_left(painter, name, QRectF(strip.left() + 21, strip.top(), free, strip.height()))
        painter.setFont(self.small_text.font)
        width = self.small_text.metrics.horizontalAdvance(kind)
        if used + width + 14 <= free:
            painter.setPen(ink.muted)
            box = QRectF(strip.right() - width - 11, strip.top(), width + 2, strip.height())
            self.small_text.draw_left(painter, kind, box)

    def _kind(self, name: str) -> str:
        group = self.scene.groups.get(name)
        return group.kind.value if group is not None else "extern"

    def _paint_edges(self, painter: QPainter, window: tuple[float, float, float, float], scale: float) -> None:
        if scale < SCALE_EDGES:
            return
        scene = self.scene
        found = scene.piece_blocks.touching(window)
        if scale < SCALE_INNER_EDGES:
            found = found[~scene.piece_inside[found]]
        inside = scene.piece_inside[found]
        far = scale < SCALE_SMOOTH
        color = self.palette.edge_far if far else self.palette.edge
        if isinstance(scene, ModuleScene) and not far:
            weight = scene.piece_weight[found]
            for least, most, width in _BUNDLES:
                self._draw_pieces(painter, found[(weight >= least) & (weight < most)], _pen(color, width), scale)
        else:
            self._draw_pieces(painter, found[inside], _pen(color, 0.0 if far else 1.1), scale)
            self._draw_pieces(painter, found[~inside], _pen(color, 0.0 if far else 1.5), scale)
        if not far:
            self._paint_arrows(painter, found[scene.piece_ends[found]])

    def _draw_pieces(self, painter: QPainter, which: Indices, pen: QPen, scale: float) -> None:
        if not len(which):
            return
        painter.setPen(pen)
        for first in range(0, len(which), _PIECES_AT_ONCE):  # a call of Qt's lets no other thread go on
            pieces = self.scene.pieces[which[first : first + _PIECES_AT_ONCE]]
            painter.drawLines(self._lines.fill(segments(pieces, _steps(scale))))

    def _paint_arrows(self, painter: QPainter, which: Indices) -> None:
        """A small head where an edge reaches its consumer."""
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(self.palette.edge)
        heads = QPainterPath()
        for x, y in self.scene.pieces[which, 2:].tolist():
            heads.moveTo(x - _ARROW_HALF, y - _ARROW)
            heads.lineTo(x + _ARROW_HALF, y - _ARROW)
            heads.lineTo(x, y)
            heads.closeSubpath()
        painter.drawPath(heads)

    def _paint_stubs(self, painter: QPainter, stubs: Indices) -> None:
        """Names of values that come from, or go, far away."""
        layout = self.scene.layout
        painter.setPen(_pen(self.palette.stub_border, 1.0, Qt.PenStyle.DashLine))
        painter.setBrush(self.palette.background)
        boxes = [QRectF(*(float(v) for v in layout.stub_rect[stub])) for stub in stubs]
        for box in boxes:
            painter.drawRoundedRect(box, box.height() / 2, box.height() / 2)
        painter.setFont(self.small_text.font)
        painter.setPen(self.palette.stub_text)
        for stub, box in zip(stubs, boxes, strict=True):
            self.small_text.draw_centred(painter, layout.stub_labels[stub], box.adjusted(5, 0, -5, 0))

    def _paint_nodes(self, painter: QPainter, nodes: Indices, scale: float) -> None:
        scene = self.scene
        # Texts are written after all boxes, so that pens and fonts change once per class.
        inks = self.palette.node_inks(scene.node_ink[nodes])
        rects = self._rects.fill(scene.node_rect[nodes])
        boxes = scale >= SCALE_SMOOTH and len(nodes) <= _MOST_ROUND
        for number in np.unique(inks):
            ink = self.palette.node(int(number))
            places = np.flatnonzero(inks == number)
            chosen = [rects[i] for i in places]
            if not boxes:
                painter.setPen(Qt.PenStyle.NoPen)
                painter.setBrush(ink.fill if scale >= SCALE_TEXT else ink.far)
                if scale >= SCALE_TEXT:
                    painter.setPen(_pen(ink.border, 0.0))
                painter.drawRects(chosen)
            else:
                style, drawn = scene.layout.node_style[nodes[places]], scene.node_class[nodes[places]]
                extern = [rect for rect, kind in zip(chosen, drawn, strict=True) if kind == EXTERN]
                if extern:
                    self._paint_extern_boxes(painter, extern, ink)
                painter.setPen(_pen(ink.border, 1.2))
                painter.setBrush(ink.fill)
                for rect, one, kind in zip(chosen, style, drawn, strict=True):
                    if kind != EXTERN:
                        radius = rect.height() / 2 if one != NodeStyle.OP else _ROUND_NODE
                        painter.drawRoundedRect(rect, radius, radius)
            if scale >= SCALE_TEXT:
                self._paint_node_texts(painter, nodes[places], chosen, ink, scale)

    def _paint_extern_boxes(self, painter: QPainter, rects: list[QRectF], ink: Ink) -> None:
        """Square, with a double border and a bar on the left: not a kernel of ours."""
        painter.setBrush(ink.fill)
        painter.setPen(_pen(ink.border, 1.4))
        painter.drawRects(rects)
        painter.setBrush(Qt.BrushStyle.NoBrush)
        painter.setPen(_pen(ink.border, 0.8))
        painter.drawRects([rect.adjusted(3.5, 3.5, -3.5, -3.5) for rect in rects])

    def _paint_node_texts(self, painter: QPainter, nodes: Indices, rects: list[QRectF], ink: Ink, scale: float) -> None:
        scene = self.scene
        style = scene.layout.node_style
        titled = [i for i, node in enumerate(nodes) if style[node] != NodeStyle.PILL]
        pills = [i for i, node in enumerate(nodes) if style[node] == NodeStyle.PILL]
        painter.setPen(ink.text)
        if pills:
            painter.setFont(self.small_text.font)
            for i in pills:
                self.small_text.draw_centred(painter, scene.titles[nodes[i]], rects[i].adjusted(9, 0, -9, 0))
        two_lines = scale >= SCALE_SUBTITLE
        painter.setFont(self.op_text.font)
        for i in titled:
            lower = -14.0 if two_lines and scene.subtitles[nodes[i]] else 0.0
            self.op_text.draw_centred(painter, scene.titles[nodes[i]], rects[i].adjusted(7, 0, -7, lower))
        if not two_lines:
            return
        painter.setFont(self.small_text.font)
        painter.setPen(ink.muted)
        for i in titled:
            if scene.subtitles[nodes[i]]:
                self.small_text.draw_centred(painter, scene.subtitles[nodes[i]], rects[i].adjusted(6, 15, -6, 0))
        self._paint_badges(painter, [(nodes[i], rects[i]) for i in titled if style[nodes[i]] == NodeStyle.EXTERN], ink)

    def _paint_badges(self, painter: QPainter, items: list[tuple[int, QRectF]], ink: Ink) -> None:
        """The library's name, on the upper border of an extern call."""
        for node, rect in items:
            text = self.scene.badge(int(node))
            width = self.small_text.metrics.horizontalAdvance(text) + 10
            chip = QRectF(rect.right() - width - 8, rect.top() - 7, width, 14)
            painter.setPen(Qt.PenStyle.NoPen)
            painter.setBrush(ink.border)
            painter.drawRoundedRect(chip, 4, 4)
            painter.setPen(ink.badge)
            self.small_text.draw_centred(painter, text, chip)

    def _paint_edge_labels(self, painter: QPainter, nodes: Indices) -> None:
        """Shape and dtype below each value that leaves its kernel through memory."""
        scene = self.scene
        painter.setFont(self.small_text.font)
        painter.setPen(self.palette.theme.muted)
        for node in nodes:
            into, out = scene.edges_of(int(node))
            del into
            if not len(out) or scene.layout.node_style[node] == NodeStyle.PILL:
                continue
            group = scene.layout.node_group[node]
            leaves = group < 0 or bool((scene.layout.node_group[scene.layout.edges[out, 1]] != group).any())
            label = scene.edge_label(int(node))
            if leaves and label:
                x, y, width, height = (float(v) for v in scene.node_rect[node])
                box = QRectF(x + width / 2 + 5, y + height + 1, 400.0, 13.0)
                self.small_text.draw_left(painter, label, box)

    def _paint_far_titles(self, painter: QPainter, groups: Indices, camera: Camera) -> None:
        """Title strips at one size on screen, where boxes are too small for their own titles but large enough."""
        scene, scale = self.scene, camera.scale
        rect = scene.group_rect[groups]
        large = groups[(rect[:, 2] * scale > 64) & (rect[:, 3] * scale > 44)]
        painter.setFont(self.far_text.font)
        for group in large:
            x, y, width, _ = (float(v) for v in scene.group_rect[group])
            left, top = camera.to_view(x, y)
            modules = scene if isinstance(scene, ModuleScene) else None
            ink = (
                module_boxes.ink_of(modules, self.palette, int(group))
                if modules is not None
                else self.palette.group(int(scene.group_color[group]))
            )
            strip = QRectF(left, top, width * scale, 14.0)
            painter.setPen(_pen(ink.border, 0.0))
            painter.setBrush(ink.strip)
            painter.drawRect(strip)
            painter.setPen(ink.text)
            name = modules.boxes[group].title if modules is not None else scene.layout.group_names[group]
            self.far_text.draw_left(painter, name, strip.adjusted(4, 0, -4, 0))

    def paint_highlight(self, painter: QPainter, camera: Camera, node: int, color: QColor) -> None:
        """A node's edges up and down, and the boxes at their ends."""
        scene = self.scene
        into, out = scene.edges_of(node)
        edges = np.concatenate([into, out])
        ends = np.unique(np.concatenate([scene.layout.edges[into, 0], scene.layout.edges[out, 1]]))
        with _SceneSpace(painter, camera):
            painter.setPen(_pen(color, max(2.2, 1.4 / camera.scale)))
            pieces = scene.pieces_of(edges)
            painter.drawLines(self._lines.fill(segments(scene.pieces[pieces], _steps(max(camera.scale, 0.3)))))
            self._paint_ends(
                painter, np.append(ends, node).astype(np.int64), ends.astype(np.int64), color, camera.scale
            )

    def _paint_ends(self, painter: QPainter, again: Indices, ends: Indices, color: QColor, scale: float) -> None:
        """Nodes once more above the lines that reach them, with borders around some; boxes where they are hidden."""
        scene = self.scene
        if isinstance(scene, ModuleScene):
            boxes = np.array(scene.boxes_of(ends.tolist()), np.int64)
            self._paint_frames(painter, scene, boxes, smooth=scale >= SCALE_SMOOTH, far=False)
            if scale >= SCALE_TEXT:
                self._paint_strips(painter, boxes, scale)
            for box in boxes:
                self._outline_group(painter, int(box), color, 1.6, scale)
            again, ends = again[scene.nested.shown[again]], ends[scene.nested.shown[ends]]
        self._paint_nodes(painter, again, scale)
        self._outline(painter, ends, color, 1.6, scale)

    def paint_edge(self, painter: QPainter, camera: Camera, edge: int, color: QColor) -> None:
        """One edge with the boxes at its ends."""
        scene = self.scene
        ends = scene.layout.edges[edge].astype(np.int64)
        with _SceneSpace(painter, camera):
            painter.setPen(_pen(color, max(2.2, 1.4 / camera.scale)))
            pieces = scene.pieces[scene.pieces_of(np.array([edge], np.int64))]
            painter.drawLines(self._lines.fill(segments(pieces, _steps(max(camera.scale, 0.3)))))
            self._paint_ends(painter, ends, ends, color, camera.scale)

    def paint_cone(
        self,
        painter: QPainter,
        camera: Camera,
        cone: tuple[int, ...],
        window: tuple[float, float, float, float],
        color: QColor,
    ) -> None:
        """Some nodes and the edges among them, above a dimmed graph."""
        scene = self.scene
        near = scene.piece_blocks.touching(window)
        pieces = near[self._pieces_among(cone)[near]]
        seen = among(scene.node_blocks.touching(window), cone)
        with _SceneSpace(painter, camera):
            if isinstance(scene, ModuleScene):
                boxes = np.array(scene.boxes_of(cone), np.int64)
                smooth = camera.scale >= SCALE_SMOOTH
                self._paint_frames(painter, scene, boxes, smooth=smooth, far=False)
                if camera.scale >= SCALE_TEXT:
                    self._paint_strips(painter, boxes, camera.scale)
            self._draw_pieces(painter, pieces, _pen(color, max(1.8, 1.0 / camera.scale)), camera.scale)
            if camera.scale >= SCALE_NODES:
                self._paint_nodes(painter, seen, camera.scale)

    def _pieces_among(self, cone: tuple[int, ...]) -> NDArray[np.bool_]:
        """Which pieces belong to edges among some nodes."""
        if self._cone is None or self._cone[0] is not cone:
            scene = self.scene
            inside, found = np.zeros(len(scene.nodes), bool), np.zeros(len(scene.pieces), bool)
            nodes = np.array(cone, np.int64)
            inside[scene.nested.stand_in[nodes] if isinstance(scene, ModuleScene) else nodes] = True
            ends = scene.layout.edges
            found[scene.piece_uses(np.flatnonzero(inside[ends[:, 0]] & inside[ends[:, 1]]))] = True
            self._cone = (cone, found)
        return self._cone[1]

    def paint_outlines(self, painter: QPainter, camera: Camera, nodes: Indices, color: QColor, width: float) -> None:
        """Borders around some nodes, at least ``width`` view pixels wide."""
        with _SceneSpace(painter, camera):
            self._outline(painter, nodes, color, width, camera.scale)

    def paint_group_outline(self, painter: QPainter, camera: Camera, group: int, color: QColor) -> None:
        """A border around a group's box."""
        with _SceneSpace(painter, camera):
            self._outline_group(painter, group, color, 2.4, camera.scale)

    def paint_again(self, painter: QPainter, camera: Camera, nodes: Indices) -> None:
        """Draws some nodes once more, above a dimmed graph."""
        with _SceneSpace(painter, camera):
            self._paint_nodes(painter, nodes, camera.scale)

    def _outline_group(self, painter: QPainter, group: int, color: QColor, width: float, scale: float) -> None:
        scene = self.scene
        rect = QRectF(*(float(v) for v in scene.group_rect[group]))
        if isinstance(scene, ModuleScene):
            rect = module_boxes.card_rect(scene.boxes[group], rect)
        painter.setBrush(Qt.BrushStyle.NoBrush)
        painter.setPen(_pen(color, max(width, 0.85 * width / scale)))
        painter.drawRoundedRect(rect, _ROUND_GROUP, _ROUND_GROUP)

    def _outline(self, painter: QPainter, nodes: Indices, color: QColor, width: float, scale: float) -> None:
        painter.setBrush(Qt.BrushStyle.NoBrush)
        if len(nodes) > _MOST_OUTLINED:
            painter.setRenderHint(QPainter.RenderHint.Antialiasing, False)
            painter.setPen(_pen(color, 0.0))
            painter.drawRects(self._rects.fill(self.scene.node_rect[nodes]))
            painter.setRenderHint(QPainter.RenderHint.Antialiasing, True)
            return
        painter.setPen(_pen(color, max(width, width * min(max(scale / SCALE_TEXT, 0.45), 1.0) / scale)))
        style = self.scene.layout.node_style
        for node in nodes:
            rect = QRectF(*(float(v) for v in self.scene.node_rect[node])).adjusted(-1.5, -1.5, 1.5, 1.5)
            radius = {NodeStyle.OP: _ROUND_NODE + 1, NodeStyle.EXTERN: 1.0}.get(NodeStyle(style[node]), 0.0)
            radius = radius or rect.height() / 2
            painter.drawRoundedRect(rect, radius, radius)
        if scale >= SCALE_SUBTITLE:
            self._badges_again(painter, nodes[style[nodes] == NodeStyle.EXTERN])

    def _badges_again(self, painter: QPainter, nodes: Indices) -> None:
        """Above the border that was drawn around their nodes."""
        painter.setFont(self.small_text.font)
        inks = self.palette.node_inks(self.scene.node_ink[nodes])
        for node, ink in zip(nodes.tolist(), inks.tolist(), strict=True):
            rect = QRectF(*self.scene.node_rect[node].tolist())
            self._paint_badges(painter, [(node, rect)], self.palette.node(ink))


class _SceneSpace:
    """The painter in scene pixels, antialiased, for the time of a ``with`` block."""

    def __init__(self, painter: QPainter, camera: Camera) -> None:
        self._painter, self._camera = painter, camera

    def __enter__(self) -> None:
        self._painter.save()
        self._painter.setRenderHint(QPainter.RenderHint.Antialiasing, True)
        self._painter.scale(self._camera.scale, self._camera.scale)
        self._painter.translate(-self._camera.x, -self._camera.y)

    def __exit__(self, *_: object) -> None:
        self._painter.restore()


def _steps(scale: float) -> int:
    """Samples per S-curve: as many as can be told apart."""
    return 1 if scale < SCALE_CURVES else 6 if scale < SCALE_SMOOTH else 14 if scale < 1.5 else 24


def _pen(color: QColor, width: float, style: Qt.PenStyle = Qt.PenStyle.SolidLine) -> QPen:
    """A pen; width 0 is one view pixel at any scale."""
    pen = QPen(QBrush(color), width, style, Qt.PenCapStyle.RoundCap)
    pen.setCosmetic(width == 0.0)
    return pen
