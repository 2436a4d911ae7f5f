"""The memory plan: live bytes and lifetimes over the schedule, and why the peak is what it is."""

from __future__ import annotations

from dataclasses import dataclass

import msgspec
from PySide6.QtCore import Signal
from PySide6.QtWidgets import QVBoxLayout, QWidget

from app.memory_plan import live_at, live_bytes
from compiler.report import BufferPlan, Memory, MemoryOrder
from views.background.when_seen import WhenSeen
from views.charts.memory_map import MemoryMap, MemoryView, memory_view
from views.look import format as fmt
from views.look.theme import Theme
from views.selection.index import RegionIndex
from views.selection.selection import Selection
from views.widgets.basic import as_panel, label
from views.widgets.empty import Empty


@dataclass(frozen=True)
class _Made:
    index: RegionIndex
    view: MemoryView
    text: str


class MemoryPanel(QWidget):
    """Sentences on the plan over the map of it."""

    node_chosen = Signal(str)

    def __init__(self, theme: Theme, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        as_panel(self)
        column = QVBoxLayout(self)
        column.setContentsMargins(14, 8, 14, 4)
        column.setSpacing(2)
        self._facts = label("", "muted", wrap=True, selectable=True)
        column.addWidget(self._facts)
        self.map = MemoryMap(theme)
        self.map.node_chosen.connect(self.node_chosen)
        column.addWidget(self.map, 1)
        self._empty = Empty("memory", theme)
        column.addWidget(self._empty)
        self._empty.hide()
        self._content = WhenSeen(self)
        self._content.made.connect(self._show)

    def set_theme(self, theme: Theme) -> None:
        """Other colours."""
        self.map.set_theme(theme)
        self._empty.set_theme(theme)

    def set_region(self, index: RegionIndex) -> None:
        """Show the plan of another region."""
        self._content.request(lambda: _make(index))

    def show_selection(self, selection: Selection) -> None:
        """Mark the buffers of what is selected."""
        self.map.show_nodes(selection.nodes)

    def _show(self, made: _Made) -> None:
        index = made.index
        drawn = bool(made.view.memory.buffers)
        self._facts.setText(made.text)
        self._facts.setVisible(drawn)
        self._empty.set_text(made.text)
        self._empty.setVisible(not drawn)
        self.map.setVisible(drawn)
        self.map.set_view(made.view, lambda buffer: buffer_lines(buffer, index), lambda step: step_name(index, step))


def _make(index: RegionIndex) -> _Made:
    memory = index.region.memory
    text, drawn = memory_text(memory, index), memory
    if index.kept is not None:
        buffers = [buffer for buffer in memory.buffers if index.shows_node(buffer.node)]
        drawn = msgspec.structs.replace(memory, buffers=buffers)
        text = f"Drawn: {len(buffers):,} of {len(memory.buffers):,} buffers, as the filters leave them. {text}"
    view = memory_view(drawn, lambda node: index.group_colors.get(index.unit_of(node), -1))
    return _Made(index, view, text)


def step_name(index: RegionIndex, step: int) -> str:
    """What a step of the schedule runs."""
    return index.schedule[step].name if 0 <= step < len(index.schedule) else ""


def buffer_lines(buffer: BufferPlan, index: RegionIndex) -> list[str]:
    """A buffer's facts: who writes it, who reads it, for how long, whose storage it has."""
    reader_names = (index.unit_of(node) for node in index.readers.get(buffer.node, ()))
    readers = list(dict.fromkeys(unit for unit in reader_names if unit))
    writer = "the forward, which saved it" if buffer.saved else index.unit_of(buffer.node) or "the region"
    lines = [f"{buffer.node}  {fmt.size(buffer.bytes)}", f"Written by {writer}"]
    if readers:
        more = f" and {len(readers) - 3} more" if len(readers) > 3 else ""
        lines.append(f"Read by {', '.join(readers[:3])}{more}")
    lines.append(f"Lives from step {buffer.first_use} to {buffer.last_use}")
    if buffer.reuses:
        owner = next((b.node for b in index.region.memory.buffers if b.name == buffer.reuses), buffer.reuses)
        lines.append(f"Takes over the storage of {owner}")
    return lines


def memory_text(memory: Memory, index: RegionIndex) -> str:
    """The plan, its peak and the order that was chosen, a sentence each."""
    live = live_bytes(memory)
    if not len(live):
        return "This region keeps no intermediate buffers."
    saved = sum(1 for buffer in memory.buffers if buffer.saved)
    made = f"{fmt.plural(len(memory.buffers) - saved, 'buffer')} of the region's own"
    made += f" and {fmt.count(saved)} saved by the forward" if saved else ""
    reused = sum(1 for buffer in memory.buffers if buffer.reuses)
    taken = f", {fmt.count(reused)} in the storage of an earlier one" if reused else ""
    step = int(live.argmax())
    there = live_at(memory, step)
    largest = ", ".join(f"{buffer.node} ({fmt.size(buffer.bytes)})" for buffer in there[:3])
    more = f" and {len(there) - 3} more" if len(there) > 3 else ""
    return (
        f"Planned peak {fmt.size(memory.peak_bytes)}, {fmt.size(memory.total_bytes)} without reuse: {made}{taken}. "
        f"At the peak, step {step} ({step_name(index, step)}), {fmt.size(int(live[step]))}: {largest}{more}."
        f"{order_text(memory)}"
    )


def order_text(memory: Memory) -> str:
    """Which order the steps run in, and what that does to the peak; nothing where no other was looked for."""
    if memory.order is None:
        return ""
    if memory.order is MemoryOrder.CAPTURED:
        return " No other order that was tried has a lower peak than the captured order."
    how = {
        MemoryOrder.FORWARD: "from the front, always what leaves the least memory behind",
        MemoryOrder.BACKWARD: "from the back, always what needs the least memory kept for it",
        MemoryOrder.BUDGET: "the captured order wherever that keeps below the new peak, else what leaves least behind",
    }[memory.order]
    before, after = memory.captured_peak_bytes, memory.peak_bytes
    return (
        f" {fmt.plural(memory.moved_steps, 'step')} moved ({how}): in the captured order the peak would be "
        f"{fmt.size(before)}, now it is {1 - after / before:.0%} lower."
    )
