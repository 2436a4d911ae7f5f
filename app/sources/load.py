"""Load the model that a source names. Runs the user's code: only for the worker process and compiling commands."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from app.sources.errors import SourceError
from app.sources.files import own_text
from app.sources.keywords import by_position
from app.sources.program import load_program
from app.sources.python import UserFunction, function_in_file, function_in_module
from app.sources.spec import SourceKind, SourceSpec

_EXPECTED = (
    "Return (module_or_function, example_inputs), with the inputs in a tuple; those given by keyword in a dict, "
    "alone or after the tuple."
)


@dataclass(frozen=True)
class LoadedSource:
    """A model and the inputs to compile it with. ``inputs`` are positional; ``files`` maps file name to text.

    ``remaining`` are the options that the source's function did not take: they are for the compiler.
    ``parameters`` names those that it can take.
    """

    model: Callable[..., Any]
    inputs: tuple[Any, ...]
    name: str
    training: bool
    files: dict[str, str]
    remaining: dict[str, str] = field(default_factory=dict)
    parameters: tuple[str, ...] = ()


def load_source(
    spec: SourceSpec, options: Mapping[str, str] | None = None, allow_unsafe: bool = False, device: str = "cpu"
) -> LoadedSource:
    """Load ``spec`` onto ``device``; an option that names a parameter of its function is passed to it.

    Raises:
        SourceError: the source is at fault; ``code`` "unsafe" if ``allow_unsafe`` would help.
    """
    import torch

    options = dict(options or {})
    if spec.kind is SourceKind.PROGRAM:
        assert spec.path is not None
        model, inputs = load_program(spec.path, allow_unsafe, device)
        return LoadedSource(model, _moved(inputs, device), spec.name, False, {}, options)
    before = set(sys.modules)
    function = _find(spec)
    taken = {name: value for name, value in options.items() if name in function.parameters}
    returned = function.call({**taken, **spec.options})
    model, args, kwargs = check_returned(function.place, returned)
    if device != "cpu" and isinstance(model, torch.nn.Module) and not any(p.is_meta for p in model.parameters()):
        model = model.to(device)  # one without values stays: the compiler says what can be done with it
    model, inputs = by_position(model, args, kwargs)
    return LoadedSource(
        model=model,
        inputs=_moved(inputs, device),
        name=spec.name,
        training=function.training,
        files=user_files(function.file, set(sys.modules) - before),
        remaining={name: value for name, value in options.items() if name not in taken},
        parameters=tuple(function.parameters),
    )


def _find(spec: SourceSpec) -> UserFunction:
    if spec.path is not None:
        return function_in_file(spec.path, spec.function)
    return function_in_module(spec.module, spec.function)


def check_returned(place: str, returned: object) -> tuple[Callable[..., Any], tuple[Any, ...], Mapping[str, Any]]:
    """The model, its inputs and those by keyword that a source's function returned.

    Raises:
        SourceError: it returned something else; the sentence says what.
    """
    import torch

    if inspect.iscoroutine(returned):
        returned.close()  # else Python warns that nobody waited for it
    if not isinstance(returned, (tuple, list)):
        what = "nothing" if returned is None else _a(returned)
        raise SourceError(f"{place} returned {what}, not a model with its example inputs.", _EXPECTED)
    if len(returned) not in (2, 3):
        values = f"{len(returned)} value{'' if len(returned) == 1 else 's'}"
        raise SourceError(f"{place} returned {values} instead of two.", _EXPECTED)
    model, inputs, *rest = returned
    if isinstance(model, type):
        raise SourceError(f"{place} returned the class {model.__name__} where the model should be.", _EXPECTED)
    if not callable(model):
        raise SourceError(f"{place} returned {_a(model)} where the model should be.", _EXPECTED)
    if isinstance(model, (torch.jit.ScriptModule, torch.jit.ScriptFunction)):
        what = "a program of torch.jit, which torch.compile does not take"
        raise SourceError(f"{place} returned {what}.", f"{_EXPECTED} It is compiled from Python.")
    if isinstance(inputs, torch.Tensor):
        inputs = (inputs,)
    if isinstance(inputs, Mapping) and not rest:
        inputs, rest = (), [inputs]
    if not isinstance(inputs, (tuple, list)):
        what = type(inputs).__name__
        raise SourceError(f"{place} returned example inputs of type {what}, not a tuple.", _EXPECTED)
    keywords = rest[0] if rest else {}
    if not isinstance(keywords, Mapping) or not all(isinstance(name, str) for name in keywords):
        raise SourceError(f"{place} returned keyword inputs that are no dict of names.", _EXPECTED)
    return model, tuple(inputs), keywords


def _a(value: object) -> str:
    """The value's type with its article: "an int"."""
    name = type(value).__name__
    return f"{'an' if name[0] in 'aeiouAEIOU' else 'a'} {name}"


def _moved(inputs: tuple[Any, ...], device: str) -> tuple[Any, ...]:
    """``inputs`` with every tensor on ``device``, still a leaf where it was one."""
    import torch
    from torch.utils._pytree import tree_map_only

    def move(tensor: torch.Tensor) -> torch.Tensor:
        return tensor if tensor.is_meta else tensor.detach().to(device).requires_grad_(tensor.requires_grad)

    moved: tuple[Any, ...] = inputs if device == "cpu" else tree_map_only(torch.Tensor, move, inputs)
    return moved


def user_files(file: Path, imported: set[str]) -> dict[str, str]:
    """Text of ``file`` and of the user's own modules among ``imported`` (not installed packages), by file name."""
    names = [getattr(sys.modules.get(name), "__file__", None) for name in imported]
    paths = [file, *(Path(name) for name in sorted(filter(None, names)))]
    texts = {str(path): own_text(path) for path in paths}
    return {name: text for name, text in texts.items() if text is not None}
