"""Which lines of a region's programs do the work of which unit or node, read from the texts themselves.

A line that cannot be told is of nobody, so that nothing is ever said of it.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator

from app.filters import Kept
from compiler.report import ExternCall, Group, NodeKind, Region

_LAUNCH = re.compile(r"^\s+(\w+?)(?:\.run)?\(")
_RESULTS = re.compile(r"^\s+(\w+)(?:, \w+)* = ")
_LIBRARY = re.compile(
    r"^\s+(?:\w+(?:, \w+)* = )?(?:extern_kernels|torch\.ops|aten|inductor_ops|_quantized)\.(?![\w.]*reinterpret_tensor)"
)
_STATEMENT = re.compile(r"^\s+(\w+)(?:: \"[^\"]*\")? = ")
_FILE = re.compile(r"# File: (?P<file>[^\n]+?):(?P<line>\d+) in ")


def hidden_lines(key: str, text: str, region: Region, kept: Kept) -> list[int]:
    """Lines (1-based) of a program that the filters hide. ``key`` is "wrapper", "fx" or a name of ``Region.graphs``."""
    if key == "wrapper":
        return sorted(line for line, unit in wrapper_lines(text, region).items() if unit not in kept.units)
    if key == "dynamo":
        return _of_hidden_source(text, region, kept)
    return sorted(line for line, node in graph_lines(text, region).items() if node not in kept.nodes)


def wrapper_lines(text: str, region: Region) -> dict[int, str]:
    """Line -> the unit that it launches or calls.

    Launches of a kernel are its groups in launch order. A call is known by the result's name, or by its place where
    there are as many calls between two launches as the schedule has.
    """
    schedule: list[Group | ExternCall] = sorted([*region.groups, *region.extern_calls], key=lambda unit: unit.order)
    waiting: dict[str, list[int]] = defaultdict(list)  # kernel -> places of its groups in the schedule, the first last
    for place in range(len(schedule) - 1, -1, -1):
        unit = schedule[place]
        if isinstance(unit, Group):
            waiting[unit.kernel].append(place)
    calls = {unit.name: unit for unit in region.extern_calls}
    found: dict[int, str] = {}
    between: list[int] = []  # lines of calls since the last launch
    before = -1  # its place in the schedule
    for number, line in enumerate(text.splitlines(), 1):
        launch = _LAUNCH.match(line)
        named = _call_named(line, calls)
        if launch is not None and waiting.get(launch[1]):
            place = waiting[launch[1]].pop()
            found[number] = schedule[place].name
            found |= _paired(between, schedule[before + 1 : place])
            between, before = [], place
        elif named:
            found[number] = named
        elif _LIBRARY.match(line):
            between.append(number)
    return found | _paired(between, schedule[before + 1 :])


def _call_named(line: str, calls: dict[str, ExternCall]) -> str:
    """The call whose result a line binds: by its name, or with the number of one of several results after it."""
    match = _RESULTS.match(line)
    if match is None:
        return ""
    name = match[1]
    return name if name in calls else stem if (stem := name.rpartition("_")[0]) in calls else ""


def _paired(lines: list[int], units: list[Group | ExternCall]) -> dict[int, str]:
    if len(lines) != len(units) or not all(isinstance(unit, ExternCall) for unit in units):
        return {}
    return {line: unit.name for line, unit in zip(lines, units, strict=True)}


def graph_lines(text: str, region: Region) -> dict[int, str]:
    """Line -> the node that it defines, where it calls that node's op."""
    ops = {node.name: node.op for node in region.nodes if node.kind is NodeKind.CALL}
    found = {}
    for number, line in enumerate(text.splitlines(), 1):
        match = _STATEMENT.match(line)
        if match is not None and (op := ops.get(match[1])) is not None and op in line:
            found[number] = match[1]
    return found


def _of_hidden_source(text: str, region: Region, kept: Kept) -> list[int]:
    """Dynamo's graph has nodes of its own: a statement goes with the model's line that stands above it."""
    every: set[tuple[str, int]] = set()
    left: set[tuple[str, int]] = set()
    for node in region.nodes:
        lines = {(frame.file, frame.line) for frame in node.provenance.frames[:1]}
        every |= lines
        if node.name in kept.nodes:
            left |= lines
    return [n for n, source in _statements(text) if source in every and source not in left]


def _statements(text: str) -> Iterator[tuple[int, tuple[str, int]]]:
    source = ("", 0)
    for number, line in enumerate(text.splitlines(), 1):
        match = _FILE.search(line)
        if match is not None:
            source = (match["file"], int(match["line"]))
        elif not line.strip():
            source = ("", 0)
        elif _STATEMENT.match(line):
            yield number, source
