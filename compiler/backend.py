"""``torch.compile(model, backend="fusescope")``: Dynamo's graph through AOTAutograd into compiled regions."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
from torch._dynamo.backends.common import aot_autograd
from torch._functorch.partitioners import min_cut_rematerialization_partition
from torch._guards import TracingContext
from torch.utils import _pytree as pytree

from compiler.codegen.wrapper import generate_wrapper
from compiler.collectives import has_collectives
from compiler.dynamo.hooks_guard import is_all_of_a_frame, leave_out_hooks_guard
from compiler.dynamo.messages import DynamoFacts
from compiler.dynamo.ranges import leave_out_profiler_ranges
from compiler.dynamo.static_inputs import aot_metadata, made_by_forward, mark_static_inputs, mark_views_of_inputs
from compiler.dynamo.without_values import by_shape
from compiler.errors import CompileError
from compiler.fallback import eager_region
from compiler.kernel_library import KernelLibrary
from compiler.lowering.extern import mutated_arguments
from compiler.options import DEFAULTS, Options, parse_options
from compiler.passes.decompositions import decomposition_table, wrong_rules_set_aside
from compiler.passes.random_numbers import draw_from_seeds
from compiler.passes.repeated_random import fill_in
from compiler.planning.donated import mark_donated_between, mark_donated_inputs
from compiler.planning.memory import inputs_left_in_place
from compiler.region import CompiledRegion, compile_region, tangents_at_the_peak
from compiler.report import Target
from compiler.retarget.aot import for_target
from compiler.retarget.device import device_of
from compiler.runtime.calling import boxed, emptying
from compiler.runtime.direct import direct_call, needs_no_wrapper
from compiler.runtime.executable import (
    Call,
    Executable,
    Launcher,
    build,
    gpu_launcher,
    interpreted_launcher,
    interpreting,
)
from compiler.runtime.observe import Mark, Observer
from compiler.runtime.results import Conform
from compiler.runtime.tangents import Tangents, with_traced_flags
from compiler.specializing import Built, Region, Specializing, example_inputs, has_symbolic_sizes, specialize
from compiler.stages import OnStage
from compiler.targets import local_target, resolve

if TYPE_CHECKING:
    from compiler.runtime.partitioned import PartitionedRegion

OWN_SETTINGS = frozenset("session cuda_graph on_graphed_region executable observer".split())
GraphCompiler = Callable[[torch.fx.GraphModule, Sequence[Any]], Any]


@dataclass
class Session:
    """What one compilation of a model shares between its regions, and collects from them."""

    target: Target
    library: KernelLibrary
    cuda_graph: bool = False
    on_stage: OnStage | None = None
    on_graphed_region: Callable[[Any], None] | None = None
    executable: Callable[[CompiledRegion], Region] | None = None
    dynamo: DynamoFacts | None = None  # told of each region's guards, which Dynamo forgets once it has compiled them
    observer: Observer = field(default_factory=Observer)
    options: Options = DEFAULTS  # of the graphs; kernels are compiled by the library's
    elsewhere: bool = False  # graphs are moved to a GPU that is not here; what runs is as traced, on the CPU
    graph_pool: Any = None  # of every graphed region; made with the first
    regions: list[CompiledRegion] = field(default_factory=list)
    first_number: int = 0  # of the first region's graph, where other sessions' are shown with this one's
    notes: list[str] = field(default_factory=list)
    specialized: dict[str, str] = field(default_factory=dict)  # region -> why it is compiled anew for every size

    def note(self, text: str) -> None:
        """Something that the reader of the report must know, said once."""
        if text not in self.notes:
            self.notes.append(text)

    def span(self) -> tuple[float, float]:
        """The next region's part of the progress bar: each takes half of what is left."""
        left = 0.7 * 0.5 ** len(self.regions)
        return 0.95 - left, 0.95 - left / 2


def session_for(options: Mapping[str, Any]) -> Session:
    """A session whose regions run on this machine's GPU, compiled with ``options``, given by name.

    Raises:
        CompileError: an option that there is not, or a value that it does not take.
    """
    target = default_target()
    return Session(target, KernelLibrary(target, binaries=True, texts=False, options=parse_options(options)))


def default_target() -> Target:
    """This machine's GPU, or an H100 where there is none."""
    return local_target() or resolve("h100")


def fusescope(
    gm: torch.fx.GraphModule, example_inputs: Sequence[Any], *, options: Mapping[str, Any] | None = None
) -> Any:
    """The Dynamo backend.

    ``options``: "cuda_graph" (bool) replays every region as CUDA Graphs; "on_graphed_region" is called with each
    ``PartitionedRegion`` made; "observer" hears which step of a region runs (``runtime/observe.py``); "session"
    (Session) shares kernels and collects regions for a report; "executable" makes the callable that runs a region in
    place of the usual one (verification watches kernels this way). Every other key is an option of the compiler
    (``compiler/options.py``), for a session of its own; those of graphs also for a session that is given.

    Raises:
        CompileError: an option that there is not, or a value that it does not take.
    """
    leave_out_profiler_ranges()
    settings = dict(options or {})
    named = {name: value for name, value in settings.items() if name not in OWN_SETTINGS}
    session = settings.get("session")
    chosen = parse_options(named, session.library.options if session is not None else DEFAULTS)
    if session is None:
        target = default_target()
        library = KernelLibrary(target, binaries=on_gpu(gm, example_inputs), texts=False, options=chosen)
        session = Session(target, library)
    session.cuda_graph = bool(settings.get("cuda_graph", session.cuda_graph))
    session.on_graphed_region = settings.get("on_graphed_region", session.on_graphed_region)
    session.executable = settings.get("executable", session.executable)
    session.observer = settings.get("observer", session.observer)
    session.options = chosen
    _note_guards(session)
    number = session.first_number + sum(1 for r in session.regions if r.kind != "backward")
    tangents = Tangents()
    compiler_of = partial(_compiler, session, number, tangents)
    moved = partial(for_target, on_target=partial(device_of, session.target), note=session.note)
    return tangents.lending(
        through_aot(gm, example_inputs, compiler_of, session.library.options, moved if session.elsewhere else None)
    )


def through_aot(
    gm: torch.fx.GraphModule,
    example_inputs: Sequence[Any],
    compiler_of: Callable[[str], GraphCompiler],
    options: Options = DEFAULTS,
    moved: Callable[[dict[str, Any]], dict[str, Any]] | None = None,
) -> Any:
    """Dynamo's graph as ATen graphs; ``compiler_of`` gives what makes a callable of a graph of each kind.

    ``moved`` puts compilers for a GPU that is not here in place of these (``compiler/retarget/aot.py``).
    """

    def partition(joint: torch.fx.GraphModule, *args: Any, **kwargs: Any) -> Any:
        cut = min_cut_rematerialization_partition(_seeded(options, joint), *args, **kwargs)
        halves = fill_in(cut[0]), fill_in(cut[1])
        mark_views_of_inputs(*halves)
        if moved is not None:  # AOTAutograd looks at the CPU's halves
            mark_donated_between(*halves, kwargs["num_fwd_outputs"])
        return halves

    direct: list[Any] = []
    # torch 2.11 keeps ``inference`` as long as what it compiled, and with it would keep the first call's inputs: an
    # earlier region's graph does not run again while somebody holds what it handed out.
    given = [type(value) for value in example_inputs]
    is_whole = is_all_of_a_frame(gm)
    stages: dict[str, Any] = {
        "fw_compiler": compiler_of("forward"),
        "bw_compiler": compiler_of("backward"),
        "inference_compiler": lambda graph, inputs: compiler_of("inference")(_seeded(options, graph), inputs),
        "decompositions": decomposition_table(options.random),
        "partition_fn": partition,
    }
    if moved is not None:
        stages = moved(stages)
    compile_inference = stages["inference_compiler"]

    def inference(graph: torch.fx.GraphModule, inputs: Sequence[Any]) -> Any:
        if is_whole:
            leave_out_hooks_guard()
        plain = needs_no_wrapper(aot_metadata(), graph, given)
        run = compile_inference(graph, inputs)
        if plain:
            direct.append(direct_call(run))
        return run

    compiler = aot_autograd(**{**stages, "inference_compiler": inference}, keep_inference_input_mutations=True)
    with wrong_rules_set_aside():
        wrapped = compiler(gm, example_inputs)
    return direct[0] if len(direct) == 1 else wrapped


def _seeded(options: Options, graph: torch.fx.GraphModule) -> torch.fx.GraphModule:
    """The graph with its random ops drawing from seeds, where the options ask for that. A joint graph is rewritten
    before it is cut in two, so that a mask needed by both halves is drawn once."""
    return draw_from_seeds(graph) if options.random == "kernel" else graph


def on_gpu(gm: torch.fx.GraphModule, example_inputs: Sequence[Any]) -> bool:
    """Whether a graph of Dynamo's works on a GPU, by its inputs and parameters and by what it makes of nothing."""
    made = (node.meta.get("example_value") for node in gm.graph.nodes)
    tensors = itertools.chain(example_inputs, gm.parameters(), pytree.tree_leaves(list(made)))
    return any(isinstance(x, torch.Tensor) and x.is_cuda for x in tensors)


def _note_guards(session: Session) -> None:
    context = TracingContext.try_get()
    if session.dynamo is not None and context is not None:
        session.dynamo.note_guards(context.guards_context.dynamo_guards)


def _compiler(session: Session, number: int, tangents: Tangents, kind: str) -> GraphCompiler:
    name = kind if number == 0 else f"{kind}_{number}"

    def compile_graph(graph: torch.fx.GraphModule, inputs: Sequence[Any]) -> Any:
        # asked now, for graphs of other sizes are compiled when AOTAutograd has long forgotten
        static = mark_static_inputs(graph, kind)
        if session.elsewhere:
            return _compile_only(session, graph, name, kind)
        if kind == "backward" and not session.cuda_graph:  # a graph runs again on what lies where its inputs are
            mark_donated_inputs(graph)
        tangents.trained |= kind == "forward"
        facts = _Facts(name, kind, static, _returned_outputs() if kind == "forward" else None, tangents)
        try:
            run = _build(session, graph, facts).run
        except CompileError as error:
            if not has_symbolic_sizes(graph):
                raise
            session.specialized[name] = str(error)
            run = Specializing(lambda g: _build(session, g, facts), graph, session.options.graph_capacity)
        return boxed(with_traced_flags(run, graph) if kind == "backward" else run)

    return compile_graph


class _Facts(NamedTuple):
    """What AOTAutograd says of a graph; ``returned`` counts a forward's outputs that go to the user."""

    name: str
    kind: str
    static: frozenset[int]
    returned: int | None
    tangents: Tangents


def _compile_only(session: Session, graph: torch.fx.GraphModule, name: str, kind: str) -> None:
    """Compile a graph for a GPU that is not here; of symbolic sizes that no one program serves, for the example's."""
    try:
        _compile(session, graph, name, kind)
    except CompileError as error:
        if not has_symbolic_sizes(graph):
            raise
        session.specialized[name] = str(error)
        _compile(session, specialize(graph, example_inputs(graph)), name, kind)


def _compile(session: Session, graph: torch.fx.GraphModule, name: str, kind: str) -> CompiledRegion:
    try:
        region = compile_region(
            graph,
            name=name,
            kind=kind,
            target=session.target,
            library=session.library,
            on_stage=session.on_stage,
            span=session.span(),
        )
    except CompileError as error:
        if session.library.options.fallback != "eager":
            raise
        region = eager_region(graph, name, kind, error)
    session.regions.append(region)
    return region


def _build(session: Session, graph: torch.fx.GraphModule, facts: _Facts) -> Built:
    name, kind, static, *_ = facts
    region = _compile(session, graph, name, kind)
    if region.fallback is not None:
        return Built(as_captured(region))
    if session.executable is not None:
        run = emptying(session.executable(region))
    else:
        run = executable_of(region, session.library, static, session.observer)
    if kind == "backward" and not session.cuda_graph:
        run = facts.tangents.taking(run, tangents_at_the_peak(region, session.library.options))
    launchers = launchers_of(region, session.library) if session.cuda_graph and _on_gpu(region) else None
    if launchers is None:
        return Built(run)
    graphed = _graphed(session, region, run, launchers, facts)
    return Built(graphed.entry(), graphed.release)


def _graphed(
    session: Session, region: CompiledRegion, run: Region, launchers: Mapping[str, Launcher], facts: _Facts
) -> PartitionedRegion:
    from compiler.runtime.partitioned import GraphSettings, PartitionedRegion
    from compiler.runtime.pool import GraphPool

    session.graph_pool = session.graph_pool or GraphPool()
    static = facts.static
    captures_collectives = session.options.graph_collectives and has_collectives(region.steps)
    if region.kind == "backward" and not captures_collectives:
        static |= made_by_forward(region.graph)
    graphed = PartitionedRegion(
        region,
        run,
        launchers,
        GraphSettings(
            session.graph_pool,
            session.observer,
            session.options.graph_capacity,
            session.options.graph_streams,
            session.options.bucket_sizes,
            session.options.graph_collectives,
        ),
        static=static,
        mutated=mutated_inputs(region.graph),
        returned=facts.returned,
    )
    if session.on_graphed_region is not None:
        session.on_graphed_region(graphed)
    return graphed


def _returned_outputs() -> int | None:
    """How many of a forward's outputs go to the user; those after them are saved for the backward."""
    return getattr(aot_metadata(), "num_forward_returns", None)


def _on_gpu(region: CompiledRegion) -> bool:
    return any(b is not None and b.device.type == "cuda" for b in region.program.inputs)


def executable_of(
    region: CompiledRegion, library: KernelLibrary, static: frozenset[int], observer: Observer | None = None
) -> Region:
    """What runs the region and empties the list of its inputs.

    Its kernels do on a GPU or in Triton's interpreter, the captured graph itself elsewhere.

    A kernel that failed to compile sends the whole region to the captured graph, which is right if slow.
    """
    launchers = launchers_of(region, library)
    if launchers is None:
        return as_captured(region)
    call = build(region.wrapper, region.wrapper_names, launchers)

    def variant(mark: Mark | None, conform: Conform | None) -> Call:
        observed = region.name if mark is not None else ""
        parts = (region.program, region.steps, region.plan, region.kernels)
        text, names = generate_wrapper(*parts, observed=observed, compared=conform is not None)
        return build(text, {**names, "mark": mark, "conform": conform}, launchers)

    in_place = inputs_left_in_place(region.program)  # the wrapper sees to their addresses
    inputs = [b if b is not None and b.name not in in_place else None for b in region.program.inputs]
    return Executable(
        call,
        inputs,
        static=static,
        mutated=mutated_inputs(region.graph),
        observer=observer,
        variant=variant,
    )


def launchers_of(region: CompiledRegion, library: KernelLibrary) -> dict[str, Launcher] | None:
    """What launches each of the region's kernels; None where they cannot run here or one failed to compile."""
    used = [k for k in library.by_source.values() if k.name in set(region.kernels.values())]
    devices = {b.device for b in region.program.inputs if b is not None and b.device.type == "cuda"}
    devices |= {b.device for b in region.plan.buffers.values() if b.device.type == "cuda"}
    if devices:
        if any(k.binary is None for k in used):
            return None
        index = max(next(iter(devices)).index or 0, 0)
        return {k.name: gpu_launcher(k, index) for k in used}
    return {k.name: interpreted_launcher(k) for k in used} if interpreting() else None


def as_captured(region: CompiledRegion) -> Region:
    """What runs the region's captured graph op by op."""
    return emptying(lambda args: tuple(by_shape(region.graph, args)))


def mutated_inputs(graph: torch.fx.GraphModule) -> frozenset[int]:
    """Positions of the inputs that some node of the graph writes into."""
    placeholders = {n: i for i, n in enumerate(n for n in graph.graph.nodes if n.op == "placeholder")}
    found: set[int] = set()
    for node in graph.graph.nodes:
        if node.op == "call_function":
            for argument in mutated_arguments(node):
                while isinstance(argument, torch.fx.Node) and argument not in placeholders and argument.args:
                    argument = argument.args[0]
                if argument in placeholders:
                    found.add(placeholders[argument])
    return frozenset(found)
