"""Biases of convolutions, taken out of the library call where a kernel of ours reads its result.

ATen adds a bias to what cuDNN made in a kernel of its own; the reader adds it at no cost.
"""

from __future__ import annotations

import torch

from compiler.lowering.extern import certainly_extern
from compiler.restriding import Restriding

aten = torch.ops.aten


def biases_apart(graph: torch.fx.GraphModule) -> torch.fx.GraphModule:
    """The same computation with such biases added by their readers."""
    chosen = {node for node in graph.graph.nodes if _is_apart(node)}
    return _Apart(graph, chosen).run() if chosen else graph


def _is_apart(node: torch.fx.Node) -> bool:
    if node.target is not aten.convolution.default or not isinstance(node.args[2], torch.fx.Node):
        return False
    value = node.meta["val"]
    return value.dtype.is_floating_point and all(
        reader.op == "call_function" and not certainly_extern(reader, value.is_cuda) for reader in node.users
    )


class _Apart(Restriding):
    def __init__(self, graph: torch.fx.GraphModule, chosen: set[torch.fx.Node]) -> None:
        super().__init__(graph)
        self.chosen = chosen

    def replaced(self, node: torch.fx.Node) -> torch.fx.Node | None:
        """The convolution without its bias, and the sum of both."""
        if node not in self.chosen:
            return None
        bias = node.args[2]
        assert isinstance(bias, torch.fx.Node)
        x, weight, _, *rest = (self.made[x] if isinstance(x, torch.fx.Node) else x for x in node.args)
        plain = self.new.create_node("call_function", node.target, (x, weight, None, *rest), {}, node.name)
        plain.meta = {**node.meta}
        shape = [-1, *[1] * (node.meta["val"].dim() - 2)]
        return self.call(aten.add.Tensor, (plain, self.call(aten.view.default, (self.made[bias], shape), node)), node)
