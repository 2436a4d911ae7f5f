"""Wrong numbers are minified too: a rule that computes something else is found by comparing with eager."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

from compiler.lowering import registry
from compiler.minified_source import minified_source
from compiler.minify import differs, minify_model
from compiler.ops import const, op
from tests.graphs import TARGET

aten = torch.ops.aten


def test_a_wrong_number_is_narrowed_down_to_its_op(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = registry.rule_for(aten.tanh.default)
    assert whole is not None

    def rule(scope: Any, x: Any) -> Any:
        right = whole(scope, x)
        return scope.pointwise(
            [right], lambda index: op("add", x.dtype, right.load(index), const(0.5, x.dtype))
        )

    monkeypatch.setitem(registry._RULES, aten.tanh.default, rule)

    def function(x: Tensor, w: Tensor) -> Tensor:
        return ((x @ w).softmax(-1).tanh() * 2 + x.sum(1, keepdim=True)).relu()

    torch._dynamo.reset()
    check = differs(TARGET)
    found = minify_model(function, (torch.randn(6, 8), torch.randn(8, 8)), check, training=False)
    assert found is not None
    assert [n.target for n in found.graph.graph.nodes if n.op == "call_function"] == [aten.tanh.default]
    assert found.failure.kind == "numbers"
    assert "verify" in minified_source(found, check, source="x", command="verify")
    assert minify_model(lambda x: x.relu() + 1, (torch.randn(6, 8),), check, training=False) is None
