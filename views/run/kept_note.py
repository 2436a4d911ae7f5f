"""How much of an iteration the filters leave, in a sentence."""

from __future__ import annotations

from app.filtered import Work, gpu_work
from app.filters import Kept
from compiler.report import Report
from views.look import format as fmt
from views.run.modes import in_order, mode_title


def kept_sentence(report: Report, kept: dict[str, Kept] | None) -> str:
    """The GPU time that the filters leave of each traced mode; of single kernels' times where nothing was traced."""
    if kept is None:
        return ""
    begin = "Of each iteration's GPU time the filters leave"
    works = {work.mode: work for work in gpu_work(report, kept)}
    if list(works) == [""]:
        work = works[""]
        how = "measured one kernel at a time" if work.measured else "estimated"
        return f"{begin} {_share(work)}, {how}."
    told = ", ".join(f"{_share(works[mode])} in {mode_title(mode)}" for mode in in_order(works))
    return f"{begin} {told}."


def _share(work: Work) -> str:
    share = work.left_us / work.every_us if work.every_us else 0.0
    mark = "" if work.measured else "~"
    return f"{share:.0%} ({mark}{fmt.microseconds(work.left_us)} of {mark}{fmt.microseconds(work.every_us)})"
