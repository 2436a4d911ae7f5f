"""What the live plot shows, as plain values: in order of the run, one plot a figure, or one plot a mode."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from PySide6.QtGui import QColor

from app.statistics import outliers
from views.look.theme import Theme
from views.run.modes import MODE_TITLES, mode_title
from views.run.record import RunRecord, Series, Times

LAYOUTS = {"order": "In order", "overlaid": "Overlaid", "side": "Side by side"}
CPU_LABEL = "CPU time to submit"
GPU_LABEL = "GPU time"
FOLLOWED = 4000  # latest iterations on the plot while it follows the run: all that a session keeps of five modes


@dataclass(frozen=True)
class Curve:
    """Times of one figure, from iteration ``first`` of its facet's numbering."""

    title: str
    figure: str  # "CPU" or "GPU"
    color: QColor
    first: int
    values: Times
    mode: str = ""  # "" where the facet has several modes one after another
    outliers: tuple[int, ...] = ()  # positions in ``values``


@dataclass(frozen=True)
class Facet:
    """One plot of several beside each other."""

    title: str
    curves: list[Curve]
    color: QColor | None = None
    shades: list[tuple[int, int]] = field(default_factory=list)  # warm-up
    marks: list[tuple[int, str]] = field(default_factory=list)  # where a mode begins

    @property
    def span(self) -> tuple[int, int]:
        """First iteration and the one after the last."""
        first = min((curve.first for curve in self.curves), default=0)
        return first, max((curve.first + len(curve.values) for curve in self.curves), default=first)


def mode_color(mode: str, theme: Theme) -> QColor:
    """The colour that a mode has wherever modes are overlaid."""
    numbers = (5, 1, 2, 0, 3)  # of the theme's colours, as far apart as five can be
    order = list(MODE_TITLES)
    number = order.index(mode) if mode in order else len(order)
    return theme.group_colors[numbers[number % len(numbers)]]


def facets(record: RunRecord, modes: list[str], layout: str, theme: Theme, view: tuple[int, int] | None) -> list[Facet]:
    """The facets of a layout. ``view`` is a range of iterations in the layout's numbering; None follows the run."""
    if layout == "order":
        return [_in_order(record, theme, view)]
    latest = None if view is not None else FOLLOWED
    series = [record.series(mode, latest) for mode in modes]
    series = [one for one in series if len(one.cpu)]
    if layout == "side":
        return [_of_mode(one, theme) for one in series]
    return [
        Facet(title, [_curve(one, figure, mode_color(one.mode, theme)) for one in series])
        for title, figure in ((CPU_LABEL, "CPU"), (GPU_LABEL, "GPU"))
    ]


def _in_order(record: RunRecord, theme: Theme, view: tuple[int, int] | None) -> Facet:
    first, end = view or (record.total - FOLLOWED, record.total)
    first, cpu, gpu = record.window(first, end)
    end = first + len(cpu)
    segments = record.segments
    ends = [*(segment.start for segment in segments[1:]), record.total]
    spans = [(s, e) for s, e in zip(segments, ends, strict=False) if e > first and s.start < end]
    stretches: dict[str, list[range]] = {}  # what is far above the rest is so among its own mode's
    for segment, stop in spans:
        if not segment.warmup:
            inside = range(max(segment.start - first, 0), min(stop - first, len(cpu)))
            stretches.setdefault(segment.mode, []).append(inside)

    def far(values: Times) -> tuple[int, ...]:
        found: list[int] = []
        for parts in stretches.values():
            kept = np.concatenate([np.arange(part.start, part.stop) for part in parts])
            found += [int(kept[i]) for i in outliers(values[kept])]
        return tuple(found)

    return Facet(
        "",
        [
            Curve(CPU_LABEL, "CPU", theme.cpu_curve, first, cpu, outliers=far(cpu)),
            Curve(GPU_LABEL, "GPU", theme.gpu_curve, first, gpu, outliers=far(gpu)),
        ],
        shades=[(max(s.start, first), min(e, end)) for s, e in spans if s.warmup],
        marks=[(max(s.start, first), mode_title(s.mode)) for s, e in spans if not s.warmup],
    )


def _of_mode(series: Series, theme: Theme) -> Facet:
    warm = int(series.warm.sum())
    return Facet(
        mode_title(series.mode),
        [_curve(series, "CPU", theme.cpu_curve, CPU_LABEL), _curve(series, "GPU", theme.gpu_curve, GPU_LABEL)],
        mode_color(series.mode, theme),
        shades=[(series.first, series.first + warm)] if warm and series.warm[:warm].all() else [],
    )


def _curve(series: Series, figure: str, color: QColor, title: str = "") -> Curve:
    values = series.cpu if figure == "CPU" else series.gpu
    name = title or mode_title(series.mode)
    return Curve(name, figure, color, series.first, values, series.mode, tuple(series.outliers(figure)))
