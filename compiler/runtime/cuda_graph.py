"""A compiled region behind a CUDA Graph: one graph for each signature, and the plain function where none will do."""

from __future__ import annotations

import threading
import weakref
from collections import OrderedDict
from collections.abc import Callable, Sequence
from typing import Any, Protocol

import msgspec
import torch
from torch import Tensor

from compiler.report import CudaGraph, SkipReason
from compiler.runtime import capture
from compiler.runtime.signature import CopyPlan, OutputPlan, Signature, describe, empty_with_layout, signature

Run = Callable[[Sequence[Any]], Sequence[Any]]

# Beyond this many captures the region's inputs change too often for graphs to pay.
MAX_CAPTURES = 32


class Recorded(Protocol):
    """What a recorder returns. ``result`` is written by every replay."""

    result: Any
    facts: CudaGraph

    def replay(self) -> None: ...


class Recorder(Protocol):
    """Captures functions on one kind of device."""

    device_type: str

    def is_capturing(self) -> bool:
        """Whether the caller is itself being captured."""

    def device(self, inputs: Sequence[Any]) -> torch.device: ...
    def stream(self, device: torch.device) -> Any:
        """The caller's stream, which can ``wait_stream`` for another."""

    def stream_key(self, device: torch.device) -> int:
        """A number that tells streams apart, had at every call and so without making an object."""

    def record(
        self, run: Callable[[], Sequence[Any]], device: torch.device, warmup: int, restore: Callable[[], None]
    ) -> Recorded: ...
    def pool_bytes(self) -> int: ...
    def wait(self, device: torch.device) -> None: ...


class CudaRecorder:
    """Captures on CUDA devices. All graphs of one recorder share a pool, for they never run at the same time."""

    device_type = "cuda"

    def __init__(self) -> None:
        # Asked once: torch.cuda.is_available() takes as long as a launch.
        self._available = torch.cuda.is_available()
        self._pool = torch.cuda.graph_pool_handle() if self._available else None

    def is_capturing(self) -> bool:
        return self._available and torch.cuda.is_current_stream_capturing()

    def device(self, inputs: Sequence[Any]) -> torch.device:
        for value in inputs:
            if isinstance(value, Tensor):
                return value.device
        return torch.device("cuda", torch.cuda.current_device())

    def stream(self, device: torch.device) -> torch.cuda.Stream:
        return torch.cuda.current_stream(device)

    def stream_key(self, device: torch.device) -> int:
        return int(torch._C._cuda_getCurrentRawStream(device.index))

    def record(
        self, run: Callable[[], Sequence[Any]], device: torch.device, warmup: int, restore: Callable[[], None]
    ) -> Recorded:
        return capture.record(run, device=device, warmup=warmup, pool=self._pool, restore=restore)

    def pool_bytes(self) -> int:
        return capture.pool_bytes(self._pool) if self._pool is not None else 0

    def wait(self, device: torch.device) -> None:
        torch.cuda.synchronize(device)


class _Graph:
    """One captured signature."""

    def __init__(
        self,
        region_inputs: Sequence[Any],
        arguments: list[Any],
        copies: CopyPlan,
        recorded: Recorded,
        static: frozenset[int],
        device: torch.device,
        *,
        clone: bool,
    ) -> None:
        self.recorded = recorded
        self.device = device
        self.copies = copies
        self.outputs = OutputPlan(recorded.result, arguments, clone=clone)
        # The graph reads these buffers, so they live as long as it does.
        self._arguments = arguments
        tensors = {index for index in static if isinstance(region_inputs[index], Tensor)}
        self._static = [
            (index, weakref.ref(region_inputs[index]), region_inputs[index].data_ptr()) for index in sorted(tensors)
        ]
        self._other = [(index, describe(value)) for index, value in enumerate(region_inputs) if index not in tensors]

    def serves(self, inputs: Sequence[Any]) -> bool:
        """Whether ``inputs`` are those of the last call but for values, found faster than by a signature."""
        for index, reference, address in self._static:
            known = reference()
            # The same object at the same address: its sizes are those it was captured with.
            if known is None or known is not inputs[index] or known.data_ptr() != address:
                return False
        return all(describe(inputs[index]) == described for index, described in self._other)


class GraphedRegion:
    """Calls ``run`` through a CUDA Graph.

    Numbers are those of ``run``, always: where a capture fails or does not apply, ``run`` itself is called and the
    reason is kept. Signatures (sizes, strides, dtypes, numbers among the inputs, addresses of static inputs) have a
    graph each, the least recently used of which is dropped beyond ``capacity``.

    An input that ``run`` writes to is right in both ways it can be passed: a static one is written in place by the
    replay, a copied one is copied back. Where it shares memory with another input the copy would part them, so that
    call runs without the graph.

    Random numbers advance at every replay, from where the generator stands, as they would without the graph.

    Several threads may call it; on the GPU the calls follow one another.
    """

    def __init__(
        self,
        run: Run,
        static_inputs: frozenset[int],
        warmup: int = 2,
        *,
        mutated_inputs: frozenset[int] = frozenset(),
        capacity: int = 4,
        clone_outputs: bool = True,
        recorder: Recorder | None = None,
    ) -> None:
        """
        Args:
            run: a list of inputs to a list of outputs, without autograd, with no effect but on the mutated inputs.
            static_inputs: positions whose tensors stay where they are (parameters, buffers). Their sizes and dtypes
                must not change under the same tensor object.
            mutated_inputs: positions of the tensors that ``run`` writes to.
            clone_outputs: return fresh tensors. Without it the next call overwrites what this one returned.
        """
        self._run = run
        self._static = static_inputs
        self._mutated = mutated_inputs
        self._warmup = warmup
        self._capacity = capacity
        self._clone = clone_outputs
        self._recorder = recorder or CudaRecorder()
        self._graphs: OrderedDict[Signature, _Graph] = OrderedDict()
        self._latest: _Graph | None = None
        self._reasons: list[SkipReason] = []
        self._gave_up = False
        self._captures = 0
        self._stream: Any = None
        self._stream_key = 0
        self._lock = threading.Lock()

    def __call__(self, inputs: Sequence[Any]) -> list[Any]:
        """Run the region on ``inputs``; the outputs in the order of ``run``'s."""
        if self._gave_up or self._recorder.is_capturing():
            return list(self._run(inputs))
        with self._lock, torch.no_grad():
            if self._mutated and self._parts_shared_memory(inputs):
                self._note("aliased_inputs", "An input that the region writes to shares memory with another input.")
                return list(self._run(inputs))
            graph = self._find(inputs)
            if graph is not None:
                self._follow_last_stream(graph)
                graph.copies.copy_from(inputs)
                graph.recorded.replay()
            else:
                # A new graph has been replayed once, by its recording.
                graph = self._capture(inputs)
            if graph is None:
                return list(self._run(inputs))
            graph.copies.copy_back(inputs, self._mutated)
            return graph.outputs.results(inputs)

    def facts(self) -> CudaGraph:
        """The graph captured last, and every reason for which a call ran without one."""
        if self._latest is None:
            return CudaGraph(capturable=not self._gave_up, skip_reasons=list(self._reasons))
        return msgspec.structs.replace(
            self._latest.recorded.facts,
            skip_reasons=list(self._reasons),
            pool_bytes=self._recorder.pool_bytes(),
            captures=self._captures,
            copied_bytes=self._latest.copies.bytes,
        )

    def _find(self, inputs: Sequence[Any]) -> _Graph | None:
        try:
            if self._latest is not None and self._latest.serves(inputs):
                return self._latest
            key = signature(inputs, self._static)
        except TypeError:  # a value that cannot be hashed: _capture says so
            return None
        graph = self._graphs.get(key)
        if graph is not None:
            self._graphs.move_to_end(key)
            self._latest = graph
        return graph

    def _capture(self, inputs: Sequence[Any]) -> _Graph | None:
        """A graph for the signature of ``inputs``, already replayed on them; None where they run without one."""
        reason = self._refuse(inputs)
        if reason is None and self._captures >= MAX_CAPTURES:
            reason = SkipReason("changing_inputs", f"The inputs changed more than {MAX_CAPTURES} times.")
        if reason is not None:
            self._note(reason.rule, reason.detail)
            return None
        copied = {
            index: empty_with_layout(value)
            for index, value in enumerate(inputs)
            if isinstance(value, Tensor) and index not in self._static
        }
        arguments = [copied.get(index, value) for index, value in enumerate(inputs)]
        copies = CopyPlan(copied)
        copies.copy_from(inputs)
        backups = {index: arguments[index].clone() for index in self._mutated}

        def restore() -> None:
            for index, backup in backups.items():
                arguments[index].copy_(backup)

        device = self._recorder.device(inputs)
        try:
            recorded = self._recorder.record(lambda: self._run(arguments), device, self._warmup, restore)
        except capture.CaptureRefused as refused:
            self._reasons.append(refused.reason)
            self._gave_up = True
            return None
        except Exception as error:
            # The plain call that follows raises it again if it is the function's own.
            self._note("warm_up_failed", f"The calls before the capture failed with {type(error).__name__}: {error}")
            self._gave_up = True
            return None
        unusable = self._refuse(recorded.result)
        if unusable is not None:
            # The recording has run once, and the plain call that follows must not find its writes.
            restore()
            self._note(unusable.rule, f"An output cannot leave a graph. {unusable.detail}")
            self._gave_up = True
            return None
        graph = _Graph(inputs, arguments, copies, recorded, self._static, device, clone=self._clone)
        self._captures += 1
        self._graphs[signature(inputs, self._static)] = graph
        self._latest = graph
        self._stream, self._stream_key = self._recorder.stream(device), self._recorder.stream_key(device)
        if len(self._graphs) > self._capacity:
            # A graph must not be freed while the GPU runs it.
            self._recorder.wait(device)
            self._graphs.popitem(last=False)
        return graph

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

    def _parts_shared_memory(self, inputs: Sequence[Any]) -> bool:
        """Whether a mutated input shares its storage with another input, and one of the two is copied."""
        storages: dict[int, list[int]] = {}
        for index, value in enumerate(inputs):
            if isinstance(value, Tensor) and value.numel():
                storages.setdefault(value.untyped_storage().data_ptr(), []).append(index)
        return any(
            len(indices) > 1 and not self._mutated.isdisjoint(indices) and not self._static.issuperset(indices)
            for indices in storages.values()
        )

    def _follow_last_stream(self, graph: _Graph) -> None:
        """Order this call after the last one where the caller has moved to another stream."""
        key = self._recorder.stream_key(graph.device)
        if key != self._stream_key:
            stream = self._recorder.stream(graph.device)
            stream.wait_stream(self._stream)
            self._stream, self._stream_key = stream, key

    def _note(self, rule: str, detail: str) -> None:
        if not any(reason.rule == rule for reason in self._reasons):
            self._reasons.append(SkipReason(rule=rule, detail=detail))
