"""Biases of library calls, taken out of the call where kernels of ours read its result: these add them at no cost.

Of a convolution, ATen adds the bias in a kernel of its own. Of a product in float32, cuBLAS adds it itself, but chooses
otherwise among its kernels then: on an H200 in strict float32 GPT-2 took 2.45 ms with its biases in the calls and 1.64
without, an MLP of eight layers 97 µs with and 150 without. So both are timed on the GPU compiled for; elsewhere the
bias is taken out. In lower precision a product keeps its bias, for apart the result would be rounded once more.
"""

from __future__ import annotations

from collections.abc import Callable

import torch

from compiler.lowering.extern import certainly_extern
from compiler.lowering.graph import is_view
from compiler.passes.padding import product_of
from compiler.passes.products import Product
from compiler.passes.restriding import Restriding, is_static
from compiler.texts import time_text

aten = torch.ops.aten
Measure = Callable[[Product], tuple[float, float] | None]


def biases_apart(graph: torch.fx.GraphModule, measure: Measure | None = None) -> torch.fx.GraphModule:
    """The same computation with such biases added by their readers.

    ``measure`` tells how many µs a product takes on this machine's GPU with a bias and without; None from it, or none,
    and the bias is taken out.
    """
    biased = [n for n in graph.graph.nodes if _has_bias(n) and _read_by_kernels(n, n.meta["val"].is_cuda)]
    if measure is not None and is_static(graph):
        biased = [n for n in biased if not _slower_apart(n, measure)]
    return _Apart(graph, frozenset(biased)).run() if biased else graph


def _slower_apart(node: torch.fx.Node, measure: Measure) -> bool:
    if node.target is not aten.addmm.default:
        return False
    times = measure(product_of(node))
    if times is None or times[1] <= times[0]:
        return False
    within, apart = times
    node.meta["bias"] = f"adds its bias itself (measured: {time_text(within)} with it, {time_text(apart)} without)"
    return True


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
    def __init__(self, graph: torch.fx.GraphModule, chosen: frozenset[torch.fx.Node]) -> None:
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
