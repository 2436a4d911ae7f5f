"""What a GPU would add to a synthetic report: measurements, traces, the captured graph, input routes, guards.

Figures are computed from the report's own estimates with seeded noise, for tests and benchmarks of what shows them;
nothing here was measured, and the GPU is called "Test GPU".
"""

from __future__ import annotations

import random

from compiler.report import (
    CudaGraph,
    ExternCall,
    GraphBreak,
    GraphNode,
    GraphNodeKind,
    Group,
    Guard,
    InputRoute,
    Measurement,
    Percentiles,
    Recompile,
    Region,
    Report,
    SkipReason,
    SourceLine,
    Trace,
    TraceEvent,
)
from tests.fake_reports import transformer_report

GPU = "Test GPU"
_LAUNCH_US = 190.0  # CPU time of one launch, long enough that the GPU waits for it
_LATENCY_US = 4.0  # from a launch to its kernel
# CPU and GPU medians of each mode, as shares of the kernels' time
_MODES = {
    "eager": (2.6, 1.5), "compiled": (1.5, 1.08), "graph": (0.02, 1.0), "inductor": (1.3, 1.06),
    "inductor-graph": (0.06, 1.01),
}  # fmt: skip


def lab_report(nodes: int = 300) -> Report:
    """A report with everything that a run on a GPU adds."""
    report = transformer_report(nodes)
    region = report.regions[0]
    units = schedule(region)
    times = {unit.name: unit_us(unit, index) for index, unit in enumerate(units)}
    for kernel in report.kernels:
        kernel.measured_us = next((times[g.name] for g in region.groups if g.kernel == kernel.name), None)
    total = sum(times.values())
    report.measurements = [
        _measurement(mode, cpu * total, gpu * total, seed) for seed, (mode, (cpu, gpu)) in enumerate(_MODES.items())
    ]
    report.traces = [_compiled_trace(region, units, times), _graph_trace(region, units, times)]
    region.cuda_graph = captured(region, units, times)
    report.guards, report.recompiles, report.graph_breaks = _dynamo()
    return report


def schedule(region: Region) -> list[Group | ExternCall]:
    """Groups and extern calls in launch order."""
    return sorted([*region.groups, *region.extern_calls], key=lambda unit: unit.order)


def unit_us(unit: Group | ExternCall, seed: int) -> float:
    """A time near what bandwidth or arithmetic would allow."""
    bound = max(unit.estimated_bytes / 3.3e6, unit.estimated_flops / 6.0e8)
    return round(max(bound * random.Random(seed).uniform(1.1, 2.4), 1.8), 2)


def captured(region: Region, units: list[Group | ExternCall], times: dict[str, float]) -> CudaGraph:
    """A captured graph: a copy in, a fill, the kernels with a forked branch, events, a copy out."""
    nodes = [
        GraphNode(0, GraphNodeKind.MEMCPY, "copy host to device", [], bytes=65536, measured_us=2.1, critical=True),
        GraphNode(1, GraphNodeKind.MEMSET, "fill with zeros", [0], bytes=4096, measured_us=1.2, critical=True),
    ]
    last = [1]
    for unit in units:
        forks = isinstance(unit, Group) and len(nodes) % 7 == 3
        node = _kernel_node(len(nodes), region, unit, times[unit.name], [nodes[-1].id] if forks else last)
        nodes.append(node)
        if forks:
            nodes.append(GraphNode(len(nodes), GraphNodeKind.EVENT_RECORD, "record event", [node.id]))
            nodes.append(
                GraphNode(len(nodes), GraphNodeKind.KERNEL, "void at::native::fill_kernel<float>(float*, float)",
                          list(node.dependencies), [64, 1, 1], [256, 1, 1], region=region.name, measured_us=1.9,
                          exact=False)
            )  # fmt: skip
            last = [nodes[-2].id, nodes[-1].id]
        else:
            last = [node.id]
    nodes.append(GraphNode(len(nodes), GraphNodeKind.MEMCPY, "copy device to device", last, bytes=1 << 20,
                           measured_us=3.4, critical=True))  # fmt: skip
    return CudaGraph(
        captured=True,
        partitions=2,
        skip_reasons=[
            SkipReason("host_sync", "item() moves a value to the CPU, so the graph is split around it.",
                       region.extern_calls[2].nodes[0], SourceLine("model.py", 3, "forward", "x = x + self.attn(x)")),
        ],
        warmup_ms=181.0, capture_ms=8.11, instantiate_ms=0.77, upload_ms=0.21, first_replay_ms=2.44,
        pool_bytes=50_300_000, nodes=len(nodes), captures=2, copied_bytes=65536,
        topology=nodes,
        routes=[
            InputRoute("input_ids", "copied", 65536, 0, 3.1, "It moved; its reader is a library kernel."),
            InputRoute("attn_mask", "patched", 2 << 20, 4, 1.7, "Four generated kernels read it."),
            InputRoute("rotary_cos", "same_address", 131072, 0, 0.1),
            InputRoute("wte_weight", "static", 77_194_752),
        ],
        covered_kernels=0.986,
        covered_time=0.994,
    )  # fmt: skip


def _kernel_node(
    number: int, region: Region, unit: Group | ExternCall, us: float, dependencies: list[int]
) -> GraphNode:
    is_group = isinstance(unit, Group)
    name = unit.kernel if isinstance(unit, Group) else "sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize128x128x64"
    return GraphNode(
        number, GraphNodeKind.KERNEL, name, list(dependencies), [1024 if is_group else 132, 1, 1], [128, 1, 1],
        shared_bytes=0 if is_group else 164_864, region=region.name, unit=unit.name, exact=is_group, measured_us=us,
        critical=True,
    )  # fmt: skip


def _compiled_trace(region: Region, units: list[Group | ExternCall], times: dict[str, float]) -> Trace:
    events: list[TraceEvent] = []
    noise = random.Random(7)
    cpu, gpu = 12.0, 0.0
    for unit in units:
        took = _LAUNCH_US * noise.uniform(0.8, 1.6)
        name = f"{region.name}/{unit.name}"
        events.append(TraceEvent("cuLaunchKernel", round(cpu, 2), round(took * 0.6, 2), "cpu", unit=name))
        start = max(gpu, cpu + took * 0.6 + _LATENCY_US)
        kernel = unit.kernel if isinstance(unit, Group) else "sm90_xmma_gemm_bf16"
        events.append(
            TraceEvent(kernel, round(start, 2), times[unit.name], "stream 7", len(events) - 1, name)
        )
        gpu = start + times[unit.name] + 0.9
        cpu += took
    return Trace("compiled", GPU, events, round(max(cpu, gpu), 2))


def _graph_trace(region: Region, units: list[Group | ExternCall], times: dict[str, float]) -> Trace:
    events = [TraceEvent("cuGraphLaunch", 1.0, 14.2, "cpu")]
    at = 19.0
    for number, unit in enumerate(units):
        kernel = unit.kernel if isinstance(unit, Group) else "sm90_xmma_gemm_bf16"
        lane = "stream 13" if number % 11 == 5 else "stream 7"
        events.append(
            TraceEvent(kernel, round(at, 2), times[unit.name], lane, 0, f"{region.name}/{unit.name}")
        )
        at += times[unit.name] + 0.55
    return Trace("graph", GPU, events, round(at, 2))


def _measurement(mode: str, cpu: float, gpu: float, seed: int) -> Measurement:
    noise = random.Random(seed)

    def series(level: float, count: int) -> list[float]:
        return [
            round(level * noise.gauss(1.0, 0.02) + (level * 0.7 if noise.random() < 0.006 else 0.0), 2)
            for _ in range(count)
        ]

    cpu_us, gpu_us = series(cpu, 1200), series(gpu, 1200)

    def at(values: list[float]) -> Percentiles:
        ordered = sorted(values)
        return Percentiles(*(ordered[int(share * (len(ordered) - 1))] for share in (0.5, 0.9, 0.99)))

    return Measurement(
        mode, GPU, 1200, at(cpu_us), at(gpu_us), cpu_samples=cpu_us, gpu_samples=gpu_us, warmup=10,
        warmup_cpu_samples=series(cpu * 2.2, 10), warmup_gpu_samples=series(gpu * 1.4, 10),
    )  # fmt: skip


def _dynamo() -> tuple[list[Guard], list[Recompile], list[GraphBreak]]:
    line = SourceLine("model.py", 2, "forward", "def forward(self, x, cos, sin, mask):")
    guards = [
        Guard("check_tensor(L['x'], Tensor, bfloat16, [8, 1024, 768])", "TENSOR_MATCH", "L['x']", line),
        Guard("___check_obj_id(L['self'].attn, 9401)", "ID_MATCH", "L['self'].attn", line),
        Guard("not ___dict_contains('dropout', L['self'].__dict__)", "DICT_CONTAINS", "L['self']", line),
    ]
    recompiles = [Recompile("L['x'].size()[0] == 8", "forward", line)]
    where = SourceLine("model.py", 4, "forward", "print(x.sum())")
    breaks = [GraphBreak("print() is called on a tensor.", where, "call print")]
    return guards, recompiles, breaks
