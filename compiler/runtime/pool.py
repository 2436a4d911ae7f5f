"""Memory that several CUDA Graphs share, and the rule by which they may: they never run at the same time, and none runs
while somebody holds an output that it could overwrite.

A graph's outputs stay allocated in the pool, so graphs captured later cannot write there. Graphs captured before may:
the memory was theirs to use and free. So a graph may run once all that itself and later graphs handed out is let go.

Streams: a graph runs on its caller's stream, after the last one of the pool. Letting go of an output while another
stream still reads it is the caller's to order, as with any tensor, but ``record_stream`` does not help here.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any, Protocol

import torch
from torch import Tensor

from compiler.report import CudaGraph, GraphNode
from compiler.runtime import capture
from compiler.runtime.addresses import SameAddresses, same_addresses
from compiler.runtime.buffering import InputUse
from compiler.runtime.observe import Observer
from compiler.runtime.outputs import OutputPlan

Run = Callable[[list[Any]], Sequence[Any]]


class Recorded(Protocol):
    """What a recorder returns. ``result`` is written by every replay."""

    result: Any
    facts: CudaGraph
    random: bool  # whether it draws random numbers

    def replay(self, stream: int) -> None:
        """Submit the graph to the current stream, whose handle is ``stream``."""

    def topology(self) -> list[GraphNode]: ...
    def movable(self, use: InputUse, tensor: Tensor, others: Sequence[Tensor]) -> Any | None:
        """Where the graph holds the address of an input that it was captured with; None where that is not known.

        ``others`` are the other tensors that it was captured with.
        """

    def move(self, inputs: Sequence[tuple[Any, Tensor]]) -> bool:
        """Read inputs elsewhere from the next replay on; where that is refused False, and no replay may follow."""


class Recorder(Protocol):
    """Captures functions on one kind of device."""

    device_type: str

    def is_capturing(self) -> bool:
        """Whether the caller is itself being captured."""

    def device(self, inputs: Sequence[Any]) -> torch.device: ...
    def stream(self, device: torch.device) -> Any:
        """The caller's stream, which can ``wait_stream`` for another."""

    def raw_stream(self, device: int) -> int:
        """The handle of the caller's stream, had at every call and so without making an object."""

    def same_addresses(self, tensors: Sequence[Any], addresses: list[int], indices: list[int]) -> bool:
        """Whether the tensors at ``indices`` are at the ``addresses`` of the same indices."""

    def record(
        self,
        run: Run,
        arguments: list[Any],
        device: torch.device,
        warmup: int,
        restore: Callable[[], None],
        observer: Observer,
    ) -> Recorded: ...
    def replay_us(self, recorded: Recorded, device: torch.device) -> float:
        """Measured time of a replay, in microseconds."""

    def pool_bytes(self) -> int: ...
    def wait(self, device: torch.device) -> None: ...


def _never() -> bool:
    return False


def _no_stream(device: int) -> int:
    return 0


def _unknown(tensors: Sequence[Any], addresses: list[int], indices: list[int]) -> bool:
    return False


class CudaRecorder:
    """Captures on CUDA devices, all graphs into one pool."""

    device_type = "cuda"

    def __init__(self) -> None:
        # Asked once: torch.cuda.is_available() takes as long as a launch.
        available = torch.cuda.is_available()
        self._pool = torch.cuda.graph_pool_handle() if available else None
        # torch's functions themselves, for these are called at every replay.
        self.is_capturing: Callable[[], bool] = torch._C._cuda_isCurrentStreamCapturing if available else _never
        self.raw_stream: Callable[[int], int] = torch._C._cuda_getCurrentRawStream if available else _no_stream
        self.same_addresses: SameAddresses = same_addresses() if available else _unknown

    def device(self, inputs: Sequence[Any]) -> torch.device:
        for value in inputs:
            if isinstance(value, Tensor):
                return value.device
        return torch.device("cuda", torch.cuda.current_device())

    def stream(self, device: torch.device) -> torch.cuda.Stream:
        return torch.cuda.current_stream(device)

    def record(
        self,
        run: Run,
        arguments: list[Any],
        device: torch.device,
        warmup: int,
        restore: Callable[[], None],
        observer: Observer,
    ) -> Recorded:
        return capture.record(
            lambda: run(list(arguments)),
            device=device,
            warmup=warmup,
            pool=self._pool,
            restore=restore,
            observer=observer,
        )

    def replay_us(self, recorded: Recorded, device: torch.device) -> float:
        return capture.replay_us(recorded.replay, device)

    def pool_bytes(self) -> int:
        return capture.pool_bytes(self._pool) if self._pool is not None else 0

    def wait(self, device: torch.device) -> None:
        torch.cuda.synchronize(device)


class GraphPool:
    """Shared by the graphed regions of one compilation, forward and backward.

    Attributes:
        lock: held while a graph is looked for, captured or submitted.
        handed_out: graphs that ran and whose outputs may still be held, by their place in the order of captures.
        newest: none of those was captured later.
        stream_handle: of the stream that the last one ran on.
    """

    def __init__(self, recorder: Recorder | None = None) -> None:
        self.recorder: Recorder = recorder or CudaRecorder()
        self.lock = threading.RLock()  # what a region calls may call another one
        self._captured = 0
        self.handed_out: dict[int, OutputPlan] = {}
        self.newest = 0
        self._stream: Any = None
        self.stream_handle: int | None = None
        self._raw_stream = self.recorder.raw_stream

    def next_number(self) -> int:
        """The place of a new graph in the order of captures."""
        self._captured += 1
        return self._captured

    def begin(self, number: int, outputs: OutputPlan, device: torch.device) -> int:
        """The graph ``number`` runs now and its caller gets the outputs. The handle of the stream that it runs on."""
        self.hand_out(number, outputs)
        return self.follow(device)

    def hand_out(self, number: int, outputs: OutputPlan) -> None:
        """Somebody gets the outputs of the graph ``number``."""
        self.handed_out[number] = outputs
        self.newest = max(self.newest, number)

    def tidy(self) -> None:
        """Let go of outputs that nobody else holds and whose graphs may be gone, which no call would ask about."""
        self.held_by(0)

    def held_by(self, number: int) -> list[OutputPlan]:
        """The outputs that keep the graph ``number`` from running: its own or later graphs', still held by someone."""
        held = []
        for later, outputs in list(self.handed_out.items()):
            if later < number:
                continue
            if outputs.free():
                del self.handed_out[later]
            else:
                held.append(outputs)
        self.newest = max(self.handed_out, default=0)
        return held

    def follow(self, device: torch.device) -> int:
        """Order this call after the last one where the caller has moved to another stream; the stream's handle."""
        handle = self._raw_stream(device.index)
        if handle != self.stream_handle:
            stream = self.recorder.stream(device)
            if self._stream is not None:
                stream.wait_stream(self._stream)
            self._stream, self.stream_handle = stream, handle
        return handle
