"""The memory plan: when each intermediate buffer is born and dies, and whose storage it takes over.

Greedy, along the schedule: a buffer takes the storage of a dead one with the same element count, dtype and device,
unless keeping that for it would raise the peak. A kernel writes its result over an operand that nobody needs any more,
where it reads each element only at the point where it writes it. What a scatter writes lies in the memory that it goes
on with, always; what is written into an input in that input's. Inputs that the caller gives up (what a forward saved
for its backward) count until their last use; those of them that it donates, which nobody else can see, are written over
like any operand. Otherwise inputs and returned buffers are never reused. A library call that may return a view of its
argument keeps the argument alive as long as its result.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from compiler.collectives import is_collective
from compiler.ir import Buffer, Extern, Loop, Program, ScalarRef, TensorRef
from compiler.lowering.extern import reaches_memory
from compiler.options import DEFAULTS, Options
from compiler.planning.schedule import Launch, Scheduled, writes_of


@dataclass(frozen=True)
class MemoryPlan:
    """``born`` and ``last_use`` give schedule positions; ``reuses`` maps a buffer to the one it takes over.

    ``in_place`` is the part of ``reuses`` in which the kernel that makes a buffer reads the other, perhaps an input.
    ``given_up`` are the inputs that only this schedule holds. ``peak_bytes`` is the largest sum of live intermediates
    and given-up inputs at any step, ``total_bytes`` the sum of all of them.
    """

    born: dict[str, int]
    last_use: dict[str, int]
    reuses: dict[str, str]
    buffers: dict[str, Buffer]
    peak_bytes: int
    total_bytes: int
    in_place: dict[str, str] = field(default_factory=dict)
    given_up: dict[str, Buffer] = field(default_factory=dict)


def plan_memory(
    steps: Sequence[Scheduled],
    program: Program,
    options: Options = DEFAULTS,
    given_up: Collection[str] = (),
    donated: Collection[str] = (),
) -> MemoryPlan:
    """Plan the intermediates of a schedule. ``given_up`` names inputs that nobody else holds, ``donated`` those of them
    that kernels may write over."""
    buffers = {buffer.name: buffer for step in steps for buffer in writes_of(step)}
    kept = returned_buffers(program)
    born, last_use = _lifetimes(steps, kept)
    launches = [step for step in steps if isinstance(step, Launch)]
    goes_on = {made: taken for launch in launches for made, taken in launch.into.items()}
    over = {made: taken for launch in launches for made, taken in launch.over.items()}
    assigned: dict[str, str] = {}
    in_place: dict[str, str] = {}
    if options.memory_reuse:
        continued = {**goes_on, **over}
        assigned, in_place = _assign_storage(steps, last_use, kept | over.keys(), continued, _named(program, donated))
    own = {name: buffer for name, buffer in buffers.items() if name not in over}  # the rest is the caller's memory
    mine = _named(program, given_up)
    changes = np.zeros(len(steps) + 2, np.int64)
    for name, buffer in own.items():
        shares = name in goes_on or name in in_place
        changes[born[name] + shares] += buffer.bytes  # where it goes on with what counts until then
        changes[last_use[name] + 1] -= buffer.bytes
    for name, buffer in mine.items():
        changes[0] += buffer.bytes
        changes[last_use.get(name, len(steps)) + 1] -= buffer.bytes
    live = np.cumsum(changes)
    peak = int(live.max())
    affordable = {}
    for heir, source in assigned.items():
        gap = live[last_use[source] + 1 : born[heir]]  # the storage is kept for the heir while nobody uses it
        if not gap.size or gap.max() + own[heir].bytes <= peak:
            gap += own[heir].bytes
            affordable[heir] = source
    total = sum(b.bytes for b in (*own.values(), *mine.values()))
    return MemoryPlan(born, last_use, {**goes_on, **over, **affordable}, own, peak, total, in_place, mine)


def _lifetimes(steps: Sequence[Scheduled], kept: set[str]) -> tuple[dict[str, int], dict[str, int]]:
    """For each name the position of the step that makes it, and of the last that needs it: past the end for ``kept``,
    and that of a view for what a library call may have returned a view of."""
    born: dict[str, int] = {}
    last_use: dict[str, int] = {}
    for position, step in enumerate(steps):
        last_use.update(dict.fromkeys(step.reads, position))
        made = [buffer.name for buffer in writes_of(step)]
        born.update(dict.fromkeys(made, position))
        for name in (*made, *(step.result_names if isinstance(step, Extern) else ())):
            last_use.setdefault(name, position)
    last_use.update(dict.fromkeys(kept, len(steps)))
    for step in reversed(steps):
        if isinstance(step, Extern) and may_alias(step):
            end = max((last_use[b.name] for b in writes_of(step)), default=-1)
            for name in step.reads:
                last_use[name] = max(last_use[name], end)
    return born, last_use


def _named(program: Program, names: Collection[str]) -> dict[str, Buffer]:
    return {b.name: b for b in program.inputs if b is not None and b.name in names}


def returned_buffers(program: Program) -> set[str]:
    """The buffers (and other results of calls) whose memory the caller gets."""
    tensors = {ref.buffer.name for ref in program.outputs if isinstance(ref, TensorRef)}
    return tensors | {ref.name for ref in program.outputs if isinstance(ref, ScalarRef)}


def may_alias(step: Extern) -> bool:
    """Whether a result may share memory with an argument, as the call's schema says.

    A collective counts as such a call: what it was given is read until its result has been waited for, and the wait
    returns the very tensor.
    """
    schema: Any = getattr(step.target, "_schema", None)
    if schema is None or is_collective(step.target):
        return True
    return any(r.alias_info is not None for r in schema.returns)


def views_from_calls(steps: Sequence[Scheduled]) -> set[str]:
    """The buffers that library calls return and that may be views of their arguments."""
    calls = [step for step in steps if isinstance(step, Extern) and may_alias(step)]
    return {output.name for call in calls for output in call.outputs if output is not None}


def inputs_left_in_place(program: Program) -> set[str]:
    """The inputs that no copy may stand in for, but for those that kernels write into.

    Their memory is returned, whole or as a view, by the program or a library call; or a library call reads elements
    by where they lie in memory, between the tensor's own, too.
    """
    inputs = {buffer.name for buffer in program.inputs if buffer is not None}
    written = {name for step in program.steps if isinstance(step, Loop) for name in (step.into, step.over)}
    needed = {ref.buffer.name for ref in program.outputs if isinstance(ref, TensorRef)}
    for step in program.steps:
        if isinstance(step, Extern) and (may_alias(step) or reaches_memory(step.target)):
            needed.update(step.reads)
    return (needed & inputs) - written


def _assign_storage(
    steps: Sequence[Scheduled],
    last_use: dict[str, int],
    kept: set[str],
    goes_on: dict[str, str],
    donated: dict[str, Buffer],
) -> tuple[dict[str, str], dict[str, str]]:
    """Who takes over whose storage, and which of them do so while their kernel still reads it."""
    continued = set(goes_on.values())
    aliased = {
        name
        for step in steps
        if isinstance(step, Extern) and may_alias(step)
        for name in (*step.reads, *(b.name for b in writes_of(step)))
    }
    unusable = kept | aliased | continued
    dying: dict[int, list[Buffer]] = defaultdict(list)
    for step in steps:
        for buffer in step.stored if isinstance(step, Launch) else ():
            if buffer.name not in unusable:
                dying[last_use[buffer.name]].append(buffer)
    fresh = [*donated.values(), *(b for step in steps for b in _fresh_memory(step))]
    own = {b.name: b for b in fresh if b.name not in unusable}
    free: dict[tuple[Any, ...], list[str]] = defaultdict(list)
    reuses: dict[str, str] = {}
    in_place: dict[str, str] = {}
    written_over: set[str] = set()
    for position, step in enumerate(steps):
        if isinstance(step, Launch):
            operands = [own[name] for name in step.reads if name in own and last_use[name] == position]
            for buffer in step.stored:
                if buffer.name in goes_on:
                    continue
                operand = next((x for x in operands if _may_be_written_over(step, x, buffer)), None)
                if operand is not None:
                    operands.remove(operand)
                    written_over.add(operand.name)
                    reuses[buffer.name] = in_place[buffer.name] = operand.name
                    continue
                pool = free[buffer.numel, buffer.dtype, buffer.device]
                if pool:
                    reuses[buffer.name] = pool.pop()
        for buffer in dying[position]:
            if buffer.name not in written_over:
                free[buffer.numel, buffer.dtype, buffer.device].append(buffer.name)
    return reuses, in_place


def _fresh_memory(step: Scheduled) -> tuple[Buffer, ...]:
    """The buffers that a step makes in memory that is nobody else's."""
    if isinstance(step, Launch):
        return step.stored
    return () if may_alias(step) else tuple(b for b in step.outputs if b is not None)


def _may_be_written_over(step: Launch, operand: Buffer, result: Buffer) -> bool:
    """Whether the kernel reads the operand only at the points where it writes the result, and before it does.

    Kernels load everything before they store, but for reductions that pass over their rows more than once.
    """
    group = step.group
    if step.parts > 1 or (group.rvars and not step.kernel.reads_once):
        return False
    alike = (operand.numel, operand.dtype, operand.device) == (result.numel, result.dtype, result.device)
    reads, written = group.reads.get(operand.name, []), group.writes.get(result.name)
    if not alike or not operand.numel or written is None or any(read != written for read in reads):
        return False
    return all(v in written.free_symbols for v in (*group.xvars, *group.rvars) if v.extent != 1)
