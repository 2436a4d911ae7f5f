"""What benchmarks write: a row for each case in each mode, as JSON and as Markdown with the ratios that matter."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path


@dataclass
class Row:
    """One case in one mode. Times are medians in microseconds; ``failure`` says why there are none.

    A mode that was timed in several turns has the medians over the turns, and beside them those of its quietest turn:
    others on the machine make a turn longer, and nothing makes one shorter than the work is.
    """

    case: str
    mode: str
    wall_us: float = 0.0
    cpu_us: float = 0.0
    gpu_us: float = 0.0
    quiet_wall_us: float = 0.0
    quiet_cpu_us: float = 0.0
    turns: int = 0
    kernels: int | None = None  # where they were counted
    compile_s: float = 0.0
    error: float = 0.0
    eager_error: float = 0.0
    equal: bool | None = None
    iterations: int = 0
    note: str = ""
    failure: str = ""


def write_results(folder: Path, name: str, title: str, rows: Sequence[Row], modes: Sequence[str]) -> None:
    """``name``.json and ``name``.md into the folder."""
    import torch
    import triton

    gpu = torch.cuda.get_device_name()
    header = (
        f"{gpu}, torch {torch.__version__}, triton {triton.__version__}, CUDA {torch.version.cuda}, "
        f"{time.strftime('%Y-%m-%d', time.gmtime())}. One synchronise before and after each iteration; float32 matmuls "
        "may use TF32 in every mode. Errors are ||x - float64|| / ||float64||, the largest over the outputs."
    )
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{name}.md").write_text(markdown(title, header, rows, modes))
    record = {
        "gpu": gpu,
        "torch": torch.__version__,
        "triton": triton.__version__,
        "rows": [asdict(row) for row in rows],
    }
    (folder / f"{name}.json").write_text(json.dumps(record, indent=1) + "\n")


def geometric_mean(values: Sequence[float]) -> float:
    """Of positive values; not a number where there are none."""
    return math.exp(sum(map(math.log, values)) / len(values)) if values else math.nan


def markdown(title: str, header: str, rows: Sequence[Row], modes: Sequence[str]) -> str:
    """A table of wall times by mode with the geometric mean against eager, then every figure of every row."""
    by_case: dict[str, dict[str, Row]] = {}
    for row in rows:
        by_case.setdefault(row.case, {})[row.mode] = row
    lines = [f"# {title}", "", header, "", "## Wall time, median microseconds of one iteration", ""]
    lines += _table(by_case, modes, "wall_us")
    if "eager" in modes:
        means = []
        for mode in modes:
            slower = _against(by_case, "eager", mode, "wall_us")
            means.append(geometric_mean(list(slower.values())))
        lines.append(
            "| **speedup over eager, geometric mean** | " + " | ".join(f"{mean:.2f}x" for mean in means) + " |"
        )
    lines += ["", "## CPU time to submit, median microseconds of one iteration", ""]
    lines += _table(by_case, modes, "cpu_us")
    lines += ["", *ratios(by_case), *_floors(by_case, modes)]
    if any(row.turns > 1 for row in rows):
        lines += ["", "## Each mode in its quietest turn", ""]
        quiet = {case: {mode: _in_quietest_turn(row) for mode, row in found.items()} for case, found in by_case.items()}
        lines += [*_table(quiet, modes, "wall_us"), "", *_table(quiet, modes, "cpu_us"), "", *ratios(quiet)]
        lines += _floors(quiet, modes)
    lines += ["", "## All figures", ""]
    lines += [
        "| model | mode | wall µs | CPU submit µs | GPU µs | kernels | compile s | error | eager error | equal | note |"
    ]
    lines += ["|---|---|---|---|---|---|---|---|---|---|---|"]
    for row in rows:
        if row.failure:
            lines.append(f"| {row.case} | {row.mode} | - | - | - | - | - | - | - | - | {_cell(row.failure)} |")
            continue
        kernels = "-" if row.kernels is None else row.kernels
        equal = {None: "not compared", True: "yes", False: "**no**"}[row.equal]
        lines.append(
            f"| {row.case} | {row.mode} | {row.wall_us:.1f} | {row.cpu_us:.1f} | {row.gpu_us:.1f} | {kernels} "
            f"| {row.compile_s:.1f} | {row.error:.1e} | {row.eager_error:.1e} | {equal} | {_cell(row.note)} |"
        )
    return "\n".join(lines) + "\n"


def _table(by_case: Mapping[str, Mapping[str, Row]], modes: Sequence[str], figure: str) -> list[str]:
    """A line for each case with the figure of each mode. Where the guards were left out as well, what they take."""
    guarded = {"lean", "unguarded"} <= set(modes)
    heads = [*modes, *(["guards"] if guarded else [])]
    lines = ["| model | " + " | ".join(heads) + " |", "|---" * (len(heads) + 1) + "|"]
    for case, found in by_case.items():
        values = {mode: getattr(found[mode], figure) if mode in found else 0.0 for mode in modes}
        cells = [f"{value:.1f}" if value else "-" for value in values.values()]
        if guarded:
            known = values["lean"] and values["unguarded"]
            cells.append(f"{values['lean'] - values['unguarded']:.1f}" if known else "-")
        lines.append(f"| {case} | " + " | ".join(cells) + " |")
    return lines


def ratios(by_case: Mapping[str, Mapping[str, Row]]) -> list[str]:
    """Sentences on how far the replayed modes are from the bound and from reduce-overhead, which other rows tell."""
    inference = {case: found for case, found in by_case.items() if "training" not in case}
    training = {case: found for case, found in by_case.items() if "training" in case}
    lines = []
    for mode in ("graph", "regions", "lean", "unguarded", "inductor-graph"):
        against = _against(inference, mode, "bound", "wall_us")
        if against:
            worst = max(against, key=lambda case: against[case])
            mean = geometric_mean(list(against.values()))
            lines.append(
                f"- {mode}: {mean:.3f}x the bound's wall time (geometric mean of {len(against)} inference rows); "
                f"the worst is {worst} with {against[worst]:.2f}x."
            )
    for mode in ("graph", "regions", "lean", "unguarded"):
        submit = _against(inference, mode, "inductor-graph", "cpu_us")
        if submit:
            lines.append(
                f"- {mode}: {geometric_mean(list(submit.values())):.2f}x reduce-overhead's CPU time to submit "
                f"(geometric mean of {len(submit)} inference rows)."
            )
    for mode in ("graph", "regions"):
        for case, ratio in _against(training, mode, "inductor-graph", "wall_us").items():
            lines.append(f"- {mode}: {case} takes {ratio:.2f}x reduce-overhead's wall time.")
    return lines


def _in_quietest_turn(row: Row) -> Row:
    return replace(row, wall_us=row.quiet_wall_us, cpu_us=row.quiet_cpu_us)


def _floors(by_case: Mapping[str, Mapping[str, Row]], modes: Sequence[str]) -> list[str]:
    """What no backend can save, where that was measured."""
    return ["", *submits(by_case), "", *least_walls(by_case)] if "floor" in modes else []


def submits(by_case: Mapping[str, Mapping[str, Row]]) -> list[str]:
    """What of the CPU time of a call through torch.compile no backend can save, row by row, in reduce-overhead's."""
    return _beside(
        "CPU time to submit: Dynamo and the launch of a graph alone",
        by_case,
        ("inductor-graph", "regions", "floor"),
        "cpu_us",
    )


def least_walls(by_case: Mapping[str, Mapping[str, Row]]) -> list[str]:
    """How near the bound a call through torch.compile can come, row by row."""
    return _beside("Wall time: the least through torch.compile", by_case, ("bound", "regions", "floor"), "wall_us")


def _beside(
    title: str, by_case: Mapping[str, Mapping[str, Row]], modes: tuple[str, str, str], figure: str
) -> list[str]:
    """The figure of three modes, and of the last two in the first's."""
    first, *others = modes
    lines = [f"## {title}", "", f"| model | {' | '.join(modes)} | {' | '.join(f'{m} / {first}' for m in others)} |"]
    lines.append("|---" * 6 + "|")
    shares = []
    for case, rows in by_case.items():
        against, *values = (getattr(rows[mode], figure) if mode in rows else 0.0 for mode in modes)
        if against and all(values):
            shares.append([value / against for value in values])
            cells = [*(f"{value:.1f}" for value in (against, *values)), *(f"{share:.2f}" for share in shares[-1])]
            lines.append(f"| {case} | {' | '.join(cells)} |")
    means = [geometric_mean(column) for column in zip(*shares, strict=True)]
    lines.append("| **geometric mean** | | | | " + " | ".join(f"{mean:.2f}" for mean in means) + " |")
    return lines


def _against(by_case: Mapping[str, Mapping[str, Row]], mode: str, other: str, figure: str) -> dict[str, float]:
    """``mode`` over ``other`` by case, where both were measured."""
    found = {}
    for case, rows in by_case.items():
        ours, theirs = (getattr(rows[m], figure) if m in rows else 0.0 for m in (mode, other))
        if ours and theirs:
            found[case] = ours / theirs
    return found


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")
