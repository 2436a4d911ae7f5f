"""Small shared widgets: buttons, labels, a switch, a dock's title."""

from __future__ import annotations

from collections.abc import Callable

from PySide6 import QtWidgets
from PySide6.QtCore import QRectF, QSize, Qt
from PySide6.QtGui import QAction, QColor, QKeyEvent, QPainter, QPaintEvent, QResizeEvent
from PySide6.QtWidgets import (
    QAbstractButton,
    QApplication,
    QButtonGroup,
    QComboBox,
    QDockWidget,
    QFrame,
    QHBoxLayout,
    QLabel,
    QPushButton,
    QSizePolicy,
    QToolButton,
    QWidget,
)

from views.look.icons import icon
from views.look.theme import Theme, mix

BY_KEYBOARD = (Qt.FocusReason.TabFocusReason, Qt.FocusReason.BacktabFocusReason, Qt.FocusReason.ShortcutFocusReason)
_BESIDE_CHOICE = 60  # pixels that the frame and the arrow of a box to choose from take at most


def label(text: str = "", role: str = "", *, wrap: bool = False, selectable: bool = False) -> QLabel:
    """A label in one of the stylesheet's roles ("muted", "title", "heading", "chip", ...)."""
    made = QLabel(text)
    made.setTextFormat(Qt.TextFormat.PlainText)
    if role:
        made.setProperty("role", role)
    made.setWordWrap(wrap)
    if role in ("chip", "recorded"):
        made.setSizePolicy(QSizePolicy.Policy.Fixed, QSizePolicy.Policy.Fixed)
    if selectable:
        made.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
    return made


class Paragraph(QLabel):
    """A text on as many lines as it takes, of which a layout with too little room cuts none."""

    def __init__(self, text: str, role: str = "") -> None:
        super().__init__(text)
        self.setTextFormat(Qt.TextFormat.PlainText)
        self.setProperty("role", role)
        self.setWordWrap(True)
        self.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Less width, more height."""
        super().resizeEvent(event)
        self.setMinimumHeight(self.heightForWidth(event.size().width()))


class _PushButton(QPushButton):
    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Enter presses it too, as Space does; Qt knows that only of dialogs."""
        if not _pressed_by_enter(self, event):
            super().keyPressEvent(event)


class _ToolButton(QToolButton):
    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Enter presses it too."""
        if not _pressed_by_enter(self, event):
            super().keyPressEvent(event)


def _pressed_by_enter(button: QAbstractButton, event: QKeyEvent) -> bool:
    """Press ``button`` if the key is Enter; one that is held presses it once."""
    is_enter = event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter)
    if is_enter and not event.isAutoRepeat():
        button.click()
    return is_enter


def push_button(text: str, on_click: Callable[[], object], role: str = "", tip: str = "") -> QPushButton:
    """A push button that calls ``on_click``."""
    made = _PushButton(text)
    made.setAccessibleName(tip or text)
    if role:
        made.setProperty("role", role)
    if tip:
        made.setToolTip(tip)
    if role == "link":
        made.setCursor(Qt.CursorShape.PointingHandCursor)
    made.clicked.connect(lambda: on_click())
    return made


def icon_button(name: str, tip: str, on_click: Callable[[], object], theme: Theme) -> QToolButton:
    """A button that is only an icon; ``tip`` is also its accessible name. ``recolor`` follows a theme change."""
    made = _ToolButton()
    made.setProperty("icon_name", name)
    made.setAccessibleName(tip)
    made.setToolTip(tip)
    made.setAutoRaise(True)
    made.setIcon(icon(name, theme.muted, theme.accent))
    made.clicked.connect(lambda: on_click())
    return made


def tab_comes_by(group: QButtonGroup) -> None:
    """Let Tab stop at the button that is down; arrows walk to the others. Qt does so only after a click."""
    for button in group.buttons():
        down = button is group.checkedButton()
        button.setFocusPolicy(Qt.FocusPolicy.StrongFocus if down else Qt.FocusPolicy.ClickFocus)


def recolor(root: QWidget, theme: Theme) -> None:
    """Redraw the icons of every ``icon_button`` under ``root``."""
    for button in root.findChildren(QToolButton):
        name = button.property("icon_name")
        if name:
            button.setIcon(icon(name, theme.muted, theme.accent))


def add_copy(widget: QWidget, text: Callable[[], str]) -> None:
    """Give a widget whose text cannot be selected a context menu that copies it."""
    copy = QAction("Copy", widget)
    copy.triggered.connect(lambda: QApplication.clipboard().setText(text()))
    widget.addAction(copy)
    widget.setContextMenuPolicy(Qt.ContextMenuPolicy.ActionsContextMenu)


class ElidedLabel(QLabel):
    """One line that gives way where there is no room; the whole text is its tool tip.

    A name loses its middle. A sentence (``is_sentence``) goes on in a second line where there is height for it, and
    loses its end: what is left of it must not say something else.
    """

    def __init__(self, text: str = "", role: str = "", *, is_sentence: bool = False) -> None:
        super().__init__(text)
        self._mode = Qt.TextElideMode.ElideRight if is_sentence else Qt.TextElideMode.ElideMiddle
        self.setTextFormat(Qt.TextFormat.PlainText)
        self.setProperty("role", role)
        self.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Preferred)
        self.setMinimumWidth(40)
        add_copy(self, self.text)

    def paintEvent(self, event: QPaintEvent) -> None:
        """Draw as much as fits."""
        lines = self._lines()
        self.setToolTip("" if " ".join(lines) == self.text() else self.text())
        painter = QPainter(self)
        painter.setPen(self.palette().color(self.foregroundRole()))
        painter.drawText(self.rect(), Qt.AlignmentFlag.AlignVCenter, "\n".join(lines))
        painter.end()

    def _lines(self) -> list[str]:
        """What is drawn, of its whole width."""
        text, metrics = self.text(), self.fontMetrics()
        lines: list[str] = []
        fits = metrics.horizontalAdvance(text) <= self.width()
        if self._mode is Qt.TextElideMode.ElideRight and not fits and self.height() >= 2 * metrics.lineSpacing():
            words = text.split(" ")
            many = next((n for n in range(len(words), 0, -1) if self._holds(" ".join(words[:n]))), 0)
            if many:
                lines, text = [" ".join(words[:many])], " ".join(words[many:])
        return [*lines, metrics.elidedText(text, self._mode, self.width())]

    def _holds(self, text: str) -> bool:
        return self.fontMetrics().horizontalAdvance(text) <= self.width()


class Choice(QComboBox):
    """A box to choose from; what has no room in it ends in an ellipsis, which a style only cuts.

    With ``least`` it gives way to so many pixels.
    """

    def __init__(self, name: str, tip: str = "", *, least: int = 0) -> None:
        super().__init__()
        self._least = least
        self.setAccessibleName(name)
        self.setToolTip(tip)

    def minimumSizeHint(self) -> QSize:
        """Where it may give way its text is cut."""
        hint = super().minimumSizeHint()
        return QSize(min(hint.width(), self._least or hint.width()), hint.height())

    def paintEvent(self, event: QPaintEvent) -> None:
        """As the style does, with a text that fits.

        Where it fits anyhow nothing asks for the style, whose enums would take long to make in the first window.
        """
        if self.fontMetrics().horizontalAdvance(self.currentText()) <= self.width() - _BESIDE_CHOICE:
            super().paintEvent(event)
            return
        style = QtWidgets.QStyle
        with QtWidgets.QStylePainter(self) as painter:
            option = QtWidgets.QStyleOptionComboBox()
            self.initStyleOption(option)
            painter.drawComplexControl(style.ComplexControl.CC_ComboBox, option)
            part = style.SubControl.SC_ComboBoxEditField
            room = self.style().subControlRect(style.ComplexControl.CC_ComboBox, option, part, self).width()
            option.currentText = self.fontMetrics().elidedText(option.currentText, Qt.TextElideMode.ElideMiddle, room)
            painter.drawControl(style.ControlElement.CE_ComboBoxLabel, option)


def line() -> QFrame:
    """A thin horizontal line."""
    made = QFrame()
    made.setProperty("role", "line")
    return made


def as_panel(widget: QWidget) -> None:
    """Let a plain widget be painted on the theme's surface."""
    widget.setProperty("role", "page")
    widget.setAttribute(Qt.WidgetAttribute.WA_StyledBackground)


class Switch(QAbstractButton):
    """An on/off switch with its text beside it."""

    def __init__(self, text: str, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setCheckable(True)
        self.setText(text)
        self.setAccessibleName(text)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setCursor(Qt.CursorShape.PointingHandCursor)
        self.setSizePolicy(QSizePolicy.Policy.Fixed, QSizePolicy.Policy.Fixed)
        self._theme = theme

    def set_theme(self, theme: Theme) -> None:
        """Take the colours of ``theme``."""
        self._theme = theme
        self.update()

    def sizeHint(self) -> QSize:
        """Track plus text."""
        return QSize(46 + 10 + self.fontMetrics().horizontalAdvance(self.text()) + 34, 28)

    def paintEvent(self, event: QPaintEvent) -> None:
        """Paint the track, the knob and the text with its state."""
        theme, on = self._theme, self.isChecked()
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        track = QRectF(1, (self.height() - 22) / 2, 42, 22)
        fill = theme.accent if on else mix(theme.surface, theme.muted, 0.45)
        if not self.isEnabled():
            fill = mix(fill, theme.window, 0.6)
        painter.setPen(theme.text if self.hasFocus() else Qt.PenStyle.NoPen)
        painter.setBrush(fill)
        painter.drawRoundedRect(track, 11, 11)
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(theme.surface if on else QColor("white"))
        painter.drawEllipse(QRectF(track.right() - 20 if on else track.left() + 2, track.top() + 2, 18, 18))
        painter.setPen(theme.text if self.isEnabled() else theme.muted)
        text = self.rect().adjusted(52, 0, 0, 0)
        painter.drawText(text, Qt.AlignmentFlag.AlignVCenter, self.text())
        painter.setPen(theme.muted)  # the accent is for texts that can be clicked
        painter.drawText(text, Qt.AlignmentFlag.AlignVCenter | Qt.AlignmentFlag.AlignRight, "On" if on else "Off")
        painter.end()


class DockTitle(QFrame):
    """A dock's title bar in the app's look: its name, float and close."""

    def __init__(self, dock: QDockWidget, theme: Theme) -> None:
        super().__init__(dock)
        self.setProperty("role", "dock-title")
        self.setAttribute(Qt.WidgetAttribute.WA_StyledBackground)
        row = QHBoxLayout(self)
        row.setContentsMargins(14, 5, 6, 5)
        row.setSpacing(2)
        row.addWidget(label(dock.windowTitle()))
        row.addStretch()
        name = dock.windowTitle()
        row.addWidget(icon_button("float", f"Float {name}", lambda: dock.setFloating(not dock.isFloating()), theme))
        row.addWidget(icon_button("close", f"Hide {name}", dock.close, theme))
        for button in self.findChildren(QToolButton):
            button.setIconSize(QSize(14, 14))
