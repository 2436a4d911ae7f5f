"""The folders that TORCH_COMPILE_DEBUG=1 leaves: a run's folder has torchinductor/, and in it one folder a graph."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

from app.importing.assemble import make_report, options_in, read_regions
from app.importing.errors import ImportingError
from app.importing.links import is_inside
from app.importing.region import RegionTexts
from app.importing.scheduler_text import read_scheduler
from compiler.report import Report

_NAME = re.compile(r"^model__(?P<graph>\d+)_(?P<kind>inference|forward|backward)_(?P<order>\d+)\.(?P<number>\d+)$")
_PROGRAM = "output_code.py"
_MAX_BYTES = 256 << 20
_LOST = (
    "Read from a TORCH_COMPILE_DEBUG folder, which has no graph breaks, guards or times, no reasons for not fusing, "
    "no text below a kernel's source and no registers."
)


def graph_folders(folder: Path) -> list[Path]:
    """The folders of graphs in or below ``folder``, in the order in which they were compiled."""
    found = [p.parent for p in folder.glob(f"**/{_PROGRAM}") if is_inside(p, folder)]
    return sorted(found, key=_order)


def _order(folder: Path) -> tuple[str, int, str]:
    match = _NAME.match(folder.name)
    return (folder.parent.parent.name, int(match["number"]) if match else 0, folder.name)


def debug_report(folder: Path, graphs: list[Path]) -> Report:
    """The graphs of one run as a report."""
    texts = [text for graph in graphs if (text := _texts(graph, folder)) is not None]
    if not texts:
        raise ImportingError(
            f"{folder} has no graph that can be read.", "Write it again with TORCH_COMPILE_DEBUG=1, and caches off."
        )
    options: dict[str, str] = {}
    versions: dict[str, str] = {}
    for graph in graphs:
        runnable = _read(graph / "fx_graph_runnable.py", folder)
        options |= options_in(runnable)
        match = re.search(r"^# torch version: (\S+)$", runnable, re.M)
        if match is not None:
            versions["torch"] = match[1]
    return make_report(
        read_regions(texts),
        source=f"trace:{folder.name}",
        written=graphs[0].stat().st_mtime,
        versions=versions,
        options=options,
        stages=[],
        notes=[_LOST],
    )


def _texts(graph: Path, folder: Path) -> RegionTexts | None:
    post_grad = _read(graph / "fx_graph_transformed.py", folder)
    if not post_grad:
        return None
    match = _NAME.match(graph.name)
    texts = RegionTexts(
        compile_id=match["graph"] if match else graph.name,
        kind=match["kind"] if match else "",
        post_grad=post_grad,
        program=_read(graph / _PROGRAM, folder),
        mapping=dict(_mapping(_read(graph / "inductor_provenance_tracking_node_mappings.json", folder))),
        scheduler_nodes=read_scheduler(_read(graph / "ir_pre_fusion.txt", folder)),
    )
    given = _read(graph / "fx_graph_readable.py", folder)
    if given:
        texts.graphs["given"] = given
    return texts


def _mapping(text: str) -> Iterator[tuple[str, list[str]]]:
    try:
        found = json.loads(text or "{}").get("cppCodeToPost") or {}
    except (ValueError, AttributeError, RecursionError):
        return
    if isinstance(found, dict):
        yield from ((str(k), [str(n) for n in v]) for k, v in found.items() if isinstance(v, list))


def _read(path: Path, folder: Path) -> str:
    """A file's text; "" where it is missing, no regular file of ``folder``, or not of a size that a text has."""
    try:
        if not path.is_file() or not is_inside(path, folder) or path.stat().st_size > _MAX_BYTES:
            return ""
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
