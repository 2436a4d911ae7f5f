"""Measured time finds its way to units by names, ops and order, where nothing told them apart while they ran."""

from __future__ import annotations

import json
from pathlib import Path

import msgspec
import pytest

from app.cli import run
from app.meter import meter
from app.overlays import overlay
from app.roofline import points
from app.session import open_session, save_session
from compiler.joining import join, join_measured, joined_by_name, note_kernel_times, own_trace
from compiler.library_calls import Ran, align, base_name
from compiler.report import ExternCall, ExternReason, Group, GroupKind, Region, Report, Trace, TraceEvent
from tests.fake_reports import H100

HERE = Path(__file__).parent
GPT2 = HERE.parent / "resources" / "samples" / "gpt2-h200.fscope"
DROPOUT = HERE / "fixtures" / "recorded" / "inductor_dropout.fscope"
DROPOUT_OPS = HERE / "fixtures" / "recorded" / "inductor_dropout_ops.fscope"  # the profiler told what op launched
LIBRARY = ExternReason.LIBRARY_IS_FASTER
GEMM, GEMM_SUM = "sm80_xmma_gemm_f32", "void cublasLt::splitKreduce_kernel<32>"
ATEN = "void at::native::reduce_kernel<4>"


def region(name: str, *units: str) -> Region:
    """Units in order: "triton_x" is a group's kernel, anything else an extern call's op."""
    found = Region(name, name.partition("_")[0], [])
    for order, unit in enumerate(units):
        if unit.startswith("triton"):
            found.groups.append(Group(f"group{order}", GroupKind.POINTWISE, [], unit, "", order=order))
        else:
            found.extern_calls.append(ExternCall(f"call{order}", [], f"aten.{unit}.default", LIBRARY, order=order))
    return found


def report(*regions: Region) -> Report:
    training = any(one.kind == "backward" for one in regions)
    return Report("inductor", "a test", H100, training=training, regions=list(regions))


def units(of: Report, *ran: str | Ran) -> list[str]:
    """What each joins to; "?" after what is inferred."""
    found = join(of, [one if isinstance(one, Ran) else Ran(one) for one in ran])
    return ["" if unit is None else f"{unit.unit}{'' if unit.exact else '?'}" for unit in found]


def bare(trace: Trace) -> Trace:
    """The trace as if nothing had been known of its events."""
    events = [msgspec.structs.replace(event, unit="", exact=True) for event in trace.events]
    return msgspec.structs.replace(trace, events=events)


# --- recorded on an H200 -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", ["compiled", "graph"])
def test_what_was_known_is_found_again(mode: str) -> None:
    """Our own report of GPT-2: the observed units taken away, the join gives every event the same one back."""
    recorded = open_session(GPT2).report
    observed = next(trace for trace in recorded.traces if trace.mode == mode)
    found = joined_by_name(bare(observed), recorded)
    work = [event for event in observed.events if event.lane != "cpu"]
    assert sum(bool(event.unit) for event in work) == len(work) == 134
    assert [event.unit for event in found.events] == [event.unit for event in observed.events]


def test_inductors_time_reaches_its_units() -> None:
    session = open_session(DROPOUT)
    recorded = session.report
    trace = own_trace(recorded)
    assert trace is not None
    assert trace.mode == "compiled"
    work = [event for event in trace.events if event.lane != "cpu"]
    left = [event for event in work if not event.unit]
    assert [event.name.split("<")[0] for event in left] == [
        "void at::native::reduce_kernel",  # the loss and its gradient, which are the iteration's and no region's
        "void at::native::vectorized_elementwise_kernel",
        "void at::native::elementwise_kernel",
    ]
    order = [f"{one.name}/{unit}" for one in recorded.regions for unit in _in_order(one)]
    assert list(dict.fromkeys(event.unit for event in work if event.unit)) == order
    assert {event.exact for event in work if event.name.startswith("triton_")} == {True}
    assert {event.exact for event in work if event.unit and not event.name.startswith("triton_")} == {False}
    for launch in (event for event in trace.events if event.lane == "cpu"):
        assert launch.unit in {"", *order}
    assert session.meter is not None
    assert session.meter.time == meter(recorded).time
    assert session.meter.time.mapped == pytest.approx(1 - sum(e.duration_us for e in left) / sum(e.us for e in work))


def test_ops_that_the_profiler_told_join_exactly_where_order_alone_would_guess() -> None:
    recorded = open_session(DROPOUT_OPS).report
    trace = own_trace(recorded)
    assert trace is not None
    found = joined_by_name(bare(trace), recorded)
    assert [event.unit for event in found.events] == [event.unit for event in trace.events]
    assert {event.op for event in trace.events if event.lane == "cpu" and event.unit.endswith("call0")} == {
        "aten::addmm", "aten::mm"
    }  # fmt: skip
    exact = {event.unit for event in found.events if event.exact and event.unit}
    assert {"forward/call0", "forward/call1"} <= exact
    nothing = [msgspec.structs.replace(event, op="", call=-1) for event in bare(trace).events]
    guessed = joined_by_name(msgspec.structs.replace(trace, events=nothing), recorded)
    assert "forward/call0" not in {event.unit for event in guessed.events if event.exact}


def _in_order(of: Region) -> list[str]:
    return [unit.name for unit in sorted([*of.groups, *of.extern_calls], key=lambda unit: unit.order)]


def test_kernels_graph_nodes_and_colours_have_the_time(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    recorded = open_session(DROPOUT).report
    names = {kernel.name: kernel.measured_us for kernel in recorded.kernels}
    trace = own_trace(recorded)
    assert trace is not None
    assert names == {event.name: event.us for event in trace.events if event.name in names}
    nodes = recorded.regions[0].cuda_graph.topology
    issuers = {f"{node.region}/{node.unit}" for node in nodes if node.unit}
    assert issuers == {event.unit for event in trace.events} - {""}
    assert sum(not node.unit for node in nodes) == 3
    for one in recorded.regions:
        assert all(point.time.measured for point in points(recorded, one))
        found = overlay(recorded, one, "time")
        assert found is not None
        assert found.is_measured
    save_session(tmp_path / "x.fscope", recorded)
    assert run(["show", str(tmp_path / "x.fscope"), "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert {kernel["name"]: kernel["measured_us"] for kernel in told["kernels"]} == names
    for one in told["regions"]:
        assert all(group["time"]["measured"] and group["time"]["exact"] for group in one["groups"])
        assert all(call["time"]["measured"] and not call["time"]["exact"] for call in one["extern_calls"])


def test_both_compilers_kernels_have_times() -> None:
    recorded = open_session(GPT2).report
    trace = own_trace(recorded)
    assert trace is not None
    for kernel in recorded.kernels:
        launches = sorted(event.us for event in trace.events if event.name == kernel.name)
        assert len(launches) == kernel.launches
        assert kernel.measured_us is not None
        assert launches[0] <= kernel.measured_us <= launches[-1]


def test_a_report_that_was_never_traced_keeps_its_times() -> None:
    recorded = open_session(GPT2).report
    recorded.traces = [trace for trace in recorded.traces if trace.mode == "eager"]
    recorded.kernels[0].measured_us = 7.0
    note_kernel_times(recorded)
    assert recorded.kernels[0].measured_us == 7.0


# --- generated kernels by name -------------------------------------------------------------------------------------


def test_a_name_is_exact_where_one_unit_launches_it_or_everything_ran_in_order() -> None:
    of = report(region("inference", "triton_a_0", "triton_b_1", "triton_b_1"))
    groups = ["inference/group0", "inference/group1", "inference/group2"]
    assert units(of, "triton_a_0", "triton_b_1", "triton_b_1") == groups
    assert units(of, "triton_b_1", "triton_a_0", "triton_b_1") == [f"{groups[1]}?", groups[0], f"{groups[2]}?"]
    assert units(of, "triton_a_0", "triton_b_1", "triton_c_2") == ["inference/group0", "", ""]


def test_other_code_joins_nothing() -> None:
    of = report(region("inference", "mm", "triton_a_0"))
    assert units(of, GEMM, "pointwise_add_0", "triton_poi_other") == ["", "", ""]


def test_a_region_that_runs_twice() -> None:
    of = report(region("inference", "triton_a_0", "mm", "triton_a_0"))
    once = ["inference/group0?", "inference/call1?", "inference/group2?"]
    assert units(of, *["triton_a_0", GEMM, "triton_a_0"] * 2) == once * 2


def test_backwards_run_from_the_last_to_the_first() -> None:
    forward = [region("forward", "triton_f_0"), region("forward_1", "triton_f_0")]
    of = report(*forward, region("backward", "triton_b_0"), region("backward_1", "triton_b_0"))
    found = units(of, "triton_f_0", "triton_f_0", "triton_b_0", "triton_b_0")
    assert found == ["forward/group0?", "forward_1/group0?", "backward_1/group0?", "backward/group0?"]


def test_a_kernel_that_the_report_renamed_has_its_own_name_when_it_runs() -> None:
    of = report(region("forward", "triton_a_0"), region("backward", "triton_a_0_backward"))
    assert units(of, "triton_a_0", "triton_a_0") == ["forward/group0?", "backward/group0?"]


# --- library calls -------------------------------------------------------------------------------------------------


def test_a_call_may_run_several_kernels() -> None:
    of = report(region("inference", "triton_a_0", "mm", "mm", "triton_b_1"))
    found = units(of, "triton_a_0", GEMM, GEMM_SUM, GEMM, "triton_b_1")
    assert found[1:4] == ["inference/call1?", "inference/call1?", "inference/call2?"]


def test_the_op_decides_where_it_is_known() -> None:
    """Two kernels of one call, then one of the next; an op that no call is of stays out."""
    of = report(region("inference", "triton_a_0", "mm", "sort", "mm", "triton_b_1"))
    ran = [Ran("g", "aten::mm", 1), Ran("x", "aten::mm", 1), Ran("s", "aten::sort", 2), Ran("o", "aten::copy_", 3),
           Ran("g", "aten::mm", 4)]  # fmt: skip
    found = units(of, "triton_a_0", *ran, "triton_b_1")
    assert found[1:-1] == [*["inference/call1"] * 2, "inference/call2", "", "inference/call3"]
    found = units(of, *ran, "triton_b_1")
    assert found[:-1] == [*["inference/call1"] * 2, "inference/call2", "", "inference/call3"], "a kernel left out"
    found = units(of, "triton_a_0", *ran, Ran("g", "aten::mm", 5), "triton_b_1")
    assert found[1:6] == [*["inference/call1?"] * 2, "inference/call2", "", "inference/call3?"], "one mm too many"


def test_regions_with_the_same_ops_are_told_apart_by_kernels_of_their_own() -> None:
    first, second = Ran("g", "aten::mm", 1), Ran("g", "aten::mm", 2)
    of = report(region("forward", "triton_f_0", "mm"), region("backward", "mm", "triton_b_1"))
    assert units(of, "triton_f_0", first, second, "triton_b_1") == [
        "forward/group0", "forward/call1", "backward/call0", "backward/group1"
    ]  # fmt: skip
    of = report(region("forward", "triton_f_0", "mm"), region("forward_1", "mm"))
    assert units(of, "triton_f_0", first, second) == ["forward/group0", "forward/call1?", "forward_1/call0?"]


def test_a_call_that_is_several_ops() -> None:
    """Inductor writes the sum of two products as one call; the next product is not taken for a part of it."""
    of = report(region("inference", "triton_a_0", "mm", "mm", "triton_b_1"))
    of.regions[0].extern_calls[0].runs_as = "extern_kernels._mm_plus_mm"
    ran = [Ran(GEMM, "aten::mm", 1), Ran(GEMM, "aten::addmm", 2), Ran(GEMM, "aten::mm", 3)]
    found = units(of, "triton_a_0", *ran, "triton_b_1")
    assert found[1:-1] == ["inference/call1?", "inference/call1", "inference/call2?"]


def test_the_users_code_between_regions_stays_without_unit() -> None:
    of = report(region("forward", "triton_f_0", "mm"), region("backward", "mm", "triton_b_0"))
    found = units(of, "triton_f_0", GEMM, ATEN, ATEN, GEMM, "triton_b_0")
    assert found == ["forward/group0", "forward/call1?", "", "", "backward/call0?", "backward/group1"]


def test_one_region_without_the_users_code_leaves_nothing_open() -> None:
    of = report(region("inference", "cumsum", "sort"))
    assert units(of, ATEN, ATEN) == ["inference/call0?", "inference/call1?"]
    of = report(region("forward", "cumsum"), region("backward", "triton_b_0"))
    assert units(of, ATEN, ATEN, "triton_b_0") == ["", "", "backward/group0"]


@pytest.mark.parametrize(
    ("op", "kernels"),
    [
        ("_scaled_dot_product_flash_attention", ["void flash_fwd_kernel<256>"]),
        ("_scaled_dot_product_efficient_attention", ["fmha_cutlassF_f32_aligned_64x64_rf_sm80"]),
        ("convolution", ["void cudnn::ops::nchwToNhwcKernel", "sm80_xmma_fprop_implicit_gemm_f32", ATEN]),
        ("bmm", ["nvjet_hsh_64x8_64x16", "Memset (Device)", GEMM_SUM]),
        ("sort", ["void at::native::radixSortKVInPlace<2>"]),
    ],
)
def test_kernels_are_told_apart_by_their_names(op: str, kernels: list[str]) -> None:
    """Between a product before and one after, each call's kernels are its own."""
    calls = [frozenset({name}) for name in ("mm", op, "mm")]
    found = align([Ran(name) for name in (GEMM, *kernels, GEMM)], calls, inside=True)
    assert [found.get(place) for place in range(len(kernels) + 2)] == [0, *[1] * len(kernels), 2]


def test_names_of_ops() -> None:
    spellings = ("aten::mm", "aten.mm.default", "torch.ops.aten.mm.out", "extern_kernels.mm", "mm")
    assert {base_name(op) for op in spellings} == {"mm"}
    assert base_name("") == ""


# --- traces --------------------------------------------------------------------------------------------------------


def trace(mode: str, *names: str, launch: str = "cudaGraphLaunch") -> Trace:
    work = [TraceEvent(name, float(place), 2.0, "stream 7", 0) for place, name in enumerate(names)]
    return Trace(mode, "a GPU", [TraceEvent(launch, 0.0, 1.0, "cpu"), *work])


def test_a_replay_is_what_the_compiled_mode_knew() -> None:
    of = report(region("inference", "triton_a_0", "mm", "cumsum", "triton_b_1"))
    compiled = trace("compiled", "triton_a_0", "odd kernel", ATEN, "triton_b_1")
    for place, unit in enumerate(("inference/group0", "inference/call1", "inference/call2", "inference/group3"), 1):
        compiled.events[place].unit = unit
    graph = trace("graph", "triton_a_0", "odd kernel", ATEN, "triton_b_1")
    alone = joined_by_name(graph, of)
    assert [event.unit for event in alone.events[1:]][1] != "inference/call1"
    helped = joined_by_name(graph, of, [compiled])
    assert [event.unit for event in helped.events] == [event.unit for event in compiled.events]
    assert [event.exact for event in helped.events[1:]] == [True, False, False, True]


def test_what_is_launched_beside_a_graph_is_none_of_its_units() -> None:
    of = report(region("inference", "cumsum", "triton_a_0"))
    graph = trace("graph", ATEN, ATEN, "triton_a_0")
    graph.events.insert(1, TraceEvent("cudaLaunchKernel", 0.0, 1.0, "cpu"))
    graph.events[2].launch = 1
    found = [event.unit for event in joined_by_name(graph, of).events]
    assert found == ["", "", "", "inference/call0", "inference/group1"]


def test_only_the_reports_own_code_is_joined() -> None:
    """What its compiler made of the model another time is inferred; another compiler's code is none of it."""
    for compiler, expected in (
        ("inductor", {"eager": ("", True), "inductor-graph": ("inference/group0", False)}),
        ("fusescope", {"eager": ("", True), "inductor-graph": ("", True)}),
    ):
        of = report(region("inference", "triton_a_0"))
        of.compiler = compiler
        of.traces = [trace(mode, "triton_a_0") for mode in ("eager", "inductor-graph", "graph")]
        join_measured(of)
        found = {one.mode: (one.events[1].unit, one.events[1].exact) for one in of.traces}
        assert found == {**expected, "graph": ("inference/group0", True)}
        assert all(one.events[0].unit == "" for one in of.traces)
