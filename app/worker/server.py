"""The worker process: reads commands from stdin, does them one after another, answers on the real stdout.

A second thread reads stdin all the while, so that changing or stopping a run arrives in the middle of it, and the
process ends at once when the app is gone.
"""

from __future__ import annotations

import faulthandler
import os
import queue
import sys
import threading
from importlib.util import find_spec
from typing import IO, TYPE_CHECKING

import msgspec

from app.sources import SourceError
from app.worker.numerics import numerics_in_child
from app.worker.options import compiler_options
from app.worker.protocol import (
    CheckNumerics,
    Command,
    Compile,
    Compiled,
    Event,
    ListOptions,
    NumericsChecked,
    OptionsListed,
    Ready,
    SetRun,
    Shutdown,
    StageFinished,
    StageStarted,
    StartRun,
    StopRun,
    Verified,
    Verify,
    decode_command,
    read_frame,
    write_frame,
)
from app.worker.run import RunControl, run
from app.worker.work import compile_source, explain, verify_in_child, verify_source, versions, warm_up
from compiler.report import Target

if TYPE_CHECKING:
    from compiler.pipeline import Compilation
    from compiler.stages import StageEvent

Work = Compile | Verify | CheckNumerics | ListOptions | tuple[StartRun, RunControl]


def serve() -> None:
    """Serve the app on this process's stdin and stdout until it goes away."""
    commands, events = _take_streams()
    if find_spec("torch") is None:
        print("No module named 'torch', so models cannot be compiled here: pip install 'fusescope[compile]' adds it")
        return
    faulthandler.enable()  # a crash in native code leaves its Python stack on stderr, which the app shows
    Server(commands, events).serve()


class Server:
    """The worker's state: the last compilation, the run in progress, the queue between the two threads."""

    def __init__(self, commands: IO[bytes], events: IO[bytes]) -> None:
        self._commands = commands
        self._events = events
        self._lock = threading.Lock()
        self._work: queue.SimpleQueue[Work] = queue.SimpleQueue()
        self._compilation: Compilation | None = None

    def serve(self) -> None:
        """Import torch, say Ready, do commands. Does not return: the reader thread ends the process."""
        threading.Thread(target=self._read, name="commands", daemon=True).start()
        self._send(_ready())
        warm_up()
        while True:
            work = self._work.get()
            command_id = work[0].id if isinstance(work, tuple) else work.id
            try:
                self._do(work)
            except KeyboardInterrupt:
                raise
            except BaseException as error:
                self._send(explain(error, command_id))

    def _read(self) -> None:
        try:
            self._route()
        except (ValueError, msgspec.MsgspecError) as error:
            print(f"this is not the Fusescope app's end of the protocol: {error}", file=sys.stderr, flush=True)
        finally:
            os._exit(0)  # the main thread may be deep in a compilation that nobody waits for any more

    def _route(self) -> None:
        """Put commands in the queue, and what concerns the run in progress into its control, until the app is gone."""
        control: RunControl | None = None
        while (payload := read_frame(self._commands)) is not None:
            command: Command = decode_command(payload)
            match command:
                case StartRun():
                    control = RunControl(command.modes)
                    self._work.put((command, control))
                case SetRun() if control is not None:
                    control.set(command.modes)
                case StopRun() if control is not None:
                    control.stop()
                case Compile() | Verify() | CheckNumerics() | ListOptions():
                    self._work.put(command)
                case Shutdown():
                    break

    def _do(self, work: Work) -> None:
        match work:
            case Compile():
                self._compile(work)
            case Verify():
                checks = verify_in_child(work) if work.interpret else verify_source(work)
                self._send(Verified(work.id, checks))
            case CheckNumerics():
                self._send(NumericsChecked(work.id, numerics_in_child(work)))
            case ListOptions():
                self._send(OptionsListed(work.id, work.compiler, compiler_options(work.compiler)))
            case (StartRun() as command, control):
                if self._compilation is None:
                    raise SourceError("There is nothing to run yet.", "Compile a model for this machine's GPU first.")
                if not self._compilation.report.target.local:
                    message = (
                        f"The model was compiled for {self._compilation.report.target.name}, not for this machine."
                    )
                    raise SourceError(
                        message, "Choose this machine's GPU as the target and compile again.", code="no_gpu"
                    )
                run(command, control, self._compilation, self._send)

    def _compile(self, command: Compile) -> None:
        def on_stage(event: StageEvent) -> None:
            if event.ms is None:
                self._send(StageStarted(command.id, event.stage, event.fraction, event.region))
            else:
                self._send(StageFinished(command.id, event.stage, event.fraction, event.ms, event.region))

        self._compilation = None  # frees the last model before the next one is made
        self._compilation = compile_source(command, on_stage)
        self._send(Compiled(command.id, self._compilation.report))

    def _send(self, event: Event) -> None:
        with self._lock:
            write_frame(self._events, event)


def _ready() -> Ready:
    import torch  # noqa: F401  the slow import, done while the user still chooses

    from compiler.targets import TARGETS, local_target

    gpu: Target | None = local_target()
    return Ready(versions(), gpu, list(TARGETS.values()))


def _take_streams() -> tuple[IO[bytes], IO[bytes]]:
    """Our own stdin and stdout. Whatever else the process reads or prints, in Python or C, cannot mix with frames."""
    commands = os.fdopen(os.dup(0), "rb")
    events = os.fdopen(os.dup(1), "wb")
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    os.dup2(2, 1)
    sys.stdout = sys.stderr
    return commands, events
