"""Colours of the canvas, mixed from the theme's tokens once per theme."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from PySide6.QtGui import QColor

from app.overlays import LEVELS
from views.canvas.scene import CATEGORY, EXTERN, GROUPED, INPUT, OUTPUT, PARAMETER, PLAIN, RAMP
from views.look.contrast import legible
from views.look.theme import Theme, mix


@dataclass(frozen=True)
class Ink:
    """How one class of boxes is drawn, ``text`` and ``muted`` on ``fill``, ``badge`` on ``border``.

    ``far`` is the plain fill where boxes are only a few pixels.
    """

    fill: QColor
    border: QColor
    text: QColor
    muted: QColor
    far: QColor
    badge: QColor


@dataclass(frozen=True)
class GroupInk:
    """How one colour of group boxes is drawn, ``text`` and ``muted`` on ``strip``."""

    fill: QColor
    border: QColor
    strip: QColor
    text: QColor
    muted: QColor
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
        self._of_overlay: dict[int, Ink] = {}  # mixed when they are first drawn, then kept
        self._groups_of_overlay: dict[int, GroupInk] = {}
        for color in theme.group_colors:
            self._groups.append(
                self._group_ink(
                    fill=mix(base, color, 0.10 if dark else 0.075),
                    border=mix(base, color, 0.55 if dark else 0.5),
                    strip=mix(base, color, 0.24 if dark else 0.18),
                    text=mix(color, theme.text, 0.45),
                    swatch=color,
                    far=mix(base, color, 0.34 if dark else 0.3),
                )
            )
            self._nodes.append(
                self._ink(
                    fill=mix(base, color, 0.2) if dark else mix(base, color, 0.02),
                    border=mix(base, color, 0.7 if dark else 0.62),
                    muted=mix(theme.muted, color, 0.15),
                    far=mix(base, color, 0.75),
                )
            )
        self._fixed = {
            PLAIN: self._ink(base, mix(theme.border, theme.muted, 0.3), mix(base, theme.muted, 0.4)),
            INPUT: self._ink(
                mix(base, theme.accent, 0.12), mix(base, theme.accent, 0.6), mix(base, theme.accent, 0.55),
                text=mix(theme.accent, theme.text, 0.35),
            ),
            PARAMETER: self._ink(
                mix(theme.window, theme.muted, 0.06), mix(theme.border, theme.muted, 0.2),
                mix(theme.window, theme.muted, 0.28), text=theme.muted,
            ),
            EXTERN: self._ink(
                theme.extern_fill, theme.extern_border, mix(theme.extern_fill, theme.extern_border, 0.75)
            ),
            OUTPUT: self._ink(
                mix(base, theme.success, 0.12), mix(base, theme.success, 0.7), mix(base, theme.success, 0.6),
                text=mix(theme.success, theme.text, 0.3),
            ),
        }  # fmt: skip
        self.extern_box = self._group_ink(
            fill=mix(base, theme.extern_fill, 0.6),
            border=theme.extern_border,
            strip=theme.extern_fill,
            swatch=theme.extern_border,
            far=mix(theme.extern_fill, theme.extern_border, 0.3),
        )
        self.plain_box = self._group_ink(
            fill=mix(base, theme.window, 0.5),
            border=mix(theme.border, theme.muted, 0.3),
            strip=mix(base, theme.muted, 0.12),
            swatch=theme.muted,
            far=mix(base, theme.muted, 0.25),
        )
        self.stub_text = theme.muted
        self.stub_border = mix(theme.border, theme.muted, 0.25)

    def node(self, node_class: int) -> Ink:
        """The ink of a class of nodes, or of an overlay's level or category."""
        if node_class >= RAMP:
            if node_class not in self._of_overlay:
                self._of_overlay[node_class] = self._overlay_ink(node_class)
            return self._of_overlay[node_class]
        if node_class >= GROUPED:
            return self._nodes[(node_class - GROUPED) % len(self._nodes)]
        return self._fixed[node_class]

    def group(self, color: int) -> GroupInk:
        """The ink of a group's colour number; -1 is a box of extern nodes."""
        if color >= RAMP:
            if color not in self._groups_of_overlay:
                self._groups_of_overlay[color] = self._overlay_group(color)
            return self._groups_of_overlay[color]
        return self._groups[color % len(self._groups)] if color >= 0 else self.extern_box

    def group_inks(self, colors: NDArray[np.int32]) -> NDArray[np.int32]:
        """Groups' colour numbers with one number for each ink, so that what looks alike is drawn at once."""
        return np.where((colors >= 0) & (colors < RAMP), colors % len(self._groups), colors)

    def node_inks(self, classes: NDArray[np.int32]) -> NDArray[np.int32]:
        """The same for classes of nodes."""
        grouped = (classes >= GROUPED) & (classes < RAMP)
        return np.where(grouped, GROUPED + (classes - GROUPED) % len(self._nodes), classes)

    def _ink(
        self, fill: QColor, border: QColor, far: QColor, text: QColor | None = None, muted: QColor | None = None
    ) -> Ink:
        """With texts in the theme's colours where no others are given, as strong as it takes to read them."""
        theme = self.theme
        text, muted = legible(text or theme.text, fill), legible(muted or theme.muted, fill)
        return Ink(fill, border, text, muted, far, legible(theme.surface, border))

    def _group_ink(
        self, fill: QColor, border: QColor, strip: QColor, swatch: QColor, far: QColor, text: QColor | None = None
    ) -> GroupInk:
        theme = self.theme
        text, muted = legible(text or theme.text, strip), legible(theme.muted, strip)
        return GroupInk(fill, border, strip, text, muted, swatch, far)

    def _overlay_color(self, number: int) -> QColor:
        is_category = number >= CATEGORY
        return category_color(number - CATEGORY, self.theme) if is_category else ramp_color(number - RAMP, self.theme)

    def _overlay_ink(self, number: int) -> Ink:
        theme, color = self.theme, self._overlay_color(number)
        base = theme.surface
        muted = mix(theme.text, color, 0.2)
        return self._ink(mix(base, color, 0.5), mix(color, theme.text, 0.25), color, muted=muted)

    def _overlay_group(self, number: int) -> GroupInk:
        theme, color = self.theme, self._overlay_color(number)
        base = theme.surface
        border = mix(color, theme.text, 0.2)
        return self._group_ink(mix(base, color, 0.22), border, mix(base, color, 0.5), color, color)


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
