"""What compilers and reports are called in texts."""

from __future__ import annotations

from compiler.report import Report

COMPILERS = {"fusescope": "Fusescope", "inductor": "TorchInductor"}
_VERSIONS = ("torch", "triton", "fusescope")


def compiler_title(name: str) -> str:
    """What a report's compiler is called."""
    return COMPILERS.get(name, name)


def title_beside(report: Report, other: Report) -> str:
    """A report's name as short as it tells it from ``other``."""
    return ", ".join(parts_beside(report, other))


def parts_beside(report: Report, other: Report) -> list[str]:
    """What tells a report from ``other``: its compiler, and all that is not the same."""
    parts = [compiler_title(report.compiler)]
    if report.source != other.source:
        parts.append(report.source)
    if report.target != other.target:
        parts.append(report.target.name)
    if report.training != other.training:
        parts.append("training" if report.training else "inference")
    if bool(report.measurements) != bool(other.measurements):
        parts.append("measured" if report.measurements else "not measured")
    versions, theirs = report.versions, other.versions
    parts += [f"{name} {versions.get(name, '?')}" for name in _VERSIONS if versions.get(name) != theirs.get(name)]
    # another compiler has other options; this one's own is a default where only the other report changed it
    options = {**report.options, **other.options} if report.compiler == other.compiler else report.options
    for name in sorted(options):
        if (value := report.options.get(name, "default")) != other.options.get(name, "default"):
            parts.append(f"{name}={value}")
    return parts
