"""Stack traces and module paths read back into source lines."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor, nn

from compiler.dynamo.frames import parse_stack
from compiler.pipeline import compile_model
from compiler.provenance import clean_path, module_of, provenance_of, with_forward
from compiler.report import NodeKind, Provenance, SourceLine
from compiler.targets import resolve

TRACE = f"""
  File "/home/me/model.py", line 12, in forward
    return self.block(x)
  File "{torch.__path__[0]}/nn/modules/module.py", line 1750, in _call_impl
    return forward_call(*args, **kwargs)
  File "/home/me/block.py", line 7, in forward
    x = torch.relu(x)
"""


def test_the_innermost_frame_of_the_user_comes_first_and_torchs_are_left_out() -> None:
    assert parse_stack(TRACE) == [
        SourceLine("/home/me/block.py", 7, "forward", "x = torch.relu(x)"),
        SourceLine("/home/me/model.py", 12, "forward", "return self.block(x)"),
    ]


def test_frames_without_their_code_are_kept() -> None:
    trace = (
        '  File "a.py", line 1, in f\n  File "b.py", line 2, in <lambda>\n    y = x + 1\n  File "c.py", line 3, in g'
    )
    found = parse_stack(trace)
    assert [(f.file, f.line, f.function, f.code) for f in found] == [
        ("c.py", 3, "g", ""), ("b.py", 2, "<lambda>", "y = x + 1"), ("a.py", 1, "f", ""),
    ]  # fmt: skip


@pytest.mark.parametrize("text", ["", "no frames here", "\n\n"])
def test_no_trace_is_no_frames(text: str) -> None:
    assert parse_stack(text) == []


@pytest.mark.parametrize(
    ("path", "clean"),
    [
        ("L['self'].layers[0].attn", "layers.0.attn"),
        ("L['self']._modules['layers']._modules['0'].attn", "layers.0.attn"),
        ("L['self'].layers['0'].attn", "layers.0.attn"),
        ("L['fn'].head", "head"),
        ("L['self']", ""),
        ("encoder.mlp", "encoder.mlp"),
    ],
)
def test_module_paths_read_like_named_modules(path: str, clean: str) -> None:
    assert clean_path(path) == clean


def test_nodes_that_dynamo_captures_name_their_line_and_module() -> None:
    class Inner(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return x.sin() + 1

    class Outer(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layers = nn.ModuleList([Inner(), Inner()])

        def forward(self, x: Tensor) -> Tensor:
            for layer in self.layers:
                x = layer(x)
            return x.cos()

    graphs: list[torch.fx.GraphModule] = []

    def keep(gm: torch.fx.GraphModule, inputs: list[Tensor]) -> torch.fx.GraphModule:
        graphs.append(gm)
        return gm

    torch._dynamo.reset()
    torch.compile(Outer(), backend=keep)(torch.randn(3))
    nodes = [n for n in graphs[0].graph.nodes if n.op in ("call_function", "call_method")]
    assert [module_of(n) for n in nodes] == [
        ("layers.0", "Inner"), ("layers.0", "Inner"), ("layers.1", "Inner"), ("layers.1", "Inner"), ("", ""),
    ]  # fmt: skip
    first = provenance_of(nodes[0])
    assert first.exact
    assert first.frames[0].code == "return x.sin() + 1"
    assert first.frames[0].file == __file__
    assert first.frames[1].code == "x = layer(x)"


def test_a_node_without_a_trace_says_that_its_place_is_not_exact() -> None:
    graph = torch.fx.Graph()
    assert not provenance_of(graph.placeholder("x")).exact


@pytest.mark.parametrize("compiler", ["fusescope", "inductor"])
def test_a_model_that_is_one_of_torchs_modules_has_its_line(compiler: str) -> None:
    """Dynamo keeps no frame of torch's own code, and such a model has no other: its forward is inferred."""
    pytest.importorskip("triton", reason="kernels are Triton's")
    model, x = nn.Sequential(nn.LayerNorm(64), nn.GELU()).eval(), torch.randn(4, 64)
    report = compile_model(model, (x,), source="m", target=resolve("h100"), compiler=compiler).report
    lines = {}
    for node in report.regions[0].nodes:
        if node.kind is NodeKind.CALL:
            (line,) = node.provenance.frames
            assert not node.provenance.exact
            assert line.function == "forward"
            assert line.code.startswith("def forward(self, input: Tensor)")
            lines[node.provenance.module_type] = line.file
    assert {kind: file.rsplit("/", 1)[-1] for kind, file in lines.items()} == {
        "LayerNorm": "normalization.py",
        "GELU": "activation.py",
    }


def test_a_frame_comes_before_a_forward_and_not_every_class_has_one() -> None:
    node = torch.fx.Graph().placeholder("x")
    node.meta["nn_module_stack"] = {"a": ("L['self']", "torch.nn.modules.linear.Linear")}
    (line,) = with_forward(Provenance(), node).frames
    assert line.file.endswith("linear.py")
    known = Provenance([SourceLine("model.py", 3)])
    assert with_forward(known, node) == known
    for kind in ("my.module.Linear", int, "", "torch.nn.no.such.Class"):
        node.meta["nn_module_stack"] = {"a": ("L['self']", kind)}
        assert with_forward(Provenance(), node) == Provenance()
