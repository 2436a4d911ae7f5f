"""A text as its lines, cut off it as far as they are asked for."""

from __future__ import annotations

from collections.abc import Sequence
from typing import overload

_CUT = 250_000  # characters cut into lines at once, in less than 1 ms


class Lines(Sequence[str]):
    """The lines of ``text`` without their ends. Opening a text of any length takes hardly longer than a short one."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.longest = 0  # characters of the longest line of those cut off so far
        self._cut: list[str] = []
        self._next = 0  # where in the text the line behind those begins
        self._cut_more()
        self._count = len(self._cut) + (text.count("\n", self._next) + 1 if self._next <= len(text) else 0)

    def __len__(self) -> int:
        return self._count

    @overload
    def __getitem__(self, index: int) -> str: ...

    @overload
    def __getitem__(self, index: slice) -> list[str]: ...

    def __getitem__(self, index: int | slice) -> str | list[str]:
        needed = index.indices(self._count)[1] if isinstance(index, slice) else index % self._count + 1
        while len(self._cut) < min(needed, self._count):
            self._cut_more()
        return self._cut[index]

    def _cut_more(self) -> None:
        end = self.text.find("\n", self._next + _CUT)
        part = self.text[self._next : end if end >= 0 else None].split("\n")
        self._next = end + 1 if end >= 0 else len(self.text) + 1
        self._cut += part
        self.longest = max(self.longest, max(map(len, part)))
