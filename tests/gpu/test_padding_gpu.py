"""Misaligned products on a GPU: both ways are timed, and whichever is taken gives eager's numbers and strides."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from compiler.backend import Session, default_target, fusescope
from compiler.ir import Extern
from compiler.kernel_library import KernelLibrary

pytestmark = pytest.mark.gpu


@pytest.mark.parametrize("size", [(4096, 1023, 4095), (64, 1001, 129)])
def test_both_ways_are_timed(size: tuple[int, int, int]) -> None:
    m, k, n = size
    a = torch.randn(m, k, device="cuda", dtype=torch.bfloat16, requires_grad=True)
    b = torch.randn(n, k, device="cuda", dtype=torch.bfloat16, requires_grad=True)
    target = default_target()
    session = Session(target, KernelLibrary(target, binaries=True, texts=False))

    def layer(a: Tensor, b: Tensor) -> Tensor:
        return (a @ b.t()).relu()

    torch._dynamo.reset()
    compiled = torch.compile(layer, backend=lambda gm, inputs: fusescope(gm, inputs, options={"session": session}))
    results = []
    for call in (layer, compiled):
        a.grad = b.grad = None
        output = call(a, b)
        output.float().square().sum().backward()
        results.append([output, a.grad, b.grad])
    for eager, ours in zip(*results, strict=True):
        assert eager is not None
        assert ours is not None
        assert ours.stride() == eager.stride()
        assert (ours.float() - eager.float()).norm() <= 1e-2 * eager.float().norm()
    details = [step.detail for region in session.regions for step in region.steps if isinstance(step, Extern)]
    assert len(details) == 3
    assert all("measured" in detail for detail in details) == (m > 1000), details
