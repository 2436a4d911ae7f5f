"""The library that a call runs in is named by the target: no GPU of AMD's has cuBLAS or cuDNN."""

from __future__ import annotations

import msgspec
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from compiler.lowering.extern import library_detail, static_reason
from compiler.pipeline import compile_model
from compiler.report import ExternReason
from compiler.targets import resolve
from tests.graphs import capture

pytest.importorskip("triton", reason="kernels are Triton's")


def product_and_convolution(x: Tensor, weight: Tensor, w: Tensor) -> Tensor:
    return F.conv2d(x, weight).relu() @ w


INPUTS = (torch.randn(2, 4, 8, 8), torch.randn(8, 4, 3, 3), torch.randn(6, 16))


@pytest.mark.parametrize("compiler", ["fusescope", "inductor"])
@pytest.mark.parametrize(("target", "names"), [("h100", {"cuBLAS", "cuDNN"}), ("mi300x", {"hipBLAS", "MIOpen"})])
def test_the_library_is_the_vendors(compiler: str, target: str, names: set[str]) -> None:
    report = compile_model(
        product_and_convolution, INPUTS, source="s", target=resolve(target), compiler=compiler
    ).report
    (region,) = report.regions
    assert {call.reason for call in region.extern_calls} == {ExternReason.LIBRARY_IS_FASTER}
    assert {call.detail.partition(": ")[2] for call in region.extern_calls} == names
    others = {"cuBLAS", "cuDNN", "hipBLAS", "MIOpen"} - names
    text = msgspec.json.encode([region.extern_calls, region.refusals]).decode()
    assert not [name for name in others if name in text]


@pytest.mark.parametrize(
    ("target", "dtype", "library"),
    [
        ("h100", torch.float16, "cuDNN"),
        ("h100", torch.float32, "a fused kernel of torch itself"),
        ("mi300x", torch.float16, "AOTriton"),
    ],
)
def test_attention_is_the_vendors_where_it_is(target: str, dtype: torch.dtype, library: str) -> None:
    inputs = tuple(torch.randn(2, 4, 16, 16, dtype=dtype) for _ in range(3))
    report = compile_model(F.scaled_dot_product_attention, inputs, source="s", target=resolve(target)).report
    (call,) = report.regions[0].extern_calls
    assert (call.reason, call.detail) == (ExternReason.LIBRARY_IS_FASTER, f"attention: {library}")


def test_a_layer_of_a_recurrent_network_is_the_librarys() -> None:
    """Its op has an empty result beside the others, for which it was told to be too small to help."""
    inputs = [torch.randn(*size) for size in ((3, 2, 8), (1, 2, 8), (1, 2, 8), (32, 8), (32, 8), (32,), (32,))]
    settings = (True, 1, 0.0, False, False, False)
    with torch.no_grad():
        graph = capture(lambda x, h, c, *weights: list(torch._VF.lstm(x, (h, c), weights, *settings)), *inputs)
    layer = next(n for n in graph.graph.nodes if "rnn" in str(n.target))
    assert static_reason(layer, False, "cpu") == (ExternReason.LIBRARY_IS_FASTER, "a layer of a recurrent network")


def test_on_a_cpu_none_is_named() -> None:
    """torch chooses among several there, by how it was built."""
    graph = capture(lambda x, w: [(x @ w).sort().values], torch.randn(4, 8), torch.randn(8, 8))
    product = next(n for n in graph.graph.nodes if n.target is torch.ops.aten.mm.default)
    order = next(n for n in graph.graph.nodes if n.target is torch.ops.aten.sort.default)
    assert library_detail(product, "cpu") == "a matrix product"
    assert static_reason(product, False, "cpu") == (ExternReason.LIBRARY_IS_FASTER, "a matrix product")
    assert static_reason(order, False, "cpu") is None, "that a CPU's region works on the CPU is no reason"
