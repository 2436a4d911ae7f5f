"""One captured graph compiled: the middle of the pipeline, from ATen graph to launches, memory plan and wrapper."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import torch

from compiler.codegen.wrapper import generate_wrapper
from compiler.errors import CompileError, sentence
from compiler.fusion import Partition, partition
from compiler.ir import Program
from compiler.kernel_library import KernelLibrary
from compiler.lowering.graph import lower_graph
from compiler.options import Options
from compiler.passes.biases import biases_apart
from compiler.passes.layout import channels_last, wants_channels_last
from compiler.passes.own_kernels import with_own_kernels
from compiler.passes.padding import pad_products
from compiler.planning.combine import combine, numbered
from compiler.planning.donated import donated_inputs
from compiler.planning.memory import MemoryPlan, plan_memory
from compiler.planning.order import Ordered, lower_peak
from compiler.planning.partitions import refused_steps
from compiler.planning.schedule import Launch, Scheduled, schedule
from compiler.provenance import provenance_of
from compiler.report import Stage, Target
from compiler.stages import OnStage, StageEvent

WORTH_A_HOOK = 1 << 16  # bytes: a hook takes some ten µs of every iteration (runtime/tangents.py)


@dataclass(eq=False)
class CompiledRegion:
    """Everything that the stages made of one graph."""

    name: str
    kind: str
    graph: torch.fx.GraphModule
    program: Program
    partition: Partition
    steps: list[Scheduled]
    plan: MemoryPlan
    kernels: dict[str, str]  # launch -> kernel
    wrapper: str
    wrapper_names: dict[str, Any]
    stages: list[Stage] = field(default_factory=list)
    ordered: Ordered | None = None  # how the order of ``steps`` was chosen
    fallback: CompileError | None = None  # why nothing was compiled, and the graph runs as captured


class _Stages:
    """The stages of a region as they pass: told to whoever listens, timed, and named in an error that one raises.

    ``graph`` is that whose nodes errors name.
    """

    def __init__(
        self, region: str, graph: torch.fx.GraphModule, on_stage: OnStage | None, span: tuple[float, float]
    ) -> None:
        self.passed: list[Stage] = []
        self._region = region
        self.graph = graph
        self._on_stage = on_stage
        self._span = span

    @contextmanager
    def stage(self, title: str, low: float, high: float) -> Iterator[Callable[[float], None]]:
        """A stage from ``low`` to ``high`` (of 1) of the region's work; what it yields tells how much of it is done."""
        self._tell(title, low)
        start = time.perf_counter()
        try:
            yield lambda done: self._tell(title, low + done * (high - low))
        except CompileError as error:
            raise _located(error, title, self.graph) from (error.__cause__ or error)
        except Exception as error:
            raise CompileError(sentence(error), stage=title) from error
        ms = (time.perf_counter() - start) * 1e3
        self.passed.append(Stage(title, ms, self._region))
        self._tell(title, high, ms)

    def _tell(self, title: str, done: float, ms: float | None = None) -> None:
        if self._on_stage is not None:
            begin, end = self._span
            self._on_stage(StageEvent(title, self._region, begin + done * (end - begin), ms))


def compile_region(
    graph: torch.fx.GraphModule,
    *,
    name: str,
    kind: str,
    target: Target,
    library: KernelLibrary,
    on_stage: OnStage | None = None,
    span: tuple[float, float] = (0.0, 1.0),
) -> CompiledRegion:
    """Run the stages lower, fuse, plan, generate and compile on an ATen graph with fake values.

    ``span`` is the part of the whole compilation's progress that this region covers.

    Raises:
        CompileError: a stage failed; it names the stage and, where known, the FX node.
    """
    stages = _Stages(name, graph, on_stage, span)
    options = library.options
    donated = donated_inputs(graph)
    with stages.stage("lower", 0.0, 0.2):
        graph = stages.graph = _rewritten(graph, kind, target, library)
        program = lower_graph(graph, target)
    with stages.stage("fuse", 0.2, 0.3):
        parts = partition(program, options)
    with stages.stage("generate", 0.3, 0.4):
        launches = schedule(parts, program, options)
    with stages.stage("plan", 0.4, 0.45):
        ordered = lower_peak(
            launches,
            program,
            options,
            given_up=saved_inputs(graph) if kind == "backward" else (),
            donated=donated,
            refused=refused_steps(launches, graph, capture_collectives=options.graph_collectives).keys(),
            finish=combine if options.horizontal_fusion else numbered,
        )
        steps, plan = ordered.steps, ordered.plan
    with stages.stage("compile", 0.45, 1.0) as progress:
        kernels = library.add([s for s in steps if isinstance(s, Launch)], progress)
        wrapper, names = generate_wrapper(program, steps, plan, kernels)
    return CompiledRegion(
        name, kind, graph, program, parts, steps, plan, kernels, wrapper, names, stages.passed, ordered
    )


def _rewritten(
    graph: torch.fx.GraphModule, kind: str, target: Target, library: KernelLibrary
) -> torch.fx.GraphModule:
    """The graph with the operands of cuBLAS's and cuDNN's calls laid out as these want them. What is faster is tried on
    the GPU where ``library`` tunes its kernels there."""
    graph = with_own_kernels(graph)
    graph = biases_apart(graph, library.time_bias if library.tunes else None)
    if kind == "inference" and wants_channels_last(graph, target):
        graph = channels_last(graph)
    if library.options.pad_products:
        graph = pad_products(graph, target, library.time_padding if library.tunes else None)
    return graph


def saved_inputs(graph: torch.fx.GraphModule) -> frozenset[str]:
    """The inputs of a backward graph that its forward computed and saved for it. Nobody else holds them, but for those
    that the forward returned, too."""
    names = [node.name for node in graph.graph.nodes if node.op == "placeholder"]
    return frozenset(name for name in names if not name.startswith(("primals", "tangents")))


def tangents_at_the_peak(region: CompiledRegion, options: Options) -> list[int]:
    """Positions of the gradients that a backward is given, where the peak is lower if each is freed at its last use."""
    graph, plan = region.graph, region.plan
    given = [buffer for buffer in region.program.inputs if buffer is not None and buffer.name.startswith("tangents")]
    freed = {buffer.name for buffer in given} | plan.given_up.keys()
    best = plan_memory(region.steps, region.program, options, freed, donated_inputs(graph)).peak_bytes
    if best + WORTH_A_HOOK > plan.peak_bytes + sum(buffer.bytes for buffer in given):
        return []
    return [index for index, buffer in enumerate(region.program.inputs) if buffer in given]


def _located(error: CompileError, stage: str, graph: torch.fx.GraphModule) -> CompileError:
    """The error with the stage it happened in and the user's line behind its node."""
    node = next((n for n in graph.graph.nodes if n.name == error.node), None)
    frames = provenance_of(node).frames if node is not None else []
    source = f"{frames[0].file}:{frames[0].line}, in {frames[0].function}: {frames[0].code}" if frames else ""
    return CompileError(
        error.message,
        stage=error.stage or stage,
        node=error.node,
        source=source,
        hint=error.hint or "The option fallback=eager runs this part of the model without compiling it.",
    )


def launch_counts(regions: Sequence[CompiledRegion]) -> Mapping[str, int]:
    """Kernel -> launches in one iteration over all regions."""
    counts: dict[str, int] = {}
    for region in regions:
        for kernel in region.kernels.values():
            counts[kernel] = counts.get(kernel, 0) + 1
    return counts
