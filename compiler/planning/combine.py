"""Launches of the same code, over data that have nothing to do with each other, become one launch.

This is how an optimiser's step, a kernel a parameter, ends up as a few launches: fusion proper joins loops that share
data, this joins kernels that share none. A launch may only be put off, to where the last of its combination stands, and
only for as long as nobody waits for it and its inputs do not have to be kept for it.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from compiler.codegen.combined import combination_key, combine_kernels
from compiler.fusion import FusionGroup
from compiler.ir import Extern
from compiler.planning.schedule import Launch, Scheduled

MAX_POINTERS = 240  # kernel parameters: of the 4 KB that every driver takes, half
KEPT_BYTES = 4 << 20  # of intermediates that live longer because their readers are put off


@dataclass
class _Open:
    """A combination that may still grow."""

    members: list[int] = field(default_factory=list)
    deadline: int = 1 << 60
    pointers: int = 0
    kept_bytes: int = 0


def combine(steps: Sequence[Scheduled]) -> list[Scheduled]:
    """The schedule with combinations in place of their members."""
    deadlines = _deadlines(steps)
    groups: list[list[int]] = []
    by_key: dict[object, _Open] = {}
    for position, step in enumerate(steps):
        if not isinstance(step, Launch) or step.into:
            continue
        code = combination_key(step.kernel)
        if code is None:
            continue
        key = (code, step.stored[0].device)
        pointers = len(step.kernel.arguments)
        kept = sum(b.bytes for b in step.kernel.arguments if b.kind != "input" and b.name in step.reads)
        current = by_key.get(key)
        if (
            current is None
            or position >= current.deadline
            or current.pointers + pointers > MAX_POINTERS
            or current.kept_bytes > KEPT_BYTES
        ):
            current = by_key[key] = _Open()
            groups.append(current.members)
        current.members.append(position)
        current.deadline = min(current.deadline, deadlines[position])
        current.pointers += pointers
        current.kept_bytes += kept
    return numbered(_placed(steps, [members for members in groups if len(members) > 1]))


def _deadlines(steps: Sequence[Scheduled]) -> list[int]:
    """For each step, the first later one that must not run before it: it reads what the step makes, or overwrites
    what the step reads."""
    reads_at: dict[str, list[int]] = defaultdict(list)
    writes_at: dict[str, list[int]] = defaultdict(list)
    for position, step in enumerate(steps):
        for name in step.reads:
            reads_at[name].append(position)
        for name in step.mutates if isinstance(step, Extern) else step.takes_over.values():
            writes_at[name].append(position)
    found = []
    for position, step in enumerate(steps):
        made = [b.name for b in step.stored] if isinstance(step, Launch) else step.result_names
        taken = step.takes_over.values() if isinstance(step, Launch) else step.mutates
        later = [p for name in (*made, *taken) for p in reads_at[name] if p > position]
        later += [p for name in (*step.reads, *made) for p in writes_at[name] if p > position]
        found.append(min(later, default=1 << 60))
    return found


def _placed(steps: Sequence[Scheduled], groups: Sequence[Sequence[int]]) -> list[Scheduled]:
    """Every combination where its last member was."""
    gone = {position for members in groups for position in members[:-1]}
    last = {members[-1]: members for members in groups}
    result: list[Scheduled] = []
    for position, step in enumerate(steps):
        if position in last:
            parts = [s for s in (steps[i] for i in last[position]) if isinstance(s, Launch)]
            result.append(_joined(parts))
        elif position not in gone:
            result.append(step)
    return result


def _joined(parts: Sequence[Launch]) -> Launch:
    groups = [part.group for part in parts]
    first = groups[0]
    group = FusionGroup(
        [loop for g in groups for loop in g.loops],
        [m for g in groups for m in g.maps],
        first.xvars,
        (),
        [s for g in groups for s in g.steps],
        sum(g.saved_bytes for g in groups),
        list(dict.fromkeys(rule for g in groups for rule in g.rules)),
        {name: list(at) for g in groups for name, at in g.reads.items()},
        {name: at for g in groups for name, at in g.writes.items()},
        {},
        {made: over for g in groups for made, over in g.overwritten.items()},
    )
    stored = tuple(b for part in parts for b in part.stored)
    return Launch(parts[-1].name, group, combine_kernels([p.kernel for p in parts]), stored, len(parts))


def numbered(steps: Sequence[Scheduled]) -> list[Scheduled]:
    """Launches named after their place in the schedule."""
    return [replace(s, name=f"group{i}") if isinstance(s, Launch) else s for i, s in enumerate(steps)]
