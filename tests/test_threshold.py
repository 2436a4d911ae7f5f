"""The number that a threshold's kernels compare with, for tensors of either device."""

from __future__ import annotations

import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx.experimental.proxy_tensor import make_fx

from compiler.ir import Extern, Loop, Op, walk
from compiler.lowering.graph import lower_graph
from compiler.passes.decompositions import decomposition_table
from tests.graphs import TARGET, lowered


@pytest.mark.parametrize(
    ("device", "dtype", "limit"),
    [
        ("cuda", torch.float64, 0.1),
        ("cuda", torch.float16, float(torch.tensor(0.1, dtype=torch.float16))),
        ("cpu", torch.float64, 0.1),
        ("cpu", torch.float16, 0.1),
        ("cpu", torch.int64, 0),
    ],
)
def test_a_threshold_has_the_digits_that_eager_compares_with(device: str, dtype: torch.dtype, limit: float) -> None:
    def function(x: torch.Tensor) -> list[torch.Tensor]:
        return [torch.ops.aten.threshold(x, 0.1, 7)]

    with FakeTensorMode():
        x = torch.empty(4, device=device, dtype=dtype)
        graph = make_fx(function, decomposition_table=decomposition_table())(x)
        (loop,) = lower_graph(graph, TARGET).steps
    assert isinstance(loop, Loop)
    assert [v.args[1].value for v in walk(loop.value) if isinstance(v, Op) and v.name == "le"] == [limit]


def test_a_threshold_that_an_integer_dtype_does_not_reach_is_eagers_to_refuse() -> None:
    (call,) = lowered(lambda x: torch.ops.aten.threshold(x, 300.5, 7), torch.ones(4, dtype=torch.int8)).steps
    assert isinstance(call, Extern)
