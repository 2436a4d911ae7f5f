"""Verification must catch a wrong kernel: its parts on values made by hand; whole models in ``tests/interpret``."""

from __future__ import annotations

import math

import pytest
import torch

from compiler.verify import evaluate, relative_error, verify_model
from tests.graphs import capture


def test_relative_error_is_that_of_the_norms() -> None:
    reference = torch.tensor([3.0, 4.0])
    assert relative_error(reference, reference) == 0.0
    assert relative_error(torch.tensor([3.0, 4.5]), reference) == pytest.approx(0.1)
    assert relative_error(torch.tensor([1.0]), torch.tensor([0.0])) == 1.0


def test_infinities_and_nans_agree_only_with_themselves() -> None:
    odd = torch.tensor([math.inf, -math.inf, math.nan, 1.0])
    assert relative_error(odd, odd.clone()) == 0.0
    for wrong in (
        [math.inf, math.inf, math.nan, 1.0],
        [math.inf, -math.inf, 0.0, 1.0],
        [0.0, -math.inf, math.nan, 1.0],
    ):
        error = relative_error(torch.tensor(wrong), odd)
        assert not error <= 1e-3, wrong


def test_evaluation_stops_at_what_is_known_and_widens() -> None:
    graph = capture(lambda x: ((x + 1) * 3).sum(0), torch.randn(4, 2))
    nodes = {node.name: node for node in graph.graph.nodes}
    x = torch.full((4, 2), 0.1)
    exact = evaluate(nodes["sum_1"], {"arg0_1": x}, double=True)
    assert exact.dtype is torch.float64
    torch.testing.assert_close(exact, ((x.double() + 1) * 3).sum(0), rtol=0, atol=0)
    shortcut = evaluate(nodes["sum_1"], {"mul": torch.ones(4, 2)}, double=False)
    assert shortcut.tolist() == [4.0, 4.0]


def test_evaluation_without_its_inputs_says_which() -> None:
    graph = capture(lambda x: x + 1, torch.randn(4))
    node = next(n for n in graph.graph.nodes if n.name == "add")
    with pytest.raises(KeyError, match="arg0_1"):
        evaluate(node, {}, double=True)


def test_verifying_needs_something_to_run_kernels_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TRITON_INTERPRET", raising=False)
    with pytest.raises(RuntimeError, match="TRITON_INTERPRET=1"):
        verify_model(torch.relu, (torch.randn(3),), source="relu", interpret=True)
    if not torch.cuda.is_available():
        with pytest.raises(RuntimeError, match="no GPU"):
            verify_model(torch.relu, (torch.randn(3),), source="relu", interpret=False)
