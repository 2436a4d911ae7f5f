"""Calls in processes of their own, where everything is a first time but the compiling of modules."""

from __future__ import annotations

import multiprocessing
import os
import tempfile
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from typing import TypeVar
from unittest import mock

T = TypeVar("T")


def environment(bytecode: str) -> dict[str, str]:
    """This process's, with modules compiled once and kept in the folder ``bytecode``, as Python does by default."""
    kept = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    return {**kept, "PYTHONPYCACHEPREFIX": bytecode}


def fresh(call: Callable[..., T], arguments: tuple[object, ...], runs: int) -> list[T]:
    """What each of ``runs`` calls returned, after one that is thrown away because it compiles modules.

    Raises:
        whatever ``call`` raises.
    """
    made = []
    with tempfile.TemporaryDirectory() as bytecode, mock.patch.dict(os.environ, environment(bytecode), clear=True):
        for _ in range(runs + 1):
            with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
                made.append(pool.submit(call, *arguments).result())
    return made[1:]
