"""Inductor's scheduler nodes as its debug folder prints them ("ir_pre_fusion.txt").

    op1: SchedulerNode(ComputedBuffer)
    op1.writes = [MemoryDep('buf1', c0, {c0: 8})]
    op1.unmet_dependencies = [MemoryDep('buf0', c0, {c0: 256})]
    op1.met_dependencies = []
    …
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from compiler.report import SchedulerNode

_HEAD = re.compile(r"^(?P<name>\w+): (?P<class>\w+)\((?P<inner>.*)\)$")
_FIELD = re.compile(r"^(?P<name>\w+)\.(?P<field>writes|unmet_dependencies|met_dependencies) =(?P<rest>.*)$")
_BUFFER = re.compile(r"(?:StarDep|WeakDep|MemoryDep)\((?:name=)?'(?P<name>[^']+)'")
_ORIGIN = re.compile(r"^\s*origins = (?:OrderedSet\(\[|\{)(?P<names>[^\])}]*)")
_KINDS: Mapping[str, str] = {"ExternKernelSchedulerNode": "extern", "NopKernelSchedulerNode": "nop"}


def read_scheduler(text: str) -> list[SchedulerNode]:
    """The scheduler nodes in order; their FX nodes as far as the text has their origins."""
    found: list[SchedulerNode] = []
    into: list[str] | None = None
    for line in text.splitlines():
        if (match := _HEAD.match(line)) is not None:
            kind = "template" if "Template" in match["inner"] else _KINDS.get(match["class"], "computed")
            found.append(SchedulerNode(match["name"], kind, []))
            into = None
        elif not found:
            continue
        elif (match := _FIELD.match(line)) is not None:
            into = found[-1].writes if match["field"] == "writes" else found[-1].reads
            _add(into, line)
        elif (match := _ORIGIN.match(line)) is not None:
            _add_names(found[-1].nodes, match["names"])
        elif into is not None and line.startswith(" "):
            _add(into, line)
        else:
            into = None
    return found


def _add(buffers: list[str], line: str) -> None:
    buffers += [name for name in _BUFFER.findall(line) if name not in buffers]


def _add_names(nodes: list[str], text: str) -> None:
    nodes += [name for part in text.split(",") if (name := part.strip()) and name not in nodes]
