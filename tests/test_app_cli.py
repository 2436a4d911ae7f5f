"""The command line: what it prints, where it writes, its exit statuses, and what it never imports."""

from __future__ import annotations

import argparse
import dataclasses
import json
import subprocess
import sys
from pathlib import Path

import pytest

from app.cli import run
from app.cli.compile import deliver, target_named
from app.cli.entry import with_default_command
from app.cli.summary import measurements
from app.cli.text import bytes_text, table, us_text
from app.session import open_session, save_session
from compiler.options import Options
from compiler.report import (
    BufferPlan,
    CudaGraph,
    GraphBreak,
    Guard,
    Measurement,
    Memory,
    Percentiles,
    Recompile,
    Refusal,
    RefusalRule,
    Report,
    SchedulerNode,
    SkipReason,
    SourceLine,
)
from compiler.targets import TARGETS
from tests.fake_reports import transformer_report
from tests.fake_runs import lab_report

MAIN = Path(__file__).parents[1] / "main.py"


@pytest.fixture(scope="module")
def report() -> Report:
    made = transformer_report(200, training=True)
    made.kernels[0].irs = {"ptx": ".version 8.7"}
    made.measurements = [
        Measurement(mode, "NVIDIA H200", 10, Percentiles(cpu, cpu + 1, cpu + 2), Percentiles(gpu, gpu + 1, gpu + 2))
        for mode, cpu, gpu in (("eager", 200.0, 100.0), ("graph", 20.0, 50.0))
    ]
    return made


@pytest.fixture(scope="module")
def session(report: Report, tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("session") / "x.fscope"
    save_session(path, report)
    return str(path)


def ok(*arguments: str) -> None:
    assert run(arguments) == 0


def fails(capsys: pytest.CaptureFixture[str], *arguments: str, status: int = 1) -> str:
    """Run a command line that must fail with one line on stderr; returns that line."""
    try:
        got = run(arguments)
    except SystemExit as stop:
        got = int(str(stop.code))
    assert got == status
    captured = capsys.readouterr()
    assert captured.out == ""
    (line,) = captured.err.splitlines()
    assert line.startswith("fusescope")
    return line


class TestShow:
    def test_a_mode_that_takes_no_time_has_no_speedup(self) -> None:
        none, some = Percentiles(0.0, 0.0, 0.0), Percentiles(1.0, 1.0, 1.0)
        text = measurements([Measurement("eager", "GPU", 1, some, none), Measurement("graph", "GPU", 1, none, none)])
        assert [line.split()[-2] for line in text.splitlines()[-2:]] == ["1.00x", "-"]

    def test_summary(self, session: str, report: Report, capsys: pytest.CaptureFixture[str]) -> None:
        ok("show", session)
        out = capsys.readouterr().out
        groups = sum(len(region.groups) for region in report.regions)
        assert f"2 regions, {groups} fusion groups in {len(report.kernels)} kernels" in out
        assert "estimated for h100" in out
        assert "4.00x" in out  # 200 µs of eager's CPU against 50 µs of the graph's GPU
        assert "library_is_faster" in out

    def test_what_was_not_fused_and_not_captured_is_told(
        self, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        """Refusals by rule, the costliest rule first; why CUDA Graphs are split, with the op and its line."""
        report = transformer_report(60)
        region = report.regions[0]
        a, b, c = (node.name for node in region.nodes[:3])
        region.refusals = [
            Refusal(a, b, RefusalRule.EXTERN, "a library call", 10),
            Refusal(a, c, RefusalRule.CYCLE, "a cycle", 3_000_000),
            Refusal(b, c, RefusalRule.EXTERN, "a library call", 990),
        ]
        reasons = [
            SkipReason("device_copy", "DeviceCopy ops", c, SourceLine("m.py", 7)),
            SkipReason("mutated_input", f"{a}, an input of the caller's, is written to", a),
        ]
        region.cuda_graph = CudaGraph(capturable=False, partitions=2, skip_reasons=reasons)
        save_session(tmp_path / "x.fscope", report)
        ok("show", str(tmp_path / "x.fscope"))
        out = capsys.readouterr().out
        told = out.splitlines()
        start = next(i for i, line in enumerate(told) if line.startswith("kept apart"))
        rows = [line.split() for line in told[start + 1 : start + 3]]
        assert rows == [["cycle", "1", "3", "MB", f"{a},", c], ["extern", "2", "1", "kB", f"{b},", c]]
        assert "cannot be captured whole, 2 partitions" in out
        assert f"  {region.name}: DeviceCopy ops [{c}] (m.py:7)" in out
        assert f"  {region.name}: {a}, an input of the caller's, is written to\n" in out

    def test_json_has_the_plan_and_the_nodes_before_fusion(
        self, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        report = transformer_report(60)
        region = report.regions[0]
        region.memory = Memory([BufferPlan("buf0", "add", 64, 0, 2), BufferPlan("buf1", "mul", 64, 3, 4, "buf0")])
        region.scheduler_nodes = [SchedulerNode("op0", "computed", ["add"], ["arg0"], ["buf0"], 128, "group0")]
        save_session(tmp_path / "x.fscope", report)
        ok("show", str(tmp_path / "x.fscope"), "--json")
        (told,) = json.loads(capsys.readouterr().out)["regions"]
        assert [(buffer["name"], buffer["reuses"]) for buffer in told["memory"]["plan"]] == [
            ("buf0", ""),
            ("buf1", "buf0"),
        ]
        assert told["scheduler_nodes"] == [
            {"name": "op0", "kind": "computed", "nodes": ["add"], "reads": ["arg0"], "writes": ["buf0"], "bytes": 128,
             "unit": "group0"}
        ]  # fmt: skip

    def test_json_has_the_promised_keys(self, session: str, report: Report, capsys: pytest.CaptureFixture[str]) -> None:
        ok("show", session, "--json")
        data = json.loads(capsys.readouterr().out)
        assert data["compiler"] == report.compiler
        assert data["target"] == "h100"
        assert data["versions"] == report.versions
        region = data["regions"][0]
        assert region["nodes"] == len(report.regions[0].nodes)
        assert region["kind"] == "forward"
        assert {"name", "kind", "nodes", "kernel", "reason"} <= region["groups"][0].keys()
        assert {"name", "nodes", "reason"} <= region["extern_calls"][0].keys()
        assert {"a", "b", "rule", "detail"} <= region["refusals"][0].keys()
        assert {"captured", "partitions", "skip_reasons"} <= region["cuda_graph"].keys()
        assert region["graph_breaks"] == data["graph_breaks"] == []
        keys = "name language grid registers spills shared_bytes estimated_bytes measured_us"
        assert set(keys.split()) <= data["kernels"][0].keys()
        measurement = data["measurements"][0]
        assert measurement["cpu_us"] == {"p50": 200.0, "p90": 201.0, "p99": 202.0}
        assert {"mode", "gpu", "iterations", "gpu_us"} <= measurement.keys()

    def test_graph_breaks_belong_to_the_region_they_ended(
        self, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        base = transformer_report(60)
        fault = GraphBreak("print", SourceLine("model.py", 7), skipped_frame=True)
        report = Report("fusescope", "x", TARGETS["h100"], regions=[*base.regions, *base.regions], graph_breaks=[fault])
        save_session(tmp_path / "x.fscope", report)
        ok("show", str(tmp_path / "x.fscope"), "--json")
        first, second = json.loads(capsys.readouterr().out)["regions"]
        place = {"file": "model.py", "line": 7}
        assert first["graph_breaks"] == [{"reason": "print", "detail": "", "skipped_frame": True, **place}]
        assert second["graph_breaks"] == []

    def test_what_dynamo_said(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        place = SourceLine("model.py", 7, "f", "g(x)")
        report = Report(
            "fusescope", "x", TARGETS["h100"],
            graph_breaks=[GraphBreak("no LSTM", place, "Hint: none", skipped_frame=True)],
            recompiles=[Recompile("n == 2", "f", place)],
            guards=[Guard("L['n'] == 2", "EQUALS_MATCH", "L['n']", place)],
        )  # fmt: skip
        save_session(tmp_path / "x.fscope", report)
        ok("show", str(tmp_path / "x.fscope"))
        text = capsys.readouterr().out
        assert "no LSTM (model.py:7); the whole function runs in eager" in text
        assert "f: n == 2 (model.py:7)" in text
        assert "1 guard" in text
        ok("show", str(tmp_path / "x.fscope"), "--json")
        data = json.loads(capsys.readouterr().out)
        where = {"file": "model.py", "line": 7}
        assert data["recompiles"] == [{"reason": "n == 2", "function": "f", **where}]
        assert data["guards"] == [{"code": "L['n'] == 2", "kind": "EQUALS_MATCH", "subject": "L['n']", **where}]
        ok("export", str(tmp_path / "x.fscope"), "--html", str(tmp_path / "r.html"))
        page = (tmp_path / "r.html").read_text()
        for said in ("no LSTM", "Hint: none", "n == 2", "EQUALS_MATCH", "model.py:7"):
            assert said in page

    def test_kernel_by_its_name_or_its_groups(
        self, session: str, report: Report, capsys: pytest.CaptureFixture[str]
    ) -> None:
        kernel = report.kernels[0]
        group = next(group for region in report.regions for group in region.groups if group.kernel == kernel.name)
        for name in (kernel.name, group.name):
            ok("show", session, "--kernel", name)
            assert capsys.readouterr().out == kernel.source + "\n"
        ok("show", session, "--kernel", kernel.name, "--ir", "ptx")
        assert capsys.readouterr().out == ".version 8.7\n"

    def test_what_is_not_there(self, session: str, report: Report, capsys: pytest.CaptureFixture[str]) -> None:
        assert "no kernel called 'nope'" in fails(capsys, "show", session, "--kernel", "nope")
        line = fails(capsys, "show", session, "--kernel", report.kernels[0].name, "--ir", "sass")
        assert "no sass" in line
        assert "triton, ptx" in line
        assert "There is no file" in fails(capsys, "show", "nothing.fscope")


class TestExport:
    def test_kernel(self, session: str, report: Report, tmp_path: Path) -> None:
        ok("export", session, "--kernel", report.kernels[0].name, "-o", str(tmp_path / "k.py"))
        assert (tmp_path / "k.py").read_text() == report.kernels[0].source

    def test_csv_has_a_row_a_kernel(self, session: str, report: Report, tmp_path: Path) -> None:
        ok("export", session, "--csv", str(tmp_path / "t.csv"))
        rows = (tmp_path / "t.csv").read_text().splitlines()
        assert len(rows) == 1 + len(report.kernels)
        assert rows[1].startswith(f"{report.kernels[0].name},triton,{report.regions[0].name}/")

    def test_html_stands_alone(self, session: str, report: Report, tmp_path: Path) -> None:
        ok("export", session, "--html", str(tmp_path / "r.html"))
        page = (tmp_path / "r.html").read_text()
        assert all(kernel.name in page for kernel in report.kernels)
        assert "NVIDIA H200" in page
        for outside in ("<script", "http://", "https://", "src="):
            assert outside not in page

    def test_svg(self, session: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, qapp: object) -> None:
        monkeypatch.setenv("QT_QPA_PLATFORM", "offscreen")
        ok("export", session, "--svg", str(tmp_path / "g.svg"))
        assert "<svg" in (tmp_path / "g.svg").read_text()[:500]

    def test_unwritable(self, session: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        line = fails(capsys, "export", session, "--csv", str(tmp_path / "none" / "t.csv"))
        assert f"cannot be written: there is no folder {tmp_path / 'none'}." in line

    def test_a_name_too_long_does_not_hide_the_sentence(self, session: str, capsys: pytest.CaptureFixture[str]) -> None:
        long = "a" * 5000
        for command in (["compile", f"{long}.py"], ["show", long], ["import", session, "-o", long], ["verify", long]):
            line = fails(capsys, *command)
            assert len(line) < 400
            assert "fault of Fusescope" not in line

    def test_wrong_usage(self, session: str, capsys: pytest.CaptureFixture[str]) -> None:
        assert "needs -o" in fails(capsys, "export", session, "--kernel", "k", status=2)
        assert "-o goes with --kernel" in fails(capsys, "export", session, "--csv", "a", "-o", "b", status=2)
        assert "one of the arguments" in fails(capsys, "export", session, status=2)


class TestCompileFaults:
    def test_unknown_target_is_wrong_usage(self, capsys: pytest.CaptureFixture[str]) -> None:
        line = fails(capsys, "compile", "example:softmax", "--target", "gtx9000", status=2)
        assert "no target called 'gtx9000'" in line
        assert "h100" in line

    def test_a_target_may_be_written_as_on_the_box(self) -> None:
        assert target_named("H100") == "h100"

    @pytest.mark.parametrize(
        ("arguments", "sentence"),
        [
            (("compile", "nothing.py", "--target", "h100"), "There is no file nothing.py."),
            (("compile", "example:nope", "--target", "h100"), "no example called 'nope'"),
            (("compile", "what", "--target", "h100"), "is not a source"),
            (("verify", "example:nope", "--interpret"), "no example called 'nope'"),
        ],
    )
    def test_one_sentence(self, arguments: tuple[str, ...], sentence: str) -> None:
        done = subprocess.run([sys.executable, str(MAIN), *arguments], capture_output=True, text=True, check=False)
        assert done.returncode == 1
        (line,) = done.stderr.splitlines()
        assert sentence in line

    def test_an_unwritable_place_is_told_before_the_work(
        self, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        arguments = ("compile", "example:softmax", "--target", "h100", "-o")
        assert "there is no folder" in fails(capsys, *arguments, str(tmp_path / "none" / "x.fscope"))
        assert "it is a folder" in fails(capsys, *arguments, str(tmp_path))

    def test_debug_shows_the_traceback(self, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
        source = tmp_path / "raising_source.py"
        source.write_text("def raising_source():\n    raise KeyError('x')\n")
        assert run(["--debug", "compile", str(source), "--target", "h100"]) == 1
        errors = capsys.readouterr().err
        assert "Traceback" in errors
        assert errors.splitlines()[-1].startswith(f"fusescope: {source}:2 raised KeyError: 'x'")


class TestCompile:
    def test_the_json_is_alone_on_stdout_and_the_session_is_written(self, tmp_path: Path) -> None:
        path = tmp_path / "x.fscope"
        arguments = ["compile", "example:graph_break", "--target", "a100", "--json", "-o", str(path)]
        arguments += ["--option", "batch=4", "--option", "width=16"]
        done = subprocess.run([sys.executable, str(MAIN), *arguments], capture_output=True, text=True, check=True)
        data = json.loads(done.stdout)
        assert "hidden: (4, 16)" in done.stderr  # the model prints
        assert data["options"] == {"batch": "4", "width": "16"}
        assert [len(region["graph_breaks"]) for region in data["regions"]] == [1, 0]
        assert data["graph_breaks"][0]["file"] == "resources/examples/graph_break.py"
        assert open_session(path).report.target == TARGETS["a100"]

    def test_misspelt_option_is_told_with_the_options_there_are(self) -> None:
        arguments = ["compile", "example:relu_add_mul", "--target", "h100", "--option", "row=4"]
        done = subprocess.run([sys.executable, str(MAIN), *arguments], capture_output=True, text=True, check=False)
        assert done.returncode == 1
        assert done.stderr.splitlines()[-1] == (
            "fusescope: Neither relu_add_mul nor the compiler has an option 'row'. "
            "The options of relu_add_mul: rows, columns, dtype. The compiler's options: "
            + ", ".join(field.name for field in dataclasses.fields(Options))
            + "."
        )

    def test_nothing_to_verify_is_said(self, tmp_path: Path) -> None:
        source = tmp_path / "plain.py"
        source.write_text("import torch\n\ndef plain():\n    return (lambda x: x.t()), (torch.ones(2, 3),)\n")
        arguments = ["verify", str(source), "--interpret"]
        done = subprocess.run([sys.executable, str(MAIN), *arguments], capture_output=True, text=True, check=True)
        assert done.stdout == "No fusion group to check: no op of the model became a generated kernel.\n"

    def test_verify_interprets_the_kernels(self) -> None:
        arguments = ["verify", "example:softmax?rows=8&columns=32", "--interpret"]
        done = subprocess.run([sys.executable, str(MAIN), *arguments], capture_output=True, text=True, check=True)
        assert done.stdout.splitlines()[-1] == "1 group against float64 eager, 0 out of tolerance"


@pytest.mark.parametrize(
    ("given", "meant"),
    [
        ([], ["open"]),
        (["x.fscope"], ["open", "x.fscope"]),
        (["--debug"], ["--debug", "open"]),
        (["--debug", "model.py"], ["--debug", "open", "model.py"]),
        (["show", "x.fscope"], ["show", "x.fscope"]),
        (["--help"], ["--help"]),
    ],
)
def test_the_default_command(given: list[str], meant: list[str]) -> None:
    assert with_default_command(given) == meant


@pytest.mark.parametrize(
    "arguments",
    [
        ["compile"],
        ["compile", "x", "--option", "novalue"],
        ["bench", "x", "--modes", "warp"],
        ["bench", "x", "--iterations", "0"],
        ["screenshot", "x", "--size", "big", "-o", "y"],
        ["--nonsense"],
    ],
)
def test_wrong_usage(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    fails(capsys, *arguments, status=2)


def test_no_display_is_said(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("DISPLAY", "WAYLAND_DISPLAY", "QT_QPA_PLATFORM"):
        monkeypatch.delenv(name, raising=False)
    if sys.platform == "linux":
        assert "no display" in fails(capsys)


def test_lists(capsys: pytest.CaptureFixture[str]) -> None:
    ok("targets")
    out = capsys.readouterr().out
    assert all(f"  {name}: {target.source}" in out for name, target in TARGETS.items())
    ok("examples")
    out = capsys.readouterr().out
    assert "example:gpt2" in out
    assert "--option batch=1" in out


@pytest.mark.parametrize("arguments", [["targets"], ["examples"], ["show", "SESSION"], ["show", "SESSION", "--json"]])
def test_looking_imports_neither_torch_nor_qt(arguments: list[str], session: str) -> None:
    code = (
        "import sys; sys.argv = ['main.py', *sys.argv[1:]]; import main; status = main.main();"
        "heavy = {'torch', 'triton', 'numpy', 'PySide6', 'networkx'} & sys.modules.keys();"
        "print(sorted(heavy), status, file=sys.stderr)"
    )
    command = [sys.executable, "-c", code, *(session if word == "SESSION" else word for word in arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=True, cwd=MAIN.parent)
    assert done.stderr.strip() == "[] 0"


def test_the_window_never_imports_torch() -> None:
    code = (
        "import sys, pkgutil, importlib, views, app\n"
        "server = ('app.worker.server', 'app.worker.work', 'app.worker.run', 'app.worker.measure')\n"
        "for package in (views, app):\n"
        "    for found in pkgutil.walk_packages(package.__path__, package.__name__ + '.'):\n"
        "        if found.name not in server:\n"
        "            importlib.import_module(found.name)\n"
        "from views.app import make_application\n"
        "from views.main_window import MainWindow\n"
        "from app.settings import Settings\n"
        "from app.worker.client import WorkerClient\n"
        "application = make_application()\n"
        "window = MainWindow(WorkerClient, Settings())\n"
        "window.show()\n"
        "application.processEvents()\n"
        "print(sorted({'torch', 'triton'} & sys.modules.keys()))\n"
        "window.close()\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=MAIN.parent, check=False)
    assert done.stdout.strip() == "[]", done.stderr


def test_doctor_finds_this_python(capsys: pytest.CaptureFixture[str]) -> None:
    ok("doctor")
    assert f"ok       Python {sys.version_info[0]}.{sys.version_info[1]}" in capsys.readouterr().out


def test_plain_text() -> None:
    assert [bytes_text(value) for value in (0, 999, 1500, 25_165_824)] == ["0 B", "999 B", "1.5 kB", "25.2 MB"]
    assert [us_text(value) for value in (None, 0, 4.78e-06, 7.593, 123.4)] == ["-", "0", "<0.01", "7.59", "123"]
    assert table(("a", "n"), [("x", 5), ("longer", 10)], right=("n",)) == "a        n\nx        5\nlonger  10"


def test_what_capture_on_several_streams_brought_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = lab_report(60)
    graph = found.regions[0].cuda_graph
    graph.streams, graph.one_stream_us, graph.forked_us, graph.partitions = 3, 40.0, 25.5, 1
    path = str(tmp_path / "streams.fscope")
    save_session(path, found)
    ok("show", path)
    assert "captured on 3 streams (40.0 µs on one, 25.5 on several)" in capsys.readouterr().out
    ok("show", path, "--json")
    told = json.loads(capsys.readouterr().out)["regions"][0]["cuda_graph"]
    assert (told["streams"], told["one_stream_us"], told["forked_us"]) == (3, 40.0, 25.5)
    assert [route["route"] for route in told["inputs"]] == ["copied", "patched", "same_address", "static"]


def test_a_session_is_written_though_nobody_reads_the_summary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def gone(report: Report) -> str:
        raise BrokenPipeError

    monkeypatch.setattr("app.cli.compile.summary", gone)
    wanted = tmp_path / "x.fscope"
    with pytest.raises(BrokenPipeError):
        deliver(transformer_report(), argparse.Namespace(json=False, output=wanted))
    assert open_session(wanted).report.kernels
