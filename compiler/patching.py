"""Attributes of other people's modules and classes, replaced for as long as a context is open."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

_ABSENT = object()


@contextmanager
def replaced(owner: Any, name: str, value: Any) -> Iterator[None]:
    """``owner.name`` is ``value`` inside; afterwards it is what it was, or absent again."""
    before = vars(owner).get(name, _ABSENT)  # raw: a class's static methods and properties stay what they are
    setattr(owner, name, value)
    try:
        yield
    finally:
        if before is _ABSENT:
            delattr(owner, name)
        else:
            setattr(owner, name, before)
