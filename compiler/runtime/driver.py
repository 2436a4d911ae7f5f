"""The CUDA driver's calls on graphs that torch does not offer, through the driver library itself.

cudaGraph_t, cudaGraphExec_t and cudaGraphNode_t, which torch hands out as integers, are the driver's CUgraph,
CUgraphExec and CUgraphNode. Functions that read return None, or nothing, where there is no driver or it refuses.
"""

from __future__ import annotations

import ctypes
import functools
import os
import tempfile
from collections.abc import Callable, Sequence
from ctypes import POINTER, byref, c_char_p, c_int, c_size_t, c_ubyte, c_uint, c_void_p

LaunchFunction = Callable[[int, int], int]

# CUgraphNodeType
KERNEL, MEMCPY, MEMSET, HOST, CHILD_GRAPH, EMPTY, EVENT_WAIT, EVENT_RECORD = range(8)
MEM_ALLOC, MEM_FREE = 10, 11
CONDITIONAL = 13

_CAPTURING = 1  # CU_STREAM_CAPTURE_STATUS_ACTIVE
_DOT_HANDLES = 1 << 10  # CU_GRAPH_DEBUG_DOT_FLAGS_HANDLES
_LOSSY_QUERY = 912  # CUDA_ERROR_LOSSY_QUERY: an edge carries data that the older call cannot tell


class KernelParams(ctypes.Structure):
    """CUDA_KERNEL_NODE_PARAMS_v2."""

    _fields_ = [
        ("function", c_void_p),
        ("grid", c_uint * 3),
        ("block", c_uint * 3),
        ("shared_bytes", c_uint),
        ("params", POINTER(c_void_p)),
        ("extra", c_void_p),
        ("kernel", c_void_p),
        ("context", c_void_p),
    ]


class CopyEnd(ctypes.Structure):
    """One end of CUDA_MEMCPY3D."""

    _fields_ = [
        ("x_bytes", c_size_t),
        ("y", c_size_t),
        ("z", c_size_t),
        ("lod", c_size_t),
        ("memory_type", c_uint),
        ("host", c_void_p),
        ("device", c_void_p),
        ("array", c_void_p),
        ("reserved", c_void_p),
        ("pitch", c_size_t),
        ("height", c_size_t),
    ]


class MemcpyParams(ctypes.Structure):
    """CUDA_MEMCPY3D."""

    _fields_ = [
        ("source", CopyEnd),
        ("target", CopyEnd),
        ("width_bytes", c_size_t),
        ("height", c_size_t),
        ("depth", c_size_t),
    ]


class MemsetParams(ctypes.Structure):
    """CUDA_MEMSET_NODE_PARAMS."""

    _fields_ = [
        ("target", c_void_p),
        ("pitch", c_size_t),
        ("value", c_uint),
        ("element_bytes", c_uint),
        ("width", c_size_t),
        ("height", c_size_t),
    ]


class AllocationParams(ctypes.Structure):
    """CUDA_MEM_ALLOC_NODE_PARAMS; the properties of its memory pool are not looked into."""

    _fields_ = [
        ("pool", c_ubyte * 88),
        ("access", c_void_p),
        ("access_count", c_size_t),
        ("bytes", c_size_t),
        ("address", c_void_p),
    ]


class _EdgeData(ctypes.Structure):
    """CUgraphEdgeData."""

    _fields_ = [("from_port", c_ubyte), ("to_port", c_ubyte), ("type", c_ubyte), ("reserved", c_ubyte * 5)]


@functools.cache
def _library() -> ctypes.CDLL | None:
    """libcuda, or None where there is no NVIDIA driver."""
    for name in ("libcuda.so.1", "nvcuda.dll"):
        try:
            library = ctypes.CDLL(name)
        except OSError:
            continue
        # Handles are pointers: without this ctypes would cut them to 32 bits.
        library.cuGraphLaunch.argtypes = [c_void_p, c_void_p]
        return library
    return None


def _call(name: str, *arguments: object) -> int | None:
    """The driver's error code (0: done), or None where there is no such function."""
    library = _library()
    function = getattr(library, name, None) if library is not None else None
    return None if function is None else int(function(*arguments))


def _handle(value: int) -> c_void_p:
    return c_void_p(value)


def launch_function() -> LaunchFunction | None:
    """``launch(executable, stream)``, which returns the driver's error code (0: submitted)."""
    library = _library()
    if library is None:
        return None
    launch: LaunchFunction = library.cuGraphLaunch
    return launch


def upload(executable: int, stream: int) -> bool:
    """Copy an instantiated graph to the device ahead of its first launch; False where that failed."""
    return _call("cuGraphUpload", _handle(executable), _handle(stream)) == 0


def capturing_graph(stream: int) -> int | None:
    """The graph that the work submitted to ``stream`` is being captured into; None where it is not."""
    status, identity, graph = c_int(0), ctypes.c_uint64(0), c_void_p()
    dependencies, edges, count = c_void_p(), c_void_p(), c_size_t(0)
    common = (_handle(stream), byref(status), byref(identity), byref(graph), byref(dependencies))
    code = _call("cuStreamGetCaptureInfo_v3", *common, byref(edges), byref(count))
    if code != 0:
        code = _call("cuStreamGetCaptureInfo_v2", *common, byref(count))
    return graph.value if code == 0 and status.value == _CAPTURING else None


def nodes(graph: int) -> list[int]:
    """Handles of the graph's nodes, in the order in which they were added."""
    count = c_size_t(0)
    if _call("cuGraphGetNodes", _handle(graph), None, byref(count)) != 0 or not count.value:
        return []
    handles = (c_void_p * count.value)()
    if _call("cuGraphGetNodes", _handle(graph), handles, byref(count)) != 0:
        return []
    return [handle or 0 for handle in handles[: count.value]]


def edges(graph: int) -> list[tuple[int, int]]:
    """(node, the node that waits for it) for every dependency."""
    count = c_size_t(0)
    if _call("cuGraphGetEdges_v2", _handle(graph), None, None, None, byref(count)) == 0:
        ends = (c_void_p * count.value)(), (c_void_p * count.value)()
        data = (_EdgeData * count.value)()
        code = _call("cuGraphGetEdges_v2", _handle(graph), *ends, data, byref(count))
    else:  # a driver before 12.3
        if _call("cuGraphGetEdges", _handle(graph), None, None, byref(count)) not in (0, _LOSSY_QUERY):
            return []
        ends = (c_void_p * count.value)(), (c_void_p * count.value)()
        code = _call("cuGraphGetEdges", _handle(graph), *ends, byref(count))
    if code != 0:
        return []
    return [(a or 0, b or 0) for a, b in zip(*ends, strict=True)]


def node_type(node: int) -> int:
    """The driver's number for what the node does, or -1."""
    kind = c_int(-1)
    return kind.value if _call("cuGraphNodeGetType", _handle(node), byref(kind)) == 0 else -1


def kernel_params(node: int) -> KernelParams | None:
    """Parameters of a kernel node; its arguments stay the graph's."""
    params = KernelParams()
    code = _call("cuGraphKernelNodeGetParams_v2", _handle(node), byref(params))
    return params if code == 0 else None


def kernel_name(params: KernelParams) -> str:
    """The function's name as it is linked (mangled), or ""."""
    name = c_char_p()
    if params.function and _call("cuFuncGetName", byref(name), _handle(params.function)) == 0 and name.value:
        return name.value.decode(errors="replace")
    if params.kernel and _call("cuKernelGetName", byref(name), _handle(params.kernel)) == 0 and name.value:
        return name.value.decode(errors="replace")
    return ""


def argument_sizes(params: KernelParams) -> list[int]:
    """Bytes of each argument of a kernel node's function; empty where the driver cannot tell."""
    sizes: list[int] = []
    offset, size = c_size_t(0), c_size_t(0)
    name = "cuFuncGetParamInfo" if params.function else "cuKernelGetParamInfo"
    handle = params.function or params.kernel
    while handle and _call(name, _handle(handle), c_size_t(len(sizes)), byref(offset), byref(size)) == 0:
        sizes.append(size.value)
    return sizes


def memcpy_params(node: int) -> MemcpyParams | None:
    """Parameters of a copy."""
    params = MemcpyParams()
    return params if _call("cuGraphMemcpyNodeGetParams", _handle(node), byref(params)) == 0 else None


def memset_params(node: int) -> MemsetParams | None:
    """Parameters of a fill."""
    params = MemsetParams()
    return params if _call("cuGraphMemsetNodeGetParams", _handle(node), byref(params)) == 0 else None


def allocation(node: int) -> tuple[int, int] | None:
    """Address and bytes that an allocation node gives out."""
    params = AllocationParams()
    code = _call("cuGraphMemAllocNodeGetParams", _handle(node), byref(params))
    return (params.address or 0, params.bytes) if code == 0 else None


def freed_address(node: int) -> int | None:
    """The address that a free node gives back."""
    address = c_void_p()
    return (address.value or 0) if _call("cuGraphMemFreeNodeGetParams", _handle(node), byref(address)) == 0 else None


def child_graph(node: int) -> int | None:
    """The graph that a child graph node runs."""
    graph = c_void_p()
    return graph.value if _call("cuGraphChildGraphNodeGetGraph", _handle(node), byref(graph)) == 0 else None


def description(graph: int) -> str:
    """The driver's description of a graph in the DOT language with the handles of its nodes; "" where there is none."""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "graph.dot")
        if _call("cuGraphDebugDotPrint", _handle(graph), c_char_p(os.fsencode(path)), c_uint(_DOT_HANDLES)) != 0:
            return ""
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read()


def add_kernel(graph: int, after: Sequence[int], params: KernelParams) -> int | None:
    """A new kernel node that waits for ``after``; its arguments are copied. None where the driver refuses."""
    node, count = c_void_p(), len(after)
    waits = (c_void_p * count)(*after)
    name = "cuGraphAddKernelNode_v2"
    code = _call(name, byref(node), _handle(graph), waits, c_size_t(count), byref(params))
    return node.value if code == 0 else None


def add_edges(graph: int, edges: Sequence[tuple[int, int]]) -> bool:
    """Let the second node of each pair wait for the first; False where the driver refuses."""
    count = len(edges)
    ends = [(c_void_p * count)(*side) for side in zip(*edges, strict=True)] if edges else []
    return not edges or _call("cuGraphAddDependencies", _handle(graph), *ends, c_size_t(count)) == 0


def remove_node(node: int) -> bool:
    """Take a node out of its graph, with all that it waits for or that waits for it; False where refused."""
    return _call("cuGraphDestroyNode", _handle(node)) == 0


def current_context() -> int | None:
    """The calling thread's context."""
    context = c_void_p()
    return context.value if _call("cuCtxGetCurrent", byref(context)) == 0 else None


def set_kernel(executable: int, node: int, params: KernelParams) -> bool:
    """Let an instantiated graph run a kernel node with ``params`` from its next launch on; False where refused."""
    return _call("cuGraphExecKernelNodeSetParams_v2", _handle(executable), _handle(node), byref(params)) == 0


def set_memcpy(executable: int, node: int, params: MemcpyParams, context: int) -> bool:
    """The same of a copy, which must be one of consecutive bytes."""
    handles = _handle(executable), _handle(node)
    return _call("cuGraphExecMemcpyNodeSetParams", *handles, byref(params), _handle(context)) == 0


def set_memset(executable: int, node: int, params: MemsetParams, context: int) -> bool:
    """The same of a fill, which must be one of consecutive bytes."""
    handles = _handle(executable), _handle(node)
    return _call("cuGraphExecMemsetNodeSetParams", *handles, byref(params), _handle(context)) == 0


@functools.cache
def demangled(name: str) -> str:
    """A C++ function's name as it was written; the name itself where it is none."""
    if not name.startswith("_Z"):
        return name
    try:
        library = ctypes.CDLL("libstdc++.so.6")
    except OSError:
        return name
    library.__cxa_demangle.restype = c_void_p
    status = c_int(0)
    text = library.__cxa_demangle(name.encode(), None, None, byref(status))
    if not text or status.value != 0:
        return name
    try:
        return (ctypes.cast(text, c_char_p).value or b"").decode(errors="replace")
    finally:
        library.free(c_void_p(text))
