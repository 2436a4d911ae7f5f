"""What Inductor scheduled, as the units of a report: one kernel's launch or one call each, in order."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from compiler.inductor.hooks import GraphFacts, LaunchFacts, UnitFacts
from compiler.inductor.origins import OriginFinder
from compiler.inductor.traffic import Touched


@dataclass(frozen=True)
class Unit:
    """A scheduled unit under the name it has in the report."""

    name: str
    facts: UnitFacts
    nodes: list[str]
    launch: LaunchFacts | None
    order: int


def units_of(facts: GraphFacts) -> list[Unit]:
    """The schedule: kernels and calls in order. What computes nothing is left out."""
    assert facts.graph is not None
    finder = OriginFinder(facts.graph, facts.buffer_origins, {b.name: b.within for b in facts.buffers})
    launch_of = {member: launch for launch in facts.launches for member in launch.members}
    units: list[Unit] = []
    for unit, launch in _launched(_with_results(facts.after), launch_of):
        if launch is None and unit.kind != "extern":
            continue
        order = len(units)
        name = f"group{order}" if launch is not None else f"call{order}"
        units.append(Unit(name, unit, finder.nodes_of(unit), launch, order))
    return units


def _launched(
    scheduled: Sequence[UnitFacts], launch_of: Mapping[str, LaunchFacts]
) -> list[tuple[UnitFacts, LaunchFacts | None]]:
    """Each unit with its launch. On the CPU, units that follow one another may be one function: one unit then."""
    found: list[tuple[UnitFacts, LaunchFacts | None]] = []
    at: dict[int, int] = {}  # launch -> its place in ``found``
    for unit in scheduled:
        launch = next((launch_of[m] for m in unit.members if m in launch_of), None)
        place = at.get(id(launch)) if launch is not None else None
        if place is not None:
            found[place] = (_together(found[place][0], unit), launch)
            continue
        if launch is not None:
            at[id(launch)] = len(found)
        found.append((unit, launch))
    return found


def _together(a: UnitFacts, b: UnitFacts) -> UnitFacts:
    return replace(
        a,
        members=[*a.members, *b.members],
        origins=list(dict.fromkeys((*a.origins, *b.origins))),
        reads=[*a.reads, *(name for name in b.reads if name not in a.reads)],
        writes=[*a.writes, *b.writes],
        touched=_joined(a.touched, b.touched),
        reduction=a.reduction or b.reduction,
    )


def _joined(a: Mapping[str, Touched], b: Mapping[str, Touched]) -> dict[str, Touched]:
    both = {name: replace(a[name], accesses=(*a[name].accesses, *b[name].accesses)) for name in a.keys() & b.keys()}
    return {**a, **b, **both}


def _with_results(scheduled: Sequence[UnitFacts]) -> list[UnitFacts]:
    """The units, each call with the buffers of its results: Inductor schedules those of a call with several apart."""
    found: list[UnitFacts] = []
    maker: dict[str, UnitFacts] = {}
    for unit in scheduled:
        call = next((maker[b] for b in unit.reads if b in maker), None) if unit.kind == "result" else None
        if call is None:
            unit = replace(unit, members=[*unit.members], writes=[*unit.writes], touched={**unit.touched})
            found.append(unit)
        else:
            call.members.extend(unit.members)
            call.writes.extend(unit.writes)
            call.touched.update(_joined(call.touched, unit.touched))
        for name in unit.writes:
            maker[name] = call or unit
    return found


def arithmetic_of(units: Sequence[Unit]) -> dict[str, list[str]]:
    """Unit -> those of its nodes whose arithmetic it does.

    A kernel that lays out an operand for a library call, or adds a bias, has the call's node and not its arithmetic;
    the second step of a split reduction completes what the first has done.
    """
    called = {name for unit in units if unit.launch is None for name in unit.nodes}
    writer = {buffer: unit for unit in units for buffer in unit.facts.writes}
    found = {}
    for unit in units:
        before = {name for b in unit.facts.reads if b in writer and writer[b] is not unit for name in writer[b].nodes}
        left_out = before if unit.launch is None else before | called
        found[unit.name] = [name for name in unit.nodes if name not in left_out]
    return found
