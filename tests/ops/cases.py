"""What the suite runs: an operator of op_db, one of its sample inputs, a dtype, and a way of calling it."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.testing._internal.common_methods_invocations import op_db
from torch.testing._internal.common_utils import noncontiguous_like
from torch.utils import _pytree as pytree

from tests.ops.tables import special_numbers_mean_nothing

LOOKED_AT = 8  # samples among which one is chosen that shows most in a certain way


@dataclass(frozen=True)
class Case:
    """One call. ``way``:

    "forward"   the inference graph
    "backward"  the training graphs, outputs and gradients
    "inplace"   the in-place variant, which writes into its first input
    "strided"   "forward" with inputs that are not contiguous
    "special"   "forward" with NaN, infinities, zeros of both signs and very large and small numbers among the inputs
    "dynamo"    "forward" through torch.compile, where the other ways hand AOTAutograd the call itself
    """

    op: Any
    dtype: torch.dtype
    number: int
    way: str
    sample: Any
    device: str = "cpu"

    def __str__(self) -> str:
        return f"{self.op.formatted_name}[{str(self.dtype)[6:]}, sample {self.number}, {self.way}]"


@dataclass(frozen=True)
class Call:
    """A case as a function from tensors to a list of its results, and the tensors."""

    function: Callable[..., list[Any]]
    tensors: list[Tensor]


def operators() -> dict[str, Any]:
    """Every operator by its name."""
    return {op.formatted_name: op for op in op_db}


def dtypes_of(op: Any, device: str) -> list[torch.dtype]:
    """float32, a half float, int64 and bool as far as the operator takes them; if none, the first that it takes."""
    taken = op.supported_dtypes(device)
    half = next((d for d in (torch.bfloat16, torch.float16) if d in taken), None)
    wanted = [d for d in (torch.float32, half, torch.int64, torch.bool) if d in taken]
    return wanted or sorted(taken, key=str)[:1]


def cases_of(op: Any, device: str, samples: int) -> Iterator[Case]:
    """The operator's cases: the first sample of every dtype, then the other ways of calling it, then the second, …"""
    streams = [_cases_by_sample(op, device, dtype, samples) for dtype in dtypes_of(op, device)]
    for row in itertools.zip_longest(*streams, fillvalue=()):
        yield from itertools.chain.from_iterable(row)


def _cases_by_sample(op: Any, device: str, dtype: torch.dtype, samples: int) -> Iterator[list[Case]]:
    """Lists of cases of one dtype: the first sample, the ways that are tried once, the second sample, …"""
    differentiable = op.supports_autograd and dtype in op.supported_backward_dtypes(device)
    torch.manual_seed(0)
    every = iter(op.sample_inputs(device, dtype, requires_grad=differentiable))
    first = list(itertools.islice(every, LOOKED_AT))
    if not first:
        return
    special = dtype.is_floating_point and dtype.itemsize > 1 and not special_numbers_mean_nothing(op.name, device)
    extra = [Case(op, dtype, 0, "dynamo", first[0], device)] if dtype is dtypes_of(op, device)[0] else []
    if op.inplace_variant is not None and isinstance(first[0].input, Tensor):
        extra.append(Case(op, dtype, 0, "inplace", first[0], device))
    for way, wants in (("strided", _is_matrix), *([("special", _is_long)] if special else [])):
        number = max(range(len(first)), key=lambda k: sum(map(wants, _tensors(first[k]))))
        extra.append(Case(op, dtype, number, way, first[number], device))
    ways = ("forward", "backward") if differentiable else ("forward",)
    for number, sample in enumerate(itertools.islice(itertools.chain(first, every), samples)):
        yield [Case(op, dtype, number, way, sample, device) for way in ways]
        if number == 0:
            yield extra


def _tensors(sample: Any) -> list[Tensor]:
    leaves = pytree.tree_leaves((sample.input, sample.args, sample.kwargs))
    return [x for x in leaves if isinstance(x, Tensor)]


def _is_matrix(tensor: Tensor) -> bool:
    return tensor.dim() > 1 and min(tensor.shape) > 1


def _is_long(tensor: Tensor) -> bool:
    return tensor.is_floating_point() and tensor.dtype.itemsize > 1 and tensor.numel() >= 20


def call_of(case: Case, *, double: bool = False) -> Call:
    """The case's function and fresh copies of its tensors, in double precision where ``double``."""
    sample = case.sample
    leaves, spec = pytree.tree_flatten((sample.input, sample.args, sample.kwargs))
    positions = [k for k, x in enumerate(leaves) if isinstance(x, Tensor)]
    tensors = [fresh(leaves[k]) for k in positions]
    differentiable = [leaves[k].requires_grad for k in positions]
    if case.way == "strided":
        tensors = [noncontiguous_like(t).detach() if _can_be_strided(t) else t for t in tensors]
    if case.way == "special":
        tensors = [with_special_numbers(t, k) for k, t in enumerate(tensors)]
    if double:
        tensors = [widened(t) for t in tensors]
        leaves = [_wide_dtype(x) if isinstance(x, torch.dtype) else x for x in leaves]
    if case.way == "backward":
        tensors = [t.requires_grad_(wanted) for t, wanted in zip(tensors, differentiable, strict=True)]
    operator = case.op.inplace_variant if case.way == "inplace" else case.op.op
    finish = sample.output_process_fn_grad if case.way == "backward" else _unchanged

    def function(*given: Tensor) -> list[Any]:
        filled = list(leaves)
        for k, t in zip(positions, given, strict=True):
            filled[k] = t
        first, args, kwargs = pytree.tree_unflatten(filled, spec)
        return [x for x in pytree.tree_leaves(finish(operator(first, *args, **kwargs))) if x is not None]

    return Call(function, tensors)


def fresh(tensor: Tensor) -> Tensor:
    """The tensor's elements in memory of its own, with the strides that it has."""
    if tensor.layout is not torch.strided or tensor.is_conj() or tensor.is_neg() or tensor.is_quantized:
        return tensor.detach().clone()
    if tensor.numel() == 0:
        return torch.empty_strided(tensor.shape, tensor.stride(), dtype=tensor.dtype, device=tensor.device)
    extent = 1 + sum((size - 1) * stride for size, stride in zip(tensor.shape, tensor.stride(), strict=True))
    memory = tensor.detach().as_strided((extent,), (1,)).clone()
    return memory.as_strided(tensor.shape, tensor.stride(), 0)


def with_special_numbers(tensor: Tensor, turn: int) -> Tensor:
    """The tensor with elements that arithmetic treats specially in places; ``turn`` chooses which comes first."""
    if not _is_long(tensor) or tensor.layout is not torch.strided or tensor.is_quantized:
        return tensor  # a single number, say: an infinite one would hide all others
    info = torch.finfo(tensor.dtype)
    special = [float("nan"), float("inf"), -float("inf"), 0.0, -0.0, info.max, info.tiny, 0.5, -1.0, 1.0]
    special = special[turn:] + special[:turn]
    flat = tensor.flatten()
    flat[: len(special)] = torch.tensor(special, dtype=tensor.dtype, device=tensor.device)
    return torch.empty_like(tensor).copy_(flat.view(tensor.shape))


def widened(tensor: Tensor) -> Tensor:
    """The tensor in float64 or complex128; integers and booleans as they are."""
    if tensor.is_quantized or tensor.dtype.itemsize < 2:
        return tensor
    return tensor.to(_wide_dtype(tensor.dtype))


def _wide_dtype(dtype: torch.dtype) -> torch.dtype:
    if dtype.is_complex:
        return torch.complex128
    return torch.float64 if dtype.is_floating_point else dtype


def _can_be_strided(tensor: Tensor) -> bool:
    return tensor.layout is torch.strided and not tensor.is_quantized and tensor.dim() > 0


def _unchanged(result: Any) -> Any:
    return result
