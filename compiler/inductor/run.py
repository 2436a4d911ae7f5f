"""The real TorchInductor on a whole model: through ``torch.compile`` on this machine's GPU, else with no GPU at all.

With no GPU, Dynamo and AOTAutograd trace the model on the CPU. Each graph that AOTAutograd is about to hand to Inductor
is moved to the target (``compiler/retarget``) and compiled there for its code (``fake_gpu.py``); what runs for the
model's values is AOTAutograd's own graph on the CPU.
"""

from __future__ import annotations

import functools
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import fx
from torch._guards import TracingContext
from torch._logging._internal import trace_structured

from compiler.dynamo.messages import DynamoFacts
from compiler.dynamo.static_inputs import mark_static_inputs
from compiler.errors import CompileError
from compiler.inductor.caches import without_caches
from compiler.inductor.fake_gpu import fake_gpu
from compiler.inductor.hooks import GraphFacts, watch
from compiler.inductor.patterns import patterns_for
from compiler.patching import replaced
from compiler.report import Target
from compiler.retarget.aot import for_target
from compiler.retarget.device import DEVICE
from compiler.stages import OnStage, StageEvent


@dataclass
class InductorRegion:
    """One graph and what Inductor made of it."""

    name: str
    kind: str  # "inference", "forward", "backward"
    facts: GraphFacts
    texts: dict[str, str]
    ms: float = 0.0


@dataclass
class InductorRun:
    """What one compilation of a model collects."""

    target: Target
    config: Mapping[str, Any]
    on_stage: OnStage
    regions: list[InductorRegion] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    dynamo: DynamoFacts | None = None  # told of each region's guards, which Dynamo forgets once it has compiled them

    @property
    def on_this_machine(self) -> bool:
        """Whether the code is for this machine and so runs: on its GPU or its CPU."""
        return self.target.local or self.target.backend == "cpu"

    def note(self, text: str) -> None:
        """Something that the reader of the report must know, said once."""
        if text not in self.notes:
            self.notes.append(text)


def inductor_backend(run: InductorRun) -> Callable[..., Any]:
    """A Dynamo backend that hands its graphs to Inductor and keeps what it sees in ``run``."""

    def backend(gm: fx.GraphModule, example_inputs: Sequence[Any], **keywords: Any) -> Any:
        from torch._inductor.compile_fx import compile_fx, compile_fx_inner

        inner, texts = watched(run, gm, compile_fx_inner, run.config)
        with around_aot(run, texts):
            return compile_fx(gm, example_inputs, inner_compile=inner, config_patches=dict(run.config))

    return backend


def watched(
    run: InductorRun, gm: fx.GraphModule, inner_compile: Callable[..., Any], config: Mapping[str, Any]
) -> tuple[Callable[..., Any], dict[str, str]]:
    """``inner_compile`` for the graphs that compile_fx makes of ``gm``, each of them kept in ``run``; and the texts of
    ``gm``'s stages so far, which it is told more of while it is compiled."""
    slot: dict[str, int] = {}  # the number that this graph's regions share
    texts = {"dynamo": gm.print_readable(print_output=False)}
    context = TracingContext.try_get()
    if run.dynamo is not None and context is not None:
        run.dynamo.note_guards(context.guards_context.dynamo_guards)
    return functools.partial(_inner_compile, run, slot, texts, inner_compile, config), texts


def _inner_compile(
    run: InductorRun,
    slot: dict[str, int],
    texts: dict[str, str],
    compile_fx_inner: Callable[..., Any],
    patches: Mapping[str, Any],
    gm: fx.GraphModule,
    inputs: Sequence[Any],
    **keywords: Any,
) -> Any:
    """Inductor's own compilation of one ATen graph, watched."""
    from torch._inductor import config

    if keywords.get("is_backward"):
        kind = "backward"
    else:
        kind = "inference" if keywords.get("is_inference") else "forward"
    mark_static_inputs(gm, kind)
    number = slot.setdefault("number", sum(region.kind != "backward" for region in run.regions))
    name = kind if number == 0 else f"{kind}_{number}"
    left = 0.7 * 0.5 ** len(run.regions)
    run.on_stage(StageEvent("inductor", name, 0.95 - left))
    region = InductorRegion(name, kind, GraphFacts(), texts | {kind: gm.print_readable(print_output=False)})
    start = time.perf_counter()
    # a backward is compiled when it is first called, long after compile_fx has put the options back
    with config.patch(dict(patches)), watch(region.facts):
        compiled = compile_fx_inner(gm, inputs, **keywords)
    region.ms = (time.perf_counter() - start) * 1e3
    if region.facts.graph is not None:  # a graph without calls is handed back as it is
        run.regions.append(region)
    run.on_stage(StageEvent("inductor", name, 0.95 - left / 2, region.ms))
    return compiled


@contextmanager
def around_aot(run: InductorRun, texts: dict[str, str]) -> Iterator[None]:
    """Step in where compile_fx hands its compilers and its partitioner to AOTAutograd, whose cache is left alone."""
    from torch._dynamo.backends.common import AotAutograd

    real = AotAutograd.__call__

    def call(aot: Any, gm: fx.GraphModule, example_inputs: Sequence[Any], **keywords: Any) -> Any:
        aot.kwargs["partition_fn"] = _seen_joint(aot.kwargs["partition_fn"], texts)
        if not run.on_this_machine:
            aot.kwargs.update(for_target(aot.kwargs, lambda: without_gpu(run), run.note))
        return real(aot, gm, example_inputs, **keywords)

    with without_caches(), replaced(AotAutograd, "__call__", call):
        yield


def _seen_joint(partition: Callable[..., Any], texts: dict[str, str]) -> Callable[..., Any]:
    def partition_fn(joint: fx.GraphModule, inputs: Any, **keywords: Any) -> Any:
        texts["joint"] = joint.print_readable(print_output=False)
        return partition(joint, inputs, **keywords)

    return partition_fn


@contextmanager
def without_gpu(run: InductorRun) -> Iterator[None]:
    """Compile for the run's target in here, and only for its code."""
    from torch._inductor import config, cpu_vec_isa
    from torch._inductor.fx_passes import joint_graph, pad_mm, post_grad
    from torch._inductor.graph import GraphLowering

    def unmeasured(key: str) -> bool:
        run.note(
            "Inductor decides by timing both ways whether to pad a matrix product to an aligned size. "
            "With no GPU nothing was timed, and none was padded."
        )
        return False

    with ExitStack() as stack:
        # Patterns are traced once a process, by running them: on the CPU, for the target cannot run.
        joint_graph.lazy_init(torch.device("cpu"))
        post_grad.lazy_init()
        for passes in (joint_graph, post_grad):
            stack.enter_context(replaced(passes, "lazy_init", lambda *args, **keywords: None))
        stack.enter_context(fake_gpu(run.target))
        stack.enter_context(patterns_for(DEVICE))
        # what stays on the CPU is not compiled either: no need to build programs that tell which vectors can be had,
        # and which instructions beyond those torch looks for whatever the setting says
        stack.enter_context(config.patch({"compile_threads": 1, "cpp.vec_isa_ok": True}))
        stack.enter_context(replaced(cpu_vec_isa.VecISA, "check_build", lambda isa, code: False))
        stack.callback(cpu_vec_isa.valid_vec_isa_list.cache_clear)
        stack.enter_context(replaced(pad_mm, "get_cached_should_pad", unmeasured))
        stack.enter_context(replaced(GraphLowering, "compile_to_module", code_only))
        yield


class _NoPartitions:
    """Where Inductor wraps the parts that CUDA Graphs would record: there are none that run."""

    def __init__(self) -> None:
        self.partitions: list[Any] = []  # Inductor deletes it in the end

    def recursively_apply_fns(self, functions: Any) -> None:
        """Nothing to apply them to."""


class _Unrunnable:
    """In place of the module that Inductor would load: its kernels have no GPU to run on."""

    __file__ = "<compiled for another GPU>"

    def __init__(self) -> None:
        self.runner = _NoPartitions()

    @staticmethod
    def call(args: list[Any]) -> Any:
        raise CompileError("This code was generated for a GPU that is not here", stage="run")


def code_only(lowering: Any) -> Any:
    """In place of ``GraphLowering.compile_to_module``: the program is generated, and not loaded."""
    wrapper, *_ = lowering.codegen()
    text = getattr(wrapper, "value", str(wrapper))
    # as the real one does, so that a log under TORCH_TRACE is whole
    trace_structured("inductor_output_code", lambda: {"filename": _Unrunnable.__file__}, payload_fn=lambda: text)
    return _Unrunnable()
