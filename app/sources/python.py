"""Find the user's function in a Python file or module and call it, with each fault told in one sentence."""

from __future__ import annotations

import importlib
import importlib.util
import inspect
import sys
import traceback
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Any

from app.sources.errors import SourceError
from compiler.errors import sentence

_USUAL_NAMES = ("model", "build", "main")


@dataclass(frozen=True)
class UserFunction:
    """The function of the user's that makes the model. ``place`` names it in messages: "my.py:my_model"."""

    function: Callable[..., Any]
    file: Path
    place: str
    training: bool

    @property
    def parameters(self) -> Mapping[str, inspect.Parameter]:
        """Its parameters by name."""
        return inspect.signature(self.function).parameters

    def call(self, options: Mapping[str, str]) -> object:
        """Call it with ``options`` converted to the types of its defaults.

        Raises:
            SourceError: an option is unknown or has no such value, or the function raised or exited.
        """
        values = {name: self._value(name, text) for name, text in options.items()}
        missing = [
            name
            for name, parameter in self.parameters.items()
            if parameter.default is inspect.Parameter.empty
            and parameter.kind not in (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
            and name not in values
        ]
        if missing:
            hint = f"Give each parameter a default, or pass --option {missing[0]}=VALUE."
            them = "it" if len(missing) == 1 else "them"
            raise SourceError(f"{self.place} needs {', '.join(missing)} and has no default for {them}.", hint)
        return _run(lambda: self.function(**values), self.file, self.place)

    def _value(self, name: str, text: str) -> object:
        parameter = self.parameters.get(name)
        if parameter is None:
            takes = ", ".join(self.parameters) or "none"
            raise SourceError(f"{self.place} has no option '{name}'.", f"Its options: {takes}.")
        default = parameter.default
        try:
            match default:
                case bool():
                    return {"true": True, "1": True, "false": False, "0": False}[text.lower()]
                case int():
                    return int(text)
                case float():
                    return float(text)
        except (ValueError, KeyError):
            kind = "a number" if isinstance(default, float) else "a whole number"
            kind = "true or false" if isinstance(default, bool) else kind
            raise SourceError(f"Option {name}={text} of {self.place} should be {kind}, like {default}.") from None
        return text


def function_in_file(path: Path, function: str) -> UserFunction:
    """The function called ``function`` in the file at ``path``, or its only or usual one where the name is "".

    Raises:
        SourceError: the file cannot be read, parsed or imported, or has no such function.
    """
    try:
        compile(path.read_bytes(), str(path), "exec")
    except OSError as error:
        raise SourceError(f"{path} cannot be read: {error.strerror}.", "Check the file's permissions.") from error
    except SyntaxError as error:
        # a null byte or a wrong encoding has no line
        line = f":{error.lineno}" if error.lineno else ""
        hint = "Mend that line and try again." if line else "Check that it is a Python file, in UTF-8."
        raise SourceError(f"{path}{line}: {type(error).__name__}: {error.msg}.", hint) from error
    except ValueError as error:
        raise SourceError(f"{path} is not Python source: {error}.") from error
    module = _run(lambda: _import_file(path), path, str(path))
    assert isinstance(module, ModuleType)
    return _pick(module, path, path.name, function)


def function_in_module(module_name: str, function: str) -> UserFunction:
    """The function called ``function`` in the importable module ``module_name``.

    Raises:
        SourceError: there is no such module or function, or importing it raised.
    """
    if "" not in sys.path:
        sys.path.insert(0, "")  # python main.py puts its own folder there, not the one the user stands in
    try:
        spec = importlib.util.find_spec(module_name)
    except ModuleNotFoundError:
        spec = None
    if spec is None or spec.origin is None:
        hint = "Check the name, and run from the folder that holds the package."
        raise SourceError(f"There is no module {module_name}.", hint)
    path = Path(spec.origin)
    module = _run(lambda: importlib.import_module(module_name), path, module_name)
    assert isinstance(module, ModuleType)
    return _pick(module, path, module_name, function)


def _import_file(path: Path) -> ModuleType:
    name = path.stem if path.stem.isidentifier() and path.stem not in sys.modules else f"fusescope_source_{path.stem}"
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    folder = str(path.parent)
    if folder not in sys.path:
        sys.path.insert(0, folder)  # so that the file finds its neighbours, as when run by python itself
    sys.modules[name] = module  # dataclasses, pickle and inspect look the module up by name
    try:
        spec.loader.exec_module(module)
    except BaseException:
        del sys.modules[name]
        raise
    return module


def _pick(module: ModuleType, path: Path, origin: str, name: str) -> UserFunction:
    """The function called ``name`` (or the usual one); ``origin`` is what messages call the file or module."""
    own = {
        key: value
        for key, value in vars(module).items()
        if isinstance(value, FunctionType) and value.__module__ == module.__name__ and not key.startswith("_")
    }
    training = bool(getattr(module, "TRAINING", False))
    if name:
        chosen = getattr(module, name, None)
        if not callable(chosen):
            has = ", ".join(own) or "no functions"
            raise SourceError(f"{origin} has no function called '{name}'.", f"It has {has}.")
        return UserFunction(chosen, path, f"{origin}:{name}", training)
    usual = next((key for key in (path.stem, *_USUAL_NAMES) if key in own), "")
    callable_bare = [key for key, value in own.items() if _needs_nothing(value)]
    only = callable_bare[0] if len(callable_bare) == 1 else ""
    key = usual or only
    if not key:
        if not own:
            hint = "Write a function that returns (module_or_function, example_inputs)."
            raise SourceError(f"{origin} defines no function to call.", hint)
        hint = f"Say which: {origin}:NAME with one of {', '.join(own)}."
        raise SourceError(f"{origin} defines several functions.", hint)
    return UserFunction(own[key], path, f"{origin}:{key}", training)


def _needs_nothing(function: FunctionType) -> bool:
    variadic = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    parameters = inspect.signature(function).parameters.values()
    return all(p.default is not inspect.Parameter.empty or p.kind in variadic for p in parameters)


def users_fault(error: BaseException, files: Collection[str], place: str, hint: str) -> SourceError:
    """What the user's code raised, as one sentence with the innermost line of ``files``, else with ``place``."""
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename in files]
    where = f"{frames[-1].filename}:{frames[-1].lineno}" if frames else place
    detail = "".join(traceback.format_exception(error))
    if isinstance(error, SystemExit):
        return SourceError(f"{where} called sys.exit({error.code!r}).", "Take the call out.", detail=detail)
    return SourceError(f"{where} raised {sentence(error)}", hint, detail=detail)


def _run(call: Callable[[], object], file: Path, place: str) -> object:
    """Run the user's code; what it raises becomes one sentence with the user's own line."""
    try:
        return call()
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        hint = "Run the file with python itself to debug it."
        if any(words in sentence(error) for words in _NO_GPU):
            hint = "Make the model and its inputs on the CPU: where there is a GPU, they are moved to it."
        if isinstance(error, MemoryError) or _NO_MEMORY in sentence(error):
            hint = "Make it under torch.device('meta'): then it is compiled by its shapes, for a target by name."
        raise users_fault(error, [str(file)], place, hint) from error


_NO_MEMORY = "can't allocate memory"
# What torch says where a tensor is made on a GPU and there is none.
_NO_GPU = ("Torch not compiled with CUDA enabled", "Found no NVIDIA driver", "No CUDA GPUs are available")
