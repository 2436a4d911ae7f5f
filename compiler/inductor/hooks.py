"""What Inductor does to one graph, written down while it does it.

``watch`` opens around one call of ``compile_fx_inner``. Inductor's own objects (scheduler nodes, the graph being
lowered) are only alive in there, so everything is taken out as plain values. Every hook is put back on the way out.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any

from torch import fx

from compiler.inductor.caches import without_caches
from compiler.inductor.lines import LineTags
from compiler.inductor.traffic import Touched, example_size, moves, never_stored, static_size, touched_by
from compiler.patching import replaced


@dataclass
class UnitFacts:
    """One scheduler node: a computation of its own before fusion, a kernel or call after it."""

    name: str
    kind: str  # "computed", "template", "extern", "foreach", "result" (one of an extern call's), "assert", "nop"
    origins: list[str]  # FX nodes of the graph being lowered, in its order
    members: list[str]  # names of the scheduler nodes in it; itself where it is one
    reads: list[str]
    writes: list[str]
    touched: dict[str, Touched] = field(default_factory=dict)  # by buffer, those that reach memory
    reduction: bool = False
    operation: str = ""  # for extern calls, what the wrapper calls
    partition_reason: str = ""  # why CUDA Graphs would be split here
    device: str = ""

    @property
    def bytes(self) -> int:
        """Bytes that go through memory (estimated)."""
        return sum(touched.bytes for touched in self.touched.values())


@dataclass
class RefusalFacts:
    """Two scheduler nodes that a rule kept apart, in Inductor's words."""

    first: tuple[str, ...]  # members of the node tried first
    second: tuple[str, ...]
    words: str
    common: tuple[str, ...] = ()  # buffers that both read or write


@dataclass
class BufferFacts:
    """A buffer of the wrapper: its bytes and its node's name; ``reuses`` names the buffer it takes over."""

    name: str
    bytes: int
    owned: bool  # has memory of its own: neither an alias nor a write into another buffer
    within: list[str] = field(default_factory=list)  # else the buffers whose memory it is in
    reuses: str = ""


@dataclass
class LaunchFacts:
    """One kernel as it is launched: the scheduler nodes in it and the sizes of its loops by prefix."""

    kernel: str
    members: list[str]
    numels: dict[str, int | str]
    lines: dict[int, list[str]]  # FX nodes by line, counted from the line "@triton.jit" of its source as 1
    template: bool = False
    example: dict[str, int] = field(default_factory=dict)  # the same sizes as they are with the example inputs
    grid: list[int] = field(default_factory=list)  # a template's, which its program computes; of the example


@dataclass
class GraphFacts:
    """All of one graph that Inductor compiled."""

    graph: fx.GraphModule | None = None
    texts: dict[str, str] = field(default_factory=dict)
    before: list[UnitFacts] = field(default_factory=list)
    after: list[UnitFacts] = field(default_factory=list)
    refusals: list[RefusalFacts] = field(default_factory=list)
    launches: list[LaunchFacts] = field(default_factory=list)
    buffers: list[BufferFacts] = field(default_factory=list)
    buffer_origins: dict[str, str] = field(default_factory=dict)  # buffer -> the FX node whose value it holds
    outputs: list[str] = field(default_factory=list)
    wrapper: str = ""
    removed: set[str] = field(default_factory=set)  # buffers that never reach memory, as fusion made it
    mutated_inputs: list[str] = field(default_factory=list)
    cudagraphs: bool = False  # whether the compilation itself had CUDA Graphs on
    skips: list[str] = field(default_factory=list)  # Inductor's own messages on skipping CUDA Graphs
    incompatible: str = ""  # the first FX node that a CUDA Graph cannot hold
    module: Any = None  # the loaded wrapper, where the code can run here
    partitions: int = 0
    has_nested: bool = False  # graphs inside the graph, whose ops are in no unit
    missing: list[str] = field(default_factory=list)  # what this torch does not tell
    stages: dict[str, float] = field(default_factory=dict)  # milliseconds by stage


@contextmanager
def watch(facts: GraphFacts) -> Iterator[None]:
    """Fill ``facts`` from the Inductor compilation that runs inside."""
    from torch._inductor import config

    watcher = _Watcher(facts)
    with ExitStack() as stack:
        stack.enter_context(without_caches())
        stack.enter_context(
            config.patch(
                {
                    "_pre_fusion_custom_pass": watcher.before_fusion,
                    "_post_fusion_custom_pass": watcher.after_fusion,
                    "trace.provenance_tracking_level": 1,
                }
            )
        )
        for patch in watcher.patches():
            stack.enter_context(patch)
        yield
    watcher.finish()


class _Watcher:
    """The hooks of one compilation and what they share."""

    def __init__(self, facts: GraphFacts) -> None:
        self.facts = facts
        self._pairs: dict[tuple[tuple[str, ...], tuple[str, ...], str], tuple[Any, Any]] = {}
        self._asking: dict[int, tuple[Any, Any]] = {}
        self._scheduled: list[tuple[UnitFacts, Any]] = []
        self._order: dict[Any, int] = {}
        self._stage = ""
        self._lines = LineTags()

    def patches(self) -> Iterator[Any]:
        """Every method that is wrapped for the compilation."""
        from torch._inductor import compile_fx, cudagraph_utils, output_code
        from torch._inductor.codegen.cpp import CppScheduling
        from torch._inductor.codegen.triton import TritonScheduling
        from torch._inductor.codegen.wrapper import PythonWrapperCodegen
        from torch._inductor.graph import GraphLowering
        from torch._inductor.scheduler import Scheduler, WhyNoFuse

        yield from self._lines.patches()
        timed = self._timed
        yield replaced(
            compile_fx, "_recursive_post_grad_passes", timed("post-grad passes", compile_fx._recursive_post_grad_passes)
        )
        yield replaced(GraphLowering, "run", timed("lower", GraphLowering.run))
        yield replaced(Scheduler, "__init__", timed("schedule and fuse", Scheduler.__init__))
        yield replaced(Scheduler, "codegen", timed("generate", Scheduler.codegen))
        yield replaced(WhyNoFuse, "__init__", self._why_init(WhyNoFuse.__init__))
        yield replaced(WhyNoFuse, "__call__", self._why_call(WhyNoFuse.__call__))
        yield replaced(Scheduler, "_codegen", self._codegen(Scheduler._codegen))
        yield replaced(TritonScheduling, "define_kernel", self._define(TritonScheduling.define_kernel))
        yield replaced(CppScheduling, "define_kernel", self._define_cpp(CppScheduling.define_kernel))
        plan = PythonWrapperCodegen.memory_plan_reuse
        yield replaced(PythonWrapperCodegen, "memory_plan_reuse", self._planned(plan))
        yield replaced(GraphLowering, "codegen", self._generated(GraphLowering.codegen))
        yield replaced(GraphLowering, "compile_to_module", self._loaded(GraphLowering.compile_to_module))
        skipped = self._skipped(cudagraph_utils.log_cudagraph_skip_and_bump_counter)
        for module in (cudagraph_utils, compile_fx, output_code):
            if hasattr(module, "log_cudagraph_skip_and_bump_counter"):
                yield replaced(module, "log_cudagraph_skip_and_bump_counter", skipped)

    def _timed(self, stage: str, real: Callable[..., Any]) -> Callable[..., Any]:
        """``real``, its time added to the stage. A stage within itself (a subgraph's) counts once."""

        def call(*args: Any, **keywords: Any) -> Any:
            outer = self._stage
            self._stage = stage
            start = time.perf_counter()
            try:
                return real(*args, **keywords)
            finally:
                self._stage = outer
                if outer != stage:
                    self.facts.stages[stage] = self.facts.stages.get(stage, 0.0) + (time.perf_counter() - start) * 1e3

        return call

    # --- scheduling ------------------------------------------------------------------------------------------------

    def before_fusion(self, nodes: list[Any]) -> list[Any]:
        """Inductor's custom pass before fusion: only looks."""
        if _is_nested():
            self.facts.has_nested = True
            return nodes
        self._remember_graph()
        self.facts.before = [self._unit(node) for node in nodes]
        return nodes

    def after_fusion(self, nodes: list[Any]) -> list[Any]:
        """Inductor's custom pass after fusion: judges the refusals, whose scheduler nodes are still whole."""
        group = {member: unit.get_name() for unit in nodes for member in members_of(unit)}
        if _is_nested():
            self._pairs.clear()
        for (first, second, words), (a, b) in self._pairs.items():
            if {group.get(m) for m in first} & {group.get(m) for m in second}:
                continue  # fused later on, by another way
            self.facts.refusals.append(RefusalFacts(first, second, words, common_buffers(a, b)))
        self._pairs.clear()
        self._asking.clear()
        return nodes

    def _remember_graph(self) -> None:
        from torch._inductor.virtualized import V

        lowering: Any = V.graph
        graph: fx.GraphModule = lowering.module
        self.facts.graph = graph
        self._order = {node: i for i, node in enumerate(graph.graph.nodes)}

    def _unit(self, node: Any) -> UnitFacts:
        origins = {o for n in node.get_nodes() for o in origins_of(n)}
        known = sorted((o for o in origins if o in self._order), key=self._order.__getitem__)
        device = node.get_device()
        return UnitFacts(
            name=node.get_name(),
            kind=kind_of(node),
            origins=[o.name for o in known],
            members=members_of(node),
            reads=sorted({d.name for d in node.read_writes.reads if moves(d)}),
            writes=list(node.get_buffer_names()),
            touched=touched_by(node),
            reduction=bool(node.is_reduction()),
            operation=operation_of(node),
            partition_reason=self._partition_reason(node),
            device=str(device) if device is not None else "",
        )

    def _partition_reason(self, node: Any) -> str:
        """Why CUDA Graphs would be split at this node, were they on."""
        from torch._inductor import config

        ask = getattr(node.scheduler, "should_partition", None)
        if ask is None:
            self._miss("where CUDA Graphs would be split")
            return ""
        with config.patch({"triton.cudagraphs": True}):
            return str(ask(node) or "")

    def _miss(self, what: str) -> None:
        if what not in self.facts.missing:
            self.facts.missing.append(what)

    def _why_init(self, real: Callable[..., None]) -> Callable[..., None]:
        def init(why: Any, node1: Any, node2: Any) -> None:
            real(why, node1, node2)
            self._asking[id(why)] = (node1, node2)  # it has slots, so nothing can be put on it

        return init

    def _why_call(self, real: Callable[..., None]) -> Callable[..., None]:
        def call(why: Any, reason: str, *args: Any) -> None:
            real(why, reason, *args)
            node1, node2 = self._asking[id(why)]
            words = " ".join((reason % args if args else reason).split())
            self._pairs[tuple(members_of(node1)), tuple(members_of(node2)), words] = (node1, node2)

        return call

    def _codegen(self, real: Callable[..., Any]) -> Callable[..., Any]:
        def codegen(scheduler: Any, nodes: Sequence[Any]) -> Any:
            if _is_nested():
                return real(scheduler, nodes)
            if not self._order:
                self._remember_graph()
            units = [(self._unit(node), node) for node in nodes]
            self.facts.after.extend(unit for unit, _ in units)
            self._scheduled.extend(units)
            self._remember_buffers(scheduler)
            return real(scheduler, nodes)

        return codegen

    def _remember_buffers(self, scheduler: Any) -> None:
        known_buffers = {b.name for b in self.facts.buffers}
        calls_on = _calls_by_operand(scheduler.nodes, self._order)
        for name, buffer in scheduler.name_to_buf.items():
            owner = buffer.node.get_origin_node() if hasattr(buffer.node, "get_origin_node") else None
            if owner is None:
                known = {o for o in getattr(buffer.node, "origins", ()) if o in self._order}
                operand = known - calls_on.get(name, set())  # made where the call was lowered, and not its result
                owner = max(operand or known, key=self._order.__getitem__, default=None)
            if owner is not None:
                self.facts.buffer_origins[name] = owner.name
            size = example_size(buffer_bytes(buffer.node))
            if name not in known_buffers:
                within = [*buffer.get_aliases(), *buffer.get_mutations()]
                owned = not within and type(getattr(buffer.node, "layout", None)).__name__ in _OWNING_LAYOUTS
                self.facts.buffers.append(BufferFacts(name, size, owned, within))

    # --- code ------------------------------------------------------------------------------------------------------

    def _define(self, real: Callable[..., str]) -> Callable[..., str]:
        def define_kernel(scheduling: Any, src_code: str, node_schedule: Any, kernel: Any) -> str:
            name = real(scheduling, src_code, node_schedule, kernel)
            if _is_nested():
                return name
            nodes = [n for n in node_schedule if hasattr(n, "get_name") and hasattr(n, "read_writes")]
            members = list(dict.fromkeys(m for n in nodes for m in members_of(n)))
            sizes = getattr(kernel, "numels", None) or {}
            numels = {k: static_size(v) for k, v in sizes.items()}
            example = {k: example_size(v) for k, v in sizes.items()}
            template = "Template" in type(kernel).__name__
            body = src_code[src_code.index("@triton.jit") :] if "@triton.jit" in src_code else ""
            lines = self._lines.lines_of(kernel, body)
            grid = _template_grid(kernel) if template else []
            self.facts.launches.append(LaunchFacts(name, members, numels, lines, template, example, grid))
            return name

        return define_kernel

    def _define_cpp(self, real: Callable[..., str]) -> Callable[..., str]:
        def define_kernel(scheduling: Any, src_code: str, nodes: Sequence[Any], *args: Any, **keywords: Any) -> str:
            name = real(scheduling, src_code, nodes, *args, **keywords)
            if _is_nested():
                return name
            members = list(dict.fromkeys(m for node in nodes if hasattr(node, "get_nodes") for m in members_of(node)))
            self.facts.launches.append(LaunchFacts(name, members, {}, {}))
            return name

        return define_kernel

    def _planned(self, real: Callable[..., Any]) -> Callable[..., Any]:
        def memory_plan_reuse(wrapper: Any) -> Any:
            result = real(wrapper)
            if _is_nested():
                return result
            taken = {
                line.reused_as.get_name(): line.node.get_name()
                for line in wrapper.lines
                if type(line).__name__ == "ReuseLine"
            }
            for buffer in self.facts.buffers:
                buffer.reuses = taken.get(buffer.name, buffer.reuses)
            return result

        return memory_plan_reuse

    def _generated(self, real: Callable[..., Any]) -> Callable[..., Any]:
        def codegen(lowering: Any) -> Any:
            result = real(lowering)
            if _is_subgraph(lowering):
                return result
            wrapper = result[0]
            self.facts.wrapper = getattr(wrapper, "value", str(wrapper))
            self.facts.outputs = list(lowering.get_output_names())
            self.facts.removed = never_stored(lowering)
            self.facts.mutated_inputs = sorted(lowering.mutated_inputs)
            self.facts.partitions = len(lowering.partition_maps or [])
            for unit, node in self._scheduled:  # only now is it known which buffers never reach memory
                unit.touched = touched_by(node)
            self._judge_capture(lowering)
            return result

        return codegen

    def _judge_capture(self, lowering: Any) -> None:
        """What would keep the graph out of a CUDA Graph by Inductor's own rules, whether they are on or not."""
        from torch._inductor import config, cudagraph_utils, utils

        self.facts.cudagraphs = bool(config.triton.cudagraphs)
        first = getattr(utils, "get_first_incompatible_cudagraph_node", None)
        if first is None:
            self._miss("which op a CUDA Graph cannot hold")
        elif (node := first(lowering.module)) is not None:
            self.facts.incompatible = node.name
        message = cudagraph_utils.check_multiple_devices_or_any_cpu_nodes(lowering.device_node_mapping)
        if message:
            self.facts.skips.append(message)

    def _loaded(self, real: Callable[..., Any]) -> Callable[..., Any]:
        def compile_to_module(lowering: Any) -> Any:
            self.facts.module = real(lowering)
            return self.facts.module

        return compile_to_module

    def _skipped(self, real: Callable[[str], None]) -> Callable[[str], None]:
        def log(message: str) -> None:
            self.facts.skips.append(message)
            real(message)

        return log

    def finish(self) -> None:
        """Drop what would keep Inductor's objects alive."""
        self._pairs.clear()
        self._order.clear()
        self._scheduled.clear()


def _template_grid(kernel: Any) -> list[int]:
    """The grid that a template's program computes from the sizes of its call; [] where it does so in another way."""
    compute = getattr(kernel, "grid_fn", None)
    if compute is None:
        return []
    return [int(blocks) for blocks in compute(*map(example_size, kernel.call_sizes), kernel.meta)]


def _is_nested() -> bool:
    """Whether Inductor is at a graph inside the one that is watched: a branch of a conditional, the body of a loop.

    Nodes, units and buffers of the report are those of the outer graph, in which it is one call.
    """
    from torch._inductor.virtualized import V

    return _is_subgraph(V.graph)


def _is_subgraph(lowering: Any) -> bool:
    return type(lowering).__name__ == "SubgraphLowering"


_OWNING_LAYOUTS = ("FixedLayout", "FlexibleLayout", "CommBufferLayout")


# --- reading scheduler nodes ---------------------------------------------------------------------------------------


def members_of(node: Any) -> list[str]:
    """Names of the scheduler nodes that ``node`` is made of."""
    return [n.get_name() for n in node.get_nodes()]


def origins_of(node: Any) -> Sequence[fx.Node]:
    """The FX nodes that one scheduler node computes."""
    inner = getattr(node, "node", None)
    return tuple(getattr(inner, "origins", ()) or ())


def _calls_by_operand(nodes: Sequence[Any], order: Mapping[fx.Node, int]) -> dict[str, set[fx.Node]]:
    """For each buffer the FX nodes of the library calls that read it."""
    found: dict[str, set[fx.Node]] = {}
    for node in nodes:
        known = [o for o in origins_of(node) if o in order] if kind_of(node) == "extern" else []
        for dep in node.read_writes.reads if known else ():
            found.setdefault(dep.name, set()).add(max(known, key=order.__getitem__))
    return found


def kind_of(node: Any) -> str:
    """What becomes of a scheduler node."""
    if node.is_foreach():
        return "foreach"
    if node.is_template():
        return "template"
    nodes = list(node.get_nodes())
    kinds = {type(n).__name__ for n in nodes}
    if kinds == {"NopKernelSchedulerNode"}:
        return "nop"
    if all(type(n.node).__name__ == "MultiOutput" for n in nodes):
        return "result"
    if all(type(n.node).__name__ == "AssertScalar" for n in nodes):
        return "assert"  # a check of a size in the program's Python
    if "ExternKernelSchedulerNode" in kinds:
        return "extern"
    return "computed"


def operation_of(node: Any) -> str:
    """What the wrapper calls for an extern node: "extern_kernels.mm", "torch.ops.aten.sort.default"."""
    inner = getattr(node, "node", None)
    if inner is None or kind_of(node) != "extern":
        return ""
    overload = getattr(inner, "op_overload", None)
    for name in ("python_kernel_name", "kernel"):
        value = getattr(inner, name, None)
        if isinstance(value, str) and value:
            return value
    return str(overload) if overload is not None else type(inner).__name__


def common_buffers(a: Any, b: Any) -> tuple[str, ...]:
    """Buffers that two scheduler nodes both read or write, in whatever order of their elements."""
    first, second = ({d.name for d in (*n.read_writes.reads, *n.read_writes.writes)} for n in (a, b))
    return tuple(sorted(first & second))


def buffer_bytes(buffer: Any) -> Any:
    """Bytes of a buffer with a tensor layout, else 0."""
    layout = getattr(buffer, "layout", None)
    if layout is None or not hasattr(layout, "size") or not hasattr(layout, "dtype"):
        return 0
    count: Any = 1
    for size in layout.size:
        count = count * size
    return count * layout.dtype.itemsize
