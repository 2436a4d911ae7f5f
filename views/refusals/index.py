"""Why two nodes of a region are in different kernels: look-ups over its refusals."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping

from compiler.report import Refusal, RefusalRule, Region
from views.look import format as fmt


class RefusalIndex:
    """Refusals by the two nodes they name, and by the units that these are in."""

    def __init__(self, region: Region, unit_of: Mapping[str, str]) -> None:
        """``unit_of``: node -> the group or extern call that computes it."""
        self._unit_of = unit_of
        self._of_nodes: dict[frozenset[str], Refusal] = {}
        of_units: dict[frozenset[str], list[Refusal]] = defaultdict(list)
        for refusal in region.refusals:
            self._of_nodes[frozenset((refusal.a, refusal.b))] = refusal
            of_units[frozenset((unit_of.get(refusal.a, ""), unit_of.get(refusal.b, "")))].append(refusal)
        self._of_units = {units: sorted(found, key=lambda r: -r.bytes_lost) for units, found in of_units.items()}

    def of_nodes(self, a: str, b: str) -> Refusal | None:
        """The refusal that names exactly these two."""
        return self._of_nodes.get(frozenset((a, b)))

    def between(self, a: str, b: str) -> Refusal | None:
        """Why the units of two nodes are apart: the refusal that names the nodes, else the units' costliest one."""
        exact = self.of_nodes(a, b)
        if exact is not None:
            return exact
        units = self._unit_of.get(a, ""), self._unit_of.get(b, "")
        return next(iter(self._of_units.get(frozenset(units), ())), None) if all(units) else None


def refusal_text(refusal: Refusal) -> str:
    """A refusal's rule and numbers as one sentence."""
    return _sentence(fmt.REFUSAL_RULES[refusal.rule] + (f" ({refusal.detail})" if refusal.detail else ""))


def unrecorded(has_call: bool) -> str:
    """Why two units are apart of which no refusal tells: a library call needs none, for it cannot be fused."""
    return fmt.REFUSAL_RULES[RefusalRule.EXTERN if has_call else RefusalRule.NO_REASON_RECORDED]


def unrecorded_text(has_call: bool) -> str:
    """The same as a sentence."""
    return _sentence(unrecorded(has_call))


def _sentence(words: str) -> str:
    return f"{words[:1].upper()}{words[1:]}."


def lost_text(refusal: Refusal) -> str:
    """What the refusal costs; "" where that is nothing."""
    if not refusal.bytes_lost:
        return ""
    return f"Fusing {refusal.a} and {refusal.b} would have saved {fmt.size(refusal.bytes_lost)} of traffic (estimated)."
