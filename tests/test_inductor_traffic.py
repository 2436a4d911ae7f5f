"""What Inductor's kernels move, and what its refusals cost, against sums by hand."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from app.memory_plan import live_bytes
from compiler.inductor.traffic import Access, Touched, disjoint, shared_bytes
from compiler.pipeline import compile_model
from compiler.report import RefusalRule, Region
from compiler.sizes import UNKNOWN_HINT
from compiler.targets import resolve

pytest.importorskip("triton", reason="kernels are Triton's")


def elements(access: Access) -> set[int]:
    assert access.loops is not None
    spaces = [[stride * i for i in range(size)] for stride, size in access.loops]
    return {access.offset + sum(place) for place in itertools.product(*spaces)}


LOOPS = st.lists(st.tuples(st.integers(-6, 12), st.integers(2, 5)), max_size=3).map(lambda found: tuple(sorted(found)))


@given(LOOPS, LOOPS, st.integers(-40, 40), st.booleans())
def test_disjoint_is_certain(one: Any, other: Any, shift: int, same: bool) -> None:
    """Never said of accesses that meet; always said of slices with the same loops that do not."""
    a = Access(math.prod(n for _, n in one), 0, one)
    b = Access(math.prod(n for _, n in other), shift, one if same else other)
    meet = bool(elements(a) & elements(b))
    if disjoint(a, b):
        assert not meet
    if same:
        assert disjoint(a, b) is not meet


def test_halves_of_rows_are_apart_and_windows_are_not() -> None:
    left, right = (Access(128, offset, ((1, 8), (16, 16))) for offset in (0, 8))
    whole = Access(256, 0, ((1, 256),))
    both = Touched(256, 4, (left, right))
    assert both.bytes == 1024, "each half once"
    assert shared_bytes(Touched(256, 4, (left,)), Touched(256, 4, (right,))) == 0
    assert shared_bytes(Touched(256, 4, (left,)), both) == 512
    assert shared_bytes(Touched(256, 4, (left,)), Touched(256, 4, (whole,))) == 512
    window = [Access(14, offset, ((1, 14),)) for offset in range(3)]
    assert Touched(16, 4, tuple(window)).bytes == 14 * 4, "one over another"
    assert Touched(16, 4, (Access(16), Access(16))).bytes == 64, "a library call's, as a whole"


def region_of(function: Callable[..., Any], *inputs: Tensor) -> Region:
    made = compile_model(function, inputs, source="s", target=resolve("h100"), compiler="inductor")
    (region,) = made.report.regions
    return region


def lost_between(region: Region) -> dict[frozenset[str], set[tuple[RefusalRule, int]]]:
    home = {node: unit.name for unit in (*region.groups, *region.extern_calls) for node in unit.nodes}
    found: dict[frozenset[str], set[tuple[RefusalRule, int]]] = {}
    for refusal in region.refusals:
        units = frozenset((home[refusal.a], home[refusal.b]))
        found.setdefault(units, set()).add((refusal.rule, refusal.bytes_lost))
    return found


def test_a_softmax_in_three_kernels() -> None:
    """Rows too long for one kernel: parts of the maximum and the sum, both of them whole, and the quotients."""
    region = region_of(lambda x: x.softmax(-1), torch.randn(64, 200_000))
    if torch.__version__ < "2.12":
        pytest.skip("Inductor makes more than three kernels of it with torch 2.11")
    first, second, third = (group.name for group in region.groups)
    rows = 2 * 64 * 4  # bytes of the maximum and the sum of each row
    x = 64 * 200_000 * 4
    lost = lost_between(region)
    assert {saved for _, saved in lost[frozenset((first, third))]} == {x}, "one reading of x, by either reason"
    # written for the third alone, and read there
    assert lost[frozenset((second, third))] == {(RefusalRule.DOMAIN_MISMATCH, 2 * rows)}
    # two numbers for each part of a row, likewise
    parts = region.groups[1].estimated_bytes - rows
    assert lost[frozenset((first, second))] == {(RefusalRule.DOMAIN_MISMATCH, 2 * parts)}


def test_two_buffers_that_both_kernels_read() -> None:
    def both(x: Tensor, y: Tensor, w: Tensor) -> tuple[Tensor, Tensor]:
        return (x * y) @ w, (x + y).sum(0)

    region = region_of(both, torch.randn(256, 512), torch.randn(256, 512), torch.randn(512, 64))
    size = 256 * 512 * 4
    lost = lost_between(region)
    product = next(group.name for group in region.groups if "mul" in group.nodes)
    sums = next(group.name for group in region.groups if "add" in group.nodes)
    (call,) = region.extern_calls
    assert lost[frozenset((product, sums))] == {(RefusalRule.ACCESS_MISMATCH, 2 * size)}
    assert lost[frozenset((product, call.name))] == {(RefusalRule.EXTERN, 2 * size)}, "written and read for it alone"


def test_two_halves_of_one_buffer_share_nothing() -> None:
    region = region_of(lambda x: (x[:, :64].sin(), x[:, 64:].cos().sum(1)), torch.randn(256, 128))
    (refusal,) = region.refusals
    assert (refusal.rule, refusal.bytes_lost) == (RefusalRule.NO_SHARED_DATA, 0)
    assert "none of its elements in common" in refusal.detail


def test_what_a_rotation_reads_is_both_halves() -> None:
    """Each half is another slice of the input, and all of it is read."""

    def rotated(x: Tensor) -> Tensor:
        return torch.cat((-x[:, 64:], x[:, :64]), 1) + x[:, :1]

    region = region_of(lambda x: (x[:, :64] * x[:, 64:]).sin(), torch.randn(256, 128))
    assert region.groups[0].estimated_bytes == (256 * 128 + 256 * 64) * 4
    (group,) = region_of(rotated, torch.randn(256, 128)).groups
    assert group.estimated_bytes == 2 * 256 * 128 * 4


def test_kernels_around_a_library_call_do_none_of_its_arithmetic() -> None:
    """Both operands are laid out anew for the convolution, and a kernel adds its bias."""
    region = region_of(torch.nn.Conv2d(4, 8, 3).eval(), torch.randn(2, 4, 16, 16))
    first, second, last = region.groups
    (call,) = region.extern_calls
    assert call.estimated_flops == 2 * (2 * 8 * 14 * 14) * (4 * 9)
    assert [group.estimated_flops for group in region.groups] == [0, 0, 0]
    assert [group.rule for group in region.groups] == ["beside_a_call"] * 3
    assert first.reason.startswith("An operand of convolution, copied")
    assert second.reason.startswith("An operand of convolution, copied")
    assert "leaves of convolution, such as a bias" in last.reason


def test_the_second_step_of_a_reduction_is_not_the_whole_of_it() -> None:
    region = region_of(lambda x: x.sum(), torch.randn(1 << 22))
    first, second = region.groups
    assert first.nodes == second.nodes == ["sum_1"]
    assert (first.estimated_flops, second.estimated_flops) == (1 << 22, 0)


def test_a_value_that_is_written_over_in_its_kernel_is_never_stored() -> None:
    """Inductor gives the normalised value's memory to the result: one kernel, one store."""
    layers = (torch.nn.Conv2d(3, 16, 3, 2, 1, bias=False), torch.nn.BatchNorm2d(16), torch.nn.Hardswish())
    second = torch.nn.Conv2d(16, 16, 3, padding=1, bias=False)
    region = region_of(torch.nn.Sequential(*layers, second).eval(), torch.randn(1, 3, 32, 32))
    (group,) = (group for group in region.groups if "clamp_max" in group.nodes)
    assert group.outputs == ["div"]
    assert group.estimated_bytes == (2 * 16 * 16 * 16 + 4 * 16) * 4
    assert sum(buffer.first_use == group.order for buffer in region.memory.buffers) == 1


def test_symbolic_sizes_are_estimated_by_the_example() -> None:
    def double(x: Tensor) -> Tensor:
        return (x * 2).softmax(-1)

    x = torch.randn(70, 330)
    target = resolve("h100")
    report = compile_model(double, (x,), source="s", target=target, compiler="inductor", dynamic=True).report
    (region,) = report.regions
    assert all(symbol.isidentifier() for symbol in region.sizes)
    (group,) = region.groups
    assert sorted(region.sizes.values()) == [70, 330]
    assert group.estimated_bytes == 2 * x.numel() * 4
    assert group.grid[0] >= 1
    assert region.memory.peak_bytes == x.numel() * 4
    assert any("= 70" in note and "= 330" in note for note in report.notes)


def test_what_an_op_writes_into_stays_alive_and_is_read_as_a_whole() -> None:
    """Whoever reads it afterwards knows it by another name, which has no memory of its own."""

    @torch.library.custom_op("fusescope_tests::double", mutates_args={"x"})
    def double(x: Tensor) -> None:
        x.mul_(2)

    def written_into(x: Tensor) -> Tensor:
        y = x.sin()
        double(y)
        return y.cos() * 2

    x = torch.randn(16, 16)
    size = x.numel() * 4
    region = region_of(written_into, x)
    made, last = region.groups
    assert (made.nodes, last.nodes) == (["sin"], ["cos", "mul"])
    assert last.estimated_bytes == 2 * size
    assert [refusal.bytes_lost for refusal in region.refusals] == [2 * size, 2 * size]
    first, second = region.memory.buffers
    assert first.last_use == second.first_use == last.order
    assert region.memory.peak_bytes == 2 * size


def test_a_library_calls_view_is_in_its_operands_memory() -> None:
    """A complex product seen as real numbers, whose sum reads it."""
    x = torch.randn(8, 64, dtype=torch.complex64)
    region = region_of(lambda x: torch.view_as_real(x * x).abs().sum(-1), x)
    (group,) = region.groups
    product, _ = region.memory.buffers
    assert product.node == "mul"
    assert (product.first_use, product.last_use) == (0, group.order)
    assert region.memory.peak_bytes == x.numel() * (8 + 4)


def test_a_kernel_that_writes_over_its_operand_needs_no_memory() -> None:
    region = region_of(torch.nn.Sequential(torch.nn.Linear(64, 64), torch.nn.ReLU()).eval(), torch.randn(8, 64))
    product, result = region.memory.buffers
    assert result.reuses == product.name
    assert region.memory.peak_bytes == live_bytes(region.memory).max() == 8 * 64 * 4
    assert region.memory.total_bytes == 2 * 8 * 64 * 4


def test_a_jagged_tensors_ragged_size_is_no_number() -> None:
    jagged = torch.nested.nested_tensor([torch.randn(2, 3), torch.randn(4, 3)], layout=torch.jagged)
    region = region_of(lambda x: x.sin(), jagged)
    assert [group.nodes for group in region.groups] == [["sin"]]
    assert UNKNOWN_HINT in region.sizes.values()


def test_a_refusal_names_the_units_that_inductor_calls_node1_and_node2() -> None:
    def residual(x: Tensor, w: Tensor) -> Tensor:
        y = x.sin()
        return (y @ w).relu() + y

    region = region_of(residual, torch.randn(64, 64), torch.randn(64, 64))
    (cycle,) = (refusal for refusal in region.refusals if refusal.rule is RefusalRule.CYCLE)
    first, last = region.groups
    assert cycle.detail == f"intermediate nodes between {first.name} & {last.name}"


def test_a_backwards_memory_has_what_the_forward_saved_until_its_last_use() -> None:
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(64, 256), torch.nn.Tanh(), torch.nn.Linear(256, 64))
    x = torch.randn(32, 64, requires_grad=True)
    found = compile_model(model, (x,), source="t", target=resolve("h100"), training=True, compiler="inductor")
    forward, backward = found.report.regions
    assert not any(buffer.saved for buffer in forward.memory.buffers)
    saved = [buffer for buffer in backward.memory.buffers if buffer.saved]
    assert [buffer.name for buffer in saved] == [node.name for node in backward.nodes if node.op == "saved"]
    assert sum(buffer.bytes for buffer in saved) == 32 * 256 * 4, "what tanh returned; inputs are the caller's"
    assert backward.memory.peak_bytes == live_bytes(backward.memory).max() > 32 * 256 * 4
