"""The same view of another tensor: in its memory, of any dtype, and of what the memory stands for."""

from __future__ import annotations

from collections.abc import Callable

import pytest

torch = pytest.importorskip("torch")

from torch import Tensor  # noqa: E402

from compiler.runtime.flags import flags, with_flags  # noqa: E402
from compiler.runtime.signature import describe  # noqa: E402
from compiler.runtime.views import view_of  # noqa: E402

VIEWS: dict[str, Callable[[Tensor], Tensor]] = {
    "itself": lambda x: x,
    "transposed": lambda x: x.t(),
    "its end": lambda x: x[2:, 3:],
    "nothing of it": lambda x: x[4:],
    "wider": lambda x: x.view(torch.float64)[1:],
    "narrower": lambda x: x.view(torch.int16)[:, 3::4],
    "bytes": lambda x: x.view(torch.uint8)[1:, 5],
    "complex": lambda x: torch.view_as_complex(x.view(4, 3, 2))[:, 1:],
    "conjugates": lambda x: torch.view_as_complex(x.view(4, 3, 2)).conj().t(),
    "imaginary parts of conjugates": lambda x: torch.view_as_complex(x.view(4, 3, 2)).conj().imag[1],
    "none, in another dtype": lambda x: x.view(torch.int32)[:0],
}
OF_COMPLEX: dict[str, Callable[[Tensor], Tensor]] = {
    "itself": lambda z: z,
    "conjugates": lambda z: z.conj(),
    "real parts": lambda z: z.real,
    "imaginary parts": lambda z: z.imag[1:],
}


def padded(values: Tensor, before: int) -> Tensor:
    """The values in the midst of larger memory."""
    memory = values.new_zeros(before + values.numel() + 4)
    inside = memory[before : before + values.numel()].view(values.shape)
    return inside.copy_(values)


def agree(function: Callable[[Tensor], Tensor], first: Tensor, other: Tensor) -> None:
    view = view_of(function(first), first)
    assert view is not None
    got, expected = view.of(other), function(other)
    assert describe(got) == describe(expected)
    assert torch.equal(got, expected)
    assert got.untyped_storage()._cdata == other.untyped_storage()._cdata
    other.add_(1)
    assert torch.equal(got, expected)
    assert got._version == other._version


@pytest.mark.parametrize("name", VIEWS)
def test_of_real_numbers(name: str) -> None:
    agree(VIEWS[name], torch.randn(4, 6), padded(torch.randn(4, 6), 8))


@pytest.mark.parametrize("name", OF_COMPLEX)
def test_of_conjugates(name: str) -> None:
    first, other = (padded(torch.randn(4, 6, dtype=torch.complex64), n).conj() for n in (0, 3))
    agree(OF_COMPLEX[name], first, other)


def test_there_is_none_of_other_memory() -> None:
    x = torch.randn(4)
    assert view_of(x.clone(), x) is None
    assert view_of(torch.empty(0), torch.empty(0)) is None


@pytest.mark.parametrize("wanted", [(), ("conj",), ("neg",), ("conj", "neg")])
def test_the_same_numbers_under_other_flags(wanted: tuple[str, ...]) -> None:
    z = torch.randn(4, dtype=torch.complex64)
    for given in (z, z.conj(), torch._neg_view(z), torch._neg_view(z.conj())):
        made = with_flags(given, wanted)
        assert flags(made) == wanted
        assert torch.equal(made, given)
