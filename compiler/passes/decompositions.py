"""Which composite ATen ops are taken apart before lowering.

The core ATen table, plus the compositions that core ATen keeps whole but that fuse better in pieces: softmax, layer
and group norm and their gradients, losses. What has its own lowering rule (gelu, silu, hardtanh, …) stays whole.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

import torch
from torch.utils import _pytree as pytree

from compiler.passes.foreach import foreach_decompositions

aten = torch.ops.aten
_TAKEN_APART = (
    "_softmax _softmax_backward_data _log_softmax _log_softmax_backward_data "
    "native_layer_norm native_layer_norm_backward native_group_norm native_group_norm_backward "
    "_fused_rms_norm _fused_rms_norm_backward "
    "native_batch_norm native_batch_norm_backward _native_batch_norm_legit _native_batch_norm_legit_functional "
    "_native_batch_norm_legit_no_training cudnn_batch_norm cudnn_batch_norm_backward batch_norm_backward "
    "miopen_batch_norm_backward "
    "nll_loss_forward nll_loss_backward nll_loss2d_forward nll_loss2d_backward mse_loss mse_loss_backward "
    "smooth_l1_loss smooth_l1_loss_backward huber_loss huber_loss_backward binary_cross_entropy "
    "binary_cross_entropy_backward binary_cross_entropy_with_logits soft_margin_loss "
    "hardswish hardswish_backward hardsigmoid hardsigmoid_backward hardtanh_backward leaky_relu_backward silu_backward "
    "elu elu_backward mish mish_backward softplus softplus_backward log_sigmoid_forward log_sigmoid_backward "
    "glu glu_backward native_dropout_backward logit logit_backward prelu_kernel "
    "_prelu_kernel _prelu_kernel_backward celu selu relu6 "
    "addcmul addcdiv lerp frac xlogy special_entr sinc logaddexp logaddexp2 "
    "masked_fill_ select_backward slice_backward tril_indices triu_indices eye "
    "std std_mean aminmax norm linalg_vector_norm logsumexp "
    "_unsafe_index stack hstack vstack narrow_copy "
    "upsample_bilinear2d upsample_trilinear3d upsample_bicubic2d "
    "dot vdot mv addmv addr baddbmm unsafe_split empty_like"
).split()
_KEPT_WHOLE = (
    "gelu gelu_backward silu hardtanh threshold index_select gather baddbmm clamp_min clamp_max select_scatter "
    "slice_scatter index_add index_copy index_fill multilabel_margin_loss_forward linspace logspace"
).split()


# What torch takes apart while it traces, before any table is asked, into pieces that compute something else: of
# multilabel_margin_loss they count the targets after a row's first -1, too.
_WRONGLY_TAKEN_APART = (aten.multilabel_margin_loss_forward.default,)
_DISTRIBUTIONS = "exponential geometric cauchy log_normal uniform normal".split()


# What eager computes in one kernel, in float32 for half floats, and torch takes apart without saying so.
_ONE_KERNEL = (
    aten.nll_loss_forward.default, aten.nll_loss2d_forward.default, aten.softshrink.default,
    aten.threshold_backward.default,
)  # fmt: skip


# Losses whose result has the first operand's dtype in eager, and a promoted one where torch takes them apart.
_LIKE_THE_FIRST = (aten.huber_loss.default, aten.soft_margin_loss.default)


def decomposition_table(random: str = "kernel") -> dict[Any, Callable[..., Any]]:
    """The decompositions for AOTAutograd, keyed by overload: a dictionary of the caller's own.

    ``random`` is the option of that name: "kernel" takes random ops apart to uniform and normal numbers, "eager"
    leaves them whole.
    """
    return dict(_table(random))


@contextmanager
def wrong_rules_set_aside() -> Iterator[None]:
    """While it lasts torch traces the ops whose pieces it has wrong as they are."""
    key = torch._C.DispatchKey.Autograd
    taken = [(op, op.py_kernels.pop(key)) for op in _WRONGLY_TAKEN_APART if key in op.py_kernels]
    for op, _ in taken:
        op._dispatch_cache.clear()
    try:
        yield
    finally:
        for op, rule in taken:
            op.py_kernels[key] = rule
            op._dispatch_cache.clear()


@cache
def _table(random: str) -> dict[Any, Callable[..., Any]]:
    from torch._decomp import core_aten_decompositions, get_decompositions

    table: dict[Any, Callable[..., Any]] = dict(core_aten_decompositions())
    packets = [getattr(aten, name) for name in _TAKEN_APART if hasattr(aten, name)]
    table.update(get_decompositions(packets))
    table.update(foreach_decompositions())
    kept = {getattr(aten, name) for name in _KEPT_WHOLE}
    table.update({op: _rounded_once(table[op]) for op in _ONE_KERNEL if op in table})
    table.update({op: _like_the_first(table[op]) for op in _LIKE_THE_FIRST})
    table[aten.addcmul.default] = _by_whole_factors(table[aten.addcmul.default])
    table[aten.masked_scatter.default] = masked_scatter
    table[aten.ldexp.Tensor] = ldexp
    table[aten._unique.default] = unique
    if random == "kernel":
        distributions = get_decompositions([getattr(aten, name) for name in _DISTRIBUTIONS])
        table.update({op: _of_floats(rule) for op, rule in distributions.items()})
        table.update(_random_table())
    else:
        kept |= {aten.bernoulli, aten.native_dropout}
    return {
        op: rule
        for op, rule in table.items()
        if op.overloadpacket not in kept and "scaled_dot_product" not in op.overloadpacket.__name__
    }


def _of_floats(rule: Callable[..., Any]) -> Callable[..., Any]:
    """The rule, but not for tensors of integers: it draws uniform numbers of the tensor's dtype."""

    def of_floats(x: Any, *args: Any, **kwargs: Any) -> Any:
        whole = isinstance(x, torch.Tensor) and not x.dtype.is_floating_point
        return NotImplemented if whole else rule(x, *args, **kwargs)

    return of_floats


def _like_the_first(rule: Callable[..., Any]) -> Callable[..., Any]:
    """The rule with its result in the first operand's dtype."""

    def like_the_first(x: torch.Tensor, *args: Any, **kwargs: Any) -> Any:
        return rule(x, *args, **kwargs).to(x.dtype)

    return like_the_first


def _by_whole_factors(rule: Callable[..., Any]) -> Callable[..., Any]:
    """``addcmul`` of integers, but not times a fraction: eager drops its digits, where torch's rule is an error."""

    def by_whole_factors(x: torch.Tensor, a: torch.Tensor, b: torch.Tensor, *, value: float = 1) -> Any:
        fraction = isinstance(value, float) and not any(t.is_floating_point() or t.is_complex() for t in (x, a, b))
        return NotImplemented if fraction else rule(x, a, b, value=value)

    return by_whole_factors


def _rounded_once(rule: Callable[..., Any]) -> Callable[..., Any]:
    """The rule in float32 for half floats: its results alone are rounded, not what it computes on the way."""

    def once(x: torch.Tensor, *args: Any, **kwargs: Any) -> Any:
        if x.dtype not in (torch.float16, torch.bfloat16):
            return rule(x, *args, **kwargs)
        args, kwargs = pytree.tree_map_only(torch.Tensor, _widened, (args, kwargs))
        return pytree.tree_map_only(torch.Tensor, lambda result: result.to(x.dtype), rule(x.float(), *args, **kwargs))

    return once


def _widened(x: torch.Tensor) -> torch.Tensor:
    return x.float() if x.is_floating_point() else x


def masked_scatter(x: torch.Tensor, mask: torch.Tensor, source: torch.Tensor) -> Any:
    """Where the mask is true the next element of ``source``: its number is how many came before."""
    if source.numel() == 0:
        return NotImplemented
    x, mask = torch.broadcast_tensors(x, mask)
    number = (mask.reshape(-1).cumsum(0) - 1).clamp(min=0).reshape(mask.shape)
    return torch.where(mask, source.reshape(-1)[number], x)


def ldexp(x: torch.Tensor, exponent: torch.Tensor) -> torch.Tensor:
    """x * 2 ** exponent in the dtype that eager gives it; what torch announces is another for a few pairs of dtypes."""
    two = 2.0 if not (x.is_floating_point() or x.is_complex()) else x.new_full((), 2.0)
    return x * torch.pow(two, exponent)


def unique(x: torch.Tensor, is_sorted: bool = True, return_inverse: bool = False) -> Any:
    """The op's newer form, of which every torch knows that its result's size depends on data (2.11 takes the older one
    to find as many elements as among zeros)."""
    return aten._unique2.default(x, is_sorted, return_inverse)[:2]


def _random_table() -> dict[Any, Callable[..., Any]]:
    """Random ops in terms of uniform and normal numbers, compared in float32 whatever the tensors' dtype."""

    def draw(x: torch.Tensor) -> torch.Tensor:
        return torch.rand_like(x, dtype=torch.float64 if x.dtype is torch.float64 else torch.float32)

    def native_dropout(x: torch.Tensor, p: float, train: bool | None) -> Any:
        if train is False or p == 0:
            return x.clone(), torch.ones_like(x, dtype=torch.bool)
        if p == 1:
            return torch.zeros_like(x), torch.zeros_like(x, dtype=torch.bool)
        mask = draw(x) >= p
        return mask * x * (1.0 / (1.0 - p)), mask

    def bernoulli(x: torch.Tensor, p: Any = None, generator: Any = None) -> Any:
        if generator is not None:
            return NotImplemented
        return (draw(x) < (x if p is None else p)).to(x.dtype)

    def normal(x: torch.Tensor, mean: float = 0, std: float = 1, generator: Any = None) -> Any:
        return NotImplemented if generator is not None else torch.randn_like(x) * std + mean

    return {
        aten.native_dropout.default: native_dropout,
        aten.bernoulli.default: bernoulli,
        aten.bernoulli.p: bernoulli,
        aten.bernoulli.Tensor: bernoulli,
        aten.normal_functional.default: normal,
    }
