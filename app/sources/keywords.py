"""A model that takes inputs by keyword, as one that takes them all by position: what compiles it knows only those."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any


def by_position(
    model: Callable[..., Any], args: tuple[Any, ...], kwargs: Mapping[str, Any]
) -> tuple[Callable[..., Any], tuple[Any, ...]]:
    """``model`` and ``args`` as they are, or both with ``kwargs`` after the positional inputs."""
    if not kwargs:
        return model, args
    from torch import nn

    count, names = len(args), tuple(kwargs)

    class ByPosition(nn.Module):
        """Passes its trailing inputs on by keyword."""

        def __init__(self) -> None:
            super().__init__()
            self.model = model

        def forward(self, *inputs: Any) -> Any:
            return self.model(*inputs[:count], **dict(zip(names, inputs[count:], strict=True)))

    return ByPosition(), (*args, *kwargs.values())
