"""Which lines of a kernel's levels belong together: every level's lines lead to lines of the kernel's source."""

from __future__ import annotations

from array import array
from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from compiler.report import Kernel

SOURCE = "source"
ORDER = ("ttir", "ttgir", "llir", "ptx", "amdgcn", "sass")


class KernelLines:
    """Look-ups both ways for one kernel. Lines count from 1; 0 is no line."""

    def __init__(self, kernel: Kernel) -> None:
        self.kernel = kernel
        self._came_from: dict[str, NDArray[Any]] = {}  # level -> the source line of each of its lines

    @property
    def levels(self) -> list[str]:
        """The kernel's levels from its source down."""
        known = [level for level in ORDER if level in self.kernel.irs]
        return [SOURCE, *known, *(level for level in self.kernel.irs if level not in ORDER)]

    def text(self, level: str) -> str:
        """A level's text."""
        return self.kernel.source if level == SOURCE else self.kernel.irs[level]

    def source_line(self, level: str, line: int) -> int:
        """The source line that a line of ``level`` came from, or 0."""
        if level == SOURCE:
            return line
        lines = self.kernel.ir_lines.get(level, ())
        return lines[line - 1] if 0 < line <= len(lines) else 0

    def partners(self, level: str, source_lines: Iterable[int]) -> list[int]:
        """The lines of ``level`` that came from any of ``source_lines``, in order."""
        wanted = sorted(set(source_lines) - {0})
        if level == SOURCE or not wanted:
            return wanted
        if level not in self._came_from:
            self._came_from[level] = _as_array(self.kernel.ir_lines.get(level, []))
        found: list[int] = (np.flatnonzero(np.isin(self._came_from[level], wanted)) + 1).tolist()
        return found


def _as_array(lines: list[int]) -> NDArray[Any]:
    """The same numbers, (lines,) of int64; of a million lines a click asks for some, which a list is too slow for."""
    try:
        return np.frombuffer(array("q", lines), np.int64)
    except OverflowError:
        return np.array(lines, object)  # of a damaged file: no line has such a number
