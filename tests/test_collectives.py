"""What the compiler knows of collectives: their order, how long they use memory, and when a graph may hold them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("triton", reason="kernels are Triton's")

import torch.distributed as distributed  # noqa: E402
from torch.distributed import _functional_collectives as functional  # noqa: E402
from torch.testing._internal.distributed.fake_pg import FakeStore  # noqa: E402

from app.capture_check import State, capture_checks  # noqa: E402
from compiler import collectives  # noqa: E402
from compiler.ir import Extern  # noqa: E402
from compiler.pipeline import compile_model  # noqa: E402
from compiler.planning.partitions import refused_steps, split  # noqa: E402
from compiler.region import CompiledRegion  # noqa: E402
from compiler.report import ExternReason  # noqa: E402
from tests.graphs import TARGET, compiled  # noqa: E402


@pytest.fixture(autouse=True)
def _group() -> Iterator[None]:
    """A group of two processes of which one is here; nothing is sent."""
    distributed.init_process_group("fake", store=FakeStore(), rank=0, world_size=2)
    yield
    distributed.destroy_process_group()


def model(x: Any) -> Any:
    hidden = torch.relu(x @ x).softmax(-1)
    gathered = torch.ops._c10d_functional.all_gather_into_tensor(hidden, 2, "0")
    between = (x * 2).softmax(-1) @ x  # wants memory of the size that hidden has
    total = functional.all_reduce(between.softmax(-1), "sum", distributed.group.WORLD)
    arrived = torch.ops._c10d_functional.wait_tensor(gathered)
    return arrived.softmax(0), torch.tanh(total.softmax(-1) @ x).softmax(-1)


def region_of() -> CompiledRegion:
    region, _ = compiled(model, torch.randn(64, 64))
    return region


def calls_of(region: CompiledRegion) -> list[tuple[int, Extern]]:
    return [
        (position, step)
        for position, step in enumerate(region.steps)
        if isinstance(step, Extern) and collectives.is_collective(step.target)
    ]


def test_what_a_collective_was_given_stays_until_its_result_has_arrived() -> None:
    region = region_of()
    calls = {step.name: (position, step) for position, step in calls_of(region)}
    began, gather = calls["ext_all_gather_into_tensor"]
    arrived = max(
        position
        for position, step in calls.values()
        if collectives.waits(step.target) and step.reads == gather.result_names
    )
    assert arrived > began + 1
    (given,) = gather.reads
    assert region.plan.last_use[given] >= arrived
    assert given not in region.plan.reuses.values()


def test_collectives_stay_in_the_order_of_the_model() -> None:
    names = [step.fx_node for _, step in calls_of(region_of())]
    assert names == ["all_gather_into_tensor", "all_reduce", "wait_tensor", "wait_tensor_1"]
    assert all(step.reason is ExternReason.COLLECTIVE and step.keeps_order for _, step in calls_of(region_of()))


def test_graphs_are_cut_around_collectives() -> None:
    region = region_of()
    refused = refused_steps(region.steps, region.graph)
    assert sorted(refused) == [position for position, _ in calls_of(region)]
    assert {reason.rule for reason in refused.values()} == {"collective"}
    assert all("backend is fake" in reason.detail for reason in refused.values())
    assert [piece.captured for piece in split(region.program, region.steps, refused)].count(True) >= 2


@pytest.mark.parametrize(("asked", "count"), [(False, 4), (True, 0)])
def test_nccls_are_captured_where_that_was_asked_for(monkeypatch: pytest.MonkeyPatch, asked: bool, count: int) -> None:
    monkeypatch.setattr(collectives, "backend_of", lambda *_: "nccl")
    region = region_of()
    refused = refused_steps(region.steps, region.graph, capture_collectives=asked)
    assert len(refused) == count
    assert all("graph_collectives" in reason.detail for reason in refused.values())


def test_the_check_list_names_the_line_and_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(collectives, "backend_of", lambda *_: "nccl")
    report = compile_model(model, (torch.randn(64, 64),), source="test", target=TARGET).report
    found = [check for check in capture_checks(report) if check.title == "Processes exchange data"]
    assert {check.node for check in found} == {"all_gather_into_tensor", "all_reduce", "wait_tensor", "wait_tensor_1"}
    for check in found:
        assert check.source is not None
        assert check.source.file.endswith("test_collectives.py")
        assert "graph_collectives" in check.advice
    options = {"graph_collectives": "true"}
    report = compile_model(model, (torch.randn(64, 64),), source="test", target=TARGET, options=options).report
    (captured,) = [check for check in capture_checks(report) if "exchange" in check.title]
    assert (captured.state, captured.title) == (State.OK, "4 calls exchange data in the graph")
