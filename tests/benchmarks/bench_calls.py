"""Where the CPU time of one call through torch.compile goes: python tests/benchmarks/bench_calls.py [FILE].

For each row, medians in microseconds of:

- guards: Dynamo's check that what it compiled still holds;
- Dynamo's rest: its wrappers, the lookup, and fetching the inputs of the graph, parameters included;
- AOTAutograd: its wrappers, or what stands in their place;
- ours: looking at addresses, handing out outputs, and the launch;
- addresses, launch: the parts of ours that look whether tensors have moved, and that submit the CUDA Graph;
- total: the whole call, which is the sum of the first four;
- lean, filtered, unguarded: the whole call with Dynamo's leaner settings, with those and no guards on the modules, and
  with those under ``torch.compiler.set_stance(skip_guard_eval_unsafe=True)``;
- warm: guards and total when nothing comes between two calls.

A call that follows a wait for the GPU finds little of what it needs in the CPU's caches, and looking at every parameter
of a model then costs several times what it costs in a tight loop. So what is timed here always comes after the same
wait: on a GPU for a replay of the model's graph, elsewhere for 4 MiB that are copied. With no GPU the models of the
gallery run on the CPU and the graph is a stub that launches nothing. With one, the anchor rows run on it.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bench_common import first_line, lean_settings

from compiler.report import CudaGraph

if TYPE_CHECKING:
    import torch

GALLERY = ("relu_add_mul", "softmax", "layer_norm", "mlp", "resnet18", "mobilenet_v3", "gpt2", "bert_base")
ANCHORS = "relu_add_mul_1M,layer_norm,rms_norm,sum_of_squares,mlp8_b16,resnet18,mobilenet,gpt2_b1,bert_b1"
COLUMNS = ("guards", "Dynamo's rest", "AOTAutograd", "ours", "addresses", "launch", "total")
COLUMNS += ("lean", "filtered", "unguarded", "warm guards", "warm total")
REPEATS = 100
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

    def movable(self, index: int, uses: Sequence[tuple[str, int]], address: int) -> None:
        return None

    def move(self, inputs: Sequence[tuple[Any, Any]]) -> bool:
        return False


class StubRecorder:
    """Records on the CPU."""

    device_type = "cpu"

    def is_capturing(self) -> bool:
        return False

    def same_addresses(self, tensors: list[Any], addresses: list[int | None], indices: list[int]) -> bool:
        """As long as the function of torch's CUDA builds takes, about: some tens of nanoseconds a tensor."""
        return len(tuple(map(id, tensors))) == len(addresses)

    def device(self, inputs: Sequence[Any]) -> torch.device:
        import torch

        return torch.device("cpu")

    def stream(self, device: torch.device) -> Any:
        return self

    def wait_stream(self, other: Any) -> None:
        """There are no streams."""

    def raw_stream(self, device: int) -> int:
        return 1

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

    def __call__(self, call: Callable[[], object], *, warm: bool = False) -> float:
        """Median microseconds of a call."""
        for _ in range(10):
            call()
        times = []
        for _ in range(self.repeats):
            if not warm:
                self.wait()
            began = time.perf_counter_ns()
            result = call()
            times.append((time.perf_counter_ns() - began) / 1e3)
            del result
        return statistics.median(times)


def nothing_behind(gm: Any, example_inputs: Any) -> Callable[..., Any]:
    """A backend that computes once and then returns what it has: what is left is Dynamo's own time."""
    kept: list[Any] = []

    def call(*inputs: Any) -> Any:
        if not kept:
            kept.append(gm(*inputs))
        return kept[0]

    return call


def nothing_behind_aot(gm: Any, example_inputs: Any) -> Any:
    """The same behind AOTAutograd, as our backend uses it."""
    from compiler.backend import boxed, through_aot

    def compile_graph(graph: Any, inputs: Any) -> Any:
        kept: list[Any] = []

        def call(arguments: list[Any]) -> Any:
            if not kept:
                kept.append(graph(*arguments))
            return kept[0]

        return boxed(call)

    return through_aot(gm, example_inputs, lambda kind: compile_graph)


@dataclass
class Ours:
    """Our backend with CUDA Graphs, or their stubs; ``regions`` are those that it made."""

    regions: list[Any]

    def __call__(self, gm: Any, example_inputs: Any) -> Any:
        import torch

        from compiler import backend
        from compiler.region import KernelLibrary
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


def row(model: Any, inputs: Sequence[Any], repeats: int) -> Iterator[tuple[str, float]]:
    """Figures of one model by column."""
    import torch

    meter = Meter(repeats)

    def compiled(backend: Any, **how: Any) -> Callable[[], object]:
        torch._dynamo.reset()
        call = torch.compile(model, backend=backend, **how)
        for _ in range(4):
            call(*inputs)
        return lambda: call(*inputs)

    with torch.no_grad():
        ours = Ours([])
        call = compiled(ours)
        (region,) = ours.regions
        graphed = region.graphs[0]
        latest, same = graphed.latest, region.settings.pool.recorder.same_addresses
        stream = torch.cuda.current_stream().cuda_stream if torch.cuda.is_available() else 0
        meter.replay = lambda: latest.recorded.replay(stream)
        seen = inputs_of(graphed, call)
        total = meter(call)
        yield "warm total", meter(call, warm=True)
        yield "addresses", meter(lambda: same(seen, latest.addresses, latest.direct))
        yield "launch", meter(meter.replay)
        dynamo = meter(compiled(nothing_behind))
        check = guards_of(model, inputs)
        guards = meter(check)
        yield "warm guards", meter(check, warm=True)
        aot = meter(compiled(nothing_behind_aot))
        yield "guards", guards
        yield "Dynamo's rest", dynamo - guards
        yield "AOTAutograd", aot - dynamo
        yield "ours", total - aot
        yield "total", total
        with torch._dynamo.config.patch(lean_settings()):
            yield "lean", meter(compiled(Ours([])))
            options = {"guard_filter_fn": torch.compiler.skip_guard_on_all_nn_modules_unsafe}
            yield "filtered", meter(compiled(Ours([]), options=options))
            call = compiled(Ours([]))
            with torch.compiler.set_stance(skip_guard_eval_unsafe=True):
                call()
                yield "unguarded", meter(call)


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
    lines = ["# One call through torch.compile", "", f"{where}, torch {torch.__version__}. CPU time, microseconds.", ""]
    lines += ["| model | " + " | ".join(COLUMNS) + " |", "|---" * (len(COLUMNS) + 1) + "|"]
    print("\n".join(lines), flush=True)
    for name, model, inputs in cases([word for word in options.only.split(",") if word]):
        figures: dict[str, float] = {}
        failure = ""
        try:
            figures.update(row(model, inputs, options.repeats))
        except Exception as error:  # the other rows are worth having
            failure = " " + first_line(error)
        cells = [f"{figures[column]:.1f}" if column in figures else "-" for column in COLUMNS]
        lines.append(f"| {name}{failure} | " + " | ".join(cells) + " |")
        print(lines[-1], flush=True)
    if options.file is not None:
        options.file.write_text("\n".join(lines) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
