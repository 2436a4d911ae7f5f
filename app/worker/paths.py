"""File names in a report as they are the same on every machine, so that a session can be shared.

Files of the app and of installed packages are named from their own root ("resources/examples/gpt2.py",
"torch/nn/modules/linear.py"); the user's own files keep their full path, for an editor to find them.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import msgspec

from app.sources.files import as_written_and_resolved, installed_root, installed_roots, own_text, text_of
from app.worker.client import main_script
from compiler.dynamo.frames import is_torchs_module
from compiler.report import CudaGraph, GraphBreak, Guard, Provenance, Recompile, Report, SourceLine

# Triton's cache keeps texts that another environment's installation is named in.
_INSTALLED = re.compile(r"/[^\s\"'<>]*?/(?:site|dist)-packages/")


@cache
def portable_file(name: str) -> str:
    """``name`` from its root, where it has one."""
    path = Path(name)
    root = installed_root(path)
    for app in as_written_and_resolved(main_script().parent):
        if root is None and path.is_relative_to(app / "resources"):
            root = app
    return path.relative_to(root).as_posix() if root else name


def make_portable(report: Report) -> None:
    """Rename every file that the report points into."""
    for region in report.regions:
        for node in region.nodes:
            node.provenance = _provenance(node.provenance)
        region.cuda_graph = portable_graph(region.cuda_graph)
        region.wrapper, region.fx_text = _text(region.wrapper), _text(region.fx_text)
        region.graphs = {name: _text(text) for name, text in region.graphs.items()}
    for kernel in report.kernels:
        kernel.source = _text(kernel.source)
        kernel.irs = {name: _text(text) for name, text in kernel.irs.items()}
    for found in _of_capture(report):
        found.source = found.source and _line(found.source)
    report.sources = {portable_file(name): text for name, text in report.sources.items()}


def portable_graph(facts: CudaGraph) -> CudaGraph:
    """``facts`` with the files of its skip reasons renamed."""
    reasons = [
        msgspec.structs.replace(reason, source=reason.source and _line(reason.source)) for reason in facts.skip_reasons
    ]
    return msgspec.structs.replace(facts, skip_reasons=reasons)


def user_sources(report: Report, files: dict[str, str]) -> dict[str, str]:
    """``files`` and the text of every other file that the report's frames point into.

    Of installed packages only those with torch's modules are among them, where one of these is the model.
    """
    names = {line.file for line in _lines(report)} - files.keys()
    texts = {name: (text_of if is_torchs_module(name) else own_text)(Path(name)) for name in sorted(names)}
    return files | {name: text for name, text in texts.items() if text is not None}


def _lines(report: Report) -> Iterator[SourceLine]:
    for region in report.regions:
        for node in region.nodes:
            yield from node.provenance.frames
    yield from (found.source for found in _of_capture(report) if found.source)


def _of_capture(report: Report) -> Iterator[GraphBreak | Recompile | Guard]:
    yield from report.graph_breaks
    yield from report.recompiles
    yield from report.guards


def _text(text: str) -> str:
    """A generated text with the same renaming: comments and debug information name files too."""
    for prefix, instead in _prefixes():
        text = text.replace(prefix, instead)
    return _INSTALLED.sub("", text)


@cache
def _prefixes() -> tuple[tuple[str, str], ...]:
    installed = [(f"{root}{os.sep}", "") for root in installed_roots()]
    app = [
        (f"{form / 'resources'}{os.sep}", f"resources{os.sep}")
        for form in as_written_and_resolved(main_script().parent)
    ]
    return (*installed, *app)


def _provenance(provenance: Provenance) -> Provenance:
    return msgspec.structs.replace(provenance, frames=[_line(frame) for frame in provenance.frames])


def _line(line: SourceLine) -> SourceLine:
    return msgspec.structs.replace(line, file=portable_file(line.file))
