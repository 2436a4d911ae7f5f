"""One captured graph compiled: the middle of the pipeline, from ATen graph to launches, memory plan and wrapper."""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import torch

from compiler.codegen.attempts import attempt
from compiler.codegen.binary import read_binary
from compiler.codegen.compile import CompiledKernel, compile_binary, load_function
from compiler.codegen.config import choose_config, configs, grid_of
from compiler.codegen.kernel import KernelSource
from compiler.codegen.wrapper import generate_wrapper
from compiler.errors import CompileError, sentence
from compiler.fusion import Partition, partition
from compiler.ir import Program
from compiler.lowering.graph import lower_graph
from compiler.options import DEFAULTS, Options
from compiler.passes.biases import biases_apart
from compiler.passes.layout import channels_last, wants_channels_last
from compiler.passes.padding import pad_products
from compiler.passes.products import Choice, Padding, Product
from compiler.planning.combine import combine, numbered
from compiler.planning.donated import donated_inputs
from compiler.planning.memory import MemoryPlan, plan_memory
from compiler.planning.order import Ordered, lower_peak
from compiler.planning.partitions import refused_steps
from compiler.planning.schedule import Launch, Scheduled, schedule
from compiler.provenance import provenance_of
from compiler.report import Stage, Target
from compiler.runtime.autotune import tune, worth_tuning
from compiler.runtime.executable import gpu_launcher
from compiler.runtime.product_trials import time_bias, time_padding

MAX_COMPILE_THREADS = 8
MAX_TRIALS = 5  # configurations tried beside the default
WORTH_A_HOOK = 1 << 16  # bytes: a hook takes some ten µs of every iteration (runtime/tangents.py)


@dataclass(frozen=True)
class StageEvent:
    """A stage of a region began (``ms`` None) or ended. ``fraction`` (0..1) is how far the compilation has come."""

    stage: str
    region: str
    fraction: float
    ms: float | None = None


OnStage = Callable[[StageEvent], None]


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


# A kernel's text says nothing of what its pointers point to: sums of int64 and of float32 read alike.
KernelKey = tuple[str, tuple[torch.dtype, ...]]


class KernelLibrary:
    """Compiled kernels by their source and the dtypes of their arguments, so that identical layers share one."""

    def __init__(self, target: Target, *, binaries: bool, texts: bool, options: Options = DEFAULTS) -> None:
        """``binaries``: compile for the target (else only define); ``texts``: keep IR texts for the report.

        ``options`` hold for every region that shares the library.
        """
        self.target = target
        self.options = options
        self.binaries = binaries
        self.texts = texts
        # Times mean something only on the GPU that the kernels are for.
        self.tunes = binaries and target.local and options.autotune
        self.by_source: dict[KernelKey, CompiledKernel] = {}
        self._paddings: dict[tuple[Product, Padding], Choice | None] = {}
        self._biases: dict[Product, tuple[float, float] | None] = {}

    def add(self, launches: Sequence[Launch], on_progress: Callable[[float], None] | None = None) -> dict[str, str]:
        """Compile what is new among ``launches``; launch name -> kernel name."""
        fresh: list[CompiledKernel] = []
        names: dict[str, str] = {}
        for launch in launches:
            longer = launch.kernel.longer
            text = launch.kernel.source + (longer.source if longer is not None else "")
            key = (text, tuple(buffer.dtype for buffer in launch.kernel.arguments))
            if key not in self.by_source:
                kernel = self._define(launch)
                self.by_source[key] = kernel
                fresh.append(kernel)
            names[launch.name] = self.by_source[key].name
        if self.binaries and fresh:
            self._compile(fresh, on_progress)
        return names

    def time_padding(self, product: Product, padding: Padding) -> Choice | None:
        """A product as it is and padded, timed once; None where that cannot be."""
        if (product, padding) not in self._paddings:
            self._paddings[product, padding] = time_padding(product, padding, self.target)
        return self._paddings[product, padding]

    def time_bias(self, product: Product) -> tuple[float, float] | None:
        """A product with a bias and without, in µs, timed once; None where that cannot be."""
        if product not in self._biases:
            self._biases[product] = time_bias(product, self.target)
        return self._biases[product]

    def _define(self, launch: Launch) -> CompiledKernel:
        source = launch.kernel
        name = kernel_name(launch, len(self.by_source))
        text = source.source.replace("{name}", name)
        config = choose_config(source, self.target, self.options)
        kernel = CompiledKernel(name, text, source, config, grid_of(source, config), load_function(name, text))
        if source.longer is not None:
            kernel.for_rows = partial(self._for_rows, kernel)
        return kernel

    def _for_rows(self, kernel: CompiledKernel, block: int) -> CompiledKernel:
        """The kernel for rows that ``block`` holds, or with 0 the one that passes over longer ones.

        It is made when the first such row comes.
        """
        source = kernel.source
        name, text, function = kernel.name, kernel.text, kernel.function
        if not block:
            assert source.longer is not None
            source, name = source.longer, f"{kernel.name}_in_passes"
            text = source.source.replace("{name}", name)
            function = load_function(name, text)
        config = choose_config(source, self.target, self.options, row=block or None)
        made = CompiledKernel(name, text, source, config, grid_of(source, config), function)
        if self.binaries:
            made.binary = self._binary(made)
            made.compile_wide = partial(self._binary, made, wide=True)
        return made

    def _compile(self, kernels: Sequence[CompiledKernel], on_progress: Callable[[float], None] | None) -> None:
        # the first import of Triton's compiler from several threads at once would race
        import triton.compiler  # noqa: F401

        tuned = {id(k): self._candidates(k) for k in kernels if self.tunes and worth_tuning(k)}
        jobs = [*kernels, *(c for candidates in tuned.values() for c in candidates[1:])]
        workers = min(MAX_COMPILE_THREADS, os.cpu_count() or 1, len(jobs))
        with ThreadPoolExecutor(workers) as pool:
            for done, _ in enumerate(pool.map(self._compile_one, jobs), 1):
                if on_progress is not None:
                    on_progress(done / len(jobs))
            for kernel in kernels:
                if id(kernel) in tuned:
                    self._tune(kernel, tuned[id(kernel)])
            if self.texts:
                whole = [k for k in kernels if k.binary is not None]
                facts = pool.map(lambda kernel: read_binary(kernel.binary, self.target), whole)
                for kernel, read in zip(whole, facts, strict=True):
                    kernel.facts = read

    def _compile_one(self, kernel: CompiledKernel) -> None:
        try:
            kernel.binary = self._binary(kernel)
            kernel.compile_wide = partial(self._binary, kernel, wide=True)
        except Exception as error:  # Triton raises many kinds; the report shows the kernel with its error
            kernel.error = error_text(error)

    def _candidates(self, kernel: CompiledKernel) -> list[CompiledKernel]:
        """The kernel itself and copies in the other configurations that are worth a try."""
        others = [c for c in configs(kernel.source, self.target, self.options) if c != kernel.config][:MAX_TRIALS]
        return [kernel, *(replace(kernel, config=c, grid=grid_of(kernel.source, c)) for c in others)]

    def _tune(self, kernel: CompiledKernel, candidates: Sequence[CompiledKernel]) -> None:
        """Give the kernel the fastest of its configurations."""
        compiled = [c for c in candidates if c.binary is not None]
        device = torch.cuda.current_device()
        chosen, kernel.trials = tune(compiled, lambda candidate: gpu_launcher(candidate, device), self.target)
        kernel.config, kernel.grid, kernel.binary, kernel.error = chosen.config, chosen.grid, chosen.binary, ""

    def _binary(self, kernel: CompiledKernel, wide: bool = False) -> Any:
        return attempt(
            lambda: compile_binary(kernel.function, kernel.source, kernel.config, self.target, wide=wide)
        )


def error_text(error: BaseException) -> str:
    """An error and what it was raised from: Triton's own message often only marks the place."""
    lines = []
    cause: BaseException | None = error
    while cause is not None:
        lines.append(str(cause).strip() or type(cause).__name__)
        cause = cause.__cause__
    return "\n".join(dict.fromkeys(lines))


def kernel_name(launch: Launch, number: int) -> str:
    """ "pointwise_add_mul_relu_0": the kind, the ops in order without repeats, a number that makes it unique."""
    ops = list(dict.fromkeys(re.sub(r"_\d+$", "", node) for node in launch.origins))
    shown = "_".join(ops[:6]) + ("_etc" if len(ops) > 6 else "")
    return re.sub(r"\W", "_", f"{kind_of(launch.kernel)}_{shown}_{number}")


def kind_of(kernel: KernelSource) -> str:
    """ "pointwise" or "reduction"."""
    return "reduction" if kernel.domain.r is not None else "pointwise"


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
    stages: list[Stage] = []
    options = library.options
    donated = donated_inputs(graph)

    @contextmanager
    def stage(title: str, low: float, high: float) -> Iterator[None]:
        begin, width = span[0], span[1] - span[0]
        if on_stage is not None:
            on_stage(StageEvent(title, name, begin + low * width))
        start = time.perf_counter()
        try:
            yield
        except CompileError as error:
            raise _located(error, title, graph) from (error.__cause__ or error)
        except Exception as error:
            raise CompileError(sentence(error), stage=title) from error
        ms = (time.perf_counter() - start) * 1e3
        stages.append(Stage(title, ms, name))
        if on_stage is not None:
            on_stage(StageEvent(title, name, begin + high * width, ms))

    with stage("lower", 0.0, 0.2):
        graph = biases_apart(graph, library.time_bias if library.tunes else None)
        if kind == "inference" and wants_channels_last(graph, target):
            graph = channels_last(graph)
        if options.pad_products:
            graph = pad_products(graph, target, library.time_padding if library.tunes else None)
        program = lower_graph(graph, target)
    with stage("fuse", 0.2, 0.3):
        parts = partition(program, options)
    with stage("generate", 0.3, 0.4):
        launches = schedule(parts, program, options)
    with stage("plan", 0.4, 0.45):
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
    with stage("compile", 0.45, 1.0):

        def progress(done: float) -> None:
            if on_stage is not None:
                on_stage(StageEvent("compile", name, span[0] + (0.45 + 0.55 * done) * (span[1] - span[0])))

        kernels = library.add([s for s in steps if isinstance(s, Launch)], progress)
        wrapper, names = generate_wrapper(program, steps, plan, kernels)
    return CompiledRegion(name, kind, graph, program, parts, steps, plan, kernels, wrapper, names, stages, ordered)


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
