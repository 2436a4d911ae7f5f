"""Models on the meta device: compiled by both compilers without a value, never run."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from compiler.dynamo.without_values import lacks_values, with_fakes
from compiler.errors import CompileError
from compiler.pipeline import compile_model
from compiler.targets import resolve

pytest.importorskip("triton", reason="kernels are Triton's")


class Tied(nn.Module):
    """Shares a weight, and holds a table as a plain attribute."""

    def __init__(self, width: int) -> None:
        super().__init__()
        self.embed, self.norm = nn.Embedding(1000, width), nn.LayerNorm(width)
        self.head = nn.Linear(width, 1000, bias=False)
        self.head.weight = self.embed.weight
        self.table = torch.arange(16.0)

    def forward(self, ids: Tensor) -> Tensor:
        return self.head(self.norm(self.embed(ids) * self.table[: ids.shape[1], None]).relu())


def on_meta(width: int) -> tuple[nn.Module, tuple[Tensor]]:
    with torch.device("meta"):
        return Tied(width), (torch.zeros(2, 16, dtype=torch.int64),)


@pytest.mark.parametrize("compiler", ["fusescope", "inductor"])
def test_both_compilers_need_no_values(compiler: str) -> None:
    """The weights alone would be 400 GB."""
    model, inputs = on_meta(100_000_000)
    compilation = compile_model(
        model, inputs, source="big", target=resolve("h100"), compiler=compiler, training=compiler == "inductor"
    )
    for region in compilation.report.regions:
        assert region.groups
        assert all(not node.outputs or "meta" not in node.outputs[0].device for node in region.nodes)
    assert not any(kernel.error for kernel in compilation.report.kernels)


def test_sharing_is_kept_and_the_model_left_alone() -> None:
    model, inputs = on_meta(8)
    assert lacks_values(model, inputs)
    copied, (ids,) = with_fakes(model, inputs)
    assert copied.head.weight is copied.embed.weight
    assert copied.table.device.type == ids.device.type == "cpu"
    assert model.head.weight.is_meta
    assert isinstance(copied.head.weight, nn.Parameter)
    assert not lacks_values(nn.Linear(2, 2), (torch.ones(2),))


def test_a_decision_by_value_is_told() -> None:
    def branching(x: Tensor) -> Tensor:
        return x + 1 if x.sum() > 0 else x - 1

    with pytest.raises(CompileError, match="decides by a tensor's value"):
        compile_model(branching, (torch.ones(4, device="meta"),), source="branching", target=resolve("h100"))
