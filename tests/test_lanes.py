"""Steps on several streams: what the schedule says they wait for, and that every stream really waits for it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("triton", reason="kernels are Triton's")

from torch import Tensor  # noqa: E402

from compiler.codegen.wrapper import generate_concurrent  # noqa: E402
from compiler.planning.lanes import Lanes, dependencies, lanes  # noqa: E402
from compiler.region import CompiledRegion  # noqa: E402
from compiler.runtime.executable import build  # noqa: E402
from compiler.runtime.forked import ForkedCall  # noqa: E402
from compiler.runtime.results import Conform  # noqa: E402
from tests.graphs import compiled  # noqa: E402

SIDE = 8


def branches(x: Tensor, a: Tensor, b: Tensor) -> Tensor:
    left, right = x @ a, x @ b
    return (torch.relu(left) @ b).softmax(-1) + (torch.tanh(right) @ a).softmax(-1)


def chain(x: Tensor, a: Tensor, b: Tensor) -> Tensor:
    return torch.relu(torch.relu(x @ a) @ b) @ a


def views(x: Tensor, a: Tensor, b: Tensor) -> Tensor:
    parts = torch.ops.aten.split_with_sizes(x @ a, [3, 5], 1)
    return torch.cat([parts[0] @ b[:3], parts[1] @ b[3:]], 1) + x.sum()


PROGRAMS = {"branches": branches, "chain": chain, "views": views}


def region_of(name: str) -> CompiledRegion:
    region, _ = compiled(PROGRAMS[name], *(torch.randn(SIDE, SIDE) for _ in range(3)))
    return region


def test_a_chain_needs_one_stream() -> None:
    assert lanes(region_of("chain").steps, 4) is None


def test_branches_get_streams_of_their_own() -> None:
    steps = region_of("branches").steps
    found = lanes(steps, 4)
    assert found is not None
    assert found.count == 2
    first = [position for position, before in enumerate(dependencies(steps)) if not before]
    assert len({found.lane[position] for position in first}) == 2
    assert any(found.waits)


class Log:
    """Streams that note for each step which steps are sure to be over when it begins."""

    def __init__(self) -> None:
        self.over: list[set[str]] = []  # of each stream
        self.now = 0
        self.begun_after: dict[str, set[str]] = {}

    def current(self) -> int:
        self.over = [set()]
        return 0

    def side(self, count: int) -> Sequence[int]:
        self.over += [set() for _ in range(count)]
        return range(1, count + 1)

    def use(self, stream: int) -> None:
        self.now = stream

    def record(self, stream: int) -> set[str]:
        return set(self.over[stream])

    def wait(self, stream: int, event: set[str]) -> None:
        self.over[stream] |= event

    def step(self, name: str) -> None:
        self.begun_after[name] = set(self.over[self.now])
        self.over[self.now].add(name)


@pytest.mark.parametrize("name", ["branches", "views"])
@pytest.mark.parametrize("most", [2, 3, 8])
def test_no_step_begins_before_what_it_needs_is_over(name: str, most: int) -> None:
    region = region_of(name)
    found = lanes(region.steps, most)
    assert isinstance(found, Lanes)
    assert found.count <= most
    log = Log()
    names = [step.name for step in region.steps]

    def make_call(mark: Any) -> Any:
        def call(args: list[Any]) -> None:
            for step in names:
                mark("inference", step)
                log.step(step)
            mark("", "")

        return call

    ForkedCall(make_call, names, found, log)([])
    for position, before in enumerate(dependencies(region.steps)):
        assert {names[earlier] for earlier in before} <= log.begun_after[names[position]]
    assert log.over[0] == set(names)  # the caller goes on after all of them
    assert log.now == 0


def test_nothing_is_taken_over_or_let_go_while_others_may_run() -> None:
    region = region_of("branches")
    text, _ = generate_concurrent(region.program, region.steps, region.plan, region.kernels, observed="inference")
    assert "del " not in text
    assert "reinterpret(buf" not in text


def test_an_error_leaves_the_callers_stream_current() -> None:
    region = region_of("branches")
    found = lanes(region.steps, 2)
    assert found is not None
    log = Log()
    common = (region.program, region.steps, region.plan, region.kernels)

    def make_call(mark: Any) -> Any:
        text, names = generate_concurrent(*common, observed="inference")

        def fails(*_: Any, **__: Any) -> None:
            raise ZeroDivisionError

        launchers = dict.fromkeys(region.kernels.values(), fails)
        return build(text, {**names, "mark": mark, "conform": Conform()}, launchers)

    with pytest.raises(ZeroDivisionError):
        ForkedCall(make_call, [step.name for step in region.steps], found, log)(
            [torch.randn(SIDE, SIDE) for _ in range(3)]
        )
    assert log.now == 0
