"""The rows of bench_models.py, and the tables that are made of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from bench_rows import geometric_mean

PHASES = ("inference", "training")
MODES = ("eager", "compiled", "graph", "inductor")
TITLES = {"eager": "eager", "compiled": "ours", "graph": "ours in a graph", "inductor": "Inductor"}
SAME_TIME = 1.03  # medians of two runs of the same program differ by as much


@dataclass
class ModelRow:
    """One model in one phase and mode. Counts of groups, kernels and calls are of Fusescope's own report.

    ``launches`` are the kernels that the profiler saw on the GPU in one iteration; times are medians in microseconds.
    ``finished``: nothing is left to be measured of it.
    """

    case: str
    phase: str
    mode: str
    equal: bool | None = None
    error: float = 0.0
    eager_error: float = 0.0
    regions: int = 0
    graph_breaks: int = 0
    groups: int = 0
    kernels: int = 0
    externs: int = 0
    launches: int = 0
    wall_us: float = 0.0
    cpu_us: float = 0.0
    gpu_us: float = 0.0
    compile_s: float = 0.0
    note: str = ""
    failure: str = ""
    finished: bool = False


Found = Mapping[str, ModelRow]  # by mode


def markdown(header: str, rows: Sequence[ModelRow], modes: Sequence[str], timed: bool) -> str:
    """How many are right and how fast they are, then the tables of each phase."""
    ours = [row for row in rows if row.mode == "compiled"]
    right = sum(row.equal is True for row in ours)
    lines = ["# Real models", "", header, "", f"**{right} of {len(ours)} right** (both phases of every model)."]
    phases = {phase: _by_case(rows, phase) for phase in PHASES}
    if timed:
        lines += ["", *_summary(phases, modes)]
    for phase, by_case in phases.items():
        lines += ["", f"## {phase.capitalize()}", ""]
        lines += _numbers(by_case)
        if timed:
            lines += ["", f"### {phase.capitalize()}: medians of one iteration in microseconds", ""]
            lines += _times(by_case, modes)
            lines += ["", f"### {phase.capitalize()}: launches on the GPU, and seconds to compile", ""]
            lines += _launches(by_case, modes)
    return "\n".join(lines) + "\n"


def _by_case(rows: Iterable[ModelRow], phase: str) -> dict[str, dict[str, ModelRow]]:
    by_case: dict[str, dict[str, ModelRow]] = {}
    for row in rows:
        if row.phase == phase:
            by_case.setdefault(row.case, {})[row.mode] = row
    return by_case


def ratios(by_case: Mapping[str, Found], mode: str, other: str, figure: str) -> dict[str, float]:
    """``mode`` over ``other`` by model, where both were measured."""
    values = {
        case: tuple(getattr(found[m], figure) if m in found else 0.0 for m in (mode, other))
        for case, found in by_case.items()
    }
    return {case: a / b for case, (a, b) in values.items() if a and b}


def _summary(phases: Mapping[str, Mapping[str, Found]], modes: Sequence[str]) -> list[str]:
    """Geometric means, and the models in which we are slower than Inductor."""
    lines = ["| speed, geometric mean of models | wall | CPU submit | GPU | models |", "|---|---|---|---|---|"]
    pairs = [(mode, other) for other in ("eager", "inductor") for mode in modes if mode not in ("eager", other)]
    for phase, by_case in phases.items():
        for mode, other in pairs:
            means = [ratios(by_case, other, mode, figure) for figure in ("wall_us", "cpu_us", "gpu_us")]
            if means[0]:
                cells = " | ".join(f"{geometric_mean(list(mean.values())):.2f}x" for mean in means)
                lines.append(f"| {phase}: {TITLES[mode]} over {TITLES[other]} | {cells} | {len(means[0])} |")
    lines.append("")
    for mode in ("compiled", "graph"):
        for phase, by_case in phases.items():
            for figure, what in (("wall_us", "wall time"), ("gpu_us", "GPU time")):
                found = ratios(by_case, mode, "inductor", figure)
                if not found:
                    continue
                slower = sorted(((r, case) for case, r in found.items() if r > SAME_TIME), reverse=True)
                names = ", ".join(f"{case} {ratio:.2f}x" for ratio, case in slower) or "none"
                lines.append(
                    f"- {phase}, {TITLES[mode]}: over {SAME_TIME:.2f}x Inductor's {what} in {len(slower)} of "
                    f"{len(found)}: {names}."
                )
    return lines


def _numbers(by_case: Mapping[str, Found]) -> list[str]:
    heads = ["model", "right", "error", "eager's error", "regions", "breaks", "groups", "kernels", "extern calls"]
    lines = _head([*heads, "compile s", "note"])
    for case, found in by_case.items():
        row = found.get("compiled") or next(iter(found.values()))
        right = {None: "-", True: "yes", False: "**no**"}[row.equal] if not row.failure else "**failed**"
        others = [r for r in found.values() if r is not row and r.mode != "eager" and (r.failure or r.equal is False)]
        notes = [row.failure or row.note, *(f"{TITLES[r.mode]}: {r.failure or r.note}" for r in others)]
        cells = [case, right, f"{row.error:.1e}", f"{row.eager_error:.1e}", row.regions, row.graph_breaks, row.groups]
        lines.append(_line([*cells, row.kernels, row.externs, f"{row.compile_s:.1f}", " ".join(filter(None, notes))]))
    return lines


def _times(by_case: Mapping[str, Found], modes: Sequence[str]) -> list[str]:
    figures = (("wall_us", "wall"), ("cpu_us", "CPU"), ("gpu_us", "GPU"))
    heads = [f"{TITLES[mode]} {what}" for _, what in figures for mode in modes]
    against = "inductor" in modes
    lines = _head(["model", *heads, *(["ours / Inductor, wall", "in a graph / Inductor, wall"] if against else [])])
    walls = [ratios(by_case, mode, "inductor", "wall_us") for mode in ("compiled", "graph")] if against else []
    for case, found in by_case.items():
        values = [getattr(found[m], f) if m in found else 0.0 for f, _ in figures for m in modes]
        cells = [f"{value:.0f}" if value else "-" for value in values]
        lines.append(_line([case, *cells, *(f"{wall[case]:.2f}" if case in wall else "-" for wall in walls)]))
    return lines


def _launches(by_case: Mapping[str, Found], modes: Sequence[str]) -> list[str]:
    compiled = [mode for mode in modes if mode != "eager"]
    lines = _head(["model", *(TITLES[mode] for mode in modes), *(f"{TITLES[mode]} s" for mode in compiled)])

    def cells(found: Found, chosen: Sequence[str], text: Callable[[ModelRow], str]) -> list[str]:
        return [text(found[mode]) if mode in found else "-" for mode in chosen]

    for case, found in by_case.items():
        counts = cells(found, modes, lambda row: str(row.launches or "-"))
        lines.append(_line([case, *counts, *cells(found, compiled, lambda row: f"{row.compile_s:.1f}")]))
    return lines


def _head(heads: Sequence[str]) -> list[str]:
    return [_line(heads), "|---" * len(heads) + "|"]


def _line(cells: Sequence[object]) -> str:
    return "| " + " | ".join(str(cell).replace("|", "\\|").replace("\n", " ") for cell in cells) + " |"
