"""The numerical error of each unit of a region: of the value that it writes least exactly."""

from __future__ import annotations

from compiler.report import NodeCheck, Report


def unit_errors(report: Report, region: str) -> dict[str, NodeCheck]:
    """Unit -> the check with its largest error; empty where the numbers were not checked."""
    found: dict[str, NodeCheck] = {}
    for check in report.numerics.nodes if report.numerics is not None else ():
        if check.region == region and (check.unit not in found or check.error > found[check.unit].error):
            found[check.unit] = check
    return found


def summary(report: Report) -> str:
    """The checks of a whole report in a sentence."""
    numerics = report.numerics
    if numerics is None or not numerics.nodes:
        return "The regions write no floating-point value that could be checked."
    worst = max(numerics.nodes, key=lambda check: check.error)
    return (
        f"{_checked(len(numerics.nodes))} against float64 on {numerics.device}: the largest error is "
        f"{error_text(worst.error)} at {worst.node} (eager's there is {error_text(worst.eager_error)})."
    )


def _checked(count: int) -> str:
    return "1 value was checked" if count == 1 else f"{count:,} values were checked"


def error_text(error: float) -> str:
    """A relative error as people write it: "3.4e-7"."""
    mantissa, _, exponent = f"{error:.1e}".partition("e")
    return f"{mantissa}e{int(exponent)}" if error else "0"
