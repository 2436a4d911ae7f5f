"""The two tables beside this file: what is expected to be refused, and what has no set results."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path

FOLDER = Path(__file__).parent


@dataclass(frozen=True)
class Refusal:
    """A row of expected.toml; see there."""

    op: str
    error: str
    reason: str
    dtype: str = ""
    way: str = ""

    def covers(self, op: str, dtype: str, way: str) -> bool:
        """Whether the row is about such a case."""
        return self.op == op and self.dtype in ("", dtype) and self.way in ("", way)


def expected_refusals() -> list[Refusal]:
    """The rows of expected.toml."""
    table = tomllib.loads((FOLDER / "expected.toml").read_text())
    return [Refusal(**row) for row in table.get("refused", [])]


def check_of(op_name: str) -> str:
    """How an operator's results are judged: "numbers", "statistics" or "sizes"."""
    table = tomllib.loads((FOLDER / "nondeterministic.toml").read_text())
    return next((check for check in ("sizes", "statistics") if op_name in table[check]), "numbers")


def special_numbers_mean_nothing(op_name: str, device: str) -> bool:
    """Whether torch's own kernels disagree about an operator's results for NaN and infinities, or end on them."""
    table = tomllib.loads((FOLDER / "nondeterministic.toml").read_text())
    return op_name in table["special"] or (device == "cuda" and op_name in table["special_on_gpu"])


def unset_outputs(op_name: str) -> list[int]:
    """The positions of an operator's outputs that hold what happened to be in memory."""
    outputs: list[int] = tomllib.loads((FOLDER / "nondeterministic.toml").read_text())["unset"].get(op_name, [])
    return outputs
