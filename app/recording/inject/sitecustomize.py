"""Python runs this at the start of a recorded program, and of each Python that it starts.

It must not be noticed: nothing is imported but the standard library until the program itself imports torch._dynamo, and
no fault in here may reach the program. What it collects is left in the folder that FUSESCOPE_RECORD names.
"""

from __future__ import annotations

import atexit
import contextlib
import importlib
import importlib.abc
import importlib.machinery
import importlib.util
import os
import sys
from collections.abc import Callable, Sequence
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType
from typing import Any

_WATCHED = {
    "torch._dynamo": "on_dynamo",
    "torch._inductor.compile_fx": "on_inductor",
    "compiler.backend": "on_backend",
}
_OWN = "compiler"  # the package of ours that runs in the program


class _Recording:
    """The recorder of this process, made when it is first needed, or the reason why there is none."""

    def __init__(self, folder: str) -> None:
        self.folder = Path(folder)
        self.recorder: Any = None
        self.reason = ""

    def imported(self, name: str, module: ModuleType) -> None:
        """A watched module was imported."""
        if self.reason:
            return
        try:
            if self.recorder is None:
                self.recorder = self._make()
            getattr(self.recorder, _WATCHED[name])(module)
        except BaseException as error:
            self.give_up(f"{type(error).__name__}: {error}")

    def _make(self) -> Any:
        spec = importlib.util.find_spec(_OWN)
        if spec is None or not _is_ours(spec):
            raise ImportError(f"the program has a package {_OWN!r} of its own")
        recorder = importlib.import_module(f"{_OWN}.recording").Recorder()
        atexit.register(self.write)
        if f"{_OWN}.backend" in sys.modules:  # imported by the recorder itself, or before by the program
            recorder.on_backend(sys.modules[f"{_OWN}.backend"])
        return recorder

    def write(self) -> None:
        """Leave the reports as data; whoever started the program makes sessions of them."""
        try:
            import msgspec

            for number, report in enumerate(self.recorder.reports(" ".join(sys.argv) or "python")):
                place = self.folder / f"{os.getpid()}-{number}.msgpack"
                temporary = place.with_suffix(".part")
                temporary.write_bytes(msgspec.msgpack.encode(report))
                temporary.replace(place)
        except BaseException as error:
            self.give_up(f"{type(error).__name__}: {error}")

    def give_up(self, reason: str) -> None:
        """Say why nothing more is recorded here; torch's own log is what is left."""
        self.reason = reason
        with contextlib.suppress(OSError):
            (self.folder / f"{os.getpid()}.reason").write_text(reason)


class _Loader(importlib.abc.Loader):
    """A module's own loader, which says when the module has been executed."""

    def __init__(self, loader: Any, done: Callable[[ModuleType], None]) -> None:
        self._loader, self._done = loader, done

    def create_module(self, spec: ModuleSpec) -> ModuleType | None:
        made: ModuleType | None = self._loader.create_module(spec)
        return made

    def exec_module(self, module: ModuleType) -> None:
        if module.__spec__ is not None:
            module.__spec__.loader = self._loader
        module.__loader__ = self._loader
        self._loader.exec_module(module)
        self._done(module)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._loader, name)


class _Watch(importlib.abc.MetaPathFinder):
    """Finds the watched modules where they are found anyway, and our own package where the program has none."""

    def __init__(self, recording: _Recording) -> None:
        self._recording = recording

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if name not in _WATCHED:
            return None
        spec = importlib.machinery.PathFinder.find_spec(name, path)
        if spec is not None and spec.loader is not None:
            spec.loader = _Loader(spec.loader, lambda module: self._recording.imported(name, module))
        return spec


class _OwnPackage(importlib.abc.MetaPathFinder):
    """Finds our own package, unless the program has another one of that name."""

    def __init__(self, root: str) -> None:
        self._root = root

    def find_spec(
        self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if name != _OWN:
            return None
        theirs = importlib.machinery.PathFinder.find_spec(name)
        if theirs is not None and not _is_ours(theirs):
            return None
        return importlib.machinery.PathFinder.find_spec(name, [self._root])


def _is_ours(spec: ModuleSpec) -> bool:
    """Whether a package is Fusescope's, of whatever version."""
    return spec.origin is not None and (Path(spec.origin).parent / "inductor" / "hooks.py").is_file()


def _start() -> None:
    folder, root = os.environ.get("FUSESCOPE_RECORD"), os.environ.get("FUSESCOPE_ROOT")
    if folder and root and os.path.isdir(folder):
        sys.meta_path[:0] = [_Watch(_Recording(folder)), _OwnPackage(root)]


def _chain() -> None:
    """Run the sitecustomize that this one hides."""
    here = os.path.dirname(os.path.abspath(__file__))
    sys.path[:] = [entry for entry in sys.path if os.path.abspath(entry or ".") != here]
    hidden = importlib.machinery.PathFinder.find_spec("sitecustomize", sys.path)
    if hidden is not None and hidden.loader is not None:
        module = importlib.util.module_from_spec(hidden)
        sys.modules["sitecustomize"] = module
        hidden.loader.exec_module(module)


_start()
_chain()
