"""Layout of a region: insides of groups first, then the graph of groups, extern calls and lone nodes, top to bottom."""

from __future__ import annotations

from itertools import accumulate

import numpy as np

from app.layout.graph_layout import FloatArray, GraphLayout
from app.layout.group_shape import INNER_STUB
from app.layout.items import Arrangement, Items, Link, Spacing
from app.layout.labels import stub_size
from app.layout.memory import paused_collector
from app.layout.nets import Net, Nets, plan_nets
from app.layout.ranks import Cancelled, poll, polled
from app.layout.series import arrange_in_series
from app.layout.units import Unit, UnitGraph, build_units
from compiler.report import Region

_SPACING = Spacing(across=28.0, down=40.0)
_GRID_WIDTH = 1400.0  # least width of the grid of unconnected boxes


def layout_region(region: Region, *, cancelled: Cancelled | None = None) -> GraphLayout:
    """Coordinates for everything that is drawn of a region.

    The same region always gives the same coordinates. ``cancelled`` is polled often; safe off the GUI thread.

    Raises:
        LayoutCancelled: ``cancelled`` returned True.
    """
    poll(cancelled)
    with paused_collector():
        graph = build_units(region, cancelled)
        nets = plan_nets(graph, cancelled)
        poll(cancelled)
        return _Assembly(region, graph, nets).run(cancelled)


class _Assembly:
    """Turns units and nets into items and links, arranges them, and collects the arrays."""

    def __init__(self, region: Region, graph: UnitGraph, nets: Nets) -> None:
        self.region = region
        self.graph = graph
        self.nets = nets
        self.names = [node.name for node in region.nodes]
        self.place: dict[int, int] = {}  # unit -> item
        self.items = Items()
        self.links: list[Link] = []
        self.line_link: dict[Net, int] = {}
        self.stub_links: dict[Net, int] = {}
        self.tail_link: dict[int, int] = {}
        self.stubs: list[tuple[int, str, int, int]] = []  # item, label, owner, peer
        self.edges: list[int] = []  # producer, consumer, producer, ...
        self.edge_sizes: list[int] = []
        self.edge_pieces: list[int] = []
        self.edge_cut: list[bool] = []

    def run(self, cancelled: Cancelled | None) -> GraphLayout:
        """The whole upper level."""
        units = self.graph.units
        connected = {target for _, target in self.nets.lines} | set(self.nets.cut)
        connected |= {self.graph.unit_of[producer] for producer, _ in self.nets.lines}
        connected |= {self.graph.unit_of[producer] for cut in self.nets.cut.values() for producer in cut}
        for i, unit in enumerate(polled(units, cancelled, 4096)):
            if i in connected:
                self.place[i] = self.items.add(unit.width, unit.height, self.nets.rank[i], self.nets.late[i], unit.head)
        self._add_lines(cancelled)
        self._add_stubs(cancelled)
        self._add_tails(cancelled)
        done = arrange_in_series(self.items, self.links, _SPACING, cancelled)
        poll(cancelled)
        return self._collect(done, self._origins(done), cancelled)

    def _out_offset(self, producer: int) -> float:
        unit = self.graph.units[self.graph.unit_of[producer]]
        if unit.shape is None:
            return 0.0
        return unit.shape.out_ports[self.graph.local_of[producer]] - unit.width / 2

    def _in_offset(self, producer: int, unit: Unit) -> float | None:
        """Where a value enters a unit. None for lone nodes, and for a group in which it has only inner stubs."""
        if unit.shape is None or not unit.name:
            return None
        port = unit.shape.in_ports.get(unit.input_number[producer])
        return None if port is None else port - unit.width / 2

    def _enters(self, net: Net) -> bool:
        unit = self.graph.units[net[1]]
        return not unit.name or self._in_offset(net[0], unit) is not None

    def _link(self, link: Link) -> int:
        self.links.append(link)
        return len(self.links) - 1

    def _add_lines(self, cancelled: Cancelled | None) -> None:
        units, unit_of = self.graph.units, self.graph.unit_of
        for net in polled(self.nets.lines, cancelled, 2048):
            if self._enters(net):
                producer, target = net
                arrive = self._in_offset(producer, units[target])
                link = Link(self.place[unit_of[producer]], self.place[target], self._out_offset(producer), arrive)
                self.line_link[net] = self._link(link)

    def _add_stubs(self, cancelled: Cancelled | None) -> None:
        """A label above each consumer of a cut value; one that counts them where there are many."""
        for target, producers in polled(self.nets.cut.items(), cancelled):
            unit, item = self.graph.units[target], self.place[target]
            producers = [p for p in producers if self._enters((p, target))]
            groups = [producers] if target in self.nets.counted else [[p] for p in producers]
            for sources in filter(None, groups):
                single = len(sources) == 1
                label = self.names[sources[0]] if single else f"{len(sources):,} values"
                stub = self.items.add(*stub_size(label), self.items.rank[item] - 1, low=True)
                self.stubs.append((stub, label, unit.inputs[sources[0]][0], sources[0] if single else -1))
                for producer in sources:
                    link = Link(stub, item, 0.0, self._in_offset(producer, unit))
                    # A node takes one line from a stub, a group one into each port.
                    if not unit.name and producer != sources[0]:
                        self.stub_links[producer, target] = self.stub_links[sources[0], target]
                    else:
                        self.stub_links[producer, target] = self._link(link)

    def _add_tails(self, cancelled: Cancelled | None) -> None:
        """Below each producer of cut values, a label that says where they go."""
        consumers: dict[int, list[int]] = {}
        for target, producers in self.nets.cut.items():
            for producer in producers:
                consumers.setdefault(producer, []).extend(self.graph.units[target].inputs[producer])
        for producer, targets in polled(consumers.items(), cancelled):
            unit = self.graph.units[self.graph.unit_of[producer]]
            if unit.shape is not None and self.graph.local_of[producer] not in unit.shape.out_ports:
                continue
            single = len(targets) == 1
            label = f"→ {self.names[targets[0]] if single else f'{len(targets):,} more'}"
            item = self.place[self.graph.unit_of[producer]]
            tail = self.items.add(*stub_size(label), self.items.rank[item] + 1, aside=True)
            self.stubs.append((tail, label, producer, targets[0] if single else -1))
            self.tail_link[producer] = self._link(Link(item, tail, self._out_offset(producer), 0.0))

    def _origins(self, done: Arrangement) -> list[tuple[float, float]]:
        """Left top corner of every unit; unconnected ones go into a grid above the rest."""
        units = self.graph.units
        left = min((x - w / 2 for x, w in zip(done.x, self.items.width, strict=True)), default=0.0)
        right = max((x + w / 2 for x, w in zip(done.x, self.items.width, strict=True)), default=0.0)
        origins = [(0.0, 0.0)] * len(units)
        for i, item in self.place.items():
            origins[i] = (done.x[item] - units[i].width / 2, done.top[item])
        loose = [i for i in range(len(units)) if i not in self.place]
        limit = max(right - left, _GRID_WIDTH)
        x = y = row = 0.0
        for i in loose:
            if x and x + units[i].width > limit:
                x, y, row = 0.0, y + row + _SPACING.across, 0.0
            origins[i] = (left + x, y)
            x += units[i].width + _SPACING.across
            row = max(row, units[i].height)
        for i in loose:
            origins[i] = (origins[i][0], origins[i][1] - y - row - _SPACING.down)
        return origins

    def _collect(
        self, done: Arrangement, origins: list[tuple[float, float]], cancelled: Cancelled | None
    ) -> GraphLayout:
        units = self.graph.units
        pieces: list[FloatArray] = [done.pieces.astype(np.float32)]
        base = [0] * len(units)
        total = len(done.pieces)
        node_rect = np.zeros((len(self.names), 4), np.float32)
        node_group = np.full(len(self.names), -1, np.int32)
        boxes: list[tuple[float, float, float, float]] = []
        box_names: list[str] = []
        stub_rects = [
            (done.x[i] - self.items.width[i] / 2, done.top[i], self.items.width[i], self.items.height[i])
            for i, _, _, _ in self.stubs
        ]
        labels = [label for _, label, _, _ in self.stubs]
        ends = [(owner, peer) for _, _, owner, peer in self.stubs]
        for i, unit in enumerate(polled(units, cancelled, 512)):
            left, top = origins[i]
            if unit.shape is None:
                node_rect[unit.members[0]] = (left, top, unit.width, unit.height)
                continue
            node_rect[unit.members] = unit.shape.rects + np.array([left, top, 0, 0], np.float32)
            if unit.name:
                node_group[unit.members] = len(boxes)
                boxes.append((left, top, unit.width, unit.height))
                box_names.append(unit.name)
            base[i] = total
            total += len(unit.shape.pieces)
            pieces.append(unit.shape.pieces + np.array([left, top, left, top], np.float32))
            producers = list(unit.inputs)
            for stub in unit.shape.stubs:
                peer = unit.members[stub.producer] if stub.producer >= 0 else producers[~stub.producer]
                stub_rects.append((left + stub.left, top + stub.top, *INNER_STUB))
                labels.append(self.names[peer])
                ends.append((unit.members[stub.consumer], peer))
        self._collect_edges(done, base, cancelled)
        styles = np.array(self.graph.styles, np.uint8)
        poll(cancelled)
        edges = np.array(self.edges, np.int32).reshape(-1, 2)
        edge_cut = np.array(self.edge_cut, np.uint8)
        poll(cancelled)
        edge_start = np.array([0, *accumulate(self.edge_sizes)], np.int32)
        edge_pieces = np.array(self.edge_pieces, np.int32)
        poll(cancelled)
        every_piece = np.concatenate(pieces)
        poll(cancelled)
        return GraphLayout(
            names=tuple(self.names),
            group_names=tuple(box_names),
            stub_labels=tuple(labels),
            node_rect=node_rect,
            node_style=styles,
            node_group=node_group,
            group_rect=np.array(boxes, np.float32).reshape(-1, 4),
            pieces=every_piece,
            edges=edges,
            edge_start=edge_start,
            edge_pieces=edge_pieces,
            edge_cut=edge_cut,
            stub_rect=np.array(stub_rects, np.float32).reshape(-1, 4),
            stub_owner=np.array([owner for owner, _ in ends], np.int32),
            stub_peer=np.array([peer for _, peer in ends], np.int32),
        )

    def _collect_edges(self, done: Arrangement, base: list[int], cancelled: Cancelled | None) -> None:
        """The pieces of every FX edge: out of the producer's group, across, into the consumer's group."""
        graph, local_of = self.graph, self.graph.local_of
        for i, unit in enumerate(polled(graph.units, cancelled, 512)):
            first = base[i]
            if unit.shape is not None:
                for a, b in unit.inner:
                    local = (local_of[a], local_of[b])
                    used = [first + piece for piece in unit.shape.inner[local]]
                    self._edge(a, b, used, local in unit.shape.cut_edges)
                for a, b in unit.late_edges:
                    self._edge(a, b, [], True)
            for number, (producer, consumers) in enumerate(unit.inputs.items()):
                net = (producer, i)
                across = self._across(net, done, base)
                is_cut = net not in self.line_link
                for consumer in consumers:
                    if unit.shape is None or not unit.name:
                        self._edge(producer, consumer, across, is_cut)
                        continue
                    local = (number, local_of[consumer])
                    inside = [first + piece for piece in unit.shape.entries[local]]
                    if (~number, local[1]) in unit.shape.cut_edges:
                        self._edge(producer, consumer, inside, True)
                    else:
                        self._edge(producer, consumer, across + inside, is_cut)

    def _across(self, net: Net, done: Arrangement, base: list[int]) -> list[int]:
        """A net's pieces outside groups: its line, or the producer's tail and the consumer's stub."""
        producer, target = net
        source = self.graph.unit_of[producer]
        shape = self.graph.units[source].shape
        link = self.line_link.get(net, -1)
        if link < 0:
            link = self.tail_link.get(producer, -1)
        pieces: list[int] = done.link_pieces[link] if link >= 0 else []
        if shape is not None and link >= 0:
            leaving = shape.exits[self.graph.local_of[producer]]
            if leaving:
                pieces = [base[source] + piece for piece in leaving] + pieces
        if net in self.stub_links:
            pieces = pieces + done.link_pieces[self.stub_links[producer, target]]
        return pieces

    def _edge(self, producer: int, consumer: int, pieces: list[int], is_cut: bool) -> None:
        self.edges += (producer, consumer)
        self.edge_sizes.append(len(pieces))
        self.edge_pieces.extend(pieces)
        self.edge_cut.append(is_cut)
