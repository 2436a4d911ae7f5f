"""Fills of a captured graph become kernels in their place: on a driver made of records."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from compiler.runtime import driver  # noqa: E402
from compiler.runtime.fills import Fill, as_kernels  # noqa: E402
from compiler.runtime.observe import NO_STEP  # noqa: E402

GRAPH = 7
STEP, OTHER = ("inference", "extern0"), ("inference", "extern1")


class FakeDriver:
    """A graph of kernels (strings) and fills by node, and its edges."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, nodes: dict[int, Any], edges: set[tuple[int, int]]) -> None:
        self.at, self.pairs = nodes, edges
        self.refused: set[str] = set()
        for name in ("node_type", "memset_params", "nodes", "edges", "add_kernel", "add_edges", "remove_node"):
            monkeypatch.setattr(driver, name, getattr(self, name))

    def node_type(self, node: int) -> int:
        return driver.KERNEL if isinstance(self.at[node], str) else driver.MEMSET

    def memset_params(self, node: int) -> Any:
        return self.at[node]

    def nodes(self, graph: int) -> list[int]:
        return list(self.at)

    def edges(self, graph: int) -> list[tuple[int, int]]:
        return sorted(self.pairs)

    def add_kernel(self, graph: int, after: Sequence[int], params: Any) -> int | None:
        if params in self.refused:
            return None
        node = max(self.at) + 1
        self.at[node] = params
        self.pairs |= {(before, node) for before in after}
        return node

    def add_edges(self, graph: int, edges: Sequence[tuple[int, int]]) -> bool:
        if "edges" in self.refused:
            return False
        self.pairs |= set(edges)
        return True

    def remove_node(self, node: int) -> bool:
        if "removal" in self.refused and not isinstance(self.at[node], str):
            return False
        del self.at[node]
        self.pairs = {pair for pair in self.pairs if node not in pair}
        return True

    def paths(self) -> set[tuple[Any, Any]]:
        """Edges between what the nodes do."""
        return {(self.at[a], self.at[b]) for a, b in self.pairs}


def fill(address: int = 0x1000, value: int = 0, element: int = 1, width: int = 8, height: int = 1) -> Any:
    return driver.MemsetParams(address, 0, value, element, width, height)


def kernels(fills: Sequence[Fill]) -> list[Any]:
    return [f"fill {f.address:#x} with {f.value} x {f.count} {f.dtype}" for f in fills]


def test_fills_beside_each_other_and_between_kernels_become_kernels(monkeypatch: pytest.MonkeyPatch) -> None:
    nodes = {1: "a", 2: fill(), 3: fill(0x2000, 0xFFFF, 2, 4), 4: "b", 5: fill(0x3000, 0xFFFFFFFE, 4, 2), 6: "c"}
    fake = FakeDriver(monkeypatch, nodes, {(1, 2), (2, 3), (3, 4), (1, 5), (5, 6), (4, 6)})
    units = dict.fromkeys(range(1, 7), STEP)
    assert as_kernels(GRAPH, units, kernels) == 3
    first, second = "fill 0x1000 with 0 x 8 torch.uint8", "fill 0x2000 with -1 x 4 torch.int16"
    third = "fill 0x3000 with -2 x 2 torch.int32"
    assert fake.paths() == {("a", first), (first, second), (second, "b"), ("a", third), (third, "c"), ("b", "c")}
    assert units == dict.fromkeys(fake.at, STEP)


def test_steps_that_launch_no_kernel_are_left_to_be_followed(monkeypatch: pytest.MonkeyPatch) -> None:
    fake = FakeDriver(monkeypatch, {1: "a", 2: fill(), 3: fill()}, {(1, 2), (2, 3)})
    assert as_kernels(GRAPH, {1: STEP, 2: OTHER}, kernels) == 0
    assert set(fake.at) == {1, 2, 3}


def test_what_no_step_issued_stays_as_it_was_captured(monkeypatch: pytest.MonkeyPatch) -> None:
    fake = FakeDriver(monkeypatch, {1: "a", 2: fill()}, {(1, 2)})
    assert as_kernels(GRAPH, dict.fromkeys((1, 2), NO_STEP), kernels) == 0
    assert set(fake.at) == {1, 2}


@pytest.mark.parametrize("params", [fill(height=2), fill(element=8), fill(width=0), None])
def test_fills_of_another_kind_are_left(monkeypatch: pytest.MonkeyPatch, params: Any) -> None:
    fake = FakeDriver(monkeypatch, {1: "a", 2: params, 3: fill()}, {(1, 2), (2, 3)})
    assert as_kernels(GRAPH, dict.fromkeys((1, 2, 3), STEP), kernels) == 1
    assert {1, 2} < set(fake.at)


def test_nothing_changes_where_the_driver_does_not_tell_what_waits_for_what(monkeypatch: pytest.MonkeyPatch) -> None:
    fake = FakeDriver(monkeypatch, {1: "a", 2: fill(), 3: "b"}, set())
    assert as_kernels(GRAPH, dict.fromkeys((1, 2, 3), STEP), kernels) == 0
    assert set(fake.at) == {1, 2, 3}


def test_nothing_changes_where_kernels_cannot_be_had(monkeypatch: pytest.MonkeyPatch) -> None:
    (kernel,) = kernels([Fill(0x1000, torch.uint8, 8, 0)])
    for refused, make in (("", lambda fills: []), (kernel, kernels), ("edges", kernels), ("removal", kernels)):
        fake = FakeDriver(monkeypatch, {1: "a", 2: fill(), 3: "b"}, {(1, 2), (2, 3)})
        fake.refused = {refused}
        units = dict.fromkeys((1, 2, 3), STEP)
        assert as_kernels(GRAPH, units, make) == 0
        assert (set(fake.at), fake.pairs) == ({1, 2, 3}, {(1, 2), (2, 3)})
        assert set(units) == {1, 2, 3}
