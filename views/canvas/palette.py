"""Colours of the canvas, mixed from the theme's tokens once per theme."""

from __future__ import annotations

from dataclasses import dataclass

from PySide6.QtGui import QColor

from app.overlays import LEVELS
from views.canvas.scene import CATEGORY, EXTERN, GROUPED, INPUT, OUTPUT, PARAMETER, PLAIN, RAMP
from views.look.theme import Theme, mix


@dataclass(frozen=True)
class Ink:
    """How one class of boxes is drawn. ``far`` is the plain fill where boxes are only a few pixels."""

    fill: QColor
    border: QColor
    text: QColor
    muted: QColor
    far: QColor


@dataclass(frozen=True)
class GroupInk:
    """How one colour of group boxes is drawn."""

    fill: QColor
    border: QColor
    strip: QColor
    text: QColor
    swatch: QColor
    far: QColor


class CanvasPalette:
    """Every colour that the canvas uses."""

    def __init__(self, theme: Theme) -> None:
        self.theme = theme
        dark = theme.is_dark
        base = theme.surface
        self.background = theme.window
        self.edge = theme.edge
        self.edge_far = mix(theme.edge, theme.window, 0.35)
        self.highlight = theme.edge_highlight
        self.selection = theme.selection
        self.match = theme.warning
        self.dim = QColor(theme.window)
        self.dim.setAlphaF(0.66)
        self._groups: list[GroupInk] = []
        self._nodes: list[Ink] = []
        for color in theme.group_colors:
            deep = mix(color, theme.text, 0.45)
            self._groups.append(
                GroupInk(
                    fill=mix(base, color, 0.10 if dark else 0.075),
                    border=mix(base, color, 0.55 if dark else 0.5),
                    strip=mix(base, color, 0.24 if dark else 0.18),
                    text=deep,
                    swatch=color,
                    far=mix(base, color, 0.34 if dark else 0.3),
                )
            )
            self._nodes.append(
                Ink(
                    fill=mix(base, color, 0.2) if dark else mix(base, color, 0.02),
                    border=mix(base, color, 0.7 if dark else 0.62),
                    text=theme.text,
                    muted=mix(theme.muted, color, 0.15),
                    far=mix(base, color, 0.75),
                )
            )
        self._fixed = {
            PLAIN: Ink(base, mix(theme.border, theme.muted, 0.3), theme.text, theme.muted, mix(base, theme.muted, 0.4)),
            INPUT: Ink(
                mix(base, theme.accent, 0.12), mix(base, theme.accent, 0.6), mix(theme.accent, theme.text, 0.35),
                theme.muted, mix(base, theme.accent, 0.55),
            ),
            PARAMETER: Ink(
                mix(theme.window, theme.muted, 0.06), mix(theme.border, theme.muted, 0.2), theme.muted,
                theme.muted, mix(theme.window, theme.muted, 0.28),
            ),
            EXTERN: Ink(
                theme.extern_fill, theme.extern_border, theme.text, theme.muted,
                mix(theme.extern_fill, theme.extern_border, 0.75),
            ),
            OUTPUT: Ink(
                mix(base, theme.success, 0.12), mix(base, theme.success, 0.7), mix(theme.success, theme.text, 0.3),
                theme.muted, mix(base, theme.success, 0.6),
            ),
        }  # fmt: skip
        self.extern_box = GroupInk(
            fill=mix(base, theme.extern_fill, 0.6),
            border=theme.extern_border,
            strip=theme.extern_fill,
            text=theme.text,
            swatch=theme.extern_border,
            far=mix(theme.extern_fill, theme.extern_border, 0.3),
        )
        self.plain_box = GroupInk(
            fill=mix(base, theme.window, 0.5),
            border=mix(theme.border, theme.muted, 0.3),
            strip=mix(base, theme.muted, 0.12),
            text=theme.text,
            swatch=theme.muted,
            far=mix(base, theme.muted, 0.25),
        )
        self.stub_text = mix(theme.muted, base, 0.1)
        self.stub_border = mix(theme.border, theme.muted, 0.25)

    def node(self, node_class: int) -> Ink:
        """The ink of a class of nodes, or of an overlay's level or category."""
        if node_class >= RAMP:
            return self._overlay_ink(node_class)
        if node_class >= GROUPED:
            return self._nodes[(node_class - GROUPED) % len(self._nodes)]
        return self._fixed[node_class]

    def group(self, color: int) -> GroupInk:
        """The ink of a group's colour number; -1 is a box of extern nodes."""
        if color >= RAMP:
            return self._overlay_group(color)
        return self._groups[color % len(self._groups)] if color >= 0 else self.extern_box

    def _overlay_color(self, number: int) -> QColor:
        is_category = number >= CATEGORY
        return category_color(number - CATEGORY, self.theme) if is_category else ramp_color(number - RAMP, self.theme)

    def _overlay_ink(self, number: int) -> Ink:
        theme, color = self.theme, self._overlay_color(number)
        base = theme.surface
        return Ink(mix(base, color, 0.5), mix(color, theme.text, 0.25), theme.text, mix(theme.text, color, 0.2), color)

    def _overlay_group(self, number: int) -> GroupInk:
        theme, color = self.theme, self._overlay_color(number)
        base = theme.surface
        strip = mix(base, color, 0.5)
        return GroupInk(mix(base, color, 0.22), mix(color, theme.text, 0.2), strip, theme.text, color, color)


def ramp_color(level: int, theme: Theme) -> QColor:
    """A level of a ramp that gets steadily stronger, so that people with any colour vision read it in its order."""
    share = level / (LEVELS - 1)
    cool = mix(theme.surface, theme.cpu_curve, 0.12)
    warm = mix(theme.surface, theme.cpu_curve, 0.72)
    hot = mix(theme.danger, theme.text, 0.25)
    return mix(cool, warm, share / 0.6) if share < 0.6 else mix(warm, hot, (share - 0.6) / 0.4)


def category_color(number: int, theme: Theme) -> QColor:
    """The colour of a category."""
    return theme.group_colors[number % len(theme.group_colors)]
