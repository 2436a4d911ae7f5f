"""A compiled region behind CUDA Graphs: one for each signature, and the plain function where none will do."""

from __future__ import annotations

import gc
from collections import OrderedDict, deque
from collections.abc import Collection, Sequence
from typing import Any, NamedTuple

import msgspec
import torch
from torch import Tensor

from compiler.report import CudaGraph, SkipReason
from compiler.runtime import capture
from compiler.runtime.buffering import Buffering, InputUse, least_buffering, parts_shared_memory
from compiler.runtime.captured import CapturedGraph
from compiler.runtime.fast_replay import FastReplay, fast_replay, no_replay
from compiler.runtime.observe import Observer
from compiler.runtime.outputs import OutputPlan
from compiler.runtime.pool import GraphPool, Recorded, Run
from compiler.runtime.signature import CopyPlan, Signature, empty_with_layout, signature

# Beyond this many captures the region's inputs change too often for graphs to pay.
MAX_CAPTURES = 32
# Beyond this many captures for static inputs that moved, or places where they were once, others run without a graph.
MAX_MOVES = 6
# Beyond this many captures for another region's, what that region made keeps this one from its graph.
MAX_ORDERS = 6
# Why a region is captured more than once.
_KEPT = "an output was kept"
_ORDER = "a region whose outputs this one must not overwrite was captured anew"
_MOVED = "an input moved"
_STATIC_MOVED = "a parameter or saved tensor moved"
_OTHER_SIGNATURE = "other sizes, strides, dtypes or numbers"


class Forked(NamedTuple):
    """A region on several streams: ``run`` as the region's, and on how many."""

    run: Run
    streams: int


class _Key(NamedTuple):
    """What a graph serves: sizes, strides, dtypes and numbers, and the addresses of static inputs."""

    layout: Signature
    addresses: tuple[int, ...]


class GraphedRegion:
    """Calls ``run`` through a CUDA Graph.

    Numbers are those of ``run``, always: where a capture fails or does not apply, ``run`` itself is called and the
    reason is kept. Signatures (sizes, strides, dtypes, numbers among the inputs, addresses of static inputs) have a
    graph each, the least recently used of which is dropped beyond ``capacity``.

    Inputs are read where they are. One that moves is followed by replacing its address in the graph where generated
    kernels, copies and fills alone read it; where others do, a second graph is captured that reads it from a buffer,
    and it is copied.

    Outputs are memory of the graph, which does not run again while somebody holds one of them: such a call runs
    without the graph, and outputs that were held are copied from then on. Nor does it run while somebody holds an
    output of a graph captured later: where that is another region's, called before this one, it is captured anew.

    An input that ``run`` writes to is written in place, or copied back. Where it shares memory with another input and
    one of the two is copied, the copy would part them, so that call runs without the graph.

    Random numbers advance at every replay, from where the generator stands, as they would without the graph.

    Several threads may call it; on the GPU the calls follow one another.

    Attributes:
        latest: the graph that served the last call, or None. ``fast`` replays it where nothing has changed since.
        refused_step: the step of ``run`` that a capture failed at, or ""; ``refusal`` is its reason.
    """

    def __init__(
        self,
        run: Run,
        static_inputs: frozenset[int],
        warmup: int = 2,
        *,
        mutated_inputs: frozenset[int] = frozenset(),
        uses: Sequence[InputUse] = (),
        saved: frozenset[int] = frozenset(),
        capacity: int = 4,
        clone_outputs: bool = False,
        least_buffering: Buffering = Buffering.NONE,
        varying: Collection[int] | None = None,
        forked: Forked | None = None,
        pool: GraphPool | None = None,
        observer: Observer | None = None,
    ) -> None:
        """
        Args:
            run: a list of inputs, which it may empty, to a list of outputs, without autograd, with no effect but on the
                mutated inputs.
            static_inputs: positions whose tensors mostly stay where they are (parameters, buffers, tensors that another
                graph left). Never copied.
            mutated_inputs: positions of the tensors that ``run`` writes to.
            uses: who reads each input; without it no moved input can be followed.
            saved: positions of the outputs that are saved for a backward and do not go to the user.
            capacity: signatures that keep their graphs.
            clone_outputs: return copies from the start.
            least_buffering: which inputs are copied from the start.
            varying: positions whose sizes, strides, dtype or number may change from call to call; all of them where it
                is None. The caller sees to it that the others' do not.
            forked: the same on several streams, tried at each capture and kept where its replay is faster.
            pool: memory to share with other regions of the same compilation.
            observer: what ``run`` tells of its steps; the graph's nodes are joined to them.
        """
        self._run = run
        self._static = static_inputs
        self._mutated = mutated_inputs
        self._uses = tuple(uses)
        self._saved = saved
        self._warmup = warmup
        self._capacity = capacity
        self._clone_all = clone_outputs
        self._least_buffering = least_buffering
        self._cloned: set[int] = set()
        self._varying = varying
        self._forked = forked
        self._pool = pool or GraphPool()
        self._recorder = self._pool.recorder
        self._observer = observer or Observer()
        self._graphs: OrderedDict[_Key, list[CapturedGraph]] = OrderedDict()
        self.latest: CapturedGraph | None = None
        self.fast: FastReplay = no_replay
        self.refused_step = ""
        self.refusal: SkipReason | None = None
        self._reasons: list[SkipReason] = []
        self._gave_up = False
        self._captures = 0
        self._recaptures: dict[str, int] = {}
        self._seen_once: deque[_Key] = deque(maxlen=MAX_MOVES + 1)

    def __call__(self, inputs: list[Any]) -> list[Any]:
        """Run the region on ``inputs``; the outputs in the order of ``run``'s."""
        results = self.fast(inputs)
        if results is None and not self._gave_up and not self._recorder.is_capturing():
            with self._pool.lock:
                results = self._serve(inputs)
        return list(self._run(list(inputs))) if results is None else results

    @property
    def replays(self) -> int:
        """Calls that a graph served, of the graphs that are kept."""
        return sum(graph.replays for variants in self._graphs.values() for graph in variants)

    def release(self) -> None:
        """Let go of all graphs; calls capture new ones."""
        with self._pool.lock:
            for variants in self._graphs.values():
                for graph in variants:
                    self._recorder.wait(graph.device)  # a graph must not be freed while the GPU runs it
            self._graphs.clear()
            self._use(None)
            self._pool.tidy()

    def facts(self) -> CudaGraph:
        """The graph captured last, and every reason for which a call ran without one."""
        graph = self.latest
        if graph is None:
            return CudaGraph(
                capturable=not self._gave_up,
                skip_reasons=list(self._reasons),
                captures=self._captures,
                recaptures=dict(self._recaptures),
            )
        return msgspec.structs.replace(
            graph.recorded.facts,
            skip_reasons=list(self._reasons),
            pool_bytes=self._recorder.pool_bytes(),
            captures=self._captures,
            recaptures=dict(self._recaptures),
            copied_bytes=graph.copies.bytes,
            routes=graph.routes(self._static, self._uses),
            topology=graph.recorded.topology(),
        )

    def _use(self, graph: CapturedGraph | None) -> None:
        """Serve the next calls with ``graph`` where it can."""
        if graph is not self.latest:
            self.latest = graph
            self.fast = no_replay if graph is None else fast_replay(graph, self._pool, self._mutated)

    def _replay(self, graph: CapturedGraph, inputs: list[Any]) -> list[Any]:
        stream = self._pool.begin(graph.number, graph.outputs, graph.device)
        graph.run(inputs, self._mutated, stream)
        graph.held = 0
        graph.replays += 1
        return graph.outputs.results(inputs)

    def _serve(self, inputs: list[Any]) -> list[Any] | None:
        """A call that the latest graph does not serve as it is; None where it runs without a graph."""
        latest = self.latest
        if latest is not None and latest.same_layout(inputs):
            results = self._replay_one([latest], inputs)
            if results is not None:
                return results
        try:
            key = self._key(inputs)
        except TypeError:  # a value that cannot be hashed
            self._note(self._refuse(inputs))
            return None
        variants = self._graphs.get(key, [])
        held = self._held(variants, inputs)
        if held and not held[0].collected:
            # Once for a graph: what Dynamo leaves of tracing a call holds that call's tensors in reference cycles.
            held[0].collected = True
            gc.collect()
            held = self._held(variants, inputs)
        results = self._replay_one(variants, inputs)
        if results is not None:
            self._graphs.move_to_end(key)
            return results
        cause = self._retire(key, held[0], inputs) if held else ""
        return None if held and not cause else self._capture(key, inputs, cause)

    def _replay_one(self, graphs: Sequence[CapturedGraph], inputs: list[Any]) -> list[Any] | None:
        """Replay the first of the graphs that can serve the inputs; None where none can."""
        for graph in list(graphs):
            if self._accepts(graph, inputs) and not self._pool.held_by(graph.number) and graph.follow(inputs):
                self._use(graph)
                return self._replay(graph, inputs)
        return None

    def _accepts(self, graph: CapturedGraph, inputs: list[Any]) -> bool:
        takes = graph.takes(inputs, self._recorder.same_addresses)
        return takes and not parts_shared_memory(inputs, graph.copied, self._mutated)

    def _held(self, graphs: Sequence[CapturedGraph], inputs: list[Any]) -> list[CapturedGraph]:
        """The graphs that could serve the inputs if nobody held what they would overwrite."""
        return [graph for graph in graphs if self._accepts(graph, inputs) and self._pool.held_by(graph.number)]

    def _retire(self, key: _Key, graph: CapturedGraph, inputs: list[Any]) -> str:
        """Someone holds outputs that ``graph`` would overwrite. Copy such outputs from now on, and note it.

        Why another graph should be captured in its place, or "" where none should.
        """
        own = graph.outputs
        others = [outputs for outputs in self._pool.held_by(graph.number) if outputs is not own]
        if own.pending():
            text = "A forward ran again while the tensors that the last one saved for its backward were still needed."
            self._note(SkipReason("pending_backward", text))
            return ""
        graph.held += 1
        pending = any(outputs.pending() for outputs in others)
        # A region whose outputs this one reads was captured anew; in a loop through both, where no order serves, this
        # one has never been replayed.
        read = graph.replays > 0 and any(outputs.hold(inputs) for outputs in others)
        if not own.free():
            self._clone_kept(own)
        if (pending or read) and self._recaptures.get(_ORDER, 0) < MAX_ORDERS:
            return self._drop(key, graph, _ORDER)
        if pending:
            text = "Regions take turns in being called while what the others saved for a backward is still needed."
            self._note(SkipReason("pending_backward", text))
            return ""
        for outputs in others:
            self._clone_kept(outputs)
        # Held so long that another graph has to be captured.
        return self._drop(key, graph, _KEPT) if graph.held >= 2 else ""

    def _clone_kept(self, outputs: OutputPlan) -> None:
        outputs.clone_kept()
        text = "An output was kept while the region ran again; it is copied from then on."
        self._note(SkipReason("kept_outputs", text))

    def _drop(self, key: _Key, graph: CapturedGraph, cause: str) -> str:
        self._recorder.wait(graph.device)  # a graph must not be freed while the GPU runs it
        self._graphs[key].remove(graph)
        self._use(None)
        return cause

    def _capture(self, key: _Key, inputs: list[Any], cause: str) -> list[Any] | None:
        """Capture a graph for the inputs and return what its first replay made; None where they run without one.

        ``cause`` is why a graph that could serve them was dropped, or "".
        """
        reason = self._refuse(inputs)
        moved = sum(known.layout == key.layout for known in self._graphs)
        if reason is None and self._captures >= MAX_CAPTURES:
            reason = SkipReason("changing_inputs", f"The inputs changed more than {MAX_CAPTURES} times.")
        elif reason is None and moved and key not in self._graphs:
            reason = self._elsewhere(key)
        if reason is not None:
            self._note(reason)
            return None
        variants = self._graphs.get(key, [])
        buffering, buffered = least_buffering(inputs, variants, self._static, self._uses, self._least_buffering)
        copied = {index: empty_with_layout(inputs[index]) for index in buffered}
        if copied and parts_shared_memory(inputs, copied, self._mutated):
            self._note(
                SkipReason("aliased_inputs", "An input that the region writes to shares memory with another input.")
            )
            return None
        device = self._recorder.device(inputs)
        self._pool.follow(device)
        graph = self._record(inputs, copied, buffering, device)
        if graph is None:
            return None
        if self._captures:
            cause = cause or (_MOVED if variants else _STATIC_MOVED if moved else _OTHER_SIGNATURE)
            self._recaptures[cause] = self._recaptures.get(cause, 0) + 1
        self._captures += 1
        # One that was never replayed will hardly be.
        useful = [known for known in variants if known.replays]
        if len(useful) < len(variants) or len(self._graphs) + (not variants) > self._capacity:
            self._recorder.wait(device)  # a graph must not be freed while the GPU runs it
        self._graphs[key] = [*useful, graph]
        self._graphs.move_to_end(key)
        self._use(graph)
        if len(self._graphs) > self._capacity:
            self._graphs.popitem(last=False)
        self._pool.tidy()
        self._pool.begin(graph.number, graph.outputs, device)
        with torch.no_grad():
            graph.copies.copy_back(inputs, self._mutated)
        return graph.outputs.results(inputs)

    def _elsewhere(self, key: _Key) -> SkipReason | None:
        """Why no graph is captured for static inputs that have moved.

        What a forward without its graph saved hardly comes again where it was, and a graph for it would be for nothing.
        """
        often = SkipReason("moving_inputs", f"Inputs taken to be static moved more than {MAX_MOVES} times.")
        if self._recaptures.get(_STATIC_MOVED, 0) >= MAX_MOVES:
            return often
        if key in self._seen_once:
            return None
        self._seen_once.append(key)
        text = "A parameter or saved tensor was elsewhere; a graph is captured for it when it is there again."
        return often if len(self._seen_once) > MAX_MOVES else SkipReason("moved_once", text)

    def _record(
        self, inputs: list[Any], copied: dict[int, Tensor], buffering: Buffering, device: torch.device
    ) -> CapturedGraph | None:
        """Record on the inputs, those in ``copied`` through these buffers. None, with a note, where that fails."""
        arguments = [copied.get(index, value) for index, value in enumerate(inputs)]
        with torch.no_grad():
            CopyPlan(copied).copy_from(inputs)
            backups = {index: arguments[index].clone() for index in self._mutated}

            def restore() -> None:
                for index, backup in backups.items():
                    arguments[index].copy_(backup)

            try:
                recorded = self._recorder.record(self._run, arguments, device, self._warmup, restore, self._observer)
            except capture.CaptureRefused as refused:
                self.refused_step, self.refusal = refused.step, refused.reason
                self._give_up(refused.reason)
                return None
            except Exception as error:
                # The plain call that follows raises it again if it is the function's own.
                text = f"The calls before the capture failed with {type(error).__name__}: {error}"
                self._give_up(SkipReason("warm_up_failed", text))
                return None
            unusable = self._refuse(recorded.result)
            if unusable is not None:
                # The recording has run once, and the plain call that follows must not find its writes.
                restore()
                text = f"An output cannot leave a graph. {unusable.detail}"
                self._give_up(SkipReason(unusable.rule, text))
                return None
        if self._forked is not None and not self._mutated and not recorded.random:
            recorded = self._faster(recorded, self._forked, arguments, device)
        outputs = OutputPlan(
            recorded.result, arguments, self._cloned, clone_all=self._clone_all, saved=self._saved
        )
        recorded.result = None  # an input among the results would stay alive, and with it the graph that made it held
        movable = {
            index: places
            for index, use in enumerate(self._uses)
            if use.traced and index not in copied and isinstance(inputs[index], Tensor)
            if (places := recorded.movable(use, inputs[index], _tensors_but(inputs, index))) is not None
        }
        number = self._pool.next_number()
        varying = range(len(inputs)) if self._varying is None else self._varying
        return CapturedGraph(
            number, inputs, copied, recorded, outputs, movable, self._static, varying, buffering, device
        )

    def _faster(self, recorded: Recorded, forked: Forked, arguments: list[Any], device: torch.device) -> Recorded:
        """The recording or one on several streams, whichever replays faster; its result is that of a replay."""
        with torch.no_grad():
            try:
                other = self._recorder.record(
                    forked.run, arguments, device, self._warmup, lambda: None, self._observer
                )
            except Exception as error:  # the one on a single stream is there, and right
                first = (str(error).strip() or type(error).__name__).splitlines()[0]
                self._note(SkipReason("not_forked", f"The region on several streams could not be captured: {first}"))
                return recorded
            alike = all(map(_equal, recorded.result, other.result))
            one, several = (self._recorder.replay_us(each, device) for each in (recorded, other))
            if not alike:
                text = "Its results on several streams are not those on one to the last bit, so one is used."
                self._note(SkipReason("not_forked", text))
            chosen = other if alike and several < one else recorded
            streams = forked.streams if chosen is other else 1
            chosen.facts = msgspec.structs.replace(
                chosen.facts, streams=streams, one_stream_us=one, forked_us=several
            )
            # Replays of either may have written to memory that the other has its results in.
            chosen.replay(self._pool.follow(device))
        return chosen

    def _key(self, inputs: Sequence[Any]) -> _Key:
        addresses = [inputs[i].data_ptr() for i in sorted(self._static) if isinstance(inputs[i], Tensor)]
        return _Key(signature(inputs), tuple(addresses))

    def _refuse(self, values: Sequence[Any]) -> SkipReason | None:
        """Why no graph can take or return ``values``."""
        devices = set()
        for index, value in enumerate(values):
            if not isinstance(value, Tensor):
                try:
                    hash(value)
                except TypeError:
                    return SkipReason("unsupported_input", f"Value {index} is a {type(value).__name__}.")
            elif value.device.type != self._recorder.device_type:
                # A graph holds the value that a CPU tensor had during the capture.
                return SkipReason("cpu_tensor", f"Tensor {index} is on the {value.device.type}.")
            elif value.layout != torch.strided or type(value) not in (Tensor, torch.nn.Parameter):
                return SkipReason("unsupported_input", f"Tensor {index} is not a plain strided tensor.")
            else:
                devices.add(value.device)
        if len(devices) > 1:
            return SkipReason("several_devices", "The tensors are on several devices.")
        return None

    def _give_up(self, reason: SkipReason) -> None:
        self._reasons.append(reason)
        self._gave_up = True

    def _note(self, reason: SkipReason | None) -> None:
        """Keep why a call runs without a graph, each rule once."""
        if reason is not None and not any(known.rule == reason.rule for known in self._reasons):
            self._reasons.append(reason)


def _tensors_but(inputs: Sequence[Any], index: int) -> list[Tensor]:
    return [value for i, value in enumerate(inputs) if i != index and isinstance(value, Tensor)]


def _equal(a: Any, b: Any) -> bool:
    """Whether two results are the same, not-a-numbers included."""
    if not isinstance(a, Tensor) or not isinstance(b, Tensor):
        return bool(a == b)
    return a.shape == b.shape and bool(((a == b) | ((a != a) & (b != b))).all())
