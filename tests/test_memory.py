"""The memory plan: storage is taken over only from the dead."""

from __future__ import annotations

from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from torch import Tensor

from compiler.codegen.wrapper import generate_piece
from compiler.ir import Buffer, Extern, Program, TensorRef
from compiler.planning.memory import MemoryPlan, may_alias, plan_memory
from compiler.planning.partitions import Piece, split
from compiler.planning.schedule import Launch, Scheduled, writes_of
from compiler.report import ExternReason
from compiler.runtime.partitioned import input_uses
from tests.graphs import compiled

aten = torch.ops.aten
CPU = torch.device("cpu")


def buffer(name: str, size: int, dtype: torch.dtype = torch.float32) -> Buffer:
    return Buffer(name, (size,), (1,), dtype, CPU, "computed", name)


def launch(name: str, reads: list[Buffer], stores: list[Buffer]) -> Launch:
    """A launch as far as the plan looks at it: what it reads and what it stores."""
    kernel: Any = SimpleNamespace(arguments=(*reads, *stores), reads_once=False)
    group: Any = SimpleNamespace(scattered={}, overwritten={}, rvars=("r",))
    return Launch(name, group, kernel, tuple(stores))


def call(name: str, target: Any, reads: list[Buffer], outputs: list[Buffer]) -> Extern:
    names = tuple(b.name for b in reads)
    return Extern(
        name, name, target, (), {}, tuple(outputs), len(outputs) > 1, names, (), (name,),
        ExternReason.LIBRARY_IS_FASTER, "", False,
    )  # fmt: skip


def whole(b: Buffer) -> TensorRef:
    return TensorRef(b, b.size, b.stride, 0, True)


def program(steps: list[Scheduled], outputs: list[Buffer]) -> Program:
    return Program((), {}, list(steps), tuple(whole(b) for b in outputs))  # type: ignore[arg-type]


@dataclass
class Random:
    """A random schedule and the buffers that the caller gets."""

    steps: list[Scheduled]
    outputs: list[Buffer]


@st.composite
def schedules(draw: st.DrawFn) -> Random:
    """Launches, library calls, and calls that may return a view, each reading what earlier steps made."""
    made: list[Buffer] = []
    steps: list[Scheduled] = []
    for number in range(draw(st.integers(1, 12))):
        reads = draw(st.lists(st.sampled_from(made), max_size=3, unique=True)) if made else []
        count = draw(st.integers(1, 2))
        dtypes = st.sampled_from([torch.float32, torch.int32])
        new = [buffer(f"b{number}_{i}", draw(st.sampled_from([4, 4, 8])), draw(dtypes)) for i in range(count)]
        kind = draw(st.sampled_from(["launch", "launch", "launch", "call", "view"]))
        if kind == "launch":
            steps.append(launch(f"s{number}", reads, new))
        else:
            target = aten.mm.default if kind == "call" else aten.as_strided.default
            steps.append(call(f"s{number}", target, reads, new))
        made += new
    return Random(steps, draw(st.lists(st.sampled_from(made), min_size=1, max_size=3, unique=True)))


def storage_of(plan: MemoryPlan, name: str) -> str:
    while name in plan.reuses:
        name = plan.reuses[name]
    return name


def last_needed(steps: list[Scheduled], outputs: list[Buffer]) -> dict[str, int]:
    """When each buffer's contents are read for the last time, itself or through what may be a view of it."""
    needed = {b.name: position for position, step in enumerate(steps) for b in writes_of(step)}
    for position, step in enumerate(steps):
        needed.update(dict.fromkeys(step.reads, position))
    needed.update({b.name: len(steps) for b in outputs})
    for step in reversed(steps):
        if isinstance(step, Extern) and may_alias(step):
            for name in step.reads:
                needed[name] = max([needed[name], *(needed[b.name] for b in writes_of(step))])
    return needed


@settings(max_examples=150, deadline=None)
@given(schedules())
def test_no_two_live_buffers_share_storage(made: Random) -> None:
    plan = plan_memory(made.steps, program(made.steps, made.outputs))
    needed = last_needed(made.steps, made.outputs)
    for position in range(len(made.steps)):
        live = [name for name, born in plan.born.items() if born <= position <= needed[name]]
        places = [storage_of(plan, name) for name in live]
        assert len(set(places)) == len(places), f"at step {position}: {dict(zip(live, places, strict=True))}"


@settings(max_examples=150, deadline=None)
@given(schedules())
def test_storage_is_taken_over_whole_and_never_from_the_caller(made: Random) -> None:
    plan = plan_memory(made.steps, program(made.steps, made.outputs))
    taken = list(plan.reuses.values())
    assert len(set(taken)) == len(taken), "storage has one heir"
    for heir, source in plan.reuses.items():
        a, b = plan.buffers[heir], plan.buffers[source]
        assert (a.numel, a.dtype, a.device) == (b.numel, b.dtype, b.device)
    assert not {b.name for b in made.outputs} & set(taken)
    assert 0 < plan.peak_bytes <= plan.total_bytes


@settings(max_examples=150, deadline=None)
@given(schedules())
def test_the_peak_counts_storage_that_is_kept_for_its_heir(made: Random) -> None:
    plan = plan_memory(made.steps, program(made.steps, made.outputs))
    needed = last_needed(made.steps, made.outputs)
    held: dict[str, tuple[int, int, int]] = {}  # storage -> first step, last step, bytes
    for name, b in plan.buffers.items():
        first, last, size = held.get(storage_of(plan, name), (len(made.steps), 0, b.bytes))
        held[storage_of(plan, name)] = (min(first, plan.born[name]), max(last, needed[name]), size)
    for position in range(len(made.steps)):
        assert sum(size for first, last, size in held.values() if first <= position <= last) <= plan.peak_bytes


def test_storage_is_not_kept_through_the_peak() -> None:
    first, last = buffer("first", 100), buffer("last", 100)
    wide = [buffer(f"wide{n}", 1000) for n in range(2)]
    end = [buffer(f"end{n}", 1) for n in range(3)]
    steps: list[Scheduled] = [launch("s0", [], [first]), launch("s1", [first], [end[0]]), launch("s2", [], wide)]
    steps += [launch("s3", wide, [end[1]]), launch("s4", [], [last]), launch("s5", [last], [end[2]])]
    plan = plan_memory(steps, program(steps, end))
    assert "last" not in plan.reuses
    assert plan.peak_bytes == 4 * 2002
    low = [step for step in steps if step.name not in ("s2", "s3")]
    assert plan_memory(low, program(low, [end[0], end[2]])).reuses == {"last": "first"}


def test_a_chain_ping_pongs_between_two_buffers() -> None:
    b = [buffer(f"b{n}", 16) for n in range(5)]
    steps: list[Scheduled] = [launch("s0", [], [b[0]])]
    steps += [launch(f"s{n}", [b[n - 1]], [b[n]]) for n in range(1, 5)]
    plan = plan_memory(steps, program(steps, [b[4]]))
    assert plan.reuses == {"b2": "b0", "b3": "b1", "b4": "b2"}
    assert plan.peak_bytes == 2 * 64
    assert plan.total_bytes == 5 * 64


def test_a_view_keeps_its_argument_alive() -> None:
    a, view, c, d = (buffer(name, 16) for name in "avcd")
    for target, reused in ((aten.as_strided.default, False), (aten.mm.default, True)):
        steps: list[Scheduled] = [
            launch("s0", [], [a]), call("s1", target, [a], [view]), launch("s2", [], [c]), launch("s3", [view, c], [d]),
        ]  # fmt: skip
        assert ("c" in plan_memory(steps, program(steps, [d])).reuses) is reused


def test_a_real_program_reuses_and_still_returns_its_own_memory() -> None:
    def layers(x: Tensor, w: Tensor) -> Tensor:
        for _ in range(4):
            x = (x.softmax(-1) @ w).relu().softmax(-1) @ w
        return x.softmax(0)

    region, _ = compiled(layers, torch.randn(8, 8), torch.randn(8, 8))
    plan = region.plan
    assert plan.reuses
    assert plan.peak_bytes < plan.total_bytes
    returned = {ref.buffer.name for ref in region.program.outputs if isinstance(ref, TensorRef)}
    assert not returned & set(plan.reuses.values())
    assert all(f"reinterpret({source}," in region.wrapper for source in plan.reuses.values())


def test_the_wrapper_lets_go_of_every_intermediate_once() -> None:
    def layers(x: Tensor, w: Tensor) -> list[Tensor]:
        a = (x @ w).softmax(-1)
        values, _indices = a.topk(2)
        return [values * 2, (a @ w).exp().sum(0)]

    region, _ = compiled(layers, torch.randn(8, 8), torch.randn(8, 8))
    freed = [
        name for line in region.wrapper.splitlines() if line.startswith("    del ") for name in line[8:].split(", ")
    ]
    assert len(set(freed)) == len(freed)
    taken_over = set(region.plan.reuses.values())
    returned = {ref.buffer.name for ref in region.program.outputs if isinstance(ref, TensorRef)}
    assert set(region.plan.buffers) - returned - taken_over <= set(freed)


def test_an_input_that_is_overwritten_is_used_by_more_than_its_pointer() -> None:
    """Whoever patches addresses in a captured graph has to know that the kernel has this one twice."""

    def function(x: Tensor, y: Tensor) -> Tensor:
        x.copy_(y.exp())
        return y + 1

    region, _ = compiled(function, torch.randn(8), torch.randn(8))
    assert not [step for step in region.steps if isinstance(step, Extern)]
    overwriting = next(step for step in region.steps if isinstance(step, Launch) and step.over)
    x, y = (b.name for b in region.program.inputs if b is not None)
    assert list(overwriting.over.values()) == [x]
    assert x in overwriting.reads
    found = {use.name: use for use in input_uses(region, [x, y], [x, y], 0, len(region.steps))}
    assert (found[x].traced, found[y].traced) == (False, True)


def test_a_part_of_the_schedule_writes_into_the_input_itself() -> None:
    def function(x: Tensor, y: Tensor) -> Tensor:
        x.copy_(y.exp())
        return y + 1

    region, _ = compiled(function, torch.randn(8), torch.randn(8))
    x = next(b.name for b in region.program.inputs if b is not None)
    made = next(b.name for step in region.steps if isinstance(step, Launch) and step.over for b in step.stored)
    (piece,) = split(region.program, region.steps, {})
    text, _ = generate_piece(region.program, region.steps, region.plan, region.kernels, piece)
    assert f"{made} = reinterpret({x}," in text


def test_storage_that_was_taken_over_is_held_under_its_new_name_only() -> None:
    """Else it would live until the wrapper returns, whoever has it by then."""

    def layers(x: Tensor, w: Tensor) -> Tensor:
        for _ in range(4):
            x = (x.softmax(-1) @ w).relu().softmax(-1) @ w
        return x.softmax(0)

    region, _ = compiled(layers, torch.randn(8, 8), torch.randn(8, 8))
    lines = region.wrapper.splitlines()
    deletions = {i: line[8:].split(", ") for i, line in enumerate(lines) if line.startswith("    del ")}
    for heir, source in region.plan.reuses.items():
        taken = next(i for i, line in enumerate(lines) if f"{heir} = reinterpret({source}," in line)
        freed = next(i for i, names in deletions.items() if source in names)
        assert taken < freed <= taken + 3


def in_place(function: Any, *inputs: Tensor) -> dict[str, str]:
    """What is written over, by FX nodes: result -> operand."""
    region, _ = compiled(function, *inputs)
    buffers = region.plan.buffers
    return {buffers[a].fx_node: buffers[b].fx_node for a, b in region.plan.in_place.items()}


def test_a_result_is_written_over_an_operand_that_is_done_with() -> None:
    a, w = torch.randn(8, 8), torch.randn(8, 8)
    assert in_place(lambda a, w: (a @ w).relu() @ w, a, w) == {"relu": "mm"}
    assert in_place(lambda a, w: (a @ w).relu(), a, w) == {"relu": "mm"}, "the library made it, the caller may have it"
    assert list(in_place(lambda a, w: (a @ w).softmax(-1) @ w, a, w).values()) == ["mm"], "the row is in registers"


def test_what_is_read_elsewhere_or_later_is_not_written_over() -> None:
    a, w = torch.randn(8, 8), torch.randn(8, 8)

    def kept(a: Tensor, w: Tensor) -> Tensor:
        product = a @ w
        return (product.relu() @ w) + product

    assert "relu" not in in_place(kept, a, w)
    assert not in_place(lambda a, w: (a @ w).t() * 2 + (a @ w), a, w).keys() - {"add"}
    assert not in_place(lambda a, w: (a @ w).roll(1, 0).exp() @ w, a, w), "moved"
    wide = torch.randn(8, 20000)
    assert not in_place(lambda a, w: (a @ w).softmax(-1) @ w.t(), a, wide), "passed over more than once"
    assert not in_place(lambda a, w: (a @ w).relu().double() @ w.double(), a, w), "another size"
    assert not in_place(lambda a, w: a.relu() @ w, a, w), "the caller's"


def test_a_part_of_the_schedule_reuses_what_it_made_itself() -> None:
    def layers(x: Tensor, w: Tensor) -> Tensor:
        for _ in range(4):
            x = (x.softmax(-1) @ w).relu() @ w
        return x.exp()

    region, _ = compiled(layers, torch.randn(8, 8), torch.randn(8, 8))
    middle = len(region.steps) // 2
    first, second = (
        Piece(*bounds, True, (), ()) for bounds in ((0, middle), (middle, len(region.steps)))
    )
    made: list[set[str]] = [
        {b.name for step in region.steps[p.first : p.last] for b in writes_of(step)} for p in (first, second)
    ]
    for piece, inside in zip((first, second), made, strict=True):
        text, _ = generate_piece(region.program, region.steps, region.plan, region.kernels, piece)
        for heir, source in region.plan.reuses.items():
            assert (f"{heir} = reinterpret({source}," in text) == (heir in inside and source in inside)
    assert any(heir in made[1] and source in made[0] for heir, source in region.plan.reuses.items())
