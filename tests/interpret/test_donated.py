"""Gradients written over saved tensors that nobody else can see, and what is never written over."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from compiler.backend import Session, fusescope
from compiler.ir import TensorRef
from compiler.kernel_library import KernelLibrary
from compiler.region import CompiledRegion
from tests.graphs import TARGET

pytestmark = pytest.mark.usefixtures("fresh_dynamo")

Parameters = list[Tensor]


def trained(function: Callable[..., Any], parameters: Parameters, *inputs: Tensor, **settings: Any) -> CompiledRegion:
    """The backward region, after its results and gradients were found to be eager's, twice."""
    session = Session(TARGET, KernelLibrary(TARGET, binaries=False, texts=False))
    backend = lambda gm, x: fusescope(gm, x, options={"session": session, **settings})  # noqa: E731
    compiled = torch.compile(function, backend=backend)
    for _ in range(2):
        found = [results(call, parameters, *inputs) for call in (compiled, function)]
        torch.testing.assert_close(found[0], found[1], rtol=1e-5, atol=1e-5)
    forward, backward = session.regions
    assert_apart(forward)
    return backward


def results(call: Callable[..., Any], parameters: Parameters, *inputs: Tensor) -> list[Tensor]:
    """Result, gradients of inputs and parameters."""
    mine = [x.detach().clone().requires_grad_() for x in inputs]
    for parameter in parameters:
        parameter.grad = None
    out = call(*mine)
    (out * torch.linspace(-1, 1, out.numel()).reshape(out.shape)).sum().backward()
    kept = out.detach().clone()
    return [kept, *(x.grad for x in (*mine, *parameters) if x.grad is not None)]


def assert_apart(forward: CompiledRegion) -> None:
    """What a forward returns shares memory only where the capture says so: a donated tensor is nobody else's."""
    values = [node.meta["val"] for node in forward.graph.graph.output_node().args[0] if node is not None]
    memory: dict[str, int] = {}
    for ref, value in zip(forward.program.outputs, values, strict=True):
        if isinstance(ref, TensorRef):
            storage = value.untyped_storage()._cdata
            assert memory.setdefault(ref.buffer.name, storage) == storage


def written_over(region: CompiledRegion) -> set[str]:
    """The inputs that kernels write their results over."""
    return {source for source in region.plan.in_place.values() if source in region.plan.given_up}


def test_a_gradient_takes_the_memory_of_what_was_saved_for_it() -> None:
    block = nn.Sequential(nn.Conv2d(3, 4, 3, padding=1, bias=False), nn.BatchNorm2d(4), nn.ReLU())
    region = trained(block, list(block.parameters()), torch.randn(2, 3, 6, 5))
    assert written_over(region) == {"convolution"}
    assert "reinterpret(convolution," in region.wrapper


def test_every_strided_layout_is_written_over_where_it_lies() -> None:
    w = torch.randn(5, 7, requires_grad=True)

    def crossed(x: Tensor) -> Tensor:
        return (x @ w).t().sin().square() @ w.t()

    assert written_over(trained(crossed, [w], torch.randn(7, 5)))


def test_the_callers_tensors_are_not_written_over() -> None:
    w = torch.randn(6, 6, requires_grad=True)

    def returned(x: Tensor) -> Tensor:
        return (x @ w).exp()  # the result itself is saved

    def given(x: Tensor) -> Tensor:
        return x.sin() @ w  # the caller's x is saved

    for function in (returned, given):
        assert not written_over(trained(function, [w], torch.randn(6, 6)))


def test_views_of_the_same_memory_are_not_written_over() -> None:
    """Two saved tensors may be parts of one: what is written over the one would be read by the other."""
    w = torch.randn(6, 12, requires_grad=True)

    def halves(x: Tensor) -> Tensor:
        first, second = (x @ w).chunk(2, 1)
        return (first.sin() @ second.t().cos()) * first.sum() @ second

    region = trained(halves, [w], torch.randn(6, 6))
    storages = [v.untyped_storage()._cdata for v in map(value_of, region.graph.graph.find_nodes(op="placeholder"))]
    for name in written_over(region):
        node = next(n for n in region.graph.graph.nodes if n.name == name)
        assert storages.count(value_of(node).untyped_storage()._cdata) == 1


def value_of(node: torch.fx.Node) -> Tensor:
    value: Tensor = node.meta["val"]
    return value


def test_a_cuda_graph_keeps_what_it_reads() -> None:
    """It runs more than once on the memory of its inputs: to warm up, to be captured, to be replayed."""
    w = torch.randn(6, 6, requires_grad=True)
    function = lambda x: (x @ w).sin() @ w  # noqa: E731
    assert written_over(trained(function, [w], torch.randn(6, 6)))
    torch._dynamo.reset()
    assert not written_over(trained(function, [w], torch.randn(6, 6), cuda_graph=True))


def test_sizes_known_only_at_run_time() -> None:
    w = torch.randn(6, 6, requires_grad=True)
    session = Session(TARGET, KernelLibrary(TARGET, binaries=False, texts=False))
    function = lambda x: (x @ w).sin() @ w  # noqa: E731
    backend = lambda gm, x: fusescope(gm, x, options={"session": session})  # noqa: E731
    compiled = torch.compile(function, backend=backend, dynamic=True)
    for rows in (5, 9, 33):
        x = torch.randn(rows, 6)
        torch.testing.assert_close(results(compiled, [w], x), results(function, [w], x), rtol=1e-5, atol=1e-5)
    assert len(session.regions) == 2
    assert written_over(session.regions[1])


def test_a_backward_that_writes_over_what_was_saved_refuses_to_run_again() -> None:
    w = torch.randn(6, 6, requires_grad=True)
    session = Session(TARGET, KernelLibrary(TARGET, binaries=False, texts=False))
    backend = lambda gm, x: fusescope(gm, x, options={"session": session})  # noqa: E731
    compiled = torch.compile(lambda x: (x @ w).sin() @ w, backend=backend)
    compiled(torch.randn(6, 6)).sum().backward()
    assert written_over(session.regions[1])
    with pytest.raises(RuntimeError, match="donated"):
        compiled(torch.randn(6, 6)).sum().backward(retain_graph=True)


def test_a_graph_that_is_kept_from_the_start_runs_twice() -> None:
    w, x = torch.randn(6, 6, requires_grad=True), torch.randn(6, 6)
    function = lambda x: (x @ w).sin() @ w  # noqa: E731
    session = Session(TARGET, KernelLibrary(TARGET, binaries=False, texts=False))
    compiled = torch.compile(function, backend=lambda gm, x: fusescope(gm, x, options={"session": session}))
    gradients = []
    for call in (compiled, function):
        w.grad = None
        loss = call(x).sum()
        with suppress_refusal():
            loss.backward(retain_graph=True)
            loss.backward()
            gradients.append(w.grad)
    if len(gradients) == 2:
        assert not written_over(session.regions[1])
        torch.testing.assert_close(gradients[0], gradients[1])


@contextlib.contextmanager
def suppress_refusal() -> Iterator[None]:
    """An older torch compiles the backward before it can know that the graph is kept, and then refuses."""
    try:
        yield
    except RuntimeError as error:
        if "donated" not in str(error):
            raise
