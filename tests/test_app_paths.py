"""File names in a report: those of the app and of packages are the same everywhere, the user's stay whole."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from app.sources.files import own_text
from app.worker.paths import make_portable, portable_file, user_sources
from compiler.dynamo.frames import torch_folder
from compiler.report import (
    CudaGraph,
    GraphBreak,
    Kernel,
    Node,
    NodeKind,
    Provenance,
    Region,
    Report,
    SkipReason,
    SourceLine,
)
from compiler.targets import TARGETS

ROOT = Path(__file__).parents[1]
EXAMPLE = str(ROOT / "resources" / "examples" / "softmax.py")
PACKAGE = str(Path(msgspec.__file__))


def test_roots(tmp_path: Path) -> None:
    assert portable_file(EXAMPLE) == "resources/examples/softmax.py"
    assert portable_file(PACKAGE) == "msgspec/__init__.py"
    assert portable_file(pytest.__file__) == "pytest/__init__.py"
    import json

    assert portable_file(json.__file__) == "json/__init__.py"
    mine = str(tmp_path / "model.py")
    assert portable_file(mine) == mine
    assert portable_file("<string>") == "<string>"


def test_a_report_keeps_the_texts_of_the_users_files_only_and_names_all_portably(tmp_path: Path) -> None:
    mine = tmp_path / "model.py"
    mine.write_text("x = 1\n")
    frames = [SourceLine(str(mine), 1), SourceLine(PACKAGE, 2), SourceLine(EXAMPLE, 3), SourceLine("gone.py", 4)]
    node = Node("add", NodeKind.CALL, "aten.add.Tensor", provenance=Provenance(frames))
    graph = CudaGraph(
        skip_reasons=[SkipReason("host_sync", "", source=SourceLine(EXAMPLE, 5)), SkipReason("cpu_op", "")]
    )
    report = Report(
        "fusescope",
        "x",
        TARGETS["h100"],
        regions=[
            Region("r", "inference", [node], cuda_graph=graph, wrapper=f"# {EXAMPLE}:3", fx_text=f"# {PACKAGE}:2")
        ],
        kernels=[Kernel("k", source=f"# {EXAMPLE}:3", irs={"ptx": f'.file 1 "{EXAMPLE}"'})],
        graph_breaks=[GraphBreak("print", SourceLine(EXAMPLE, 6)), GraphBreak("other")],
    )
    report.sources = user_sources(report, {})
    make_portable(report)
    example = "resources/examples/softmax.py"
    assert report.sources == {str(mine): "x = 1\n", example: Path(EXAMPLE).read_text()}
    files = [frame.file for frame in report.regions[0].nodes[0].provenance.frames]
    assert files == [str(mine), "msgspec/__init__.py", example, "gone.py"]
    first, second = report.regions[0].cuda_graph.skip_reasons
    assert first.source is not None
    assert (first.source.file, first.source.line, second.source) == (example, 5, None)
    assert report.graph_breaks[0].source is not None
    assert report.graph_breaks[0].source.file == example
    assert report.regions[0].wrapper == report.kernels[0].source == f"# {example}:3"
    assert report.kernels[0].irs == {"ptx": f'.file 1 "{example}"'}
    assert str(ROOT) not in msgspec.json.encode(report).decode()


def test_torchs_modules_are_kept_where_one_of_them_is_the_model() -> None:
    folder = torch_folder()
    if folder is None:
        pytest.skip("torch is not installed")
    module, other = (str(folder / "nn" / name) for name in ("modules/linear.py", "functional.py"))
    provenance = Provenance([SourceLine(module, 1), SourceLine(other, 1)], exact=False)
    region = Region("r", "inference", [Node("mm", NodeKind.CALL, "aten.mm.default", provenance=provenance)])
    report = Report("fusescope", "x", TARGETS["h100"], regions=[region])
    report.sources = user_sources(report, {})
    make_portable(report)
    assert report.sources == {"torch/nn/modules/linear.py": Path(module).read_text()}
    assert report.regions[0].nodes[0].provenance.frames[0].file == "torch/nn/modules/linear.py"


def test_own_text(tmp_path: Path) -> None:
    large = tmp_path / "generated.py"
    large.write_text("#" * (1 << 21))
    assert own_text(large) is None
    assert own_text(tmp_path / "none.py") is None
    assert own_text(Path(PACKAGE)) is None
