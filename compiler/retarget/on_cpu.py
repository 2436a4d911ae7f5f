"""Calls that only a GPU's library has, computed on the CPU: a traced graph runs there for the model's values.

What a call returns has the sizes, strides and dtypes that torch announces for it. Dropout draws its mask from the seed
that the forward returns and the backward is given, so that both have the same one.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import torch
from torch import Tensor, fx
from torch._higher_order_ops.triton_kernel_wrap import triton_kernel_wrapper_functional
from torch.utils import _pytree as pytree

from compiler.passes import random_numbers

aten = torch.ops.aten
_SEEDS = ("rng_state", "philox_seed")  # what the result, or the argument, that holds the seed is called


def runs_here(graph: fx.GraphModule) -> Callable[..., Any]:
    """What runs the graph, with what computes the same on the CPU in place of a GPU's library."""
    calls = [node for node in graph.graph.nodes if node.op == "call_function"]
    if any(op in _ON_CPU for node in calls for op in (node.target, *filter(_is_op, node.args))):
        return lambda *args: _Interpreter(graph).run(*args)
    return graph


class _Interpreter(fx.Interpreter):
    """An op may also be an argument, of a call that sets the generator's state for it."""

    def call_function(self, target: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        args = tuple(_ON_CPU.get(a, a) if _is_op(a) else a for a in args)
        return super().call_function(_ON_CPU.get(target, target), args, kwargs)


def _is_op(value: Any) -> bool:
    return isinstance(value, torch._ops.OpOverload)


def _forward(op: Any, *args: Any, **kwargs: Any) -> tuple[Any, ...]:
    given = _by_name(op, args, kwargs)
    results = _announced(op, args, kwargs)
    seed = torch.randint(1 << 31, ())
    for value, result in zip(results, op._schema.returns, strict=True):
        if result.name in _SEEDS:
            value.copy_(seed.expand(value.shape))
    results[0].copy_(_attend(given, given["query"], given["key"], given["value"], given.get("attn_bias"), seed))
    return results


def _backward(op: Any, *args: Any, **kwargs: Any) -> tuple[Any, ...]:
    given = _by_name(op, args, kwargs)
    names = [name for name in ("query", "key", "value", "attn_bias") if given.get(name) is not None]
    seed = given["philox_seed"].reshape(-1)[:1].to(torch.int64).reshape(())
    with torch.enable_grad():
        leaves = {name: given[name].detach().requires_grad_() for name in names}
        operands = (leaves["query"], leaves["key"], leaves["value"], leaves.get("attn_bias"))
        out = _attend(given, *operands, seed)
        gradients = torch.autograd.grad(out, list(leaves.values()), given.get("grad_out", given.get("grad_out_")))
    results = list(_announced(op, args, kwargs))
    for place, gradient in enumerate(gradients):
        if place < len(results) and isinstance(results[place], Tensor):
            results[place].copy_(gradient)
    return tuple(results)


def _attend(
    given: Mapping[str, Any], query: Tensor, key: Tensor, value: Tensor, bias: Tensor | None, seed: Tensor
) -> Tensor:
    """Attention by its definition, in float32."""
    groups = query.shape[1] // key.shape[1]
    if groups > 1:
        key, value = (t.repeat_interleave(groups, 1) for t in (key, value))
    scale = given.get("scale")
    scores = query.float() @ key.float().transpose(-2, -1) * (scale or 1 / math.sqrt(query.shape[-1]))
    if bias is not None:
        scores = scores + bias
    if given.get("is_causal"):
        hidden = torch.ones(scores.shape[-2:], dtype=torch.bool).triu(1)
        scores = scores.masked_fill(hidden, -math.inf)
    nothing = (scores == -math.inf).all(-1, keepdim=True)  # to look at: the kernels give zeros
    weights = scores.masked_fill(nothing, 0.0).softmax(-1).masked_fill(nothing, 0.0)
    dropout = given.get("dropout_p") or 0.0
    if dropout:
        drawn = random_numbers.ops.uniform(seed.reshape(1), 0, list(weights.shape), None, 24, torch.float32)
        weights = weights * (drawn >= dropout) / (1 - dropout)
    return (weights @ value.float()).to(query.dtype)


def _by_name(op: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> dict[str, Any]:
    names = [argument.name for argument in op._schema.arguments]
    return {**dict(zip(names, args, strict=False)), **kwargs}


def _announced(op: Any, args: Any, kwargs: Any) -> tuple[Any, ...]:
    """Zeros of the sizes, strides and dtypes that the call's results have; what is no tensor as it is."""
    shapes = op(*pytree.tree_map_only(Tensor, _without_values, args), **kwargs)
    made = pytree.tree_map_only(
        Tensor, lambda t: torch.empty_strided(t.shape, t.stride(), dtype=t.dtype, device="cpu").zero_(), tuple(shapes)
    )
    assert isinstance(made, tuple)
    return made


def _without_values(tensor: Tensor) -> Tensor:
    return torch.empty_strided(tensor.shape, tensor.stride(), dtype=tensor.dtype, device="meta")


def has_triton_kernels(graph: fx.GraphModule) -> bool:
    """Whether the graph launches Triton kernels of the model's own."""
    return any(node.target is triton_kernel_wrapper_functional for node in graph.graph.nodes)


def _not_launched(*, kwargs: Mapping[str, Any], tensors_to_clone: Sequence[str], **_: Any) -> dict[str, Any]:
    """In place of a Triton kernel of the model's own, which has no GPU to run on."""
    return {name: kwargs[name].clone() for name in tensors_to_clone}


_ON_CPU: Mapping[Any, Callable[..., Any]] = {
    triton_kernel_wrapper_functional: _not_launched,
    **{
        op: partial(compute, op)
        for kind in ("flash", "efficient", "cudnn")
        for suffix, compute in (("", _forward), ("_backward", _backward))
        for op in (getattr(aten, f"_scaled_dot_product_{kind}_attention{suffix}").default,)
    },
}
