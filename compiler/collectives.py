"""Collectives: calls that move data between the processes of a group, as torch's functional collectives make them.

Such a call returns before its result has arrived; ``wait_tensor`` makes what follows wait for it, and returns the very
tensor. Until then neither the result nor what the call was given may be touched, and every process must make the calls
in the same order. Their schemas say none of this.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch

COLLECTIVES = ("_c10d_functional", "_c10d_functional_autograd")  # the ops' namespaces


def is_collective(target: Any) -> bool:
    """Whether the op is a collective or the wait for one."""
    return isinstance(target, torch._ops.OpOverload) and target.namespace in COLLECTIVES


def waits(target: Any) -> bool:
    """Whether the op waits for a collective's result."""
    return is_collective(target) and target.overloadpacket.__name__ == "wait_tensor"


def has_collectives(steps: Sequence[Any]) -> bool:
    """Whether a schedule has any."""
    return any(is_collective(getattr(step, "target", None)) for step in steps)


def detail_of(target: Any) -> str:
    """What a report says of such a call."""
    name = target.overloadpacket.__name__
    return "waits for what another process sends" if waits(target) else f"{name} moves data between processes"


def backend_of(target: Any, args: Sequence[Any], kwargs: Mapping[str, Any], device: torch.device) -> str:
    """The library that moves the data of a collective's group ("nccl", "gloo"), or "" where that is not known."""
    from torch.distributed import distributed_c10d  # heavy, and few models have collectives

    names = [argument.name for argument in target._schema.arguments]
    group = {**dict(zip(names, args, strict=False)), **kwargs}.get("group_name")
    try:
        if isinstance(group, str):
            group = distributed_c10d._resolve_process_group(group)  # type: ignore[attr-defined,arg-type]
        return str(group._get_backend(device).name()).lower()  # type: ignore[union-attr]
    except (AttributeError, LookupError, RuntimeError, ValueError):  # no such group, or none for the device
        return ""


def arrived(tensor: torch.Tensor) -> torch.Tensor:
    """The tensor once the collective that writes it is over."""
    result: torch.Tensor = torch.ops._c10d_functional.wait_tensor(tensor)
    return result
