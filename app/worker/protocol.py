"""The messages between the app and its worker: length-prefixed msgpack frames over stdin and stdout.

A frame is a 4-byte little-endian length and one tagged record. Commands go to the worker, events come back.
Every event that answers a command carries that command's ``id``.
"""

from __future__ import annotations

import struct
from typing import IO

import msgspec

from compiler.options import OptionInfo
from compiler.report import CudaGraph, KernelCheck, Measurement, Numerics, Report, Target, Trace

LOAD_STAGE = "load"  # of the compilation: the source's own code runs
MAX_FRAME = 1 << 30  # bytes; the largest reports are a tenth of it


class Compile(msgspec.Struct, tag="compile"):
    """Load SOURCE and compile it for TARGET ("local" is this machine's GPU)."""

    id: int
    source: str
    target: str
    compiler: str = "fusescope"
    training: bool = False
    dynamic: bool = False
    options: dict[str, str] = {}
    allow_unsafe: bool = False  # the user agreed to unpickle this file


class StartRun(msgspec.Struct, tag="start_run"):
    """Run the model compiled last, iteration after iteration, until StopRun. Needs a GPU.

    ``modes`` are names of measured modes ("eager", "compiled", "graph", "inductor", "inductor-graph"). Several take
    turns of a fraction of a second each, so that what drifts in the machine drifts for all of them.
    """

    id: int
    modes: list[str]


class SetRun(msgspec.Struct, tag="set_run"):
    """Change the modes of the run in progress; takes effect at the next iteration."""

    id: int
    modes: list[str]


class StopRun(msgspec.Struct, tag="stop_run"):
    """End the run; the worker answers with the final Measured events."""

    id: int


class Verify(msgspec.Struct, tag="verify"):
    """Check the numbers of every group of SOURCE against float64. ``options`` as in Compile."""

    id: int
    source: str
    interpret: bool = False
    training: bool = False
    options: dict[str, str] = {}
    dynamic: bool = False
    allow_unsafe: bool = False


class CheckNumerics(msgspec.Struct, tag="check_numerics"):
    """Compile SOURCE anew in a process of its own, and compare every value that its regions write with float64.

    Kernels run on this machine's GPU where ``target`` is "local", else through Triton's interpreter.
    """

    id: int
    source: str
    target: str
    training: bool = False
    dynamic: bool = False
    options: dict[str, str] = {}
    allow_unsafe: bool = False


class ListOptions(msgspec.Struct, tag="list_options"):
    """Tell the options that ``compiler`` takes, with their texts and values in force."""

    id: int
    compiler: str


class Shutdown(msgspec.Struct, tag="shutdown"):
    """End the worker process."""


Command = Compile | StartRun | SetRun | StopRun | Verify | CheckNumerics | ListOptions | Shutdown


class Ready(msgspec.Struct, tag="ready"):
    """The worker has imported torch and can compile. ``gpu`` is this machine's GPU or None."""

    versions: dict[str, str]
    gpu: Target | None
    targets: list[Target]


class OptionsListed(msgspec.Struct, tag="options_listed"):
    """What ``compiler`` can be told."""

    id: int
    compiler: str
    options: list[OptionInfo]


class StageStarted(msgspec.Struct, tag="stage_started"):
    """A stage began. ``fraction`` (0..1) is how much of the whole compilation lies before it."""

    id: int
    stage: str
    fraction: float
    region: str = ""


class StageFinished(msgspec.Struct, tag="stage_finished"):
    """A stage ended after ``ms`` of wall time."""

    id: int
    stage: str
    fraction: float
    ms: float
    region: str = ""


class Compiled(msgspec.Struct, tag="compiled"):
    """The compilation is done."""

    id: int
    report: Report


class Failed(msgspec.Struct, tag="failed"):
    """The command could not be done. ``message`` is one clear sentence, ``hint`` what to do next.

    ``code`` is "source" (the user's file is at fault), "unsafe" (needs ``allow_unsafe``), "no_gpu", "internal".
    """

    id: int
    message: str
    hint: str = ""
    detail: str = ""  # the traceback, shown on request
    code: str = "source"


class RunState(msgspec.Struct, tag="run_state"):
    """Where the run stands: "preparing", "warmup", "running", "tracing", "stopped"."""

    id: int
    state: str
    mode: str
    text: str = ""


class Samples(msgspec.Struct, tag="samples"):
    """A batch of iterations, at most 1/20 s of them. Microseconds; ``first`` is the first one's index in its mode.

    Those with ``warmup`` (after preparing, and after another mode had the GPU) are counted apart and in no percentile.
    """

    id: int
    mode: str
    first: int
    cpu_us: list[float]
    gpu_us: list[float]
    warmup: bool = False


class Measured(msgspec.Struct, tag="measured"):
    """What was recorded of one mode."""

    id: int
    measurement: Measurement
    cuda_graph: CudaGraph | None = None  # what capture made of the iteration, in mode "graph"
    trace: Trace | None = None  # one iteration more, traced after all others


class Verified(msgspec.Struct, tag="verified"):
    """The result of Verify."""

    id: int
    checks: list[KernelCheck]


class NumericsChecked(msgspec.Struct, tag="numerics_checked"):
    """The result of CheckNumerics."""

    id: int
    numerics: Numerics


class WorkerDied(msgspec.Struct, tag="worker_died"):
    """Made by the client, not the worker: the process ended. ``id`` is the command it was busy with, or 0, and
    ``doing`` what it did then, in words that go on from "while it"."""

    id: int
    exit_code: int
    stderr_tail: str
    cancelled: bool = False
    doing: str = ""


Event = (
    Ready
    | StageStarted
    | StageFinished
    | Compiled
    | Failed
    | RunState
    | Samples
    | Measured
    | Verified
    | NumericsChecked
    | OptionsListed
    | WorkerDied
)


def write_frame(stream: IO[bytes], message: Command | Event) -> None:
    """Write one frame and flush it."""
    payload = msgspec.msgpack.encode(message)
    stream.write(struct.pack("<I", len(payload)) + payload)
    stream.flush()


def read_frame(stream: IO[bytes]) -> bytes | None:
    """The next frame's payload, or None at the end of the stream.

    Raises:
        ValueError: the length is beyond MAX_FRAME, so this is not our protocol.
    """
    head = stream.read(4)
    if len(head) < 4:
        return None
    (size,) = struct.unpack("<I", head)
    if size > MAX_FRAME:
        raise ValueError(f"a frame of {size} bytes is not a Fusescope message")
    payload = stream.read(size)
    return payload if len(payload) == size else None


def decode_command(payload: bytes) -> Command:
    """Decode a frame on the worker's side."""
    return msgspec.msgpack.decode(payload, type=Command)


def decode_event(payload: bytes) -> Event:
    """Decode a frame on the app's side."""
    return msgspec.msgpack.decode(payload, type=Event)
