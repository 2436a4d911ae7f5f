"""Where the CPU time of one call through torch.compile goes: python tests/benchmarks/bench_calls.py [FILE].

For each row, microseconds, the median and the least of many calls:

- total: the whole call;
- floor: the same call with a backend that returns at once, which is what Dynamo takes: no backend's call is shorter;
- guards: the part of it that checks that what was compiled still holds;
- ours: from where our function is entered until it returns, measured inside the call, as a stamp between all
  statements tells it (``call_stamps``); ``total - floor`` should say the same;
- addresses, launch: the parts of ours that look whether tensors have moved, and that submit the CUDA Graph;
- moving: the whole call where the inputs are elsewhere than at the last one;
- lean, unguarded: the whole call with Dynamo's leaner settings, and with those under
  ``torch.compiler.set_stance(skip_guard_eval_unsafe=True)``;
- in place: the whole call of a module that was compiled by ``module.compile()``, without torch.compile's module around;
- warm floor: the floor when nothing comes between two calls.

Below the table the shares of single statements: of Dynamo's wrapper, and of what is ours; on a GPU also what single
calls of torch and the driver take that stand in them, or could.

A call that follows a wait for the GPU finds little of what it needs in the CPU's caches, and looking at every parameter
of a model then costs several times what it costs in a tight loop. So what is timed here always comes after the same
wait, on the core that was quickest when its row began: on a GPU for a replay of the model's graph, elsewhere for 4 MiB
that are copied. All that is compared is alive at once and takes turns, in blocks of calls as a loop makes them, so that
what slows the machine slows all of it. With no GPU the models of the gallery run on the CPU and the graph is a stub
that launches nothing. With one, the anchor rows run on it.
"""

from __future__ import annotations

import argparse
import copy
import inspect
import itertools
import statistics
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import FunctionType
from typing import TYPE_CHECKING, Any

from bench_common import first_line, lean_settings, nothing_behind
from call_stamps import Stamps, replaced, shares
from cores import quickest_core

from compiler.report import CudaGraph

if TYPE_CHECKING:
    import torch

GALLERY = ("relu_add_mul", "softmax", "layer_norm", "mlp", "resnet18", "mobilenet_v3", "gpt2", "bert_base")
ANCHORS = "relu_add_mul_1M,layer_norm,rms_norm,sum_of_squares,mlp8_b16,resnet18,mobilenet,gpt2_b1,bert_b1"
COLUMNS = (
    "total", "floor", "guards", "ours", "addresses", "launch", "moving", "lean", "unguarded", "in place", "warm floor",
)  # fmt: skip
REPEATS = 1000
BLOCK = 20  # calls of one kind in a row
SETTLE = 3  # calls before them that are not counted
DYNAMO = "compile_wrapper"  # how the statements of Dynamo's wrapper are labelled
CACHES_BYTES = 4 << 20  # more than a core's own caches, less than those that cores share


class StubRecording:
    """A captured graph that computes nothing: its outputs stay those of the capture."""

    def __init__(self, result: Sequence[Any]) -> None:
        self.result = list(result)
        self.facts = CudaGraph(captured=True, partitions=1)

    def replay(self, stream: int) -> None:
        """Launch nothing."""

    def topology(self) -> list[Any]:
        return []

    def movable(self, use: Any, tensor: Any, others: Sequence[Any]) -> list[Any]:
        return []

    def move(self, inputs: Sequence[tuple[Any, Any]]) -> bool:
        return True


class StubRecorder:
    """Records on the CPU."""

    device_type = "cpu"

    def __init__(self) -> None:
        from compiler.runtime.addresses import same_addresses

        self.same_addresses = same_addresses()

    def is_capturing(self) -> bool:
        return False

    def device(self, inputs: Sequence[Any]) -> torch.device:
        import torch

        return torch.device("cpu")

    def stream(self, device: torch.device) -> Any:
        return self

    def wait_stream(self, other: Any) -> None:
        """There are no streams."""

    def raw_stream(self, device: int) -> int:
        return 0

    def record(self, run: Callable[[list[Any]], Sequence[Any]], arguments: list[Any], *_: Any) -> StubRecording:
        return StubRecording(run(list(arguments)))

    def pool_bytes(self) -> int:
        return 0

    def wait(self, device: torch.device) -> None:
        """Nothing runs."""


class Meter:
    """CPU time of calls, each after ``wait``, which leaves the CPU's caches as a wait for the GPU does."""

    def __init__(self, repeats: int) -> None:
        self.repeats = repeats
        self.replay: Callable[[], object] | None = None  # of the model's graph, once there is one
        self._from, self._to = bytearray(CACHES_BYTES // 2), bytearray(CACHES_BYTES // 2)

    def wait(self) -> None:
        """What comes before a call in a loop that looks at each result."""
        import torch

        if torch.cuda.is_available():
            if self.replay is not None:
                self.replay()
            torch.cuda.synchronize()
        else:
            self._to[:] = self._from

    def __call__(self, calls: Mapping[str, Callable[[], object]], *, warm: bool = False) -> dict[str, list[float]]:
        """Microseconds of ``repeats`` calls of each, which take turns in blocks of calls; ``warm``: without waits."""
        times: dict[str, list[float]] = {name: [] for name in calls}
        for _ in range(-(-self.repeats // BLOCK)):
            for name, call in calls.items():
                for index in range(SETTLE + BLOCK):
                    if not warm:
                        self.wait()
                    began = time.perf_counter_ns()
                    result = call()
                    took = time.perf_counter_ns() - began
                    del result
                    if index >= SETTLE:
                        times[name].append(took / 1e3)
        return times


@dataclass
class Ours:
    """Our backend with CUDA Graphs, or their stubs; ``regions`` are those that it made."""

    regions: list[Any]

    def __call__(self, gm: Any, example_inputs: Any) -> Any:
        import torch

        from compiler import backend
        from compiler.kernel_library import KernelLibrary
        from compiler.runtime.pool import GraphPool

        options: dict[str, Any] = {"cuda_graph": True, "on_graphed_region": self.regions.append}
        if torch.cuda.is_available():
            return backend.fusescope(gm, example_inputs, options=options)
        target = backend.default_target()
        session = backend.Session(target, KernelLibrary(target, binaries=False, texts=False))
        session.graph_pool = GraphPool(StubRecorder())
        return backend.fusescope(gm, example_inputs, options={**options, "session": session})


def stub_kernels() -> None:
    """Let regions on the CPU run as they were captured, and be graphed as if they ran kernels."""
    from compiler import backend

    def run_of(region: Any, *_: Any) -> Any:
        return backend.as_captured(region)

    backend.executable_of = run_of
    backend.launchers_of = lambda region, library: {}
    backend._on_gpu = lambda region: True


def guards_of(model: Any, inputs: Sequence[Any]) -> Callable[[], object]:
    """Checks the guards of the frame that was compiled for ``model``."""
    import torch
    from torch._dynamo.eval_frame import _debug_get_cache_entry_list

    is_module = isinstance(model, torch.nn.Module)
    function = model.forward.__func__ if is_module else model
    code = function.__code__
    values = (model, *inputs) if is_module else inputs
    frame = dict(zip(code.co_varnames[: code.co_argcount], values, strict=False))
    cells = function.__closure__ or ()
    frame.update(zip(code.co_freevars, (cell.cell_contents for cell in cells), strict=True))
    (entry,) = _debug_get_cache_entry_list(code)
    guards = entry.guard_manager
    if not guards.check(frame):
        raise RuntimeError("The guards do not hold on the frame that was rebuilt for them.")
    return lambda: guards.check(frame)


def inputs_of(graphed: Any, call: Callable[[], object]) -> list[Any]:
    """What a graphed region is called with."""
    seen: list[list[Any]] = []
    fast = graphed.fast

    def watched(values: list[Any]) -> Any:
        seen.append(list(values))
        return fast(values)

    graphed.fast = watched
    call()
    graphed.fast = fast
    return seen[0]


def with_own_code(model: Any) -> Any:
    """The same model with a code object of its own, which Dynamo compiles for itself."""
    import torch

    function = type(model).forward if isinstance(model, torch.nn.Module) else model
    code = function.__code__.replace(co_firstlineno=function.__code__.co_firstlineno)
    twin = FunctionType(code, function.__globals__, function.__name__, function.__defaults__, function.__closure__)
    twin.__kwdefaults__ = function.__kwdefaults__
    if not isinstance(model, torch.nn.Module):
        return twin
    other = copy.copy(model)
    other.__class__ = type(
        type(model).__name__, (type(model),), {"forward": twin, "__module__": type(model).__module__}
    )
    return other


def stamped_places() -> list[tuple[Any, str, str]]:
    """Ours between Dynamo's call and the launch, and Dynamo's wrapper: owner, name, inner function."""
    import torch._dynamo.eval_frame

    from compiler.runtime import capture, cuda_graph, direct, outputs, partitioned

    context = torch._dynamo.eval_frame._TorchDynamoContext
    has_wrapper = f"def {DYNAMO}(" in inspect.getsource(context.__call__)  # another torch calls it otherwise
    return [
        *([(context, "__call__", DYNAMO)] if has_wrapper else []),
        (direct, "_replay_first", "call"),
        (partitioned.PartitionedRegion, "entry", "call"),
        (cuda_graph, "fast_replay", "call"),
        (capture.Recording, "replay", ""),
        (outputs.OutputPlan, "results", ""),
    ]


def single_calls(recorded: Any, output: Any) -> dict[str, Callable[[], object]]:
    """What takes part in a launch, each alone: our way, torch's own, and questions that could be asked on the way."""
    import torch

    from compiler.runtime import capture, driver

    stream, index = torch.cuda.current_stream(), torch.cuda.current_device()
    executable, launch = capture._executable(recorded._graph), driver.launch_function()
    assert launch is not None
    torch_graph = super(torch.cuda.CUDAGraph, recorded._graph)
    event = torch.cuda.Event()
    return {
        "nothing, the cost of timing": lambda: None,
        "Recording.replay": lambda: recorded.replay(0),
        "cuGraphLaunch through ctypes": lambda: launch(executable, 0),
        "CUDAGraph.replay of torch": recorded._graph.replay,
        "the same without its Python": torch_graph.replay,
        "_cuda_isCurrentStreamCapturing": torch._C._cuda_isCurrentStreamCapturing,
        "_cuda_getCurrentRawStream": lambda: torch._C._cuda_getCurrentRawStream(index),
        "_cuda_getDevice": torch._C._cuda_getDevice,
        "Tensor.data": lambda: output.data,
        "torch.cuda.current_stream": torch.cuda.current_stream,
        "Event.record": lambda: event.record(stream),
    }


@dataclass
class Found:
    """Microseconds of a row: of each column, and (label, median, least) of each statement of a call."""

    times: dict[str, list[float]]
    statements: list[tuple[str, float, float]]
    singles: dict[str, list[float]]


def row(model: Any, inputs: Sequence[Any], repeats: int) -> Found:
    """Figures of one model."""
    import torch

    meter = Meter(repeats)

    def compiled(
        backend: Any, *, in_place: bool = False, elsewhere: Sequence[Any] = inputs, **settings: bool
    ) -> Callable[[], object]:
        turns = itertools.cycle((inputs, elsewhere))
        with torch._dynamo.config.patch(settings):
            call = with_own_code(model)
            if in_place:
                call.compile(backend=backend)
            else:
                call = torch.compile(call, backend=backend)
            for _ in range(6):
                call(*next(turns))
        return lambda: call(*next(turns))

    torch._dynamo.reset()
    with torch.no_grad():
        ours = Ours([])
        call = compiled(ours)
        (region,) = ours.regions
        graphed = region.graphs[0]
        latest, same = graphed.latest, region.settings.pool.recorder.same_addresses
        stream = torch.cuda.current_stream().cuda_stream if torch.cuda.is_available() else 0
        meter.replay = lambda: latest.recorded.replay(stream)
        seen = inputs_of(graphed, call)
        moving = compiled(Ours([]), elsewhere=[x.clone() if isinstance(x, torch.Tensor) else x for x in inputs])
        floor_model = with_own_code(model)
        floor = torch.compile(floor_model, backend=nothing_behind)
        for _ in range(4):
            floor(*inputs)
        lean = compiled(Ours([]), **lean_settings())
        stamps = Stamps()
        with replaced(stamps, stamped_places()):
            watched = compiled(Ours([]))
        in_place = {"in place": compiled(Ours([]), in_place=True)} if isinstance(model, torch.nn.Module) else {}
        with quickest_core():
            times = meter(
                {
                    **in_place,
                    "total": call,
                    "floor": lambda: floor(*inputs),
                    "guards": guards_of(floor_model, inputs),
                    "addresses": lambda: same(seen, latest.addresses, latest.direct),
                    "launch": meter.replay,
                    "moving": moving,
                    "lean": lean,
                }
            )
            with torch.compiler.set_stance(skip_guard_eval_unsafe=True):
                lean()
                times |= meter({"unguarded": lean})
            times["warm floor"] = meter({"": lambda: floor(*inputs)}, warm=True)[""]
            statements, times["ours"] = _watch(stamps, watched, meter)
            output = torch.utils._pytree.tree_leaves(call())[0]
            singles = meter(single_calls(latest.recorded, output)) if torch.cuda.is_available() else {}
    return Found(times, statements, singles)


def _watch(
    stamps: Stamps, call: Callable[[], object], meter: Meter
) -> tuple[list[tuple[str, float, float]], list[float]]:
    """The shares of statements in a call, and microseconds from entering our function until it returned."""
    cost, calls, ours = stamps.cost_ns(), [], []
    for index in range(meter.repeats + SETTLE):
        meter.wait()
        stamps.take()
        began = time.perf_counter_ns()
        result = call()
        ended = time.perf_counter_ns()
        del result
        if index < SETTLE:
            continue
        points = stamps.take()
        calls.append([("the call: until Dynamo's wrapper", began), *points, ("", ended)])
        inside = [at for label, at in points if not label.startswith(DYNAMO)]
        ours.append((inside[-1] - inside[0] - (len(inside) - 1) * cost) / 1e3)
    return shares(calls, cost), ours


def median_and_least(values: Sequence[float]) -> str:
    """A cell of the table."""
    return f"{statistics.median(values):.1f} ({min(values):.1f})" if values else "-"


def cases(words: Sequence[str]) -> Iterator[tuple[str, Any, Sequence[Any]]]:
    """Name, model and inputs of each row."""
    import importlib

    import torch

    if torch.cuda.is_available():
        from bench_anchors import CASES

        for name in CASES:
            if any(word in name for word in words or ANCHORS.split(",")):
                model, inputs, _ = CASES[name]()
                yield name, model, inputs
        return
    for name in words or GALLERY:
        model, inputs = getattr(importlib.import_module(f"resources.examples.{name}"), name)()
        yield name, model.eval() if isinstance(model, torch.nn.Module) else model, inputs


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("file", nargs="?", type=Path, help="the Markdown file that the table is written to")
    parser.add_argument("--only", default="", help="names of gallery models, or words in anchor rows; by commas")
    parser.add_argument("--repeats", type=int, default=REPEATS)
    options = parser.parse_args()
    import torch

    where = "CPU, with a stub in place of the graph"
    if torch.cuda.is_available():
        where = torch.cuda.get_device_name()
    else:
        stub_kernels()
    lines = ["# One call through torch.compile", "", f"{where}, torch {torch.__version__}. CPU time in microseconds, "]
    lines[-1] += f"median (least) of {options.repeats} calls, each after a wait for the GPU."
    lines += ["", "| model | " + " | ".join(COLUMNS) + " |", "|---" * (len(COLUMNS) + 1) + "|"]
    print("\n".join(lines), flush=True)
    parts: list[str] = []
    for name, model, inputs in cases([word for word in options.only.split(",") if word]):
        try:
            found = row(model, inputs, options.repeats)
        except Exception as error:  # the other rows are worth having
            lines.append(f"| {name}: {first_line(error)} " + "| - " * len(COLUMNS) + "|")
        else:
            cells = (median_and_least(found.times.get(column, [])) for column in COLUMNS)
            lines.append(f"| {name} | " + " | ".join(cells) + " |")
            parts += ["", f"## {name}", "", "| statement | median | least |", "|---|---|---|"]
            parts += [f"| `{label}` | {median:.2f} | {least:.2f} |" for label, median, least in found.statements]
            parts += ["", "| alone | median | least |", "|---|---|---|"] if found.singles else []
            parts += [f"| {name} | {statistics.median(t):.2f} | {min(t):.2f} |" for name, t in found.singles.items()]
        print(lines[-1], flush=True)
        if options.file is not None:  # what is done is kept, whatever comes
            options.file.write_text("\n".join([*lines, *parts]) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
