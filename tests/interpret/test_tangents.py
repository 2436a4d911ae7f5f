"""The gradients that a backward is given are freed at their last use, and stay whole for whoever else looks at them."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.multiprocessing.reductions import StorageWeakRef

from compiler.backend import Session, fusescope
from compiler.kernel_library import KernelLibrary
from compiler.region import tangents_at_the_peak
from tests.graphs import TARGET

pytestmark = pytest.mark.usefixtures("fresh_dynamo", "few_bytes_count")

X = torch.linspace(-2, 2, 12).reshape(3, 4)
A, B = torch.linspace(-1, 2, 20).reshape(4, 5), torch.linspace(2, -1, 10).reshape(5, 2)


@pytest.fixture
def few_bytes_count(monkeypatch: pytest.MonkeyPatch) -> None:
    """Tensors here are small."""
    monkeypatch.setattr("compiler.region.WORTH_A_HOOK", 1)


class Trained:
    """A small perceptron, compiled, and the same in eager.

    ``gone`` says for each step of the last backward whether the gradient of the result was gone when it began.
    """

    def __init__(self) -> None:
        torch.manual_seed(0)
        self.model = nn.Sequential(nn.Linear(4, 8), nn.GELU(), nn.Linear(8, 4, bias=False))
        self.session = Session(TARGET, KernelLibrary(TARGET, binaries=False, texts=False))
        settings = {"session": self.session}
        self.compiled = torch.compile(self.model, backend=lambda gm, x: fusescope(gm, x, options=settings))
        self.gone: list[bool] = []
        self._refs: list[Any] = []
        for _ in range(2):  # the first backward is compiled when it comes
            self.step()

    def step(self, watch: Callable[[Tensor], None] = lambda out: None, **settings: Any) -> list[Tensor]:
        """An iteration; ``watch`` gets the result before the backward."""
        out = self.compiled(X)
        watch(out)
        return self.backward(out, **settings)

    def backward(self, out: Tensor, **settings: Any) -> list[Tensor]:
        """The backward of a compiled result: the parameters' gradients, which are eager's."""
        self._refs.clear()
        self.gone.clear()
        handle = out.register_hook(lambda g: self._refs.append(StorageWeakRef(g.untyped_storage())))
        with self._marking():
            found = list(torch.autograd.grad((out * out).sum(), [*self.model.parameters()], **settings))
        handle.remove()
        reference = self.model(X)
        for mine, theirs in zip(
            found, torch.autograd.grad((reference * reference).sum(), [*self.model.parameters()]), strict=True
        ):
            torch.testing.assert_close(mine, theirs, rtol=1e-5, atol=1e-5)
        return found

    @contextlib.contextmanager
    def _marking(self) -> Iterator[None]:
        def mark(region: str, unit: str) -> None:
            if region == "backward":
                self.gone += [ref.expired() for ref in self._refs]

        self.session.observer.mark = mark
        try:
            yield
        finally:
            self.session.observer.mark = None


def gradient() -> Tensor:
    """That of the result, as eager has it."""
    return 2 * Trained().model(X).detach()


def test_it_is_gone_after_the_last_step_that_reads_it() -> None:
    trained = Trained()
    _, backward = trained.session.regions
    last = max(i for i, step in enumerate(backward.steps) if "tangents_1" in step.reads)
    assert last < len(backward.steps) - 1, "later steps run without it"
    trained.step()
    assert trained.gone == [position > last for position in range(len(backward.steps))]


def test_it_is_held_where_freeing_it_would_lower_nothing() -> None:
    w = torch.ones(4, requires_grad=True)
    session = Session(TARGET, KernelLibrary(TARGET, binaries=False, texts=False))
    call = torch.compile(lambda x: x * w, backend=lambda gm, x: fusescope(gm, x, options={"session": session}))
    call(X).sum().backward()
    _, backward = session.regions
    assert not tangents_at_the_peak(backward, session.library.options)


def test_hooks_of_every_kind_see_it_whole() -> None:
    trained = Trained()
    expected = gradient()
    seen: dict[str, Tensor] = {}

    def watch(out: Tensor) -> None:
        node = out.grad_fn
        assert node is not None
        out.register_hook(lambda g: seen.update(tensor=g))
        node.register_prehook(lambda gs: seen.update(before=gs[0]))
        node.register_hook(lambda _, gs: seen.update(after=gs[0]))

    trained.step(watch)
    assert set(seen) == {"tensor", "before", "after"}
    for name, found in seen.items():
        torch.testing.assert_close(found, expected, msg=name)


@pytest.mark.parametrize("kind", ["before", "after"])
def test_a_hook_of_the_nodes_alone_sees_it_whole(kind: str) -> None:
    trained = Trained()
    expected = gradient()
    seen: list[Tensor] = []

    def watch(out: Tensor) -> None:
        assert out.grad_fn is not None
        if kind == "before":
            out.grad_fn.register_prehook(lambda gs: seen.append(gs[0]))
        else:
            out.grad_fn.register_hook(lambda _, gs: seen.append(gs[0]))

    trained.step(watch)
    torch.testing.assert_close(seen[0], expected)


def test_what_autograd_hands_out_or_keeps_stays_whole() -> None:
    trained = Trained()
    expected = gradient()
    out = trained.compiled(X)
    out.retain_grad()
    (out * out).sum().backward()
    torch.testing.assert_close(out.grad, expected)
    out = trained.compiled(X)
    (found, *_) = torch.autograd.grad((out * out).sum(), [out, *trained.model.parameters()])
    torch.testing.assert_close(found, expected)


def test_a_gradient_of_the_callers_own_stays_whole() -> None:
    trained = Trained()
    own = torch.ones(3, 4)
    trained.compiled(X).backward(own)
    assert torch.equal(own, torch.ones(3, 4))
    trained.compiled(X).backward(torch.ones(()).expand(3, 4))


def test_what_else_the_gradient_goes_to_gets_it_whole() -> None:
    trained = Trained()
    other = torch.zeros(3, 4, requires_grad=True)
    added = trained.compiled(X) + other  # one gradient tensor for both
    added.square().sum().backward()
    torch.testing.assert_close(other.grad, gradient())


def kept_graph() -> tuple[Callable[[Tensor], Tensor], Tensor]:
    """A compiled function of a parameter whose graph may be kept, and the parameter.

    Of what its backward reads only the gradient depends on the parameter.
    """
    w = torch.linspace(-1, 1, 16).reshape(4, 4).requires_grad_()
    session = Session(TARGET, KernelLibrary(TARGET, binaries=False, texts=False))
    call = torch.compile(lambda w: (w @ A) @ B, backend=lambda gm, x: fusescope(gm, x, options={"session": session}))
    with torch._functorch.config.patch(donated_buffer=False):
        call(w).sum().backward(retain_graph=True)
    assert tangents_at_the_peak(session.regions[1], session.library.options)
    return call, w


def test_a_second_backward_of_the_same_graph() -> None:
    call, w = kept_graph()
    loss = call(w).square().sum()
    first = torch.autograd.grad(loss, w, retain_graph=True)
    second = torch.autograd.grad(loss, w)
    torch.testing.assert_close(first, second)
    torch.testing.assert_close(first, torch.autograd.grad((w @ A @ B).square().sum(), w))


def test_gradients_of_gradients_are_refused_as_ever() -> None:
    call, w = kept_graph()
    (found,) = torch.autograd.grad(call(w).square().sum(), w, create_graph=True)
    with pytest.raises(RuntimeError, match="double backward"):
        found.sum().backward()


def test_under_compiled_autograd() -> None:
    trained = Trained()
    expected = trained.step()
    out = trained.compiled(X)
    with torch._dynamo.compiled_autograd._enable(torch.compile(backend="aot_eager", fullgraph=True)):
        (out * out).sum().backward()
    for parameter, theirs in zip(trained.model.parameters(), expected, strict=True):
        torch.testing.assert_close(parameter.grad, theirs, rtol=1e-5, atol=1e-5)
