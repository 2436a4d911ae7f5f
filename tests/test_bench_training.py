"""The benchmark of a training iteration's parts, on the CPU with events that tell a clock of their own."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")
sys.path.insert(0, str(Path(__file__).parent / "benchmarks"))

import bench_training  # noqa: E402

from compiler.runtime.modes import Iteration  # noqa: E402


@pytest.fixture
def iteration() -> Iteration:
    layer = torch.nn.Linear(3, 2)
    return Iteration(layer, layer, (torch.randn(4, 3),), training=True)


def test_the_parts_of_an_iteration_are_the_iteration(iteration: Iteration) -> None:
    expected = iteration()
    gradients = [parameter.grad.clone() for parameter in iteration.parameters]
    seen: list[str] = []
    torch.testing.assert_close(bench_training.in_parts(iteration, seen.append), expected)
    assert seen == [*bench_training.PARTS, ""]
    for parameter, gradient in zip(iteration.parameters, gradients, strict=True):
        torch.testing.assert_close(parameter.grad, gradient)


def test_each_part_has_its_time_on_the_gpu(iteration: Iteration, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bench_training, "WARM_CALLS", 1)
    monkeypatch.setattr(bench_training, "CALLS", 3)
    made: list[Event] = []

    class Event:
        def __init__(self) -> None:
            made.append(self)
            self.at_ms = len(made) ** 2 / 1e3

        def elapsed_time(self, end: Event) -> float:
            return end.at_ms - self.at_ms

    found = bench_training.timed_parts(iteration, Event, lambda: None)
    assert list(found) == list(bench_training.PARTS)
    assert len(made) == 4 * 6
    # the median of three iterations is the second that counts, the third in all
    assert [gpu for _, gpu in found.values()] == pytest.approx([2 * n + 1 for n in range(13, 18)])
    assert all(cpu > 0 for cpu, _ in found.values())


def test_functions_are_counted_by_part(iteration: Iteration) -> None:
    calls = bench_training.python_calls(iteration)
    assert set(calls) == set(bench_training.PARTS)
    assert calls["forward"] > 0
    assert sys.getprofile() is None


def test_the_longest_kernels_come_first_and_modes_stand_side_by_side() -> None:
    kernels = [("a", 1.0), ("b", 5.0), ("a", 3.0), *((f"k{n}", 0.1) for n in range(20))]
    found = bench_training.longest(kernels)
    assert found[:2] == [["b", 5.0, 1], ["a", 4.0, 2]]
    assert len(found) == bench_training.LONGEST
    ours = {
        "wall": 12.0,
        "parts": {"forward": [3.0, 4.0]},
        "calls": {"forward": 7},
        "longest": found,
        "note": "4 graphs",
    }
    text = "\n".join(bench_training.table("row", {"regions": ours, "bound": {"note": "failed: x"}}))
    assert "| wall | 12.0 | - |" in text
    assert "| forward: CPU | 3.0 | - |" in text
    assert "| forward: Python calls | 7 | - |" in text
    assert "bound: failed: x" in text
