"""A benchmark's table in its file: the numbers are new, what people wrote stays."""

from tests.benchmarks.result_file import with_table

_FILE = """# Frames

2 cores, 2026-01-01. Before 2025-12-31 it was slower.

Ten million additions in Python: 0.33 s

| a |
|---|
| 1 |

## Twice

| a |
|---|
| 2 |

Said by hand.
"""


def test_a_table_takes_the_place_of_the_one_before() -> None:
    made = with_table(_FILE, "Ten million additions in Python: 0.40 s\n\n| a |\n|---|\n| 7 |\n| 8 |\n", 0, "2026-02-03")
    assert made == (
        _FILE.replace("| 1 |", "| 7 |\n| 8 |").replace("0.33", "0.40").replace("2026-01-01", "2026-02-03")
    )


def test_the_second_table_is_another_one() -> None:
    assert with_table(_FILE, "| a |\n|---|\n| 9 |\n", 1, "2026-01-01") == _FILE.replace("| 2 |", "| 9 |")
