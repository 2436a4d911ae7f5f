"""Around everything that runs the user's model: our output stays ours, and a fault becomes one sentence."""

from __future__ import annotations

import argparse
import logging
import os
import signal
import sys
import threading
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, nullcontext, redirect_stdout
from types import MappingProxyType
from typing import TypeVar

from app.cli.errors import CommandError
from app.worker.work import explain

T = TypeVar("T")
# Where the window has a button, the command line has a word.
_HINTS: Mapping[str, str] = MappingProxyType(
    {
        "unsafe": "Add --allow-unsafe if you trust it.",
        "internal": "This looks like a fault of Fusescope or torch; --debug shows the traceback.",
    }
)
# These log an error, with its traceback, and then raise it.
_TOLD_TWICE = (
    "torch._subclasses.fake_tensor",
    "torch._inductor.runtime.triton_heuristics",
    "torch.fx.experimental.recording",
)
# What they say so is in the report, or is a folder that an error leaves.
_OURS_TO_SAY: Mapping[str, str] = MappingProxyType(
    {
        "torch._dynamo.variables.tensor": "Graph break from `Tensor.item()`",
        "torch._dynamo.utils": "Encountered exception",
        "torch._inductor.utils": "on error, temporary cache dir kept at",
    }
)
_OURS_TO_SAY_OF_BUILTINS = "\n?Dynamo does not know how to trace the builtin"


def run_model_code(work: Callable[[], T], options: argparse.Namespace, what: str) -> T:
    """Do ``work``, which may run the model: what that prints goes to stderr, and what it raises is one sentence.

    ``what`` is being done, in words that go on from "while it". With --debug torch also tells of its errors itself.

    Raises:
        CommandError: in place of everything but KeyboardInterrupt.
    """
    options.doing(what)
    try:
        with _ended_by_interrupt(), _stdout_to_stderr(), nullcontext() if options.debug else _told_once():
            return work()
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        failed = explain(error, 0)
        hint = _HINTS.get(failed.code, failed.hint)
        raise CommandError(failed.message, hint, detail=failed.detail) from error


@contextmanager
def _ended_by_interrupt() -> Iterator[None]:
    """Ctrl+C ends the process at once, as it does a program that knows nothing of signals. KeyboardInterrupt would wait
    for the end of what C++ compiles, for seconds, and a model's code may catch it. Nothing of ours is half done here.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, signal.SIG_DFL)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


@contextmanager
def _stdout_to_stderr() -> Iterator[None]:
    """What Python prints, and what C code and other processes write to file 1: nobody's JSON has it in the middle."""
    sys.stdout.flush()
    ours = os.dup(1)
    os.dup2(2, 1)
    try:
        with redirect_stdout(sys.stderr):
            yield
    finally:
        os.dup2(ours, 1)
        os.close(ours)


@contextmanager
def _told_once() -> Iterator[None]:
    loggers = [logging.getLogger(name) for name in (*_TOLD_TWICE, *_OURS_TO_SAY)]

    def told_by_torch_alone(record: logging.LogRecord) -> bool:
        ours = _OURS_TO_SAY.get(record.name)
        return not record.exc_info and not (ours and str(record.msg).startswith(ours))

    for logger in loggers:
        logger.addFilter(told_by_torch_alone)
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", _OURS_TO_SAY_OF_BUILTINS)
            yield
    finally:
        for logger in loggers:
            logger.removeFilter(told_by_torch_alone)
