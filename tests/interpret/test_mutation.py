"""Writing into inputs, results that share memory with inputs or with each other, and inputs that overlap.

Every function is called twice through torch.compile on arguments whose tensors share memory as the test says; results,
arguments after the calls, and who shares memory with whom are as in eager.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.utils import _pytree as pytree

Arguments = Callable[[], tuple[Any, ...]]


def values(*size: int, dtype: torch.dtype = torch.float32) -> Tensor:
    """Small numbers in a fixed, irregular order."""
    count = int(torch.Size(size).numel())
    return ((torch.arange(count) * 7919 % 31 - 15) / 8).to(dtype).reshape(size)


def agree(function: Callable[..., Any], arguments: Arguments, calls: int = 2, fullgraph: bool = True) -> None:
    """Assert that compiled and eager do the same to the arguments and return the same."""
    torch._dynamo.reset()
    compiled = torch.compile(copy.deepcopy(function), backend="fusescope", fullgraph=fullgraph)
    mine, theirs = arguments(), arguments()
    for _ in range(calls):
        results, expected = _tensors(compiled(*mine)), _tensors(function(*theirs))
        assert [r.stride() for r in results] == [e.stride() for e in expected]
        for ours, eager in zip([*results, *_tensors(mine)], [*expected, *_tensors(theirs)], strict=True):
            torch.testing.assert_close(ours, eager, rtol=1e-5, atol=1e-5, equal_nan=True)
        assert _sharing(results, _tensors(mine)) == _sharing(expected, _tensors(theirs))


def _tensors(tree: Any) -> list[Tensor]:
    return [x for x in pytree.tree_leaves(tree) if isinstance(x, Tensor)]


def _sharing(results: list[Tensor], inputs: list[Tensor]) -> list[list[int]]:
    tensors = [*inputs, *results]
    return [
        [i for i, other in enumerate(tensors) if other.untyped_storage()._cdata == x.untyped_storage()._cdata]
        for x in tensors
    ]


# --- writing into inputs -------------------------------------------------------------------------------------------


def test_reads_before_a_write_see_the_old_value() -> None:
    def function(x: Tensor) -> Tensor:
        before = x * 2
        x.add_(1)
        return before + x

    agree(function, lambda: (values(5, 3),))


def test_two_inputs_swapped() -> None:
    def function(a: Tensor, b: Tensor) -> None:
        kept = a.clone()
        a.copy_(b)
        b.copy_(kept)

    agree(function, lambda: (values(4), values(4) + 1))


@pytest.mark.parametrize(
    "moved",
    [
        lambda x: x.flip(0),
        lambda x: x.t() + 1,
        lambda x: x.roll(1, 0) + x,
        lambda x: x - x.sum(0),
        lambda x: x.softmax(1),
        lambda x: torch.cat([x[1:], x[:1]]),
        lambda x: x[0].expand(4, 4),
        lambda x: x[x[0].abs().long() % 4],
        lambda x: x @ x,
        lambda x: x.amax(),
    ],
)
def test_an_input_is_written_with_what_stood_elsewhere_in_it(moved: Callable[[Tensor], Tensor]) -> None:
    def function(x: Tensor) -> Tensor:
        x.copy_(moved(x))
        return x * 2

    agree(function, lambda: (values(4, 4),))


def test_two_inputs_are_written_with_each_others_old_values() -> None:
    def function(a: Tensor, b: Tensor) -> tuple[Tensor, Tensor]:
        old = a * 2
        a.add_(b)
        b.mul_(old.flip(0))
        a.sub_(b.sum())
        return old + a, b[1:]

    agree(function, lambda: (values(4, 4), values(4, 4) + 1))


def test_a_slice_is_moved_within_its_input() -> None:
    def function(x: Tensor) -> Tensor:
        x[1:] = x[:-1].clone()
        x[:, 0] = x[:, -1]
        return x.sum(0)

    agree(function, lambda: (values(5, 4),))


def test_a_chain_of_writes_through_views_of_views() -> None:
    def function(x: Tensor) -> Tensor:
        x.view(2, 3, 4).transpose(0, 2)[1:].add_(1)
        x.flatten()[::5].mul_(3)
        x.t()[0].zero_()
        return x.sum(0)

    agree(function, lambda: (values(6, 4),))


def test_writes_into_views_of_an_intermediate() -> None:
    def function(x: Tensor) -> tuple[Tensor, Tensor]:
        y = x + 1
        top, rest = y[0], y[1:].t()
        top.mul_(2)
        rest.sub_(top.unsqueeze(1))
        return y, rest.amax(0)

    agree(function, lambda: (values(4, 3),))


def test_writes_into_a_slice_and_by_index() -> None:
    def function(x: Tensor, i: Tensor) -> Tensor:
        x[:, 1:3] = x[:, :2] * 2
        x[i] = 5
        x[i, 0] += 1
        return x * 2

    agree(function, lambda: (values(5, 4), torch.tensor([3, 1])))


@pytest.mark.parametrize(
    "write",
    [
        lambda x, i: x.index_add_(0, i, x[: len(i)] + 1),
        lambda x, i: x.index_copy_(0, i, x[: len(i)] + 1),
        lambda x, i: x.index_fill_(0, i, -1.0),
        lambda x, i: x.index_put_((i,), x[0] * 2, accumulate=True),
        lambda x, i: x.scatter_(0, i.unsqueeze(1), 9.0),
        lambda x, i: x.scatter_add_(0, i.unsqueeze(1).expand(-1, x.shape[1]), x[: len(i)] * 2),
        lambda x, i: x.masked_fill_(x > 0, 0.25),
        lambda x, i: x.clamp_(-0.5, 0.5),
        lambda x, i: x.copy_(i.sum()),
        lambda x, i: x[1:].copy_(0.75),
        lambda x, i: x.fill_diagonal_(3.0),
        lambda x, i: x.cumsum_(0),
        lambda x, i: x.tril_(),
        lambda x, i: x.addmm_(x + 1, x.t() @ x),
        lambda x, i: x.relu_().sqrt_(),
        lambda x, i: x.pow_(2).neg_(),
        lambda x, i: x.div_(3, rounding_mode="floor"),
        lambda x, i: x.lerp_(x.flip(0), 0.25),
    ],
)
def test_an_op_that_writes_into_an_input(write: Callable[[Tensor, Tensor], Any]) -> None:
    def function(x: Tensor, i: Tensor) -> Tensor:
        read = x + 1
        write(x, i)
        return read * x

    agree(function, lambda: (values(3, 3), torch.tensor([2, 0])))


def test_inputs_that_are_written_need_not_be_contiguous() -> None:
    def function(a: Tensor, b: Tensor, c: Tensor) -> Tensor:
        a.mul_(2)
        b.add_(a.sum())
        c.sub_(b[0, 0])
        return a.sum() + b.sum() + c.sum()

    agree(
        function,
        lambda: (
            values(4, 6).t(),
            values(5, 8)[1::2, ::3],
            values(2, 3, 4, 4).to(memory_format=torch.channels_last),
        ),
    )


def test_whole_numbers_and_booleans_are_written() -> None:
    def function(steps: Tensor, seen: Tensor, small: Tensor) -> Tensor:
        steps += 1
        seen |= steps > 3
        small.add_(250)
        small.bitwise_xor_(3)
        return steps * 2

    agree(
        function,
        lambda: (torch.tensor([1, 3, 9]), torch.tensor([True, False, False]), torch.tensor([1, 9], dtype=torch.uint8)),
        calls=3,
    )


def test_scalars_and_empty_tensors_are_written() -> None:
    def function(counter: Tensor, nothing: Tensor) -> tuple[Tensor, Tensor]:
        counter.add_(1)
        nothing.mul_(2)
        return counter + 1, nothing.sum()

    agree(function, lambda: (torch.tensor(3.0), torch.empty(0, 4)))


def test_a_write_of_another_dtype_and_size() -> None:
    def function(x: Tensor, y: Tensor) -> Tensor:
        x.copy_(y)
        return x + y

    agree(function, lambda: (values(3, 4, dtype=torch.bfloat16), values(4, dtype=torch.float64)))


def test_an_input_whose_size_is_changed() -> None:
    def function(x: Tensor, y: Tensor) -> Tensor:
        x.unsqueeze_(0)
        y.t_()
        return x + 1

    agree(function, lambda: (values(3, 4), values(2, 5)), calls=1, fullgraph=False)


# --- sharing memory ------------------------------------------------------------------------------------------------


def test_results_that_are_views_of_inputs() -> None:
    def function(x: Tensor, y: Tensor) -> tuple[Tensor, ...]:
        return x, x[1:], x.t(), x.flatten()[2:7:2], x.unsqueeze(0).expand(3, -1, -1), y + 1

    agree(function, lambda: (values(4, 5), values(2)))


def test_results_that_are_views_of_each_other() -> None:
    def function(x: Tensor) -> tuple[Tensor, ...]:
        y = x * 2
        return y, y.t(), y[1:, ::2], y.t()[0], y

    agree(function, lambda: (values(4, 5),))


def test_a_view_of_a_written_input_is_returned() -> None:
    def function(x: Tensor) -> tuple[Tensor, Tensor]:
        x.mul_(2)
        return x[1:], x.flatten()

    agree(function, lambda: (values(4, 5),))


def test_as_complex_and_as_other_bits() -> None:
    def function(x: Tensor, y: Tensor) -> tuple[Tensor, ...]:
        return torch.view_as_complex(x), x.view(torch.int32), y.view(torch.int16), x.view(torch.uint8)[0] + 1

    agree(function, lambda: (values(3, 2), values(3, 4, dtype=torch.bfloat16)))


def test_one_tensor_given_twice() -> None:
    def function(a: Tensor, b: Tensor) -> Tensor:
        a.add_(1)
        return a * b

    def arguments() -> tuple[Tensor, Tensor]:
        x = values(4, 3)
        return x, x

    agree(function, arguments)


def test_overlapping_inputs_of_which_one_is_written() -> None:
    def function(a: Tensor, b: Tensor) -> Tensor:
        a.add_(1)
        b.mul_(2)
        return a.sum() + b

    def arguments() -> tuple[Tensor, Tensor]:
        base = values(20)
        return base[:12], base[6:18]

    agree(function, arguments)


def test_the_rest_of_a_buffer_stays_as_it_is() -> None:
    base = values(6, 6)
    torch._dynamo.reset()
    compiled = torch.compile(lambda x: x.zero_(), backend="fusescope", fullgraph=True)
    compiled(base[1:3, 2:4])
    expected = values(6, 6)
    expected[1:3, 2:4] = 0
    assert torch.equal(base, expected)


def test_inputs_whose_elements_share_memory_are_read() -> None:
    def function(windows: Tensor, row: Tensor, number: Tensor) -> tuple[Tensor, Tensor]:
        return (windows * row).sum(1) + number, windows.amax() + row

    def arguments() -> tuple[Tensor, ...]:
        base = values(12)
        return base.unfold(0, 4, 1), base[:4].expand(9, 4), base[3].expand(9)

    agree(function, arguments)


def test_the_base_of_an_expanded_input_is_written() -> None:
    def function(wide: Tensor, base: Tensor) -> Tensor:
        before = wide * 2
        base.add_(1)
        return before + wide

    def arguments() -> tuple[Tensor, Tensor]:
        base = values(1, 4)
        return base.expand(3, 4), base

    agree(function, arguments)


def test_results_keep_channels_last_and_other_orders() -> None:
    def function(x: Tensor, y: Tensor) -> tuple[Tensor, ...]:
        return x.relu(), x + y[0], x.sum(1, keepdim=True), torch.cat([x, x], 1), y.permute(2, 0, 1) * 2, x.clone()

    agree(
        function,
        lambda: (values(2, 4, 3, 5).to(memory_format=torch.channels_last), values(2, 5, 3).permute(0, 2, 1)),
    )


# --- what models do ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("momentum", [0.1, None])
def test_batch_norm_keeps_running_statistics(momentum: float | None) -> None:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4, momentum=momentum), nn.ReLU())
    ours, eager = copy.deepcopy(model), model
    torch._dynamo.reset()
    compiled = torch.compile(ours, backend="fusescope", fullgraph=momentum is not None)  # else it reads a count back
    for step in range(3):
        x = values(2, 3, 6, 6) + step
        compiled(x).sum().backward()
        eager(x).sum().backward()
    for (name, a), b in zip(ours.state_dict().items(), eager.state_dict().values(), strict=True):
        torch.testing.assert_close(a, b, msg=lambda text, name=name: f"{name}: {text}")
    assert int(ours[1].num_batches_tracked) == 3
    for a, b in zip(ours.parameters(), eager.parameters(), strict=True):
        torch.testing.assert_close(a.grad, b.grad, rtol=1e-4, atol=1e-4)
    torch._dynamo.reset()
    compiled = torch.compile(ours.eval(), backend="fusescope", fullgraph=True)
    torch.testing.assert_close(compiled(x), eager.eval()(x))


class Cached(nn.Module):
    """Attention of one token over a cache that it writes itself into."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("keys", torch.zeros(2, 3, 8, 4))
        self.register_buffer("values", torch.zeros(2, 3, 8, 4))

    def forward(self, x: Tensor, position: Tensor) -> Tensor:
        self.keys[:, :, position] = x
        self.values.index_copy_(2, position, x * 2)
        seen = torch.arange(8) <= position
        scores = (x @ self.keys.transpose(-1, -2)).masked_fill(~seen, float("-inf"))
        return scores.softmax(-1) @ self.values


def test_a_key_value_cache_is_written() -> None:
    ours, eager = Cached(), Cached()
    torch._dynamo.reset()
    compiled = torch.compile(ours, backend="fusescope", fullgraph=True)
    with torch.no_grad():
        for step in range(4):
            x, position = values(2, 3, 1, 4) + step, torch.tensor([step])
            torch.testing.assert_close(compiled(x, position), eager(x, position))
    assert torch.equal(ours.keys, eager.keys)
    assert torch.equal(ours.values, eager.values)


def test_parameters_are_stepped_in_place() -> None:
    def function(parameters: list[Tensor], momenta: list[Tensor], gradients: list[Tensor]) -> None:
        for p, m, g in zip(parameters, momenta, gradients, strict=True):
            m.mul_(0.9).add_(g, alpha=0.1)
            p.addcdiv_(m, g.abs() + 1, value=-0.5)

    agree(
        function,
        lambda: ([values(4, 3), values(5)], [values(4, 3), values(5)], [values(4, 3) + 1, values(5) + 1]),
        calls=3,
    )


def test_a_buffer_is_written_while_gradients_flow() -> None:
    def step(x: Tensor, weight: Tensor, seen: Tensor) -> Tensor:
        y = torch.tanh(x * weight)
        with torch.no_grad():
            seen.lerp_(y.mean(0), 0.5)
        return (y * seen).sum()

    compiled = torch.compile(step, backend="fusescope", fullgraph=True)
    torch._dynamo.reset()
    kept = []
    for function in (compiled, step):
        weight, seen = values(4).requires_grad_(), torch.ones(4)
        for _ in range(2):
            function(values(3, 4), weight, seen).backward()
        kept.append((weight.grad, seen))
    torch.testing.assert_close(kept[0], kept[1])


def test_a_written_input_takes_part_in_gradients() -> None:
    def step(x: Tensor, weight: Tensor) -> Tensor:
        y = x * 1
        y.mul_(weight)
        y[0].exp_()
        return y.square().sum()

    torch._dynamo.reset()
    compiled = torch.compile(step, backend="fusescope", fullgraph=True)
    found = []
    for function in (compiled, step):
        x, weight = values(3, 4).requires_grad_(), values(4).requires_grad_()
        found.append(torch.autograd.grad(function(x, weight), (x, weight)))
    torch.testing.assert_close(found[0], found[1])
