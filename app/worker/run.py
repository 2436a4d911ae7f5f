"""The live run: iterations of the compiled model in batches, its mode changed from another thread meanwhile."""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING

from app.worker.measure import prepare_step
from app.worker.paths import portable_graph
from app.worker.protocol import Event, Measured, RunState, Samples, StartRun
from compiler.report import Measurement

if TYPE_CHECKING:
    from compiler.pipeline import Compilation
    from compiler.runtime.modes import Step

_KEPT = 20_000  # iterations remembered of a mode, for its percentiles and for playing them back
_WARMUP = 3
_EAGER, _COMPILED, _GRAPH = "eager", "compiled", "graph"


class RunControl:
    """What the user wants of the run in progress. Set by the thread that reads commands, read by the one that runs."""

    def __init__(self, mode: str, replay: bool) -> None:
        self._lock = threading.Lock()
        self._wanted = measured_mode(mode, replay)
        self._stopped = False

    def set(self, mode: str, replay: bool) -> None:
        """Change the mode, from the next iteration on."""
        with self._lock:
            self._wanted = measured_mode(mode, replay)

    def stop(self) -> None:
        """End the run after the iteration in progress."""
        with self._lock:
            self._stopped = True

    def wanted(self) -> str | None:
        """The mode to run next, or None to end."""
        with self._lock:
            return None if self._stopped else self._wanted


def measured_mode(mode: str, replay: bool) -> str:
    """The name that measurements of this setting carry: replay makes a graph of the compiled mode."""
    return _GRAPH if replay and mode == _COMPILED else mode


def run(command: StartRun, control: RunControl, compilation: Compilation, send: Callable[[Event], None]) -> None:
    """Run iterations until ``control`` says stop, sending Samples; at the end one Measured per mode that ran.

    Every mode is prepared before the first iteration, so that a switch takes effect at once.
    """
    live = _LiveRun(command.id, compilation, send)
    live.prepare_all(first=measured_mode(command.mode, command.replay))
    while (mode := control.wanted()) is not None:
        live.iterate(mode, control)
    live.finish()


class _Recorded:
    """The last iterations of one mode."""

    def __init__(self) -> None:
        self._cpu_us: deque[float] = deque(maxlen=_KEPT)
        self._gpu_us: deque[float] = deque(maxlen=_KEPT)
        self.iterations = 0

    def add(self, cpu_us: list[float], gpu_us: list[float]) -> int:
        """Append a batch. Returns the index of its first iteration."""
        first = self.iterations
        self._cpu_us.extend(cpu_us)
        self._gpu_us.extend(gpu_us)
        self.iterations += len(cpu_us)
        return first

    def measurement(self, mode: str, gpu: str) -> Measurement:
        """The kept iterations as a record, to a hundredth of a microsecond."""
        from compiler.runtime.timing import Samples as Timed
        from compiler.runtime.timing import measurement

        timed = Timed([round(value, 2) for value in self._cpu_us], [round(value, 2) for value in self._gpu_us])
        return measurement(mode, gpu, timed, warmup=_WARMUP + self.iterations - len(timed))


class _LiveRun:
    """The steps of each mode and what was recorded of them."""

    def __init__(self, command_id: int, compilation: Compilation, send: Callable[[Event], None]) -> None:
        self._id = command_id
        self._compilation = compilation
        self._send = send
        self._steps: dict[str, Step] = {}
        self._faults: dict[str, str] = {}
        self._recorded: dict[str, _Recorded] = {}
        self._mode = ""  # differs from the wanted one where that cannot be had

    def prepare_all(self, first: str) -> None:
        """Prepare and warm up every mode, ``first`` first. A mode that cannot be had keeps its reason."""
        for mode in sorted((_EAGER, _COMPILED, _GRAPH), key=lambda mode: mode != first):
            self._state("preparing", mode)
            try:
                step = prepare_step(self._compilation, mode)
                self._state("warmup", mode, f"{_WARMUP} iterations")
                for _ in range(_WARMUP):
                    step()
            except Exception as error:
                if mode == first:
                    raise
                self._faults[mode] = f"{mode} cannot run: {(str(error) or repr(error)).strip().splitlines()[0]}"
            else:
                self._steps[mode] = step

    def iterate(self, wanted: str, control: RunControl) -> None:
        """Run ``wanted`` until something else is; the mode before it where it cannot be had."""
        from compiler.runtime.timing import stream

        self._mode = wanted if wanted in self._steps else self._mode
        step = self._steps[self._mode]
        recorded = self._recorded.setdefault(self._mode, _Recorded())
        self._state("running", self._mode, self._faults.get(wanted, step.note))
        for batch in stream(step, lambda: control.wanted() != wanted):
            if len(batch):
                first = recorded.add(batch.cpu_us, batch.gpu_us)
                self._send(Samples(self._id, self._mode, first, batch.cpu_us, batch.gpu_us))

    def finish(self) -> None:
        """Send what was recorded of each mode, then that the run is over."""
        gpu = self._compilation.report.target.title
        for mode, recorded in self._recorded.items():
            if recorded.iterations:
                facts = self._steps[mode].cuda_graph
                graph = portable_graph(facts) if facts else None
                self._send(Measured(self._id, recorded.measurement(mode, gpu), graph))
        self._state("stopped", self._mode)

    def _state(self, state: str, mode: str, text: str = "") -> None:
        self._send(RunState(self._id, state, mode, text))
