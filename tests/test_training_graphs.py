"""Training through torch.compile with a graph for each region, on the CPU with graphs that hold addresses alone."""

from __future__ import annotations

import copy
import gc
import weakref
from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from compiler import backend
from compiler.backend import fusescope
from compiler.runtime.cuda_graph import MAX_MOVES
from compiler.runtime.modes import Iteration, RegionGraphsStep
from compiler.runtime.partitioned import PartitionedRegion
from tests.fake_graphs import AddressRecording, FakeRecorder, graphing_backend

pytest.importorskip("triton", reason="kernels are Triton's")

pytestmark = pytest.mark.usefixtures("fresh_dynamo")


class TwoLayers(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.hidden = nn.Linear(6, 8)
        self.head = nn.Linear(8, 5)


class Breaks(TwoLayers):
    """A network whose loss is a region of its own, which reads a large output of the first."""

    def forward(self, x: Tensor) -> Tensor:
        logits = self.head(torch.tanh(self.hidden(x)))
        torch._dynamo.graph_break()
        return nn.functional.cross_entropy(logits.float(), x.argmax(-1).clamp(max=4))


@pytest.fixture
def graphed(monkeypatch: pytest.MonkeyPatch) -> tuple[Any, list[PartitionedRegion]]:
    return graphing_backend(monkeypatch, FakeRecorder(AddressRecording))


def test_every_region_of_a_training_loop_is_captured_once(graphed: tuple[Any, list[PartitionedRegion]]) -> None:
    own, regions = graphed
    model = Breaks()
    twin = copy.deepcopy(model)
    x = torch.randn(4, 6)
    step = RegionGraphsStep(Iteration(torch.compile(model, backend=own), model, (x,), training=True), regions, None)
    expected = RegionGraphsStep(Iteration(twin, twin, (x,), training=True), [], None)
    for _ in range(5):
        step()
        expected()
        torch.testing.assert_close(step.outputs(), expected.outputs())
        with torch.no_grad():
            for parameter in (*model.parameters(), *twin.parameters()):
                parameter.sub_(0.1)
    facts = [region.facts() for region in regions]
    assert [(one.captures, one.copied_bytes, one.skip_reasons) for one in facts] == [(1, 0, [])] * 4
    assert [region.replays for region in regions] == [4] * 4


class Squashes(TwoLayers):
    """A network whose output is also what its backward needs of the last op."""

    def forward(self, x: Tensor) -> Tensor:
        return torch.sigmoid(self.head(torch.tanh(self.hidden(x))))


def train(call: Any, model: nn.Module, x: Tensor, hold: str, after: Callable[[], object]) -> list[list[Tensor]]:
    """Outputs and gradients of ten steps, and at last what was held: the latest output, or for good that of one."""
    steps: list[list[Tensor]] = []
    kept: list[Tensor] = []
    for number in range(10):
        model.zero_grad(set_to_none=True)
        out = call(x)
        out.square().sum().backward()
        if hold == "latest" or number == 2:
            kept = [out.detach()]
        steps.append([value.clone() for value in (out.detach(), *(p.grad for p in model.parameters()))])
        del out
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.sub_(0.1)
        after()
    return [*steps, kept]


@pytest.mark.parametrize("hold", ["latest", "one for good"])
@pytest.mark.parametrize("kind", [Breaks, Squashes])
def test_who_holds_outputs_gets_copies_and_every_region_is_replayed_again(
    graphed: tuple[Any, list[PartitionedRegion]], kind: type[nn.Module], hold: str
) -> None:
    own, regions = graphed
    model = kind()
    twin = copy.deepcopy(model)
    x = torch.randn(4, 6)
    replays: list[list[int]] = []
    got = train(
        torch.compile(model, backend=own), model, x, hold, lambda: replays.append([r.replays for r in regions])
    )
    torch.testing.assert_close(got, train(twin, twin, x, hold, lambda: None))
    for before, after in pairwise(replays[-4:]):
        assert [count + 1 for count in before] == after
    facts = [region.facts() for region in regions]
    assert {reason.rule for one in facts for reason in one.skip_reasons} == {"kept_outputs", "moved_once"}
    if hold == "latest":  # the call that first found an output held was without a graph, and so was its backward
        assert [one.captures for one in facts] == [1] * len(regions)


@pytest.mark.parametrize(("kind", "size"), [(Breaks, (4, 6)), (Squashes, (4, 6)), (Squashes, (2, 3, 6))])
def test_batches_that_are_elsewhere_at_every_step_are_followed_by_the_backward_too(
    graphed: tuple[Any, list[PartitionedRegion]], kind: type[nn.Module], size: tuple[int, ...]
) -> None:
    """Of the last one the backward gets a view as rows, as every linear layer saves it."""
    own, regions = graphed
    model = kind()
    twin = copy.deepcopy(model)
    compiled = torch.compile(model, backend=own)
    batches = [torch.randn(size) for _ in range(2 * MAX_MOVES)]
    for x in batches:
        for call, parameters in ((compiled, model), (twin, twin)):
            parameters.zero_grad(set_to_none=True)
            call(x).square().sum().backward()
        for ours, theirs in zip(model.parameters(), twin.parameters(), strict=True):
            torch.testing.assert_close(ours.grad, theirs.grad)
    assert [region.replays for region in regions] == [len(batches) - 1] * len(regions)


def test_batches_that_are_saved_in_another_dtype_are_followed(graphed: tuple[Any, list[PartitionedRegion]]) -> None:
    """As where positions are told by turning pairs of numbers, which then are complex ones."""
    own, regions = graphed
    turns = torch.randn(2, 3, dtype=torch.complex64, requires_grad=True)

    def turned(x: Tensor) -> Tensor:
        pairs = torch.view_as_complex(x.view(4, 2, 3, 2))
        return torch.view_as_real(pairs * turns).flatten(2)

    compiled = torch.compile(turned, backend=own)
    batches = [torch.randn(4, 2, 6) for _ in range(6)]
    for x in batches:
        (ours,), (theirs,) = (torch.autograd.grad(call(x).square().sum(), turns) for call in (compiled, turned))
        torch.testing.assert_close(ours, theirs)
        del ours
    # The first move is what tells that a library call reads them.
    assert [region.replays for region in regions] == [len(batches) - 2] * 2


def accumulated(call: Any, batches: list[Tensor]) -> list[Tensor]:
    outputs = []
    for x in batches:
        outputs.append(call(x))
        outputs[-1].square().sum().backward()
    return outputs


def all_forwards_first(call: Any, batches: list[Tensor]) -> list[Tensor]:
    outputs = [call(x) for x in batches]
    for out in outputs:
        out.square().sum().backward()
    return outputs


def twice_through_one_forward(call: Any, batches: list[Tensor]) -> list[Tensor]:
    outputs = []
    for x in batches:
        outputs.append(call(x))
        outputs[-1].sum().backward(retain_graph=True)
        outputs[-1].square().sum().backward()
    return outputs


def packed(call: Any, batches: list[Tensor]) -> list[Tensor]:
    held: list[Tensor] = []

    def pack(saved: Tensor) -> int:
        held.append(saved.clone())
        return len(held) - 1

    with torch.autograd.graph.saved_tensors_hooks(pack, held.__getitem__):
        return all_forwards_first(call, batches)


def looked_at(call: Any, batches: list[Tensor]) -> list[Tensor]:
    held: list[Any] = []

    def pack(saved: Tensor) -> Tensor:
        held.append((saved, saved.clone()))
        return saved

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda saved: saved):
        outputs = accumulated(call, batches)
    for saved, expected in held:
        torch.testing.assert_close(saved, expected)
    return outputs


def checkpointed(call: Any, batches: list[Tensor]) -> list[Tensor]:
    return accumulated(lambda x: checkpoint(call, x, use_reentrant=False), batches)


ORDERS = (accumulated, all_forwards_first, twice_through_one_forward, packed, looked_at, checkpointed)


@pytest.mark.parametrize("kind", [Breaks, Squashes])
def test_saved_tensors_are_safe_in_every_order_of_calls(
    graphed: tuple[Any, list[PartitionedRegion]], kind: type[nn.Module]
) -> None:
    own, regions = graphed
    model = kind()
    compiled = torch.compile(model, backend=own)

    def run(call: Any, order: Callable[[Any, list[Tensor]], list[Tensor]]) -> list[Tensor]:
        torch.manual_seed(1)
        model.zero_grad(set_to_none=True)
        batches = [torch.randn(4, 6, requires_grad=True) for _ in range(3)]
        outputs = order(call, batches)
        grads = [value.grad for value in (*batches, *model.parameters())]
        return [*(out.detach().clone() for out in outputs), *(g.clone() for g in grads if g is not None)]

    with torch._functorch.config.patch(donated_buffer=False):  # else no backward may keep its graph
        for order in (*ORDERS, *ORDERS[::-1]):
            torch.testing.assert_close(run(compiled, order), run(model, order), msg=order.__name__)
    assert all(region.replays for region in regions if region.graphs)


@pytest.mark.parametrize("gradients", [False, True], ids=["inference", "training"])
def test_what_was_compiled_keeps_no_input_of_the_first_call(gradients: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    kept: list[Any] = []
    make = backend.aot_autograd

    def keeping(**settings: Any) -> Any:
        kept.append(settings)  # as AOTAutograd may with what it compiled
        return make(**settings)

    monkeypatch.setattr(backend, "aot_autograd", keeping)
    weight = torch.randn(4, requires_grad=gradients)
    compiled = torch.compile(lambda x: (x * weight).sin(), backend=fusescope)
    x = weight * torch.randn(3, 4)
    alive = weakref.ref(x)
    compiled(x)
    del x
    gc.collect()
    assert kept
    assert alive() is None


def test_gradients_that_are_conjugates_of_their_memory_are_read_as_such(
    graphed: tuple[Any, list[PartitionedRegion]]
) -> None:
    compiled = torch.compile(lambda z: z.sin() * 2, backend=graphed[0])
    gradient = torch.randn(3, 3, dtype=torch.complex64)
    for given in (gradient, gradient, gradient.conj(), gradient):
        z = torch.randn(3, 3, dtype=torch.complex64, requires_grad=True)
        (ours,) = torch.autograd.grad(compiled(z), z, given)
        (theirs,) = torch.autograd.grad(z.sin() * 2, z, given)
        torch.testing.assert_close(ours, theirs)
    assert all(region.replays for region in graphed[1])


@pytest.mark.parametrize(
    "function", [lambda z: (z * z.conj()).real, lambda z: (z @ z.mH).imag, lambda z: z.conj().imag * z.real.exp()]
)
def test_what_is_saved_as_the_conjugates_of_an_input_comes_back_as_them(
    function: Callable[[Tensor], Tensor], graphed: tuple[Any, list[PartitionedRegion]]
) -> None:
    compiled = torch.compile(function, backend=graphed[0])
    for _ in range(3):
        z = torch.randn(3, 3, dtype=torch.complex64, requires_grad=True)
        twin = z.detach().clone().requires_grad_()
        compiled(z).sum().backward()
        function(twin).sum().backward()
        torch.testing.assert_close(z.grad, twin.grad)
    assert sum(region.replays for region in graphed[1]) > 0
