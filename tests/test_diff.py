"""Two reports compared: node identity, how units correspond, kernels beside renaming, and what the command prints."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.cli import run
from app.diff import Change, Diff, Status, compare
from app.diff.kernel_code import code, plain, renamed, settings_of
from app.diff.nodes import match_nodes
from app.diff.records import Cost, share_text
from app.diff.units import units_of
from app.session import open_session, save_session
from compiler.report import CudaGraph, ExternCall, ExternReason, Node, Region, Report
from tests.fake_reports import backward_region, transformer_region, transformer_report
from views.compare.rows import _times


def copy_of(report: Report) -> Report:
    return msgspec.msgpack.decode(msgspec.msgpack.encode(report), type=Report)


@pytest.fixture
def report() -> Report:
    return transformer_report(160)


def statuses(found: Diff) -> Counter[Status]:
    return Counter(group.status for region in found.regions for group in region.groups)


def renumbered(region: Region) -> Region:
    """The region as another compiler would have it: other node and unit names, nothing else."""
    name = {node.name: f"n{i}" for i, node in enumerate(region.nodes)}
    nodes = [
        msgspec.structs.replace(
            node, name=name[node.name], inputs=[name[i] for i in node.inputs], args=node.args if not node.inputs else ""
        )
        for node in region.nodes
    ]
    groups = [
        msgspec.structs.replace(
            group, name=f"op{group.order}", nodes=[name[n] for n in group.nodes], recomputed=[], inputs=[], outputs=[]
        )
        for group in region.groups
    ]
    calls = [
        msgspec.structs.replace(call, name=f"op{call.order}", nodes=[name[n] for n in call.nodes])
        for call in region.extern_calls
    ]
    return msgspec.structs.replace(region, nodes=nodes, groups=groups, extern_calls=calls, refusals=[])


@settings(max_examples=8, deadline=None)
@given(st.integers(1, 400), st.booleans())
def test_a_report_and_itself_differ_in_nothing(nodes: int, training: bool) -> None:
    report = transformer_report(nodes, training=training)
    found = compare(report, copy_of(report))
    assert found.is_empty
    assert not found.header
    assert set(statuses(found)) == {Status.SAME}
    assert all(change.a == change.b for change in found.totals)


def test_every_unit_is_in_exactly_one_entry(report: Report) -> None:
    other = copy_of(report)
    other.regions[0].groups = other.regions[0].groups[3:]
    found = compare(report, other)
    for side, region in (("a", report.regions[0]), ("b", other.regions[0])):
        listed = [name for group in found.regions[0].groups for name in getattr(group, side)]
        assert sorted(listed) == sorted(unit.name for unit in (*region.groups, *region.extern_calls))
    assert statuses(found)[Status.REMOVED] == 3


# --- nodes ---------------------------------------------------------------------------------------------------------


def test_the_same_graph_under_other_names_is_matched_exactly() -> None:
    region = transformer_region(300)
    other = renumbered(region)
    matches = match_nodes(region, other)
    expected = {node.name: f"n{i}" for i, node in enumerate(region.nodes)}
    assert {match.a: match.b for match in matches} == expected
    assert all(match.exact for match in matches)


def test_what_one_graph_lacks_is_left_over_and_its_equals_are_inferred() -> None:
    region = transformer_region(300)
    other = renumbered(region)
    gone = next(node for node in region.nodes if node.op == "aten.erf.default")
    at = region.nodes.index(gone)
    other.nodes = [node for node in other.nodes if node.name != f"n{at}"]
    matches = {match.a: match for match in match_nodes(region, other)}
    assert gone.name not in matches
    assert all(match.exact for match in matches.values()), "module paths tell the layers apart"
    for node in region.nodes:
        node.provenance = msgspec.structs.replace(node.provenance, module_path="")
    matches = {match.a: match for match in match_nodes(region, other)}
    assert len(matches) == len(region.nodes) - 1
    assert not matches["mul"].exact


def test_line_numbers_that_an_edit_shifted_do_not_matter() -> None:
    region = transformer_region(100)
    other = renumbered(region)
    for node in other.nodes:
        frames = [msgspec.structs.replace(frame, line=frame.line + 7) for frame in node.provenance.frames]
        node.provenance = msgspec.structs.replace(node.provenance, frames=frames)
    assert all(match.exact for match in match_nodes(region, other))


def test_attention_is_one_op_whichever_kernel_runs_it() -> None:
    region = transformer_region(100)
    other = renumbered(region)
    for node in other.nodes:
        node.op = node.op.replace("_flash_attention", "_efficient_attention")
    matches = {match.a: match for match in match_nodes(region, other)}
    assert not matches["scaled_dot_product_attention"].exact
    assert len(matches) == len(region.nodes)


def test_a_decomposed_op_is_its_last_part_and_ops_of_one_family_are_one() -> None:
    region = transformer_region(100)
    other = renumbered(region)
    at = next(i for i, node in enumerate(region.nodes) if node.op == "aten.erf.default")
    whole = other.nodes[at]
    parts = [
        msgspec.structs.replace(whole, name=f"{whole.name}_{op}", op=f"aten.{op}.default") for op in ("exp", "tanh")
    ]
    other.nodes[at : at + 1] = parts
    for node in other.nodes:
        node.op = node.op.replace("aten.addmm.default", "aten.mm.default").replace("aten.view.", "aten.reshape.")
    matches = {match.a: match for match in match_nodes(region, other)}
    assert matches[region.nodes[at].name].b == parts[-1].name
    changed = [node for node in region.nodes if node.op in ("aten.addmm.default", "aten.view.default")]
    position = {node.name: i for i, node in enumerate(region.nodes)}
    assert changed
    for node in changed:
        assert matches[node.name].b == f"n{position[node.name]}"
        assert not matches[node.name].exact


# --- units ---------------------------------------------------------------------------------------------------------


def cut(report: Report) -> Report:
    """A copy in which the first group is two."""
    made = copy_of(report)
    region = made.regions[0]
    first = region.groups[0]
    half = len(first.nodes) // 2
    parts = [
        msgspec.structs.replace(first, name=f"{first.name}{side}", nodes=nodes, recomputed=[])
        for side, nodes in (("_head", first.nodes[:half]), ("_tail", first.nodes[half:]))
    ]
    region.groups = [*parts, *region.groups[1:]]
    return made


def test_split_and_merged_are_each_others_mirror(report: Report) -> None:
    there, back = compare(report, cut(report)), compare(cut(report), report)
    (split,) = [group for group in there.regions[0].groups if group.status is Status.SPLIT]
    (merged,) = [group for group in back.regions[0].groups if group.status is Status.MERGED]
    assert (split.a, split.b) == (merged.b, merged.a)
    assert (split.cost_a, split.cost_b) == (merged.cost_b, merged.cost_a)
    assert (split.cost_a.launches, split.cost_b.launches) == (1, 2)
    assert statuses(there)[Status.SAME] == statuses(back)[Status.SAME] == len(there.regions[0].groups) - 1
    assert not there.is_empty


def test_a_node_in_another_group_is_moved(report: Report) -> None:
    other = copy_of(report)
    one, two = other.regions[0].groups[:2]
    one.nodes, two.nodes = one.nodes[:-1], [one.nodes[-1], *two.nodes]
    found = compare(report, other)
    (moved,) = [group for group in found.regions[0].groups if group.status is not Status.SAME]
    assert moved.status is Status.MOVED
    assert moved.a == moved.b == [one.name, two.name]


def test_a_group_that_the_other_calls_a_library_for_is_changed(report: Report) -> None:
    other = copy_of(report)
    region = other.regions[0]
    group = region.groups.pop(0)
    region.extern_calls.append(
        ExternCall(group.name, group.nodes, "aten.native_layer_norm", ExternReason.LIBRARY_IS_FASTER, order=group.order)
    )
    found = compare(report, other)
    (changed,) = [entry for entry in found.regions[0].groups if entry.status is Status.CHANGED]
    assert changed.detail == "a generated kernel became an extern call"


def test_nodes_that_only_one_compiler_computes_do_not_tell(report: Report) -> None:
    """A view is free here and part of a kernel there; the grouping of the rest is what counts."""
    other = copy_of(report)
    assert report.regions[0].groups[0].nodes
    other.regions[0].groups[0].nodes = other.regions[0].groups[0].nodes[1:]
    assert set(statuses(compare(report, other))) == {Status.SAME}


def test_a_second_step_of_the_same_nodes_is_a_split(report: Report) -> None:
    other = copy_of(report)
    first = other.regions[0].groups[0]
    other.regions[0].groups.append(msgspec.structs.replace(first, name="second_step", nodes=first.nodes[-1:]))
    (split,) = [g for g in compare(report, other).regions[0].groups if g.status is not Status.SAME]
    assert (split.status, split.a, set(split.b)) == (Status.SPLIT, [first.name], {first.name, "second_step"})


def test_second_steps_on_both_sides_are_the_same(report: Report) -> None:
    """As a sum in two steps: the second owns none of its nodes, and two units of each side are one by one the same."""
    stepped = copy_of(report)
    region = stepped.regions[0]
    first, other = region.groups[:2]
    region.groups += [
        msgspec.structs.replace(first, name="second_step", nodes=first.nodes[-1:]),
        msgspec.structs.replace(first, name="third_step", nodes=first.nodes[-1:]),
        msgspec.structs.replace(other, name="of_both", nodes=[first.nodes[0], other.nodes[-1]]),
    ]
    found = compare(stepped, copy_of(stepped))
    assert found.is_empty
    assert all(group.a == group.b for group in found.regions[0].groups)
    assert [name for group in found.regions[0].groups for name in group.a] == [unit.name for unit in units_of(region)]
    changed = copy_of(stepped)
    changed.regions[0].groups = [group for group in changed.regions[0].groups if group.name != "third_step"]
    (left,) = [group for group in compare(stepped, changed).regions[0].groups if group.status is not Status.SAME]
    assert left.status is Status.MOVED
    assert set(left.a) - set(left.b) == {"third_step"}


def test_a_view_counted_to_another_unit_moves_nothing(report: Report) -> None:
    other = copy_of(report)
    group = next(g for g in other.regions[0].groups if any(n.startswith("view") for n in g.nodes))
    view = next(name for name in group.nodes if name.startswith("view"))
    group.nodes = [name for name in group.nodes if name != view]
    other.regions[0].extern_calls[0].nodes = [*other.regions[0].extern_calls[0].nodes, view]
    assert set(statuses(compare(report, other))) == {Status.SAME}


def test_a_node_computed_twice_counts_where_it_belongs(report: Report) -> None:
    other = copy_of(report)
    one, two = other.regions[0].groups[:2]
    two.nodes, two.recomputed = [one.nodes[0], *two.nodes], [one.nodes[0]]
    assert set(statuses(compare(report, other))) == {Status.SAME}


def test_regions_pair_by_name_then_kind(report: Report) -> None:
    other = copy_of(report)
    other.regions[0].name = "graph_7"
    other.regions.append(backward_region(60))
    found = compare(report, other)
    assert [(region.a, region.b) for region in found.regions] == [
        (report.regions[0].name, "graph_7"),
        ("", "region_0_backward"),
    ]
    assert found.regions[0].is_same
    assert not found.regions[1].is_same


# --- kernels -------------------------------------------------------------------------------------------------------

ONE = """\
@triton.jit
def add_1(in_ptr0, out_ptr0, XBLOCK: tl.constexpr):
    i = tl.arange(0, XBLOCK)  # the index
    tmp0 = tl.load(in_ptr0 + i, other=0.0)
    tl.store(out_ptr0 + i, tmp0 + 1)
"""
TWO = """\
@triton.jit
def triton_poi_fused_add_0(a, b, XBLOCK: tl.constexpr):

    index = tl.arange(0, XBLOCK)
    value = tl.load(a + index, other=0.0)
    tl.store(b + index, value + 1)
"""


def test_names_do_not_count_and_operations_do() -> None:
    assert renamed(ONE) == renamed(TWO)
    for old, new in (("+ 1", "+ 2"), ("tl.load", "tl.loads"), ("a + index", "b + index"), ("other", "mask")):
        assert renamed(ONE) != renamed(TWO.replace(old, new)), (old, new)
    assert renamed("int main() {") == renamed("int main() {")
    assert "add_1" not in plain(ONE, "add_1")
    assert "the index" not in plain(ONE, "add_1")


INDUCTORS = """\
import triton
from torch._inductor.runtime import triton_helpers, triton_heuristics
triton_helpers.set_driver_to_gpu()

@triton_heuristics.pointwise(
    size_hints={'x': 64},
    filename=__file__,
    triton_meta={'signature': {'in_ptr0': '*fp32', 'out_ptr0': '*fp32'}, 'device': DeviceProperties(type='cuda', cc=90),
        'configs': [{(0,): [['tt.divisibility', 16]], (1,): [['tt.divisibility', 16]]}]},
    inductor_meta={'kernel_name': 'add_1', 'backend_hash': 'A7', 'num_load': 1, 'max_autotune': False},
    min_elem_per_thread=0
)
"""


def test_a_kernels_number_and_its_machine_are_no_difference(report: Report) -> None:
    other = copy_of(report)
    first, second = report.kernels[:2], other.kernels[:2]
    for kernel in (*first, *second):
        kernel.source = INDUCTORS.replace("add_1", kernel.name) + kernel.source
    new = f"{second[0].name}_7"
    for group in other.regions[0].groups:
        group.kernel = new if group.kernel == second[0].name else group.kernel
    second[0].source = second[0].source.replace(second[0].name, new).replace("cc=90", "cc=80").replace("A7", "B3")
    second[0].name = new
    second[1].source = second[1].source.replace("'num_load': 1", "'num_load': 2").replace("A7", "B3")
    found = compare(report, other).kernels
    assert [kernel.status for kernel in found[:2]] == [Status.SAME, Status.FIGURES]
    assert [(c.name, c.a, c.b) for c in found[1].changes] == [("num_load", 1, 2)]


def test_what_inductor_says_beside_the_code_is_settings() -> None:
    amd = INDUCTORS.replace("type='cuda', cc=90", "type='hip', cc='gfx942', warp_size=64").replace("'A7'", "'B3'")
    amd = amd.replace("[['tt.divisibility', 16]]", "[['tt.divisibility', 16], ['tt.pointer_range', 32]]")
    amd = amd.replace("'max_autotune'", "'is_hip': True, 'max_autotune'")
    assert code(INDUCTORS + ONE, "add_1") == code(amd + TWO, "triton_poi_fused_add_0")
    known = {"size_hints.x": 64, "tt.divisibility 16": "arguments 0, 1", "num_load": 1, "max_autotune": "False",
             "min_elem_per_thread": 0}  # fmt: skip
    assert settings_of(INDUCTORS + ONE) == known
    assert settings_of(amd + TWO) == {**known, "tt.pointer_range 32": "arguments 0, 1"}
    # kinds of kernels and types of arguments are code, whatever the arguments are called
    for old, new in (("*fp32", "*fp16"), ("pointwise", "reduction")):
        assert code(INDUCTORS + ONE, "add_1") != code(INDUCTORS.replace(old, new, 1) + ONE, "add_1")
    assert "@triton_heuristics.pointwise('*fp32', '*fp32')\n@triton.jit\ndef kernel(" in plain(INDUCTORS + ONE, "add_1")
    assert settings_of(ONE) == settings_of("int main() { return triton_meta; }") == {}


def test_kernels_of_the_same_groups_are_compared(report: Report) -> None:
    other = copy_of(report)
    first, second = other.kernels[:2]
    first.registers = 99
    second.source = second.source.replace("tl.store", "tl.atomic_add")
    for kernel in other.kernels[2:4]:
        new = f"{kernel.name}_renamed"
        for group in other.regions[0].groups:
            group.kernel = new if group.kernel == kernel.name else group.kernel
        kernel.source = kernel.source.replace(kernel.name, new).replace("tmp", "value")
        kernel.name = new
    found = compare(report, other).kernels
    assert [kernel.status for kernel in found[:4]] == [Status.FIGURES, Status.CHANGED, Status.SAME, Status.SAME]
    assert [(c.name, c.a, c.b) for c in found[0].changes] == [("registers", 32, 99)]
    assert "+    tl.atomic_add" in found[1].text
    assert found[2].b.endswith("_renamed")
    assert {kernel.status for kernel in found[4:]} == {Status.SAME}


def test_a_kernel_that_lost_its_group_is_found_by_its_code(report: Report) -> None:
    other = copy_of(report)
    other.regions[0].groups = []
    found = compare(report, other).kernels
    assert [(kernel.a, kernel.b) for kernel in found] == [(k.name, k.name) for k in report.kernels]


# --- the whole -----------------------------------------------------------------------------------------------------


def test_what_was_asked_for_differently_is_said(report: Report) -> None:
    other = copy_of(report)
    other.compiler, other.options, other.versions["torch"] = "inductor", {"num_warps": "8"}, "2.11.0"
    found = compare(report, other)
    assert [(c.name, c.a, c.b) for c in found.header] == [
        ("compiler", "fusescope", "inductor"),
        ("torch", "2.13.0+cpu", "2.11.0"),
        ("option num_warps", None, "8"),
    ]
    assert found.title_a == "Fusescope, torch 2.13.0+cpu"
    assert found.title_b == "TorchInductor, torch 2.11.0, num_warps=8"
    assert not found.is_empty


def test_both_titles_say_what_differs(report: Report) -> None:
    """Also where one of them has only what the other one changed: its own is the default."""
    other = copy_of(report)
    report.options, other.options = {"max_fusion": "4", "streams": "2"}, {"streams": "1"}
    found = compare(report, other)
    assert found.title_a == "Fusescope, max_fusion=4, streams=2"
    assert found.title_b == "Fusescope, max_fusion=default, streams=1"
    other.training, other.options = True, report.options
    found = compare(report, other)
    assert (found.title_a, found.title_b) == ("Fusescope, inference", "Fusescope, training")


@pytest.mark.parametrize(
    ("a", "b", "text"),
    [
        (8, 8, "="), (8, 9, "+12.5%"), (10**6, 10**6 - 9, "-<0.1%"), (10**6, 10**6 + 9, "+<0.1%"),
        (2, 20_000, "+999,900.0%"), (8, 0, "-100.0%"),
    ],
)  # fmt: skip
def test_a_small_change_is_not_told_as_none(a: int, b: int, text: str) -> None:
    share = Change("bytes", a, b).share
    assert share is not None
    assert share_text(share) == text
    assert Change("bytes", 0, b).share is None
    assert Change("compiler", "a", "b").share is None


def test_times_of_a_nanosecond_are_none_of_zero(report: Report) -> None:
    for kernel in report.kernels:
        kernel.estimated_us = 0.0004 / kernel.launches
    shorter = copy_of(report)
    for kernel in shorter.kernels:
        kernel.estimated_us = 0.0002 / kernel.launches
    (total,) = (one for one in compare(report, shorter).totals if one.name == "kernel time, estimated (us)")
    assert total.a == pytest.approx(0.0004 * len(report.kernels))
    assert total.share == pytest.approx(-0.5)
    assert _times(Cost(us=0.0004), Cost(us=0.0002)) == "~0.40 ns → ~0.20 ns"


def test_empty_reports() -> None:
    report = transformer_report(60)
    nothing = Report("fusescope", report.source, report.target)
    assert compare(nothing, nothing).is_empty
    assert compare(report, nothing).regions[0].b == ""
    assert compare(nothing, report).kernels[0].status is Status.ADDED
    assert match_nodes(Region("", "", []), Region("", "", [Node("x", report.regions[0].nodes[0].kind, "input")])) == []


class TestCommand:
    @pytest.fixture
    def pair(self, report: Report, tmp_path: Path) -> tuple[str, str]:
        save_session(tmp_path / "a.fscope", report)
        save_session(tmp_path / "b.fscope", cut(report))
        return str(tmp_path / "a.fscope"), str(tmp_path / "b.fscope")

    def test_no_difference(self, pair: tuple[str, str], capsys: pytest.CaptureFixture[str]) -> None:
        assert run(["diff", pair[0], pair[0]]) == 0
        assert capsys.readouterr().out.startswith("No difference: the same ")
        assert run(["diff", pair[0], pair[0], "--json"]) == 0
        data = json.loads(capsys.readouterr().out)
        assert data["empty"] is True
        assert data["header"] == data["totals"] == data["regions"] == data["kernels"] == []
        assert data["same"]["groups"] > 5

    def test_differences(self, pair: tuple[str, str], capsys: pytest.CaptureFixture[str]) -> None:
        assert run(["diff", *pair]) == 0
        out = capsys.readouterr().out
        assert "1 split" in out
        assert "1 -> 2" in out
        assert run(["diff", *pair, "--json"]) == 0
        data = json.loads(capsys.readouterr().out)
        (region,) = data["regions"]
        (group,) = region["groups"]
        assert (data["empty"], group["status"], len(group["b"])) == (False, "split", 2)
        assert {"name": "groups", "a": region["changes"][0]["a"], "b": region["changes"][0]["b"]} in data["totals"]

    def test_a_file_that_is_none(self, pair: tuple[str, str], capsys: pytest.CaptureFixture[str]) -> None:
        assert run(["diff", pair[0], "nowhere.fscope"]) == 1
        assert "nowhere.fscope" in capsys.readouterr().err


def test_times_are_of_every_unit_and_measured_where_both_sides_were() -> None:
    """A library call has a time, too; what was measured is never set beside an estimate of the same report."""
    measured = open_session(Path(__file__).parent / "fixtures" / "recorded" / "inductor_dropout.fscope").report
    estimated = msgspec.msgpack.decode(msgspec.msgpack.encode(measured), type=Report)
    estimated.traces = []
    for region in estimated.regions:
        region.cuda_graph = CudaGraph()
    for kernel in estimated.kernels:
        kernel.measured_us = None
    found = compare(measured, estimated)
    groups = [group for region in found.regions for group in region.groups]
    assert len(groups) == 10
    for group in groups:
        assert group.cost_a.measured
        assert group.cost_a.us is not None
        assert not group.cost_b.measured
        assert group.cost_b.us is not None
        assert group.cost_b.us < group.cost_a.us
    (total,) = (change for change in found.totals if change.name == "kernel time, measured (us)")
    assert total.a == pytest.approx(sum(kernel.measured_us or 0.0 for kernel in measured.kernels))
    assert total.b is None
    assert "kernel time, measured (us)" not in {change.name for change in compare(estimated, estimated).totals}
