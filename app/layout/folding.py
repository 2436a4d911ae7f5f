"""Which boxes of a nested drawing are open."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Folding:
    """Which boxes are open, by their keys. A stack in ``single`` shows one of its modules for all."""

    opened: frozenset[str] = frozenset()
    single: frozenset[str] = frozenset()

    def toggled(self, key: str, *, single: bool = False) -> Folding:
        """With a box closed if it is open, and else opened."""
        if key in self.opened:
            return Folding(self.opened - {key}, self.single - {key})
        return Folding(self.opened | {key}, self.single | {key} if single else self.single)

    def differs(self, other: Folding) -> frozenset[str]:
        """Keys of the boxes that are not drawn alike."""
        return (self.opened ^ other.opened) | (self.single ^ other.single)
