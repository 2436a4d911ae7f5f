"""Logs that torch wrote elsewhere, as reports. The fixtures were made by tests/fixtures/make_traces.py."""

from __future__ import annotations

import ast
import contextlib
import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from app.cli import run
from app.importing import ImportingError, import_traces
from app.importing.graph_text import read_graph, read_type
from app.importing.trace_log import read_trace_log
from app.importing.wrapper import read_program
from app.session import open_session
from compiler import report as r

TRACES = Path(__file__).parent / "fixtures" / "traces"


@pytest.fixture(params=["cpu.log", "h100.log", "debug"])
def report(request: pytest.FixtureRequest) -> r.Report:
    return import_traces(TRACES / request.param)


def test_every_kernel_and_call_of_the_program_is_in_the_report(report: r.Report) -> None:
    """Told by another reading of the program than the importer's: calls of what it defines, and of libraries."""
    assert report.regions
    for region in report.regions:
        defined = {k.name for k in report.kernels}
        lines = [line.strip() for line in region.wrapper.splitlines()]
        launched = [n for line in lines if (n := line.partition(".run(")[0].partition("(")[0]) in defined]
        assert launched == [group.kernel for group in region.groups]
        assert sum("extern_kernels." in line and "(" in line for line in lines) == len(region.extern_calls)
        units = [*region.groups, *region.extern_calls]
        assert sorted(unit.order for unit in units) == list(range(len(units)))
        names = {node.name for node in region.nodes}
        assert all(set(unit.nodes) <= names for unit in units)


def test_regions_of_a_program_on_the_cpu() -> None:
    report = import_traces(TRACES / "cpu.log")
    assert [region.name for region in report.regions][:3] == ["forward", "backward", "inference_1"]
    assert report.training
    assert report.target.name == "cpu"
    assert report.versions["torch"].startswith("2.13.0")
    (found,) = report.graph_breaks
    assert (found.reason, found.source and found.source.line) == ("Failed to trace builtin operator", 14)
    assert len(report.recompiles) == 2  # of the function and of what follows the break in it
    assert report.guards
    forward = report.regions[0]
    assert [call.nodes for call in forward.extern_calls] == [["addmm"]]
    nodes = {node.name: node for node in forward.nodes}
    (group,) = forward.groups
    assert group.kind is r.GroupKind.REDUCTION
    assert {"erf", "var_mean", "rsqrt"} <= set(group.nodes)
    assert nodes["addmm"].outputs[0] == r.TensorInfo([8, 32], "float32", [32, 1], "cpu", 1024)
    assert nodes["addmm"].estimated_flops == 2 * 8 * 32 * 16
    assert {s.name for s in report.stages} == {"capture", "AOTAutograd", "Inductor", "generate"}
    assert not forward.cuda_graph.capturable
    assert set(forward.graphs) == {"dynamo", "pre_grad", "joint", "forward", "post_grad"}


def test_what_a_log_does_not_say_is_not_invented() -> None:
    report = import_traces(TRACES / "cpu.log")
    backward = report.regions[1]
    assert any("does not say which ops" in note for note in report.notes)
    assert all(not group.nodes and "does not say" in group.reason for group in backward.groups)
    assert all(not region.refusals for region in report.regions)
    assert all(kernel.registers is None and not kernel.irs for kernel in report.kernels)
    assert all(kernel.estimated_us is None for kernel in report.kernels)  # a CPU's rates are not known
    assert not import_traces(TRACES / "h100.log").regions[0].cuda_graph.answered


def test_a_kernel_launched_again_gets_its_own_nodes(tmp_path: Path) -> None:
    """By provenance where the log has it; else by the shape of the first launch's nodes, said to be inferred."""
    told = import_traces(TRACES / "h100.log")
    (region,) = told.regions
    assert (told.target.name, told.target.arch) == ("sm90", 90)  # an H100 and an H200 are told by the same figures
    assert "H100" in told.target.title and "H200" in told.target.title  # noqa: PT018
    assert [group.kernel for group in region.groups] == [region.groups[0].kernel] * 3
    groups = [set(group.nodes) for group in region.groups]
    assert all(groups)
    assert not any(a & b for a in groups for b in groups if a is not b)
    text = (TRACES / "h100.log").read_text().replace("inductor_provenance_tracking_node_mappings", "something_else")
    place = tmp_path / "log.log"
    place.write_text(text)
    (inferred,) = import_traces(place).regions
    for a, b in zip(region.groups, inferred.groups, strict=True):
        ops_a, ops_b = ({n.op for n in x.nodes if n.name in g.nodes} for x, g in ((region, a), (inferred, b)))
        assert ops_a - {"getitem", "aten.reshape.default"} == ops_b - {"getitem", "aten.reshape.default"}
    assert ["inferred" in group.reason for group in inferred.groups] == [False, True, True]
    assert [call.nodes for call in inferred.extern_calls] == [call.nodes for call in region.extern_calls]


def test_debug_folder() -> None:
    report, log = import_traces(TRACES / "debug"), import_traces(TRACES / "cpu.log")
    assert [x.name for x in report.regions] == [x.name for x in log.regions]
    assert [[g.nodes for g in x.groups] for x in report.regions] == [[g.nodes for g in x.groups] for x in log.regions]
    assert [k.source for k in report.kernels] == [k.source for k in log.kernels]
    scheduled = report.regions[0].scheduler_nodes
    assert [node.kind for node in scheduled].count("extern") == len(report.regions[0].extern_calls)
    assert scheduled[0].writes == ["buf0"]
    assert set(scheduled[0].reads) == {"primals_1", "primals_2", "primals_3"}


def test_nothing_of_a_log_is_executed(tmp_path: Path) -> None:
    """A program in a log is code; reading it must leave it that."""
    mark = tmp_path / "executed"
    log = (TRACES / "cpu.log").read_text()
    folder = tmp_path / "debug"
    shutil.copytree(TRACES / "debug", folder)
    for file in folder.rglob("*.py"):
        file.write_text(f"open({str(mark)!r}, 'w').close()\n{file.read_text()}")
    import_traces(folder)
    (tmp_path / "x.log").write_text(log)
    import_traces(tmp_path / "x.log")
    assert not mark.exists()


def test_damaged_logs(tmp_path: Path) -> None:
    """Whatever a file holds, it is read as far as it goes or refused in one sentence."""
    log = (TRACES / "cpu.log").read_text()
    place = tmp_path / "x.log"
    for cut in range(0, len(log), len(log) // 23):
        place.write_text(log[:cut])
        with contextlib.suppress(ImportingError):
            assert import_traces(place).regions
    place.write_text(log.replace("torch.ops.aten", "torch.ops.bten", 1))  # the payload's sum does not fit any more
    assert any("could not be read" in note for note in import_traces(place).notes)
    place.write_bytes(b"\xff\x00V1130\n" * 100)
    with pytest.raises(ImportingError):
        import_traces(place)
    with pytest.raises(ImportingError, match="There is no"):
        import_traces(tmp_path / "absent")
    (tmp_path / "empty").mkdir()
    with pytest.raises(ImportingError, match="neither"):
        import_traces(tmp_path / "empty")


def test_several_ranks(tmp_path: Path) -> None:
    for rank in (0, 1):
        shutil.copy(TRACES / "cpu.log", tmp_path / f"dedicated_log_torch_trace_rank_{rank}_abc.log")
    (tmp_path / "dedicated_log_torch_trace_xyz.log").write_text("")  # a process that compiled nothing
    report = import_traces(tmp_path)
    assert report.source == "trace:dedicated_log_torch_trace_rank_0_abc.log"
    assert any("rank_1" in note for note in report.notes)


def test_types_and_graphs_of_other_forms() -> None:
    assert read_type("bf16[8, s0, 4][s0*4, 4, 1]cuda:0") == r.TensorInfo(
        [8, "s0", 4], "bfloat16", ["s0*4", 4, 1], "cuda:0", 0
    )
    assert read_type("f32[]") == r.TensorInfo([], "float32", [], "", 4)
    assert read_type("Sym(s0)") is None
    nodes = read_graph(
        'class GraphModule(torch.nn.Module):\n'
        '    def forward(self, s0: "Sym(s0)", x: "f32[s0]"):\n'
        "        # File: /home/user/m.py:3 in forward, code: return torch.cond(x.sum() > 0, f, g, (x,))\n"
        "        true_graph_0 = self.true_graph_0\n"
        "        cond = torch.ops.higher_order.cond(gt, true_graph_0, false_graph_0, (x,));  gt = x = None\n"
        "        return (\n            cond,  # PlainAOTOutput(idx=0)\n        )\n"
        "\n    class true_graph_0(torch.nn.Module):\n        def forward(self, y):\n            return (y,)\n",
        "inference",
    )
    assert [(n.name, n.kind.value, n.inputs) for n in nodes] == [
        ("s0", "placeholder", []),
        ("x", "placeholder", []),
        ("true_graph_0", "get_attr", []),
        ("cond", "call", ["true_graph_0", "x"]),
        ("output", "output", ["cond"]),
    ]
    assert nodes[3].provenance.frames[0].line == 3


def test_partitions_and_other_languages() -> None:
    text = (
        "# AOT ID: ['2_inference']\n"
        "triton_poi_fused_0 = async_compile.triton('triton_poi_fused_0', '''\nsource\n''', device_str='cuda')\n"
        "def partition_0(args):\n    buf0 = empty_strided_cuda((4, 8), (8, 1), torch.float32)\n"
        "    triton_poi_fused_0.run(arg0_1, buf0, 32, stream=raw_stream0)\n    return (buf0,)\n"
        "class Runner:\n    def call(self, args):\n        (buf0,) = self.partitions[0](args)\n"
        "        buf1 = torch.ops.aten.sort.default(buf0, -1)\n        return (buf1,)\n"
    )
    ast.parse(text)
    program = read_program(text)
    assert (program.kind, program.number, program.partitions) == ("inference", 2, 1)
    assert [(s.kernel, s.operation) for s in program.steps] == [
        ("triton_poi_fused_0", "triton_poi_fused_0"),
        ("", "torch.ops.aten.sort.default"),
    ]
    assert program.buffers[0].bytes == 128
    assert read_program("#include <torch/all.h>\nint main() {}").problem


def test_torch_is_not_needed() -> None:
    """The viewer's installation reads logs, too."""
    code = (
        "import sys; sys.modules['torch'] = None; sys.modules['triton'] = None\n"
        "from pathlib import Path; from app.importing import import_traces\n"
        f"print(len(import_traces(Path({str(TRACES / 'h100.log')!r})).regions))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "1"


def test_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    output = tmp_path / "x.fscope"
    assert run(["import", str(TRACES / "cpu.log"), "-o", str(output)]) == 0
    assert "Read from a TORCH_TRACE log" in capsys.readouterr().out
    assert len(open_session(output).report.regions) == len(import_traces(TRACES / "cpu.log").regions)
    assert run(["import", str(tmp_path)]) == 1
    assert "TORCH_TRACE" in capsys.readouterr().err


def test_links_that_lead_out_of_the_folder_are_not_followed(tmp_path: Path) -> None:
    """Neither a log, nor a folder of graphs, nor one file of a graph; what stays inside is read through its link."""
    folder = tmp_path / "logs"
    folder.mkdir()
    (folder / "cpu.log").symlink_to(TRACES / "cpu.log")
    with pytest.raises(ImportingError, match="neither") as caught:
        import_traces(folder)
    assert "cpu.log" in caught.value.hint
    shutil.copy(TRACES / "h100.log", folder / "own.txt")
    (folder / "linked.log").symlink_to("own.txt")
    report = import_traces(folder)
    assert report.target.arch == 90
    assert any("not followed: cpu.log" in note for note in report.notes)
    (tmp_path / "door").symlink_to(folder)
    assert import_traces(tmp_path / "door").target.arch == 90  # a link that was named is where the user wants to go

    graphs = tmp_path / "graphs"
    shutil.copytree(TRACES / "debug", graphs)
    (program,) = [path.parent for path in graphs.glob("**/output_code.py")][:1]
    (tmp_path / "secret.py").write_text("not of this folder")
    (program / "fx_graph_readable.py").unlink()
    (program / "fx_graph_readable.py").symlink_to(tmp_path / "secret.py")
    report = import_traces(graphs)
    assert all("not of this folder" not in text for region in report.regions for text in region.graphs.values())
    assert any("fx_graph_readable.py" in note for note in report.notes)


def test_messages_are_whole() -> None:
    log = read_trace_log(TRACES / "cpu.log")
    assert not log.damaged
    assert all(json.dumps(message.metadata) for message in log.messages)
