"""A region's schedule cut into the parts that a CUDA Graph can hold and the steps that have to run outside.

A step is refused for what is known of it before anything runs: it waits for the GPU, works on the CPU, needs a size or
a number that only the GPU knows, or is an op that says of itself that it must not be captured. What else cannot be
captured is found by trying (``runtime/partitioned.py``).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import torch

from compiler import collectives
from compiler.ir import Extern, Program, ScalarRef, TensorRef, numbers_in, symbol_names, symbols_of
from compiler.lowering.extern import chooses_on_cpu, reaches_memory
from compiler.planning.schedule import Launch, Scheduled
from compiler.provenance import provenance_of
from compiler.report import ExternReason, SkipReason

_RULES = {
    ExternReason.HOST_SYNC: ("host_sync", "the CPU waits for a value of the GPU, which a captured graph cannot do"),
    ExternReason.DATA_DEPENDENT_SHAPE: ("data_dependent_shape", "a size is known only when the GPU has computed it"),
    ExternReason.CPU_TENSOR: ("cpu_op", "it works on CPU tensors, which a captured graph would freeze"),
}


@dataclass(frozen=True)
class Piece:
    """Steps ``first`` to ``last`` (exclusive) of a schedule, as a function from what it reads to what it makes.

    ``captured``: a CUDA Graph may hold it. ``reads`` and ``makes`` name variables of the wrapper; ``makes`` only those
    that a later piece or the caller needs.
    """

    first: int
    last: int
    captured: bool
    reads: tuple[str, ...]
    makes: tuple[str, ...]


def refused_steps(
    steps: Sequence[Scheduled], graph: torch.fx.GraphModule, *, capture_collectives: bool = False
) -> dict[int, SkipReason]:
    """Positions of the steps that no graph can hold, each with its reason, FX node and source line.

    ``capture_collectives``: graphs may hold collectives, where all of the schedule's are NCCL's.
    """
    apart = _collectives_apart(steps, capture_collectives)
    nodes = {node.name: node for node in graph.graph.nodes}
    numbers = {
        name
        for step in steps
        if isinstance(step, Extern)
        for name, output in zip(step.result_names, step.outputs, strict=True)
        if output is None
    }
    found_out = {b.symbol for step in steps if isinstance(step, Extern) for b in step.bindings}
    inputs = {node.name for node in graph.graph.nodes if node.op == "placeholder"}
    found = {}
    for position, step in enumerate(steps):
        rule = _refusal(step, numbers, inputs) if isinstance(step, Extern) else None
        if rule is None and apart and isinstance(step, Extern) and step.reason is ExternReason.COLLECTIVE:
            rule = ("collective", apart)
        if rule is None and found_out & symbols_used(step):
            rule = _RULES[ExternReason.DATA_DEPENDENT_SHAPE]
        if rule is not None:
            name = step.fx_node if isinstance(step, Extern) else step.origins[0] if step.origins else ""
            node = nodes.get(name)
            frames = provenance_of(node).frames if node is not None else []
            op = str(node.target) if node is not None else step.name
            found[position] = SkipReason(rule[0], f"{op}: {rule[1]}", name, frames[0] if frames else None)
    return found


def _collectives_apart(steps: Sequence[Scheduled], capture: bool) -> str:
    """Why the schedule's collectives run outside of graphs; "" where graphs may hold them."""
    calls = [step for step in steps if isinstance(step, Extern) and step.reason is ExternReason.COLLECTIVE]
    for step in calls:
        if collectives.waits(step.target):
            continue
        device = next((output.device for output in step.outputs if output is not None), torch.device("cpu"))
        backend = collectives.backend_of(step.target, step.args, step.kwargs, device)
        if backend != "nccl":
            return f"its group's backend is {backend or 'not known'}, and graphs hold collectives of NCCL alone"
    if calls and not capture:
        return (
            "a capture would run it three times, which is right only where every process captures at the same call; "
            "the option graph_collectives says that they do"
        )
    return ""


def _refusal(step: Extern, numbers: Collection[str], inputs: Collection[str]) -> tuple[str, str] | None:
    if chooses_on_cpu(step.target):
        return "control_flow", "the CPU chooses at every call what runs; a graph would keep its first choice"
    if step.reason in _RULES:
        return _RULES[step.reason]
    if reaches_memory(step.target) and any(name in inputs for name in step.reads):
        return "unsafe_op", "it takes elements by their place in an input's memory, which a graph may have moved"
    if torch.Tag.cudagraph_unsafe in getattr(step.target, "tags", ()):
        return "unsafe_op", "the op is tagged as unsafe in a CUDA Graph"
    if any(name in numbers for name in step.reads):
        return "host_sync", "it uses a number that the CPU reads from the GPU at every call"
    if step.bindings:
        return _RULES[ExternReason.DATA_DEPENDENT_SHAPE]
    return None


def split(program: Program, steps: Sequence[Scheduled], refused: Mapping[int, object]) -> list[Piece]:
    """The schedule as pieces, in order: runs of steps that can be captured, and runs of those that cannot.

    A single launch gains nothing from a graph, so alone between two refused steps it runs as they do.
    """
    bounds: list[tuple[int, int, bool]] = []
    for position in range(len(steps)):
        captured = position not in refused
        if bounds and bounds[-1][2] is captured:
            bounds[-1] = (bounds[-1][0], position + 1, captured)
        else:
            bounds.append((position, position + 1, captured))
    merged: list[tuple[int, int, bool]] = []
    for first, last, captured in bounds:
        worth = captured and (last - first > 1 or len(bounds) == 1)
        if merged and merged[-1][2] is worth:
            merged[-1] = (merged[-1][0], last, worth)
        else:
            merged.append((first, last, worth))
    sources = {b.symbol: b.name for b in program.bindings}
    returned = set(returned_names(program))
    pieces = []
    for first, last, captured in merged:
        made = list(dict.fromkeys(name for step in steps[first:last] for name in made_by(step)))
        before = [name for step in steps[first:last] for name in _read_by(step, sources) if name not in made]
        needed = returned | {name for step in steps[last:] for name in _read_by(step, sources)}
        reads = tuple(n for n in dict.fromkeys(before) if n not in program.constants)
        pieces.append(Piece(first, last, captured, reads, tuple(n for n in made if n in needed)))
    return pieces


def made_by(step: Scheduled) -> tuple[str, ...]:
    """Names of the variables that a step makes, the sizes that it finds out included."""
    if isinstance(step, Launch):
        return tuple(b.name for b in step.stored)
    return (*step.result_names, *(b.symbol for b in step.bindings))


def returned_names(program: Program) -> list[str]:
    """Names of the variables that the program's outputs are made of."""
    names = [x.buffer.name if isinstance(x, TensorRef) else x.name for x in _references(program.outputs)]
    sources = {b.symbol: b.name for b in program.bindings}
    names += [sources.get(symbol, symbol) for symbol in sorted(symbol_names(numbers_in(program.outputs)))]
    return list(dict.fromkeys(names))


def symbols_used(step: Scheduled) -> set[str]:
    """The capture's symbols that a step's sizes are made of, by name."""
    if isinstance(step, Extern):
        return symbols_of(step)
    layouts = [n for buffer in step.stored for n in (*buffer.size, *buffer.stride)]
    return symbol_names([*layouts, *step.kernel.largest, *(value for _, value in step.kernel.sizes)])


def _read_by(step: Scheduled, sources: Mapping[str, str]) -> list[str]:
    """The variables that a step reads; a size that an input tells is read from that input."""
    return [*step.reads, *(sources.get(symbol, symbol) for symbol in sorted(symbols_used(step)))]


def _references(outputs: Sequence[object]) -> list[TensorRef | ScalarRef]:
    return [x for x in outputs if isinstance(x, TensorRef | ScalarRef)]
