"""Load a ``.pt2`` program of torch.export without unpickling arbitrary code.

torch.export.load falls back to full unpickling where a file asks for it, and loads native code where one brings it.
So torch's own switch forces every ``torch.load`` inside it to the safe unpickler, and the archive's other ways to run
code are looked for first.
"""

from __future__ import annotations

import json
import logging
import os
import pickle
import zipfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from app.sources.errors import SourceError
from app.sources.keywords import by_position
from app.sources.size_text import is_arithmetic

if TYPE_CHECKING:
    pass

_FORCE_SAFE = "TORCH_FORCE_WEIGHTS_ONLY_LOAD"
_AGAIN = "Export the model again with torch.export.save, or copy the file again."
_UNSAFE_HINT = "Open it only if you trust where it comes from."
_END_RECORD = 22  # bytes of a zip's last record, which carries no comment here


def load_program(path: Path, allow_unsafe: bool, device: str) -> tuple[Callable[..., Any], tuple[Any, ...]]:
    """The module of an exported program, on ``device``, and the inputs it was exported with.

    Raises:
        SourceError: the file is damaged, of another kind, or (code "unsafe") needs arbitrary unpickling.
    """
    import torch

    danger = _inspect(path)
    if danger and not allow_unsafe:
        raise SourceError(f"{path.name} {danger}.", _UNSAFE_HINT, code="unsafe")
    try:
        with _safe_unpickler(not allow_unsafe), _quiet_export_log():
            program = torch.export.load(path)
    except pickle.UnpicklingError as error:
        message = f"{path.name} holds pickled Python objects, and loading them can run any code."
        raise SourceError(message, _UNSAFE_HINT, code="unsafe", detail=str(error)) from error
    except Exception as error:  # the loader raises every kind on a bad file
        reason = str(error).strip().split("\n")[0] or type(error).__name__
        hint = f"It needs a torch like the one that wrote it; this is torch {torch.__version__}. {_AGAIN}"
        raise SourceError(f"{path.name} cannot be loaded: {reason}", hint, detail=reason) from error
    if program.example_inputs is None:
        raise SourceError(f"{path.name} was saved without example inputs.", _AGAIN)
    if device != "cpu":
        from torch.export.passes import move_to_device_pass

        program = move_to_device_pass(program, device)  # devices are written into its graph too
    args, kwargs = program.example_inputs
    return by_position(program.module(), args, kwargs)


def _inspect(path: Path) -> str:
    """What in the archive could run code when loaded, as the end of a sentence; "" if nothing.

    Raises:
        SourceError: not a whole archive.
    """
    try:
        with path.open("rb") as file:
            magic = file.read(2)
            file.seek(max(0, path.stat().st_size - _END_RECORD))
            end = file.read()
    except OSError as error:
        raise SourceError(f"{path} cannot be read: {error.strerror}.", "Check the file's permissions.") from error
    if magic != b"PK":
        raise SourceError(f"{path.name} is not a .pt2 program.", "torch.export.save writes one.")
    try:
        # Searching backwards for the end record, as zipfile does, would find one of an archive stored inside this one.
        if not end.startswith(b"PK\5\6"):
            raise zipfile.BadZipFile("the end record is missing")
        with zipfile.ZipFile(path) as archive:
            names = archive.namelist()
            programs = [archive.read(name) for name in names if name.endswith(".json")]
    except (zipfile.BadZipFile, EOFError, OSError, NotImplementedError) as error:
        raise SourceError(f"{path.name} is damaged or cut short.", _AGAIN, detail=str(error)) from error
    if any("/aotinductor/" in name for name in names):
        return "brings native code (an AOTInductor package), and loading it runs that code"
    if any("opaque_obj" in name or "custom_obj" in name for name in names):
        return "holds pickled Python objects, and loading them can run any code"
    if not all(is_arithmetic(text) for program in programs for text in _size_expressions(program)):
        return "has a size expression that is not plain arithmetic, and loading it would run it as Python"
    return ""


def _size_expressions(program: bytes) -> Iterator[str]:
    try:
        pending: list[Any] = [json.loads(program)]
    except ValueError:
        return
    while pending:
        value = pending.pop()
        if isinstance(value, dict):
            yield from (text for key, text in value.items() if key == "expr_str" and isinstance(text, str))
            pending.extend(value.values())
        elif isinstance(value, list):
            pending.extend(value)


@contextmanager
def _safe_unpickler(on: bool) -> Iterator[None]:
    before = os.environ.get(_FORCE_SAFE)
    if on:
        os.environ[_FORCE_SAFE] = "1"
    try:
        yield
    finally:
        if on and before is None:
            del os.environ[_FORCE_SAFE]
        elif before is not None:
            os.environ[_FORCE_SAFE] = before


@contextmanager
def _quiet_export_log() -> Iterator[None]:
    """Keep the loader's own traceback off stderr: the fault is reported once, in one sentence."""
    logger = logging.getLogger("torch.export")
    before = logger.level
    logger.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        logger.setLevel(before)
