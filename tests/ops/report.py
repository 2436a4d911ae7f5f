"""The suite's results as a summary and a Markdown table."""

from __future__ import annotations

import json
import platform
from collections.abc import Sequence
from datetime import UTC, datetime
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from tests.ops.records import CASES

SHOWN_EXTERNS = 4


def write_report(folder: Path, records: Sequence[dict[str, Any]], device: str, command: str) -> dict[str, Any]:
    """Write ``summary.json`` and ``table.md``; returns the summary."""
    records = sorted(records, key=lambda r: r["op"].lower())
    summary = summarize(records, device, command)
    (folder / "summary.json").write_text(json.dumps(summary, indent=1) + "\n")
    (folder / "table.md").write_text(markdown(records, summary))
    return summary


def write_merged(
    folder: Path, records: Sequence[dict[str, Any]], parts: Sequence[Path], device: str
) -> dict[str, Any]:
    """As ``write_report``, of several folders as one: the device, date and versions are those of the folders' own."""
    found = [json.loads(path.read_text()) for part in parts if (path := part / "summary.json").exists()]
    records = sorted(records, key=lambda r: r["op"].lower())
    summary = summarize(records, device, "; ".join(part["command"] for part in found))
    if found:
        summary.update({key: found[0][key] for key in ("device", "date", "versions")})
    (folder / "summary.json").write_text(json.dumps(summary, indent=1) + "\n")
    (folder / "table.md").write_text(markdown(records, summary))
    return summary


def summarize(records: Sequence[dict[str, Any]], device: str, command: str) -> dict[str, Any]:
    """Counts of operators and of cases, and what they were run with."""
    counts = {status: sum(r["status"] == status for r in records) for status in ("pass", "fail", "skip")}
    ran = counts["pass"] + counts["fail"]
    cases = {key: sum(r[key] for r in records) for key in CASES}
    rate = 100 * counts["pass"] / ran if ran else 0.0
    sentence = (
        f"{counts['pass']} of {ran} operators pass ({rate:.1f}%), {counts['skip']} cannot be judged; "
        f"{cases['passed']} cases passed, {cases['failed']} failed, {cases['refused']} were refused as expected, "
        f"{cases['skipped']} cannot run in eager or AOTAutograd, {cases['left_out']} were left out for time, "
        f"{cases['uncompiled']} of those that ran were left to eager by Dynamo"
    )
    return {
        **counts,
        "rate": round(rate, 2),
        "cases": cases,
        "groups": sum(r["groups"] for r in records),
        "externs": sum(sum(r["externs"].values()) for r in records),
        "sentence": sentence,
        "device": _device_name(device),
        "date": datetime.now(UTC).date().isoformat(),
        "versions": {"python": platform.python_version(), **{n: _version(n) for n in ("torch", "triton")}},
        "command": command,
    }


def markdown(records: Sequence[dict[str, Any]], summary: dict[str, Any]) -> str:
    """The table to commit."""
    versions = ", ".join(f"{name} {number}" for name, number in summary["versions"].items())
    lines = [
        f"# Operators of op_db on {summary['device']}",
        "",
        f"{summary['sentence']}.",
        "",
        f"{summary['date']}; {versions}. Command: `{summary['command']}`",
        "",
        "A case is one sample of one dtype called in one way: forward, backward (training graphs and gradients),",
        "strided (inputs that are not contiguous), in place, and once through Dynamo. Groups are kernels launched and",
        "extern calls are library calls, added up over an operator's cases. A case is left to eager where Dynamo",
        "breaks the graph at the call, since a size or number that it makes depends on data: nothing is compiled then.",
        "",
    ]
    failed = [r for r in records if r["status"] == "fail"]
    if failed:
        lines += ["## Failures", "", "| Operator | Kind | Case | What |", "|---|---|---|---|"]
        for record in failed:
            for failure in record["failures"]:
                cells = (record["op"], failure["kind"], failure["case"], failure["message"])
                lines.append("| " + " | ".join(_cell(c) for c in cells) + " |")
        lines.append("")
    skipped = [r for r in records if r["status"] == "skip"]
    if skipped:
        lines += ["## Not judged", "", "| Operator | Why |", "|---|---|"]
        for record in skipped:
            why = "; ".join(record["skips"]) or "it has no samples here"
            lines.append(f"| {record['op']} | {_cell(why)} |")
        lines.append("")
    lines += [
        "## All operators",
        "",
        "| Operator | Result | Passed | Failed | Refused | Not run | Left to eager | Groups | Extern calls | Which |",
        "|---|---|---|---|---|---|---|---|---|---|",
    ]
    for r in records:
        externs = sorted(r["externs"].items(), key=lambda item: -item[1])
        which = ", ".join(name.removeprefix("aten.") for name, _ in externs[:SHOWN_EXTERNS])
        which += ", …" if len(externs) > SHOWN_EXTERNS else ""
        numbers = [r["passed"], r["failed"], r["refused"], r["skipped"] + r["left_out"], r["uncompiled"], r["groups"]]
        cells = [r["op"], r["status"], *map(str, numbers), str(sum(r["externs"].values())), _cell(which)]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ")


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return "none"


def _device_name(device: str) -> str:
    if device == "cpu":
        return "the CPU (kernels in Triton's interpreter)"
    import torch

    return torch.cuda.get_device_name() if torch.cuda.is_available() else device
