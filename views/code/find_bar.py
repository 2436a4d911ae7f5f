"""The small bar over a code view that asks what to find, or for a line to go to."""

from __future__ import annotations

from PySide6.QtCore import QEvent, Qt, Signal
from PySide6.QtGui import QKeyEvent
from PySide6.QtWidgets import QFrame, QHBoxLayout, QLineEdit, QWidget

from views.look.sizes import fitted, px
from views.look.theme import Theme
from views.widgets.basic import icon_button, label, recolor

_WIDTH, _LEAST_WIDTH = 170, 60
_TOLD = 70  # pixels of "no match"
_NONE, _SHIFT = Qt.KeyboardModifier.NoModifier, Qt.KeyboardModifier.ShiftModifier
_STEPS = {
    (Qt.Key.Key_Return, _NONE): 1, (Qt.Key.Key_Enter, _NONE): 1, (Qt.Key.Key_F3, _NONE): 1, (Qt.Key.Key_Down, _NONE): 1,
    (Qt.Key.Key_Return, _SHIFT): -1, (Qt.Key.Key_Enter, _SHIFT): -1, (Qt.Key.Key_F3, _SHIFT): -1,
    (Qt.Key.Key_Up, _NONE): -1,
}  # fmt: skip


class FindBar(QFrame):
    """Asks for a text ("find") or a line's number ("line"). Enter goes on, Shift+Enter back, Esc closes."""

    typed = Signal(str)
    stepped = Signal(int)  # 1 on, -1 back
    closed = Signal()

    def __init__(self, theme: Theme, parent: QWidget) -> None:
        super().__init__(parent)
        self.asks_for_line = False
        self.setProperty("role", "findbar")
        row = QHBoxLayout(self)
        row.setContentsMargins(6, 4, 4, 4)
        row.setSpacing(2)
        self.edit = _Edit(self)
        self.edit.setMinimumWidth(_LEAST_WIDTH)
        self.edit.setMaximumWidth(_WIDTH)
        self.edit.textChanged.connect(self.typed)
        row.addWidget(self.edit)
        self._told = label("", "muted")
        fitted(self, lambda: self._told.setMinimumWidth(px(_TOLD)))
        self._told.setAlignment(Qt.AlignmentFlag.AlignCenter)
        row.addWidget(self._told)
        self._steps = [
            icon_button("chevron-up", "Match before (Shift+F3)", lambda: self.stepped.emit(-1), theme),
            icon_button("chevron-down", "Next match (F3)", lambda: self.stepped.emit(1), theme),
        ]
        close = icon_button("close", "Close (Esc)", self.closed.emit, theme)
        for button in (*self._steps, close):
            button.setFocusPolicy(Qt.FocusPolicy.NoFocus)  # the keyboard has Enter and Esc
            row.addWidget(button)
        self.hide()

    def set_theme(self, theme: Theme) -> None:
        """Other colours."""
        recolor(self, theme)

    def ask(self, for_line: bool, text: str, hint: str) -> None:
        """Appear, with ``text`` to be typed over."""
        self.asks_for_line = for_line
        for button in self._steps:
            button.setVisible(not for_line)
        name = "Go to line" if for_line else "Find in the text"
        self.edit.setAccessibleName(name)
        self.edit.setPlaceholderText(hint)
        self.show()
        self.edit.setFocus(Qt.FocusReason.ShortcutFocusReason)
        changed = text != self.edit.text()
        self.edit.setText(text)
        self.edit.selectAll()
        if not changed:
            self.typed.emit(text)

    @property
    def told(self) -> str:
        """What it says of the matches."""
        return self._told.text()

    def tell(self, text: str) -> None:
        """Say how many there are."""
        self._told.setText(text)


class _Edit(QLineEdit):
    def __init__(self, bar: FindBar) -> None:
        super().__init__(bar)
        self._bar = bar

    def event(self, event: QEvent) -> bool:
        """These keys are the bar's, not the window's."""
        if event.type() == QEvent.Type.ShortcutOverride and isinstance(event, QKeyEvent) and _is_ours(event):
            event.accept()
            return True
        return super().event(event)

    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() == Qt.Key.Key_Escape:
            self._bar.closed.emit()
        elif _is_ours(event):
            self._bar.stepped.emit(_STEPS[Qt.Key(event.key()), _plain(event)])
        else:
            super().keyPressEvent(event)


def _is_ours(event: QKeyEvent) -> bool:
    return event.key() == Qt.Key.Key_Escape or (Qt.Key(event.key()), _plain(event)) in _STEPS


def _plain(event: QKeyEvent) -> Qt.KeyboardModifier:
    return event.modifiers() & ~Qt.KeyboardModifier.KeypadModifier
