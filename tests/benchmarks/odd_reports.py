"""Reports at the ends of what the window shows: one node, nothing compiled, failures, long names, many nodes."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from compiler.report import CudaGraph, GraphBreak, Region, Report, SkipReason, SourceLine
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


ODD: dict[str, Callable[[], Report]] = {
    "one-node": one_node, "no-region": no_region, "failing": failing, "long-names": long_names, "large": large,
}  # fmt: skip
