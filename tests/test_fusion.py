"""Which loops share a kernel, and which rule says so where they do not."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from dataclasses import replace

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor

from compiler import fusion
from compiler.fusion import FusionGroup, partition
from compiler.index import LoopVar
from compiler.ir import Extern, Loop
from compiler.matching import match_dims
from compiler.options import Options
from compiler.report import RefusalRule
from compiler.sizes import product
from tests.graphs import lowered, partitioned, rules
from tests.test_index import points, value_at


def groups(parts: fusion.Partition) -> list[FusionGroup]:
    return [unit for unit in parts.schedule if isinstance(unit, FusionGroup)]


# --- what fuses ----------------------------------------------------------------------------------------------------


def test_a_chain_of_element_wise_ops_is_one_loop() -> None:
    parts = partitioned(lambda a, b, c: torch.relu((a + b) * c), *torch.randn(3, 8, 16))
    (group,) = groups(parts)
    assert len(group.loops) == 1
    assert group.loops[0].origins == ("add", "mul", "relu")
    assert not parts.refusals


def test_softmax_is_one_group_over_rows() -> None:
    (group,) = groups(partitioned(lambda x: x.softmax(-1), torch.randn(8, 16)))
    assert (group.xnumel, group.rnumel) == (8, 16)
    assert "vertical" in group.rules
    assert group.saved_bytes > 0


def test_readers_of_the_same_rows_fuse_sideways() -> None:
    (group,) = groups(partitioned(lambda x: [x.sum(1), x.amax(1), x * 2], torch.randn(8, 16)))
    assert set(group.rules) == {"horizontal"}


def test_a_transposed_consumer_fuses_by_renaming_its_loops() -> None:
    (group,) = groups(partitioned(lambda x: [x.exp(), x.exp().t().contiguous() + 1], torch.randn(8, 16)))
    assert len(group.loops) == 2


def test_split_and_merged_loops_fuse() -> None:
    def split(x: Tensor) -> list[Tensor]:
        y = x.exp() / 3
        return [y, y.reshape(4, 2, 16).permute(1, 0, 2).contiguous(), y.flatten() + 1]

    (group,) = groups(partitioned(split, torch.randn(8, 16)))
    assert len(group.loops) == 3


def test_a_row_level_epilogue_joins_its_reduction() -> None:
    (group,) = groups(partitioned(lambda x: [x.sum(1).exp(), x.sum(1)], torch.randn(8, 16)))
    assert (group.xnumel, group.rnumel) == (8, 16)


# --- every refusal, by the smallest program that earns it ------------------------------------------------------------


def test_refused_for_a_library_call() -> None:
    parts = partitioned(lambda x, w: (x.relu() @ w).exp(), torch.randn(8, 8), torch.randn(8, 8))
    assert rules(parts.refusals) == {RefusalRule.EXTERN}
    assert {(r.a, r.b) for r in parts.refusals} == {("relu", "mm"), ("mm", "exp")}
    assert all("cuBLAS" in r.detail and r.bytes_lost > 0 for r in parts.refusals)


def test_refused_for_another_iteration_space() -> None:
    parts = partitioned(lambda x: [x[:4] * 2, x.exp()], torch.randn(8, 16))
    assert rules(parts.refusals) == {RefusalRule.DOMAIN_MISMATCH}
    (refusal,) = parts.refusals
    assert "64" in refusal.detail
    assert "128" in refusal.detail


def test_refused_for_reading_elsewhere() -> None:
    """Each row of the sum is needed by another row of the reader: no register can hold it."""
    parts = partitioned(lambda x: x.softmax(-1).flip(0).cumsum(0) + x.softmax(-1).flip(0), torch.randn(8, 8))
    assert RefusalRule.ACCESS_MISMATCH in rules(parts.refusals)


def test_refused_for_a_step_that_must_run_between() -> None:
    """The last op needs both the first one's result and a product of it; fusing it would close a circle."""

    def between(x: Tensor, w: Tensor) -> Tensor:
        y = (x.exp() + 1).log()
        return y + y @ w

    parts = partitioned(between, torch.randn(8, 8), torch.randn(8, 8))
    (refusal,) = [r for r in parts.refusals if r.rule is RefusalRule.CYCLE]
    assert "mm" in refusal.detail
    order = [unit.fx_node if isinstance(unit, Extern) else unit.loops[-1].buffer.fx_node for unit in parts.schedule]
    assert order.index("mm") == 1


def test_refused_for_size() -> None:
    few = Options(max_fused_loops=2)
    parts = partitioned(lambda x: [x.sum(1), x.amax(1), x.amin(1)], torch.randn(8, 16), options=few)
    assert rules(parts.refusals) == {RefusalRule.TOO_LARGE}
    assert all(len(group.loops) <= 2 for group in groups(parts))


def test_refused_for_another_device() -> None:
    program = lowered(lambda x: [x.sum(1), x.amax(1)], torch.randn(8, 16))
    second = program.steps[1]
    assert isinstance(second, Loop)
    second.buffer = replace(second.buffer, device=torch.device("meta"))
    parts = partition(program)
    assert rules(parts.refusals) == {RefusalRule.DEVICE}


def test_strangers_are_not_even_compared() -> None:
    parts = partitioned(lambda x, y: [x.exp(), y.exp()], torch.randn(8), torch.randn(8))
    assert len(groups(parts)) == 2
    assert not parts.refusals


def test_refusals_name_only_neighbours_that_stayed_apart() -> None:
    def block(x: Tensor, w: Tensor) -> Tensor:
        return F.layer_norm(x + F.gelu(x @ w), (16,))

    parts = partitioned(block, torch.randn(8, 16), torch.randn(16, 16))
    together = [{origin for loop in group.loops for origin in loop.origins} for group in groups(parts)]
    for refusal in parts.refusals:
        assert not any({refusal.a, refusal.b} <= nodes for nodes in together), refusal


# --- the order -----------------------------------------------------------------------------------------------------


def test_the_schedule_never_reads_what_is_not_yet_written() -> None:
    def block(x: Tensor, w: Tensor) -> list[Tensor]:
        h = x + F.gelu(x @ w)
        return [F.layer_norm(h, (16,)) @ w, h.sum(0), (h @ w.t()).softmax(-1)]

    parts = partitioned(block, torch.randn(8, 16), torch.randn(16, 16))
    made: set[str] = set()
    written = {n for u in parts.schedule for n in _writes(u)}
    for unit in parts.schedule:
        assert {name for name in unit.reads if name in written} <= made | set(_writes(unit))
        made |= set(_writes(unit))


def _writes(unit: FusionGroup | Extern) -> list[str]:
    if isinstance(unit, FusionGroup):
        return list(unit.writes)
    return [b.name for b in unit.outputs if b is not None]


def test_writes_into_an_input_wait_for_its_readers() -> None:
    def update(x: Tensor) -> Tensor:
        before = x.sum()
        x.add_(1)
        return before * x.sum()

    parts = partitioned(update, torch.randn(8))
    kinds = [unit.fx_node if isinstance(unit, Extern) else "group" for unit in parts.schedule]
    assert kinds.index("add_") == 1, "one sum before the write, one after it"
    assert len(kinds) >= 3


# --- matching loops ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("host", "guest"),
    [
        ([8, 16], [8, 16]),
        ([8, 16], [128]),
        ([128], [8, 16]),
        ([8, 16], [4, 2, 16]),
        ([6, 4], [3, 8]),
        ([2, 3, 4], [24]),
    ],
)
def test_matched_loops_walk_the_same_addresses(host: list[int], guest: list[int]) -> None:
    """Whatever way one memory is cut into loops, the mapping makes both name the same element."""
    hosts, guests = _dense("h", host), _dense("g", guest)
    for order in itertools.permutations(guests):
        mapping = match_dims(hosts, order)
        assert mapping is not None
        for point in points([v for _, v in hosts]):
            there = sum(stride * point[v] for stride, v in hosts)
            assert there == sum(stride * value_at(mapping[v], point) for stride, v in guests)


def _dense(prefix: str, size: list[int]) -> list[tuple[int, LoopVar]]:
    return [(product(size[n + 1 :]), LoopVar(f"{prefix}{n}", extent)) for n, extent in enumerate(size)]


def test_other_strides_or_extents_do_not_match() -> None:
    i, j = LoopVar("i", 8), LoopVar("j", 16)
    assert match_dims([(16, i), (1, j)], [(32, i), (1, j)]) is None
    assert match_dims([(16, i), (1, j)], [(1, j)]) is None
    assert match_dims([(1, LoopVar("a", 6))], [(1, LoopVar("b", 4))]) is None
    assert match_dims([], []) == {}


def test_bytes_that_a_refusal_costs() -> None:
    """A value that a library call makes for one reader is neither written nor read; for two, its write stays."""
    x, w = torch.empty(64, 64), torch.empty(64, 64)
    size = x.numel() * 4
    (one,) = [r for r in partitioned(lambda x, w: torch.relu(x @ w), x, w).refusals if r.rule is RefusalRule.EXTERN]
    assert one.bytes_lost == 2 * size
    kept = partitioned(lambda x, w: [(y := x @ w), y.sum(1), y.t().contiguous()], x, w).refusals
    assert {r.bytes_lost for r in kept if r.rule is RefusalRule.EXTERN} == {size}
    (apart,) = partitioned(lambda x: [x.sum(1), x.sum(0)], x).refusals
    assert apart.bytes_lost == size


def test_what_several_read_is_computed_again_where_that_moves_fewer_bytes() -> None:
    """A gradient behind a mask is 5 bytes to read again; in memory it is 4 to write and 4 to read once more."""
    mask, x, y = torch.rand(64, 512) > 0.5, torch.randn(64, 512), torch.randn(64, 512)

    def loops(function: Callable[..., list[Tensor]], *inputs: Tensor) -> int:
        return sum(isinstance(step, Loop) for step in lowered(function, *inputs).steps)

    def masked(mask: Tensor, x: Tensor) -> list[Tensor]:
        kept = torch.where(mask, x, 0.0)
        return [kept.sum(0), kept.exp()]

    def added(x: Tensor, y: Tensor) -> list[Tensor]:
        kept = x + y
        return [kept.sum(0), kept.exp()]

    assert loops(masked, mask, x) == 2
    assert loops(added, x, y) == 3, "8 bytes to read again, as many as in memory"
