"""The partitioner: which loops share a kernel, and for every pair that does not, the rule that kept them apart.

A group has one iteration space: ``xvars`` (one output point each) and ``rvars`` (reduced over). Its members run over
all of it (element level) or over ``xvars`` alone (row level, after a reduction). Two groups may merge when

1. DEVICE            they are on one device;
2. DOMAIN_MISMATCH   one's iteration space maps one-to-one onto the other's (or onto its rows), and scans meet their
                     points in order;
3. ACCESS_MISMATCH   under that mapping whatever one writes the other reads at the very same point, so that the value
                     can stay in a register; what a scatter writes is read by none of its group;
4. CYCLE             no third step has to run between them;
5. TOO_LARGE         the kernel keeps few enough buffers and loops for the register file and the reader;
6. OPTION            no option of the compilation forbids it;
7. MUTATION          an input that one overwrites is read by the other only where it is written.

Candidates are pairs that share a buffer (else NO_SHARED_DATA: nothing is saved), best saving first. Library calls
never join (EXTERN).
"""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from compiler.errors import CompileError, sentence
from compiler.index import Expr, LoopVar, substitute
from compiler.ir import Extern, Load, Loop, Program, ScalarRef, Step, TensorRef, Value, rewrite, symbols_of
from compiler.matching import Mapping, match_levels
from compiler.ops import cast, const, op, round_to
from compiler.options import DEFAULTS, Options
from compiler.report import RefusalRule
from compiler.sizes import Size, product

MAX_ROUNDS = 8


@dataclass(eq=False)
class FusionGroup:
    """Loops that one kernel computes. ``maps[i]`` takes the variables of ``loops[i]`` to the group's own."""

    loops: list[Loop]
    maps: list[Mapping]
    xvars: tuple[LoopVar, ...]
    rvars: tuple[LoopVar, ...]
    steps: list[int]  # positions of the loops in the program
    saved_bytes: int = 0
    rules: list[str] = field(default_factory=list)
    reads: dict[str, list[Expr]] = field(default_factory=dict)  # buffer -> indices in the group's variables
    writes: dict[str, Expr] = field(default_factory=dict)
    scattered: dict[str, str] = field(default_factory=dict)  # what scatters write -> the buffer they take over
    overwritten: dict[str, str] = field(default_factory=dict)  # what lies in an input's memory -> that input

    @property
    def needs(self) -> tuple[str, ...]:
        """Every buffer that has to be in memory before the group runs, if it is not the group's own."""
        return (*self.reads, *self.scattered.values())

    @property
    def xnumel(self) -> Size:
        """Output points."""
        return product([v.extent for v in self.xvars])

    @property
    def rnumel(self) -> Size:
        """Points reduced into one; 1 where nothing is reduced."""
        return product([v.extent for v in self.rvars])


@dataclass(frozen=True)
class Refused:
    """Why two loops (or a loop and a library call) are apart: FX nodes, rule, the specifics, the bytes it costs."""

    a: str
    b: str
    rule: RefusalRule
    detail: str
    bytes_lost: int = 0


@dataclass(eq=False)
class Partition:
    """The scheduled program: groups and library calls in the order they run, and all refusals."""

    schedule: list[FusionGroup | Extern]
    refusals: list[Refused]


class _Refuse(Exception):
    def __init__(self, rule: RefusalRule, detail: str) -> None:
        super().__init__(detail)
        self.rule = rule
        self.detail = detail


def partition(program: Program, options: Options = DEFAULTS) -> Partition:
    """Group the program's loops and order the groups."""
    return _Partitioner(program, options).run()


# --- the partitioner -----------------------------------------------------------------------------------------------


class _Partitioner:
    def __init__(self, program: Program, options: Options) -> None:
        self.options = options
        self.steps: list[Step] = program.steps
        self.writer: dict[str, int] = {}
        self.readers: dict[str, list[int]] = defaultdict(list)
        self.returned = {ref.buffer.name for ref in program.outputs if isinstance(ref, TensorRef)}
        self.returned |= {ref.name for ref in program.outputs if isinstance(ref, ScalarRef)}
        self.bytes: dict[str, int] = {}
        self.group_of: dict[int, FusionGroup] = {}
        for position, step in enumerate(self.steps):
            if isinstance(step, Loop):
                self._add_loop(position, step)
            else:
                self._add_extern(position, step)
        self.successors = self._dependencies()
        self.refused: dict[tuple[int, int], Refused] = {}

    def _add_loop(self, position: int, loop: Loop) -> None:
        loads = loop.loads()
        group = FusionGroup([loop], [{}], loop.xvars, loop.rvars, [position])
        for load in loads:
            group.reads.setdefault(load.buffer.name, []).append(load.index)
            self.bytes[load.buffer.name] = load.buffer.bytes
        if loop.into:
            group.scattered[loop.name] = loop.into
        else:
            group.writes[loop.name] = loop.index
        if loop.over:
            group.overwritten[loop.name] = loop.over
        self.bytes[loop.name] = loop.buffer.bytes
        self.writer[loop.name] = position
        for name in group.needs:
            self.readers[name].append(position)
        self.group_of[position] = group

    def _add_extern(self, position: int, step: Extern) -> None:
        for name, output in zip(step.result_names, step.outputs, strict=True):
            self.writer[name] = position
            if output is not None:
                self.bytes[name] = output.bytes
        for name in step.reads:
            self.readers[name].append(position)

    def _dependencies(self) -> dict[int, set[int]]:
        """Step -> steps that must come later: readers after writers, overwriters after readers, and the reverse."""
        after: dict[int, set[int]] = defaultdict(set)
        for name, readers in self.readers.items():
            if name in self.writer:
                after[self.writer[name]].update(readers)
        for position, step in enumerate(self.steps):
            if not isinstance(step, Extern):
                continue
            for name in step.mutates:
                for reader in self.readers[name]:
                    if reader < position:
                        after[reader].add(position)
                    elif reader > position:
                        after[position].add(reader)
                if name in self.writer and self.writer[name] != position:
                    after[self.writer[name]].add(position)
        for position, step in enumerate(self.steps):
            if isinstance(step, Loop) and step.over:
                for reader in self.readers[step.over]:
                    after[reader].add(position)
                for other, call in enumerate(self.steps[:position]):
                    if isinstance(call, Extern) and step.over in call.mutates:
                        after[other].add(position)
        effects = [i for i, s in enumerate(self.steps) if isinstance(s, Extern) and s.keeps_order]
        for earlier, later in itertools.pairwise(effects):
            after[earlier].add(later)
        self._after_their_sizes(after)
        for position, targets in after.items():
            targets.discard(position)
        return after

    def _after_their_sizes(self, after: dict[int, set[int]]) -> None:
        """Whatever uses a size that a call finds out runs after that call."""
        binder = {
            binding.symbol: position
            for position, step in enumerate(self.steps)
            if isinstance(step, Extern)
            for binding in step.bindings
        }
        for position, step in enumerate(self.steps) if binder else ():
            for symbol in symbols_of(step):
                if symbol in binder:
                    after[binder[symbol]].add(position)

    def run(self) -> Partition:
        for _ in range(MAX_ROUNDS):
            merged = False
            for a, b in self._candidates():
                first, second = self.group_of[a], self.group_of[b]
                if first is second:
                    continue
                saved = self._saving(first, second)
                try:
                    self._merge(first, second, saved)
                    merged = True
                except _Refuse as refusal:
                    self.refused[a, b] = Refused(self._fx(a), self._fx(b), refusal.rule, refusal.detail, saved)
                except Exception as error:
                    raise CompileError(sentence(error), node=self._fx(b)) from error
            if not merged:
                break
        apart = {pair: r for pair, r in self.refused.items() if self.group_of[pair[0]] is not self.group_of[pair[1]]}
        refusals = list({(r.a, r.b, r.rule): r for r in (*apart.values(), *self._extern_refusals())}.values())
        return Partition(self._schedule(), refusals)

    def _fx(self, position: int) -> str:
        step = self.steps[position]
        return step.buffer.fx_node if isinstance(step, Loop) else step.fx_node

    def _candidates(self) -> Iterator[tuple[int, int]]:
        """Pairs of loops that share a buffer: a producer with each reader, and neighbouring readers; best first."""
        scored: dict[tuple[int, int], int] = {}
        for name, readers in self.readers.items():
            loops = [r for r in readers if isinstance(self.steps[r], Loop)]
            size = self.bytes.get(name, 0)
            producer = self.writer.get(name)
            if producer is not None and isinstance(self.steps[producer], Loop):
                for reader in loops:
                    scored[producer, reader] = scored.get((producer, reader), 0) + 2 * size
            for a, b in itertools.pairwise(loops):
                scored[a, b] = scored.get((a, b), 0) + size
        yield from sorted(scored, key=lambda pair: (-scored[pair], pair[1] - pair[0], pair))

    def _saving(self, a: FusionGroup, b: FusionGroup) -> int:
        """Bytes of memory traffic that one kernel for both saves (estimated): shared reads, and writes nobody else
        reads."""
        saved = 0
        inside = {*a.steps, *b.steps}
        for name in {*a.reads, *a.writes} & {*b.reads, *b.writes}:
            saved += self.bytes.get(name, 0)
            written = name in a.writes or name in b.writes
            if written and name not in self.returned and set(self.readers[name]) <= inside:
                saved += self.bytes.get(name, 0)
        return saved

    # --- merging ---------------------------------------------------------------------------------------------------

    def _merge(self, a: FusionGroup, b: FusionGroup, saved: int) -> None:
        host, guest = (b, a) if b.rvars and not a.rvars else (a, b)
        if a.loops[0].buffer.device != b.loops[0].buffer.device:
            raise _Refuse(RefusalRule.DEVICE, f"{a.loops[0].buffer.device} and {b.loops[0].buffer.device}")
        self._check_scatters(a, b)
        vertical = bool(set(a.writes) & set(b.reads) or set(b.writes) & set(a.reads))
        if not vertical and not self.options.horizontal_fusion:
            raise _Refuse(RefusalRule.OPTION, "they only read the same data, and horizontal_fusion is false")
        self._check_size(a, b)
        self._check_domain(host, guest)
        mapping = self._find_mapping(host, guest)
        self._check_scans(host, guest, mapping)
        self._check_overwritten(host, guest, mapping)
        self._check_cycle(a, b)
        merged = _joined(host, guest, mapping)
        merged.saved_bytes = a.saved_bytes + b.saved_bytes + saved
        merged.rules = [*a.rules, *b.rules, "vertical" if vertical else "horizontal"]
        for step in merged.steps:
            self.group_of[step] = merged

    def _check_size(self, a: FusionGroup, b: FusionGroup) -> None:
        loops = len(a.loops) + len(b.loops)
        buffers = len({*a.reads, *a.writes, *b.reads, *b.writes})
        most, widest = self.options.max_fused_loops, self.options.max_fused_buffers
        if loops > most or buffers > widest:
            raise _Refuse(
                RefusalRule.TOO_LARGE,
                f"together {loops} loops over {buffers} buffers (at most {most} and {widest})",
            )

    @staticmethod
    def _check_scans(host: FusionGroup, guest: FusionGroup, mapping: Mapping) -> None:
        """A scan's loop stays one loop."""
        scanned = [mapping[v] for loop in guest.loops if loop.scans for v in guest.rvars]
        if any(loop.scans for loop in host.loops):
            scanned += host.rvars
        if scanned and (len(host.rvars) != 1 or any(v != host.rvars[0] for v in scanned)):
            raise _Refuse(RefusalRule.DOMAIN_MISMATCH, "a scan runs along one loop, and the other has several")

    @staticmethod
    def _check_scatters(a: FusionGroup, b: FusionGroup) -> None:
        """What a scatter takes over is complete before it begins, and its result is when it has ended."""
        for one, other in ((a, b), (b, a)):
            for made, taken in one.scattered.items():
                if made in other.needs or taken in (*other.writes, *other.reads):
                    raise _Refuse(
                        RefusalRule.ACCESS_MISMATCH, f"{made} is written at positions known only at run time"
                    )

    @staticmethod
    def _check_overwritten(host: FusionGroup, guest: FusionGroup, mapping: Mapping) -> None:
        """Where a group overwrites an input that it reads, each point reads the very element that it writes, once."""
        for made, over in {**host.overwritten, **guest.overwritten}.items():
            if made in host.scattered or made in guest.scattered:
                continue  # nothing beside a scatter reads its memory
            written = host.writes[made] if made in host.writes else substitute(guest.writes[made], mapping)
            reads = [*host.reads.get(over, []), *(substitute(i, mapping) for i in guest.reads.get(over, []))]
            if any(read != written for read in reads):
                raise _Refuse(RefusalRule.MUTATION, f"{over} is overwritten at {written} and read elsewhere")
            if reads and any(v in written.free_symbols for v in host.rvars):
                raise _Refuse(RefusalRule.MUTATION, f"{over} is overwritten, and a reduction may read it once more")

    def _check_domain(self, host: FusionGroup, guest: FusionGroup) -> None:
        def shape(group: FusionGroup) -> str:
            return f"{group.xnumel} × {group.rnumel}" if group.rvars else f"{group.xnumel}"

        if guest.rvars:
            same = guest.xnumel == host.xnumel and guest.rnumel == host.rnumel
        elif host.rvars:
            same = guest.xnumel in (host.xnumel * host.rnumel, host.xnumel)
        else:
            same = guest.xnumel == host.xnumel
        if not same:
            raise _Refuse(RefusalRule.DOMAIN_MISMATCH, f"iteration spaces {shape(host)} and {shape(guest)}")

    def _find_mapping(self, host: FusionGroup, guest: FusionGroup) -> Mapping:
        """The guest's variables in the host's, from one shared access that makes all forwarded values agree."""
        shared = {*host.reads, *host.writes} & {*guest.reads, *guest.writes}
        forwarded = [n for n in shared if n in host.writes or n in guest.writes]
        problem = ""
        tried: set[tuple[Any, ...]] = set()
        for name in sorted(shared, key=lambda n: (n not in forwarded, -self.bytes.get(n, 0), n)):
            for host_index in self._indices(host, name):
                for guest_index in self._indices(guest, name):
                    mapping = match_levels(host, guest, host_index, guest_index)
                    if mapping is None:
                        problem = problem or f"{name} is used at {host_index} by one and at {guest_index} by the other"
                        continue
                    key = tuple(sorted(mapping.items(), key=str))
                    if key in tried:
                        continue
                    tried.add(key)
                    mismatch = self._first_mismatch(host, guest, forwarded, mapping)
                    if mismatch is None:
                        return mapping
                    problem = problem or mismatch
        raise _Refuse(RefusalRule.ACCESS_MISMATCH, problem or "no shared access has the same order")

    @staticmethod
    def _indices(group: FusionGroup, name: str) -> list[Expr]:
        return [group.writes[name]] if name in group.writes else group.reads[name]

    @staticmethod
    def _first_mismatch(
        host: FusionGroup, guest: FusionGroup, forwarded: Sequence[str], mapping: Mapping
    ) -> str | None:
        for name in forwarded:
            if name in host.writes:
                written = host.writes[name]
                reads = [substitute(i, mapping) for i in guest.reads[name]]
            else:
                written = substitute(guest.writes[name], mapping)
                reads = host.reads[name]
            for read in reads:
                if read != written:
                    return f"{name} is written at {written} and read at {read}"
        return None

    def _check_cycle(self, a: FusionGroup, b: FusionGroup) -> None:
        """No path from one to the other through a third step."""
        for source, sink in ((a, b), (b, a)):
            limit = max(sink.steps)
            stack = [n for s in source.steps for n in self.successors[s] if n not in source.steps]
            stack = [n for n in stack if self.group_of.get(n) is not sink]
            seen: set[int] = set()
            while stack:
                step = stack.pop()
                group = self.group_of.get(step)
                around = group.steps if group is not None else [step]
                if around[0] in seen:
                    continue
                seen.add(around[0])
                if group is sink:
                    via = self._fx(step)
                    raise _Refuse(RefusalRule.CYCLE, f"{via} needs one and is needed by the other")
                for member in around:
                    for n in self.successors[member]:
                        other = self.group_of.get(n)
                        if other is sink and group is not source:
                            raise _Refuse(RefusalRule.CYCLE, f"{self._fx(member)} must run between them")
                        first = other.steps[0] if other is not None else n
                        if first <= limit and other is not source:
                            stack.append(n)

    def _extern_refusals(self) -> Iterator[Refused]:
        for name, readers in self.readers.items():
            producer = self.writer.get(name)
            if producer is None:
                continue
            size = self.bytes.get(name, 0)
            only = len(set(readers)) == 1 and name not in self.returned
            for reader in readers:
                ends = (self.steps[producer], self.steps[reader])
                calls = [step for step in ends if isinstance(step, Extern)]
                if len(calls) == 1:
                    yield Refused(
                        self._fx(producer),
                        self._fx(reader),
                        RefusalRule.EXTERN,
                        f"{calls[0].target} is a library call: {calls[0].detail or calls[0].reason.value}",
                        2 * size if only else size,  # the write stays where somebody else reads it too
                    )

    # --- order -----------------------------------------------------------------------------------------------------

    def _schedule(self) -> list[FusionGroup | Extern]:
        """Groups and calls in topological order, earliest first step first."""
        import heapq

        unit_of: dict[int, int] = {}
        units: list[FusionGroup | Extern] = []
        for position, step in enumerate(self.steps):
            group = self.group_of.get(position)
            if group is None or group.steps[0] == position:
                unit_of[position] = len(units)
                units.append(group if group is not None else step)  # type: ignore[arg-type]
            else:
                unit_of[position] = unit_of[group.steps[0]]
        after: dict[int, set[int]] = defaultdict(set)
        waiting = [0] * len(units)
        for source, targets in self.successors.items():
            for target in targets:
                a, b = unit_of[source], unit_of[target]
                if a != b and b not in after[a]:
                    after[a].add(b)
                    waiting[b] += 1
        ready = [u for u in range(len(units)) if not waiting[u]]
        heapq.heapify(ready)
        order: list[FusionGroup | Extern] = []
        while ready:
            unit = heapq.heappop(ready)
            order.append(units[unit])
            for target in after[unit]:
                waiting[target] -= 1
                if not waiting[target]:
                    heapq.heappush(ready, target)
        assert len(order) == len(units), "the groups depend on each other in a circle"
        return order


def _joined(host: FusionGroup, guest: FusionGroup, mapping: Mapping) -> FusionGroup:
    """Both groups' loops in the program's order, in the host's variables; ``mapping`` takes the guest's to those."""
    maps = [{var: substitute(expr, mapping) for var, expr in own.items()} for own in guest.maps]
    for loop, own in zip(guest.loops, maps, strict=True):
        if not own:
            own.update({v: mapping[v] for v in (*loop.xvars, *loop.rvars)})
    both = [*zip(host.steps, host.loops, host.maps, strict=True), *zip(guest.steps, guest.loops, maps, strict=True)]
    steps, loops, maps_of = zip(*sorted(both, key=lambda member: member[0]), strict=True)
    reads = {name: list(indices) for name, indices in host.reads.items()}
    for name, indices in guest.reads.items():
        known = reads.setdefault(name, [])
        known.extend(i for i in (substitute(i, mapping) for i in indices) if i not in known)
    writes = {**host.writes, **{name: substitute(index, mapping) for name, index in guest.writes.items()}}
    return FusionGroup(
        list(loops),
        list(maps_of),
        host.xvars,
        host.rvars,
        list(steps),
        reads=reads,
        writes=writes,
        scattered={**host.scattered, **guest.scattered},
        overwritten={**host.overwritten, **guest.overwritten},
    )


def group_values(group: FusionGroup) -> list[tuple[Loop, Value, Expr]]:
    """Each member's (loop, value, store index) in the group's variables, with reads of other members' results
    replaced by the values themselves (rounded to the buffer's dtype, as memory would)."""
    produced: dict[str, Value] = {}
    result: list[tuple[Loop, Value, Expr]] = []

    def forward(load: Load) -> Value:
        value = produced.get(load.buffer.name)
        if value is None:
            return load
        if load.mask is None:
            return value
        return op("where", load.dtype, load.mask, value, const(load.other, load.dtype))

    for loop, mapping in zip(group.loops, group.maps, strict=True):
        value = rewrite(loop.value, mapping, {}, forward)
        if not loop.into:
            produced[loop.name] = cast(round_to(value, loop.buffer.dtype), loop.buffer.dtype)
        result.append((loop, value, substitute(loop.index, mapping)))
    return result
