"""Misaligned matrix products are padded where that is faster: operands to multiples of 16 bytes, the result sliced.

The zeros are written by whichever kernel makes the operand, where one of ours does; weights and other inputs are
copied at every call, so that a weight that was changed in place is seen. Readers of the result read it where it lies,
between its padding; only a reader outside gets a copy without. Whether it is faster is measured on the GPU compiled
for, else estimated.

Of sizes known only at run time none is padded, and what is faster is judged by those of the example. Where the strides
that readers get could be told only by a guard on such a size, the graph stays as it is.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from compiler.lowering.extern import certainly_extern, mutated_arguments
from compiler.lowering.graph import is_view
from compiler.lowering.registry import rule_for
from compiler.lowering.symbols import SizeAsked, example, no_new_guards
from compiler.passes.products import (
    LEAST_US,
    PRODUCTS,
    Choice,
    Operand,
    Padding,
    Product,
    can_be_padded,
    estimated,
    padding_of,
)
from compiler.passes.restriding import Restriding
from compiler.report import Target
from compiler.texts import time_text

aten = torch.ops.aten
Measure = Callable[[Product, Padding], Choice | None]
MEASURED_FROM = 0.3  # of the estimate's least time: estimates may be wrong by that much


def pad_products(graph: torch.fx.GraphModule, target: Target, measure: Measure | None = None) -> torch.fx.GraphModule:
    """The same computation with its misaligned products padded, where one is misaligned and large enough to matter.

    ``measure`` times both ways on this machine's GPU; None from it, or none, leaves the choice to the estimate. What
    was chosen is in a product's ``meta["padding"]``, padded or not. Outputs keep the strides that they had.
    """
    choices = _choices(graph, target, measure)
    for node, choice in choices.items():
        node.meta["padding"] = reason(product_of(node), choice)
    padded = {node: choice.padding for node, choice in choices.items() if choice.pads}
    try:
        with no_new_guards(graph.graph):
            return _Padded(graph, padded).run() if padded else graph
    except SizeAsked:
        for node in padded:
            del node.meta["padding"]
        return graph


def _choices(graph: torch.fx.GraphModule, target: Target, measure: Measure | None) -> dict[torch.fx.Node, Choice]:
    found = {}
    for node in graph.graph.nodes:
        if node.target not in PRODUCTS:
            continue
        product = product_of(node)
        padding = padding_of(product)
        if not padding or not can_be_padded(product, target):
            continue
        estimate = estimated(product, padding, target)
        if estimate.plain_us < LEAST_US * (MEASURED_FROM if measure is not None else 1.0):
            continue
        measured = measure(product, padding) if measure is not None else None
        found[node] = measured or estimate
    return found


def product_of(node: torch.fx.Node) -> Product:
    """The product that a call of mm, addmm or bmm makes."""
    a, b = operands_of(node)
    value = node.meta["val"]
    m, k = a.meta["val"].shape[-2:]
    k_of_b, n = b.meta["val"].shape[-2:]
    known = {"m": isinstance(m, int), "k": isinstance(k, int) or isinstance(k_of_b, int), "n": isinstance(n, int)}
    fixed = frozenset(name for name, is_known in known.items() if is_known)
    return Product(value.dtype, value.device, _operand(a), _operand(b), fixed, _is_made(a), _is_made(b), _leaves(node))


def operands_of(node: torch.fx.Node) -> tuple[torch.fx.Node, torch.fx.Node]:
    """The two matrices."""
    a, b = node.args[1:3] if node.target is aten.addmm.default else node.args[:2]
    assert isinstance(a, torch.fx.Node)
    assert isinstance(b, torch.fx.Node)
    return a, b


def _operand(node: torch.fx.Node) -> Operand:
    value = node.meta["val"]
    return Operand(tuple(map(example, value.shape)), tuple(map(example, value.stride())))


def _is_made(node: torch.fx.Node) -> bool:
    """Whether a kernel of ours makes the value, and for nobody but products."""
    root = node
    while is_view(root) and root.all_input_nodes:
        root = root.all_input_nodes[0]
    made = root.op == "call_function" and not certainly_extern(root, node.meta["val"].is_cuda)
    return made and all(reader.target in PRODUCTS for reader in _readers(root))


def _readers(node: torch.fx.Node) -> list[torch.fx.Node]:
    """Who reads the value, seen through views."""
    return [r for user in node.users for r in (_readers(user) if is_view(user) else [user])]


def _leaves(node: torch.fx.Node) -> bool:
    """Whether somebody reads the result who may have to get it without padding."""
    return any(reader.op == "output" or not _reads_anywhere(reader) for reader in _readers(node))


def _reads_anywhere(node: torch.fx.Node) -> bool:
    """Whether the reader takes operands of any strides: products, and what has a rule that generates code."""
    if node.target in PRODUCTS:
        return True
    packet = getattr(node.target, "overloadpacket", None)
    return packet is not aten.as_strided and rule_for(node.target) is not None and not mutated_arguments(node)


def reason(product: Product, choice: Choice) -> str:
    """The choice as a sentence."""
    grown = zip("MKN", product.mkn, (choice.padding.m, choice.padding.k, choice.padding.n), strict=True)
    sizes = [f"{name} {size} padded to {size + more}" for name, size, more in grown if more]
    how = "measured" if choice.measured else "estimated"
    times = f"{how}: {time_text(choice.plain_us)} misaligned, {time_text(choice.padded_us)} padded"
    return f"{', '.join(sizes)} ({times})" if choice.pads else f"misaligned and left so ({times})"


class _Padded(Restriding):
    def __init__(self, graph: torch.fx.GraphModule, paddings: dict[torch.fx.Node, Padding]) -> None:
        super().__init__(graph)
        self.paddings = paddings
        self._known: dict[Any, torch.fx.Node] = {}  # what was padded already, for the next product that reads it

    def follows(self, node: torch.fx.Node) -> bool:
        """What reads a padded result where it lies."""
        return super().follows(node) or _reads_anywhere(node)

    def replaced(self, node: torch.fx.Node) -> torch.fx.Node | None:
        """A padded product, sliced."""
        if mutated_arguments(node):
            self._known.clear()
        if node not in self.paddings:
            return None
        padding = self.paddings[node]
        a, b = (self.made[x] for x in operands_of(node))
        operands = [self._grown(a, node, padding.m, padding.k), self._grown(b, node, padding.k, padding.n)]
        if node.target is aten.addmm.default:
            assert isinstance(node.args[0], torch.fx.Node)
            operands.insert(0, self._bias(self.made[node.args[0]], node, padding))
        product = self.new.create_node("call_function", node.target, tuple(operands), dict(node.kwargs), node.name)
        product.meta = {**node.meta}
        product.meta["val"] = self._value(product)
        rank = node.meta["val"].dim()
        result = product
        for dim, more in ((rank - 2, padding.m), (rank - 1, padding.n)):
            if more:
                result = self.call(aten.slice.Tensor, (result, dim, 0, node.meta["val"].shape[dim]), node)
        return result

    def _bias(self, bias: torch.fx.Node, origin: torch.fx.Node, padding: Padding) -> torch.fx.Node:
        size = bias.meta["val"].shape
        columns = padding.n if len(size) and size[-1] != 1 else 0
        rows = padding.m if len(size) == 2 and size[0] != 1 else 0
        if not rows and not columns:
            return bias
        widths = [0, columns, 0, rows] if rows else [0, columns]
        return self.call(aten.constant_pad_nd.default, (bias, widths), origin)

    def _grown(self, value: torch.fx.Node, origin: torch.fx.Node, rows: int, columns: int) -> torch.fx.Node:
        """The matrix with zeros below and to the right. It is padded as it lies in memory."""
        if not rows and not columns:
            return value
        tensor = value.meta["val"]
        if _operand(value).by_columns:
            order = [*range(tensor.dim() - 2), tensor.dim() - 1, tensor.dim() - 2]
            turned = self.call(aten.permute.default, (value, order), origin)
            return self.call(aten.permute.default, (self._grown(turned, origin, columns, rows), order), origin)
        root = value
        while is_view(root) and root.all_input_nodes:
            root = root.all_input_nodes[0]
        key = root, str((tensor.shape, tensor.stride(), tensor.storage_offset())), rows, columns
        if key not in self._known:
            self._known[key] = self.call(aten.constant_pad_nd.default, (value, [0, columns, 0, rows]), origin)
        return self._known[key]
