"""Fills of a step that launches kernels as well run as kernels: the same bytes, and a graph without memsets."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch")
bindings = pytest.importorskip("cuda.bindings.driver")

from compiler.report import GraphNodeKind  # noqa: E402
from compiler.runtime import capture, driver  # noqa: E402
from compiler.runtime.observe import Observer  # noqa: E402

pytestmark = pytest.mark.gpu
DEVICE = torch.device("cuda", 0)


def memset(tensor: Any, value: int) -> None:
    """Fill a contiguous tensor's elements of 1, 2 or 4 bytes, as libraries do."""
    fill = {1: bindings.cuMemsetD8Async, 2: bindings.cuMemsetD16Async, 4: bindings.cuMemsetD32Async}
    stream = torch.cuda.current_stream().cuda_stream
    (code,) = fill[tensor.element_size()](tensor.data_ptr(), value, tensor.numel(), stream)
    assert int(code) == 0


@pytest.mark.parametrize(
    ("dtype", "values"),
    [(torch.uint8, (0, 0xFE)), (torch.int16, (0xFFFE, 0x7001)), (torch.int32, (0x80000001, 7))],
)
@pytest.mark.parametrize("size", [1, 5, 4096, 100_003])
def test_memory_is_filled_as_a_memset_does(dtype: Any, values: tuple[int, int], size: int) -> None:
    x = torch.zeros(size + 2, device=DEVICE, dtype=dtype)
    observer = Observer()

    def run() -> Any:
        if observer.mark is not None:
            observer.mark("inference", "extern0")
        results = []
        for value in values:  # two of them beside each other, and one after a kernel
            memset(x[:1], value)
            memset(x[1:-1], value)
            results.append(x.to(torch.float64))
        if observer.mark is not None:
            observer.mark("", "")
        return results

    recording = capture.record(run, device=DEVICE, observer=observer)
    info = torch.iinfo(dtype)
    for _ in range(2):
        x.fill_(3)
        recording.replay()
        for value, result in zip(values, recording.result, strict=True):
            filled = value if value <= info.max else value - (1 << info.bits)
            assert result.tolist() == [float(filled)] * (size + 1) + [3.0]
    nodes = recording.topology()
    assert recording.facts.fills_as_kernels == 4
    assert recording.facts.nodes == len(nodes) == 6
    assert {node.kind for node in nodes} == {GraphNodeKind.KERNEL}
    assert {node.unit for node in nodes} == {"extern0"}
    assert [node.dependencies for node in nodes] == [[], *([number] for number in range(len(nodes) - 1))]


def test_what_no_step_issued_is_as_it_was_captured() -> None:
    x = torch.ones(8, device=DEVICE)

    def run() -> Any:
        memset(x.view(torch.int32), 0)
        return x + 1

    recording = capture.record(run, device=DEVICE)
    kinds = [driver.node_type(node) for node in driver.nodes(recording._graph.raw_cuda_graph())]
    assert driver.MEMSET in kinds
    assert recording.facts.fills_as_kernels == 0
