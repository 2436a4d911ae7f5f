"""What library calls return, where it is not what torch said that it would be."""

from __future__ import annotations

import pytest
import torch

from compiler.backend import fusescope
from compiler.errors import CompileError
from compiler.planning.memory import inputs_left_in_place
from compiler.planning.partitions import refused_steps
from compiler.runtime.results import Conform
from tests.graphs import compiled


def test_what_is_as_expected_stays_itself() -> None:
    conform = Conform()
    x = torch.randn(2, 1, 3)
    assert conform(x, (2, 1, 3), (3, 77, 1), torch.float32, "op", True) is x  # a dimension of one element
    assert conform(7, (), (), torch.float32, "op", True) == 7
    assert not conform.differed


@pytest.mark.parametrize("stride", [(3, 1), (1, 2), (0, 1)])
def test_another_layout_or_dtype_becomes_the_expected_one(stride: tuple[int, int]) -> None:
    conform = Conform()
    x = torch.arange(3, dtype=torch.bfloat16).expand(2, 3).clone(memory_format=torch.contiguous_format)
    result = conform(x, (2, 3), stride, torch.float32, "op", True)
    assert conform.differed
    assert result.stride() == stride
    assert torch.equal(result, x.float())


def test_another_size_is_an_error_where_a_kernel_reads_it() -> None:
    x = torch.zeros(3, dtype=torch.uint8)
    assert Conform()(x, (0,), (1,), torch.uint8, "op", False) is x
    with pytest.raises(CompileError, match=r"aten\.op returned a tensor of size \(3,\)"):
        Conform()(x, (0,), (1,), torch.uint8, "aten.op", True)


def test_an_input_that_is_read_by_its_place_in_memory_is_never_copied() -> None:
    """A copy would have other elements between its own, and none before the first."""
    x = torch.randn(4, 6)[:, 1::2]
    region, _ = compiled(lambda x: torch.as_strided_copy(x, (3,), (2,), 0) + x.sum(), x)
    (name,) = region.program.input_names
    assert inputs_left_in_place(region.program) == {name}
    assert f"(aligned({name})" in region.wrapper
    assert [reason.rule for reason in refused_steps(region.steps, region.graph).values()] == ["unsafe_op"]


def test_the_gradient_of_a_fill_at_repeated_positions_is_eagers(fresh_dynamo: None) -> None:
    # torch 2.11 announces for the positions' number what it would be among zeros
    x, value = torch.randn(5, 5, requires_grad=True), torch.tensor(2.0, requires_grad=True)
    rows = torch.tensor([2, 1, 4, 2, 2])

    def filled(x: torch.Tensor, value: torch.Tensor) -> torch.Tensor:
        return x.index_fill(-1, rows, value).sin()

    weight = torch.randn(5, 5)
    run = torch.compile(filled, backend=fusescope)
    found = torch.autograd.grad(run(x, value), (x, value), weight)
    torch.testing.assert_close(found, torch.autograd.grad(filled(x, value), (x, value), weight))
