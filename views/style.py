"""The one stylesheet, built from theme tokens, and what applies it to the application."""

from __future__ import annotations

from PySide6.QtWidgets import QApplication

from views.resources import load_fonts, resource
from views.theme import Theme, mix


def apply_theme(app: QApplication, theme: Theme) -> None:
    """Dress the whole application in ``theme``."""
    load_fonts()
    if app.style().objectName() != "fusion":
        app.setStyle("Fusion")
    app.setFont(theme.ui_font())
    app.setPalette(theme.palette())
    app.setStyleSheet(stylesheet(theme))


def stylesheet(theme: Theme) -> str:
    """The stylesheet of ``theme``. Property ``role`` on a widget picks among variants."""
    t = {
        name: getattr(theme, name).name()
        for name in (
            "window", "surface", "raised", "border", "text", "muted", "accent", "accent_text",
            "danger", "warning", "success", "selection",
        )
    }
    t["hover"] = mix(theme.raised, theme.text, 0.07).name()
    t["pressed"] = mix(theme.raised, theme.text, 0.13).name()
    t["row_hover"] = mix(theme.surface, theme.text, 0.04).name()
    t["row_selected"] = mix(theme.surface, theme.accent, 0.22).name()
    t["accent_hover"] = mix(theme.accent, theme.text, 0.12).name()
    t["faint"] = mix(theme.muted, theme.surface, 0.45).name()
    t["handle"] = mix(theme.surface, theme.muted, 0.35).name()
    t["handle_hover"] = mix(theme.surface, theme.muted, 0.6).name()
    t["danger_fill"] = mix(theme.surface, theme.danger, 0.13).name()
    t["warning_fill"] = mix(theme.surface, theme.warning, 0.13).name()
    t["success_fill"] = mix(theme.surface, theme.success, 0.13).name()
    t["accent_fill"] = mix(theme.surface, theme.accent, 0.13).name()
    t["chevron"] = resource("themes", theme.name, "chevron-down.svg").as_posix()
    t["chevron_right"] = resource("themes", theme.name, "chevron-right.svg").as_posix()
    t["check"] = resource("themes", theme.name, "check.svg").as_posix()
    text = _SHEET
    for name, value in t.items():
        text = text.replace(f"@{name};", f"{value};").replace(f"@{name} ", f"{value} ").replace(f"@{name})", f"{value})")
    return text


_SHEET = """
QMainWindow, QDialog { background: @window; }
QMainWindow::separator { background: @window; width: 6px; height: 6px; }
QMainWindow::separator:hover { background: @accent_fill; }
QToolTip { background: @raised; color: @text; border: 1px solid @border; padding: 4px 6px; }

QMenuBar { background: @window; border: none; padding: 2px 6px; }
QMenuBar::item { background: transparent; padding: 4px 9px; border-radius: 5px; }
QMenuBar::item:selected { background: @hover; }
QMenu { background: @surface; border: 1px solid @border; padding: 5px; }
QMenu::item { padding: 5px 26px 5px 12px; border-radius: 4px; }
QMenu::item:selected { background: @accent; color: @accent_text; }
QMenu::item:disabled { color: @faint; }
QMenu::separator { height: 1px; background: @border; margin: 5px 8px; }
QMenu::indicator { width: 14px; height: 14px; margin-left: 4px; }

QToolBar { background: @window; border: none; border-bottom: 1px solid @border; padding: 5px 10px; spacing: 8px; }
QToolBar::separator { background: @border; width: 1px; margin: 5px 4px; }
QStatusBar { background: @window; border-top: 1px solid @border; color: @muted; }
QStatusBar::item { border: none; }
QStatusBar QLabel { color: @muted; padding: 2px 8px; }

QPushButton, QToolButton[role="button"] {
  background: @raised; border: 1px solid @border; border-radius: 6px; padding: 5px 12px; min-height: 18px;
}
QPushButton:hover, QToolButton[role="button"]:hover { background: @hover; }
QPushButton:pressed, QToolButton[role="button"]:pressed { background: @pressed; }
QPushButton:disabled { color: @faint; background: @window; }
QPushButton:focus, QToolButton[role="button"]:focus { border-color: @accent; }
QPushButton[role="primary"] { background: @accent; color: @accent_text; border-color: @accent; font-weight: 600; }
QPushButton[role="primary"]:hover { background: @accent_hover; border-color: @accent_hover; }
QPushButton[role="primary"]:disabled { background: @raised; color: @faint; border-color: @border; }
QPushButton[role="primary"]:focus { border-color: @text; }
QPushButton[role="link"] { background: transparent; border: none; color: @accent; padding: 2px 2px; text-align: left; }
QPushButton[role="link"]:hover { text-decoration: underline; }
QPushButton[role="link"]:focus { text-decoration: underline; }
QToolButton { background: transparent; border: 1px solid transparent; border-radius: 6px; padding: 4px; }
QToolButton:hover { background: @hover; }
QToolButton:pressed { background: @pressed; }
QToolButton:checked { background: @accent_fill; color: @accent; }
QToolButton:focus { border-color: @accent; }
QToolButton:disabled { color: @faint; }
QToolButton::menu-indicator { image: none; }

QFrame[role="segments"] { background: @window; border: 1px solid @border; border-radius: 7px; }
QFrame[role="segments"] QToolButton { padding: 4px 14px; border-radius: 5px; color: @muted; margin: 1px; }
QFrame[role="segments"] QToolButton:hover { color: @text; }
QFrame[role="segments"] QToolButton:checked { background: @surface; color: @text; border: 1px solid @border; font-weight: 600; }
QFrame[role="segments"] QToolButton:focus { border: 1px solid @accent; }

QLineEdit, QComboBox, QSpinBox {
  background: @surface; border: 1px solid @border; border-radius: 6px; padding: 4px 8px; min-height: 20px;
  selection-background-color: @accent; selection-color: @accent_text;
}
QLineEdit:focus, QComboBox:focus, QSpinBox:focus { border-color: @accent; }
QComboBox:hover { background: @hover; }
QComboBox:disabled, QLineEdit:disabled { color: @faint; background: @window; }
QComboBox::drop-down { border: none; width: 22px; }
QComboBox::down-arrow { image: url("@chevron"); width: 12px; height: 12px; }
QComboBox QAbstractItemView {
  background: @surface; border: 1px solid @border; padding: 4px; outline: none;
  selection-background-color: @accent; selection-color: @accent_text;
}
QComboBox QAbstractItemView::item { min-height: 24px; }
QCheckBox { spacing: 7px; }
QCheckBox::indicator { width: 15px; height: 15px; border: 1px solid @handle_hover; border-radius: 4px; background: @surface; }
QCheckBox::indicator:hover { border-color: @accent; }
QCheckBox::indicator:checked { background: @accent; border-color: @accent; image: url("@check"); }
QCheckBox:focus { color: @accent; }

QDockWidget > QWidget { background: @surface; }
QWidget[role="dock-title"] { background: @surface; border-bottom: 1px solid @border; }
QWidget[role="dock-title"] QLabel { color: @text; font-weight: 600; }
QWidget[role="dock-title"] QToolButton { padding: 2px; }

QTabWidget::pane { border: none; border-top: 1px solid @border; background: @surface; }
QTabWidget > QWidget > QWidget { background: @surface; }
QTabBar { background: transparent; qproperty-drawBase: 0; }
QTabBar::tab { background: transparent; color: @muted; padding: 7px 12px; border: none; border-bottom: 2px solid transparent; }
QTabBar::tab:hover { color: @text; }
QTabBar::tab:selected { color: @text; border-bottom: 2px solid @accent; }
QTabBar::tab:focus { color: @accent; }
QTabBar::tab:disabled { color: @faint; }

QHeaderView { background: @surface; }
QHeaderView::section {
  background: @surface; color: @muted; border: none; border-bottom: 1px solid @border; padding: 5px 8px;
}
QHeaderView::section:hover { color: @text; }
QTableView, QListView, QTreeView {
  background: @surface; alternate-background-color: @surface; border: none; outline: none; gridline-color: transparent;
  selection-background-color: @row_selected; selection-color: @text;
}
QTableView::item, QListView::item, QTreeView::item { padding: 4px 8px; border: none; }
QTableView::item:hover, QListView::item:hover, QTreeView::item:hover { background: @row_hover; }
QTableView::item:selected, QListView::item:selected, QTreeView::item:selected { background: @row_selected; color: @text; }

QPlainTextEdit, QTextEdit { background: @surface; border: none; selection-background-color: @accent; selection-color: @accent_text; }
QScrollArea { background: transparent; border: none; }
QScrollArea > QWidget > QWidget[role="page"] { background: @surface; }
QScrollBar:vertical { background: transparent; width: 11px; margin: 2px; }
QScrollBar:horizontal { background: transparent; height: 11px; margin: 2px; }
QScrollBar::handle { background: @handle; border-radius: 3px; }
QScrollBar::handle:vertical { min-height: 28px; }
QScrollBar::handle:horizontal { min-width: 28px; }
QScrollBar::handle:hover { background: @handle_hover; }
QScrollBar::add-line, QScrollBar::sub-line { width: 0; height: 0; }
QScrollBar::add-page, QScrollBar::sub-page { background: transparent; }
QAbstractScrollArea::corner { background: transparent; }
QSplitter::handle { background: @border; }
QSplitter::handle:horizontal { width: 1px; }
QSplitter::handle:vertical { height: 1px; }
QProgressBar { background: @raised; border: none; border-radius: 3px; min-height: 6px; max-height: 6px; }
QProgressBar::chunk { background: @accent; border-radius: 3px; }

QLabel[role="muted"] { color: @muted; }
QLabel[role="title"] { font-size: 15pt; font-weight: 600; }
QLabel[role="hero"] { font-size: 21pt; font-weight: 600; }
QLabel[role="heading"] { color: @muted; font-weight: 600; }
QLabel[role="strong"] { font-weight: 600; }
QLabel[role="danger"] { color: @danger; }
QLabel[role="chip"] { background: @raised; border: 1px solid @border; border-radius: 8px; padding: 1px 7px; color: @muted; }
QLabel[role="recorded"] { background: @warning_fill; border: 1px solid @warning; border-radius: 9px; padding: 2px 9px; color: @warning; font-weight: 600; }
QFrame[role="card"] { background: @surface; border: 1px solid @border; border-radius: 9px; }
QFrame[role="line"] { background: @border; max-height: 1px; min-height: 1px; border: none; }
QFrame[role="panel"] { background: @surface; border: none; }

QFrame[role="message"] { border-radius: 7px; border: 1px solid @border; background: @surface; }
QFrame[role="message"][level="error"] { background: @danger_fill; border-color: @danger; }
QFrame[role="message"][level="warning"] { background: @warning_fill; border-color: @warning; }
QFrame[role="message"][level="info"] { background: @accent_fill; border-color: @accent; }
QFrame[role="message"][level="success"] { background: @success_fill; border-color: @success; }
"""
