"""The command palette: one line that finds any node, kernel, op, source line, panel or command."""

from __future__ import annotations

from typing import Any

from PySide6.QtCore import (
    QAbstractListModel,
    QEvent,
    QModelIndex,
    QObject,
    QPersistentModelIndex,
    QRect,
    QRectF,
    QSize,
    Qt,
    Signal,
)
from PySide6.QtGui import QFont, QKeyEvent, QPainter
from PySide6.QtWidgets import (
    QApplication,
    QFrame,
    QListView,
    QStyle,
    QStyledItemDelegate,
    QStyleOptionViewItem,
    QVBoxLayout,
    QWidget,
)

from app.finder import Entry, find
from views.background.jobs import Job
from views.look.sizes import px
from views.look.theme import Theme, mix
from views.widgets.basic import label
from views.widgets.text_line import TextLine

_WIDTH, _ROW, _ROWS = 640, 40, 9
_AT_ONCE = 3000  # entries that are searched in a fraction of a frame
_HINT = "Find a node, kernel, op, module, source line or command"


class _Results(QAbstractListModel):
    def __init__(self, parent: QObject) -> None:
        super().__init__(parent)
        self.entries: list[Entry] = []

    def set_entries(self, entries: list[Entry]) -> None:
        self.beginResetModel()
        self.entries = entries
        self.endResetModel()

    def rowCount(self, parent: QModelIndex | QPersistentModelIndex | None = None) -> int:
        return 0 if parent is not None and parent.isValid() else len(self.entries)

    def data(self, index: QModelIndex | QPersistentModelIndex, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        if not index.isValid():
            return None
        entry = self.entries[index.row()]
        if role == Qt.ItemDataRole.DisplayRole:
            return entry.title
        if role == Qt.ItemDataRole.AccessibleTextRole:
            return f"{entry.kind}: {entry.title}, {entry.detail}"
        return None


class _Row(QStyledItemDelegate):
    """A title, what it is below it, its kind on the right."""

    def __init__(self, theme: Theme, parent: QObject) -> None:
        super().__init__(parent)
        self.theme = theme

    def sizeHint(self, option: QStyleOptionViewItem, index: QModelIndex | QPersistentModelIndex) -> QSize:
        return QSize(px(_WIDTH), px(_ROW))

    def paint(
        self, painter: QPainter, option: QStyleOptionViewItem, index: QModelIndex | QPersistentModelIndex
    ) -> None:
        theme, model = self.theme, index.model()
        if not isinstance(model, _Results):
            return
        entry = model.entries[index.row()]
        box = QRect(option.rect)
        painter.save()
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        if option.state & QStyle.StateFlag.State_Selected:
            painter.setPen(Qt.PenStyle.NoPen)
            painter.setBrush(mix(theme.surface, theme.accent, 0.2))
            painter.drawRoundedRect(QRectF(box.adjusted(4, 1, -4, -1)), 6, 6)
        kind_font = theme.ui_font(8.5)
        painter.setFont(kind_font)
        painter.setPen(theme.muted)
        kind = QRect(box.right() - px(130), box.top(), px(116), box.height())
        painter.drawText(kind, Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter, entry.kind)
        strong = theme.mono_font(9.5) if entry.kind == "source line" else theme.ui_font(10.0)
        if entry.kind != "source line":
            strong.setWeight(QFont.Weight.Medium)
        painter.setFont(strong)
        painter.setPen(theme.text)
        top = box.top() + 3 if entry.detail else box.center().y() - px(9)
        room = QRect(box.left() + 16, top, box.width() - px(160), px(18))
        text = painter.fontMetrics().elidedText(entry.title, Qt.TextElideMode.ElideMiddle, room.width())
        painter.drawText(room, Qt.AlignmentFlag.AlignVCenter, text)
        painter.setFont(theme.ui_font(8.5))
        painter.setPen(theme.muted)
        second = room.translated(0, px(17))
        text = painter.fontMetrics().elidedText(entry.detail, Qt.TextElideMode.ElideRight, second.width())
        painter.drawText(second, Qt.AlignmentFlag.AlignVCenter, text)
        painter.restore()


class Palette(QFrame):
    """Over the window, below its top. Typing finds, arrows walk, Enter goes, Escape closes."""

    chosen = Signal(object)  # Entry

    def __init__(self, window: QWidget, theme: Theme) -> None:
        super().__init__(window)
        self.setProperty("role", "palette")
        self.setAccessibleName("Command palette")
        self._entries: list[Entry] = []
        self._before: QWidget | None = None  # who had the keyboard
        self._job: Job | None = None
        self._enter = False  # Enter came before what was typed was found: its first entry is meant
        column = QVBoxLayout(self)
        column.setContentsMargins(8, 8, 8, 8)
        column.setSpacing(6)
        self.line = TextLine()
        self.line.setPlaceholderText(_HINT)
        self.line.setAccessibleName(_HINT)
        self.line.setClearButtonEnabled(True)
        self.line.textChanged.connect(self._search)
        self.line.installEventFilter(self)
        column.addWidget(self.line)
        self.results = _Results(self)
        self.list = QListView()
        self.list.setAccessibleName("Found")
        self.list.setModel(self.results)
        self._rows = _Row(theme, self)
        self.list.setItemDelegate(self._rows)
        self.list.setUniformItemSizes(True)
        self.list.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self.list.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.list.clicked.connect(lambda index: self._choose(index.row()))
        column.addWidget(self.list)
        self.nothing = label("", "muted")
        self.nothing.setContentsMargins(12, 6, 12, 8)
        column.addWidget(self.nothing)
        window.installEventFilter(self)
        self.hide()

    def set_theme(self, theme: Theme) -> None:
        """Other colours."""
        self._rows.theme = theme
        self.list.viewport().update()

    def open(self, entries: list[Entry], hint: str = _HINT) -> None:
        """Ask, among these."""
        self.line.setPlaceholderText(hint)
        self.line.setAccessibleName(hint)
        self._entries = entries
        self._before = QApplication.focusWidget()
        self.line.clear()
        self._search("")
        self._place()
        self.show()
        self.raise_()
        self.line.setFocus(Qt.FocusReason.PopupFocusReason)

    def set_entries(self, entries: list[Entry]) -> None:
        """More can be found now."""
        self._entries = entries
        if self.isVisible():
            self._search(self.line.text())

    def close_palette(self) -> None:
        """Go away, the keyboard back to the window."""
        self.hide()
        (self._before or self.parentWidget()).setFocus()

    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Arrows and Enter while typing; stay in place when the window changes its size."""
        if watched is self.line and isinstance(event, QKeyEvent) and event.type() == QEvent.Type.KeyPress:
            return self._key(Qt.Key(event.key()))
        if watched is self.line and event.type() == QEvent.Type.ShortcutOverride:
            event.accept()  # Escape closes the palette, and nothing else
            return False
        if watched is self.line and event.type() == QEvent.Type.FocusOut and self.isVisible():
            self.hide()
        if watched is self.parentWidget() and event.type() == QEvent.Type.Resize and self.isVisible():
            self._place()
        return super().eventFilter(watched, event)

    def _key(self, key: Qt.Key) -> bool:
        steps = {Qt.Key.Key_Down: 1, Qt.Key.Key_Up: -1, Qt.Key.Key_PageDown: _ROWS, Qt.Key.Key_PageUp: -_ROWS}
        count = len(self.results.entries)
        if key in steps and count:
            row = min(max(self.list.currentIndex().row() + steps[key], 0), count - 1)
            self.list.setCurrentIndex(self.results.index(row))
            return True
        if key in (Qt.Key.Key_Return, Qt.Key.Key_Enter):
            if self._job is not None:
                self._enter = True
            else:
                self._choose(self.list.currentIndex().row())
            return True
        if key == Qt.Key.Key_Escape:
            self.close_palette()
            return True
        return False

    def _search(self, text: str) -> None:
        """Few entries at once, many on another thread; what was typed before is not looked for any more."""
        if self._job is not None:
            self._job.cancel()
            self._job = None
        self._enter = False
        among = self._entries
        if len(among) <= _AT_ONCE or not text.strip():
            self._show(find(text, among))
            return
        self._job = Job(lambda cancelled: find(text, among), self)
        self._job.done.connect(self._found)
        self._job.start()

    def _found(self, entries: list[Entry]) -> None:
        self._job = None
        self._show(entries)
        if self._enter and self.isVisible():
            self._choose(0)

    def _show(self, entries: list[Entry]) -> None:
        self.results.set_entries(entries)
        if entries:
            self.list.setCurrentIndex(self.results.index(0))
        self.list.setVisible(bool(entries))
        self.nothing.setVisible(not entries)
        self.nothing.setText(f"Nothing has '{self.line.text().strip()}' in its name." if self.line.text() else "")
        self._place()

    def _choose(self, row: int) -> None:
        if 0 <= row < len(self.results.entries):
            entry = self.results.entries[row]
            self.close_palette()
            self.chosen.emit(entry)

    def _place(self) -> None:
        window = self.parentWidget()
        width = min(px(_WIDTH) + 16, window.width() - 40)
        count = min(len(self.results.entries), _ROWS)
        most = min(px(_ROW) * count + px(64) if count else self.sizeHint().height(), window.height() - 120)
        self.setGeometry((window.width() - width) // 2, 84, width, most)
