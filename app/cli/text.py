"""Numbers and tables as plain text for a terminal."""

from __future__ import annotations

from collections.abc import Sequence

_BYTE_UNITS = ("B", "kB", "MB", "GB", "TB")


def bytes_text(count: float) -> str:
    """``count`` bytes with a decimal unit, as bandwidths have: "1.5 MB"."""
    unit = 0
    while count >= 1000 and unit < len(_BYTE_UNITS) - 1:
        count /= 1000
        unit += 1
    return f"{count:.0f} {_BYTE_UNITS[unit]}" if unit == 0 else f"{count:.3g} {_BYTE_UNITS[unit]}"


def us_text(us: float | None) -> str:
    """Microseconds with three figures, or "-" where there is no value; less than 10 ns are only told as little."""
    if us is None:
        return "-"
    if 0 < us < 0.01:
        return "<0.01"
    return f"{us:.0f}" if us >= 100 else f"{us:.3g}"


def count_text(count: int, singular: str, plural: str = "") -> str:
    """ "1 region", "2 regions"."""
    return f"{count} {singular if count == 1 else plural or singular + 's'}"


def table(headers: Sequence[str], rows: Sequence[Sequence[object]], right: Sequence[str] = ()) -> str:
    """Columns padded to their widest cell; those named in ``right`` are aligned to the right."""
    cells = [[str(cell) for cell in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(headers, *cells, strict=True)]

    def line(row: Sequence[str]) -> str:
        padded = (
            cell.rjust(width) if header in right else cell.ljust(width)
            for cell, width, header in zip(row, widths, headers, strict=True)
        )
        return "  ".join(padded).rstrip()

    return "\n".join(line(row) for row in ([*headers], *cells))


def shorten(text: str, width: int) -> str:
    """``text`` cut to ``width`` characters, the cut marked."""
    return text if len(text) <= width else text[: width - 1] + "…"
