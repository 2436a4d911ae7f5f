"""The work behind the commands, shared by the worker process and the command line: load, compile, verify, explain."""

from __future__ import annotations

import os
import subprocess
import sys
import time
import traceback
from collections.abc import Callable
from importlib import metadata
from typing import TYPE_CHECKING

import msgspec

from app.sources import SourceError, parse_source
from app.sources.load import load_source
from app.worker.client import main_script
from app.worker.options import check_options
from app.worker.own_faults import work_on
from app.worker.paths import make_portable, user_sources
from app.worker.protocol import LOAD_STAGE, Compile, Failed, Verify
from compiler.errors import CompileError, first_line, sentence
from compiler.report import KernelCheck, Stage

if TYPE_CHECKING:
    from compiler.pipeline import Compilation
    from compiler.stages import StageEvent

_BUG_HINT = "This looks like a fault of Fusescope or torch; the details have the traceback."


def compile_source(request: Compile, on_stage: Callable[[StageEvent], None]) -> Compilation:
    """Load the request's source and compile it. Its report carries the text of the user's files.

    Raises:
        SourceError: the source is at fault, or the target does not exist here (code "no_gpu").
        CompileError: a stage could not do its work.
    """
    from compiler.targets import resolve

    spec = parse_source(request.source)  # before the slow imports: a wrong name is told at once
    from compiler.pipeline import compile_model
    from compiler.stages import StageEvent

    try:
        target = resolve(request.target)
    except ValueError as error:
        code = "no_gpu" if request.target == "local" else "source"
        raise SourceError(str(error), code=code) from error
    began = time.perf_counter()
    on_stage(StageEvent(LOAD_STAGE, "", 0.0, None))
    loaded = load_source(spec, request.options, request.allow_unsafe, "cuda" if target.local else "cpu")
    check_options(request.compiler, loaded)
    load_ms = (time.perf_counter() - began) * 1e3
    on_stage(StageEvent(LOAD_STAGE, "", 0.0, load_ms))
    compilation = work_on(
        loaded,
        request.training or loaded.training,
        lambda: compile_model(
            loaded.model,
            loaded.inputs,
            source=request.source,
            target=target,
            compiler=request.compiler,
            training=request.training or loaded.training,
            dynamic=request.dynamic,
            options=loaded.remaining,
            on_stage=on_stage,
        ),
    )
    report = compilation.report
    report.options = dict(request.options)
    report.versions = versions()
    report.stages.insert(0, Stage(LOAD_STAGE, load_ms))
    report.sources |= user_sources(report, loaded.files)
    make_portable(report)
    return compilation


def verify_source(request: Verify) -> list[KernelCheck]:
    """Check every group's numbers against float64.

    With ``interpret`` this process must have been started with TRITON_INTERPRET=1 (see ``verify_in_child``).

    Raises:
        SourceError: the source is at fault, or (code "no_gpu") there is no GPU to run kernels on.
        CompileError: a stage could not do its work.
    """
    from compiler.targets import local_target

    spec = parse_source(request.source)
    from compiler.verify import verify_model

    if not request.interpret and local_target() is None:
        message = "This machine has no GPU to run the kernels on."
        raise SourceError(message, "Add --interpret to run them through Triton's interpreter.", code="no_gpu")
    device = "cpu" if request.interpret else "cuda"
    loaded = load_source(spec, request.options, request.allow_unsafe, device)
    check_options("fusescope", loaded)
    return work_on(
        loaded,
        request.training or loaded.training,
        lambda: verify_model(
            loaded.model,
            loaded.inputs,
            source=request.source,
            interpret=request.interpret,
            training=request.training or loaded.training,
            dynamic=request.dynamic,
            options=loaded.remaining,
        ),
    )


def verify_in_child(request: Verify) -> list[KernelCheck]:
    """Verify through Triton's interpreter in a fresh process, for TRITON_INTERPRET is read when triton is imported.

    Raises:
        SourceError: the child could not; its own sentence is in the message.
    """
    command = [sys.executable, str(main_script()), "verify", request.source, "--interpret", "--json"]
    command += ["--train"] if request.training else []
    command += ["--dynamic"] if request.dynamic else []
    command += ["--allow-unsafe"] if request.allow_unsafe else []
    command += [part for name, value in request.options.items() for part in ("--option", f"{name}={value}")]
    environment = {**os.environ, "TRITON_INTERPRET": "1"}
    done = subprocess.run(command, env=environment, capture_output=True, check=False)
    try:
        # a group out of tolerance makes the exit status 1 too, with the checks on stdout all the same
        return msgspec.json.decode(done.stdout, type=list[KernelCheck])
    except msgspec.MsgspecError:
        text = done.stderr.decode("utf-8", errors="replace").strip()
        last = text.splitlines()[-1] if text else f"exit status {done.returncode}"
        raise SourceError(last.removeprefix("fusescope: "), detail=text) from None


def versions() -> dict[str, str]:
    """The versions that decide what is generated, by package; those that are not installed are left out."""
    found = {"python": ".".join(map(str, sys.version_info[:3]))}
    for package in ("fusescope", "torch", "triton"):
        try:
            found[package] = metadata.version(package)
        except metadata.PackageNotFoundError:
            continue
    return found


def explain(error: BaseException, command_id: int) -> Failed:
    """One clear sentence, a hint and the traceback for anything that went wrong in a command."""
    detail = "".join(traceback.format_exception(error))
    if isinstance(error, SourceError):
        return Failed(command_id, error.message, error.hint, error.detail or detail, error.code)
    if isinstance(error, CompileError):
        return Failed(command_id, str(error), error.hint, detail)
    if isinstance(error, SystemExit):
        message = f"The model called sys.exit({error.code!r})."
        return Failed(command_id, message, "Take the call out of the model.", detail)
    if isinstance(error, MemoryError) or type(error).__name__ == "OutOfMemoryError":
        hint = "Use a smaller batch, or close what else uses the memory."
        return Failed(command_id, f"Out of memory: {first_line(error) or 'this machine has no more'}", hint, detail)
    if isinstance(error, ModuleNotFoundError) and error.name in ("torch", "triton"):
        message = f"Compiling needs {error.name}, which is not installed."
        return Failed(command_id, message, "pip install 'fusescope[compile]' adds it.", detail)
    if isinstance(error, RecursionError):
        return Failed(command_id, "The model recurses too deeply to be traced.", "", detail)
    return Failed(command_id, f"The compiler stopped with {sentence(error)}", _BUG_HINT, detail, "internal")


def warm_up() -> None:
    """Compile one addition, so that the first model does not wait for imports and first uses.

    A failure is left for the first real compilation to tell.
    """
    import contextlib

    import torch

    from compiler.pipeline import compile_model
    from compiler.targets import local_target, resolve

    with contextlib.suppress(Exception):
        target = local_target() or resolve("h100")
        compile_model(_addition, (torch.ones(8), torch.ones(8)), source="warm-up", target=target)


def _addition(a: object, b: object) -> object:
    return a + b  # type: ignore[operator]
