"""Links as pieces: down the rows that they cross, then over to their targets."""

from __future__ import annotations

from app.layout.items import Link


class Router:
    """Makes pieces, once for every stretch that several links share."""

    def __init__(
        self,
        x: list[float],
        top: list[float],
        height: list[float],
        rank: list[int],
        row_top: list[float],
        row_bottom: list[float],
    ) -> None:
        self.x, self.top, self.height, self.rank = x, top, height, rank
        self.row_top, self.row_bottom = row_top, row_bottom
        self.pieces: list[tuple[float, float, float, float]] = []
        self._leaving: dict[tuple[int, float], list[list[int]]] = {}

    def link(self, link: Link, chain: list[int], arrive: float) -> list[int]:
        """The pieces of one link: down its chain as far as it goes, then over to the target."""
        source, target, out_offset, _ = link
        row = self.rank[target]
        if self.top[target] < self.row_top[row] - 0.5:  # raised to its producer
            return [
                self._add(self.x[source] + out_offset, self.top[source] + self.height[source], arrive, self.top[target])
            ]
        length = max(self.rank[target] - self.rank[source] - 1, 0)
        leaving = self._leaving.setdefault((source, out_offset), [])
        if not leaving:
            leaving.append(self._exit(source, out_offset))
        while len(leaving) <= length:
            leaving.append([*leaving[-1], *self._step(source, out_offset, chain, len(leaving))])
        start = self.x[chain[length - 1]] if length else self.x[source] + out_offset
        pieces = [*leaving[length], self._add(start, self.row_bottom[row - 1], arrive, self.row_top[row])]
        if self.top[target] > self.row_top[row] + 0.5:
            pieces.append(self._add(arrive, self.row_top[row], arrive, self.top[target]))
        return pieces

    def _exit(self, source: int, out_offset: float) -> list[int]:
        """From an item's bottom straight to the bottom of its row, if the row is higher than the item."""
        bottom, row_bottom = self.top[source] + self.height[source], self.row_bottom[self.rank[source]]
        if row_bottom <= bottom + 0.5:
            return []
        x = self.x[source] + out_offset
        return [self._add(x, bottom, x, row_bottom)]

    def _step(self, source: int, out_offset: float, chain: list[int], number: int) -> list[int]:
        """From the row above a chain's dummy ``number`` (1 is the first) through the dummy's row."""
        dummy = chain[number - 1]
        start = self.x[chain[number - 2]] if number > 1 else self.x[source] + out_offset
        row, x = self.rank[dummy], self.x[dummy]
        if start == x:
            return [self._add(x, self.row_bottom[row - 1], x, self.row_bottom[row])]
        pieces = [self._add(start, self.row_bottom[row - 1], x, self.row_top[row])]
        if self.row_bottom[row] > self.row_top[row]:
            pieces.append(self._add(x, self.row_top[row], x, self.row_bottom[row]))
        return pieces

    def _add(self, x0: float, y0: float, x1: float, y1: float) -> int:
        self.pieces.append((x0, y0, x1, y1))
        return len(self.pieces) - 1
