"""Ops over lists of tensors, as optimisers call them, taken apart into one op a tensor.

Fusion then makes a kernel of each parameter's update, and equal kernels are launched together (``combine.py``).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

aten = torch.ops.aten
Rule = Callable[..., Any]

# Where the op over one tensor has another name.
_ONE = {
    "norm": aten.linalg_vector_norm,
    "max": aten.amax,
    "zero": aten.zeros_like,
    "copy": aten.copy,
}
_OF_A_NUMBER = {"maximum": aten.clamp_min, "minimum": aten.clamp_max}


def foreach_decompositions() -> dict[Any, Rule]:
    """A rule for every functional ``_foreach_*`` op of this torch, and for the fused steps of Adam, AdamW and SGD."""
    table: dict[Any, Rule] = {}
    for name in torch._C._dispatch_get_all_op_names():
        base, _, overload = name.removeprefix("aten::_foreach_").partition(".")
        if not name.startswith("aten::_foreach_") or base.endswith("_") or "out" in overload:
            continue
        op = getattr(getattr(aten, f"_foreach_{base}"), overload or "default")
        one = _ONE.get(base, getattr(aten, base, None))
        by_tensor = base in ("addcmul", "addcdiv") and overload == "Tensor"  # fake tensors do not know it either
        if one is not None and not by_tensor:
            table[op] = _for_each(op, base, one)
    for overload in ("default", "tensor_lr"):
        table[getattr(aten._fused_adam, overload)] = _fused_adam(decoupled=False)
        table[getattr(aten._fused_adamw, overload)] = _fused_adam(decoupled=True)
        table[getattr(aten._fused_sgd, overload)] = _fused_sgd
    return table


def _for_each(op: Any, base: str, one: Any) -> Rule:
    """``one`` on the nth element of every list among the arguments; what is no list is the same for all."""
    arguments = [a.name for a in op._schema.arguments]
    keywords = {a.name for a in op._schema.arguments if a.kwarg_only}

    def rule(*args: Any, **kwargs: Any) -> Any:
        given = {**dict(zip(arguments, args, strict=False)), **kwargs}
        count = max(len(value) for value in given.values() if isinstance(value, list | tuple))
        return [_call(base, one, keywords, {k: _nth(v, i) for k, v in given.items()}) for i in range(count)]

    return rule


def _nth(value: Any, number: int) -> Any:
    return value[number] if isinstance(value, list | tuple) else value


def _call(base: str, one: Any, keywords: set[str], given: dict[str, Any]) -> Tensor:
    first, *rest = (value for name, value in given.items() if name not in keywords)
    named = {name: given[name] for name in keywords if name in given}
    if base in ("addcmul", "addcdiv"):
        tensor1, tensor2, *value = rest
        return one(first, tensor1, tensor2, value=value[0] if value else 1)  # type: ignore[no-any-return]
    if base in _OF_A_NUMBER and not isinstance(rest[0], Tensor):
        one = _OF_A_NUMBER[base]
    if base == "norm":
        return one(first, rest[0] if rest else 2, dtype=rest[1] if len(rest) > 1 else None)  # type: ignore[no-any-return]
    return one(first, *rest, **named)  # type: ignore[no-any-return]


# --- fused steps ---------------------------------------------------------------------------------------------------


def _unless(found_inf: Tensor | None, new: Tensor, old: Tensor) -> Tensor:
    """Nothing moves in a step in which the gradients overflowed."""
    return new if found_inf is None else torch.where(found_inf == 1, old, new)


def _fused_adam(*, decoupled: bool) -> Rule:
    """One step of Adam; ``decoupled`` weight decay makes it AdamW."""

    def rule(
        params: Sequence[Tensor],
        grads: Sequence[Tensor],
        means: Sequence[Tensor],
        squares: Sequence[Tensor],
        largest: Sequence[Tensor],
        steps: Sequence[Tensor],
        *,
        lr: Any,
        beta1: float,
        beta2: float,
        weight_decay: float,
        eps: float,
        amsgrad: bool,
        maximize: bool,
        grad_scale: Tensor | None = None,
        found_inf: Tensor | None = None,
    ) -> tuple[list[Tensor], ...]:
        made: tuple[list[Tensor], ...] = ([], [], [], [], [])
        for i, (param, given, mean, square, step) in enumerate(zip(params, grads, means, squares, steps, strict=True)):
            grad = given if grad_scale is None else given / grad_scale
            kept = grad
            grad = -grad if maximize else grad
            moved = param * (1 - lr * weight_decay) if decoupled and weight_decay else param
            if weight_decay and not decoupled:
                grad = grad + weight_decay * param
            new_mean = mean + (1 - beta1) * (grad - mean)
            new_square = beta2 * square + (1 - beta2) * grad * grad
            denominator = torch.maximum(largest[i], new_square) if amsgrad else new_square
            if amsgrad:
                made[4].append(_unless(found_inf, denominator, largest[i]))
            size = lr / (1 - torch.pow(beta1, step))
            scaled = denominator.sqrt() / (1 - torch.pow(beta2, step)).sqrt() + eps
            moved = moved - (size * new_mean / scaled).to(param.dtype)
            made[0].append(_unless(found_inf, moved, param))
            made[1].append(kept)
            made[2].append(_unless(found_inf, new_mean, mean))
            made[3].append(_unless(found_inf, new_square, square))
        return made

    return rule


def _fused_sgd(
    params: Sequence[Tensor],
    grads: Sequence[Tensor],
    momenta: Sequence[Tensor],
    *,
    weight_decay: float,
    momentum: float,
    lr: Any,
    dampening: float,
    nesterov: bool,
    maximize: bool,
    is_first_step: bool,
    grad_scale: Tensor | None = None,
    found_inf: Tensor | None = None,
) -> tuple[list[Tensor], list[Tensor], list[Tensor]]:
    """One step of SGD."""
    made: tuple[list[Tensor], list[Tensor], list[Tensor]] = ([], [], [])
    for i, (param, given) in enumerate(zip(params, grads, strict=True)):
        grad = given if grad_scale is None else given / grad_scale
        made[1].append(grad)
        grad = -grad if maximize else grad
        grad = grad + weight_decay * param if weight_decay else grad
        if momentum:
            moving = grad.clone() if is_first_step else momentum * momenta[i] + (1 - dampening) * grad
            made[2].append(_unless(found_inf, moving, momenta[i]))
            grad = grad + momentum * moving if nesterov else moving
        made[0].append(_unless(found_inf, param - lr * grad, param))
    return made
