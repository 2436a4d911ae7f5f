"""A compiled region in CUDA Graphs: in one where it can be captured whole, else in one for each part that can.

Steps that no graph can hold run between the graphs, as they would without. Some are known beforehand
(``compiler/planning/partitions.py``); one that is found by a capture that fails is taken out, and the rest is cut anew.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec
import torch

from compiler.codegen.wrapper import generate_concurrent, generate_piece, generate_return, input_names
from compiler.collectives import has_collectives
from compiler.ir import Buffer, Extern, TensorRef, symbol_names
from compiler.passes.independent_rows import Dependent, batch_of
from compiler.planning.lanes import lanes
from compiler.planning.memory import inputs_left_in_place, may_alias
from compiler.planning.partitions import Piece, refused_steps, returned_names, split
from compiler.planning.schedule import Launch
from compiler.provenance import provenance_of
from compiler.region import CompiledRegion
from compiler.report import CudaGraph, GraphNode, SkipReason
from compiler.runtime.buffering import Buffering, InputUse
from compiler.runtime.cuda_graph import Forked, GraphedRegion
from compiler.runtime.executable import Call, Executable, Launcher, build
from compiler.runtime.fast_replay import Nothing, Replaying
from compiler.runtime.forked import CudaStreams, ForkedCall, Streams
from compiler.runtime.observe import Mark, Observer
from compiler.runtime.padded import PaddedRegion
from compiler.runtime.pool import GraphPool, Run
from compiler.runtime.results import Conform


@dataclass(frozen=True)
class GraphSettings:
    """What the regions of one compilation share."""

    pool: GraphPool
    observer: Observer
    capacity: int = 4
    streams: int = 1  # how many the steps of a region may be spread over where that is faster
    buckets: tuple[int, ...] = ()  # sizes of a batch that graphs are captured for; others are padded where that is safe
    collectives: bool = False  # graphs may hold collectives: every process makes the same calls


@dataclass(frozen=True)
class _Part:
    """A piece as it runs. ``graphed`` is None where it runs without a graph."""

    piece: Piece
    run: Run
    graphed: GraphedRegion | None
    done_with: tuple[str, ...]  # variables that no later part needs


class PartitionedRegion:
    """Calls a region through CUDA Graphs: ``region(inputs) -> outputs``, the numbers always those of the plain region.

    Not for several threads at once where it is in parts.

    Attributes:
        settings: what it shares with the other regions of its compilation.
        asked: what can serve a call in one frame. One that it does not serve is as if it had not been asked.
    """

    def __init__(
        self,
        region: CompiledRegion,
        whole: Run,
        launchers: Mapping[str, Launcher],
        settings: GraphSettings,
        *,
        static: frozenset[int],
        mutated: frozenset[int],
        returned: int | None = None,
        streams_of: Callable[[torch.device], Streams] = CudaStreams,
    ) -> None:
        """
        Args:
            whole: the region as one call, which may empty its list of inputs.
            static, mutated, returned: as ``GraphedRegion`` has them; ``returned`` counts the outputs that go to the
                user, those after them being saved for a backward.
        """
        self._streams_of = streams_of
        self._region = region
        self._whole = whole
        self._launchers = launchers
        self.settings = settings
        self._inputs = input_names(region.program)
        self._placeholders = [node.name for node in region.graph.graph.nodes if node.op == "placeholder"]
        self._static = static
        self._mutated = mutated
        self._saved = frozenset() if returned is None else frozenset(range(returned, len(region.program.outputs)))
        self._refused = refused_steps(region.steps, region.graph, capture_collectives=settings.collectives)
        self._parts: list[_Part] = []
        self._single: GraphedRegion | None = None
        self._padded: PaddedRegion | None = None
        self._not_padded: SkipReason | None = None
        self.asked: Replaying = Nothing()
        self._cut()

    def __call__(self, inputs: list[Any]) -> list[Any]:
        """Run on ``inputs``; the outputs in the order of the region's."""
        if self._single is not None:
            results = self._single(inputs) if self._padded is None else self._padded(inputs)
            if self._single.refused_step:
                self._take_out(self._single)
            return results
        values = dict(zip(self._inputs, inputs, strict=True))
        for part in self._parts:
            made = part.run([values[name] for name in part.piece.reads])
            values.update(zip(part.piece.makes, made, strict=True))
            del made
            for name in part.done_with:
                del values[name]
        refused = next((p.graphed for p in self._parts if p.graphed is not None and p.graphed.refused_step), None)
        if refused is not None:
            self._take_out(refused)
        return list(self._return([values.get(name) for name in self._returned]))

    def entry(self) -> Callable[[list[Any]], list[Any]]:
        """The region as a function that empties the list of its inputs, as AOTAutograd calls it.

        Its attribute ``region`` is for who calls it otherwise.
        """

        def call(inputs: list[Any]) -> list[Any]:
            results = self.asked.fast(inputs)
            if results is None:
                results = self(inputs)
            inputs.clear()
            return results

        call.region = self  # type: ignore[attr-defined]
        return call

    @property
    def graphs(self) -> list[GraphedRegion]:
        """What is captured: the whole region, or its parts in order."""
        if self._single is not None:
            return [self._single]
        return [part.graphed for part in self._parts if part.graphed is not None]

    @property
    def replays(self) -> int:
        """Graphs that calls have replayed, of those that are kept."""
        return sum(graphed.replays for graphed in self.graphs)

    def release(self) -> None:
        """Let go of the graphs; calls capture new ones."""
        for graphed in self.graphs:
            graphed.release()

    def facts(self) -> CudaGraph:
        """What capture made of the region, its parts added up."""
        padding = [self._not_padded] if self._not_padded is not None else []
        if self._single is not None:
            facts = self._single.facts()
            facts = msgspec.structs.replace(facts, skip_reasons=[*padding, *facts.skip_reasons])
            return facts if self._padded is None else self._padded.facts(facts)
        merged = merge_facts([graphed.facts() for graphed in self.graphs])
        reasons = [*self._refused.values(), *padding, *merged.skip_reasons]
        return msgspec.structs.replace(merged, capturable=False, skip_reasons=reasons)

    def _cut(self) -> None:
        """Make the parts for the steps that are refused now, keeping those that stay as they were."""
        region = self._region
        self._padded = None
        if not self._refused:
            uses = input_uses(region, self._placeholders, self._inputs, 0, len(region.steps))
            self._single = self._graphed(
                self._whole,
                self._static,
                self._mutated,
                uses,
                self._saved,
                region.program.inputs,
                forked=self._forked(),
                steady=has_collectives(region.steps),
            )
            self._pad(self._single)
            self.asked = self._single if self._padded is None else Nothing()
            return
        self.asked = Nothing()
        self._pad(None)
        known = {part.piece: part for part in self._parts}
        pieces = split(region.program, region.steps, self._refused)
        self._single = None
        self._returned = [n for n in returned_names(region.program) if n not in region.program.constants]
        self._return = build(*generate_return(region.program, self._returned), {})
        self._parts = []
        for number, piece in enumerate(pieces):
            later = {*self._returned, *(name for after in pieces[number + 1 :] for name in after.reads)}
            here = {*piece.reads, *piece.makes}
            done_with = tuple(sorted(here - later))
            part = known.get(piece)
            self._parts.append(
                _Part(piece, part.run, part.graphed, done_with) if part is not None else self._part(piece, done_with)
            )

    def _forked(self) -> Forked | None:
        """The region on several streams, where that was asked for and it has branches."""
        region = self._region
        found = lanes(region.steps, self.settings.streams) if self.settings.streams > 1 else None
        device = next((b.device for b in region.program.inputs if b is not None), None)
        if found is None or device is None or self._mutated or has_collectives(region.steps):
            return None
        common = (region.program, region.steps, region.plan, region.kernels)

        def make_call(mark: Mark) -> Call:
            text, names = generate_concurrent(*common, observed=region.name)
            return build(text, {**names, "mark": mark, "conform": Conform()}, self._launchers)

        names = [step.name for step in region.steps]
        call = ForkedCall(make_call, names, found, self._streams_of(device), self.settings.observer)
        in_place = inputs_left_in_place(region.program)
        inputs = [None if b is None or b.name in in_place else b for b in region.program.inputs]
        return Forked(Executable(call, inputs, static=self._static), found.count)

    def _pad(self, single: GraphedRegion | None) -> None:
        """Serve few sizes with graphs and round others up to them, where that was asked for and changes no number."""
        if not self.settings.buckets or not self._region.program.bindings:
            return
        try:
            if single is None:
                raise Dependent("The region is in parts.")
            batch = batch_of(self._region.graph)
            self._padded = PaddedRegion(single, batch, self.settings.buckets, self.settings.pool)
        except Dependent as error:
            frames = provenance_of(error.node).frames if error.node is not None else []
            op = f"{error.node.target}: " if error.node is not None else ""
            text = f"{op}{error} Each size has a graph of its own."
            name = error.node.name if error.node is not None else ""
            self._not_padded = SkipReason("not_padded", text, name, frames[0] if frames else None)

    def _part(self, piece: Piece, done_with: tuple[str, ...]) -> _Part:
        region = self._region
        steps = region.steps[piece.first : piece.last]
        static_names = {self._inputs[index] for index in self._static}
        static = frozenset(i for i, name in enumerate(piece.reads) if name in static_names)
        writes = {n for step in steps for n in (step.mutates if isinstance(step, Extern) else step.takes_over.values())}
        mutated = frozenset(i for i, name in enumerate(piece.reads) if name in writes)
        made = (*region.program.inputs, *region.plan.buffers.values())
        buffers = {b.name: b for b in made if b is not None}
        inputs = [buffers.get(name) for name in piece.reads]
        run = self._executable(piece, inputs, static, mutated)
        if not piece.captured:
            return _Part(piece, run, None, done_with)
        uses = input_uses(region, piece.reads, piece.reads, piece.first, piece.last)
        outputs = enumerate(region.program.outputs)
        saved_names = {x.buffer.name for i, x in outputs if i in self._saved and isinstance(x, TensorRef)}
        saved = frozenset(i for i, name in enumerate(piece.makes) if name in saved_names)
        graphed = self._graphed(run, static, mutated, uses, saved, inputs, steady=has_collectives(steps))
        return _Part(piece, graphed, graphed, done_with)

    def _executable(
        self, piece: Piece, inputs: Sequence[Buffer | None], static: frozenset[int], mutated: frozenset[int]
    ) -> Run:
        region = self._region
        common = (region.program, region.steps, region.plan, region.kernels, piece)
        call = build(*generate_piece(*common), self._launchers)

        def variant(mark: Mark | None, conform: Conform | None) -> Call:
            observed = region.name if mark is not None else ""
            text, names = generate_piece(*common, observed=observed, compared=conform is not None)
            return build(text, {**names, "mark": mark, "conform": conform}, self._launchers)

        in_place = inputs_left_in_place(region.program)  # the wrapper sees to their addresses
        return Executable(
            call,
            [None if b is None or b.name in in_place else b for b in inputs],
            static=static,
            mutated=mutated,
            observer=self.settings.observer,
            variant=variant,
        )

    def _graphed(
        self,
        run: Run,
        static: frozenset[int],
        mutated: frozenset[int],
        uses: Sequence[InputUse],
        saved: frozenset[int],
        inputs: Sequence[Buffer | None],
        *,
        forked: Forked | None = None,
        steady: bool,
    ) -> GraphedRegion:
        """``steady``: capture anew for nothing that one process does and another does not: no input that moves and no
        output that is kept."""
        return GraphedRegion(
            run,
            static,
            mutated_inputs=mutated,
            uses=uses,
            saved=saved,
            capacity=max(self.settings.capacity, len(self.settings.buckets)),
            clone_outputs=steady,
            least_buffering=Buffering.ALL if steady else Buffering.NONE,
            varying=varying_inputs(inputs),
            forked=forked,
            pool=self.settings.pool,
            observer=self.settings.observer,
        )

    def _take_out(self, graphed: GraphedRegion) -> None:
        """Leave the step that a capture failed at outside, from the next call on."""
        region = self._region
        names = [step.name for step in region.steps]
        step, reason = graphed.refused_step, graphed.refusal
        if reason is None or step not in names or names.index(step) in self._refused:
            graphed.refused_step = ""
            return
        scheduled = region.steps[names.index(step)]
        nodes = {node.name: node for node in region.graph.graph.nodes}
        node = nodes.get(scheduled.origins[0]) if scheduled.origins else None
        frames = provenance_of(node).frames if node is not None else []
        op = f"{node.target}: " if node is not None else ""
        self._refused[names.index(step)] = SkipReason(
            reason.rule, op + reason.detail, node.name if node is not None else "", frames[0] if frames else None
        )
        graphed.release()  # of inputs for which the step could be captured
        self._cut()


def varying_inputs(inputs: Sequence[Buffer | None]) -> frozenset[int]:
    """Positions of the inputs that may have other sizes or strides at the next call, and of those that are numbers."""
    return frozenset(index for index, b in enumerate(inputs) if b is None or symbol_names([*b.size, *b.stride]))


def input_uses(
    region: CompiledRegion, labels: Sequence[str], inputs: Sequence[str], first: int, last: int
) -> tuple[InputUse, ...]:
    """Who reads each input of the steps ``first`` to ``last``: kernels, with its position among theirs, and calls."""
    steps = region.steps[first:last]
    by_calls: dict[str, list[str]] = defaultdict(list)
    # A kernel that goes on in an input's storage has its address under another name, as has who reads a view of it.
    hidden = {name for step in steps if isinstance(step, Launch) for name in step.takes_over.values()}
    by_kernels: dict[str, list[tuple[str, int]]] = defaultdict(list)
    for step in steps:
        if isinstance(step, Launch):
            for position, argument in enumerate(step.kernel.arguments):
                by_kernels[argument.name].append((step.name, position))
        elif may_alias(step):
            hidden.update((*step.reads, *step.mutates))
        else:
            for name in dict.fromkeys((*step.reads, *step.mutates)):
                by_calls[name].append(step.name)
    program = region.program
    hidden |= {name for name, buffer in zip(program.input_names, program.inputs, strict=True) if buffer is None}
    hidden |= {b.symbol for step in region.steps if isinstance(step, Extern) for b in step.bindings}
    return tuple(
        InputUse(label, tuple(by_kernels[name]), tuple(by_calls[name]), name not in hidden)
        for label, name in zip(labels, inputs, strict=True)
    )


def merge_facts(graphs: Sequence[CudaGraph]) -> CudaGraph:
    """Several graphs of one iteration as one record: sums, and every reason."""
    topology: list[GraphNode] = []
    causes: dict[str, int] = {}
    for facts in graphs:
        topology += _shifted(facts.topology, len(topology))
        for cause, times in facts.recaptures.items():
            causes[cause] = causes.get(cause, 0) + times
    return CudaGraph(
        captured=any(facts.captured for facts in graphs),
        capturable=all(facts.capturable for facts in graphs),
        partitions=sum(facts.partitions for facts in graphs),
        skip_reasons=[reason for facts in graphs for reason in facts.skip_reasons],
        warmup_ms=sum(facts.warmup_ms for facts in graphs),
        capture_ms=sum(facts.capture_ms for facts in graphs),
        instantiate_ms=sum(facts.instantiate_ms for facts in graphs),
        upload_ms=sum(facts.upload_ms for facts in graphs),
        first_replay_ms=sum(facts.first_replay_ms for facts in graphs),
        pool_bytes=max((facts.pool_bytes for facts in graphs), default=0),  # they share one
        nodes=sum(facts.nodes for facts in graphs),
        captures=sum(facts.captures for facts in graphs),
        recaptures=causes,
        copied_bytes=sum(facts.copied_bytes for facts in graphs),
        topology=topology,
        routes=[route for facts in graphs for route in facts.routes],
        fills_as_kernels=sum(facts.fills_as_kernels for facts in graphs),
        streams=max((facts.streams for facts in graphs), default=1),
        one_stream_us=_sum(facts.one_stream_us for facts in graphs),
        forked_us=_sum(facts.forked_us for facts in graphs),
    )


def _sum(times: Iterable[float | None]) -> float | None:
    """Of the times that there are; None where there is none."""
    known = [time for time in times if time is not None]
    return sum(known) if known else None


def _shifted(topology: Sequence[GraphNode], by: int) -> list[GraphNode]:
    """The nodes of one graph among those of several: their ids go on from the graphs before."""
    return [
        msgspec.structs.replace(node, id=node.id + by, dependencies=[before + by for before in node.dependencies])
        for node in topology
    ]
