"""The smallest graph that still fails, found behind a fault put in by hand, and written as a source that fails too."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from app.cli import run
from compiler.errors import CompileError
from compiler.lowering import registry
from compiler.minified_source import minified_source
from compiler.minify import Minified, crashes, minify_model
from compiler.pipeline import compile_model
from tests.graphs import TARGET

pytest.importorskip("triton", reason="kernels are Triton's")
aten = torch.ops.aten

pytestmark = pytest.mark.usefixtures("fresh_dynamo")


@pytest.fixture(autouse=True)
def faulty_tanh(monkeypatch: pytest.MonkeyPatch) -> None:
    """tanh cannot be lowered where its argument has more than one dimension."""
    whole = registry.rule_for(aten.tanh.default)
    assert whole is not None

    def rule(scope: Any, x: Any) -> Any:
        if len(x.size) > 1:
            raise ZeroDivisionError("no such luck")
        return whole(scope, x)

    monkeypatch.setitem(registry._RULES, aten.tanh.default, rule)


class Model(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(12, 20), nn.Linear(20, 7)
        self.register_buffer("shift", torch.arange(20.0))

    def forward(self, x: Tensor, index: Tensor) -> Tensor:
        x = F.gelu(self.first(x[index]).softmax(-1) + self.shift)
        return self.second(x.tanh().relu()).log_softmax(-1)


def inputs() -> tuple[Tensor, Tensor]:
    return torch.randn(9, 12), torch.tensor([3, 1, 8, 0])


def minified(training: bool = False) -> Minified:
    found = minify_model(Model(), inputs(), crashes(TARGET), training=training)
    assert found is not None
    return found


def loaded(text: str, folder: Path) -> ModuleType:
    path = folder / "small.py"
    path.write_text(text)
    spec = importlib.util.spec_from_file_location("small", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("training", [False, True], ids=["inference", "training"])
def test_one_call_is_left_on_the_smallest_sizes(training: bool) -> None:
    found = minified(training)
    calls = [n for n in found.graph.graph.nodes if n.op == "call_function"]
    assert [n.target for n in calls] == [aten.tanh.default]
    assert found.nodes == 1
    assert found.nodes_before > 8
    assert [tuple(x.shape) for x in found.inputs] == [(1, 1)]
    assert found.region == ("forward" if training else "inference")
    assert "ZeroDivisionError: no such luck (stage lower, node tanh" in found.failure.text


def test_a_model_that_does_not_fail() -> None:
    assert minify_model(nn.Linear(3, 3), (torch.randn(2, 3),), crashes(TARGET), training=True) is None


def test_another_failure_is_not_followed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Once smaller, the graph meets a second fault: that is not the one to be shown."""
    whole = registry.rule_for(aten.relu.default)
    assert whole is not None

    def rule(scope: Any, x: Any) -> Any:
        if x.fx_node != "tanh":
            raise KeyError("something else")
        return whole(scope, x)

    monkeypatch.setitem(registry._RULES, aten.relu.default, rule)
    assert "ZeroDivisionError" in minified().failure.text


def test_the_source_written_fails_as_the_model_did(tmp_path: Path) -> None:
    found = minified()
    text = minified_source(found, crashes(TARGET), source="model.py", command="compile")
    model, arguments = loaded(text, tmp_path).minified()
    assert model(*arguments)[0].shape == (1, 1)
    with pytest.raises(CompileError, match="no such luck"):
        compile_model(model, arguments, source="small.py", target=TARGET)
    assert text.startswith('"""1 of the ')
    assert "no such luck" in text


def test_inputs_keep_layout_bounds_and_few_values(tmp_path: Path) -> None:
    values = (
        torch.randn(3, 4).t(), torch.randn(1, 3).expand(5, 3), torch.tensor([5, 7, 6]), torch.tensor([True, False]),
        torch.randn(2, 3, dtype=torch.bfloat16)[:, ::2], torch.tensor(2.5),
    )  # fmt: skip
    names = [f"x{i}" for i in range(len(values))]
    graph = torch.fx.Graph()
    nodes = [graph.placeholder(name) for name in names]
    graph.output((graph.call_function(aten.tanh.default, (nodes[0],)),))
    found = Minified(torch.fx.GraphModule({}, graph), values, minified().failure, "inference", 1, 1)
    text = minified_source(found, crashes(TARGET), source="x", command="compile")
    assert "randn" in text, "the failure does not depend on the values"
    for made, value in zip(loaded(text, tmp_path).minified()[1], values, strict=True):
        assert (made.shape, made.stride(), made.dtype) == (value.shape, value.stride(), value.dtype)
    text = minified_source(found, lambda graph, inputs: None, source="x", command="compile")
    made = loaded(text, tmp_path).minified()[1]
    assert all(torch.equal(a, b) for a, b in zip(made, values, strict=True))


def test_the_command_writes_a_file_that_the_command_line_opens(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source, small = tmp_path / "model.py", tmp_path / "small.py"
    source.write_text("import torch\ndef model():\n    return lambda x: (x + 1).tanh().sum(), (torch.randn(4, 5),)\n")
    assert run(["minify", str(source), "-o", str(small), "--target", "h100"]) == 0
    assert "1 call of " in capsys.readouterr().out
    assert run(["compile", str(small), "--target", "h100"]) == 1
    assert "no such luck" in capsys.readouterr().err
    source.write_text("import torch\ndef model():\n    return lambda x: x + 1, (torch.randn(4, 5),)\n")
    assert run(["minify", str(source), "-o", str(small), "--target", "h100"]) == 0
    assert "Nothing to minify" in capsys.readouterr().out
