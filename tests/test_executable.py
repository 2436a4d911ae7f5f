"""What a region's kernels may assume of the memory they get: aligned addresses, and writes that reach the caller."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

from compiler.ir import Buffer
from compiler.runtime.executable import ALIGNMENT, Executable, aligned
from tests.graphs import compiled


def on_gpu(tensor: Tensor) -> Buffer:
    """The buffer of an input as a GPU region has it; only those are looked at."""
    device = torch.device("cuda")
    return Buffer("x", tuple(tensor.shape), tuple(tensor.stride()), tensor.dtype, device, "input", "x")


def shifted(*size: int) -> Tensor:
    """A tensor that begins four bytes after an aligned address."""
    x = torch.randn(torch.Size(size).numel() + 1)[1:].reshape(size)
    assert x.data_ptr() % ALIGNMENT
    return x


def test_kernels_see_aligned_copies_of_the_same_layout() -> None:
    seen: list[Tensor] = []

    def call(args: list[Any]) -> tuple[Tensor, ...]:
        seen.extend(args)
        return ()

    straight, crooked = torch.randn(4, 4), shifted(6, 4).t()
    Executable(call, [on_gpu(straight), None, on_gpu(crooked)])([straight, 3, crooked])
    assert seen[0] is straight
    assert seen[2].data_ptr() % ALIGNMENT == 0
    assert seen[2].stride() == crooked.stride()
    assert torch.equal(seen[2], crooked)


@pytest.mark.parametrize("flag", [torch.conj, torch._neg_view])
def test_the_copy_of_what_stands_for_other_numbers_does_so_too(flag: Callable[[Tensor], Tensor]) -> None:
    crooked = flag(torch.view_as_complex(torch.randn(7, 2)[1:]))
    assert crooked.data_ptr() % ALIGNMENT
    copy = aligned(crooked)
    assert (copy.is_conj(), copy.is_neg()) == (crooked.is_conj(), crooked.is_neg())
    assert torch.equal(copy, crooked)


def test_inputs_that_nobody_else_holds_are_freed_in_the_middle() -> None:
    inputs = [torch.randn(4)]
    alive: list[bool] = []

    def call(args: list[Tensor]) -> tuple[Tensor, ...]:
        (first,) = args
        args.clear()
        reference = weakref.ref(first)
        del first
        alive.append(reference() is not None)
        return ()

    Executable(call, [on_gpu(inputs[0])])(inputs)
    assert alive == [False]


def test_writes_into_a_copied_input_reach_the_caller() -> None:
    x, y = shifted(5), shifted(5)
    before_x, before_y = x.clone(), y.clone()

    def call(args: list[Tensor]) -> tuple[Tensor, ...]:
        first, second = args
        args.clear()
        first.add_(1)
        return (second * 2,)

    (result,) = Executable(call, [on_gpu(x), on_gpu(y)], mutated=frozenset({0}))([x, y])
    assert torch.equal(x, before_x + 1)
    assert torch.equal(y, before_y)
    assert torch.equal(result, y * 2)


def test_a_parameter_that_lies_crooked_is_copied_every_time() -> None:
    """A slice of one flat tensor of parameters, say: it does not move, but its values change."""
    parameter = shifted(4)
    run = Executable(lambda args: (args[0] * 1,), [on_gpu(parameter)], static=frozenset({0}))
    for _ in range(3):
        assert torch.equal(run([parameter])[0], parameter)
        parameter.add_(1)


def test_views_that_a_library_call_returns_are_aligned_for_kernels() -> None:
    region, _ = compiled(lambda x: torch.view_as_real(x).relu(), torch.randn(4, dtype=torch.complex64))
    assert "(aligned(ext_view_as_real), " in region.wrapper
    plain, _ = compiled(lambda x: (x @ x).relu(), torch.randn(4, 4))
    assert "aligned(" not in plain.wrapper.partition("def call")[2]


def test_an_input_that_is_returned_is_copied_for_kernels_alone() -> None:
    region, _ = compiled(lambda x: (x.relu(), x[1:]), torch.randn(4, 4))
    assert "(aligned(arg0_1), " in region.wrapper
    assert "return (buf0, reinterpret(arg0_1, (3, 4), (4, 1), 4))" in region.wrapper


def test_what_is_aligned_is_left_alone() -> None:
    x = torch.randn(4)
    assert aligned(x) is x
