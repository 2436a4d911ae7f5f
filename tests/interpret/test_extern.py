"""Library calls among kernels: what they return is read as what it is."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from compiler.backend import fusescope


def test_statistics_that_torch_announces_in_another_dtype() -> None:
    """torch says that the running statistics come back in float32; they come in the dtype of those given."""

    def step(x: Tensor, *statistics: Tensor) -> list[Tensor]:
        output = torch.ops.aten._batch_norm_with_update(x, *statistics, 0.5, 1e-5)[0]
        return [output + 1, statistics[2] * 2]

    torch.manual_seed(0)
    torch._dynamo.reset()
    x, *statistics = (torch.rand(size).bfloat16() + 0.5 for size in [(4, 5, 6), (5,), (5,), (5,), (5,)])
    run = torch.compile(step, backend=fusescope)
    ours, eager = [t.clone() for t in statistics], [t.clone() for t in statistics]
    for _ in range(3):
        for a, b in zip([*run(x, *ours), *ours], [*step(x, *eager), *eager], strict=True):
            torch.testing.assert_close(a, b)


@pytest.mark.parametrize("row", [[3, 0, -1, 1, 2], [-1, 0, 1, 2, 3], [4, 3, 2, 1, 0], [2, -1, -1, -1, -1]])
def test_targets_end_at_the_first_minus_one(row: list[int]) -> None:
    """torch itself takes this loss apart wrongly while it traces; its rule is set aside, and put back."""
    rule = torch.ops.aten.multilabel_margin_loss_forward.default.py_kernels.get(torch._C.DispatchKey.Autograd)
    torch._dynamo.reset()
    run = torch.compile(F.multilabel_margin_loss, backend=fusescope)
    x, targets = torch.randn(3, 5, requires_grad=True), torch.tensor([row] * 3)
    ours, eager = run(x, targets), F.multilabel_margin_loss(x, targets)
    torch.testing.assert_close(ours, eager)
    torch.testing.assert_close(*(torch.autograd.grad(loss, x)[0] for loss in (ours, eager)))
    assert torch.ops.aten.multilabel_margin_loss_forward.default.py_kernels.get(torch._C.DispatchKey.Autograd) is rule
