"""A compiled region as report records."""

from __future__ import annotations

import operator
from collections.abc import Sequence

import torch
from torch.utils import _pytree as pytree

from compiler import report as r
from compiler.codegen.compile import CompiledKernel
from compiler.dynamo.static_inputs import is_static
from compiler.ir import Extern
from compiler.kernel_library import KernelLibrary, kind_of
from compiler.lowering.symbols import example, torch_expr
from compiler.planning.partitions import refused_steps, split
from compiler.planning.schedule import Launch
from compiler.provenance import provenance_of, with_forward
from compiler.region import CompiledRegion, launch_counts
from compiler.sizes import Size
from compiler.texts import size_text


def describe_region(region: CompiledRegion, library: KernelLibrary, target: r.Target) -> r.Region:
    """Nodes, groups, extern calls, refusals and memory of one region. ``target`` is what it runs on, be it a CPU."""
    graph = region.graph.graph
    nodes = [describe_node(node, region.kind) for node in graph.nodes]
    by_name = {node.name: node for node in nodes}
    groups, externs = [], []
    counted: dict[str, int] = {}
    launches = [step for step in region.steps if isinstance(step, Launch)]
    for launch in launches:
        for node in launch.origins:
            counted[node] = counted.get(node, 0) + 1
    kernels = {k.name: k for k in library.by_source.values()}
    node_of = _buffer_nodes(region)
    for order, step in enumerate(region.steps):
        if isinstance(step, Launch):
            groups.append(_group(step, order, kernels[region.kernels[step.name]], counted, node_of))
        else:
            externs.append(_extern(step, order, by_name, target))
    refusals = [r.Refusal(x.a, x.b, x.rule, x.detail, x.bytes_lost) for x in region.partition.refusals if x.a != x.b]
    return r.Region(
        region.name,
        region.kind,
        nodes,
        groups,
        externs,
        refusals,
        _memory(region),
        _cuda_graph(region, library, target),
        region.wrapper,
        region.graph.print_readable(print_output=False),
        sizes={b.symbol: b.hint for b in region.program.bindings},
    )


def sizes_note(regions: Sequence[r.Region]) -> list[str]:
    """What a report says of symbolic sizes, where it has some."""
    sizes = {symbol: value for region in regions for symbol, value in region.sizes.items()}
    if not sizes:
        return []
    example = ", ".join(f"{symbol} = {value}" for symbol, value in sizes.items())
    return [f"Sizes are symbolic and the program serves all of them; bytes, flops, grids and times are for {example}."]


def describe_kernels(regions: Sequence[CompiledRegion], library: KernelLibrary, target: r.Target) -> list[r.Kernel]:
    """All kernels, with the FX nodes behind each line from the launch that defined them."""
    counts = launch_counts(regions)
    lines: dict[str, dict[int, list[str]]] = {}
    for region in regions:
        for step in region.steps:
            if isinstance(step, Launch):
                kernel = region.kernels[step.name]
                found = lines.setdefault(kernel, {})
                for line, nodes in step.kernel.lines.items():
                    known = found.setdefault(line, [])
                    known.extend(f"{region.name}/{n}" for n in nodes if f"{region.name}/{n}" not in known)
    return [_kernel(k, counts.get(k.name, 0), lines.get(k.name, {}), target) for k in library.by_source.values()]


def _kernel(kernel: CompiledKernel, launches: int, lines: dict[int, list[str]], target: r.Target) -> r.Kernel:
    source, facts = kernel.source, kernel.facts
    return r.Kernel(
        name=kernel.name,
        source=kernel.text,
        irs=facts.irs,
        grid=list(kernel.grid),
        config=kernel.config.as_dict(),
        registers=facts.registers,
        spills=facts.spills,
        shared_bytes=facts.shared_bytes,
        estimated_bytes=source.bytes,
        estimated_flops=source.flops,
        estimated_us=target.shortest_us(source.bytes, source.flops),
        launches=launches,
        warps=facts.warps,
        stages=facts.stages,
        occupancy=facts.occupancy,
        ir_lines=facts.ir_lines,
        line_nodes=lines,
        trials=kernel.trials,
        error=kernel.error,
        sizes={name: str(torch_expr(value)) for name, value in source.sizes},
    )


# --- nodes ---------------------------------------------------------------------------------------------------------


def describe_node(node: torch.fx.Node, region_kind: str) -> r.Node:
    """One FX node."""
    kinds = {"placeholder": r.NodeKind.PLACEHOLDER, "get_attr": r.NodeKind.GET_ATTR, "output": r.NodeKind.OUTPUT}
    kind = kinds.get(node.op, r.NodeKind.CALL)
    outputs = [tensor_info(t) for t in _tensors(node)]
    inputs = list(dict.fromkeys(n.name for n in node.all_input_nodes))
    read = sum(tensor_info(t).bytes for n in node.all_input_nodes for t in _tensors(n))
    moved = read + sum(o.bytes for o in outputs) if node.op == "call_function" else 0
    return r.Node(
        node.name,
        kind,
        _op_name(node, region_kind),
        inputs,
        _arguments(node),
        outputs,
        with_forward(provenance_of(node), node) if kind is r.NodeKind.CALL else provenance_of(node),
        flops_of(node),
        moved,
        _origin(node),
    )


def _origin(node: torch.fx.Node) -> str:
    original = node.meta.get("original_aten")
    is_other = isinstance(original, torch._ops.OpOverload) and original is not node.target
    return str(original) if is_other and node.op == "call_function" else ""


def _tensors(node: torch.fx.Node) -> list[torch.Tensor]:
    return [t for t in pytree.tree_leaves(node.meta.get("val")) if isinstance(t, torch.Tensor)]


def tensor_info(tensor: torch.Tensor) -> r.TensorInfo:
    """Shape, dtype, strides, device and bytes; symbolic sizes as text, and then the bytes of the example's sizes."""
    shape = [s if isinstance(s, int) else str(s) for s in tensor.shape]
    stride = [s if isinstance(s, int) else str(s) for s in tensor.stride()] if tensor.layout is torch.strided else []
    size = example(tensor.numel()) * tensor.dtype.itemsize
    return r.TensorInfo(list(shape), str(tensor.dtype).removeprefix("torch."), list(stride), str(tensor.device), size)


def _op_name(node: torch.fx.Node, region_kind: str) -> str:
    if node.op == "placeholder":
        if node.name.startswith("tangents"):
            return "tangent"
        if region_kind == "backward" and not node.name.startswith("primals"):
            return "saved"
        return "parameter" if is_static(node) else "input"
    if node.op in ("get_attr", "output"):
        return node.op
    if node.target is operator.getitem:
        return "getitem"
    if isinstance(node.target, torch._ops.OpOverload):
        return str(node.target)
    return getattr(node.target, "__name__", str(node.target))


def _arguments(node: torch.fx.Node) -> str:
    if node.op == "placeholder":
        return str(node.target)
    parts = [str(a) for a in node.args] + [f"{k}={v}" for k, v in node.kwargs.items()]
    return ", ".join(parts)[:400]


def flops_of(node: torch.fx.Node) -> int:
    """An estimate: torch's own flop formulas where there is one, else an operation an output element."""
    if node.op != "call_function" or not isinstance(node.target, torch._ops.OpOverload):
        return 0
    from torch.utils.flop_counter import flop_registry

    formula = flop_registry.get(node.target.overloadpacket)
    values = pytree.tree_map_only(torch.fx.Node, lambda n: n.meta.get("val"), (node.args, node.kwargs))
    if formula is not None:
        try:
            return example(formula(*values[0], **values[1], out_val=node.meta.get("val")))
        except Exception:  # a formula that does not know this variant of the op: fall through to the plain count
            pass
    from compiler.lowering.graph import is_view

    if is_view(node):
        return 0
    sizes = [t.numel() for t in _tensors(node)] + [t.numel() for n in node.all_input_nodes for t in _tensors(n)]
    return max((example(s) for s in sizes), default=0)


# --- groups and calls ----------------------------------------------------------------------------------------------


def _buffer_nodes(region: CompiledRegion) -> dict[str, str]:
    """Buffer -> the FX node whose value it holds."""
    found = {b.name: b.fx_node for b in region.program.inputs if b is not None}
    found.update({name: buffer.fx_node for name, buffer in region.plan.buffers.items()})
    found.update({name: name for name in region.program.constants})
    return found


def _group(
    launch: Launch, order: int, kernel: CompiledKernel, counted: dict[str, int], node_of: dict[str, str]
) -> r.Group:
    group = launch.group
    nodes = list(launch.origins)
    kinds = {"reduction": r.GroupKind.REDUCTION, "pointwise": r.GroupKind.POINTWISE}
    if launch.parts > 1:
        rule = "horizontal"
    elif len(group.loops) == 1:
        rule = "inlined" if len(nodes) > 1 else "single"
    else:
        rule = "vertical" if "vertical" in group.rules else "horizontal"
    return r.Group(
        name=launch.name,
        kind=kinds[kind_of(launch.kernel)],
        nodes=nodes,
        kernel=kernel.name,
        reason=_reason(launch, rule),
        rule=rule,
        score_bytes=group.saved_bytes,
        inputs=list(dict.fromkeys(node_of.get(n, n) for n in launch.reads)),
        outputs=list(dict.fromkeys(b.fx_node for b in launch.stored)),
        recomputed=[n for n in nodes if counted[n] > 1],
        grid=list(kernel.grid),
        estimated_bytes=launch.kernel.bytes,
        estimated_flops=launch.kernel.flops,
        order=order,
    )


def _count(size: Size) -> str:
    return f"{size:,}" if isinstance(size, int) else str(torch_expr(size))


def _reason(launch: Launch, rule: str) -> str:
    reason, most = _why_together(launch, rule), launch.kernel.most
    if most:
        reason += f" Rows of up to {most:,} elements stay in registers, a second kernel passes over longer ones."
    return reason


def _why_together(launch: Launch, rule: str) -> str:
    group = launch.group
    if launch.parts > 1:
        return f"The same code for {launch.parts} unrelated tensors: one launch in place of {launch.parts}."
    space = _count(group.xnumel) + (f" × {_count(group.rnumel)}" if group.rvars else "")
    if rule == "single":
        return f"One op over {space} points; no neighbour shares data that fusing would save."
    if rule == "inlined":
        return f"A chain of element-wise ops over {space} points: each value stays in a register until the last one."
    saved = size_text(group.saved_bytes)
    how = "read the producer's value at the point where it is made" if rule == "vertical" else "read the same data"
    return (
        f"{len(group.loops)} loops over {space} points {how}; one kernel saves {saved} of traffic (estimated)."
    )


def _extern(step: Extern, order: int, by_name: dict[str, r.Node], target: r.Target) -> r.ExternCall:
    node = by_name[step.fx_node]
    return r.ExternCall(
        name=step.name,
        nodes=list(step.origins),
        op=node.op,
        reason=step.reason,
        detail=step.detail,
        runs_as=_runs_as(node) if target.backend != "cpu" else "",
        estimated_bytes=node.estimated_bytes,
        estimated_flops=node.estimated_flops,
        order=order,
    )


def _runs_as(node: r.Node) -> str:
    """The op that a GPU gets where a capture on the CPU recorded the CPU's attention kernel."""
    if "scaled_dot_product_flash_attention_for_cpu" not in node.op or not node.outputs:
        return ""
    half = node.outputs[0].dtype in ("float16", "bfloat16")
    suffix = "_backward" if "backward" in node.op else ""
    return f"aten._scaled_dot_product_{'flash' if half else 'efficient'}_attention{suffix}"


def _memory(region: CompiledRegion) -> r.Memory:
    plan = region.plan
    last = max(len(region.steps) - 1, 0)
    buffers = [
        r.BufferPlan(
            name,
            buffer.fx_node,
            buffer.bytes,
            plan.born[name],
            min(plan.last_use[name], last),
            plan.reuses.get(name, ""),
        )
        for name, buffer in plan.buffers.items()
    ]
    saved = [
        r.BufferPlan(name, buffer.fx_node, buffer.bytes, 0, min(plan.last_use.get(name, last), last), saved=True)
        for name, buffer in plan.given_up.items()
    ]
    ordered = region.ordered
    if ordered is None:  # nothing was compiled
        return r.Memory()
    return r.Memory(
        [*saved, *buffers], plan.peak_bytes, plan.total_bytes, ordered.policy, ordered.captured_peak, ordered.moved
    )


def _cuda_graph(region: CompiledRegion, library: KernelLibrary, target: r.Target) -> r.CudaGraph:
    """The static answer: which calls would refuse capture, and in how many parts the rest would be captured."""
    if target.backend == "cpu":
        return r.CudaGraph(capturable=False, skip_reasons=[r.SkipReason("cpu_op", "The region runs on the CPU.")])
    capture = library.options.graph_collectives
    refused = refused_steps(region.steps, region.graph, capture_collectives=capture)
    pieces = split(region.program, region.steps, refused)
    return r.CudaGraph(
        capturable=not refused,
        partitions=sum(piece.captured for piece in pieces) if refused else 0,
        skip_reasons=list(refused.values()),
    )
