"""Programs that know nothing of us, run by ``main.py record``."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from app.session import open_session

torch = pytest.importorskip("torch")
MAIN = Path(__file__).resolve().parents[1] / "main.py"

BOTH = """
import sys
import torch

assert __name__ == "__main__" and sys.argv[1:] == ["--name", "a b"]
ours = torch.compile(lambda x: (x.sin() + 1).sum(-1), backend="fusescope")
assert torch.allclose(ours(torch.ones(4, 8)), (torch.ones(4, 8).sin() + 1).sum(-1))
a, b = (torch.ones(4, 4, requires_grad=True) for _ in range(2))
torch.compile(lambda a, b: a @ b)(a, b).backward(torch.ones(4, 4))  # library calls alone: no C++ compiler is waited for
assert torch.equal(a.grad, torch.full((4, 4), 4.0))
print("the program's own output")
raise ValueError("it fails in the end")
"""

WITH_A_COMPILER_OF_ITS_OWN = """
import os
import torch
import compiler

assert compiler.OWN
torch.compile(lambda x: x.cos() * 2, backend="aot_eager")(torch.ones(4))
os._exit(7)
"""


def record(folder: Path, *program: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(MAIN), "record", "-o", "x.fscope", "--", *program]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, env=dict(os.environ))


def test_both_compilers_in_a_program_that_fails(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(BOTH)
    done = record(tmp_path, sys.executable, "train.py", "--name", "a b")
    assert done.returncode == 1
    assert done.stdout == "the program's own output\n"
    assert "ValueError: it fails in the end" in done.stderr
    inductor, ours = (open_session(tmp_path / name).report for name in ("x.fscope", "x-2.fscope"))
    assert [region.name for region in inductor.regions] == ["forward", "backward"]
    assert inductor.target.name == "cpu"
    assert [len(region.extern_calls) for region in inductor.regions] == [1, 2]
    assert all(call.runs_as == "extern_kernels.mm" for x in inductor.regions for call in x.extern_calls)
    assert not any(x.cuda_graph.capturable for x in inductor.regions)
    assert ours.compiler == "fusescope"
    assert [region.name for region in ours.regions] == ["inference"]
    assert (ours.target.name, ours.target.backend) == ("cpu", "cpu"), "what it ran on, not what kernels could be for"
    assert any("ran on the CPU, as captured, op by op" in note for note in ours.notes)
    (kernel,) = ours.kernels
    assert "tl.store" in kernel.source
    assert (kernel.irs, kernel.registers, kernel.estimated_us) == ({}, None, None)
    assert [reason.rule for reason in ours.regions[0].cuda_graph.skip_reasons] == ["cpu_op"]
    assert any("train.py" in name for name in ours.sources)


def test_graphs_of_a_gpu_and_of_the_cpu_are_reports_of_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    from compiler import backend, targets
    from compiler.recording import Recorder

    monkeypatch.setattr(backend, "on_gpu", lambda graph, inputs: inputs == ["on the GPU"])
    monkeypatch.setattr(targets, "local_target", lambda: targets.TARGETS["h200"])
    recorder = Recorder()
    gpu, cpu, again = (recorder.inductor_run(None, [f"on the {place}"]) for place in ("GPU", "CPU", "GPU"))
    assert (gpu.target.name, cpu.target.name) == ("h200", "cpu")
    assert again is gpu


def test_what_cannot_be_watched_is_read_from_the_log(tmp_path: Path) -> None:
    """A program whose package has our name is left alone, and one that ends without a word has torch's log."""
    (tmp_path / "train.py").write_text(WITH_A_COMPILER_OF_ITS_OWN)
    (tmp_path / "compiler.py").write_text("OWN = True\n")
    done = record(tmp_path, sys.executable, "train.py")
    assert done.returncode == 7, done.stderr
    report = open_session(tmp_path / "x.fscope").report
    assert any("package 'compiler' of its own" in note for note in report.notes)
    (region,) = report.regions
    assert [node.op for node in region.nodes] == ["input", "aten.cos.default", "aten.mul.Tensor", "output"]


def test_no_compilation_and_no_program(tmp_path: Path) -> None:
    done = record(tmp_path, "sh", "-c", "exit 5")
    assert done.returncode == 5
    assert "compiled nothing" in done.stderr
    assert record(tmp_path, sys.executable, "-c", "pass").returncode == 1  # there is no session
    assert "There is no program" in record(tmp_path, "no-such-program").stderr
    assert record(tmp_path).returncode == 2
    assert not (tmp_path / "x.fscope").exists()
