"""The one stylesheet, built from theme tokens, and what applies it to the application."""

from __future__ import annotations

import re

from PySide6.QtCore import Qt
from PySide6.QtGui import QColor, QGuiApplication
from PySide6.QtWidgets import QApplication, QWidget

from views.look.resources import load_fonts, resource
from views.look.restyle import restyle
from views.look.theme import Theme, mix, selected_row


def application() -> QApplication:
    """The application, which is there before any window."""
    app = QApplication.instance()
    assert isinstance(app, QApplication)
    return app


def system_is_dark() -> bool:
    """Whether the system asks for dark windows."""
    return QGuiApplication.styleHints().colorScheme() == Qt.ColorScheme.Dark


def focus(widget: QWidget) -> None:
    """Give a widget the keyboard, and select its text where it has one."""
    widget.setFocus(Qt.FocusReason.ShortcutFocusReason)
    select = getattr(widget, "selectAll", None)
    if select is not None:
        select()


def apply_theme(app: QApplication, theme: Theme) -> None:
    """Dress the whole application in ``theme``."""
    load_fonts()
    app.setFont(theme.ui_font())
    app.setPalette(theme.palette())
    restyle(app, stylesheet(theme))


def grounds(theme: Theme) -> dict[str, QColor]:
    """What the stylesheet mixes for texts to stand on, by token; every colour of text is read on all of them."""
    fills = {name: getattr(theme, name) for name in ("danger", "warning", "success", "accent")}
    return {
        "hover": mix(theme.raised, theme.text, 0.07),
        "row_hover": mix(theme.surface, theme.text, 0.04),
        "row_selected": selected_row(theme),
        **{f"{name}_fill": mix(theme.surface, color, 0.13) for name, color in fills.items()},
    }


def stylesheet(theme: Theme) -> str:
    """The stylesheet of ``theme``. A token without a value is a KeyError."""
    t = {
        name: getattr(theme, name).name()
        for name in (
            "window", "surface", "raised", "border", "text", "muted", "accent", "accent_text",
            "danger", "warning", "success", "selection",
        )
    }
    t |= {name: color.name() for name, color in grounds(theme).items()}
    t["pressed"] = mix(theme.raised, theme.text, 0.13).name()
    t["accent_hover"] = mix(theme.accent, theme.text, 0.12).name()
    t["faint"] = mix(theme.muted, theme.surface, 0.3).name()
    t["handle"] = mix(theme.surface, theme.muted, 0.35).name()
    t["handle_hover"] = mix(theme.surface, theme.muted, 0.6).name()
    t["chevron"] = resource("themes", theme.name, "chevron-down.svg").as_posix()
    t["chevron_right"] = resource("themes", theme.name, "chevron-right.svg").as_posix()
    t["clear"] = resource("themes", theme.name, "clear.svg").as_posix()
    t["check"] = resource("themes", theme.name, "check.svg").as_posix()
    sheet = resource("themes", "app.qss").read_text(encoding="utf-8")
    sheet = re.sub(r"([\d.]+)pt\b", lambda match: f"{theme.text_points(float(match[1])):g}pt", sheet)
    boxes = r"\b(height|width): (\d\d+)px"  # of what holds texts; a line is a pixel or two
    sheet = re.sub(boxes, lambda match: f"{match[1]}: {round(int(match[2]) * theme.zoom)}px", sheet)
    return re.sub(r"@(\w+)", lambda match: t[match[1]], sheet)
