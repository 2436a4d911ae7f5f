"""Topology read from graphs on a GPU: every kind of node, edges as the driver's own bindings tell them, exact steps."""

from __future__ import annotations

import ctypes
from collections import Counter
from collections.abc import Sequence
from typing import Any

import pytest

torch = pytest.importorskip("torch")
bindings = pytest.importorskip("cuda.bindings.driver")

from compiler.report import GraphNodeKind  # noqa: E402
from compiler.runtime import driver, topology  # noqa: E402
from compiler.runtime.modes import prepare  # noqa: E402
from compiler.runtime.observe import Observer  # noqa: E402
from compiler.runtime.trace import trace, with_trace  # noqa: E402

pytestmark = pytest.mark.gpu


def done(result: tuple[Any, ...]) -> Any:
    """The values of a call that must have succeeded."""
    code, *values = result
    assert int(code) == 0, code
    return values[0] if len(values) == 1 else tuple(values)


def bindings_edges(graph: int) -> set[tuple[int, int]]:
    """What NVIDIA's own bindings say. Their calls end with the count; since CUDA 13 the edges' data come before it."""
    handle = bindings.CUgraph(graph)
    count = int(done(bindings.cuGraphGetEdges(handle))[-1])
    if not count:
        return set()
    before, after, *_ = done(bindings.cuGraphGetEdges(handle, count))
    return {(int(a), int(b)) for a, b in zip(before[:count], after[:count], strict=True)}


def captured(run: Any) -> Any:
    """A captured graph of ``run`` on its own stream."""
    run()
    torch.cuda.synchronize()
    graph = torch.cuda.CUDAGraph(keep_graph=True)
    with torch.cuda.graph(graph):
        run()
    return graph


def test_every_kind_of_node_and_its_edges() -> None:
    x = torch.randn(1024, device="cuda")
    y = torch.empty_like(x)
    child = captured(lambda: y.copy_(x * 2))
    kernels = [node for node in driver.nodes(child.raw_cuda_graph()) if driver.node_type(node) == driver.KERNEL]
    doubles = done(bindings.cuGraphKernelNodeGetParams(bindings.CUgraphNode(kernels[0])))
    context = done(bindings.cuCtxGetCurrent())
    graph = done(bindings.cuGraphCreate(0))
    event = done(bindings.cuEventCreate(0))

    def add(call: str, previous: Sequence[Any], *arguments: Any) -> Any:
        return done(getattr(bindings, call)(graph, list(previous), len(previous), *arguments))

    fill = bindings.CUDA_MEMSET_NODE_PARAMS()
    fill.dst, fill.value, fill.elementSize, fill.width, fill.height = y.data_ptr(), 0, 4, 1024, 1
    memset = add("cuGraphAddMemsetNode", [], fill, context)
    copy = bindings.CUDA_MEMCPY3D()
    copy.srcMemoryType = copy.dstMemoryType = bindings.CUmemorytype.CU_MEMORYTYPE_DEVICE
    copy.srcDevice, copy.dstDevice = x.data_ptr(), y.data_ptr()
    copy.WidthInBytes, copy.Height, copy.Depth = 4096, 1, 1
    memcpy = add("cuGraphAddMemcpyNode", [memset], copy, context)
    kernel = add("cuGraphAddKernelNode", [memcpy], doubles)
    nested = add("cuGraphAddChildGraphNode", [memset], bindings.CUgraph(child.raw_cuda_graph()))
    record = add("cuGraphAddEventRecordNode", [kernel, nested], event)
    wait = add("cuGraphAddEventWaitNode", [record], event)
    callback = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(lambda data: None)
    host = bindings.CUDA_HOST_NODE_PARAMS()
    host.fn = bindings.CUhostFn(ctypes.cast(callback, ctypes.c_void_p).value)
    called = add("cuGraphAddHostNode", [wait], host)
    request = bindings.CUDA_MEM_ALLOC_NODE_PARAMS()
    request.poolProps.allocType = bindings.CUmemAllocationType.CU_MEM_ALLOCATION_TYPE_PINNED
    request.poolProps.location.type = bindings.CUmemLocationType.CU_MEM_LOCATION_TYPE_DEVICE
    request.poolProps.location.id = torch.cuda.current_device()
    request.bytesize = 8192
    allocated = add("cuGraphAddMemAllocNode", [called], request)
    address = done(bindings.cuGraphMemAllocNodeGetParams(allocated)).dptr
    freed = add("cuGraphAddMemFreeNode", [allocated], address)
    choice = bindings.CUgraphNodeParams()
    choice.type = bindings.CUgraphNodeType.CU_GRAPH_NODE_TYPE_CONDITIONAL
    conditional = bindings.CUDA_CONDITIONAL_NODE_PARAMS()
    conditional.handle = done(bindings.cuGraphConditionalHandleCreate(graph, context, 1, 1))
    conditional.type = bindings.CUgraphConditionalNodeType.CU_GRAPH_COND_TYPE_IF
    conditional.size, conditional.ctx = 1, context
    choice.conditional = conditional
    done(bindings.cuGraphAddNode(graph, [freed], None, 1, choice))
    (body,) = (bindings.CUgraph(int(made)) for made in choice.conditional.phGraph_out[:1])
    filled = done(bindings.cuGraphAddMemsetNode(body, [], 0, fill, context))
    done(bindings.cuGraphAddMemcpyNode(body, [filled], 1, copy, context))
    done(bindings.cuGraphAddEmptyNode(graph, [memset], 1))

    nodes = topology.read(int(graph), {int(memcpy): ("forward", "group0")})
    kinds = Counter(node.kind for node in nodes)
    assert set(kinds) == set(GraphNodeKind) - {GraphNodeKind.OTHER}
    assert kinds.total() == len(kinds) == 11
    by_kind = {node.kind: node for node in nodes}
    assert by_kind[GraphNodeKind.MEMSET].bytes == by_kind[GraphNodeKind.MEMCPY].bytes == 4096
    assert by_kind[GraphNodeKind.MEM_ALLOC].bytes == by_kind[GraphNodeKind.MEM_FREE].bytes == 8192
    assert by_kind[GraphNodeKind.MEMCPY].unit == "group0"
    inside = by_kind[GraphNodeKind.CHILD_GRAPH].children
    assert GraphNodeKind.KERNEL in {node.kind for node in inside}
    for kernel in (by_kind[GraphNodeKind.KERNEL], next(n for n in inside if n.kind is GraphNodeKind.KERNEL)):
        assert "at::native" in kernel.name
        assert kernel.grid[0] >= 1
        assert kernel.block[0] >= 32
    within = by_kind[GraphNodeKind.CONDITIONAL]
    assert within.name == "If"
    assert [node.kind for node in within.children] == [GraphNodeKind.MEMSET, GraphNodeKind.MEMCPY]
    assert [node.bytes for node in within.children] == [4096, 4096]
    assert [node.dependencies for node in within.children] == [[], [0]]
    assert set(driver.edges(int(graph))) == bindings_edges(int(graph))
    assert sum(len(node.dependencies) for node in nodes) == len(bindings_edges(int(graph)))


def test_each_case_of_a_conditional_has_its_nodes() -> None:
    x = torch.zeros(256, device="cuda")
    context = done(bindings.cuCtxGetCurrent())
    graph = done(bindings.cuGraphCreate(0))
    fill = bindings.CUDA_MEMSET_NODE_PARAMS()
    fill.dst, fill.value, fill.elementSize, fill.width, fill.height = x.data_ptr(), 0, 4, 256, 1
    choice = bindings.CUgraphNodeParams()
    choice.type = bindings.CUgraphNodeType.CU_GRAPH_NODE_TYPE_CONDITIONAL
    conditional = bindings.CUDA_CONDITIONAL_NODE_PARAMS()
    conditional.handle = done(bindings.cuGraphConditionalHandleCreate(graph, context, 1, 1))
    conditional.type = bindings.CUgraphConditionalNodeType.CU_GRAPH_COND_TYPE_SWITCH
    conditional.size, conditional.ctx = 3, context
    choice.conditional = conditional
    done(bindings.cuGraphAddNode(graph, [], None, 0, choice))
    for number, body in enumerate(choice.conditional.phGraph_out[:3]):
        for _ in range(number):
            done(bindings.cuGraphAddMemsetNode(bindings.CUgraph(int(body)), [], 0, fill, context))
    (node,) = topology.read(int(graph), {})
    assert node.name == "Switch"
    assert [len(case.children) for case in node.children] == [0, 1, 2]
    assert all(inner.bytes == 1024 for case in node.children for inner in case.children)


def test_edges_of_branches_equal_the_drivers() -> None:
    x = torch.randn(1 << 16, device="cuda")

    def forks() -> None:
        side, main = torch.cuda.Stream(), torch.cuda.current_stream()
        side.wait_stream(main)
        y = x * 2
        with torch.cuda.stream(side):
            z = x * 3
        main.wait_stream(side)
        y.add_(z)

    kept = captured(forks)  # the handle is good as long as the object lives
    graph = kept.raw_cuda_graph()
    nodes = topology.read(graph, {})
    edges = bindings_edges(graph)
    assert edges
    assert set(driver.edges(graph)) == edges
    assert sum(len(node.dependencies) for node in nodes) == len(edges)
    assert max(len(node.dependencies) for node in nodes) == 2
    assert all(before < node.id for node in nodes for before in node.dependencies)


def test_nodes_are_joined_to_their_steps_exactly(load_example: Any) -> None:
    model, inputs, _ = load_example("mlp")
    observer = Observer()
    step = prepare("graph", model, inputs, training=False, observer=observer)
    facts = step.cuda_graph
    assert facts is not None
    assert len(facts.topology) == facts.nodes
    assert all(node.unit and node.exact for node in facts.topology), [n.name for n in facts.topology if not n.unit]
    groups = [node for node in facts.topology if node.unit.startswith("group")]
    assert len(groups) == len({node.unit for node in groups})  # one kernel each
    traced = with_trace(facts, trace(step, "graph", observer=observer))
    assert traced.covered_kernels == traced.covered_time == 1.0
    assert all(node.measured_us for node in traced.topology)
    assert all(node.critical for node in traced.topology)  # one stream: one path


def test_training_nodes_know_their_region(load_example: Any) -> None:
    model, inputs, training = load_example("transformer_block")
    step = prepare("graph", model, inputs, training=training, observer=Observer())
    facts = step.cuda_graph
    assert facts is not None
    assert {"forward", "backward"} <= {node.region for node in facts.topology}
