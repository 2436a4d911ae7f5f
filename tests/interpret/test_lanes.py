"""Steps on several streams: any two that touch the same memory, one of them to write, run one after the other.

What they touch is seen while they run: the storages that kernels and library calls are given and return.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from random import Random
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.utils import _pytree as pytree
from torch.utils._python_dispatch import TorchDispatchMode, _disable_current_modes

from compiler.backend import launchers_of
from compiler.codegen.wrapper import generate_concurrent
from compiler.options import Options
from compiler.planning.lanes import Lanes, lanes
from compiler.planning.schedule import Launch, Scheduled
from compiler.runtime.executable import Launcher, build
from compiler.runtime.forked import ForkedCall
from compiler.runtime.results import Conform
from tests.graphs import compiled
from tests.interpret.programs import random_program
from tests.test_lanes import Log

aten = torch.ops.aten
STREAMS = 4
Touched = dict[int, bool]  # storage -> whether it was written
Function = Callable[..., list[Tensor]]


class Watch(TorchDispatchMode):
    """The storages that each step is given, writes and returns. Nothing is freed, so none is two things."""

    def __init__(self) -> None:
        super().__init__()
        self.step = ""
        self.touched: dict[str, Touched] = defaultdict(dict)
        self._alive: list[Tensor] = []

    def note(self, tensor: Any, written: bool) -> None:
        """The step that runs touches the tensor."""
        if isinstance(tensor, Tensor) and tensor.numel():
            self._alive.append(tensor)
            storage = tensor.untyped_storage().data_ptr()
            touched = self.touched[self.step]
            touched[storage] = touched.get(storage, False) or written

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        if func.overloadpacket in (aten.empty, aten.empty_strided):
            return result  # memory for a step to come
        given = zip(func._schema.arguments, args, strict=False)
        named = {a.name: a for a in func._schema.arguments}
        pairs = [*given, *((named[name], value) for name, value in (kwargs or {}).items())]
        for argument, value in pairs:
            written = argument.alias_info is not None and argument.alias_info.is_write
            for leaf in pytree.tree_leaves(value):
                self.note(leaf, written)
        views = any(a.alias_info is not None for a in func._schema.arguments)
        for leaf in pytree.tree_leaves(result):
            self.note(leaf, not views)  # what a view returns it only names
        return result


def watched(launch: Launcher, written: Sequence[bool], watch: Watch) -> Launcher:
    """The kernel, noting its tensors."""

    def run(*args: Any, **keywords: Any) -> None:
        for tensor, writes in zip(args, written, strict=False):
            watch.note(tensor, writes)
        with _disable_current_modes():  # the interpreter copies what it is given, and back
            launch(*args, **keywords)

    return run


def touched_by(function: Function, inputs: Sequence[Tensor]) -> tuple[Lanes, Sequence[Scheduled], Watch, Log] | None:
    """Run the steps as they are for several streams; None where one is enough."""
    # As many kernels as there are loops, so that there is much to put in order.
    region, library = compiled(function, *inputs, options=Options(max_fused_loops=1, horizontal_fusion=False))
    found = lanes(region.steps, STREAMS)
    if found is None:
        return None
    watch, log = Watch(), Log()
    plain = launchers_of(region, library)
    assert plain is not None
    launchers: dict[str, Launcher] = {}
    for step in region.steps:
        if isinstance(step, Launch):
            stored = {buffer.name for buffer in step.stored}
            written = [argument.name in stored for argument in step.kernel.arguments]
            launchers[region.kernels[step.name]] = watched(plain[region.kernels[step.name]], written, watch)

    def make_call(mark: Any) -> Any:
        def at(name: str, unit: str) -> None:
            mark(name, unit)
            watch.step = unit
            if unit:
                log.step(unit)

        text, names = generate_concurrent(
            region.program, region.steps, region.plan, region.kernels, observed=region.name
        )
        return build(text, {**names, "mark": at, "conform": Conform()}, launchers)

    call = ForkedCall(make_call, [step.name for step in region.steps], found, log)
    with watch:
        call([x.clone() for x in inputs])
    return found, region.steps, watch, log


def unordered(function: Function, inputs: Sequence[Tensor]) -> list[tuple[str, str]]:
    """Pairs of steps that share memory which one of them writes, and that may run at the same time."""
    run = touched_by(function, inputs)
    if run is None:
        return []
    _, steps, watch, log = run
    faults = []
    for position, later in enumerate(steps):
        for earlier in steps[:position]:
            mine, other = watch.touched[later.name], watch.touched[earlier.name]
            shared = any(mine[storage] or other[storage] for storage in mine.keys() & other.keys())
            if shared and earlier.name not in log.begun_after[later.name]:
                faults.append((earlier.name, later.name))
    return faults


def writes_in_place(x: Tensor, y: Tensor) -> list[Tensor]:
    """Scatters and writes into an input beside readers of what they overwrite."""
    left, right = x @ y, y @ x
    total = left.sum(0) + right.amax(1)
    at = torch.arange(3)
    filled = left.index_put((at,), right[:3], accumulate=True)
    x.add_(1)
    return [total, filled + left, x @ right, right.t() * 2]


def returns_views(x: Tensor, y: Tensor) -> list[Tensor]:
    """Library calls that return parts of what they were given."""
    first, second = torch.ops.aten.split_with_sizes(x @ y, [3, 5], 1)
    return [first @ y[:3], second @ y[3:], first.relu() + 1, (y @ x).softmax(0)]


@pytest.mark.parametrize("function", [writes_in_place, returns_views])
def test_steps_that_share_memory_take_turns(function: Function) -> None:
    inputs = [torch.randn(8, 8) for _ in range(2)]
    run = touched_by(function, inputs)
    assert run is not None
    assert run[0].count > 1
    assert unordered(function, inputs) == []


def test_steps_of_random_programs_that_share_memory_take_turns() -> None:
    spread = 0
    for seed in range(12):
        random = Random(seed)
        parts = [random_program(random, 6) for _ in range(2)]
        inputs = [x for part in parts for x in part.inputs]
        count = len(parts[0].inputs)

        def both(*xs: Tensor, parts: Any = parts, count: int = count) -> list[Tensor]:
            return [*parts[0].function()(*xs[:count]), *parts[1].function()(*xs[count:])]

        spread += touched_by(both, inputs) is not None
        assert unordered(both, inputs) == [], f"seed {seed}\n{parts[0]}\n{parts[1]}"
    assert spread > 6


def test_a_pair_that_does_not_wait_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """The check itself: without the waits it finds what is out of order."""
    monkeypatch.setattr(
        "tests.interpret.test_lanes.lanes",
        lambda steps, most: Lanes(tuple(i % 2 for i in range(len(steps))), ((),) * len(steps), 2),
    )
    assert unordered(returns_views, [torch.randn(8, 8) for _ in range(2)])
