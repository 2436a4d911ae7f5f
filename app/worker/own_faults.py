"""A model's own faults, told apart from those of the compiler that ran it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from app.sources import SourceError
from app.sources.load import LoadedSource
from app.sources.python import users_fault
from compiler.errors import CompileError, TracingError, sentence

T = TypeVar("T")
_WANTS_GRADIENTS = "does not require grad"


def work_on(loaded: LoadedSource, training: bool, work: Callable[[], T]) -> T:
    """Do ``work`` with the model, in ``training`` with gradients. Where that fails and the model fails by itself too,
    its own fault is told.

    Raises:
        SourceError: the model raises when it is called; the sentence has the user's line.
        BaseException: what else ``work`` raises.
    """
    try:
        return work()
    except (SourceError, KeyboardInterrupt):
        raise
    except BaseException as error:
        if isinstance(error, TracingError) or not isinstance(error, CompileError):
            _run_eagerly(loaded, training)
        raise


def _run_eagerly(loaded: LoadedSource, training: bool) -> None:
    import torch

    try:
        with torch.set_grad_enabled(training):
            loaded.model(*loaded.inputs)
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        hint = "The model fails by itself, without the compiler: call it with its example inputs to debug it."
        if not training and _WANTS_GRADIENTS in sentence(error):
            hint = "There are gradients in training alone: compile it with training (--train), or say TRAINING = True."
        raise users_fault(error, loaded.files, f"{loaded.name}, called with its example inputs,", hint) from error
