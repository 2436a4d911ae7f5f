"""Colours that tell things apart do so for people with any colour vision, and texts have contrast, in both themes.

Distances are CIE76, in CIELAB under D65, of colours as people with protanopia and deuteranopia see them (the matrices
of Machado, Oliveira and Fernandes, 2009, for full severity). Contrast is WCAG's.
"""

from __future__ import annotations

from itertools import combinations, pairwise

import numpy as np
import pytest
from numpy.typing import NDArray
from PySide6.QtGui import QColor

from app.overlays import LEVELS
from views.canvas.palette import CanvasPalette, category_color, ramp_color
from views.canvas.scene import CATEGORY, EXTERN, GROUPED, INPUT, OUTPUT, PARAMETER, PLAIN, RAMP
from views.look.theme import GROUP_COLORS, Theme, dark, light, mix, selected_row, soft
from views.run.facets import mode_color
from views.run.modes import MODE_TITLES

Vector = NDArray[np.float64]
VISIONS = {
    "normal": np.eye(3),
    "protanopia": np.array(
        [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]]
    ),
    "deuteranopia": np.array(
        [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]]
    ),
}
TO_XYZ = np.array(
    [[0.4124564, 0.3575761, 0.1804375], [0.2126729, 0.7151522, 0.0721750], [0.0193339, 0.1191920, 0.9503041]]
)
WHITE = np.array([0.95047, 1.0, 1.08883])
BOTH = pytest.mark.parametrize("theme", [light(), dark()], ids=["light", "dark"])
SEEN = pytest.mark.parametrize("vision", VISIONS)


def linear(color: QColor) -> Vector:
    """Linear red, green and blue of an sRGB colour."""
    values = np.array([color.redF(), color.greenF(), color.blueF()])
    return np.where(values <= 0.04045, values / 12.92, ((values + 0.055) / 1.055) ** 2.4)


def lab(color: QColor, vision: str) -> Vector:
    """L*, a*, b* of a colour as a vision has it."""
    xyz = TO_XYZ @ np.clip(VISIONS[vision] @ linear(color), 0.0, 1.0) / WHITE
    edge = 6 / 29
    x, y, z = np.where(xyz > edge**3, np.cbrt(xyz), xyz / (3 * edge**2) + 4 / 29)
    return np.array([116 * y - 16, 500 * (x - y), 200 * (y - z)])


def nearest(colors: list[QColor], vision: str) -> float:
    """The distance of the two colours that are most alike."""
    seen = [lab(color, vision) for color in colors]
    return min(float(np.linalg.norm(a - b)) for a, b in combinations(seen, 2))


def contrast(a: QColor, b: QColor) -> float:
    """WCAG's contrast of two colours, 1 to 21."""
    low, high = sorted(float(linear(color) @ TO_XYZ[1]) for color in (a, b))
    return (high + 0.05) / (low + 0.05)


def test_the_measures_are_right() -> None:
    assert lab(QColor("white"), "normal") == pytest.approx([100, 0, 0], abs=0.02)
    assert lab(QColor("red"), "normal") == pytest.approx([53.24, 80.09, 67.20], abs=0.02)
    assert contrast(QColor("black"), QColor("white")) == pytest.approx(21.0)
    assert (
        nearest([QColor("#d00000"), QColor("#4a7a00")], "deuteranopia")
        < 25
        < nearest([QColor("#d00000"), QColor("#4a7a00")], "normal")
    )


@BOTH
@SEEN
def test_groups_and_categories_are_told_apart(theme: Theme, vision: str) -> None:
    assert len(theme.group_colors) == GROUP_COLORS
    assert nearest(list(theme.group_colors), vision) >= 11.5
    assert nearest([category_color(number, theme) for number in range(6)], vision) >= 16
    assert nearest([mode_color(mode, theme) for mode in MODE_TITLES], vision) >= 19
    assert min(nearest([color, theme.extern_border], vision) for color in theme.group_colors) >= 9


@BOTH
@SEEN
def test_a_ramp_is_read_in_its_order(theme: Theme, vision: str) -> None:
    seen = [lab(ramp_color(level, theme), vision) for level in range(LEVELS)]
    lightness = [float(color[0]) for color in seen]
    assert lightness == sorted(lightness, reverse=not theme.is_dark)
    assert min(float(np.linalg.norm(a - b)) for a, b in pairwise(seen)) >= 7


@BOTH
@SEEN
def test_pairs_that_mean_opposites_are_told_apart(theme: Theme, vision: str) -> None:
    assert nearest([theme.cpu_curve, theme.gpu_curve], vision) >= 60
    assert nearest([theme.success, theme.danger], vision) >= 12
    assert nearest([theme.selection, theme.danger], vision) >= 20


@BOTH
def test_texts_have_contrast(theme: Theme) -> None:
    for name in ("text", "muted", "accent", "danger", "warning", "success"):
        for ground in ("window", "surface", "raised"):
            assert contrast(getattr(theme, name), getattr(theme, ground)) >= 4.5, (name, ground)
    assert contrast(theme.accent_text, theme.accent) >= 4.5
    for name in ("keyword", "name", "type", "string", "number", "comment", "decorator", "operator"):
        assert contrast(getattr(theme.syntax, name), theme.surface) >= 4.5, name
    for color in (*theme.group_colors, theme.extern_border, theme.selection, theme.cpu_curve, theme.gpu_curve):
        assert contrast(color, theme.surface) >= 3.0, color.name()


@BOTH
def test_texts_have_contrast_on_grounds_that_are_tinted(theme: Theme) -> None:
    for name in ("text", "muted", "accent", "danger", "warning", "success"):
        assert contrast(getattr(theme, name), selected_row(theme)) >= 4.5, name
    for name in ("accent", "danger", "warning", "success"):  # a chip in its own colour
        assert contrast(getattr(theme, name), mix(theme.surface, getattr(theme, name), 0.13)) >= 4.5, name
    for color in (*theme.group_colors, theme.extern_border, theme.cpu_curve):
        assert contrast(theme.text, soft(color, theme)) >= 4.5, color.name()


@BOTH
def test_texts_in_the_graph_have_contrast(theme: Theme) -> None:
    palette = CanvasPalette(theme)
    overlays = [*(RAMP + level for level in range(LEVELS)), *(CATEGORY + number for number in range(6))]
    for number in (PLAIN, INPUT, PARAMETER, EXTERN, OUTPUT, *(GROUPED + i for i in range(GROUP_COLORS)), *overlays):
        ink = palette.node(number)
        assert contrast(ink.text, ink.fill) >= 4.5, number
    for number in (-1, *range(GROUP_COLORS), *overlays):
        box = palette.group(number)
        assert contrast(box.text, box.strip) >= 4.5, number
