"""Which places of a graph hold an input's address, and that all of them follow it: on a driver made of records."""

from __future__ import annotations

import ctypes
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from compiler.runtime import driver  # noqa: E402
from compiler.runtime.patching import Place, patchable_copy, places_in, point_all  # noqa: E402

DEVICE, HOST = 2, 1


class FakeDriver:
    """Copies and fills by node, and what an instantiated graph was told."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.nodes: dict[int, Any] = {}
        self.told: list[tuple[int, Any]] = []
        self.refused: set[int] = set()
        for name in ("node_type", "memcpy_params", "memset_params", "set_memcpy", "set_memset"):
            monkeypatch.setattr(driver, name, getattr(self, name))
        monkeypatch.setattr(driver, "current_context", lambda: 1)

    def node_type(self, node: int) -> int:
        kinds = {driver.MemcpyParams: driver.MEMCPY, driver.MemsetParams: driver.MEMSET}
        return kinds.get(type(self.nodes[node]), driver.KERNEL)

    def memcpy_params(self, node: int) -> Any:
        return self.nodes[node]

    def memset_params(self, node: int) -> Any:
        return self.nodes[node]

    def set_memcpy(self, executable: int, node: int, params: Any, context: int) -> bool:
        self.told.append((node, (params.source.device, params.target.device)))
        return node not in self.refused

    def set_memset(self, executable: int, node: int, params: Any, context: int) -> bool:
        self.told.append((node, params.target))
        return node not in self.refused


def copy(source: int, target: int, size: int, **other: Any) -> driver.MemcpyParams:
    params = driver.MemcpyParams(width_bytes=size, height=other.get("height", 1), depth=1)
    params.source.device, params.target.device = source, target
    params.source.memory_type, params.target.memory_type = other.get("memory_type", DEVICE), DEVICE
    return params


def fill(target: int, size: int) -> driver.MemsetParams:
    return driver.MemsetParams(target, 0, 0, 4, size // 4, 1)


def test_copies_and_fills_follow_an_input_with_their_offset(monkeypatch: pytest.MonkeyPatch) -> None:
    fake = FakeDriver(monkeypatch)
    fake.nodes = {1: copy(0x1000, 0x9000, 64), 2: copy(0x8000, 0x1040, 64), 3: fill(0x1080, 32), 4: copy(0x2000, 0, 8)}
    nodes = [patchable_copy(node) for node in fake.nodes]
    known = [node for node in nodes if node is not None]
    assert len(known) == 4
    places = places_in(known, 0x1000, 0x100)
    assert [(place.position, place.offset) for place in places] == [(0, 0), (1, 0x40), (0, 0x80)]
    assert point_all([(places, 0x5000)], executable=7)
    assert fake.told == [(1, (0x5000, 0x9000)), (2, (0x8000, 0x5040)), (3, 0x5080)]


def test_a_node_that_several_inputs_move_in_is_told_once(monkeypatch: pytest.MonkeyPatch) -> None:
    fake = FakeDriver(monkeypatch)
    fake.nodes = {1: copy(0x1000, 0x2000, 64)}
    node = patchable_copy(1)
    assert node is not None
    assert point_all([([Place(node, 0)], 0x5000), ([Place(node, 1)], 0x6000)], executable=7)
    assert fake.told == [(1, (0x5000, 0x6000))]


def test_a_refusal_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    fake = FakeDriver(monkeypatch)
    fake.nodes = {1: copy(0x1000, 0x2000, 64), 2: fill(0x1000, 64)}
    fake.refused = {1}
    nodes = [node for node in map(patchable_copy, fake.nodes) if node is not None]
    assert not point_all([(places_in(nodes, 0x1000, 64), 0x5000)], executable=7)


@pytest.mark.parametrize(
    "node",
    [copy(0x1000, 0x2000, 64, height=2), copy(0x1000, 0x2000, 64, memory_type=HOST), ctypes.c_int(0)],
    ids=["rows", "host memory", "kernel"],
)
def test_what_is_no_copy_of_consecutive_bytes_on_the_gpu_is_left(monkeypatch: pytest.MonkeyPatch, node: Any) -> None:
    fake = FakeDriver(monkeypatch)
    fake.nodes = {1: node}
    assert patchable_copy(1) is None
