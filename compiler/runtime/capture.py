"""Records the GPU work of a function as a CUDA Graph, and leaves the CUDA context healthy where it cannot.

The life of a graph is warm-up, capture, instantiate, upload, first replay; each is timed.
"""

from __future__ import annotations

import contextlib
import ctypes
import functools
import gc
import linecache
import os
import statistics
import time
import traceback
from collections.abc import Callable, Iterator, Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Generic, TypeVar

import torch
from torch.autograd import profiler

from compiler.report import CudaGraph, GraphNode, SkipReason, SourceLine
from compiler.runtime import driver, fills, patching, topology
from compiler.runtime.buffering import InputUse
from compiler.runtime.observe import NO_STEP, NodeLog, Observer, StepLog, Units
from compiler.runtime.patching import PatchableNode, Place
from compiler.runtime.signature import extent_bytes

if TYPE_CHECKING:
    from torch.cuda import _POOL_HANDLE

R = TypeVar("R")

_current_device: Callable[[], int] = getattr(torch._C, "_cuda_getDevice", lambda: 0)
_raw_stream: Callable[[int], int] = getattr(torch._C, "_cuda_getCurrentRawStream", lambda device: 0)


class CaptureRefused(Exception):
    """The function cannot be captured; ``reason`` says why. The CUDA context is as it was before.

    ``step`` is the step of a region that was running when it failed, or "".
    """

    def __init__(self, reason: SkipReason, step: str = "") -> None:
        super().__init__(reason.detail)
        self.reason = reason
        self.step = step


class Recording(Generic[R]):
    """A captured function. ``result`` lives in the graph's memory: every replay writes it anew."""

    def __init__(
        self,
        graph: torch.cuda.CUDAGraph,
        result: R,
        facts: CudaGraph,
        device: torch.device,
        units: Units,
        *,
        random: bool,
    ) -> None:
        self.result = result
        self.facts = facts
        self.units = units
        self.random = random
        self._graph = graph
        self._device = device.index
        self._executable = _executable(graph)
        # torch's own replay moves the generators on; a graph that draws nothing is launched directly, which saves
        # more CPU time than the launch takes.
        launch = None if random or not self._executable else driver.launch_function()
        self._submit = functools.partial(launch, self._executable) if launch is not None else None
        self._patchable: dict[int, PatchableNode | None] = {}
        self._nodes_of: dict[str, list[int]] = {}
        for node, (_, unit) in units.items():
            self._nodes_of.setdefault(unit, []).append(node)

    def replay(self, stream: int | None = None) -> None:
        """Submit the graph to the current stream, whose handle is ``stream`` where the caller has it already."""
        submit = self._submit
        if (
            submit is not None
            and not profiler._is_profiler_enabled  # which knows launches by torch's way of making them
            and _current_device() == self._device
            and submit(_raw_stream(self._device) if stream is None else stream) == 0
        ):
            return
        # Also the way to torch's error message where the driver refused.
        self._graph.replay()

    def topology(self) -> list[GraphNode]:
        """The graph's nodes as the driver tells them, each with the step that issued it."""
        return topology.read(self._graph.raw_cuda_graph(), self.units)

    def movable(self, use: InputUse, tensor: torch.Tensor, others: Sequence[torch.Tensor]) -> list[Place] | None:
        """Every place where the graph holds the address of an input that it was captured with.

        ``use`` names all steps that read it, ``others`` are the other inputs. None where one of the steps is not a
        single kernel with that address at its place, or not a call that only copies and fills, from or to it.
        """
        places = []
        for unit, position in use.kernels:
            nodes = self._nodes_of.get(unit, [])
            kernel = self._patchable_node(nodes[0], patching.patchable_kernel) if len(nodes) == 1 else None
            if kernel is None or kernel.addresses[position : position + 1] != [tensor.data_ptr()]:
                return None
            places.append(Place(kernel, position))
        if use.calls and any(_overlap(tensor, other) for other in others):
            return None  # an address in a copy does not tell whose it is
        with torch.cuda.device(self._device):
            for unit in use.calls:
                copies = [self._patchable_node(n, patching.patchable_copy) for n in self._nodes_of.get(unit, [])]
                known = [copy for copy in copies if copy is not None]
                found = patching.places_in(known, tensor.data_ptr(), extent_bytes(tensor))
                if len(known) < len(copies) or not found:
                    return None
                places += found
        return places

    def _patchable_node(self, node: int, make: Callable[[int], PatchableNode | None]) -> PatchableNode | None:
        if node not in self._patchable:
            self._patchable[node] = make(node)
        return self._patchable[node]

    def move(self, inputs: Sequence[tuple[list[Place], torch.Tensor]]) -> bool:
        """Let the graph read inputs elsewhere from the next replay on.

        False where the driver refuses; it must not be replayed then, for some of its nodes may read the new address.
        """
        return patching.point_all([(places, tensor.data_ptr()) for places, tensor in inputs], self._executable)


def _overlap(a: torch.Tensor, b: torch.Tensor) -> bool:
    """Whether two tensors have bytes in common, counting what lies between their elements."""
    begin_a, begin_b = a.data_ptr(), b.data_ptr()
    return begin_a < begin_b + extent_bytes(b) and begin_b < begin_a + extent_bytes(a)


@functools.cache
def _side_stream(device: int) -> torch.cuda.Stream:
    """The stream captures happen on; one is enough for a device, for captures never overlap."""
    return torch.cuda.Stream(device)


def record(
    run: Callable[[], R],
    *,
    device: torch.device,
    warmup: int = 2,
    pool: _POOL_HANDLE | None = None,
    restore: Callable[[], None] = lambda: None,
    observer: Observer | None = None,
) -> Recording[R]:
    """Capture ``run`` and replay it once; the recording's ``result`` holds what that replay computed.

    Args:
        run: submits GPU work to the current stream. It must read and write the same memory at every call.
        warmup: how often ``run`` is called before the capture, at least twice: the first call may compile and load
            kernels, the last is checked for operations that wait for the GPU.
        pool: a graph pool to share with other recordings that never run at the same time.
        restore: undoes what a call of ``run`` wrote into memory that outlives it; called after each warm-up.
        observer: hears from the regions in ``run`` which step begins; the graph's nodes are then joined to steps.

    Raises:
        CaptureRefused: the work cannot be captured, or does not fit in memory a second time.
        Exception: whatever ``run`` itself raises when simply called.
    """
    caller = torch.cuda.current_stream(device)
    stream = _side_stream(device.index)
    generator = torch.cuda.default_generators[device.index]
    pool = torch.cuda.graph_pool_handle() if pool is None else pool
    facts = CudaGraph()
    stream.wait_stream(caller)
    with torch.cuda.device(device), torch.cuda.stream(stream):
        # What warm-up draws must not be missing from what the caller will draw.
        random_state = generator.get_state()
        began = time.perf_counter()
        try:
            _warm_up(run, max(2, warmup), restore, observer or Observer())
        finally:
            stream.synchronize()
            generator.set_state(random_state)
        facts.warmup_ms = _ms_since(began)

        began = time.perf_counter()
        log = NodeLog(device)
        graph, result = _capture(run, device, pool, observer or Observer(), log)
        facts.capture_ms = _ms_since(began)
        facts.fills_as_kernels = _fills_as_kernels(graph, log.units, device)
        began = time.perf_counter()
        graph.instantiate()
        facts.instantiate_ms = _ms_since(began)
        began = time.perf_counter()
        driver.upload(_executable(graph), stream.cuda_stream)
        stream.synchronize()
        facts.upload_ms = _ms_since(began)

        began = time.perf_counter()
        graph.replay()
        stream.synchronize()
        facts.first_replay_ms = _ms_since(began)
        random = not torch.equal(random_state, generator.get_state())
    caller.wait_stream(stream)
    facts.captured = True
    facts.partitions = 1
    nodes = driver.nodes(graph.raw_cuda_graph())
    facts.nodes = len(nodes)
    # A node that the capture did not end with must not be touched.
    units = {node: log.units[node] for node in nodes if node in log.units}
    return Recording(graph, result, facts, device, units, random=random)


def _executable(graph: torch.cuda.CUDAGraph) -> int:
    """The instantiated graph's handle, or 0 where this torch does not tell."""
    return int(graph.raw_cuda_graph_exec()) if hasattr(graph, "raw_cuda_graph_exec") else 0


def replay_us(replay: Callable[[int], None], device: torch.device, times: int = 15) -> float:
    """Median GPU time of a replay on the current stream, in microseconds."""
    stream = torch.cuda.current_stream(device)
    took = []
    for _ in range(times + 3):
        begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        stream.synchronize()
        begin.record(stream)
        replay(stream.cuda_stream)
        end.record(stream)
        end.synchronize()
        took.append(begin.elapsed_time(end) * 1e3)
    return float(statistics.median(took[3:]))


def pool_bytes(pool: _POOL_HANDLE) -> int:
    """Device memory that a graph pool holds."""
    return sum(
        segment["total_size"]
        for segment in torch.cuda.memory_snapshot()
        if tuple(segment.get("segment_pool_id", ())) == tuple(pool)
    )


def _ms_since(began: float) -> float:
    return (time.perf_counter() - began) * 1e3


def _warm_up(run: Callable[[], object], times: int, restore: Callable[[], None], observer: Observer) -> None:
    """Let lazy initialisation, kernel compilation and library heuristics happen before the capture."""
    steps = StepLog()
    for index in range(times):
        last = index == times - 1
        try:
            observer.mark = steps if last else None
            # Waiting for the GPU is what most often forbids a capture. Found here it breaks nothing; found by the
            # capture itself it invalidates the stream's capture and torch's bookkeeping with it.
            with _waiting_is_an_error() if last else contextlib.nullcontext():
                run()
        except torch.cuda.OutOfMemoryError as error:
            raise CaptureRefused(refusal(error)) from None
        except RuntimeError as error:
            if last and "synchronizing CUDA operation" in str(error):
                raise CaptureRefused(refusal(error), steps.step) from None
            raise
        finally:
            observer.mark = None
            restore()


@contextlib.contextmanager
def _waiting_is_an_error() -> Iterator[None]:
    before = torch.cuda.get_sync_debug_mode()
    torch.cuda.set_sync_debug_mode("error")
    try:
        yield
    finally:
        torch.cuda.set_sync_debug_mode(before)


def _capture(
    run: Callable[[], R], device: torch.device, pool: _POOL_HANDLE, observer: Observer, log: NodeLog
) -> tuple[torch.cuda.CUDAGraph, R]:
    """Capture one call of ``run`` on the current stream, which must not be the default stream."""
    torch.cuda.synchronize(device)
    # cuBLAS keeps one workspace for a stream. The warm-up's lies in ordinary memory, which anybody may give back (as
    # Inductor's own graphs do) while this graph still writes there; the capture must ask for one in the graph's pool.
    torch._C._cuda_clearCublasWorkspaces()
    # A graph pool cannot use memory that the ordinary pool has cached.
    torch.cuda.empty_cache()
    graph = torch.cuda.CUDAGraph(keep_graph=True)
    collecting = gc.isenabled()
    # A collection in the middle could free another graph or pinned memory, which a capture does not allow.
    gc.disable()
    try:
        graph.capture_begin(pool=pool, capture_error_mode="thread_local")
        try:
            observer.mark = log
            result = run()
            log(*NO_STEP)
            graph.capture_end()
        except BaseException as error:
            _abandon(graph, device, pool)
            if isinstance(error, Exception):
                raise CaptureRefused(refusal(error), log.step) from None
            raise
    finally:
        observer.mark = None
        if collecting:
            gc.enable()
        # Nor may the next graph, in a pool of its own, be left with the workspace in this one's.
        torch._C._cuda_clearCublasWorkspaces()
    return graph, result


def _fills_as_kernels(graph: torch.cuda.CUDAGraph, units: Units, device: torch.device) -> int:
    """See ``fills.as_kernels``. The kernels are those of torch, found by capturing them; on the current stream."""
    captured = []

    def make_kernels(found: Sequence[fills.Fill]) -> list[driver.KernelParams]:
        pool = torch.cuda.graph_pool_handle()
        try:
            other, _ = _capture(lambda: fills.write(found, device), device, pool, Observer(), NodeLog(device))
        except CaptureRefused:
            return []
        captured.append(other)  # its nodes hold the arguments
        params = map(driver.kernel_params, driver.nodes(other.raw_cuda_graph()))
        return [each for each in params if each is not None]

    return fills.as_kernels(graph.raw_cuda_graph(), units, make_kernels)


def _abandon(graph: torch.cuda.CUDAGraph, device: torch.device, pool: _POOL_HANDLE) -> None:
    """End a capture that failed, and undo what torch leaves behind when ``capture_end`` itself fails."""
    try:
        graph.capture_end()
    except RuntimeError:
        pass
    else:
        graph.reset()
        return
    # An invalidated capture makes capture_end raise before it has taken the allocator out of the graph's pool;
    # left so, the next empty_cache fails an internal assertion.
    with contextlib.suppress(RuntimeError):
        torch._C._cuda_endAllocateToPool(device.index, pool)
        torch._C._cuda_releasePool(device.index, pool)
    # The pinned-memory allocator keeps a callback into this graph, and torch has no call that removes it: the graph
    # object must never be freed.
    ctypes.pythonapi.Py_IncRef(ctypes.py_object(graph))
    # The generator still believes it is being captured; the next capture that succeeds tells it otherwise.
    with contextlib.suppress(RuntimeError):
        probe = torch.cuda.CUDAGraph()
        probe.capture_begin(capture_error_mode="thread_local")
        torch.zeros(1, device=device)
        probe.capture_end()
        probe.reset()


# Text in torch's and CUDA's errors -> rule and sentence. The first match wins.
_KNOWN_ERRORS = (
    ("out of memory", "out_of_memory", "The region does not fit in memory a second time, as its graph's own copy."),
    ("synchronizing CUDA operation", "host_sync", "An operation waits for the GPU, which a capture forbids."),
    ("Cannot copy between CPU and CUDA tensors", "host_sync", "A tensor is copied between CPU and GPU."),
    ("unjoined work", "unjoined_stream", "Work was submitted to a second stream that the first never waits for."),
    (
        "dependency created on uncaptured work in another stream",
        "unjoined_stream",
        "The work depends on a stream that is not captured.",
    ),
    ("would make the legacy stream depend", "default_stream", "An operation uses the legacy default stream."),
    ("CUDA generator", "random", "A random generator is used that the graph does not know."),
)


def refusal(error: BaseException) -> SkipReason:
    """Why a capture failed, as a record: the rule, one sentence, and the line of the model that did it."""
    text = str(error).strip()
    first_line = text.splitlines()[0] if text else type(error).__name__
    known = ((rule, sentence) for sign, rule, sentence in _KNOWN_ERRORS if sign.lower() in text.lower())
    rule, sentence = next(known, ("unsupported_operation", "An operation cannot be captured."))
    return SkipReason(rule=rule, detail=f"{sentence} ({first_line})", source=_innermost_line(error.__traceback__))


def _innermost_line(trace: TracebackType | None) -> SourceLine | None:
    """The innermost frame that is neither torch's, triton's nor this package's runtime."""
    here = os.path.dirname(os.path.abspath(__file__))
    libraries = (os.path.dirname(torch.__file__), f"{os.sep}triton{os.sep}", here)
    for frame in reversed(traceback.extract_tb(trace)):
        if not any(library in frame.filename for library in libraries):
            line = frame.lineno or 0
            code = linecache.getline(frame.filename, line).strip()
            return SourceLine(file=frame.filename, line=line, function=frame.name, code=code)
    return None
