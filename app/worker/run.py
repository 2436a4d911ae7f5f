"""The live run: iterations of the compiled model in batches, its modes changed from another thread meanwhile."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

from app.worker.measure import observe_step, prepare_step
from app.worker.paths import portable_graph
from app.worker.protocol import Event, Measured, RunState, Samples, StartRun
from compiler.errors import first_line
from compiler.report import CudaGraph, Measurement, Trace

if TYPE_CHECKING:
    from compiler.pipeline import Compilation
    from compiler.runtime.modes import Step

_KEPT = 20_000  # iterations remembered of a mode, for its percentiles and for playing them back
_WARMUP = 10
_SETTLE = 3  # iterations after another mode had the GPU, whose caches are still the other mode's
_TURN_S = 0.25  # how long a mode runs before the next one's turn
_PREPARED_AT_START = ("eager", "compiled", "graph")  # Inductor compiles for long: only where it is asked for


class RunControl:
    """What the user wants of the run in progress. Set by the thread that reads commands, read by the one that runs."""

    def __init__(self, modes: Sequence[str]) -> None:
        self._lock = threading.Lock()
        self._wanted = tuple(modes)
        self._stopped = False

    def set(self, modes: Sequence[str]) -> None:
        """Change the modes, from the next iteration on."""
        with self._lock:
            self._wanted = tuple(modes)

    def stop(self) -> None:
        """End the run after the iteration in progress."""
        with self._lock:
            self._stopped = True

    def wanted(self) -> tuple[str, ...]:
        """The modes that take turns; none to end."""
        with self._lock:
            return () if self._stopped else self._wanted


def run(command: StartRun, control: RunControl, compilation: Compilation, send: Callable[[Event], None]) -> None:
    """Run iterations until ``control`` says stop, sending Samples; at the end one Measured per mode that ran.

    Modes that are quick to prepare are prepared before the first iteration, so that a switch takes effect at once.
    """
    live = _LiveRun(command.id, compilation, send)
    first = command.modes[0]
    live.prepare(first, needed=True)
    for mode in dict.fromkeys((*command.modes, *_PREPARED_AT_START)):
        if control.wanted():
            live.prepare(mode)
    turn = 0
    while wanted := control.wanted():
        live.iterate(wanted, wanted[turn % len(wanted)], control)
        turn += 1
    live.finish()


class _Recorded:
    """The last iterations of one mode."""

    def __init__(self) -> None:
        self._cpu_us: deque[float] = deque(maxlen=_KEPT)
        self._gpu_us: deque[float] = deque(maxlen=_KEPT)
        self.iterations = 0
        self._warm_cpu_us: list[float] = []
        self._warm_gpu_us: list[float] = []

    def add(self, cpu_us: list[float], gpu_us: list[float]) -> int:
        """Append a batch. Returns the index of its first iteration."""
        first = self.iterations
        self._cpu_us.extend(cpu_us)
        self._gpu_us.extend(gpu_us)
        self.iterations += len(cpu_us)
        return first

    def warm_up(self, cpu_us: list[float], gpu_us: list[float]) -> int:
        """Append iterations of the warm-up. Returns the index of the first one among those."""
        first = len(self._warm_cpu_us)
        self._warm_cpu_us += cpu_us
        self._warm_gpu_us += gpu_us
        return first

    def measurement(self, mode: str, gpu: str) -> Measurement:
        """The kept iterations as a record, to a hundredth of a microsecond."""
        from compiler.runtime.timing import Samples as Timed
        from compiler.runtime.timing import measurement

        def rounded(values: Iterable[float]) -> list[float]:
            return [round(value, 2) for value in values]

        timed = Timed(rounded(self._cpu_us), rounded(self._gpu_us))
        record = measurement(mode, gpu, timed, warmup=_WARMUP + self.iterations - len(timed))
        if self.iterations == len(timed):  # else the warm-up was long before what is kept
            record.warmup_cpu_samples = rounded(self._warm_cpu_us[:_WARMUP])
            record.warmup_gpu_samples = rounded(self._warm_gpu_us[:_WARMUP])
        return record


class _LiveRun:
    """The steps of each mode and what was recorded of them."""

    def __init__(self, command_id: int, compilation: Compilation, send: Callable[[Event], None]) -> None:
        self._id = command_id
        self._compilation = compilation
        self._send = send
        self._steps: dict[str, Step] = {}
        self._faults: dict[str, str] = {}
        self._recorded: dict[str, _Recorded] = {}
        self._traces: list[Trace] = []
        self._mode = ""  # the one that ran last
        self._told = ("", "")

    def prepare(self, mode: str, *, needed: bool = False) -> None:
        """Prepare and warm up a mode, once. One that cannot be had keeps its reason, or raises it where ``needed``."""
        if mode in self._steps or mode in self._faults:
            return
        self._state("preparing", mode)
        try:
            step = prepare_step(self._compilation, mode)
            self._state("warmup", mode, f"{_WARMUP} iterations")
            self._recorded[mode] = _Recorded()
            self._warm_up(mode, step, _WARMUP)
        except Exception as error:
            if needed:
                raise
            self._faults[mode] = f"{mode} cannot run: {first_line(error) or type(error).__name__}"
        else:
            self._steps[mode] = step
            self._mode = mode

    def iterate(self, wanted: tuple[str, ...], mode: str, control: RunControl) -> None:
        """Run ``mode`` for its turn, or until something else is wanted; the one before it where it cannot be had."""
        from compiler.runtime.timing import stream

        self.prepare(mode)
        before, self._mode = self._mode, mode if mode in self._steps else self._mode
        step = self._steps[self._mode]
        told = (self._mode, self._faults.get(mode, step.note))
        if told != self._told:
            self._state("running", *told)
            self._told = told
        if before != self._mode:
            self._warm_up(self._mode, step, _SETTLE)
        recorded = self._recorded[self._mode]
        end = time.perf_counter() + _TURN_S

        def is_over() -> bool:
            return control.wanted() != wanted or (len(wanted) > 1 and time.perf_counter() >= end)

        for batch in stream(step, is_over):
            if len(batch):
                first = recorded.add(batch.cpu_us, batch.gpu_us)
                self._send(Samples(self._id, self._mode, first, batch.cpu_us, batch.gpu_us))

    def finish(self) -> None:
        """Send what was recorded of each mode, then that the run is over."""
        gpu = self._compilation.report.target.title
        for mode, recorded in self._recorded.items():
            if recorded.iterations:
                facts, traced = self._observe(mode)
                graph = portable_graph(facts) if facts else None
                self._send(Measured(self._id, recorded.measurement(mode, gpu), graph, traced))
        self._state("stopped", self._mode)

    def _observe(self, mode: str) -> tuple[CudaGraph | None, Trace | None]:
        """The facts of a mode's graph and a traced iteration; without the latter where the profiler cannot."""
        self._state("tracing", mode)
        step = self._steps[mode]
        try:
            facts, traced = observe_step(self._compilation, step, mode, self._traces)
            self._traces.append(traced)
            return facts, traced
        except Exception as error:
            reason = first_line(error) or type(error).__name__
            self._state("tracing", mode, f"{mode} cannot be traced: {reason}")
            return step.cuda_graph, None

    def _warm_up(self, mode: str, step: Step, iterations: int) -> None:
        """Iterations that are seen, but in no record."""
        from compiler.runtime.timing import stream

        left = iter(range(iterations))
        for batch in stream(step, lambda: next(left, None) is None):
            if len(batch):
                first = self._recorded[mode].warm_up(batch.cpu_us, batch.gpu_us)
                self._send(Samples(self._id, mode, first, batch.cpu_us, batch.gpu_us, warmup=True))

    def _state(self, state: str, mode: str, text: str = "") -> None:
        self._send(RunState(self._id, state, mode, text))
