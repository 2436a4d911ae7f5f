"""Views, broadcasting, strides, and the ops that place elements elsewhere or read them at computed positions."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from compiler.ir import Extern
from compiler.report import ExternReason
from tests.graphs import launches
from tests.interpret.checking import check, generated

VIEWS: dict[str, Callable[[Tensor], Tensor]] = {
    "merge": lambda x: x.reshape(8, 60),
    "merge and split": lambda x: x.reshape(16, 3, 10),
    "split oddly": lambda x: x.reshape(15, 32),
    "flatten": lambda x: x.flatten(),
    "permute": lambda x: x.permute(2, 0, 3, 1),
    "permute and merge": lambda x: x.permute(0, 2, 1, 3).reshape(8, 60),
    "transpose, merge, split": lambda x: x.transpose(1, 3).reshape(4, 30, 4).transpose(0, 2),
    "slice": lambda x: x[1:, ::2, -3:, 1::3],
    "negative slice": lambda x: x[-2:, :, :-1],
    "select": lambda x: x[:, 2, -1],
    "unsqueeze": lambda x: x[:, None, ..., None],
    "squeeze": lambda x: x[:1].squeeze(0).unsqueeze(1).squeeze(),
    "expand": lambda x: x[:, :1].expand(-1, 7, -1, -1),
    "chunk": lambda x: x.chunk(3, -1)[1],
    "split": lambda x: x.split([1, 3], 1)[1],
    "unbind": lambda x: x.unbind(2)[3],
    "unflatten": lambda x: x.unflatten(2, (5, 1)),
    "movedim": lambda x: x.movedim(0, -1),
    "diagonal": lambda x: x.diagonal(0, 0, 1),
    "unfold": lambda x: x.unfold(2, 3, 1),
    "as_strided": lambda x: x.contiguous().as_strided((3, 5), (7, 2), 1),
    "as_strided with overlaps": lambda x: x.as_strided((4, 6, 3), (10, 4, 3)),
    "diagonal below": lambda x: x.diagonal(-2, 2, 1),
    "unfold with gaps": lambda x: x.unfold(0, 2, 3).unfold(1, 2, 1),
}


@pytest.mark.parametrize("name", VIEWS)
def test_views_before_and_after_arithmetic(name: str) -> None:
    view = VIEWS[name]
    x = torch.randn(8, 4, 5, 3)
    check(lambda x: [view(x) * 2, view(x + 1), view(x.relu()).sin() + 1, view(x).sum(0)], x)


@pytest.mark.parametrize("name", VIEWS)
def test_a_returned_view_keeps_eagers_strides(name: str) -> None:
    """Callers may rely on strides: what eager returns as a view of fresh memory is laid out the same way."""
    view = VIEWS[name]
    x = torch.randn(8, 4, 5, 3)
    (result,), _ = generated(lambda x: view(x + 1), x)
    assert result.stride() == view(x + 1).stride()


def test_broadcasting_in_every_direction() -> None:
    a, b, c, d = torch.randn(6, 1, 7), torch.randn(5, 1), torch.randn(7), torch.tensor(2.0)
    check(lambda a, b, c, d: [a + b, a * c + d, b - c, (a + b + c) * d, a.expand(6, 5, 7) / b.exp()], a, b, c, d)


def test_inputs_of_any_strides() -> None:
    base = torch.randn(6, 8, 10)
    inputs = [base, base.transpose(0, 2), base[::2, 1::3], base[:, 3:4].expand(6, 8, 10), base.permute(1, 2, 0)]
    check(lambda *xs: [x.sigmoid() + x for x in xs], *inputs)
    check(lambda x, y: x + y, base, torch.randn(10, 8, 6).permute(2, 1, 0))
    check(lambda x, y: (x + y).sum(1), torch.randn(3, 40, 50), torch.randn(3, 50, 40).transpose(1, 2))
    check(lambda x: x + 1, torch.randn(10).as_strided((4, 6), (1, 1)))


def test_a_tiled_transpose() -> None:
    x = torch.randn(70, 130)
    region = check(lambda x, y: x.t().contiguous() * y, x, torch.randn(130, 70))
    assert launches(region)[0].kernel.domain.y is not None


def test_channels_last() -> None:
    x = torch.randn(2, 16, 9, 11).to(memory_format=torch.channels_last)
    bias = torch.randn(16, 1, 1)
    check(lambda x, b: [(x + b).relu(), x.mean((2, 3)), x.contiguous(), F.pad(x, (1, 1))], x, bias)


def test_cat_and_stack() -> None:
    x, y, z = torch.randn(3, 4), torch.randn(5, 4), torch.randn(3, 2)
    check(lambda x, y: torch.cat([x, y.exp(), x * 2]), x, y)
    check(lambda x, z: torch.cat([x, z, z + x[:, :2]], dim=-1), x, z)
    check(lambda x: torch.stack([x, x + 1, x.relu()], dim=1), x)
    check(lambda x, y: torch.cat([x, y]).sum(0), x, y)
    check(lambda x, y: torch.cat([x.half(), y]), x, y)
    check(lambda x: torch.cat([x] * 12), x)
    check(lambda x: torch.cat([torch.zeros(0), x[:0], x]), x)
    check(lambda x: torch.cat([x.softmax(1), x.log_softmax(1)], 1), x)
    check(lambda x: torch.cat((-x[..., 2:], x[..., :2]), -1) * x + x, x)


MANY: dict[str, Callable[[Tensor], Tensor]] = {
    "rows": lambda x: torch.cat([x[: 1 + i % 3] * i for i in range(12)]),
    "columns of several widths": lambda x: torch.cat([x[:, i % 4 :].sin() for i in range(17)], 1),
    "stacked": lambda x: torch.stack([x + i for i in range(9)], 1),
    "of two dtypes": lambda x: torch.cat([x.half() * 2 if i % 2 else x.exp() for i in range(10)], -1),
    "halves": lambda x: torch.cat([(x * i).half() for i in range(11)], -1),
    "of truth": lambda x: torch.cat([x > i / 4 for i in range(11)], 1),
    "from crossed memory": lambda x: torch.cat([x.t() * i for i in range(10)], 1),
    "read once more": lambda x: torch.cat([x + i for i in range(10)], 1).softmax(1),
    "of one piece many times": lambda x: torch.cat([x.cos()] * 20).relu(),
    "laid out by columns": lambda x: torch.cat([x.t()[:, :, None, None].expand(-1, -1, 2, 3) + i for i in range(9)], 1),
}


@pytest.mark.parametrize("name", MANY)
def test_many_pieces_are_written_in_a_few_parts(name: str) -> None:
    """Each loop chooses among a few; no piece lies in memory before it lies in the result."""
    region = check(MANY[name], torch.randn(5, 7))
    assert not [step for step in region.steps if isinstance(step, Extern)]
    stored = {buffer.fx_node for launch in launches(region) for buffer in launch.stored}
    assert stored <= {"cat", region.graph.graph.output_node().args[0][0].name}


def test_channels_last_pieces_and_pieces_of_a_call() -> None:
    x, w = torch.randn(2, 4, 5, 3).to(memory_format=torch.channels_last), torch.randn(3, 3)
    region = check(lambda x: torch.cat([x * i for i in range(9)], 1), x)
    assert launches(region)[-1].stored[0].stride == (540, 1, 108, 36)
    region = check(lambda x, w: torch.cat([x * i for i in range(9)] + [x @ w], 1), x.contiguous(), w)
    assert len(launches(region)) == 2


def test_many_tensors_in_memory_are_one_call() -> None:
    region = check(lambda *x: torch.cat([*x, x[0] * 2]), *(torch.randn(3, 4) for _ in range(30)))
    (call,) = (step for step in region.steps if isinstance(step, Extern))
    assert call.target is torch.ops.aten.cat.default
    assert call.reason is ExternReason.LIBRARY_IS_FASTER


def test_pad() -> None:
    x = torch.randn(3, 5, 6)
    check(
        lambda x: [F.pad(x, (1, 2)), F.pad(x, (0, 1, 2, 0), value=3.0), F.pad(x, (-1, 2)), F.pad(x, (-1, -1, 1, 0))], x
    )
    check(lambda x: F.pad(x.softmax(-1), (2, 2)).exp(), x)
    check(lambda x: F.pad(x, (1, 1)), torch.arange(12).reshape(3, 4))
    check(
        lambda x: [
            F.pad(x, (2, 2), mode="reflect"),
            F.pad(x, (1, 1), mode="replicate"),
            F.pad(x, (1, 1), mode="circular"),
        ],
        x,
    )


def test_flip_roll_repeat() -> None:
    check(lambda x: [x.flip(0) + 1, x.flip(-1).cumsum(0)], torch.tensor(2.0))
    x = torch.randn(3, 5, 6)
    check(lambda x: [x.flip(0), x.flip(1, 2), x.flip(-1) + x], x)
    check(lambda x: [x.roll(1, 0), x.roll((-2, 7), (1, 2)), x.roll(3), x.roll(2, 2) - x], x)
    check(lambda x: [x.repeat(2, 1, 1), x.repeat(2, 1, 3, 1), x[:, :1].repeat(1, 4, 1)], x)
    check(lambda x: [x.repeat_interleave(3, dim=1), x.tile(2, 2)], x)


def test_triangles_and_masks() -> None:
    x = torch.randn(2, 6, 9)
    check(lambda x: [x.tril(), x.triu(1), x.tril(-2), x.triu(-3), (x + 1).tril(2).sum(-1)], x)
    check(lambda x: x.masked_fill(torch.ones(6, 9, dtype=torch.bool).triu(1), float("-inf")).softmax(-1), x)


def test_pieces_put_back() -> None:
    x, piece = torch.randn(4, 6, 8), torch.randn(4, 2, 8)
    check(lambda x, p: [x.slice_scatter(p, 1, 1, 5, 2), x.slice_scatter(p.exp(), 1, -2) * 2], x, piece)
    check(lambda x, p: [x.select_scatter(p[:, 0], 1, 3), x.select_scatter(p[:, :, 5], 2, -1)], x, piece[:, [0] * 6])
    check(lambda x, p: [x[0].diagonal_scatter(p[:, 0, 0], d) for d in (4, -2)], x, piece)
    check(lambda x: x.diagonal_scatter(x[:, 0, :6] * 2, 1, 1, 2).sum((0, 1)), x)
    for source in (piece[:, 0, 0].double() / 3, piece[:, 0, 0].long() + 5):
        narrow = (x[0].half(), x[0].int(), x[0] > 0)
        check(lambda x, i, b, s: [y.diagonal_scatter(s, -2).long() + (y == y) for y in (x, i, b)], *narrow, source)


def test_other_resolutions() -> None:
    x = torch.randn(2, 3, 5, 7)
    for scale, mode in ((2, "nearest"), (0.6, "nearest"), (2, "nearest-exact"), (2, "bilinear"), (1.7, "bilinear")):
        check(lambda x, s=scale, m=mode: F.interpolate(x.sin(), scale_factor=s, mode=m) + 1, x)
    check(lambda x: F.interpolate(x, size=(3, 11), mode="bilinear", align_corners=True), x.half())
    check(lambda x: F.interpolate(x, scale_factor=2, mode="bicubic"), x.double())
    check(lambda x: F.interpolate(x, scale_factor=2, mode="trilinear"), torch.randn(1, 2, 2, 3, 4))


def test_gradients_of_other_resolutions() -> None:
    aten, small = torch.ops.aten, [2, 3, 4, 5]
    for dtype, factors in ((torch.float32, (2, 2)), (torch.float16, (3, 2)), (torch.float64, (1, 5))):
        large = [4 * factors[0], 5 * factors[1]]
        grad = torch.randn(2, 3, *large).to(dtype)
        region = check(lambda g, a=large: aten.upsample_nearest2d_backward(g, a, small, None, None) * 2, grad)
        assert len(launches(region)) == 1
        if factors[0] > 1:
            region = check(lambda g, a=large: aten.upsample_bilinear2d_backward(g, a, small, False, None, None), grad)
            assert len(launches(region)) == 1
    odd = torch.randn(1, 2, 7, 8)
    check(lambda g: aten.upsample_nearest2d_backward(g, [7, 8], [1, 2, 4, 5], None, None), odd)
    check(lambda g: aten.upsample_bilinear2d_backward(g, [7, 8], [1, 2, 4, 5], True, None, None), odd)


def test_creation() -> None:
    x = torch.randn(4, 5)
    check(lambda x: [x + torch.arange(5), torch.arange(2, 12, 3), torch.arange(0, 1, 0.25) * 2], x)
    check(lambda x: [torch.full_like(x, 2.5) + x, x.new_zeros(3) + 1, torch.ones(2, 2), torch.zeros_like(x).int()], x)
    check(
        lambda x: [torch.linspace(0, 1, 7), torch.eye(4, 5) * x, torch.scalar_tensor(3.0) * x, x.new_full((2,), 7)], x
    )
    check(lambda x: [torch.arange(5, 0, -1) + 0, torch.arange(4).half() / 3, torch.empty(0)], x)


def test_indexing() -> None:
    x, rows, columns = torch.randn(7, 5, 3), torch.tensor([0, 6, -1, 3]), torch.tensor([4, -5, 1, 1])
    check(lambda x, i: [x[i], x[:, i % 5], x[..., i % 3, :] if x.dim() > 3 else x[i, 1]], x, rows)
    check(lambda x, i, j: [x[i, j], x[i, :, j % 3], x[:, j, 0], x[i[:, None], j]], x, rows, columns)
    check(lambda x, i: [x.index_select(0, i), x.exp().index_select(0, i.flip(0))], x, rows.abs())
    check(lambda x, i: x[i].sum(0) + x[0], x, rows)
    check(lambda x, i: x.gather(1, i), torch.randn(4, 9), torch.randint(0, 9, (4, 6)))
    check(lambda x, i: x.softmax(1).gather(1, i.argsort(1)).log(), torch.randn(4, 6), torch.randn(4, 6))
    check(lambda x, m: x.masked_select(m), x, x > 0)
    check(lambda x, i: x[i.int()], x, rows)


def test_positions_that_a_reduction_found() -> None:
    """The position is one a row, whatever the row was searched along."""
    x, table = torch.randn(30, 3), torch.randn(16)
    check(lambda x, t: [t[x.argmax(1)], x.argmax(1), t[(x.argmin(1) * 7) % 16] + x.sum(1)], x, table)
    check(lambda x, t: [t[x.argmax(1)], x.gather(1, x.argmax(1, True))], torch.randn(4, 9000), torch.randn(9000))
    check(lambda x, t: torch.cat([t, t])[x.argmax(1) * 9 % 32] + x.sum(1), torch.randn(1, 5), table)
    check(lambda x, t: (t[x.argmax(0, keepdim=True)] * x).softmax(0), torch.randn(16, 40), table)


def test_embedding() -> None:
    table, ids, places = torch.randn(11, 8), torch.randint(0, 11, (2, 5)), torch.arange(5)
    check(lambda t, i, p: F.embedding(i, t) + F.embedding(p, t), table, ids, places)
    check(lambda t, i: F.layer_norm(F.embedding(i, t) * 2, (8,)), table, ids)
    check(lambda t, i: F.embedding(i, t.half()), table, ids)


def test_one_hot_and_comparisons_with_positions() -> None:
    ids = torch.randint(0, 6, (4, 3))
    check(lambda i: F.one_hot(i, 6), ids)
    check(lambda i: (i[..., None] == torch.arange(6)).float(), ids)


def test_rotary_embedding() -> None:
    x, angles = torch.randn(2, 4, 6, 8), torch.randn(6, 8)

    def rotate(x: Tensor, angles: Tensor) -> Tensor:
        first, second = x.chunk(2, dim=-1)
        return x * angles.cos() + torch.cat((-second, first), dim=-1) * angles.sin()

    check(rotate, x, angles)
    check(rotate, x.transpose(1, 2).contiguous().transpose(1, 2), angles)


def test_library_calls_between_kernels() -> None:
    x = torch.randn(4, 6)
    check(lambda x: [*x.sort(1), *x.topk(2), x.cumsum(1) + 1], x)
    check(lambda x: (x.double() @ x.double().t()).relu(), x)
