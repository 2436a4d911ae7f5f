"""Which FX nodes a kernel or call of Inductor computes.

Inductor keeps for every buffer the FX nodes that its value was lowered from (``origins``), and these run too far back:
a kernel that reads a matrix product's result names the product, too. The nodes computed are those between what is read
and what is written: from each written buffer's node backwards, until a node whose value is read from memory.
"""

from __future__ import annotations

import operator
from collections.abc import Mapping, Sequence

from torch import fx

from compiler.inductor.hooks import UnitFacts


class OriginFinder:
    """Finds the FX nodes of the units of one graph."""

    def __init__(
        self, graph: fx.GraphModule, buffer_nodes: Mapping[str, str], within: Mapping[str, Sequence[str]]
    ) -> None:
        """``buffer_nodes``: buffer -> the FX node whose value it holds; ``within``: -> the buffers it is part of, or
        was before a call wrote into it: in the graph, readers may still name those."""
        self._nodes = {node.name: node for node in graph.graph.nodes}
        self._order = {name: i for i, name in enumerate(self._nodes)}
        self._buffer_nodes = buffer_nodes
        self._within = within

    def nodes_of(self, unit: UnitFacts) -> list[str]:
        """The FX nodes that ``unit`` computes, in the graph's order."""
        written = list(dict.fromkeys(n for b in unit.writes if (n := self._node_of(b)) is not None))
        if unit.kind == "extern":
            return self._sorted(written or unit.origins[-1:])
        if not written:
            return self._sorted(unit.origins)
        buffers = {b for name in unit.reads for b in (name, *self._within.get(name, ()))}
        within, read = set(unit.origins), {n for b in buffers if (n := self._node_of(b)) is not None}
        within |= set(written)
        computed: dict[str, bool] = {}  # node -> whether its value follows from what the unit reads
        for name in written:
            self._follows(name, within, read - set(written), computed)
        found = {name for name, follows in computed.items() if follows and name not in read - set(written)}
        return self._sorted({name for name in found if self._is_call(name)} | set(written))

    def _node_of(self, buffer: str) -> str | None:
        found = self._buffer_nodes.get(buffer, buffer)
        return found if found in self._nodes else None

    def _is_call(self, name: str) -> bool:
        return bool(self._nodes[name].op == "call_function")

    def _follows(self, name: str, within: set[str], read: set[str], computed: dict[str, bool]) -> None:
        """Note in ``computed`` for ``name`` and what it is made of whether it can be computed of what is read,
        through nodes of ``within`` only."""
        pending = [(name, False)]
        while pending:
            current, seen = pending.pop()
            if current in computed and not seen:
                continue
            node = self._nodes[current]
            if current in read or node.op == "get_attr":
                computed[current] = True
            elif node.op != "call_function" or (current not in within and node.target is not operator.getitem):
                computed[current] = False
            elif not seen:
                pending.append((current, True))
                pending += [(n.name, False) for n in node.all_input_nodes]
            else:
                computed[current] = all(computed.get(n.name, False) for n in node.all_input_nodes)

    def _sorted(self, names: Sequence[str] | set[str]) -> list[str]:
        return sorted((n for n in names if n in self._order), key=self._order.__getitem__)
