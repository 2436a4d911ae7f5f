"""Dicts whose values are read from a session file when they are first asked for."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from _collections_abc import dict_items, dict_values


class LazyTexts(dict[str, str]):
    """A dict of texts whose values are read when first asked for.

    Raises:
        SessionError: from any access to a value whose member is damaged.
    """

    def __init__(self, members: Mapping[str, str], read: Callable[[str], str]) -> None:
        super().__init__(dict.fromkeys(members, ""))
        self._members = dict(members)
        self._read = read

    def __getitem__(self, key: str) -> str:
        member = self._members.get(key)
        if member is not None:
            super().__setitem__(key, self._read(member))
            self._members.pop(key, None)  # another thread, which saves, may have read it meanwhile
        return super().__getitem__(key)

    def __setitem__(self, key: str, value: str) -> None:
        self._members.pop(key, None)
        super().__setitem__(key, value)

    def peek(self, key: str) -> str:
        """The text at ``key``, not kept where it was not read yet: for whoever walks over all of them."""
        member = self._members.get(key)
        return self._read(member) if member is not None else super().__getitem__(key)

    def get(self, key: str, default: Any = None) -> Any:
        """The text at ``key``, read now, or ``default``."""
        try:
            return self[key]
        except KeyError:
            return default

    def items(self) -> dict_items[str, str]:
        """Every pair; reads every text."""
        self._read_all()
        return super().items()

    def values(self) -> dict_values[str, str]:
        """Every text; reads them all."""
        self._read_all()
        return super().values()

    def __eq__(self, other: object) -> bool:
        self._read_all()
        return super().__eq__(other)

    def _read_all(self) -> None:
        for key in self:
            self[key]


class LazyLines(dict[str, list[int]]):
    """Line numbers by level, all read at the first question for any of them.

    Raises:
        SessionError: from that question, where the member is damaged.
    """

    def __init__(self, levels: list[str], read: Callable[[], dict[str, list[int]]]) -> None:
        super().__init__({level: [] for level in levels})
        self._read: Callable[[], dict[str, list[int]]] | None = read

    def __getitem__(self, key: str) -> list[int]:
        self._load()
        return super().__getitem__(key)

    def get(self, key: str, default: Any = None) -> Any:
        """The lines of a level, or ``default``."""
        self._load()
        return super().get(key, default)

    def items(self) -> dict_items[str, list[int]]:
        """Every pair."""
        self._load()
        return super().items()

    def values(self) -> dict_values[str, list[int]]:
        """The lines of every level."""
        self._load()
        return super().values()

    def peek(self) -> dict[str, list[int]]:
        """All of them, not kept where they were not read yet."""
        return self._read() if self._read is not None else dict(self)

    def __eq__(self, other: object) -> bool:
        self._load()
        return super().__eq__(other)

    def _load(self) -> None:
        read = self._read
        if read is not None:
            super().update(read())
            self._read = None


def peek_text(texts: dict[str, str], key: str) -> str:
    """A text of a lazy or a plain dict, read without being kept."""
    return texts.peek(key) if isinstance(texts, LazyTexts) else texts[key]


def peek_lines(lines: dict[str, list[int]]) -> dict[str, list[int]]:
    """The lines of a lazy or a plain dict, read without being kept."""
    return lines.peek() if isinstance(lines, LazyLines) else lines
