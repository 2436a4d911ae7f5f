"""How well a colour is read on another one, by the measure of WCAG 2: a ratio from 1 (not at all) to 21."""

from __future__ import annotations

from PySide6.QtGui import QColor

from views.look.theme import mix

LEAST = 4.5  # of texts, as WCAG's level AA has it
_STEPS = 20


def contrast(a: QColor, b: QColor) -> float:
    """The ratio of two opaque colours, the same both ways."""
    return _ratio(_luminance(a), _luminance(b))


def legible(color: QColor, ground: QColor) -> QColor:
    """``color``, or one as near to it as can be read on ``ground``."""
    behind = _luminance(ground)
    if _ratio(_luminance(color), behind) >= LEAST:
        return color
    away = QColor("black") if _ratio(0.0, behind) > _ratio(1.0, behind) else QColor("white")
    tried = (mix(color, away, step / _STEPS) for step in range(1, _STEPS + 1))
    return next((one for one in tried if _ratio(_luminance(one), behind) >= LEAST), away)


def _ratio(a: float, b: float) -> float:
    """Of two luminances."""
    return (max(a, b) + 0.05) / (min(a, b) + 0.05)


def _luminance(color: QColor) -> float:
    """Relative luminance, 0..1."""
    parts = (color.redF(), color.greenF(), color.blueF())
    red, green, blue = (part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue
