"""The tour of the window: six steps over the sample session, each beside what it is about."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from PySide6.QtCore import QEvent, QObject, QPoint, QRect, Qt
from PySide6.QtGui import QKeyEvent, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QApplication, QFrame, QHBoxLayout, QVBoxLayout, QWidget

from views.look.sizes import fitted, px
from views.look.theme import Theme
from views.widgets.basic import label, push_button
from views.window.workspace import Workspace

_WIDTH = 340
_MARGIN = 14


@dataclass(frozen=True)
class Step:
    """What is told, beside which widget, and what is shown before."""

    title: str
    text: str
    widget: Callable[[], QWidget]
    prepare: Callable[[], object] = lambda: None


def steps_of(workspace: Workspace, find: QWidget) -> list[Step]:
    """The six steps over ``workspace``; ``find`` is the search box of the toolbar."""
    panels = workspace.panels

    def show(panel: QWidget) -> Callable[[], object]:
        return lambda: (workspace.reveal(2, panels.rail), panels.setCurrentWidget(panel))

    return [
        Step(
            "The graph",
            "What the model computes, from top to bottom. A coloured box is a fusion group, which is one kernel; a "
            "double frame is a call into a library. Drag, and turn the wheel.",
            lambda: workspace.graph.canvas,
        ),
        Step(
            "What is launched",
            "Groups and library calls in the order of the schedule, or by the time they waste. Choosing one here, in "
            "the graph or in any panel selects it everywhere.",
            lambda: workspace.units,
            lambda: workspace.reveal(0, workspace.units),
        ),
        Step(
            "Why it is so",
            "Why these operations are together and others are not, the shapes, the generated kernel and every stage "
            "below it. Clicking a line lights up what it computes.",
            lambda: workspace.inspector,
            lambda: (
                workspace.reveal(1, workspace.inspector),
                workspace.select_unit(next(iter(workspace.index.units), "") if workspace.index else ""),
            ),
        ),
        Step(
            "The run",
            "CPU time to submit against GPU time, iteration by iteration. Start it, then switch graph replay off and "
            "on: the CPU's curve is why CUDA Graphs exist.",
            lambda: panels,
            show(panels.run),
        ),
        Step(
            "Inside the CUDA Graph",
            "What capture cost and covers, the captured nodes, how each input reaches them, and what to change in a "
            "model before it can be captured whole.",
            lambda: panels,
            show(panels.cuda_graph),
        ),
        Step(
            "Anything at once",
            "Ctrl+K finds any node, kernel, line or command; F1 lists the keys. To see a model of your own, drop its "
            ".py file on the window.",
            lambda: find,
        ),
    ]


class Guide(QWidget):
    """Covers the window without catching the mouse outside its card, so that everything can be tried meanwhile."""

    def __init__(self, window: QWidget, steps: list[Step], theme: Theme) -> None:
        super().__init__(window)
        self._steps = steps
        self._theme = theme
        self._place = 0
        self._followed: list[QWidget] = []  # what a step is about, and all that it lies in
        self._frame = _Frame(self)
        self.card = QFrame(window)
        self.card.setProperty("role", "palette")
        fitted(self, lambda: self.card.setFixedWidth(px(_WIDTH)))
        column = QVBoxLayout(self.card)
        column.setContentsMargins(16, 14, 16, 12)
        column.setSpacing(6)
        self.title = label("", "strong")
        column.addWidget(self.title)
        self.text = label("", wrap=True)
        column.addWidget(self.text)
        row = QHBoxLayout()
        self._count = label("", "muted")
        row.addWidget(self._count)
        row.addStretch()
        self.back = push_button("Back", lambda: self.go(self._place - 1))
        self.next = push_button("Next", lambda: self.go(self._place + 1), "primary")
        row.addWidget(push_button("Leave the tour", self.leave, "link"))
        row.addWidget(self.back)
        row.addWidget(self.next)
        column.addLayout(row)
        self.setAttribute(Qt.WidgetAttribute.WA_TransparentForMouseEvents)
        self.card.installEventFilter(self)
        self.go(0)

    @property
    def place(self) -> int:
        """The number of the step shown, from 0."""
        return self._place

    def go(self, place: int) -> None:
        """Show a step; after the last one the tour is over."""
        if not 0 <= place < len(self._steps):
            self.leave()
            return
        self._place = place
        step = self._steps[place]
        step.prepare()
        self.title.setText(step.title)
        self.text.setText(step.text)
        self._count.setText(f"{place + 1} of {len(self._steps)}")
        self.back.setEnabled(place > 0)
        self.next.setText("Done" if place == len(self._steps) - 1 else "Next")
        self._follow(step.widget())
        self._arrange()
        self.show()
        self.card.show()
        self.raise_()
        self.card.raise_()
        self.next.setFocus()

    def leave(self) -> None:
        """End the tour; the keyboard goes back to the graph."""
        self._follow(None)
        if self.card.isAncestorOf(QApplication.focusWidget() or self):
            self._steps[0].widget().setFocus()
        self.hide()
        self.card.hide()
        self.card.deleteLater()
        self.deleteLater()

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Follow what the step is about, as when a dock comes into sight; Escape leaves, and so does hiding that."""
        if event.type() in (QEvent.Type.Resize, QEvent.Type.Move) and watched in self._followed:
            self._arrange()
        if event.type() == QEvent.Type.Hide and watched in self._followed and not event.spontaneous():
            self.leave()
        if watched is self.card and isinstance(event, QKeyEvent) and event.key() == Qt.Key.Key_Escape:
            if event.type() == QEvent.Type.ShortcutOverride:  # the key is the window's, too
                event.accept()
            elif event.type() == QEvent.Type.KeyPress:
                self.leave()
            return True
        return super().eventFilter(watched, event)

    def _follow(self, widget: QWidget | None) -> None:
        """Hear where this one is, and what it lies in up to the window."""
        for one in self._followed:
            one.removeEventFilter(self)
        self._followed = []
        while widget is not None:
            self._followed.append(widget)
            widget.installEventFilter(self)
            widget = widget.parentWidget() if widget is not self.parentWidget() else None

    def _arrange(self) -> None:
        window = self.parentWidget()
        self.setGeometry(window.rect())
        widget = self._steps[self._place].widget()
        place = QRect(widget.mapTo(window, QPoint(0, 0)), widget.size())
        self._frame.setGeometry(place.adjusted(-3, -3, 3, 3).intersected(window.rect()))
        self._frame.color = self._theme.selection
        self.card.setFixedHeight(self.card.layout().totalHeightForWidth(px(_WIDTH)))
        card = self.card.size()
        right, left = place.right() + _MARGIN, place.left() - _MARGIN - px(_WIDTH)
        if right + px(_WIDTH) <= window.width():
            x, y = right, place.top()
        elif left >= 0:
            x, y = left, place.top()
        else:
            x = min(max(place.center().x() - px(_WIDTH) // 2, _MARGIN), window.width() - px(_WIDTH) - _MARGIN)
            y = place.top() - card.height() - _MARGIN
        y = min(max(y, _MARGIN), window.height() - card.height() - _MARGIN)
        self.card.move(x, y)


class _Frame(QWidget):
    """A line around what a step is about."""

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self.color = self.palette().highlight().color()

    def paintEvent(self, event: QPaintEvent) -> None:
        with QPainter(self) as painter:
            painter.setRenderHint(QPainter.RenderHint.Antialiasing)
            painter.setPen(QPen(self.color, 2.4))
            painter.drawRoundedRect(self.rect().adjusted(2, 2, -2, -2), 8, 8)
