"""The pages of the inspector: a region, a unit (group or extern call), one FX node."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QAction, QGuiApplication
from PySide6.QtWidgets import (
    QGridLayout,
    QSizePolicy,
    QVBoxLayout,
    QWidget,
)

from app.titles import compiler_title
from app.unit_errors import error_text
from compiler.report import CudaGraph, ExternCall, Group, Node, RefusalRule, SourceLine, TensorInfo
from views.inspector.table import AROUND, Table
from views.look import format as fmt
from views.look.theme import Theme
from views.refusals.index import lost_text, refusal_text, unrecorded, unrecorded_text
from views.selection.index import RegionIndex, Unit
from views.widgets.basic import ElidedLabel, as_panel, label, line

_MAX_LINES = 10
_FACT = 114  # pixels of what is pinned at most, so that what is beside it has room for its ratio
_MOST_ROWS = 200  # of a list of any nodes: a click may select thousands
_UNIT, _SENTENCE = 122, 260  # pixels of a unit beside a reason, and of that


class Page(QWidget):
    """A column of sections. Clicks on names come out as signals."""

    node_chosen = Signal(str)
    unit_chosen = Signal(str)
    hovered = Signal(str)  # a node or unit in one of its lists, "" for none

    def __init__(self) -> None:
        super().__init__()
        as_panel(self)
        whole = QVBoxLayout(self)
        whole.setContentsMargins(14, 2, 14, 14)
        whole.setSpacing(0)
        self._column = QVBoxLayout()
        self._column.setSpacing(6)
        whole.addLayout(self._column)
        whole.addStretch(1)  # sections are together at the top, however many are still to be made
        self._later: list[Callable[[], object]] = []
        self._grids: list[QGridLayout] = []  # of facts: their values begin below one another
        self._key_width = 0

    def later(self, *sections: Callable[[], object]) -> None:
        """Sections for ``go_on`` to make, one at a time: all at once would take more than a frame."""
        self._later += sections

    @property
    def has_more(self) -> bool:
        """Whether sections are still to be made."""
        return bool(self._later)

    def go_on(self) -> None:
        """Make the next section."""
        if self._later:
            self._later.pop(0)()
            for made in self.findChildren(QWidget, options=Qt.FindChildOption.FindDirectChildrenOnly):
                made.show()  # a layout would do so later, and takes no account of it until then
            self.fit()

    def fit(self) -> None:
        """Be as tall as the sections need at once: until the scroll area has measured them, they would overlap."""
        missing = self.layout().totalHeightForWidth(self.width()) - self.height()
        if missing > 0:
            room = self.parentWidget()
            room.resize(room.width(), room.height() + missing)

    def heading(self, text: str) -> None:
        """Begin a section."""
        if self._column.count():
            self.rule()
        self._column.addWidget(label(text, "heading"))

    def rule(self) -> None:
        """A line between what is before and what comes after."""
        self._column.addSpacing(6)
        self._column.addWidget(line())
        self._column.addSpacing(2)

    def text(self, text: str, role: str = "") -> None:
        """A paragraph."""
        self._column.addWidget(label(text, role, wrap=True, selectable=True))

    def name(self, name: str) -> None:
        """A name, however long, on as many lines as it takes; its context menu copies it."""
        made = label(fmt.breakable(name), "strong", wrap=True)
        made.setAccessibleName(name)
        copy = QAction("Copy name", made)
        copy.triggered.connect(lambda: QGuiApplication.clipboard().setText(name))
        made.addAction(copy)
        made.setContextMenuPolicy(Qt.ContextMenuPolicy.ActionsContextMenu)
        self._column.addWidget(made)

    def facts(self, facts: Iterable[tuple[str, str]]) -> None:
        """Two columns: what, and its value."""
        if self._column.count():
            self._column.addSpacing(4)
        grid = QGridLayout()
        grid.setHorizontalSpacing(14)
        grid.setVerticalSpacing(4)
        grid.setColumnStretch(1, 1)
        for row, (name, value) in enumerate(facts):
            key = label(name, "muted")
            self._key_width = max(self._key_width, key.sizeHint().width())
            grid.addWidget(key, row, 0, Qt.AlignmentFlag.AlignTop)
            one_word = " " not in value  # a long name: nowhere to wrap
            grid.addWidget(ElidedLabel(value) if one_word else label(value, wrap=True, selectable=True), row, 1)
        self._column.addLayout(grid)
        self._grids.append(grid)
        for one in self._grids:
            one.setColumnMinimumWidth(0, self._key_width)

    def table(self, name: str, columns: tuple[str, ...], rows: list[tuple[str, ...]], current: str = "") -> Table:
        """A list whose rows can be chosen; the first column is the name that is told."""
        made = Table(name, columns, rows, current)
        made.hovered.connect(self.hovered)
        self._column.addWidget(made)
        return made

    def put_first(self, title: str, columns: tuple[str, ...], rows: list[tuple[str, ...]]) -> None:
        """A list above everything else, as tall as it is."""
        made = Table(title, columns, rows, "", len(rows))
        made.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        measure = made.fontMetrics().horizontalAdvance  # what they need: the last one, with its ratios, gets the rest
        needs = [max(measure(row[column]) for row in rows) + AROUND for column in range(len(columns) - 1)]
        made.want([needs[0], *(min(need, _FACT) for need in needs[1:])])
        for place, widget in enumerate((label(title, "heading"), made, line())):
            self._column.insertWidget(place, widget)

    def code(self, text: str, theme: Theme) -> None:
        """A line of code."""
        made = ElidedLabel(text, is_sentence=True)
        made.setFont(theme.mono_font(9.0))
        made.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Fixed)
        self._column.addWidget(made)


def overview_page(index: RegionIndex) -> Page:
    """The region as a whole, while nothing is selected."""
    region, report, page = index.region, index.report, Page()
    page.facts(
        [
            ("Source", report.source),
            ("Compiler", f"{compiler_title(report.compiler)}, for {report.target.title}"),
            ("Nodes", fmt.count(len(region.nodes))),
            ("Fusion groups", fmt.count(len(region.groups))),
            ("Extern calls", fmt.count(len(region.extern_calls))),
            ("Memory traffic", f"{fmt.size(sum(u.estimated_bytes for u in index.schedule))} (estimated)"),
            ("FLOPs", f"{fmt.flops(sum(u.estimated_flops for u in index.schedule))} (estimated)"),
            ("Peak of intermediates", f"{fmt.size(region.memory.peak_bytes)} (planned)"),
        ]
    )
    if not region.nodes:
        page.text("Dynamo compiled nothing: the model may run no tensor op.", "muted")
        return page
    page.later(lambda: _capture(page, region.cuda_graph), lambda: _hints(page, report.notes))
    return page


def _capture(page: Page, graph: CudaGraph) -> None:
    page.heading("CUDA Graph")
    if graph.captured:
        page.facts(
            [
                ("Captured", f"{fmt.plural(graph.partitions, 'partition')}, {fmt.plural(graph.nodes, 'node')}"),
                ("Capture", f"{fmt.milliseconds(graph.capture_ms)} (measured)"),
                ("Instantiate", f"{fmt.milliseconds(graph.instantiate_ms)} (measured)"),
                ("Graph pool", fmt.size(graph.pool_bytes)),
            ]
        )
    elif graph.skip_reasons:
        for reason in graph.skip_reasons:
            where = f" ({reason.source.file}:{reason.source.line})" if reason.source else ""
            page.text(f"{reason.detail}{where}")
    else:
        if graph.answered:
            page.text("Nothing in this region would refuse capture." if graph.capturable else "It cannot be captured.")
        else:
            page.text("The log does not say whether it can be captured.")


def _hints(page: Page, notes: list[str]) -> None:
    if notes:
        page.heading("Notes")
        for note in notes:
            page.text(note)
    page.rule()
    page.text("Select a group, an extern call or a node to see why it is as it is, and its generated source.", "muted")


def unit_page(index: RegionIndex, unit: Unit, focus: frozenset[str], theme: Theme) -> Page:
    """A fusion group or an extern call."""
    page = Page()
    if isinstance(unit, Group):
        page.heading("Why these are together")
        page.text(unit.reason)
    else:
        page.heading("Why this is extern")
        page.text(_why_extern(unit))
        page.text(f"It calls {unit.op}, so there is no generated source.", "muted")
    page.facts(_unit_facts(index, unit))
    if isinstance(unit, Group) and index.kernel_of(unit.name) is None:
        page.text("The report has no source for this group's kernel.", "muted")
    current = next(iter(focus)) if len(focus) == 1 else ""
    page.later(lambda: _ops(page, index, f"Ops ({len(unit.nodes)})", unit.nodes, current))
    if isinstance(unit, Group):
        page.later(
            lambda: _tensors(page, index, "Reads", unit.inputs), lambda: _tensors(page, index, "Writes", unit.outputs)
        )
    page.later(lambda: _neighbours(page, index, unit.nodes), lambda: _sources(page, index, unit.nodes, theme))
    return page


def _ops(page: Page, index: RegionIndex, title: str, nodes: list[str], current: str = "", name: str = "Ops") -> None:
    if nodes:
        page.heading(title)
        table = page.table(name, ("Node", "Op", "Output"), _op_rows(index, nodes), current)
        table.chosen.connect(page.node_chosen)


def _tensors(page: Page, index: RegionIndex, title: str, nodes: list[str]) -> None:
    if nodes:
        page.heading(f"{title} ({len(nodes)})")
        table = page.table(title, ("Tensor", "Shape", "Strides, bytes"), _tensor_rows(index, nodes))
        table.chosen.connect(page.node_chosen)


def node_page(index: RegionIndex, node: Node, unit: Unit | None, theme: Theme) -> Page:
    """One FX node, and the unit that it is part of."""
    page = Page()
    page.facts(_node_facts(node))
    if node.args:
        page.code(f"{node.op}({node.args})", theme)
    others = [name for name in index.units_of.get(node.name, ()) if unit is None or name != unit.name]
    if others:
        page.text(f"Recomputed in {', '.join(others)}, which is cheaper than reading it.", "muted")
    if unit is None:
        page.text("No kernel computes this node.", "muted")
    else:
        page.heading("Why it is in " + unit.name if isinstance(unit, Group) else "Why it is extern")
        page.text(unit.reason if isinstance(unit, Group) else _why_extern(unit))
        of_unit, members = f"Ops of {unit.name} ({len(unit.nodes)})", unit.nodes
        page.later(lambda: _ops(page, index, of_unit, members, node.name))
    readers = index.readers.get(node.name, [])
    page.later(
        lambda: _ops(page, index, f"Inputs ({len(node.inputs)})", node.inputs, name="Inputs"),
        lambda: _ops(page, index, f"Read by ({len(readers)})", readers, name="Read by"),
        lambda: _neighbours(page, index, [node.name]),
        lambda: _sources(page, index, [node.name], theme),
    )
    return page


def _why_extern(call: ExternCall) -> str:
    """The reason as a sentence, with what the compiler knows of this very call."""
    reason = fmt.EXTERN_REASONS[call.reason]
    return f"{reason.removesuffix('.')} ({call.detail.removesuffix('.')})." if call.detail else reason


def nodes_page(index: RegionIndex, nodes: frozenset[str], theme: Theme) -> Page:
    """Several nodes, as all that lie on a path: what they are together, by which units, from which lines."""
    page = Page()
    names = in_order(index, nodes)
    together = [index.nodes[name] for name in names]
    page.facts(
        [
            ("Nodes", f"{len(names):,} of {len(index.region.nodes):,}"),
            ("Bytes, run alone", f"{fmt.size(sum(node.estimated_bytes for node in together))} (estimated)"),
            ("FLOPs", f"{fmt.flops(sum(node.estimated_flops for node in together))} (estimated)"),
        ]
    )
    first = names[:_MOST_ROWS]
    page.later(
        lambda: _computed_by(page, index, names),
        lambda: _ops(page, index, _first_of("Ops", len(names)), first),
        lambda: _sources(page, index, names, theme),
    )
    return page


def _computed_by(page: Page, index: RegionIndex, names: list[str]) -> None:
    units = dict.fromkeys(unit for name in names if (unit := index.unit_of(name)))
    if units:
        page.heading(_first_of("Computed by", len(units)))
        nodes = set(names)
        rows: list[tuple[str, ...]] = [
            (unit, fmt.count(sum(name in nodes for name in index.units[unit].nodes)))
            for unit in list(units)[:_MOST_ROWS]
        ]
        table = page.table("Units", ("Unit", "Nodes"), rows)
        table.to_the_right(1)
        table.chosen.connect(page.unit_chosen)


def _first_of(title: str, count: int) -> str:
    """A list's title with how many it has, and how many of them are shown where it has many."""
    return f"{title} ({f'the first {_MOST_ROWS} of ' if count > _MOST_ROWS else ''}{count:,})"


def in_order(index: RegionIndex, nodes: Iterable[str]) -> list[str]:
    """Nodes as the graph has them, producers before consumers."""
    wanted = set(nodes)
    return [name for name in index.nodes if name in wanted]


def pair_page(index: RegionIndex, nodes: Iterable[str], theme: Theme) -> Page:
    """Two nodes of different units: why they are apart, and what that costs."""
    page = Page()
    names = in_order(index, nodes)
    refusal = index.refusals.between(names[0], names[-1])
    page.heading("Why these are apart")
    if refusal is None:
        page.text(unrecorded_text(index.has_call(names)))
    else:
        page.text(refusal_text(refusal))
        if lost := lost_text(refusal):
            page.text(lost)
        if {refusal.a, refusal.b} != set(names):
            page.text(f"Recorded for {refusal.a} and {refusal.b}, of the same two kernels.", "muted")
    rows: list[tuple[str, ...]] = [(index.unit_of(name), index.nodes[name].op, name) for name in names]
    page.heading("Units")
    page.table("Units", ("Unit", "Op", "Node"), rows).chosen.connect(page.unit_chosen)
    page.heading("Nodes")
    page.table("Ops", ("Node", "Op", "Output"), _op_rows(index, names)).chosen.connect(page.node_chosen)
    _sources(page, index, names, theme)
    return page


def _unit_facts(index: RegionIndex, unit: Unit) -> list[tuple[str, str]]:
    facts = [("Order", f"{unit.order + 1:,} of {len(index.schedule):,} in the schedule")]
    if isinstance(unit, ExternCall):
        facts.append(("Call", unit.op))
        if unit.runs_as:
            facts.append(("On the GPU", f"runs as {unit.runs_as}"))
    facts.append(("Memory traffic", f"{fmt.size(unit.estimated_bytes)} (estimated)"))
    if isinstance(unit, Group) and unit.score_bytes:
        facts.append(("Saved by fusing", f"{fmt.size(unit.score_bytes)} (estimated)"))
    if unit.estimated_flops:
        facts.append(("FLOPs", f"{fmt.flops(unit.estimated_flops)} (estimated)"))
    point = index.points.get(unit.name)
    if point is not None:
        facts.append(("Time", f"{fmt.microseconds(point.time.us)} ({point.time.kind})"))
    if isinstance(unit, Group):
        facts.append(("Kernel", unit.kernel))
        if unit.rule:
            facts.append(("Rule", unit.rule))
    check = index.errors.get(unit.name)
    if check is not None:
        told = f"{error_text(check.error)} at {check.node}, eager's {error_text(check.eager_error)}"
        facts.append(("Against float64", f"{told} (measured)"))
    return facts


def _node_facts(node: Node) -> list[tuple[str, str]]:
    facts = [("Op", node.op)]
    for number, info in enumerate(node.outputs):
        name = "Output" if len(node.outputs) == 1 else f"Output {number}"
        facts.append((name, _tensor_text(info)))
    if node.estimated_bytes:
        facts.append(("Bytes, run alone", f"{fmt.size(node.estimated_bytes)} (estimated)"))
    if node.estimated_flops:
        facts.append(("FLOPs", f"{fmt.flops(node.estimated_flops)} (estimated)"))
    where = node.provenance
    if where.module_path:
        facts.append(("Module", f"{where.module_path}  {where.module_type}".strip()))
    return facts


def _tensor_text(info: TensorInfo) -> str:
    parts = [fmt.tensor(info)]
    if info.stride:
        parts.append(f"strides {fmt.strides(info)}")
    if info.bytes:
        parts.append(fmt.size(info.bytes))
    return ", ".join(parts)


def _op_rows(index: RegionIndex, names: list[str]) -> list[tuple[str, ...]]:
    rows: list[tuple[str, ...]] = []
    for name in names:
        node = index.nodes.get(name)
        if node is not None:
            rows.append((name, node.op, ", ".join(map(fmt.tensor, node.outputs))))
    return rows


def _tensor_rows(index: RegionIndex, names: list[str]) -> list[tuple[str, ...]]:
    rows: list[tuple[str, ...]] = []
    for name in names:
        node = index.nodes.get(name)
        for info in node.outputs if node else ():
            rows.append((name, fmt.tensor(info), f"{fmt.strides(info)}  {fmt.size(info.bytes)}".strip()))
    return rows


def _neighbours(page: Page, index: RegionIndex, nodes: list[str]) -> None:
    found = index.neighbours(nodes)
    if not found:
        return
    page.heading(f"Not fused with ({len(found)})")
    rows: list[tuple[str, ...]] = []
    for neighbour in found:
        refusal = neighbour.refusal
        if refusal is None:
            why = unrecorded(index.has_call((neighbour.inside, neighbour.outside)))
        elif refusal.rule is RefusalRule.EXTERN and refusal.detail:
            why = refusal.detail  # which says so itself
        else:
            why = ": ".join(filter(None, (fmt.REFUSAL_RULES[refusal.rule], refusal.detail)))
        rows.append((neighbour.unit, why))
    table = page.table("Not fused with", ("Unit", "Why"), rows)
    table.want([_UNIT], last=_SENTENCE)
    table.chosen.connect(page.unit_chosen)


def _sources(page: Page, index: RegionIndex, nodes: list[str], theme: Theme) -> None:
    frames: dict[SourceLine, bool] = {}
    for name in nodes:
        node = index.nodes.get(name)
        if node is not None and node.provenance.frames:
            frame = node.provenance.frames[0]
            frames[frame] = frames.get(frame, False) or node.provenance.exact
    if not frames:
        return
    page.heading("Model source")
    for frame, exact in list(frames.items())[:_MAX_LINES]:
        inferred = "" if exact else "  (inferred)"
        page.text(f"{frame.file}:{frame.line}  {frame.function}{inferred}", "muted")
        page.code(frame.code.strip() or _line_of(index, frame), theme)
    if len(frames) > _MAX_LINES:
        page.text(f"and {len(frames) - _MAX_LINES} more lines", "muted")


def _line_of(index: RegionIndex, frame: SourceLine) -> str:
    lines = index.report.sources.get(frame.file, "").splitlines()
    return lines[frame.line - 1].strip() if 0 < frame.line <= len(lines) else ""
