"""Rows of a benchmark in one file, a line of JSON each, written as they come: what a time limit ends goes on later.

Rows belong to a stamp (the code of the compiler, the GPU, versions, settings). Those of another stamp stay in the file
and are not read, so that a table never mixes two compilers.
"""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]


def code_of_compiler(root: Path = ROOT) -> str:
    """Ten hexadecimal digits that tell one state of ``compiler/`` from another."""
    digest = hashlib.sha256()
    for path in sorted((root / "compiler").rglob("*.py")):
        digest.update(str(path.relative_to(root)).encode() + b"\0" + path.read_bytes())
    return digest.hexdigest()[:10]


class RowFile:
    """Rows of one stamp in a file that several processes may append to."""

    def __init__(self, path: Path, stamp: str) -> None:
        self._path = path
        self._stamp = stamp

    def append(self, row: dict[str, Any]) -> None:
        """Write a row. A line goes in one write, whole or not at all, wherever the process is stopped."""
        line = json.dumps({"stamp": self._stamp, "row": row}) + "\n"
        handle = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
        try:
            os.write(handle, line.encode())
        finally:
            os.close(handle)

    def read(self) -> list[dict[str, Any]]:
        """The rows in the order they were written."""
        lines = self._path.read_text().splitlines() if self._path.exists() else []
        found = [json.loads(line) for line in lines if line.endswith("}")]
        return [entry["row"] for entry in found if entry["stamp"] == self._stamp]
