"""The session file: everything comes back without torch, texts are read lazily, a damaged file is one sentence."""

from __future__ import annotations

import json
import math
import os
import stat
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.lazy import LazyTexts
from app.session import SessionError, open_session, save_session
from compiler.report import SCHEMA_VERSION, Measurement, Percentiles, Report
from tests.fake_reports import transformer_report
from tests.fake_runs import lab_report


@pytest.fixture
def report() -> Report:
    made = transformer_report(200, training=True)
    for index, kernel in enumerate(made.kernels):
        kernel.irs = {"ttir": f"module {index} µ", "ptx": ".version 8.7\n" * 500}
    made.sources = {"model.py": "def model(): ...\n"}
    percentiles = Percentiles(1, 2, 3), Percentiles(4, 5, 6)
    samples = {"cpu_samples": [1.0, 2.0], "gpu_samples": [4.0, 5.0]}
    made.measurements = [Measurement("eager", "NVIDIA H200", 2, *percentiles, **samples)]
    return made


@pytest.fixture
def saved(report: Report, tmp_path: Path) -> Path:
    path = tmp_path / "x.fscope"
    save_session(path, report, {"region_0": b"\x00layout"})
    return path


def fault(path: Path) -> SessionError:
    with pytest.raises(SessionError) as caught:
        open_session(path)
    assert "\n" not in caught.value.message
    return caught.value


def rewrite(path: Path, **changed: bytes | None) -> None:
    """Replace members of the zip; None leaves one out. Keys are names with dots and slashes as underscores."""
    with zipfile.ZipFile(path) as archive:
        members = {info.filename: archive.read(info) for info in archive.infolist()}
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in members.items():
            new = changed.get(name.replace(".", "_").replace("/", "_"), data)
            if new is not None:
                archive.writestr(name, new)


def test_everything_comes_back(report: Report, saved: Path) -> None:
    session = open_session(saved)
    assert session.report == report
    assert session.layout("region_0") == b"\x00layout"
    assert session.layout("other") is None
    assert session.manifest.target == report.target.name


def test_saving_leaves_the_report_as_it_was(report: Report, tmp_path: Path) -> None:
    before = msgspec.msgpack.encode(report)
    save_session(tmp_path / "x.fscope", report)
    assert msgspec.msgpack.encode(report) == before


def test_the_same_report_makes_the_same_file(report: Report, saved: Path, tmp_path: Path) -> None:
    again = tmp_path / "again.fscope"
    save_session(again, report, {"region_0": b"\x00layout"})
    assert again.read_bytes() == saved.read_bytes()


def test_an_opened_session_can_be_saved_over_itself(report: Report, saved: Path) -> None:
    session = open_session(saved)
    save_session(saved, session.report)
    assert open_session(saved).report == report


def test_irs_are_read_when_asked_for_even_after_the_file_is_gone(saved: Path) -> None:
    session = open_session(saved)
    saved.unlink()
    irs = session.report.kernels[0].irs
    assert isinstance(irs, LazyTexts)
    assert list(irs) == ["ttir", "ptx"]
    assert irs["ttir"] == "module 0 µ"
    assert irs.get("sass") is None


def test_opening_needs_no_torch(saved: Path) -> None:
    code = "import sys; from app.session import open_session; open_session(sys.argv[1]); print('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code, str(saved)], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"


def test_newer_version(saved: Path) -> None:
    manifest = json.dumps({"format": "fusescope-session", "schema": SCHEMA_VERSION + 1}).encode()
    rewrite(saved, manifest_json=manifest)
    error = fault(saved)
    assert "saved by a newer Fusescope" in error.message
    assert "Update" in error.hint


@pytest.mark.parametrize("kept", [0.02, 0.3, 0.7, 0.999])
def test_truncated(saved: Path, kept: float) -> None:
    data = saved.read_bytes()
    saved.write_bytes(data[: int(len(data) * kept)])
    assert "damaged: it is cut short" in fault(saved).message


def test_not_a_session(tmp_path: Path) -> None:
    path = tmp_path / "x.fscope"
    assert "There is no file" in fault(path).message
    path.write_bytes(b"")
    assert "is empty" in fault(path).message
    path.write_text("hello")
    assert "is not a Fusescope session" in fault(path).message
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("a", "b")
    assert "not a Fusescope session" in fault(path).message
    assert "cannot be read" in fault(tmp_path).message


@pytest.mark.parametrize("name", ["report_msgpack", "regions_0_wrapper_py", "kernels_0_source"])
def test_missing_member(saved: Path, name: str) -> None:
    rewrite(saved, **{name: None})
    assert "is missing" in fault(saved).message


@pytest.mark.parametrize(
    "data", [b"", b"\xff\xff", msgspec.msgpack.encode({"compiler": 3}), b"\x81\xa1x" + b"\x91" * 100_000]
)
def test_damaged_report(saved: Path, data: bytes) -> None:
    rewrite(saved, report_msgpack=data)
    assert "is damaged" in fault(saved).message


def _sample(report: Report, value: float) -> None:
    report.measurements[0].gpu_samples[7] = value


def _unpaired(report: Report, value: float) -> None:
    report.measurements[0].gpu_samples.append(value)


def _warmup(report: Report, value: float) -> None:
    report.measurements[0].warmup_cpu_samples.append(value)


def _percentile(report: Report, value: float) -> None:
    report.measurements[0].cpu_us = Percentiles(1.0, 2.0, value)


def _node(report: Report, value: float) -> None:
    report.regions[0].cuda_graph.topology[3].measured_us = value


def _capture(report: Report, value: float) -> None:
    report.regions[0].cuda_graph.capture_ms = value


def _event(report: Report, value: float) -> None:
    report.traces[0].events[2].duration_us = value


@pytest.mark.parametrize("change", [_sample, _unpaired, _warmup, _percentile, _node, _capture, _event])
@pytest.mark.parametrize("value", [math.nan, math.inf, -1.0])
def test_a_time_that_is_none(tmp_path: Path, change: Callable[[Report, float], None], value: float) -> None:
    report = lab_report(60)
    save_session(tmp_path / "x.fscope", report)
    assert open_session(tmp_path / "x.fscope").report == report
    change(report, value)
    save_session(tmp_path / "x.fscope", report)
    assert "is damaged" in fault(tmp_path / "x.fscope").message


def test_iterations_with_one_time(tmp_path: Path) -> None:
    report = lab_report(60)
    report.measurements[1].gpu_samples.pop()
    save_session(tmp_path / "x.fscope", report)
    assert "an iteration of compiled has only one of its two times" in fault(tmp_path / "x.fscope").message


def test_a_manifest_of_endless_depth(saved: Path) -> None:
    rewrite(saved, manifest_json=b'{"format": "fusescope-session", "schema": 1, "x": ' + b"[" * 100_000)
    assert "is damaged" in fault(saved).message


def test_a_directory_that_asks_for_a_newer_zip(saved: Path) -> None:
    data = bytearray(saved.read_bytes())
    data[data.find(b"PK\x01\x02") + 6] = 153  # version needed to extract: 15.3
    saved.write_bytes(data)
    assert "is damaged" in fault(saved).message


def test_a_compression_that_sessions_do_not_use(saved: Path) -> None:
    with zipfile.ZipFile(saved) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    with zipfile.ZipFile(saved, "w", zipfile.ZIP_LZMA) as archive:
        for name, data in members.items():
            archive.writestr(name, data)
    assert "packed in a way" in fault(saved).message


def test_damaged_ir_is_told_when_it_is_read(saved: Path) -> None:
    with zipfile.ZipFile(saved) as archive:
        info = archive.getinfo("kernels/0/ptx")
    data = bytearray(saved.read_bytes())
    start = info.header_offset + 30 + len(info.filename)
    data[start : start + 4] = b"\xff\xff\xff\xff"
    saved.write_bytes(data)
    irs = open_session(saved).report.kernels[0].irs
    with pytest.raises(SessionError, match="is damaged: kernels/0/ptx"):
        irs["ptx"]


@given(data=st.binary(max_size=200))
def test_any_bytes_are_one_sentence(data: bytes, tmp_path_factory: pytest.TempPathFactory) -> None:
    path = tmp_path_factory.mktemp("bytes") / "x.fscope"
    path.write_bytes(b"PK\x03\x04" + data)
    fault(path)


class TestSaving:
    def test_no_such_folder(self, report: Report, tmp_path: Path) -> None:
        with pytest.raises(SessionError, match="cannot be written: No such file or directory"):
            save_session(tmp_path / "none" / "x.fscope", report)

    def test_a_folder_in_the_way(self, report: Report, tmp_path: Path) -> None:
        with pytest.raises(SessionError, match="cannot be written: it is a folder"):
            save_session(tmp_path, report)

    @pytest.mark.skipif(sys.platform == "win32", reason="no such files there")
    def test_a_device_or_pipe_is_left_alone(self, tmp_path: Path, report: Report) -> None:
        os.mkfifo(tmp_path / "pipe")
        with pytest.raises(SessionError, match="it is no regular file"):
            save_session(tmp_path / "pipe", report)
        assert stat.S_ISFIFO((tmp_path / "pipe").stat().st_mode)

    @pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
    def test_no_permission(self, report: Report, tmp_path: Path) -> None:
        tmp_path.chmod(0o500)
        with pytest.raises(SessionError, match="cannot be written: Permission denied"):
            save_session(tmp_path / "x.fscope", report)

    def test_a_failure_half_way_keeps_the_old_file(
        self, report: Report, saved: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        before = saved.read_bytes()

        def full(*_: object, **__: object) -> None:
            raise OSError(28, "No space left on device")

        monkeypatch.setattr(zipfile.ZipFile, "writestr", full)
        with pytest.raises(SessionError, match="No space left on device"):
            save_session(saved, report)
        assert saved.read_bytes() == before
        assert [path.name for path in saved.parent.iterdir()] == [saved.name]
