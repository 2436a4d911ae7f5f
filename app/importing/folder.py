"""What lies at a place that was named for import, and the report of it."""

from __future__ import annotations

from pathlib import Path

import msgspec

from app.importing.debug_folder import debug_report, graph_folders
from app.importing.errors import ImportingError
from app.importing.links import is_inside, links_out
from app.importing.trace_log import is_trace_log, rank_of, read_trace_log
from app.importing.trace_report import region_texts, trace_report
from compiler.report import Report

_HINT = "Run the program with TORCH_TRACE=FOLDER (or TORCH_COMPILE_DEBUG=1) in its environment, and name that folder."


def import_traces(place: Path) -> Report:
    """The report of a TORCH_TRACE folder or file, or of a TORCH_COMPILE_DEBUG folder. Nothing in it is executed.

    A folder with the logs of several processes gives the one that compiled most, rank 0 first; the others are named.
    Links that lead out of the folder are not followed, and named.

    Raises:
        ImportingError: there is nothing of the kind, or it cannot be read.
    """
    try:
        report = _read(place)
        msgspec.msgpack.encode(report)
    except OSError as error:
        raise ImportingError(f"{place} cannot be read: {error.strerror}.", "Check its name and permissions.") from error
    except (OverflowError, UnicodeEncodeError) as error:
        raise ImportingError(
            f"{place.name} has a number or a character that torch does not write, and no session can hold: {error}.",
            "Record the log again.",
        ) from error
    return report


def _read(place: Path) -> Report:
    if not place.exists():
        raise ImportingError(f"There is no {place}.", "Check the name, and the folder it is relative to.")
    if place.is_file():
        if not is_trace_log(place):
            raise ImportingError(f"{place.name} is no TORCH_TRACE log.", _HINT)
        return trace_report(read_trace_log(place))
    out = links_out(place)
    names = ", ".join(out[:5]) + (f" and {len(out) - 5} more" if len(out) > 5 else "")
    logs = [p for p in sorted(place.glob("*")) if p.is_file() and is_inside(p, place) and is_trace_log(p)]
    graphs = [] if logs else graph_folders(place)
    if not logs and not graphs:
        hint = f"Links that lead out of it are not followed ({names}): name what they lead to." if out else _HINT
        raise ImportingError(f"{place} has neither a TORCH_TRACE log nor graphs of TORCH_COMPILE_DEBUG.", hint)
    report = _most_compiled(logs) if logs else debug_report(place, graphs)
    if out:
        report.notes.append(f"Links that lead out of the folder were not followed: {names}.")
    return report


def _most_compiled(paths: list[Path]) -> Report:
    logs = [read_trace_log(path) for path in paths]
    counts = [sum(1 for _ in region_texts(log.messages)) for log in logs]

    def preference(number: int) -> tuple[bool, int, int]:
        rank = rank_of(paths[number])
        return (counts[number] > 0 and rank == 0, counts[number], -number)

    chosen = max(range(len(logs)), key=preference)
    others = [path.name for i, path in enumerate(paths) if i != chosen and counts[i]]
    notes = []
    if others:
        notes.append(
            f"The folder has the logs of {len(others)} more processes that compiled something: {', '.join(others)}; "
            f"import the file to see one. This is {paths[chosen].name}."
        )
    return trace_report(logs[chosen], notes)


