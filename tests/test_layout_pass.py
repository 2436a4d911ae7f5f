"""The pass that makes convolutions channels-last: the same numbers and output strides, few copies."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from compiler.passes.layout import channels_last, wants_channels_last  # noqa: E402
from compiler.targets import resolve  # noqa: E402
from tests.graphs import capture  # noqa: E402

F = torch.nn.functional
aten = torch.ops.aten


def weight(out: int, into: int, size: int) -> Any:
    return torch.randn(out, into, size, size)


def image(channels: int = 8, side: int = 12) -> Any:
    return torch.randn(2, channels, side, side)


CASES: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
    "two convolutions and what is between": (
        lambda x, a, b: F.conv2d(F.max_pool2d(F.relu(F.conv2d(x, a, padding=1)) * 2, 2), b),
        (image(), weight(16, 8, 3), weight(4, 16, 3)),
    ),
    "flattened": (lambda x, a, w: F.conv2d(x, a).flatten(1) @ w, (image(), weight(4, 8, 3), torch.randn(400, 5))),
    "residual": (lambda x, a: torch.relu(F.conv2d(x, a, padding=1) + x), (image(), weight(8, 8, 3))),
    "grouped": (
        lambda x, a, b: F.conv2d(F.conv2d(x, a), b, groups=8).mean((2, 3)),
        (image(), weight(8, 8, 1), weight(8, 1, 3)),
    ),
    "joined and cut": (
        lambda x, a: torch.cat([F.conv2d(x, a), F.conv2d(x, a).sigmoid()], 1)[:, 1:5],
        (image(), weight(4, 8, 3)),
    ),
    "read through its strides": (
        lambda x, a: F.conv2d(x, a).as_strided((10, 10), (10, 1), 3) + 1,
        (image(), weight(4, 8, 3)),
    ),
    "turned": (lambda x, a: F.conv2d(x, a).permute(0, 2, 3, 1).reshape(200, 4), (image(), weight(4, 8, 3))),
    "heavy weights": (
        lambda x, a, b, c: F.conv2d(F.relu(F.conv2d(x, a, padding=1, stride=(2, 1))), b, c, padding=(1, 0)),
        (torch.randn(2, 64, 3, 4), weight(96, 64, 3) / 24, weight(64, 96, 3) / 30, torch.randn(64)),
    ),
    "heavy weight of one point": (lambda x, a: F.conv2d(x, a) + 1, (torch.randn(1, 256, 1, 1), weight(128, 256, 1))),
    "permuted result": (lambda x, a: F.conv2d(x, a).permute(0, 3, 1, 2), (image(), weight(4, 8, 3))),
}


@pytest.mark.parametrize("name", CASES)
def test_numbers_and_output_strides_stay(name: str) -> None:
    """In float64: what a library sums in another order in another layout is then far below what is allowed."""
    function, inputs = CASES[name]
    inputs = tuple(value.double() for value in inputs)
    graph = capture(function, *inputs)
    rewritten = channels_last(graph)
    rewritten.graph.lint()
    for (was, now), (old, new) in zip(
        zip(graph(*inputs), rewritten(*inputs), strict=True),
        zip(_outputs(graph), _outputs(rewritten), strict=True),
        strict=True,
    ):
        torch.testing.assert_close(now, was)
        assert now.stride() == was.stride()
        assert new.meta["val"].stride() == old.meta["val"].stride() == was.stride()
    for node in rewritten.graph.nodes:
        if node.target is aten.convolution.default:
            assert all(n.meta["val"].is_contiguous(memory_format=torch.channels_last) for n in (*node.args[:2], node))


def _outputs(graph: Any) -> list[Any]:
    return list(graph.graph.output_node().args[0])


def test_only_the_first_convolution_costs_a_copy_of_its_input() -> None:
    function, inputs = CASES["two convolutions and what is between"]
    rewritten = channels_last(capture(function, *inputs))
    copied = [n.args[0] for n in rewritten.graph.nodes if n.target is aten.clone.default]
    placeholders = [n for n in copied if n.op == "placeholder"]
    assert len(placeholders) == 3, "the input and both weights"
    assert len(copied) == 4, "and the result, which is to have the strides that it had"


def test_which_graphs_want_it() -> None:
    target = resolve("h100")
    function, inputs = CASES["residual"]
    half = [value.half() for value in inputs]
    assert wants_channels_last(capture(function, *half), target)
    assert not wants_channels_last(capture(function, *(value.double() for value in inputs)), target)
    assert not wants_channels_last(capture(function, *half), resolve("mi300x"))
    assert not wants_channels_last(capture(lambda x: x + 1, image()), target)
    depthwise = capture(lambda x, a: F.conv2d(x, a, groups=8), image().half(), weight(8, 1, 3).half())
    assert not wants_channels_last(depthwise, target)


def test_a_convolution_with_a_heavy_weight_is_a_product() -> None:
    x, a, b = torch.randn(1, 64, 4, 4), weight(96, 64, 3), weight(64, 96, 3)

    def counted(x: Any) -> list[int]:
        function = lambda x, a, b: F.conv2d(F.conv2d(x, a, padding=1), b, padding=1)  # noqa: E731
        nodes = channels_last(capture(function, x, a, b)).graph.nodes
        return [sum(n.target is target for n in nodes) for target in (aten.convolution.default, aten.mm.default)]

    assert counted(x) == [0, 2]
    assert counted(torch.randn(1, 64, 16, 16)) == [2, 0], "the weight is not much beside the data"
    graph = capture(lambda x, a: F.conv2d(x, a, padding=1, dilation=2), torch.randn(1, 64, 4, 4), a)
    assert any(n.target is aten.convolution.default for n in channels_last(graph).graph.nodes)
