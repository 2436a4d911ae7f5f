"""Values that are kept while they are in use, up to a size."""

from __future__ import annotations

from collections.abc import Hashable
from threading import Lock
from typing import Generic, TypeVar

Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value")


class Recent(Generic[Key, Value]):
    """Forgets what was not asked for the longest, once all is larger than ``limit``. Safe on several threads."""

    def __init__(self, limit: int) -> None:
        """``limit`` is in the unit of the sizes that ``put`` is told, such as bytes."""
        self._limit = limit
        self._kept: dict[Key, tuple[Value, int]] = {}  # the last used at the end
        self._total = 0
        self._lock = Lock()

    def get(self, key: Key) -> Value | None:
        """What was put there, unless it is forgotten."""
        with self._lock:
            found = self._kept.pop(key, None)
            if found is None:
                return None
            self._kept[key] = found
            return found[0]

    def put(self, key: Key, value: Value, size: int) -> None:
        """Keep a value; even one that is larger than the limit, until the next one."""
        with self._lock:
            before = self._kept.pop(key, None)
            self._total += size - (before[1] if before is not None else 0)
            self._kept[key] = (value, size)
            while self._total > self._limit and len(self._kept) > 1:
                _, old = self._kept.pop(next(iter(self._kept)))
                self._total -= old
