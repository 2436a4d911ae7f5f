"""Groups and extern calls of two regions by the nodes they compute: the same, split, merged, moved."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from app.diff.nodes import FREE_OPS, family
from app.diff.records import Cost, GroupDiff, NodeMatch, Status
from app.roofline import UnitTime
from compiler.report import ExternCall, Group, Kernel, Region

Unit = Group | ExternCall


@dataclass(frozen=True)
class Costs:
    """What is known of the cost of a region's units: kernels by name, times by unit."""

    kernels: Mapping[str, Kernel]
    times: Mapping[str, UnitTime]

    def of(self, units: Sequence[Unit]) -> Cost:
        """The units' cost together. A time is given only where every unit has one, and all of the same kind."""
        used = [self.kernels[unit.kernel] for unit in units if isinstance(unit, Group) and unit.kernel in self.kernels]
        registers = [kernel.registers for kernel in used if kernel.registers is not None]
        spills = [kernel.spills for kernel in used if kernel.spills is not None]
        times = [self.times[unit.name] for unit in units if unit.name in self.times]
        measured = {time.measured for time in times}
        told = bool(times) and len(times) == len(units) and len(measured) == 1
        return Cost(
            launches=len(units),
            bytes=sum(unit.estimated_bytes for unit in units),
            us=sum(time.us for time in times) if told else None,
            measured=told and True in measured,
            registers=max(registers, default=None),
            spills=max(spills, default=None),
        )


def units_of(region: Region) -> list[Unit]:
    """What the region launches, in order."""
    units: list[Unit] = [*region.groups, *region.extern_calls]
    return sorted(units, key=lambda unit: unit.order)


def owners(units: Iterable[Unit]) -> dict[str, str]:
    """Node -> the unit that computes it; of several, one that does not merely compute it again."""
    found: dict[str, str] = {}
    recomputing: dict[str, str] = {}
    for unit in units:
        again = set(unit.recomputed) if isinstance(unit, Group) else set()
        for node in unit.nodes:
            (recomputing if node in again else found).setdefault(node, unit.name)
    return recomputing | found


def compare_units(
    a: Region,
    b: Region,
    matches: Sequence[NodeMatch],
    costs_a: Costs,
    costs_b: Costs,
) -> list[GroupDiff]:
    """Every unit of both regions in exactly one entry, in the order of ``a``, what only ``b`` has at the end.

    Nodes that only one side computes tell nothing about grouping and are left out of the comparison, as are views,
    which cost nothing wherever they are counted, unless a unit has nothing else.
    """
    units_a = {unit.name: unit for unit in units_of(a)}
    units_b = {unit.name: unit for unit in units_of(b)}
    owner_a, owner_b = owners(units_a.values()), owners(units_b.values())
    shared = [match for match in matches if match.a in owner_a and match.b in owner_b]
    free = {node.name for node in a.nodes if family(node) in FREE_OPS}
    working_a = {owner_a[match.a] for match in shared if match.a not in free}
    working_b = {owner_b[match.b] for match in shared if match.a not in free}
    shared = [
        match
        for match in shared
        if match.a not in free or (owner_a[match.a] not in working_a and owner_b[match.b] not in working_b)
    ]
    joined = _components(
        [f"a{name}" for name in units_a] + [f"b{name}" for name in units_b],
        [
            *((f"a{owner_a[match.a]}", f"b{owner_b[match.b]}") for match in shared),
            *((f"a{one}", f"a{other}") for one, other in second_steps(units_a.values(), owner_a)),
            *((f"b{one}", f"b{other}") for one, other in second_steps(units_b.values(), owner_b)),
        ],
    )
    inferred_a = {owner_a[match.a] for match in shared if not match.exact}
    partner = {match.a: match.b for match in matches if match.a not in free}
    parted = []
    for members in joined:
        in_a = [units_a[name[1:]] for name in members if name.startswith("a")]
        in_b = [units_b[name[1:]] for name in members if name.startswith("b")]
        parted += _parted(in_a, in_b, partner)
    place = {name: number for number, name in enumerate(units_a)}
    parted.sort(key=lambda sides: place[sides[0][0].name] if sides[0] else len(place))
    result = []
    for in_a, in_b in parted:
        status, detail = _status(in_a, in_b)
        result.append(
            GroupDiff(
                status=status,
                a=[unit.name for unit in in_a],
                b=[unit.name for unit in in_b],
                nodes_a=_nodes(in_a),
                nodes_b=_nodes(in_b),
                exact=not any(unit.name in inferred_a for unit in in_a),
                cost_a=costs_a.of(in_a),
                cost_b=costs_b.of(in_b),
                detail=detail,
            )
        )
    return result


def second_steps(units: Iterable[Unit], owner: Mapping[str, str]) -> list[tuple[str, str]]:
    """(unit, the unit it goes with) of units that own none of their nodes: a reduction's second step, say."""
    found = []
    for unit in units:
        owned = {owner[node] for node in unit.nodes}
        if owned and unit.name not in owned:
            found.append((unit.name, owner[unit.nodes[-1]]))
    return found


def _parted(a: Sequence[Unit], b: Sequence[Unit], partner: Mapping[str, str]) -> list[tuple[list[Unit], list[Unit]]]:
    """Units that belong together, parted into those that are one to one by all their nodes, and the rest.

    Units that compute one node in two steps belong together, and so do others that share a node with one of them;
    where the other side has the same units nothing was divided in another way. A rest of one side alone would be
    taken for new: it stays with all the others.
    """
    theirs: dict[tuple[str, frozenset[str]], list[Unit]] = defaultdict(list)
    known = set(partner.values())
    for unit in b:
        theirs[_kind(unit), frozenset(node for node in unit.nodes if node in known)].append(unit)
    pairs: list[tuple[list[Unit], list[Unit]]] = []
    rest_a: list[Unit] = []
    for unit in a:
        nodes = frozenset(partner[node] for node in unit.nodes if node in partner)
        alike = theirs.get((_kind(unit), nodes)) if nodes else None
        if alike:
            pairs.append(([unit], [alike.pop(0)]))
        else:
            rest_a.append(unit)
    paired = {unit.name for _, (unit,) in pairs}
    rest_b = [unit for unit in b if unit.name not in paired]
    if bool(rest_a) != bool(rest_b):
        return [(list(a), list(b))]
    return [*pairs, (rest_a, rest_b)] if rest_a else pairs


def _components(names: Sequence[str], links: Iterable[tuple[str, str]]) -> list[list[str]]:
    """Names that are linked, directly or through others, together; in the order of their first."""
    leader = {name: name for name in names}

    def find(name: str) -> str:
        while leader[name] != name:
            leader[name] = leader[leader[name]]
            name = leader[name]
        return name

    for one, other in links:
        leader[find(other)] = find(one)
    members: dict[str, list[str]] = defaultdict(list)
    for name in names:
        members[find(name)].append(name)
    return list(members.values())


def _status(a: Sequence[Unit], b: Sequence[Unit]) -> tuple[Status, str]:
    if not b:
        return Status.REMOVED, "nothing of the other computes these nodes"
    if not a:
        return Status.ADDED, "nothing of the other computes these nodes"
    if len(a) == 1 and len(b) == 1:
        kinds = _kind(a[0]), _kind(b[0])
        if kinds[0] == kinds[1]:
            return Status.SAME, ""
        return Status.CHANGED, f"{kinds[0]} became {kinds[1]}"
    if len(a) == 1:
        return Status.SPLIT, f"1 became {len(b)}"
    if len(b) == 1:
        return Status.MERGED, f"{len(a)} became 1"
    return Status.MOVED, f"nodes of {len(a)} are divided among {len(b)} in another way"


def _kind(unit: Unit) -> str:
    return "an extern call" if isinstance(unit, ExternCall) else "a generated kernel"


def _nodes(units: Sequence[Unit]) -> list[str]:
    return list(dict.fromkeys(node for unit in units for node in unit.nodes))
