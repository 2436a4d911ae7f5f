"""One choice out of a few, side by side: closer together where there is less room, and a box where there is little."""

from __future__ import annotations

from PySide6.QtCore import QEvent, QSize, Qt, Signal
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QApplication, QButtonGroup, QFrame, QHBoxLayout, QSizePolicy, QToolButton, QWidget

from views.widgets.basic import Choice, tab_comes_by

_TIGHTER = 18  # pixels of a segment's width, as in the stylesheet


class Segments(QFrame):
    """``choices`` are the texts by their keys; one of them is always chosen."""

    chosen = Signal(str)

    def __init__(self, choices: dict[str, str], name: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setAccessibleName(name)
        self.setProperty("role", "segments")
        self.setSizePolicy(QSizePolicy.Policy.Maximum, QSizePolicy.Policy.Fixed)
        self._choices = choices
        self._shape = "wide"  # "tight", "box"
        outer = QHBoxLayout(self)
        outer.setContentsMargins(0, 0, 0, 0)
        self._bar = QWidget()
        row = QHBoxLayout(self._bar)
        row.setContentsMargins(1, 1, 1, 1)
        row.setSpacing(0)
        self._box = Choice(name)
        self._box.activated.connect(lambda _: self.button(self._box.currentData()).click())
        self._box.hide()
        outer.addWidget(self._bar)
        outer.addWidget(self._box)
        self._group = QButtonGroup(self)
        self._buttons: dict[str, QToolButton] = {}
        for key, text in choices.items():
            button = QToolButton()
            button.setText(text)
            button.setCheckable(True)
            button.setAccessibleName(f"{name}: {text}")
            button.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
            button.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)  # what is spare is everyone's
            button.clicked.connect(lambda _=False, key=key: self.chosen.emit(key))
            self._group.addButton(button)
            row.addWidget(button)
            self._buttons[key] = button
        self._group.idToggled.connect(lambda _id, on: self._toggled() if on else None)
        self._buttons[next(iter(choices))].setChecked(True)

    @property
    def value(self) -> str:
        """The key of the choice."""
        return next(key for key, button in self._buttons.items() if button.isChecked())

    def choose(self, key: str) -> None:
        """Show ``key`` as chosen, without the signal."""
        self._buttons[key].setChecked(True)

    def button(self, key: str) -> QToolButton:
        """The button of one choice; hidden, it cannot be chosen."""
        return self._buttons[key]

    def sizeHint(self) -> QSize:
        """With room around each text."""
        return QSize(self._tight_width + _TIGHTER * len(self._offered), self._bar.sizeHint().height())

    def minimumSizeHint(self) -> QSize:
        """As wide as the box."""
        width = max((self.fontMetrics().horizontalAdvance(self._choices[key]) for key in self._offered), default=0)
        return QSize(min(width + 46, self._tight_width), self._bar.sizeHint().height())

    def resizeEvent(self, event: QResizeEvent) -> None:
        """Take the shape that there is room for."""
        super().resizeEvent(event)
        width = event.size().width()
        self._take("wide" if width >= self.sizeHint().width() else "tight" if width >= self._tight_width else "box")

    @property
    def _offered(self) -> list[str]:
        return [key for key, button in self._buttons.items() if not button.isHidden()]

    @property
    def _tight_width(self) -> int:
        width = self._bar.sizeHint().width()
        return width - _TIGHTER * len(self._offered) if self._shape == "wide" else width

    def _toggled(self) -> None:
        tab_comes_by(self._group)
        self._fill_box()

    def _fill_box(self) -> None:
        self._box.clear()
        for key in self._offered:
            self._box.addItem(self._choices[key], key)
        self._box.setCurrentIndex(self._box.findData(self.value))

    def _take(self, shape: str) -> None:
        if shape == self._shape:
            return
        self._shape = shape
        self._fill_box()
        self.setProperty("role", "boxed" if shape == "box" else "segments")
        self.setProperty("dense", shape != "wide")
        for widget in (self, *self._buttons.values()):
            widget.style().unpolish(widget)
            widget.style().polish(widget)
            QApplication.sendEvent(widget, QEvent(QEvent.Type.StyleChange))  # else it keeps its size in mind
        self._bar.setVisible(shape != "box")
        self._box.setVisible(shape == "box")
        self.updateGeometry()
