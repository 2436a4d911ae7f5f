"""Biases of library calls, taken out of the call where kernels of ours read its result: these add them at no cost.

Of a convolution, ATen adds the bias in a kernel of its own. Of a product in float32, cuBLAS adds it itself, but chooses
among fewer kernels then: on an H200 the products of GPT-2 took 58 µs with their bias and about half without. In lower
precision a product keeps its bias, for apart the result would be rounded once more.
"""

from __future__ import annotations

import torch

from compiler.lowering.extern import certainly_extern
from compiler.lowering.graph import is_view
from compiler.restriding import Restriding

aten = torch.ops.aten


def biases_apart(graph: torch.fx.GraphModule) -> torch.fx.GraphModule:
    """The same computation with such biases added by their readers."""
    biased = filter(_has_bias, graph.graph.nodes)
    chosen = {node for node in biased if _read_by_kernels(node, node.meta["val"].is_cuda)}
    return _Apart(graph, chosen).run() if chosen else graph


def _has_bias(node: torch.fx.Node) -> bool:
    """Whether a bias can be taken out of the call, its result as exact as before."""
    if node.target is aten.convolution.default:
        return isinstance(node.args[2], torch.fx.Node) and node.meta["val"].dtype.is_floating_point
    if node.target is not aten.addmm.default or node.kwargs or node.meta["val"].dtype is not torch.float32:
        return False
    bias = node.args[0]
    return isinstance(bias, torch.fx.Node) and bias.meta["val"].dim() == 1


def _read_by_kernels(node: torch.fx.Node, on_gpu: bool) -> bool:
    """Whether every reader, seen through views, may be part of a kernel."""
    return all(
        _read_by_kernels(reader, on_gpu)
        if is_view(reader)
        else reader.op == "call_function" and not certainly_extern(reader, on_gpu)
        for reader in node.users
    )


class _Apart(Restriding):
    def __init__(self, graph: torch.fx.GraphModule, chosen: set[torch.fx.Node]) -> None:
        super().__init__(graph)
        self.chosen = chosen

    def replaced(self, node: torch.fx.Node) -> torch.fx.Node | None:
        """The call without its bias, and the sum of both."""
        if node not in self.chosen:
            return None
        args = [self.made[x] if isinstance(x, torch.fx.Node) else x for x in node.args]
        if node.target is aten.addmm.default:
            bias, *operands = args
            plain = self.new.create_node("call_function", aten.mm.default, tuple(operands), {}, node.name)
        else:
            x, weight, bias, *rest = args
            plain = self.new.create_node("call_function", node.target, (x, weight, None, *rest), {}, node.name)
            bias = self.call(aten.view.default, (bias, [-1, *[1] * (node.meta["val"].dim() - 2)]), node)
        plain.meta = {**node.meta}
        return self.call(aten.add.Tensor, (plain, bias), node)
