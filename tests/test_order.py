"""The order of the steps: another one computes the same, needs less memory at its peak, and is taken only then."""

from __future__ import annotations

import itertools
from dataclasses import dataclass, replace
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from compiler.describe import describe_region
from compiler.ir import Buffer, Extern, TensorRef
from compiler.options import DEFAULTS, Options
from compiler.planning.dependencies import dependencies
from compiler.planning.memory import may_alias, plan_memory
from compiler.planning.order import lower_peak
from compiler.planning.schedule import Launch, Scheduled, writes_of
from compiler.report import MemoryOrder
from tests.graphs import compiled
from tests.memory_model import example_of, measure
from tests.test_memory import buffer, call, launch, program

aten = torch.ops.aten


@dataclass
class Random:
    """A random schedule, what the caller gets of it, and the inputs that nobody else holds."""

    steps: list[Scheduled]
    outputs: list[Buffer]
    inputs: list[Buffer]
    given_up: list[str]


@st.composite
def schedules(draw: st.DrawFn) -> Random:
    """Launches, calls, calls that may return a view, calls that write into what others made, and random draws."""
    inputs = [replace(buffer(f"in{n}", draw(st.sampled_from([4, 64]))), kind="input") for n in range(2)]
    made: list[Buffer] = list(inputs)
    steps: list[Scheduled] = []
    for number in range(draw(st.integers(3, 14))):
        reads = draw(st.lists(st.sampled_from(made), max_size=3, unique=True))
        new = [buffer(f"b{number}", draw(st.sampled_from([1, 8, 64])))]
        kind = draw(st.sampled_from(["launch", "launch", "launch", "call", "view", "write", "random"]))
        if kind == "launch":
            steps.append(launch(f"s{number}", reads, new))
        elif kind == "write" and reads:
            step = call(f"s{number}", aten.mm.default, reads, [])
            steps.append(replace(step, mutates=(reads[0].name,), keeps_order=True))
            continue
        else:
            target = aten.as_strided.default if kind == "view" and reads else aten.mm.default
            steps.append(replace(call(f"s{number}", target, reads, new), keeps_order=kind == "random"))
        made += new
    outputs = draw(st.lists(st.sampled_from(made), min_size=1, max_size=3, unique=True))
    return Random(steps, outputs, inputs, ["in0"] if draw(st.booleans()) else [])


def program_of(made: Random) -> Any:
    known = program(made.steps, made.outputs)
    known.inputs = tuple(made.inputs)
    return known


def run(made: Random, steps: list[Scheduled]) -> list[Any]:
    """What the outputs are, as expressions; names that may share memory hold one value."""
    place: dict[str, str] = {b.name: b.name for b in made.inputs}
    held: dict[str, Any] = {b.name: b.name for b in made.inputs}
    drawn = 0
    for step in steps:
        read = tuple(held[place[name]] for name in step.reads)
        if isinstance(step, Extern) and step.keeps_order:
            read = (*read, drawn)
            drawn += 1
        for b in writes_of(step):
            if isinstance(step, Extern) and may_alias(step):
                place[b.name] = place[step.reads[0]]
            else:
                place[b.name] = b.name
                held[b.name] = (step.name, read)
        for name in step.mutates if isinstance(step, Extern) else ():
            held[place[name]] = (step.name, read)
    return [held[place[b.name]] for b in made.outputs]


@settings(max_examples=200, deadline=None)
@given(schedules())
def test_any_order_that_keeps_the_dependencies_computes_the_same(made: Random) -> None:
    expected = run(made, made.steps)
    graph = dependencies(made.steps)
    for latest in (False, True):
        left, order = set(range(len(made.steps))), []
        while left:
            ready = [p for p in left if not graph.before[p] & left]
            order.append(max(ready) if latest else min(ready, key=lambda p: (p % 3, p)))
            left.remove(order[-1])
        assert run(made, [made.steps[p] for p in order]) == expected


@settings(max_examples=200, deadline=None)
@given(schedules())
def test_the_chosen_order_computes_the_same_and_its_peak_is_no_higher(made: Random) -> None:
    known = program_of(made)
    found = lower_peak(made.steps, known, given_up=made.given_up)
    assert sorted(s.name for s in found.steps) == sorted(s.name for s in made.steps)
    assert run(made, found.steps) == run(made, made.steps)
    captured = plan_memory(made.steps, known, DEFAULTS, made.given_up).peak_bytes
    assert found.captured_peak == captured
    assert found.plan.peak_bytes == plan_memory(found.steps, known, DEFAULTS, made.given_up).peak_bytes
    if found.policy is MemoryOrder.CAPTURED:
        assert found.steps == made.steps
    else:
        assert found.plan.peak_bytes < captured
        assert 0 < found.moved < len(made.steps)
    again = lower_peak(made.steps, known, given_up=made.given_up)
    assert [s.name for s in again.steps] == [s.name for s in found.steps]


def wide_then_narrow() -> tuple[list[Scheduled], list[Buffer]]:
    """Four large results, each read by a small one: one after another, or all large ones at once."""
    large, small = [buffer(f"l{n}", 1000) for n in range(4)], [buffer(f"s{n}", 1) for n in range(4)]
    steps: list[Scheduled] = [call(f"make{n}", aten.mm.default, [], [b]) for n, b in enumerate(large)]
    steps += [launch(f"sum{n}", [large[n]], [small[n]]) for n in range(4)]
    return steps, small


def test_large_results_are_used_before_the_next_is_made() -> None:
    steps, outputs = wide_then_narrow()
    found = lower_peak(steps, program(steps, outputs))
    assert (found.captured_peak, found.plan.peak_bytes) == (16004, 4016)
    assert found.policy in (MemoryOrder.FORWARD, MemoryOrder.BACKWARD)
    kept = lower_peak(steps, program(steps, outputs), Options(reorder=False))
    assert (kept.policy, kept.steps, kept.plan.peak_bytes) == (None, steps, 16004)


def test_the_captured_order_is_left_where_it_would_need_most_and_no_earlier() -> None:
    """The large result waits for one that frees what both come from. What costs least at each step is no way there:
    from the front the last result would be made first, and be held."""
    whole, part, large, small, apart = (buffer(n, size) for n, size in zip("abcde", (20, 10, 30, 10, 10), strict=True))
    steps: list[Scheduled] = [
        call("whole", aten.mm.default, [], [whole]),
        call("part", aten.mm.default, [whole], [part]),
        call("large", aten.mm.default, [part], [large]),
        call("small", aten.mm.default, [whole], [small]),
        call("apart", aten.mm.default, [], [apart]),
    ]
    found = lower_peak(steps, program(steps, [large, small, apart]))
    assert [s.name for s in found.steps] == ["whole", "part", "small", "large", "apart"]
    assert (found.captured_peak, found.plan.peak_bytes) == (240, 200)
    assert found.policy is MemoryOrder.BUDGET


def test_what_the_forward_saved_is_used_up_first() -> None:
    """A gradient that frees two saved tensors goes before one that frees none."""
    saved = [replace(buffer(name, 1000), kind="input") for name in ("a", "b")]
    first, second = buffer("first", 1000), buffer("second", 10)
    steps: list[Scheduled] = [
        call("grow", aten.mm.default, [], [first]),
        call("shrink", aten.mm.default, saved, [second]),
        call("end", aten.mm.default, [first, second], [buffer("out", 1)]),
    ]
    known = program(steps, list(writes_of(steps[-1])))
    known.inputs = tuple(saved)
    found = lower_peak(steps, known, given_up=["a", "b"])
    assert [s.name for s in found.steps] == ["shrink", "grow", "end"]
    assert (found.captured_peak, found.plan.peak_bytes) == (12040, 8040)
    assert lower_peak(steps, known).policy is MemoryOrder.CAPTURED, "held by others, they are not freed"


def test_no_order_parts_what_one_cuda_graph_could_hold() -> None:
    steps, outputs = wide_then_narrow()
    found = lower_peak(steps, program(steps, outputs), refused=range(4))
    assert found.policy is MemoryOrder.CAPTURED, "every large result is made outside, and has one reader inside"


def test_the_report_says_what_the_order_is_for() -> None:
    def function(*x: Tensor) -> list[Tensor]:
        large = [a.exp() @ b for a, b in itertools.pairwise(x)]
        return [(made @ made).sum() for made in large]

    region, library = compiled(function, *torch.randn(5, 32, 32))
    memory = describe_region(region, library, library.target).memory
    assert memory.order in (MemoryOrder.FORWARD, MemoryOrder.BACKWARD)
    assert memory.peak_bytes < memory.captured_peak_bytes
    assert 0 < memory.moved_steps < len(region.steps)
    assert [s.name for s in region.steps if isinstance(s, Launch)] == [
        f"group{i}" for i, s in enumerate(region.steps) if isinstance(s, Launch)
    ], "launches are named after their places"


SMALL: dict[str, dict[str, Any]] = {
    "softmax": {"rows": 64, "columns": 100},
    "rms_norm_residual": {"rows": 64, "columns": 96},
    "mlp": {"batch": 64, "width": 64, "layers": 4},
    "dropout": {},
    "transformer_block": {},
    "llama_block": {},
}


@pytest.mark.parametrize("name", SMALL)
def test_an_iteration_needs_no_more_memory_than_in_eager(name: str) -> None:
    """Counted by storages, our own wrapper on fake tensors against the model's own ops."""
    model, inputs, training = example_of(name, SMALL[name])
    found = measure(model, inputs, training)
    assert 0 < found.compiled <= found.eager
    assert all(r.ordered is not None and r.plan.peak_bytes <= r.ordered.captured_peak for r in found.regions)
    if name == "transformer_block":
        kept = measure(model, inputs, training, Options(reorder=False))
        assert found.compiled < 0.9 * kept.compiled, "the gradients of the weights free what they read"


def test_the_last_weights_gradient_waits_for_what_frees_its_neighbours() -> None:
    """Three projections of one value: their gradients for it become one before the largest weight's is made."""
    model, inputs, _ = example_of("llama_block", {})
    found = measure(model, inputs, training=True)
    (ordered,) = (r.ordered for r in found.regions if r.kind == "backward")
    assert ordered is not None
    assert ordered.policy is MemoryOrder.BUDGET
    assert found.compiled < 0.99 * found.eager


def test_a_gradient_in_the_memory_of_what_was_saved_for_it_lowers_the_peak() -> None:
    model, inputs, _ = example_of("conv_bn_relu", {"batch": 2, "channels": 4, "size": 16})
    found = measure(model, inputs, training=True)
    assert found.compiled < 0.85 * found.eager
    kept = measure(model, inputs, training=True, options=Options(memory_reuse=False))
    assert kept.compiled > found.eager


def test_saved_tensors_are_freed_as_the_backward_goes() -> None:
    model, inputs, _ = example_of("mlp", {"batch": 64, "width": 64, "layers": 4})
    found = measure(model, inputs, training=True)
    backward = next(r for r in found.regions if r.kind == "backward")
    assert backward.plan.given_up
    returned = {x.buffer.name for x in backward.program.outputs if isinstance(x, TensorRef)}
    freed = {n for line in backward.wrapper.splitlines() if line.startswith("    del ") for n in line[8:].split(", ")}
    assert backward.plan.given_up.keys() - returned <= freed
