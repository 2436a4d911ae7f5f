"""A worker for window tests: real protocol, no torch; what it does depends on the source it is asked to compile.

Started with "gpu" it has a local GPU, compiles for it, and its runs send counted-up samples that nobody measured.
"""

from __future__ import annotations

import os
import sys
import threading
import time

import msgspec

from app.worker.protocol import (
    CheckNumerics,
    Compile,
    Compiled,
    Event,
    Failed,
    ListOptions,
    Measured,
    NumericsChecked,
    OptionsListed,
    Ready,
    RunState,
    Samples,
    SetRun,
    Shutdown,
    StageFinished,
    StageStarted,
    StartRun,
    StopRun,
    decode_command,
    read_frame,
    write_frame,
)
from compiler.options import describe_options
from compiler.report import CudaGraph, Measurement, NodeCheck, Numerics, Percentiles, Region, Trace, TraceEvent
from tests.fake_reports import H100, transformer_report
from tests.fake_runs import captured, schedule, unit_us

LOCAL = msgspec.structs.replace(H100, name="test_gpu", title="Test GPU", local=True)
# CPU microseconds that tell the modes apart
LEVELS = {"eager": 500.0, "compiled": 120.0, "graph": 20.0, "inductor": 90.0, "inductor-graph": 30.0}


class Worker:
    """Answers commands on stdin until the app is gone."""

    def __init__(self, has_gpu: bool) -> None:
        self._has_gpu = has_gpu
        self._lock = threading.Lock()
        self._modes: list[str] = []
        self._source = ""
        self._regions: list[Region] = []
        self._running = threading.Event()

    def send(self, event: Event) -> None:
        """One event, from any thread."""
        with self._lock:
            write_frame(sys.stdout.buffer, event)

    def serve(self) -> None:
        """The loop."""
        self.send(Ready({"torch": "2.13.0"}, LOCAL if self._has_gpu else None, [H100]))
        while (payload := read_frame(sys.stdin.buffer)) is not None:
            match decode_command(payload):
                case Shutdown():
                    return
                case Compile() as command:
                    self._compile(command)
                case ListOptions() as command:
                    self.send(OptionsListed(command.id, command.compiler, describe_options()))
                case CheckNumerics() as command:
                    if command.source.endswith("softmax"):
                        time.sleep(600)
                    self.send(NumericsChecked(command.id, self._numerics()))
                case StartRun() as command:
                    self._modes = command.modes
                    self._running.set()
                    threading.Thread(target=self._run, args=(command.id,), daemon=True).start()
                case SetRun() as command:
                    self._modes = command.modes
                case StopRun():
                    self._running.clear()

    def _compile(self, command: Compile) -> None:
        self.send(StageStarted(command.id, "capture", 0.0))
        name = self._source = command.source.split(":")[-1].split("/")[-1].removesuffix(".py")
        if name == "softmax":
            time.sleep(600)
        elif name == "layer_norm":
            print("the last words", file=sys.stderr, flush=True)
            os.abort()
        elif name == "mlp":
            self.send(Failed(command.id, "The model asks for more than there is.", "Use less.", "Traceback …"))
        elif name.endswith(".pt2") and not command.allow_unsafe:
            self.send(Failed(command.id, "The file holds pickled code.", "", "", "unsafe"))
        else:
            self.send(StageFinished(command.id, "capture", 0.5, 12.0))
            report = transformer_report(120, training=command.training)
            report.source = command.source
            report.compiler = command.compiler
            report.options = dict(command.options)
            for kernel in report.kernels:
                kernel.warps = int(command.options.get("num_warps", 4))
            if command.target == "local":
                report.target = LOCAL
            self._regions = report.regions
            self.send(Compiled(command.id, report))

    def _numerics(self) -> Numerics:
        units = [(region, unit) for region in self._regions for unit in schedule(region)]
        return Numerics(
            "Test GPU",
            [
                NodeCheck(region.name, unit.name, unit.nodes[-1], 10.0 ** -(3 + i % 5), 1e-8, "bfloat16")
                for i, (region, unit) in enumerate(units)
            ],
        )

    def _captured(self) -> CudaGraph:
        region = self._regions[0]
        units = schedule(region)
        return captured(region, units, {unit.name: unit_us(unit, i) for i, unit in enumerate(units)})

    def _run(self, command_id: int) -> None:
        recorded: dict[str, list[float]] = {}
        turn = 0
        while self._running.is_set():
            modes = self._modes
            mode = modes[turn % len(modes)]
            turn += 1
            if mode not in recorded:
                warm = [LEVELS[mode] * 2] * 10
                self.send(RunState(command_id, "warmup", mode))
                self.send(Samples(command_id, mode, 0, warm, warm, warmup=True))
            values = recorded.setdefault(mode, [])
            batch = [LEVELS[mode] + i for i in range(10)]
            self.send(Samples(command_id, mode, len(values), batch, [value / 2 for value in batch]))
            values += batch
            if self._source == "conv_bn_relu" and turn == 3:
                self.send(Failed(command_id, "The GPU fell off the bus.", "", "", "internal"))
                return
            time.sleep(0.02)
        launch = TraceEvent("cuGraphLaunch", 1.0, 5.0, "cpu")
        for mode, cpu in recorded.items():
            gpu = [value / 2 for value in cpu]
            zero = Percentiles(1.0, 1.0, 1.0)
            self.send(
                Measured(
                    command_id,
                    Measurement(mode, LOCAL.title, len(cpu), zero, zero, cpu_samples=cpu, gpu_samples=gpu),
                    self._captured() if mode == "graph" else None,
                    Trace(mode, LOCAL.title, [launch, TraceEvent("k", 3.0, 4.0, "stream 7", 0)], 7.0),
                )
            )
        self.send(RunState(command_id, "stopped", ""))


if __name__ == "__main__":
    Worker("gpu" in sys.argv).serve()
