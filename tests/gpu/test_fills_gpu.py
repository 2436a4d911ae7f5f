"""Fills of a step that launches kernels as well run as kernels: the same bytes, and a graph without memsets."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch")

from compiler.report import GraphNodeKind  # noqa: E402
from compiler.runtime import capture, driver  # noqa: E402
from compiler.runtime.observe import Observer  # noqa: E402

pytestmark = pytest.mark.gpu


@pytest.mark.parametrize("dtype", [torch.uint8, torch.float32, torch.bool])
@pytest.mark.parametrize("size", [1, 5, 4096, 100_003])
def test_memory_is_filled_as_a_memset_does(dtype: Any, size: int) -> None:
    x = torch.ones(size + 1, device="cuda", dtype=dtype)
    observer = Observer()

    def run() -> Any:
        if observer.mark is not None:
            observer.mark("inference", "extern0")
        x[1:].zero_()
        y = x.to(torch.float64) + 1
        x[:1].zero_()
        z = x.to(torch.float64) + 2
        if observer.mark is not None:
            observer.mark("", "")
        return y, z

    recording = capture.record(run, device=torch.device("cuda", 0), observer=observer)
    for _ in range(2):
        x.fill_(1)
        recording.replay()
        y, z = (value.cpu() for value in recording.result)
        assert y.tolist() == [2.0, *[1.0] * size]
        assert z.tolist() == [2.0] * (size + 1)
        assert not x.any()
    nodes = recording.topology()
    assert recording.facts.fills_as_kernels == 2
    assert {node.kind for node in nodes} == {GraphNodeKind.KERNEL}
    assert {node.unit for node in nodes} == {"extern0"}
    assert [node.dependencies for node in nodes] == [[], *([number] for number in range(len(nodes) - 1))]


def test_what_no_step_issued_is_as_it_was_captured() -> None:
    x = torch.ones(8, device="cuda")
    recording = capture.record(lambda: x.zero_() + 1, device=torch.device("cuda", 0))
    kinds = [driver.node_type(node) for node in driver.nodes(recording._graph.raw_cuda_graph())]
    assert driver.MEMSET in kinds
    assert recording.facts.fills_as_kernels == 0
