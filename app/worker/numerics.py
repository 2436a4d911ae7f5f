"""Checking a source's numbers value by value: in this process, or in a child that the worker waits for.

A child, because Triton's interpreter is switched on when Triton is imported, and because compiling anew would make
Dynamo forget the model that the worker holds.
"""

from __future__ import annotations

import os
import subprocess
import sys

import msgspec

from app.sources import SourceError, parse_source
from app.sources.load import load_source
from app.worker.client import main_script
from app.worker.options import check_options
from app.worker.own_faults import work_on
from app.worker.protocol import CheckNumerics
from compiler.report import Numerics


def numerics_of(request: CheckNumerics) -> Numerics:
    """Load the request's source and check it here.

    Raises:
        SourceError: the source is at fault, or there is no such target.
        CompileError: a stage failed, or there is nothing here to run the kernels.
    """
    spec = parse_source(request.source)  # before the slow imports: a wrong name is told at once
    from compiler.numerics import check_numerics
    from compiler.targets import resolve

    try:
        target = resolve(request.target)
    except ValueError as error:
        raise SourceError(str(error), code="no_gpu" if request.target == "local" else "source") from error
    loaded = load_source(spec, request.options, request.allow_unsafe, "cuda" if target.local else "cpu")
    check_options("fusescope", loaded)
    return work_on(
        loaded,
        request.training or loaded.training,
        lambda: check_numerics(
            loaded.model,
            loaded.inputs,
            target=target,
            training=request.training or loaded.training,
            dynamic=request.dynamic,
            options=loaded.remaining,
        ),
    )


def numerics_in_child(request: CheckNumerics) -> Numerics:
    """The same in a process of its own.

    Raises:
        SourceError: the child could not; its own sentence is in the message.
    """
    environment = dict(os.environ)
    command = [sys.executable, str(main_script()), "numerics", request.source, "--json", "--target", request.target]
    if request.target != "local":
        command.append("--interpret")
        environment["TRITON_INTERPRET"] = "1"
    flags = {"--train": request.training, "--dynamic": request.dynamic, "--allow-unsafe": request.allow_unsafe}
    command += [flag for flag, on in flags.items() if on]
    for name, value in request.options.items():
        command += ["--option", f"{name}={value}"]
    done = subprocess.run(command, env=environment, capture_output=True, check=False)
    try:
        return msgspec.json.decode(done.stdout, type=Numerics)
    except msgspec.MsgspecError:
        text = done.stderr.decode("utf-8", errors="replace").strip()
        last = text.splitlines()[-1] if text else f"exit status {done.returncode}"
        raise SourceError(last.removeprefix("fusescope: "), detail=text) from None
