"""Figures as people read them, in reasons that reports carry and wherever those are shown."""

from __future__ import annotations


def scaled(value: float, units: tuple[str, ...]) -> str:
    """Three figures in the unit that suits them, each a thousand of the one before."""
    step = 0
    while abs(value) >= 999.5 and step < len(units) - 1:
        value /= 1000
        step += 1
    if float(value).is_integer() and abs(value) < 1000 and step == 0:
        return f"{int(value)} {units[step]}"
    digits = 2 if abs(value) < 10 else 1 if abs(value) < 100 else 0
    return f"{value:,.{digits}f} {units[step]}"


def time_text(us: float) -> str:
    """A time given in microseconds, in the unit that suits it: "2.10 ns", "12.3 µs", "1.23 ms", "2.10 s"."""
    if 0 < abs(us) < 0.01:
        return scaled(us * 1000, ("ns",)) if abs(us) >= 5e-6 else "<0.01 ns"
    return scaled(us, ("µs", "ms", "s"))


def size_text(count: float) -> str:
    """Bytes in decimal units: "12.3 MB"."""
    return scaled(count, ("B", "kB", "MB", "GB", "TB"))
