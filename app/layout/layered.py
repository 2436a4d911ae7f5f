"""One level of the layout: items with ranks become rows, rows are ordered by barycenters, placed and routed.

The order goes by the graph alone: all boxes are as wide as each other while it is looked for. A longer label then moves
what is beside it, and never turns a row around, which would move all that hangs on that row.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from app.layout.items import Arrangement, Items, Link, Spacing
from app.layout.placement import place_in_order
from app.layout.ranks import Cancelled, poll
from app.layout.routing import Router

_PORT_SPACING = 14.0  # between edges that arrive at one item
_WEIGHT_ITEM, _WEIGHT_MIXED, _WEIGHT_DUMMY = 1.0, 2.0, 8.0  # long edges want to be straight most
_WEIGHT_ALONE = 0.1
_WEIGHT_CHAIN = 64.0  # an item's only producer whose only consumer it is
_WEIGHT_PINNED = 1e9
_AXIS_SHARE = 0.15  # how much joins lean to the middle; without it, equal lopsided layers add up
_ORDER_WIDTH = 100.0  # of every box while rows are ordered
_EDGE_SHARE = 0.6  # of the distance between boxes, between two edges
_STEEPEST = 0.12  # a gap grows with the widest move across it, so that curves do not lie flat
_STRAIGHT_SHARE = 0.6  # of the distance between rows where all edges go straight down
_WIDEST_GAP = 110.0


Neighbour = tuple[int, float, float]  # item, where it wants this one relative to itself, weight


def arrange(
    items: Items,
    links: Sequence[Link],
    spacing: Spacing,
    cancelled: Cancelled | None = None,
    pinned: Sequence[int] = (),
) -> Arrangement:
    """Places items and routes links. Every link must go to a higher rank. ``pinned`` items stay on the axis, at x 0.

    Raises:
        LayoutCancelled: ``cancelled`` returned True.
    """
    ordered = _Graph(*_alike(items, links), pinned)
    poll(cancelled)
    ordered.order(spacing, cancelled)
    poll(cancelled)
    graph = _Graph(items, links, pinned)
    poll(cancelled)
    graph.place(ordered, spacing, cancelled)
    poll(cancelled)
    return graph.route(spacing, cancelled)


def _alike(items: Items, links: Sequence[Link]) -> tuple[Items, list[Link]]:
    """The same graph with boxes of one width, their ports evenly apart."""
    out_ports: dict[int, set[float]] = {}
    in_ports: dict[int, set[float]] = {}
    for source, target, out_offset, in_offset in links:
        out_ports.setdefault(source, set()).add(out_offset)
        if in_offset is not None:
            in_ports.setdefault(target, set()).add(in_offset)
    leave = {item: _evenly(ports) for item, ports in out_ports.items()}
    arrive = {item: _evenly(ports) for item, ports in in_ports.items()}
    made = [
        Link(source, target, leave[source][out], None if into is None else arrive[target][into])
        for source, target, out, into in links
    ]
    return replace(items, width=[_ORDER_WIDTH if width else 0.0 for width in items.width]), made


def _evenly(ports: set[float]) -> dict[float, float]:
    step = _ORDER_WIDTH / (len(ports) + 1)
    return {port: step * (place + 1) - _ORDER_WIDTH / 2 for place, port in enumerate(sorted(ports))}


class _Graph:
    """The items and the dummies of long links. A dummy is where a link crosses a row."""

    def __init__(self, items: Items, links: Sequence[Link], pinned: Sequence[int]) -> None:
        self.items = items
        self.links = links
        self.pinned = pinned
        self.width = list(items.width)
        self.rank = list(items.rank)
        self.above: list[list[Neighbour]] = [[] for _ in self.rank]
        self.below: list[list[Neighbour]] = [[] for _ in self.rank]
        self.chains: dict[tuple[int, float], list[int]] = {}
        for link in links:
            self._connect(link)
        self.layers: list[list[int]] = [[] for _ in range(max(self.rank, default=-1) + 1)]
        for item, rank in enumerate(self.rank):
            self.layers[rank].append(item)
        self.offsets: list[list[float]] = [[] for _ in self.layers]
        self.x = [0.0] * (len(self.rank) + 1)  # the last one is the axis, an item that never moves

    def _connect(self, link: Link) -> None:
        """Adds a link, through dummies that it shares with the other links of the same value."""
        source, target, out_offset, in_offset = link
        rank, above, below = self.rank, self.above, self.below
        length = rank[target] - rank[source] - 1
        arrive = in_offset or 0.0
        if length <= 0:
            above[target].append((source, out_offset - arrive, _WEIGHT_ITEM))
            below[source].append((target, arrive - out_offset, _WEIGHT_ITEM))
            return
        chain = self.chains.setdefault((source, out_offset), [])
        while len(chain) < length:
            dummy = len(rank)
            self.width.append(0.0)
            rank.append(rank[source] + len(chain) + 1)
            if chain:
                above.append([(chain[-1], 0.0, _WEIGHT_DUMMY)])
                below[chain[-1]].append((dummy, 0.0, _WEIGHT_DUMMY))
            else:
                above.append([(source, out_offset, _WEIGHT_MIXED)])
                below[source].append((dummy, -out_offset, _WEIGHT_MIXED))
            below.append([])
            chain.append(dummy)
        above[target].append((chain[length - 1], -arrive, _WEIGHT_MIXED))
        below[chain[length - 1]].append((target, arrive, _WEIGHT_MIXED))

    def order(self, spacing: Spacing, cancelled: Cancelled | None) -> None:
        """Orders every row: down and up by neighbours on one side."""
        for row in range(len(self.layers)):
            self._pack(row, spacing)
        down, up = range(len(self.layers)), range(len(self.layers) - 1, -1, -1)
        above, below = self._pinning(self._leaning(self.above)), self._pinning(self._leaning(self.below))
        self._sweep(down, _either(above, below), True, spacing, cancelled)
        self._sweep(up, _either(below, above), True, spacing, cancelled)
        self._sweep(down, _either(above, below), True, spacing, cancelled)
        poll(cancelled)
        above, below = self._leading()
        self._sweep(up, _either(below, above), True, spacing, cancelled)

    def place(self, ordered: _Graph, spacing: Spacing, cancelled: Cancelled | None) -> None:
        """Places every row in the order that the same graph has: by what is above, then balanced between both sides."""
        self.layers, self.x = ordered.layers, ordered.x
        for row in range(len(self.layers)):
            self._measure(row, spacing)
        down, up = range(len(self.layers)), range(len(self.layers) - 1, -1, -1)
        above, below = self._leading()
        self._sweep(down, _either(above, below), False, spacing, cancelled)
        both = self._pinning([up_ + down_ for up_, down_ in zip(above, below, strict=True)])
        self._sweep(up, both, False, spacing, cancelled)
        poll(cancelled)
        self._straighten(above, spacing)

    def _pack(self, row: int, spacing: Spacing) -> None:
        """Puts a row's items side by side around the axis, and notes their distances from the first."""
        layer, width = self.layers[row], self.width
        offsets = self._measure(row, spacing)
        middle = (offsets[-1] + (width[layer[-1]] - width[layer[0]]) / 2) / 2 if layer else 0.0
        for item, offset in zip(layer, offsets, strict=True):
            self.x[item] = offset - middle

    def _measure(self, row: int, spacing: Spacing) -> list[float]:
        """Least distances of a row's centres from its first one, in the present order."""
        offsets: list[float] = []
        offset = before = 0.0
        for item in self.layers[row]:
            own = self.width[item]
            if offsets:
                # Two passing edges may run closer together than boxes.
                offset += (before + own) / 2 + (spacing.across if before or own else spacing.across * _EDGE_SHARE)
            before = own
            offsets.append(offset)
        self.offsets[row] = offsets
        return offsets

    def _sweep(
        self,
        rows: range,
        neighbours: list[list[Neighbour]],
        reorder: bool,
        spacing: Spacing,
        cancelled: Cancelled | None,
    ) -> None:
        """Moves each row's items to the weighted mean of where their neighbours want them, in that order if asked."""
        x = self.x
        for count, row in enumerate(rows):
            if not count % 128:
                poll(cancelled)
            layer = self.layers[row]
            if len(layer) == 1 and len(neighbours[layer[0]]) == 1:
                other, shift, _ = neighbours[layer[0]][0]
                x[layer[0]] = x[other] + shift
                continue
            wished: list[float] = []
            weights: list[float] = []
            for item in layer:
                links = neighbours[item]
                if len(links) == 1:
                    other, shift, total = links[0]
                    wished.append(x[other] + shift)
                elif links:
                    total = moment = 0.0
                    for other, shift, weight in links:
                        total += weight
                        moment += weight * (x[other] + shift)
                    wished.append(moment / total)
                else:
                    wished.append(x[item])
                    total = _WEIGHT_ALONE
                weights.append(total)
            if len(layer) == 1:
                x[layer[0]] = wished[0]
                continue
            offsets = self.offsets[row]
            if reorder and wished != sorted(wished):
                order = sorted(range(len(layer)), key=wished.__getitem__)
                layer[:] = [layer[i] for i in order]
                wished = [wished[i] for i in order]
                weights = [weights[i] for i in order]
                offsets = self._measure(row, spacing)
            for item, value in zip(layer, place_in_order(wished, weights, offsets), strict=True):
                x[item] = value

    def _leading(self) -> tuple[list[list[Neighbour]], list[list[Neighbour]]]:
        """The neighbours that placement follows: a chain's items follow one another alone and so stand straight.

        Without this every parameter beside a chain pulls it a little, and a deep graph leans over by thousands of
        pixels. Late items (parameters, stubs) never lead anything else.
        """
        boxes = len(self.items.rank)
        low, aside = self.items.low, self.items.aside
        above: list[list[Neighbour]] = []
        for item, links in enumerate(self.above):
            if item < boxes and len(links) > 1:
                early = [link for link in links if link[0] >= boxes or not low[link[0]]] or links
                near = [link for link in early if link[0] < boxes]
                links = near if len(near) == 1 else early
            above.append(links)
        below: list[list[Neighbour]] = []
        for item, links in enumerate(self.below):
            if item < boxes and len(links) > 1:
                near = [link for link in links if link[0] < boxes and not aside[link[0]]]
                links = near if len(near) == 1 else links
            below.append(links)
        above, below = self._pinning(above), self._pinning(below)
        for item, links in enumerate(above):
            if len(links) == 1 and item < boxes:
                source, shift, _ = links[0]
                if source < boxes and len(below[source]) == 1 and below[source][0][0] == item:
                    above[item] = [(source, shift, _WEIGHT_CHAIN)]
                    below[source] = [(item, -shift, _WEIGHT_CHAIN)]
        return self._leaning(above), self._leaning(below)

    def _pinning(self, neighbours: list[list[Neighbour]]) -> list[list[Neighbour]]:
        """The neighbours, with the axis as the only one of pinned items."""
        for item in self.pinned:
            neighbours[item] = [(len(self.rank), 0.0, _WEIGHT_PINNED)]
        return neighbours

    def _leaning(self, neighbours: list[list[Neighbour]]) -> list[list[Neighbour]]:
        """The neighbours, with the axis added where there are several."""
        axis = len(self.rank)
        return [
            [*links, (axis, 0.0, _AXIS_SHARE * sum(link[2] for link in links))] if len(links) > 1 else links
            for links in neighbours
        ]

    def _straighten(self, above: list[list[Neighbour]], spacing: Spacing) -> None:
        """Stands chains of boxes and long links upright, with as few bends as their rows leave room for."""
        place = [0] * len(self.rank)
        for layer in self.layers:
            for i, item in enumerate(layer):
                place[item] = i
        for chain in self._chains_of_boxes(above):
            self._stand(chain, None, place, spacing)
        for (source, out_offset), dummies in self.chains.items():
            self._stand([(dummy, 0.0) for dummy in dummies], self.x[source] + out_offset, place, spacing)

    def _chains_of_boxes(self, above: list[list[Neighbour]]) -> list[list[tuple[int, float]]]:
        """Runs of items that follow one another alone, each with its offset from the run's first."""
        follower: dict[int, tuple[int, float]] = {}
        for item in range(len(self.items.rank)):
            if len(above[item]) == 1 and above[item][0][2] == _WEIGHT_CHAIN:
                source, shift, _ = above[item][0]
                follower[source] = (item, shift)
        followers = {item for item, _ in follower.values()}
        chains: list[list[tuple[int, float]]] = []
        for first in follower:
            if first in followers:
                continue
            chain = [(first, 0.0)]
            while chain[-1][0] in follower:
                item, shift = follower[chain[-1][0]]
                chain.append((item, chain[-1][1] + shift))
            chains.append(chain)
        return chains

    def _stand(self, chain: list[tuple[int, float]], aim: float | None, place: list[int], spacing: Spacing) -> None:
        """Aligns a chain in straight runs; each goes on as long as its items' free ranges have a common part.

        Runs keep to ``aim``, where the chain comes from, or else to where their items are on average.
        """
        x, start = self.x, 0
        while start < len(chain):
            low, high = self._range(*chain[start], place, spacing)
            end = start + 1
            while end < len(chain):
                left, right = self._range(*chain[end], place, spacing)
                if max(low, left) > min(high, right):
                    break
                low, high = max(low, left), min(high, right)
                end += 1
            run = chain[start:end]
            mean = sum(x[item] - offset for item, offset in run) / len(run)
            wish = mean if aim is None else aim
            if aim is not None and end == len(chain) and self.below[run[-1][0]] and not low <= wish <= high:
                target, shift, _ = self.below[run[-1][0]][0]
                wish = x[target] + shift
            wish = min(max(wish, low), high)
            for item, offset in run:
                x[item] = wish + offset
            aim = None if aim is None else wish
            start = end

    def _range(self, item: int, offset: float, place: list[int], spacing: Spacing) -> tuple[float, float]:
        """From where to where an item, less its offset, may move without touching its row's neighbours."""
        layer, i, x, own = self.layers[self.rank[item]], place[item], self.x, self.width[item]
        left, right = -math.inf, math.inf
        if i:
            other = layer[i - 1]
            gap = spacing.across if own or self.width[other] else spacing.across * _EDGE_SHARE
            left = x[other] + (self.width[other] + own) / 2 + gap
        if i + 1 < len(layer):
            other = layer[i + 1]
            gap = spacing.across if own or self.width[other] else spacing.across * _EDGE_SHARE
            right = x[other] - (self.width[other] + own) / 2 - gap
        return min(left, x[item]) - offset, max(right, x[item]) - offset

    def route(self, spacing: Spacing, cancelled: Cancelled | None) -> Arrangement:
        """Gives rows their heights and links their pieces."""
        items, rank, x = self.items, self.rank, self.x
        row_height = [0.0] * len(self.layers)
        for item, height in enumerate(items.height):
            row_height[rank[item]] = max(row_height[rank[item]], height)
        reach = [0.0] * len(self.layers)
        for item, targets in enumerate(self.below):
            for target, shift, _ in targets:
                reach[rank[item]] = max(reach[rank[item]], abs(x[target] - x[item] - shift))
        row_top: list[float] = []
        y = 0.0
        for row, height in enumerate(row_height):
            row_top.append(y)
            bent = spacing.down if reach[row] > 1.0 else spacing.down * _STRAIGHT_SHARE
            y += height + min(max(bent, _STEEPEST * reach[row]), _WIDEST_GAP)
        row_bottom = [top + height for top, height in zip(row_top, row_height, strict=True)]
        tops = [
            row_bottom[rank[i]] - height if items.low[i] else row_top[rank[i]] for i, height in enumerate(items.height)
        ]
        self._raise(tops, row_bottom, spacing)
        poll(cancelled)
        ports = self._arrival_ports()
        poll(cancelled)
        router = Router(x, tops, items.height, rank, row_top, row_bottom)
        link_pieces: list[list[int]] = []
        for i, link in enumerate(self.links):
            if not i % 1024:
                poll(cancelled)
            link_pieces.append(router.link(link, self.chains.get((link.source, link.out_offset), []), ports[i]))
        return Arrangement(x[: len(tops)], tops, np.array(router.pieces, np.float64).reshape(-1, 4), link_pieces)

    def _raise(self, tops: list[float], row_bottom: list[float], spacing: Spacing) -> None:
        """Moves an item up to its only producer where the producer's row is high and leaves room below it.

        The room must be the producer's own column: nothing else leaves the producer, and the item is within its width.
        """
        items, rank, x = self.items, self.rank, self.x
        room = [row_bottom[rank[item]] for item in range(len(tops))]
        for layer in self.layers:
            for item in layer:
                if item >= len(tops) or len(self.above[item]) != 1 or items.low[item] or item in self.pinned:
                    continue
                source = self.above[item][0][0]
                if source >= len(tops) or len(self.below[source]) != 1:
                    continue
                if abs(x[item] - x[source]) > (items.width[source] - items.width[item] + spacing.across) / 2:
                    continue
                top = tops[source] + items.height[source] + spacing.down
                if top + items.height[item] <= room[source]:
                    tops[item] = top
                    room[item] = room[source]

    def _arrival_ports(self) -> list[float]:
        """The x at which each link arrives; links without a fixed port spread over the target in order of origin."""
        x, rank = self.x, self.rank
        ports = [0.0] * len(self.links)
        free: dict[int, list[tuple[float, int]]] = {}
        for i, (source, target, out_offset, in_offset) in enumerate(self.links):
            if in_offset is not None:
                ports[i] = x[target] + in_offset
                continue
            length = rank[target] - rank[source] - 1
            origin = x[self.chains[source, out_offset][length - 1]] if length > 0 else x[source] + out_offset
            free.setdefault(target, []).append((origin, i))
        for target, arriving in free.items():
            arriving.sort()
            room = max(self.items.head[target] / 2 - 8.0, 0.0)
            step = min(_PORT_SPACING, 2 * room / max(len(arriving) - 1, 1))
            # An edge from straight above stays straight; the others come in beside it.
            wished = [min(max(origin, x[target] - room), x[target] + room) for origin, _ in arriving]
            weights = [8.0 if wish == origin else 1.0 for wish, (origin, _) in zip(wished, arriving, strict=True)]
            offsets = [step * place for place in range(len(arriving))]
            placed = place_in_order(wished, weights, offsets)
            low, high = x[target] - room, x[target] + room - offsets[-1]
            for port, offset, (_, i) in zip(placed, offsets, arriving, strict=True):
                ports[i] = min(max(port - offset, low), high) + offset
        return ports


def _either(first: list[list[Neighbour]], second: list[list[Neighbour]]) -> list[list[Neighbour]]:
    """Each item's neighbours on the first side, or on the second if it has none there."""
    return [a or b for a, b in zip(first, second, strict=True)]
