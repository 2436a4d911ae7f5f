"""Whether a graph computes each sample of a batch from that sample alone, so that rows may be added and thrown away.

A dynamic size ``s`` is followed through the graph. A tensor is *in rows* where one dimension has ``k * s`` elements of
which each run of ``k`` belongs to one sample; everything else must not depend on ``s`` at all. An op that is not known
to keep samples apart ends the search: padding must never be assumed to be harmless.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import sympy
import torch
from torch import Tensor
from torch.fx import Node

aten = torch.ops.aten


@dataclass(frozen=True)
class Rows:
    """Dimension ``dim`` holds ``per_sample`` elements for each sample."""

    dim: int
    per_sample: int = 1


@dataclass(frozen=True)
class Batch:
    """What padding needs to know: where the inputs and outputs of a graph have their samples.

    ``numbers`` are the inputs that are the count of samples itself. ``serves(n)`` tells whether the graph, as it was
    captured, is good for ``n`` samples.
    """

    inputs: Mapping[int, Rows]
    outputs: Mapping[int, Rows]
    numbers: frozenset[int]
    serves: Callable[[int], bool]


class Dependent(Exception):
    """Samples may meet, or the number of them matters; ``node`` is where, ``args[0]`` why."""

    def __init__(self, why: str, node: Node | None = None) -> None:
        super().__init__(why)
        self.node = node


def batch_of(graph: torch.fx.GraphModule) -> Batch:
    """Where the graph has its samples.

    Raises:
        Dependent: it is not known that padding changes nothing.
    """
    return _Search(graph).run()


# Ops that treat every element, or every row of the last dimensions, alike, whatever the layout of the batch.
_KEEPING = {
    aten.clone.default, aten._to_copy.default, aten.alias.default, aten.detach.default, aten.lift_fresh_copy.default,
}  # fmt: skip
_FILLS = {aten.full.default, aten.zeros.default, aten.ones.default}
_VIEWS = {aten.view.default, aten._unsafe_view.default, aten.reshape.default}
# Whose result may lie in the memory of their first argument.
_MAY_ALIAS = _VIEWS | {
    aten.alias.default, aten.detach.default, aten.permute.default, aten.unsqueeze.default, aten.squeeze.dim,
    aten.squeeze.dims, aten.expand.default, aten.select.int, aten.slice.Tensor,
}  # fmt: skip
# Where the number of samples may stand among the arguments: it says no more than the sizes of the result do.
_SIZED = _VIEWS | {aten.expand.default, aten.full.default, aten.zeros.default, aten.ones.default}
# Reductions and scans along the dimensions that are their second argument.
_ALONG = {
    aten.sum.dim_IntList, aten.mean.dim, aten.amax.default, aten.amin.default, aten.var_mean.correction,
    aten.var.correction, aten.any.dim, aten.any.dims, aten.prod.dim_int, aten.argmax.default, aten.argmin.default,
    aten.max.dim, aten.min.dim, aten.logsumexp.default,
}  # fmt: skip
_SCANS = {aten.cumsum.default, aten._softmax.default, aten._log_softmax.default}
# Calls whose first dimension is the batch in every tensor that has one.
_FIRST_DIM = {
    aten.convolution.default, aten.max_pool2d_with_indices.default, aten.avg_pool2d.default,
    aten._adaptive_avg_pool2d.default,
}  # fmt: skip
# The same, of which only the first result is known: what follows it is for a backward.
_ATTENTION = {
    aten._scaled_dot_product_flash_attention.default, aten._scaled_dot_product_efficient_attention.default,
    aten._scaled_dot_product_cudnn_attention.default, aten._scaled_dot_product_flash_attention_for_cpu.default,
    aten._scaled_dot_product_fused_attention_overrideable.default, aten.scaled_dot_product_attention.default,
}  # fmt: skip


class _Search:
    def __init__(self, graph: torch.fx.GraphModule) -> None:
        self.nodes = list(graph.graph.nodes)
        self.placeholders = [node for node in self.nodes if node.op == "placeholder"]
        self.found: dict[Node, Rows | None] = {}
        self.symbol = self._only_symbol()

    def _only_symbol(self) -> sympy.Symbol:
        values = [node.meta.get("val") for node in self.placeholders]
        numbers = [n for v in values for n in ((*v.shape, *v.stride()) if isinstance(v, Tensor) else (v,))]
        varying = [n for n in numbers if isinstance(n, torch.SymInt)]
        symbols = {s for n in varying for s in n.node.expr.free_symbols}
        if len(symbols) != 1:
            raise Dependent(f"{len(symbols)} sizes vary, where rows can be added along one.")
        (symbol,) = symbols
        assert isinstance(symbol, sympy.Symbol)
        self.shape_env = varying[0].node.shape_env
        return symbol

    def run(self) -> Batch:
        inputs, outputs, numbers = {}, {}, set()
        for position, node in enumerate(self.placeholders):
            value = node.meta.get("val")
            if isinstance(value, torch.SymInt):
                if value.node.expr != self.symbol:
                    raise Dependent("A number that is made of the size comes in.", node)
                numbers.add(position)
            elif isinstance(value, Tensor):
                rows = self.found[node] = self._declared(node, value)
                if rows is not None:
                    if rows.per_sample != 1:
                        raise Dependent("An input has several rows for a sample.", node)
                    inputs[position] = rows
        for node in self.nodes:
            if node.op == "call_function":
                self.found[node] = self._follow(node)
            elif node.op == "get_attr":
                self.found[node] = None
        (output,) = (node for node in self.nodes if node.op == "output")
        for position, result in enumerate(output.args[0]):
            if not isinstance(result, Node):
                continue
            value = result.meta.get("val")
            if not isinstance(value, Tensor):
                raise Dependent("A number is returned.", result)
            rows = self._declared(result, value)
            if rows is None:
                continue
            if self._memory_of(result).op == "placeholder":
                raise Dependent("An input is returned, which must stay the caller's memory.", result)
            outputs[position] = rows
        if not inputs:
            raise Dependent("No input has rows.")
        return Batch(inputs, outputs, frozenset(numbers), self._serves)

    def _memory_of(self, node: Node) -> Node:
        while node.target in _MAY_ALIAS and isinstance(node.args[0], Node):
            node = node.args[0]
        return node

    def _serves(self, samples: int) -> bool:
        """Whether what the capture took for granted of the size holds of ``samples``, too."""
        guards = [guard.expr for guard in self.shape_env.guards]
        within = self.shape_env.var_to_range.get(self.symbol)
        return (within is None or samples in within) and all(
            expr.xreplace({self.symbol: sympy.Integer(samples)}) == sympy.true
            for expr in guards
            if self.symbol in expr.free_symbols
        )

    def _declared(self, node: Node, value: Tensor) -> Rows | None:
        """Where a tensor that comes in or goes out has its samples. Its strides must not depend on how many they are,
        for the caller's part of a padded tensor has those of the whole."""
        if any(self._varies(stride) for stride in value.stride()):
            raise Dependent("The samples are not outermost in memory.", node)
        return self._rows(node, value.shape)

    def _varies(self, number: Any) -> bool:
        return isinstance(number, torch.SymInt) and self.symbol in number.node.expr.free_symbols

    def _per_sample(self, size: Any, node: Node) -> int:
        """How many of a dimension's elements belong to one sample."""
        quotient = sympy.cancel(size.node.expr / self.symbol)
        if not quotient.is_Integer or quotient <= 0:
            raise Dependent("A size is no multiple of the number of samples.", node)
        return int(quotient)

    def _rows(self, node: Node, shape: Sequence[Any]) -> Rows | None:
        dims = [dim for dim, size in enumerate(shape) if self._varies(size)]
        if len(dims) > 1:
            raise Dependent("Two dimensions depend on the number of samples.", node)
        return Rows(dims[0], self._per_sample(shape[dims[0]], node)) if dims else None

    def _follow(self, node: Node) -> Rows | None:
        target: Any = node.target
        inputs = {n: rows for n in node.all_input_nodes if (rows := self.found.get(n)) is not None}
        value = node.meta.get("val")
        if isinstance(value, torch.SymInt | int):
            return None  # whoever uses it as more than a shape is asked below
        if target is getattr:
            raise Dependent("It is not known what this is.", node)
        results = [v for v in (value if isinstance(value, list | tuple) else [value]) if isinstance(v, Tensor)]
        shapes = [v.shape for v in results]
        if not inputs and not self._uses_size(node):
            if any(self._varies(size) for shape in shapes for size in shape):
                raise Dependent("Rows appear from elsewhere.", node)
            return None
        rule = self._rule(target)
        if rule is None or (not isinstance(target, torch._ops.OpOverload) and target is not operator.getitem):
            raise Dependent("It is not known to keep samples apart.", node)
        if self._uses_size(node) and target not in _SIZED:
            raise Dependent("It computes with the number of samples.", node)
        rows = rule(node, inputs)
        for shape in shapes[:1] if target in _ATTENTION else shapes:  # what the rule says must be what the sizes say
            if rows is not None and self._rows(node, shape) != rows:
                raise Dependent("It is not known to keep samples apart.", node)
        return rows

    def _uses_size(self, node: Node) -> bool:
        values = [n.meta.get("val") for n in node.all_input_nodes]
        return any(isinstance(value, torch.SymInt) for value in values)

    def _rule(self, target: Any) -> Callable[[Node, dict[Node, Rows]], Rows | None] | None:
        schema = getattr(target, "_schema", None)
        if schema is not None and schema.is_mutable:
            return None
        tags = getattr(target, "tags", ())
        if target in _KEEPING or (torch.Tag.pointwise in tags and torch.Tag.nondeterministic_seeded not in tags):
            return self._pointwise
        if target in _VIEWS:
            return self._view
        if target in _ALONG or target in _SCANS:
            return self._along
        if target in _FIRST_DIM or target in _ATTENTION:
            return self._first_dim
        table: dict[Any, Callable[[Node, dict[Node, Rows]], Rows | None]] = {
            aten.permute.default: self._permute,
            aten.unsqueeze.default: self._by_sizes,
            aten.squeeze.dim: self._by_sizes,
            aten.squeeze.dims: self._by_sizes,
            aten.expand.default: self._by_sizes,
            aten.select.int: self._beside,
            aten.slice.Tensor: self._beside,
            aten.split_with_sizes.default: self._split,
            aten.cat.default: self._cat,
            aten.mm.default: self._product,
            aten.addmm.default: self._product,
            aten.bmm.default: self._product,
            aten.embedding.default: self._embedding,
            aten.constant_pad_nd.default: self._by_sizes,
        }
        if target in _FILLS:
            return self._fill
        if target is operator.getitem:
            return self._item
        return table.get(target)

    # --- rules: the rows of the result, given those of the arguments ------------------------------------------------

    def _pointwise(self, node: Node, inputs: dict[Node, Rows]) -> Rows | None:
        ranks = {n: len(n.meta["val"].shape) for n in inputs}
        from_right = {ranks[n] - rows.dim for n, rows in inputs.items()}
        if len(from_right) != 1 or len({rows.per_sample for rows in inputs.values()}) != 1:
            raise Dependent("Samples meet in different dimensions.", node)
        (back,) = from_right
        return Rows(len(node.meta["val"].shape) - back, next(iter(inputs.values())).per_sample)

    def _fill(self, node: Node, inputs: dict[Node, Rows]) -> Rows | None:
        # Every element is the same number, which must not be the size.
        fill = node.args[1] if node.target is aten.full.default else None
        if isinstance(fill, Node):
            raise Dependent("It computes with the number of samples.", node)
        return self._rows(node, node.meta["val"].shape)

    def _view(self, node: Node, inputs: dict[Node, Rows]) -> Rows | None:
        """Each sample is one run of memory before and after, in every item of the dimensions before it."""
        ((source, rows),) = inputs.items()
        result = self._rows(node, node.meta["val"].shape)
        before = math.prod(source.meta["val"].shape[: rows.dim])
        if result is None or before != math.prod(node.meta["val"].shape[: result.dim]):
            raise Dependent("Samples are cut or joined.", node)
        return result

    def _along(self, node: Node, inputs: dict[Node, Rows]) -> Rows | None:
        ((source, rows),) = inputs.items()
        rank = len(source.meta["val"].shape)
        given: Any = node.args[1] if len(node.args) > 1 else node.kwargs.get("dim")
        if given is None or given == []:
            raise Dependent("It reduces over all samples.", node)
        dims = {dim % rank for dim in (given if isinstance(given, list | tuple) else [given])}
        if rows.dim in dims:
            raise Dependent("It reduces over the samples.", node)
        if node.target in _SCANS:
            return rows
        keeps = rank == len(self._first_result(node).shape)
        return Rows(rows.dim - (0 if keeps else sum(dim < rows.dim for dim in dims)), rows.per_sample)

    def _first_dim(self, node: Node, inputs: dict[Node, Rows]) -> Rows | None:
        if any(rows != Rows(0) for rows in inputs.values()):
            raise Dependent("The samples are not the first dimension.", node)
        first = node.args[0]
        if not isinstance(first, Node) or first not in inputs or len(first.meta["val"].shape) != 4:
            raise Dependent("The samples are not the first dimension.", node)
        if node.target is aten.convolution.default and set(inputs) != {first}:
            raise Dependent("A weight depends on the samples.", node)
        if node.target in _ATTENTION and _argument(node, "dropout_p", 0.0) != 0.0:
            raise Dependent("It draws random numbers.", node)
        return Rows(0)

    def _permute(self, node: Node, inputs: dict[Node, Rows]) -> Rows | None:
        (rows,) = inputs.values()
        order: Any = node.args[1]
        rank = len(order)
        return Rows([int(dim) % rank for dim in order].index(rows.dim), rows.per_sample)

    def _by_sizes(self, node: Node, inputs: dict[Node, Rows]) -> Rows | None:
        """Ops on other dimensions than that of the samples, whose sizes then tell where that has gone."""
        result = self._rows(node, node.meta["val"].shape)
        if inputs:
            (rows,) = inputs.values()
            if result is None or result.per_sample != rows.per_sample:
                raise Dependent("Samples are cut or joined.", node)
        return result

    def _beside(self, node: Node, inputs: dict[Node, Rows]) -> Rows | None:
        ((source, rows),) = inputs.items()
        dim: Any = node.args[1] if len(node.args) > 1 else 0
        dim %= len(source.meta["val"].shape)
        whole = node.meta["val"].shape[rows.dim : rows.dim + 1] == source.meta["val"].shape[rows.dim : rows.dim + 1]
        if dim == rows.dim and not (node.target is aten.slice.Tensor and whole and len(node.args) < 5):
            raise Dependent("It chooses among the samples.", node)
        return Rows(rows.dim - (node.target is aten.select.int and dim < rows.dim), rows.per_sample)

    def _split(self, node: Node, inputs: dict[Node, Rows]) -> Rows | None:
        ((source, rows),) = inputs.items()
        dim: Any = node.args[2] if len(node.args) > 2 else 0
        if dim % len(source.meta["val"].shape) == rows.dim:
            raise Dependent("It chooses among the samples.", node)
        return rows

    def _cat(self, node: Node, inputs: dict[Node, Rows]) -> Rows | None:
        dim: Any = node.args[1] if len(node.args) > 1 else 0
        if len(set(inputs.values())) != 1:
            raise Dependent("Samples meet in different dimensions.", node)
        (rows,) = set(inputs.values())
        if dim % len(node.meta["val"].shape) == rows.dim:
            raise Dependent("It joins samples.", node)
        return rows

    def _product(self, node: Node, inputs: dict[Node, Rows]) -> Rows | None:
        """Rows of the first operand, columns of the second, or both where they are items of a batch."""
        a, b = (node.args[1:3]) if node.target is aten.addmm.default else node.args[:2]
        assert isinstance(a, Node)
        assert isinstance(b, Node)
        if set(inputs) - {a, b}:
            raise Dependent("It is not known to keep samples apart.", node)
        last = len(a.meta["val"].shape) - 1
        of_a, of_b = inputs.get(a), inputs.get(b)
        if of_a is not None and of_b is not None:
            if last == 2 and of_a == of_b and of_a.dim == 0:
                return of_a
        elif of_a is not None and of_a.dim == last - 1:
            return of_a
        elif of_b is not None and of_b.dim == last:
            return of_b
        raise Dependent("It sums over the samples.", node)

    def _embedding(self, node: Node, inputs: dict[Node, Rows]) -> Rows | None:
        if node.args[0] in inputs:
            raise Dependent("Rows are looked up among the samples.", node)
        (rows,) = inputs.values()
        return rows

    def _item(self, node: Node, inputs: dict[Node, Rows]) -> Rows | None:
        (source,) = node.all_input_nodes
        if source.target in _ATTENTION and node.args[1] != 0:
            raise Dependent("It is not known to keep samples apart.", node)
        return self._rows(node, node.meta["val"].shape) if isinstance(node.meta.get("val"), Tensor) else None

    def _first_result(self, node: Node) -> Any:
        value = node.meta["val"]
        return value[0] if isinstance(value, list | tuple) else value


def _argument(node: Node, name: str, default: Any) -> Any:
    """An argument of a call by its name in the schema."""
    schema: Any = node.target._schema  # type: ignore[union-attr]
    position = next(i for i, argument in enumerate(schema.arguments) if argument.name == name)
    given = node.args[position] if position < len(node.args) else node.kwargs.get(name)
    return default if given is None else given
