"""Inputs that move between replays on a GPU: followed where the graph's nodes tell of every place, else copied."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import pytest

torch = pytest.importorskip("torch")
bindings = pytest.importorskip("cuda.bindings.driver")

from compiler.backend import fusescope  # noqa: E402
from compiler.report import GraphNodeKind  # noqa: E402
from compiler.runtime.buffering import InputUse  # noqa: E402
from compiler.runtime.cuda_graph import GraphedRegion  # noqa: E402
from compiler.runtime.observe import Observer  # noqa: E402

pytestmark = pytest.mark.gpu


@torch.library.custom_op("fusescope_gpu_tests::copied", mutates_args=())
def copied(x: torch.Tensor) -> torch.Tensor:
    return x.clone()


@copied.register_fake
def _(x: torch.Tensor) -> torch.Tensor:
    return torch.empty_like(x)


def compiled_region(function: Callable[..., Any]) -> tuple[Callable[..., Any], list[Any]]:
    """The function as our backend compiles it for graphs, and its graphed regions."""
    regions: list[Any] = []
    options = {"cuda_graph": True, "on_graphed_region": regions.append}
    return torch.compile(function, backend=fusescope, options=options), regions


def test_moved_inputs_are_patched_and_right() -> None:
    regions: list[Any] = []
    options = {"cuda_graph": True, "on_graphed_region": regions.append}
    compiled = torch.compile(lambda a, b: torch.relu(a * b).sum(-1), backend=fusescope, options=options)
    kept = []
    for _ in range(6):
        a, b = torch.randn(64, 256, device="cuda"), torch.randn(64, 256, device="cuda")
        kept += [a, b]
        torch.testing.assert_close(compiled(a, b), torch.relu(a * b).sum(-1))
    facts = regions[0].facts()
    assert [route.route for route in facts.routes] == ["patched", "patched"]
    assert (facts.captures, facts.copied_bytes) == (1, 0)
    shifted = torch.randn(64 * 256 + 1, device="cuda")[1:].view(64, 256)
    torch.testing.assert_close(compiled(shifted, b), torch.relu(shifted * b).sum(-1))


def test_an_input_of_a_library_call_is_copied_from_its_first_move_on() -> None:
    regions: list[Any] = []
    options = {"cuda_graph": True, "on_graphed_region": regions.append}
    compiled = torch.compile(lambda a, b: torch.relu(a @ b), backend=fusescope, options=options)
    b, *kept = [torch.randn(128, 128, device="cuda") for _ in range(6)]
    for a in kept:
        torch.testing.assert_close(compiled(a, b), torch.relu(a @ b))
    (region,) = regions
    assert [route.route for route in region.facts().routes] == ["copied", "same_address"]
    assert region.facts().copied_bytes == 128 * 128 * 4
    for a in kept:
        torch.testing.assert_close(compiled(a, a + 1), torch.relu(a @ (a + 1)))
    assert [route.route for route in region.facts().routes] == ["copied", "copied"]
    assert region.facts().captures == 3
    assert region.facts().recaptures == {"an input moved": 2}


def test_a_copy_of_a_moved_input_is_patched() -> None:
    def function(a: Any, b: Any) -> Any:
        return torch.ops.fusescope_gpu_tests.copied(a) * b + a.sum()

    compiled, regions = compiled_region(function)
    b = torch.randn(64, 256, device="cuda")
    kept = [torch.randn(64, 256, device="cuda") for _ in range(6)]
    for a in (*kept, *kept):
        torch.testing.assert_close(compiled(a, b), function(a, b))
    facts = regions[0].facts()
    assert GraphNodeKind.MEMCPY in {node.kind for node in facts.topology}
    assert [(route.route, route.nodes) for route in facts.routes] == [("patched", 2), ("same_address", 0)]
    assert (facts.captures, facts.copied_bytes, facts.skip_reasons) == (1, 0, [])


def test_a_copy_of_part_of_a_moved_input_is_patched() -> None:
    def function(a: Any) -> Any:
        return torch.ops.fusescope_gpu_tests.copied(a[16:32]) + 1

    compiled, regions = compiled_region(function)
    for a in [torch.randn(64, 256, device="cuda") for _ in range(6)]:
        torch.testing.assert_close(compiled(a), function(a))
    assert (regions[0].facts().captures, regions[0].facts().routes[0].route) == (1, "patched")


def test_a_copy_of_inputs_that_share_memory_is_not_patched() -> None:
    """The address in the copy does not tell whose it is."""

    def function(a: Any, b: Any) -> Any:
        return torch.ops.fusescope_gpu_tests.copied(a) + b.sum()

    compiled, _ = compiled_region(function)
    for whole in [torch.randn(64, 256, device="cuda") for _ in range(6)]:
        torch.testing.assert_close(compiled(whole, whole[:16]), function(whole, whole[:16]))
        other = torch.randn(16, 256, device="cuda")
        torch.testing.assert_close(compiled(whole, other), function(whole, other))


def test_a_fill_of_a_moved_input_is_patched() -> None:
    observer = Observer()

    def run(inputs: Sequence[Any]) -> list[Any]:
        (x,) = inputs
        mark = observer.mark or (lambda region, unit: None)
        mark("inference", "fill")
        stream = torch.cuda.current_stream().cuda_stream
        (code,) = bindings.cuMemsetD32Async(x.data_ptr() + 64, 7, x.numel() - 16, stream)
        assert int(code) == 0
        mark("inference", "copy")
        result = x.clone()
        mark("", "")
        return [result]

    uses = (InputUse("x", (), ("fill", "copy"), traced=True),)
    graphed = GraphedRegion(run, frozenset(), mutated_inputs=frozenset({0}), uses=uses, observer=observer)
    kept = [torch.arange(i, i + 1024, dtype=torch.int32, device="cuda") for i in range(6)]
    for i, x in enumerate(kept):
        expected = torch.arange(i, i + 1024, dtype=torch.int32, device="cuda")
        expected[16:] = 7
        (got,) = graphed([x])
        assert torch.equal(got, expected)
        assert torch.equal(x, expected)
    facts = graphed.facts()
    kinds = {node.kind for node in facts.topology}
    assert kinds == {GraphNodeKind.MEMSET, GraphNodeKind.MEMCPY}
    assert [(route.route, route.nodes) for route in facts.routes] == [("patched", 2)]
    assert facts.captures == 1
