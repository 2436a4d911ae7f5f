"""Whether tensors are still where a graph was captured with them: looked at for every parameter before each replay.

torch's own function for that takes most of the time that a call of a model with hundreds of parameters spends in the
runtime. ``addresses.cpp`` does the same in a fifth of it. It is built once for a Python, kept in Triton's cache, and
needs no header of torch: torch's code that Inductor generates for the CPU asks for addresses through the same pointer.
"""

from __future__ import annotations

import functools
import hashlib
import importlib.util
import logging
import os
import shutil
import subprocess
import sysconfig
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch

# (tensors, addresses, indices): whether the tensors at the indices are at the addresses of the same indices
SameAddresses = Callable[[Sequence[Any], list[int], list[int]], bool]

_MODULE = "fusescope_addresses"
_SOURCE = Path(__file__).with_name("addresses.cpp")
_BUILD_SECONDS = 60
_FLAGS = ("-O2", "-shared", "-fPIC", "-std=c++17")


@functools.cache
def same_addresses() -> SameAddresses:
    """The quickest function there is: ours, where a C++ compiler and Python's headers are, else torch's.

    Raises:
        AttributeError: this torch is built without CUDA and has none, and ours could not be built either.
    """
    try:
        return _ours()
    except Exception as error:  # whatever keeps it from being built or loaded, torch's does the same
        logging.getLogger(__name__).debug("Addresses are looked at by torch's function: %s", error)
    return _of_torch(torch._C._tensors_data_ptrs_at_indices_equal)


def _of_torch(same: Any) -> SameAddresses:
    def call(tensors: Sequence[Any], addresses: list[int], indices: list[int]) -> bool:
        return bool(same([*tensors], addresses, indices))  # it takes nothing but lists

    return call


def _ours() -> SameAddresses:
    from torch._C._dynamo import guards
    from triton.runtime.cache import get_cache_manager

    pointer: int = guards._torchinductor_pyobject_tensor_data_ptr  # type: ignore[attr-defined]  # not in torch's stubs
    name = f"{_MODULE}{sysconfig.get_config_var('EXT_SUFFIX')}"
    made_from = f"{name} {_FLAGS} {_SOURCE.read_text()}"
    cache = get_cache_manager(hashlib.sha256(made_from.encode()).hexdigest())
    path = cache.get_file(name) or cache.put(_built(), name)
    spec = importlib.util.spec_from_file_location(_MODULE, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    module.ask(pointer)
    found: SameAddresses = module.same_addresses
    return found


def _built() -> bytes:
    """The compiled module.

    Raises:
        FileNotFoundError: there is no C++ compiler.
        subprocess.SubprocessError: it fails, as where Python's headers are not installed, or takes too long.
    """
    compiler = next(filter(None, map(shutil.which, (os.environ.get("CXX", ""), "c++", "g++", "clang++"))), None)
    if compiler is None:
        raise FileNotFoundError("there is no C++ compiler")
    scheme = sysconfig.get_default_scheme()
    # Debian's Python names a place for what is installed locally, where its own headers are not.
    headers = sysconfig.get_path("include", "posix_prefix" if scheme == "posix_local" else scheme)
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "module"
        command = [compiler, *_FLAGS, f"-I{headers}", str(_SOURCE), "-o", str(out)]
        subprocess.run(command, check=True, capture_output=True, timeout=_BUILD_SECONDS)
        return out.read_bytes()
