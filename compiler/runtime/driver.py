"""The few CUDA driver calls on graphs that torch does not offer, through the driver library itself."""

from __future__ import annotations

import ctypes
import functools
from collections.abc import Callable

# cudaGraph_t and cudaGraphExec_t, which torch hands out as integers, are the driver's CUgraph and CUgraphExec.
LaunchFunction = Callable[[int, int], int]


@functools.cache
def _library() -> ctypes.CDLL | None:
    """libcuda, or None where there is no NVIDIA driver."""
    for name in ("libcuda.so.1", "nvcuda.dll"):
        try:
            library = ctypes.CDLL(name)
        except OSError:
            continue
        library.cuGraphGetNodes.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.POINTER(ctypes.c_size_t)]
        library.cuGraphUpload.argtypes = [ctypes.c_void_p, ctypes.c_void_p]
        library.cuGraphLaunch.argtypes = [ctypes.c_void_p, ctypes.c_void_p]
        return library
    return None


def node_count(graph: int) -> int:
    """How many nodes a captured graph has; 0 where the driver cannot say."""
    library = _library()
    count = ctypes.c_size_t(0)
    if library is None or library.cuGraphGetNodes(graph, None, ctypes.byref(count)) != 0:
        return 0
    return count.value


def upload(executable: int, stream: int) -> bool:
    """Copy an instantiated graph to the device ahead of its first launch; False where that failed."""
    library = _library()
    return library is not None and library.cuGraphUpload(executable, stream) == 0


def launch_function() -> LaunchFunction | None:
    """``launch(executable, stream)``, which returns the driver's error code (0: submitted)."""
    library = _library()
    if library is None:
        return None
    launch: LaunchFunction = library.cuGraphLaunch
    return launch
