"""The What-if dialog: change options of the compiler that made the report, compile again, see what differs."""

from __future__ import annotations

from PySide6.QtCore import QModelIndex, QPersistentModelIndex, Qt
from PySide6.QtWidgets import (
    QAbstractItemView,
    QComboBox,
    QDialog,
    QDialogButtonBox,
    QFrame,
    QHBoxLayout,
    QHeaderView,
    QLineEdit,
    QScrollArea,
    QStackedWidget,
    QStyledItemDelegate,
    QStyleOptionViewItem,
    QTableView,
    QVBoxLayout,
    QWidget,
)

from app.titles import compiler_title
from app.worker.protocol import Failed, ListOptions, OptionsListed, WorkerDied
from compiler.report import Report
from views.compile.options_model import VALUE, OptionsFilter, OptionsModel
from views.compile.worker_bridge import WorkerBridge
from views.look.sizes import px
from views.look.theme import Theme
from views.widgets.basic import label
from views.widgets.empty import Empty


class WhatIf(QDialog):
    """``options`` are those to compile with: the report's own, and what was changed here."""

    def __init__(self, bridge: WorkerBridge, report: Report, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._report = report
        self._bridge = bridge
        self.setWindowTitle(f"What if: options of {compiler_title(report.compiler)}")
        self.resize(px(820), px(620))
        column = QVBoxLayout(self)
        column.setContentsMargins(18, 16, 18, 14)
        column.setSpacing(10)
        column.addWidget(label(f"Compile {report.source} for {report.target.title} with other options.", wrap=True))
        self.search = QLineEdit()
        self.search.setPlaceholderText("Search options by name or text")
        self.search.setAccessibleName("Search options")
        self.search.setClearButtonEnabled(True)
        column.addWidget(self.search)
        self.model = OptionsModel(theme, self)
        self._filter = OptionsFilter(self)
        self._filter.setSourceModel(self.model)
        self.table = self._make_table()
        self._waiting = Empty("clock", theme, "Asking the worker for the options…")
        self._pages = QStackedWidget()
        for page in (self._waiting, self.table):
            self._pages.addWidget(page)
        column.addWidget(self._pages, 1)
        self._doc = label("", "muted", wrap=True, selectable=True)
        self._doc.setAlignment(Qt.AlignmentFlag.AlignTop)
        scroll = QScrollArea()
        scroll.setAccessibleName("Options, scrolled")
        scroll.setFrameShape(QFrame.Shape.NoFrame)
        scroll.setWidgetResizable(True)
        scroll.setFixedHeight(px(84))
        scroll.setWidget(self._doc)
        column.addWidget(scroll)
        column.addLayout(self._feet())
        self.search.textChanged.connect(self._search)
        self.table.selectionModel().currentChanged.connect(self._describe)
        self.model.dataChanged.connect(self._changed)
        self._id = bridge.new_id()
        bridge.options_listed.connect(self._listed)
        bridge.failed.connect(self._failed)
        bridge.died.connect(self._died)
        bridge.send(ListOptions(self._id, report.compiler))

    @property
    def options(self) -> dict[str, str]:
        """What to compile with."""
        known = {self.model.info(row).name for row in range(self.model.rowCount())}
        kept = {name: value for name, value in self._report.options.items() if name not in known}
        return {**kept, **self.model.changed}

    def done(self, result: int) -> None:
        """Hear nothing more of the worker."""
        for signal, slot in (
            (self._bridge.options_listed, self._listed),
            (self._bridge.failed, self._failed),
            (self._bridge.died, self._died),
        ):
            signal.disconnect(slot)
        super().done(result)

    def _make_table(self) -> QTableView:
        table = QTableView()
        table.setAccessibleName("Options")
        table.setModel(self._filter)
        table.setItemDelegateForColumn(VALUE, _ValueDelegate(table))
        table.setShowGrid(False)
        table.setTextElideMode(Qt.TextElideMode.ElideMiddle)
        table.setSelectionBehavior(QAbstractItemView.SelectionBehavior.SelectRows)
        table.setSelectionMode(QAbstractItemView.SelectionMode.SingleSelection)
        table.setEditTriggers(
            QAbstractItemView.EditTrigger.DoubleClicked
            | QAbstractItemView.EditTrigger.SelectedClicked
            | QAbstractItemView.EditTrigger.EditKeyPressed
            | QAbstractItemView.EditTrigger.AnyKeyPressed
        )
        table.setTabKeyNavigation(False)
        table.verticalHeader().setVisible(False)
        table.verticalHeader().setDefaultSectionSize(px(28))
        header = table.horizontalHeader()
        header.setHighlightSections(False)
        header.setDefaultAlignment(Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter)
        header.setSectionResizeMode(QHeaderView.ResizeMode.Interactive)
        header.setStretchLastSection(True)
        for section, width in enumerate((320, 170, 150)):
            table.setColumnWidth(section, px(width))
        return table

    def _feet(self) -> QHBoxLayout:
        row = QHBoxLayout()
        self._told = label("Nothing is changed yet.", "muted", wrap=True)
        row.addWidget(self._told, 1)
        buttons = QDialogButtonBox(QDialogButtonBox.StandardButton.Cancel | QDialogButtonBox.StandardButton.Reset)
        self.compile_button = buttons.addButton("Compile and compare", QDialogButtonBox.ButtonRole.AcceptRole)
        self.compile_button.setProperty("role", "primary")
        self.compile_button.setEnabled(False)
        self.reset_button = buttons.button(QDialogButtonBox.StandardButton.Reset)
        self.reset_button.setText("Take all back")
        self.reset_button.clicked.connect(self.model.reset)
        self.reset_button.setEnabled(False)
        for button in buttons.buttons():
            button.setAccessibleName(button.text().replace("&", ""))
        buttons.accepted.connect(self.accept)
        buttons.rejected.connect(self.reject)
        row.addWidget(buttons)
        return row

    def _listed(self, event: OptionsListed) -> None:
        if event.id == self._id:
            self.model.set_options(event.options, dict(self._report.options))
            self._pages.setCurrentWidget(self.table)
            self._doc.setText("Choose an option to read what it does; double-click its value to change it.")
            self.search.setFocus()

    def _failed(self, event: Failed) -> None:
        if event.id == self._id:
            self._waiting.set_text(f"{event.message} {event.hint}".strip())

    def _died(self, event: WorkerDied) -> None:
        self._waiting.set_text("The worker ended, so its options are not known. Close this and try again.")

    def _search(self, text: str) -> None:
        self._filter.set_text(text)
        if not self._filter.rowCount() and self.model.rowCount():
            self._doc.setText("No option has these words in its name or text.")

    def _describe(self, current: QModelIndex) -> None:
        if current.isValid():
            info = self.model.info(self._filter.mapToSource(current).row())
            now = f" Now {info.current}, from the environment or a setting." if info.current else ""
            takes = f" Takes {', '.join(info.choices)}." if info.choices else ""
            self._doc.setText(f"{info.name}: {info.doc or 'its authors wrote no text.'}{takes}{now}")

    def _changed(self) -> None:
        before = {name: value for name, value in self._report.options.items() if name in self.model.changed}
        changed = self.model.changed
        self._told.setText(", ".join(f"{name}={value}" for name, value in changed.items()) or "Nothing is changed.")
        differs = changed != before or self.options != self._report.options
        self.compile_button.setEnabled(differs)
        self.reset_button.setEnabled(bool(changed))


class _ValueDelegate(QStyledItemDelegate):
    """A box to choose from where there are few values, else a line to write in."""

    def createEditor(
        self, parent: QWidget, option: QStyleOptionViewItem, index: QModelIndex | QPersistentModelIndex
    ) -> QWidget:
        proxy = index.model()
        assert isinstance(proxy, OptionsFilter)
        model = proxy.sourceModel()
        assert isinstance(model, OptionsModel)
        info = model.info(proxy.mapToSource(index).row())
        if not info.choices:
            line = QLineEdit(parent)
            line.setAccessibleName(f"Value of {info.name}")
            return line
        box = QComboBox(parent)
        box.setAccessibleName(f"Value of {info.name}")
        box.addItems(info.choices)
        box.activated.connect(lambda _: self._commit(box))
        return box

    def _commit(self, box: QComboBox) -> None:
        self.commitData.emit(box)
        self.closeEditor.emit(box)

    def setEditorData(self, editor: QWidget, index: QModelIndex | QPersistentModelIndex) -> None:
        if isinstance(editor, QComboBox):
            editor.setCurrentText(str(index.data()))
        else:
            super().setEditorData(editor, index)

    def setModelData(self, editor: QWidget, model: object, index: QModelIndex | QPersistentModelIndex) -> None:
        if isinstance(editor, QComboBox):
            assert isinstance(model, OptionsFilter)
            model.setData(index, editor.currentText())
        else:
            super().setModelData(editor, model, index)  # type: ignore[arg-type]
