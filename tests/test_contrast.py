"""Every text is read on its ground, in both themes, by WCAG's ratio."""

from __future__ import annotations

from dataclasses import fields

import numpy as np
import pytest
from PySide6.QtGui import QColor

from app.overlays import LEVELS
from views.canvas.palette import CanvasPalette
from views.canvas.scene import CATEGORY, EXTERN, GROUPED, INPUT, OUTPUT, PARAMETER, PLAIN, RAMP
from views.look.contrast import LEAST, contrast, legible
from views.look.style import grounds
from views.look.theme import GROUP_COLORS, Theme, dark, light, mix

_TEXTS = ("text", "muted", "accent", "danger", "warning", "success")
_COLORED = [*range(RAMP, RAMP + LEVELS), *range(CATEGORY, CATEGORY + GROUP_COLORS)]

both_themes = pytest.mark.parametrize("theme", [light(), dark()], ids=lambda theme: theme.name)


def test_the_ratio_is_that_of_the_standard() -> None:
    assert contrast(QColor("black"), QColor("white")) == pytest.approx(21.0)
    assert contrast(QColor("#777777"), QColor("white")) == pytest.approx(4.48, abs=0.01)
    assert contrast(QColor("white"), QColor("white")) == 1.0


def test_a_colour_that_is_read_stays_and_another_goes_just_as_far_as_it_must() -> None:
    assert legible(QColor("#1a1e27"), QColor("white")) == QColor("#1a1e27")
    moved = legible(QColor("#999999"), QColor("white"))
    assert LEAST <= contrast(moved, QColor("white")) < LEAST + 1
    assert contrast(legible(QColor("#808080"), QColor("#808080")), QColor("#808080")) >= LEAST


@both_themes
def test_every_colour_of_text_is_read_on_every_ground(theme: Theme) -> None:
    surfaces = {"window": theme.window, "surface": theme.surface, "raised": theme.raised, **grounds(theme)}
    for text in _TEXTS:
        for name, ground in surfaces.items():
            assert contrast(getattr(theme, text), ground) >= LEAST, f"{text} on {name}"
    assert contrast(theme.accent_text, theme.accent) >= LEAST


@both_themes
def test_code_is_read_also_where_a_line_is_marked_or_a_text_selected(theme: Theme) -> None:
    for field in fields(theme.syntax):
        color = getattr(theme.syntax, field.name)
        for ground in (theme.surface, mix(theme.surface, theme.selection, 0.13), grounds(theme)["accent_fill"]):
            assert contrast(color, ground) >= LEAST, field.name


@both_themes
def test_every_text_of_the_canvas_is_read(theme: Theme) -> None:
    palette = CanvasPalette(theme)
    plain = (PLAIN, INPUT, PARAMETER, EXTERN, OUTPUT)
    for number in (*plain, *range(GROUPED, GROUPED + GROUP_COLORS), *_COLORED):
        ink = palette.node(number)
        assert contrast(ink.text, ink.fill) >= LEAST, number
        assert contrast(ink.muted, ink.fill) >= LEAST, number
        assert contrast(ink.badge, ink.border) >= LEAST, number
    for number in (-1, *range(GROUP_COLORS), *_COLORED):
        box = palette.group(number)
        assert contrast(box.text, box.strip) >= LEAST, number
        assert contrast(box.muted, box.strip) >= LEAST, number
    assert contrast(palette.stub_text, palette.background) >= LEAST


@both_themes
def test_colours_of_an_overlay_are_mixed_once(theme: Theme) -> None:
    palette = CanvasPalette(theme)
    assert palette.node(RAMP + 1) is palette.node(RAMP + 1)
    assert palette.group(RAMP + 1) is palette.group(RAMP + 1)


@both_themes
def test_groups_that_look_alike_are_drawn_at_once(theme: Theme) -> None:
    palette = CanvasPalette(theme)
    colors = np.array([-1, 0, 1, GROUP_COLORS, GROUP_COLORS + 1, RAMP + 1, CATEGORY], np.int32)
    numbers = palette.group_inks(colors)
    assert [palette.group(int(number)) for number in numbers] == [palette.group(int(color)) for color in colors]
    assert numbers[1] == numbers[3]
    assert numbers[2] == numbers[4]
    assert len(set(numbers.tolist())) == 5
    classes = np.array([PLAIN, EXTERN, GROUPED, GROUPED + GROUP_COLORS, GROUPED + 1, RAMP, CATEGORY + 1], np.int32)
    numbers = palette.node_inks(classes)
    assert [palette.node(int(number)) for number in numbers] == [palette.node(int(kind)) for kind in classes]
    assert len(set(numbers.tolist())) == 6
