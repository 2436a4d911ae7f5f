"""All refusals of a report as a tree: rules, and under each the pairs of nodes that it keeps apart."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from PySide6.QtCore import QAbstractItemModel, QModelIndex, QObject, QPersistentModelIndex, Qt

from app.filters import Kept
from compiler.report import Refusal, RefusalRule, Report
from views.look import format as fmt
from views.tables.table_menu import csv_text

Index = QModelIndex | QPersistentModelIndex
COLUMNS = ("Kept apart", "Bytes lost", "Why", "Region")
BYTES = 1
_RIGHT = Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter
_LOOKED_AT = 2000  # pairs from which the room is known that texts need
_TIPS = {"Bytes lost": "Memory traffic that fusing the two would have saved (estimated)"}


@dataclass(frozen=True)
class Pair:
    """One refusal and where it is."""

    region: str
    refusal: Refusal
    text: str  # everything the filter looks in


@dataclass
class Rule:
    """A rule with the pairs that are shown under it."""

    rule: RefusalRule
    pairs: list[Pair] = field(default_factory=list)

    @property
    def bytes_lost(self) -> int:
        """All its pairs' bytes together."""
        return sum(pair.refusal.bytes_lost for pair in self.pairs)


def pairs_of(report: Report) -> list[Pair]:
    """Every refusal of every region."""
    found = []
    for region in report.regions:
        ops = {node.name: node.op for node in region.nodes}
        for refusal in region.refusals:
            parts = (refusal.a, refusal.b, ops.get(refusal.a, ""), ops.get(refusal.b, ""), refusal.detail)
            text = " ".join((*parts, refusal.rule.value, fmt.REFUSAL_RULES[refusal.rule], region.name)).lower()
            found.append(Pair(region.name, refusal, text))
    return found


class RefusalsModel(QAbstractItemModel):
    """Rules by the bytes they cost, pairs within them by the column that was asked for."""

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._pairs: list[Pair] = []
        self._words: list[str] = []
        self._kept: dict[str, Kept] | None = None
        self._order = (BYTES, Qt.SortOrder.DescendingOrder)
        self._rules: list[Rule] = []

    def set_report(self, report: Report) -> None:
        """Show another report's refusals."""
        self._pairs = pairs_of(report)
        self._arrange()

    def set_filter(self, text: str) -> None:
        """Only pairs that have every word of ``text``."""
        self._words = text.lower().split()
        self._arrange()

    def set_kept(self, kept: dict[str, Kept] | None) -> None:
        """Only pairs with a node that the filters leave, by region; None for all."""
        if kept is self._kept:
            return
        self._kept = kept
        self._arrange()

    def _shows(self, pair: Pair) -> bool:
        if self._kept is None:
            return True
        kept = self._kept.get(pair.region)
        return kept is not None and (pair.refusal.a in kept.nodes or pair.refusal.b in kept.nodes)

    def sort(self, column: int, order: Qt.SortOrder = Qt.SortOrder.AscendingOrder) -> None:
        """Order the pairs under every rule by a column, and the rules too where it is bytes."""
        self._order = (column, order)
        self._arrange()

    @property
    def rules(self) -> list[Rule]:
        """What is shown."""
        return self._rules

    @property
    def count(self) -> int:
        """Refusals of the report, shown or not."""
        return len(self._pairs)

    def longest(self, column: int) -> str:
        """The longest text of a column under any rule; of very many pairs, of the first."""
        return max((_pair_text(pair, column) for pair in self._pairs[:_LOOKED_AT]), key=len, default="")

    def csv_text(self) -> str:
        """The pairs that are shown, in the order they are shown."""
        rows = (
            (rule.rule.value, pair.refusal.a, pair.refusal.b, pair.refusal.bytes_lost, pair.refusal.detail, pair.region)
            for rule in self._rules
            for pair in rule.pairs
        )
        return csv_text(("rule", "a", "b", "bytes_lost", "detail", "region"), rows)

    def pair(self, index: Index) -> Pair | None:
        """The pair at ``index``; None for a rule."""
        rule = index.internalId()
        return self._rules[rule - 1].pairs[index.row()] if index.isValid() and rule else None

    def _arrange(self) -> None:
        self.beginResetModel()
        by_rule: dict[RefusalRule, Rule] = {}
        for pair in self._pairs:
            if self._shows(pair) and all(word in pair.text for word in self._words):
                rule = pair.refusal.rule
                by_rule.setdefault(rule, Rule(rule)).pairs.append(pair)
        column, order = self._order
        descending = order == Qt.SortOrder.DescendingOrder
        for rule in by_rule.values():
            rule.pairs.sort(key=lambda pair: _key(pair, column), reverse=descending)
        least_first = column == BYTES and not descending
        self._rules = sorted(by_rule.values(), key=lambda rule: rule.bytes_lost, reverse=not least_first)
        self.endResetModel()

    # Qt's questions

    def index(self, row: int, column: int, parent: Index | None = None) -> QModelIndex:
        """Rules carry the id 0, pairs that of their rule plus one."""
        parent = parent if parent is not None else QModelIndex()
        if not self.hasIndex(row, column, parent):
            return QModelIndex()
        return self.createIndex(row, column, parent.row() + 1 if parent.isValid() else 0)

    def parent(self, child: Index | None = None) -> Any:
        """The rule of a pair."""
        if child is None:
            return super().parent()
        rule = child.internalId() if child.isValid() else 0
        return self.createIndex(rule - 1, 0, 0) if rule else QModelIndex()

    def rowCount(self, parent: Index | None = None) -> int:
        """Rules at the top, pairs below them."""
        if parent is None or not parent.isValid():
            return len(self._rules)
        is_rule = parent.internalId() == 0 and parent.column() == 0
        return len(self._rules[parent.row()].pairs) if is_rule else 0

    def columnCount(self, parent: Index | None = None) -> int:
        """The fixed columns."""
        return len(COLUMNS)

    def headerData(self, section: int, orientation: Qt.Orientation, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        """Column titles."""
        if orientation != Qt.Orientation.Horizontal:
            return None
        if role == Qt.ItemDataRole.TextAlignmentRole and section == BYTES:
            return _RIGHT
        if role == Qt.ItemDataRole.DisplayRole:
            return COLUMNS[section]
        return _TIPS.get(COLUMNS[section]) if role == Qt.ItemDataRole.ToolTipRole else None

    def data(self, index: Index, role: int = Qt.ItemDataRole.DisplayRole) -> Any:
        """Texts; figures to the right."""
        if not index.isValid():
            return None
        if role == Qt.ItemDataRole.TextAlignmentRole and index.column() == BYTES:
            return _RIGHT
        if role not in (Qt.ItemDataRole.DisplayRole, Qt.ItemDataRole.ToolTipRole):
            return None
        pair = self.pair(index)
        if pair is not None:
            return _pair_text(pair, index.column())
        rule = self._rules[index.row()]
        texts = (
            _rule_text(rule),
            fmt.size(rule.bytes_lost) if rule.bytes_lost else "–",
            "",
            "",
        )
        return texts[index.column()]


def _rule_text(rule: Rule) -> str:
    why = fmt.REFUSAL_RULES[rule.rule]
    return f"{why[:1].upper()}{why[1:]} ({fmt.count(len(rule.pairs))})"


def _pair_text(pair: Pair, column: int) -> str:
    refusal = pair.refusal
    lost = fmt.size(refusal.bytes_lost) if refusal.bytes_lost else "–"
    return (f"{refusal.a} → {refusal.b}", lost, refusal.detail, pair.region)[column]


def _key(pair: Pair, column: int) -> Any:
    refusal = pair.refusal
    return ((refusal.a, refusal.b), refusal.bytes_lost, refusal.detail, pair.region)[column]
