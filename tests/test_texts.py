"""Figures in reasons and on screen: three of them, in the unit that suits."""

from __future__ import annotations

import pytest

from compiler.texts import size_text
from views.look import format as fmt


@pytest.mark.parametrize(
    ("count", "text"),
    [(0, "0 B"), (8, "8 B"), (999, "999 B"), (1024, "1.02 kB"), (33_640_000, "33.6 MB"), (524_288, "524 kB"),
     (999_600, "1.00 MB"), (7.2e15, "7,200 TB")],
)  # fmt: skip
def test_sizes_are_alike_in_reasons_and_on_screen(count: float, text: str) -> None:
    assert size_text(count) == fmt.size(count) == text


def test_a_time_that_is_there_is_never_told_as_none() -> None:
    assert [fmt.microseconds(us) for us in (0, 1.7e-6, 2.1e-4, 0.58, 230.0)] == [
        "0 µs", "<0.01 ns", "0.21 ns", "0.58 µs", "230 µs",
    ]  # fmt: skip
