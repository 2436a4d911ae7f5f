"""A recorder for the CPU, whose replay calls the function again on the memory that it was captured with."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from compiler import backend  # noqa: E402
from compiler.backend import Session, as_captured, fusescope  # noqa: E402
from compiler.kernel_library import KernelLibrary  # noqa: E402
from compiler.report import CudaGraph, GraphNode, GraphNodeKind, SkipReason  # noqa: E402
from compiler.runtime.buffering import InputUse  # noqa: E402
from compiler.runtime.capture import CaptureRefused  # noqa: E402
from compiler.runtime.cuda_graph import GraphedRegion  # noqa: E402
from compiler.runtime.observe import Observer  # noqa: E402
from compiler.runtime.partitioned import PartitionedRegion  # noqa: E402
from compiler.runtime.pool import GraphPool  # noqa: E402
from tests.graphs import TARGET  # noqa: E402

UNKNOWN_CALL = "gemm"  # whose nodes may hold an address anywhere
USES = (InputUse("x", (("group0", 0),), traced=True), InputUse("weight", (("group0", 1),)))


class FakeStream:
    def wait_stream(self, other: FakeStream) -> None:
        self.waited_for = other


class FakeRecording:
    """Replays as the hardware does: the same work on the same memory, results into the same tensors."""

    def __init__(self, run: Callable[[list[Any]], Sequence[Any]], arguments: list[Any], patchable: bool) -> None:
        self.run = run
        self.arguments = list(arguments)
        self.patchable = patchable
        self.written = list(run(list(arguments)))
        self.result: Any = self.written
        self.facts = CudaGraph(captured=True, partitions=1, nodes=3)
        self.random = False
        self.replays = 1

    def replay(self, stream: int) -> None:
        self.replays += 1
        # Where an output is an argument's own memory the run has written it already.
        with torch.inference_mode():
            for old, new in zip(self.written, self.run(list(self.arguments)), strict=True):
                if isinstance(old, torch.Tensor) and old.data_ptr() != new.data_ptr():
                    old.copy_(new)

    def topology(self) -> list[GraphNode]:
        return [GraphNode(id=0, kind=GraphNodeKind.KERNEL, name="kernel")]

    def movable(self, use: InputUse, tensor: Any, others: Sequence[Any]) -> int | None:
        if UNKNOWN_CALL in use.calls:
            return None
        return next((i for i, argument in enumerate(self.arguments) if argument is tensor), None)

    def move(self, inputs: Sequence[tuple[int, Any]]) -> bool:
        for index, tensor in inputs:
            self.arguments[index] = tensor
        return self.patchable


class AddressRecording(FakeRecording):
    """Knows the addresses of its inputs and keeps none of them alive, as the hardware does."""

    def __init__(self, run: Callable[[list[Any]], Sequence[Any]], arguments: list[Any], patchable: bool) -> None:
        super().__init__(run, arguments, patchable)
        given = {value.untyped_storage().data_ptr() for value in arguments if isinstance(value, torch.Tensor)}
        self._places = {id(value): place for place, value in enumerate(arguments)}  # two may be at one address
        self.arguments = [_at_its_address(value) for value in arguments]
        self.written = [
            value if isinstance(value, torch.Tensor) and value.untyped_storage().data_ptr() not in given else None
            for value in self.written
        ]

    def movable(self, use: InputUse, tensor: Any, others: Sequence[Any]) -> int | None:
        return self._places[id(tensor)] if tensor.numel() else None

    def move(self, inputs: Sequence[tuple[int, Any]]) -> bool:
        return super().move([(index, _at_its_address(tensor)) for index, tensor in inputs])


def _at_its_address(value: Any) -> Any:
    """What reads and writes the tensor's memory as long as there is any."""
    if not isinstance(value, torch.Tensor) or not value.numel():
        return value
    reach = 1 + sum((size - 1) * stride for size, stride in zip(value.shape, value.stride(), strict=True))
    memory = (ctypes.c_byte * (reach * value.element_size())).from_address(value.data_ptr())
    there = torch.frombuffer(memory, dtype=value.dtype).as_strided(value.shape, value.stride())
    there = torch._neg_view(there) if value.is_neg() else there
    return there.conj() if value.is_conj() else there


class FakeRecorder:
    device_type = "cpu"

    def __init__(self, recording: type[FakeRecording] = FakeRecording) -> None:
        self.recording = recording
        self.recordings: list[FakeRecording] = []
        self.current = FakeStream()
        self.capturing = False
        self.patchable = True
        self.refuses: SkipReason | None = None
        self.times_us = [20.0, 10.0]  # of a replay on one stream, and on several

    def is_capturing(self) -> bool:
        return self.capturing

    def device(self, inputs: Sequence[Any]) -> torch.device:
        return torch.device("cpu")

    def stream(self, device: torch.device) -> FakeStream:
        return self.current

    def raw_stream(self, device: int) -> int:
        return id(self.current)

    def same_addresses(self, tensors: Sequence[Any], addresses: list[int], indices: list[int]) -> bool:
        return all(tensors[index].data_ptr() == addresses[index] for index in indices)

    def record(
        self,
        run: Callable[[list[Any]], Sequence[Any]],
        arguments: list[Any],
        device: torch.device,
        warmup: int,
        restore: Callable[[], None],
        observer: Observer,
    ) -> FakeRecording:
        for _ in range(warmup):
            try:
                run(list(arguments))
            finally:
                restore()
        if self.refuses is not None:
            raise CaptureRefused(self.refuses)
        self.recordings.append(self.recording(run, arguments, self.patchable))
        return self.recordings[-1]

    def replay_us(self, recorded: FakeRecording, device: torch.device) -> float:
        recorded.replay(0)
        return self.times_us[self.recordings.index(recorded) % 2]

    def pool_bytes(self) -> int:
        return 4096

    def wait(self, device: torch.device) -> None:
        pass


def region(run: Any, static: set[int] = set(), **options: Any) -> tuple[GraphedRegion, FakeRecorder]:  # noqa: B006
    recorder = FakeRecorder()
    return GraphedRegion(run, frozenset(static), pool=GraphPool(recorder), **options), recorder


def affine(inputs: Sequence[Any]) -> list[Any]:
    x, weight = inputs
    return [x * weight + 1, x.sum()]


def check(graphed: GraphedRegion, run: Any, inputs: list[Any]) -> list[Any]:
    outputs = graphed(inputs)
    for got, expected in zip(outputs, run(inputs), strict=True):
        torch.testing.assert_close(got, expected)
        if isinstance(expected, torch.Tensor):
            assert got.stride() == expected.stride()
    return outputs


def routes(graphed: GraphedRegion) -> list[str]:
    return [route.route for route in graphed.facts().routes]


def graphing_backend(
    monkeypatch: pytest.MonkeyPatch, recorder: FakeRecorder
) -> tuple[Callable[[Any, Sequence[Any]], Any], list[PartitionedRegion]]:
    """A backend that graphs regions on the CPU as if they ran kernels, and the regions that it makes."""
    monkeypatch.setattr(backend, "executable_of", lambda region, *_: as_captured(region))
    monkeypatch.setattr(backend, "launchers_of", lambda region, library: {})
    monkeypatch.setattr(backend, "_on_gpu", lambda region: True)
    session = Session(TARGET, KernelLibrary(TARGET, binaries=False, texts=False))
    session.graph_pool = GraphPool(recorder)
    regions: list[PartitionedRegion] = []
    options = {"session": session, "cuda_graph": True, "on_graphed_region": regions.append}
    return lambda gm, inputs: fusescope(gm, inputs, options=options), regions
