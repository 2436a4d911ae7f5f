"""Times a compiled model mode by mode on this machine's GPU and checks that every mode computes what eager does."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from app.worker.paths import portable_graph
from compiler.joining import joined_by_name, joined_by_nodes, note_kernel_times
from compiler.report import CudaGraph, ExternReason, Measurement, Report, Trace

if TYPE_CHECKING:
    from compiler.pipeline import Compilation
    from compiler.runtime.modes import Step


def prepare_step(compilation: Compilation, mode: str) -> Step:
    """A step of the compiled model in ``mode``, compiled and captured where the mode says so.

    Raises:
        CaptureRefused: what another compiler made of the model is not one CUDA Graph.
    """
    from compiler.runtime.modes import prepare

    report = compilation.report
    return prepare(
        mode,
        compilation.model,
        compilation.inputs,
        training=report.training,
        compiled=compilation.compiled,
        whole=is_whole(report),
        by_region=report.compiler == "fusescope",
        observer=compilation.observer,
        options=compilation.options,
        dynamic=compilation.dynamic,
    )


def is_whole(report: Report) -> bool:
    """Whether one region holds the whole model, with no Python between regions."""
    captured = sum(region.kind != "backward" for region in report.regions)
    return captured == 1 and not report.graph_breaks


def measure_modes(
    compilation: Compilation, modes: Sequence[str], iterations: int, steps: Mapping[str, Step] | None = None
) -> list[Measurement]:
    """Record ``iterations`` of each mode, compare its outputs with eager's, and put graph facts into the report.

    A model that draws random numbers is timed but not compared: each mode draws its own. A mode that cannot be had is
    left out, and a note says why. ``steps``: those of modes that were prepared before.
    """
    from compiler.runtime.capture import CaptureRefused
    from compiler.runtime.compare import compare_outputs
    from compiler.runtime.timing import measure

    reference = None if _is_random(compilation.report) else _reference(compilation)
    records = []
    for mode in modes:
        try:
            step = (steps or {}).get(mode) or prepare_step(compilation, mode)
        except CaptureRefused as refused:
            compilation.report.notes.append(f"Mode {mode} was not measured: {refused.reason.detail.rstrip('.')}.")
            continue
        record = measure(step, mode, iterations=iterations)
        if reference is not None:
            eager, exact = reference
            comparison = compare_outputs(eager, step.outputs(), exact)
            record.equal_to_eager, record.max_error = comparison.equal, comparison.error
        facts, traced = observe_step(compilation, step, mode, compilation.report.traces)
        if mode == "graph" and facts is not None:
            note_graph(compilation.report, facts)
        compilation.report.traces.append(traced)
        records.append(record)
    note_kernel_times(compilation.report)
    return records


def observe_step(
    compilation: Compilation, step: Step, mode: str, earlier: Sequence[Trace] = ()
) -> tuple[CudaGraph | None, Trace]:
    """What capture made of the iteration, and a traced iteration; each tells of the other's events.

    A pass of its own, after everything was timed. The graph's facts are None where ``mode`` captures nothing. What
    nothing told apart while it ran is joined to the report's units, with the help of ``earlier`` traces of it.
    """
    from compiler.runtime.trace import trace, with_trace

    report, facts = compilation.report, step.cuda_graph
    found = trace(step, mode, observer=compilation.observer)
    if facts is not None:
        found = joined_by_nodes(found, facts.topology)
    found = joined_by_name(found, report, earlier)
    return (with_trace(facts, found) if facts is not None else None), found


def note_graph(report: Report, facts: CudaGraph) -> None:
    """Keep what capturing made of the whole iteration: its figures with the first region, that it was with each."""
    for index, region in enumerate(report.regions):
        if index == 0:
            region.cuda_graph = portable_graph(facts)
        else:
            region.cuda_graph = msgspec.structs.replace(region.cuda_graph, captured=facts.captured)


def _is_random(report: Report) -> bool:
    return any(call.reason is ExternReason.RANDOM for region in report.regions for call in region.extern_calls)


def _reference(compilation: Compilation) -> tuple[list[Any], list[Any]]:
    """Outputs of one eager iteration, as the model is and in float64."""
    from compiler.runtime.compare import in_float64
    from compiler.runtime.modes import prepare

    training = compilation.report.training
    exact_model, exact_inputs = in_float64(compilation.model, compilation.inputs)
    runs = []
    for model, inputs in ((compilation.model, compilation.inputs), (exact_model, exact_inputs)):
        step = prepare("eager", model, inputs, training=training)
        step()
        runs.append([value.clone() if hasattr(value, "clone") else value for value in step.outputs()])
    return runs[0], runs[1]
