"""Misaligned matrix products: which are padded, that numbers and strides stay, and that their readers copy nothing."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from compiler.backend import Session, executable_of, fusescope
from compiler.ir import Extern
from compiler.kernel_library import KernelLibrary
from compiler.passes.padding import pad_products
from compiler.passes.products import Choice, Padding, Product
from compiler.passes.restriding import Restriding
from compiler.region import CompiledRegion, compile_region
from tests.graphs import TARGET, capture, launches

SLOW = msgspec.structs.replace(TARGET, tflops_fp16=1e-6)  # so that the smallest product is bound by arithmetic
A, B, BIAS = torch.randn(24, 13), torch.randn(13, 19), torch.randn(19)


def padded(function: Callable[..., Any], *inputs: Tensor) -> CompiledRegion:
    """The function compiled for the slow target; its numbers and strides are eager's."""
    library = KernelLibrary(SLOW, binaries=False, texts=False)
    graph = capture(function, *inputs)
    region = compile_region(graph, name="inference", kind="inference", target=SLOW, library=library)
    expected = function(*inputs)
    results = executable_of(region, library, frozenset())(list(inputs))
    for result, wanted in zip(results, expected if isinstance(expected, tuple) else (expected,), strict=True):
        torch.testing.assert_close(result, wanted, rtol=2e-2, atol=2e-2)
        assert result.stride() == wanted.stride()
    return region


def paddings(region: CompiledRegion) -> list[str]:
    """What the report says of each product."""
    calls = [step for step in region.steps if isinstance(step, Extern)]
    return [call.detail.partition("; ")[2].partition(" (")[0] for call in calls]


def half(*tensors: Tensor) -> list[Tensor]:
    return [tensor.to(torch.bfloat16) for tensor in tensors]


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_every_dimension_that_is_contiguous_somewhere(dtype: torch.dtype) -> None:
    a, b, bias = (x.to(dtype) for x in (A, B, BIAS))
    assert paddings(padded(torch.mm, a, b)) == ["K 13 padded to 16, N 19 padded to 24"]
    assert paddings(padded(lambda a, b: torch.mm(a, b.t()), a, b.t().contiguous())) == [
        "K 13 padded to 16, N 19 padded to 24"
    ]
    assert paddings(padded(lambda a, b: torch.mm(a.t(), b), b, a[:13])) == ["M 19 padded to 24, N 13 padded to 16"]
    assert paddings(padded(torch.addmm, bias, a, b)) == ["K 13 padded to 16, N 19 padded to 24"]
    for shaped in (a[:, :1] + bias, a[:, :1].clone(), bias[None]):
        padded(lambda c, a, b: torch.addmm(c, a, b, beta=0.5, alpha=2), shaped, a, b)
    assert paddings(padded(torch.bmm, a.reshape(2, 12, 13), torch.stack([b, b]))) == [
        "K 13 padded to 16, N 19 padded to 24"
    ]
    assert paddings(padded(torch.mm, a[:, :8].clone(), b[:8, :16].clone())) == [""]


def test_float32_where_it_may_use_tensor_cores() -> None:
    assert paddings(padded(torch.mm, A, B)) == [""]
    torch.set_float32_matmul_precision("high")
    try:
        assert paddings(padded(torch.mm, A, B)) == ["K 13 padded to 16, N 19 padded to 20"]
    finally:
        torch.set_float32_matmul_precision("highest")


def test_readers_of_a_padded_result_copy_nothing() -> None:
    a, b = half(A, B)

    def chain(a: Tensor, b: Tensor, c: Tensor) -> tuple[Tensor, Tensor]:
        product = torch.mm(a, b).view(2, 12, 19)
        return product.float().softmax(-1), torch.mm(product.view(24, 19).relu(), c)

    region = padded(chain, a, b, torch.randn(19, 8, dtype=torch.bfloat16))
    assert paddings(region) == ["K 13 padded to 16, N 19 padded to 24", "K 19 padded to 24"]
    softmax = next(launch for launch in launches(region) if launch.kernel.domain.r is not None)
    assert "24 * " in softmax.kernel.source  # the row length that it reads
    # the three operands that are inputs, the activation that is written padded, and the softmax
    assert len(launches(region)) == 5


def test_what_needs_the_captured_strides_gets_them() -> None:
    a, b = half(A, B)
    padded(lambda a, b: torch.mm(a, b), a, b)
    padded(lambda a, b: (torch.mm(a, b).view(12, 38) + 1, torch.mm(a, b).t()), a, b)
    padded(lambda a, b: torch.mm(a, b).as_strided((12, 19), (38, 1), 19) * 2, a, b)
    padded(lambda a, b: torch.mm(a, b).sort(-1).values, a, b)


def test_two_products_share_a_padded_operand() -> None:
    """As the gradients of an output layer do: by its weight and by its input, from one gradient."""
    gradient, weight, x = half(torch.randn(24, 19), torch.randn(19, 8), torch.randn(24, 8))

    def backward(gradient: Tensor, weight: Tensor, x: Tensor) -> tuple[Tensor, Tensor]:
        given = gradient.exp()
        return torch.mm(given, weight), torch.mm(given.t(), x)

    region = padded(backward, gradient, weight, x)
    assert paddings(region) == ["K 19 padded to 24", "M 19 padded to 24"]
    assert len(launches(region)) == 2  # exp written with its padding, and the weight


DYNAMIC: dict[str, tuple[Callable[..., Any], tuple[tuple[int | str, ...], ...], list[str]]] = {
    "mm": (lambda a, w, bias: a @ w.t(), (("n", 13), (19, 13), (19,)), ["K 13 padded to 16, N 19 padded to 24"]),
    "classes": (
        lambda a, w, bias: F.linear(a, w, bias).float().log_softmax(-1).view(-1, 19).sum(-1),
        (("n", "m", 13), (19, 13), (19,)),
        ["K 13 padded to 16, N 19 padded to 24"],
    ),
    "attention": (
        lambda q, k, v: torch.softmax((q @ k.mT).float(), -1).to(q.dtype) @ v,
        ((2, "n", 13), (2, "m", 13), (2, "m", 13)),
        ["K 13 padded to 16", "N 13 padded to 16"],
    ),
    "returned": (
        lambda a, w, bias: (F.linear(a, w, bias), F.linear(a, w).transpose(0, 1)),
        (("n", 4, 13), (19, 13), (19,)),
        ["K 13 padded to 16, N 19 padded to 24"] * 2,
    ),
}


@pytest.mark.usefixtures("fresh_dynamo")
@pytest.mark.parametrize("name", DYNAMIC)
def test_sizes_known_only_at_run_time_are_left_as_they_are_and_the_others_padded(name: str) -> None:
    function, sizes, expected = DYNAMIC[name]
    session = Session(SLOW, KernelLibrary(SLOW, binaries=False, texts=False))
    run = torch.compile(function, backend=lambda gm, x: fusescope(gm, x, options={"session": session}))
    for n in (6, 9, 16, 3):
        known = {"n": n, "m": n + 5}
        inputs = [torch.randn([known.get(d, d) for d in size]).to(torch.bfloat16) for size in sizes]
        for x, size in zip(inputs, sizes, strict=True):
            for dim, extent in enumerate(size):
                if isinstance(extent, str):
                    torch._dynamo.mark_dynamic(x, dim)
        results, wanted = run(*inputs), function(*inputs)
        for result, eager in zip(*(x if isinstance(x, tuple) else (x,) for x in (results, wanted)), strict=True):
            torch.testing.assert_close(result, eager, rtol=3e-2, atol=3e-2)
            assert result.stride() == eager.stride()
    (region,) = session.regions
    assert not session.specialized, "one program serves every size"
    assert paddings(region) == expected


@pytest.mark.usefixtures("fresh_dynamo")
def test_what_would_need_a_guard_on_a_size_is_not_padded(monkeypatch: pytest.MonkeyPatch) -> None:
    def asks(self: Any, node: torch.fx.Node, replaced: Any) -> bool:
        return bool(replaced[node.args[0]].meta["val"].shape[0] > 100)

    monkeypatch.setattr(Restriding, "_can_view", asks)
    session = Session(SLOW, KernelLibrary(SLOW, binaries=False, texts=False))
    run = torch.compile(
        lambda a, w: F.linear(a, w).view(-1).relu(),
        backend=lambda gm, x: fusescope(gm, x, options={"session": session}),
    )
    a, w = half(torch.randn(6, 5, 13), torch.randn(19, 13))
    torch._dynamo.mark_dynamic(a, 0)
    torch.testing.assert_close(run(a, w), F.linear(a, w).view(-1).relu(), rtol=3e-2, atol=3e-2)
    (region,) = session.regions
    assert not session.specialized
    assert paddings(region) == [""]


def test_a_choice_is_measured_where_it_can_be() -> None:
    graph = capture(torch.mm, *half(A, B))
    asked: list[Product] = []

    def slower(product: Product, padding: Padding) -> Choice:
        asked.append(product)
        return Choice(padding, 10.0, 12.0, measured=True)

    assert pad_products(graph, SLOW, slower) is graph
    assert [product.mkn for product in asked] == [(24, 13, 19)]
    (node,) = (node for node in graph.graph.nodes if node.target is torch.ops.aten.mm.default)
    assert node.meta["padding"] == "misaligned and left so (measured: 10 µs misaligned, 12 µs padded)"


def test_small_products_are_left_alone() -> None:
    graph = capture(torch.mm, *half(A, B))
    assert pad_products(graph, TARGET) is graph


def test_a_weight_changed_in_place_is_seen() -> None:
    a, b = half(A, B)
    library = KernelLibrary(SLOW, binaries=False, texts=False)
    region = compile_region(capture(torch.mm, a, b), name="r", kind="inference", target=SLOW, library=library)
    run = executable_of(region, library, frozenset())
    run([a, b])
    b.mul_(2)
    torch.testing.assert_close(run([a, b])[0], torch.mm(a, b), rtol=2e-2, atol=2e-2)
