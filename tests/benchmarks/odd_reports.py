"""Reports at the ends of what the window shows: one node, nothing compiled, failures, long names, many nodes."""

from __future__ import annotations

import random
from collections.abc import Callable

import msgspec

from compiler.report import CudaGraph, GraphBreak, Memory, Region, Report, SkipReason, SourceLine
from tests.fake_reports import transformer_report
from tests.fake_runs import lab_report

_LONG = "a_function_whose_author_wrote_down_all_that_it_does_and_then_some_more_of_it"
_FOLDER = "/home/someone/projects/a-rather-long-folder-name/experiments/2026-11"


def one_node() -> Report:
    """A model of one op, compiled for a named GPU and never run."""
    report = transformer_report(60)
    region = report.regions[0]
    group = min(region.groups, key=lambda group: len(group.nodes))
    name = group.nodes[-1]
    node = next(node for node in region.nodes if node.name == name)
    node.inputs = []
    group.nodes, group.inputs, group.outputs, group.order = [name], [], [name], 0
    report.regions = [Region(region.name, region.kind, [node], groups=[group], extern_calls=[], refusals=[])]
    report.kernels = [kernel for kernel in report.kernels if kernel.name == group.kernel]
    return report


def no_region() -> Report:
    """Dynamo compiled nothing."""
    report = transformer_report(60)
    report.regions, report.kernels = [], []
    return report


def failing() -> Report:
    """Capture refused, a kernel that does not compile, graph breaks."""
    report = lab_report(160)
    place = SourceLine("model.py", 41, "forward", "scale = x.abs().max().item()")
    region = report.regions[0]
    detail = "It moves a value to the CPU, which waits for the GPU"
    refused = SkipReason("host_sync", detail, region.nodes[9].name, place)
    region.cuda_graph = CudaGraph(capturable=False, skip_reasons=[refused])
    kernel = report.kernels[0]
    kernel.error = "ptxas: the kernel needs 262,144 B of shared memory, and the GPU has 232,448 B"
    kernel.registers = kernel.spills = kernel.shared_bytes = None
    kernel.irs = {}
    report.graph_breaks = [GraphBreak("Tensor.item() of a value that is known only at run time", place)] * 3
    report.measurements, report.traces = [], []
    report.notes = ["The run ended before anything was measured."]
    return report


def long_names() -> Report:
    """Names, paths and sources that fit nowhere."""
    report = lab_report(160)
    report.source = f"{_FOLDER}/{_LONG}.py:{_LONG}"
    report.target = msgspec.structs.replace(report.target, title="NVIDIA GeForce RTX 4090 Laptop GPU with Max-Q Design")
    for region in report.regions:
        for group in region.groups:
            group.reason = f"{group.reason} " * 4
            group.kernel = f"{group.kernel}_{_LONG}_{_LONG}"
    for kernel in report.kernels:
        kernel.name = f"{kernel.name}_{_LONG}_{_LONG}"
    return report


def large() -> Report:
    """As many nodes as a large model has."""
    return transformer_report(10_000)


def bare() -> Report:
    """Compiled, and nothing more is known: not run, not captured, no refusals, stages or intermediates."""
    report = transformer_report(60)
    report.stages = []
    for region in report.regions:
        region.refusals, region.memory = [], Memory()
    return report


def extreme() -> Report:
    """Times from nanoseconds to hours, bytes to terabytes, and modes whose noise is larger than what they differ by."""
    report = lab_report(160)
    noise = random.Random(3)
    for number, one in enumerate(report.measurements):
        one.cpu_samples = [us * 10.0 ** (2 * number - 2) * noise.lognormvariate(0, 0.8) for us in one.cpu_samples]
        one.gpu_samples = [us * noise.lognormvariate(0, 0.8) for us in one.gpu_samples]
    region = report.regions[0]
    for number, buffer in enumerate(region.memory.buffers):
        buffer.bytes *= 10 ** (number % 6)
    for number, node in enumerate(region.cuda_graph.topology):
        node.measured_us = (node.measured_us or 1.0) * 10.0 ** (number % 7 - 4)
    for number, stage in enumerate(report.stages):
        stage.ms *= 10.0 ** (2 * number - 4)
    return report


ODD: dict[str, Callable[[], Report]] = {
    "one-node": one_node, "no-region": no_region, "failing": failing, "long-names": long_names, "large": large,
    "bare": bare, "extreme": extreme,
}  # fmt: skip
_RUN = ("run", "run-overlaid", "run-side", "run-histogram", "run-compare")
_GRAPH = ("cuda-graph", "topology", "inputs", "capture-check")
_OTHERS = ("timeline", "memory", "roofline", "refusals", "stages", "compare", "breaks", "guards", "recompiles")
ODD_VIEWS: dict[str, tuple[str, ...]] = {
    "one-node": ("memory", "roofline", "capture-check"), "failing": (*_GRAPH, "breaks"),
    "long-names": ("topology", "timeline", "roofline", "refusals", "compare"),
    "bare": ("run", *_GRAPH, *_OTHERS, "messages"), "extreme": (*_RUN, "topology", *_OTHERS[:5]),
}  # fmt: skip
