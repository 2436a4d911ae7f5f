"""An ATen graph as a program of loops and library calls.

Every FX node becomes a ``Lazy``. Element-wise work stays unevaluated until something needs it in memory, so chains of
it end up inside their consumers; what is read by several consumers becomes a loop of its own where computing it again
would cost more than reading it back, and fusion decides whether that loop ever touches memory.
"""

from __future__ import annotations

import operator
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch.fx.experimental.symbolic_shapes import GuardOnDataDependentSymNode
from torch.utils import _pytree as pytree

from compiler.errors import CompileError, at_node
from compiler.index import (
    check_index,
    has_gaps,
)
from compiler.ir import (
    Binding,
    Buffer,
    Extern,
    IndexValue,
    Lazy,
    Load,
    Op,
    Program,
    ScalarRef,
    Step,
    TensorRef,
    Value,
    result_name,
    walk,
)
from compiler.lowering import extern
from compiler.lowering.loops import LoopMaker
from compiler.lowering.registry import NotLowered, rule_for
from compiler.lowering.symbols import Symbols, bind, made_of_sizes, no_new_guards
from compiler.ops import PRIMITIVES
from compiler.report import ExternReason, Target
from compiler.sizes import Size, hint, product

MAX_LOADS = 12  # more reads than this in one loop cost registers and stop coalescing from helping
MAX_OPS = 96
RECOMPUTE_FLOPS = 40  # arithmetic that hides behind the memory traffic of a bandwidth-bound kernel

VIEW_OPS = frozenset(
    "view _unsafe_view reshape permute transpose t expand unsqueeze squeeze slice select split split_with_sizes "
    "unbind chunk alias detach unflatten flatten diagonal unfold as_strided".split()
)


def is_view(node: torch.fx.Node) -> bool:
    """Whether the node only names memory (or a piece of a result) that another node made."""
    if node.target is operator.getitem:
        return True
    packet = getattr(node.target, "overloadpacket", None)
    return packet is not None and packet.__name__ in VIEW_OPS


@dataclass(frozen=True)
class Cost:
    """What computing one element takes: reads (once a buffer and index), primitives, bytes, flops."""

    loads: int
    ops: int
    bytes: float
    flops: int


def cost_of(value: Value, numel: Size) -> Cost:
    """Count the work of one element of a result with ``numel`` elements.

    A read of a much smaller tensor (a bias, a broadcast row) counts as free bytes: it stays in cache.
    """
    loads: dict[tuple[str, Any], float] = {}
    ops = flops = 0
    for v in walk(value):
        if isinstance(v, Load):
            loads[v.buffer.name, v.index] = v.dtype.itemsize if hint(v.buffer.numel) * 8 > hint(numel) else 0
        elif isinstance(v, Op):
            ops += 1
            flops += PRIMITIVES[v.name].flops if v.name in PRIMITIVES else 0
    return Cost(len(loads), ops, sum(loads.values()), flops)


class GraphLowering(LoopMaker):
    """Lowers one graph. ``run`` returns the Program; the object is the ``Scope`` that rules see."""

    def __init__(self, gm: torch.fx.GraphModule, target: Target) -> None:
        self.gm = gm
        self.target = target
        self.node: Any = next(iter(gm.graph.nodes))
        self._env: dict[torch.fx.Node, Any] = {}
        self._steps: list[Step] = []
        self._constants: dict[str, torch.Tensor] = {}
        self._inside_inputs: dict[str, str] = {}  # buffers of scatters that lie in an input's memory -> that input
        self._pending: dict[torch.fx.Node, Lazy] = {}  # values that may be unevaluated still
        self._memory: dict[int, frozenset[str]] = {}
        self._loops = 0
        self._buffers = 0
        self._place = {node.name: i for i, node in enumerate(gm.graph.nodes)}
        self._consumers = self._count_consumers()
        self._on_gpu = any(t.is_cuda for n in gm.graph.nodes for t in _tensors(n.meta.get("val")))
        self.symbols = Symbols()
        self._bindings: list[Binding] = []
        self._bound: set[Any] = set()  # torch's symbols that have a value where the current node runs

    # --- the graph, node by node -----------------------------------------------------------------------------------

    def run(self) -> Program:
        """Lower every node in order."""
        inputs: list[Buffer | None] = []
        outputs: tuple[Any, ...] = ()
        placeholders = [node for node in self.gm.graph.nodes if node.op == "placeholder"]
        self._bindings += self._bind([(node.name, node.meta.get("val")) for node in placeholders])
        for node in self.gm.graph.nodes:
            self.node = node
            with at_node(node.name):
                if node.op == "placeholder":
                    inputs.append(self._placeholder(node))
                elif node.op == "get_attr":
                    self._attribute(node)
                elif node.op == "call_function":
                    value = self._env[node] = self._call(node)
                    if isinstance(value, Lazy):
                        self._pending[node] = value
                elif node.op == "output":
                    outputs = tuple(self._returned(self._arg(x)) for x in node.args[0])
                else:
                    raise CompileError(f"an ATen graph has no {node.op} nodes", node=node.name)
        names = tuple(node.name for node in placeholders)
        return Program(tuple(inputs), self._constants, self._steps, outputs, names, tuple(self._bindings))

    def _placeholder(self, node: torch.fx.Node) -> Buffer | None:
        value = node.meta.get("val")
        if not isinstance(value, torch.Tensor):
            self._env[node] = self._scalar(value, node.name)
            return None
        lazy = self._lazy_for(value, node.name)
        lazy.buffer = self._buffer(node.name, value, "input", node.name)
        self._env[node] = lazy
        return lazy.buffer

    def _attribute(self, node: torch.fx.Node) -> None:
        value: Any = self.gm
        for part in str(node.target).split("."):
            value = getattr(value, part)
        if not isinstance(value, torch.Tensor):
            self._env[node] = value  # a submodule of a higher-order op
            return
        fake = node.meta.get("val", value)
        lazy = self._lazy_for(fake, node.name)
        lazy.buffer = self._buffer(node.name, fake, "input", node.name)
        self._constants[node.name] = value
        self._env[node] = lazy

    def _call(self, node: torch.fx.Node) -> Any:
        args, kwargs = pytree.tree_map_only(torch.fx.Node, self._arg, (node.args, node.kwargs))
        value = node.meta.get("val")
        number = self._made_of_sizes(value) if extern.is_size_arithmetic(node) else None
        if number is not None:
            return number
        if node.target is operator.getitem:
            return args[0][args[1]]
        reason = extern.static_reason(node, self._on_gpu, self.target.backend)
        if reason is None and not self._known([value, *(n.meta.get("val") for n in node.all_input_nodes)]):
            reason = ExternReason.DATA_DEPENDENT_SHAPE, f"a size of {node.name} is known only at run time"
        if reason is None:
            rule = rule_for(node.target)
            try:
                if rule is None:
                    raise NotLowered(f"{node.target} has no lowering rule", extern.library_reason(node))
                result = rule(self, *args, **kwargs)
                results = result if isinstance(result, tuple) else (result,)
                if self._bound:
                    self._probe(results)
            except NotLowered as refusal:
                reason = (refusal.reason, str(refusal))
            except (TypeError, GuardOnDataDependentSymNode) as error:
                if not self._bound:
                    raise
                reason = ExternReason.DATA_DEPENDENT_SHAPE, f"its rule needs sizes known at compile time: {error}"
            else:
                for lazy in results:
                    self._settle(lazy)
                return result
        return self._extern(node, args, kwargs, *reason)

    # --- sizes known only at run time ------------------------------------------------------------------------------

    def _bind(self, values: Sequence[tuple[str, Any]]) -> list[Binding]:
        """Where the symbols in these run-time values (a name each) get theirs from, for those that have none yet."""
        return bind(values, self._bound)

    def _known(self, value: Any) -> bool:
        """Whether every symbol in the sizes of a fake value has a value here."""
        symbols: set[Any] = set()
        for leaf in pytree.tree_leaves(value):
            if isinstance(leaf, torch.SymInt | torch.SymFloat):
                symbols |= leaf.node.expr.free_symbols
            elif isinstance(leaf, torch.Tensor) and leaf.layout is torch.strided:
                for size in (*leaf.shape, *leaf.stride()):
                    if isinstance(size, torch.SymInt):
                        symbols |= size.node.expr.free_symbols
        return symbols <= self._bound

    def _probe(self, results: Sequence[Lazy]) -> None:
        """Compute an element, so that a rule that cannot do with these sizes says so while it can be replaced."""
        for lazy in results:
            for value in walk(lazy.load(self._fresh_index(lazy.size))):
                if isinstance(value, Load | IndexValue):
                    check_index(value.index if isinstance(value, Load) else value.expr)

    def _scalar(self, value: Any, name: str) -> Any:
        """How a number that a call or a placeholder gives is referred to."""
        number = self._made_of_sizes(value)
        if number is not None:
            return number
        return value if isinstance(value, int | float | bool) else ScalarRef(name)

    def _made_of_sizes(self, value: Any) -> Any:
        """A symbolic number as arithmetic over the sizes that are known here; None where it is not."""
        if isinstance(value, torch.SymInt) and self._known(value):
            return self.symbols.number(value)
        if isinstance(value, torch.SymFloat) and made_of_sizes(value) and self._known(value):
            return self.symbols.real(value)
        return None

    def _arg(self, node: Any) -> Any:
        return self._env[node] if isinstance(node, torch.fx.Node) else node

    def _count_consumers(self) -> dict[torch.fx.Node, set[torch.fx.Node]]:
        """For each node, the nodes that read it, seen through views."""
        consumers: dict[torch.fx.Node, set[torch.fx.Node]] = {}
        for node in reversed(self.gm.graph.nodes):
            found: set[torch.fx.Node] = set()
            for user in node.users:
                if is_view(user):
                    found |= consumers[user]
                else:
                    found.add(user)
            consumers[node] = found
        return consumers

    # --- memory ----------------------------------------------------------------------------------------------------

    def _settle(self, lazy: Lazy) -> None:
        """Decide whether a fresh result stays unevaluated. See the module's docstring for why."""
        if lazy.base is not None or lazy.buffer is not None:
            return
        consumers = self._consumers[self.node]
        if any(user.op == "output" or extern.certainly_extern(user, self._on_gpu) for user in consumers):
            self._realize_root(lazy)
            return
        index = self._fresh_index(lazy.size)
        cost = cost_of(lazy.load(index), product(lazy.size))
        # Computed n times it reads n times; in memory it is read once, written, and read by all but the one it joins.
        readers = len(consumers)
        fewer_bytes = (readers - 1) * cost.bytes < readers * lazy.dtype.itemsize
        too_large = cost.loads > MAX_LOADS or cost.ops > MAX_OPS
        if too_large or (readers > 1 and not (fewer_bytes and cost.flops <= RECOMPUTE_FLOPS)):
            self._realize_root(lazy, index)

    def _buffer(self, name: str, value: torch.Tensor, kind: str, fx_node: str) -> Buffer:
        size, stride = self.symbols.sizes(value.shape), self.symbols.strides(value)
        return Buffer(name, size, stride, value.dtype, value.device, kind, fx_node)

    # --- library calls ---------------------------------------------------------------------------------------------

    def _extern(self, node: torch.fx.Node, args: Any, kwargs: Any, reason: ExternReason, detail: str) -> Any:
        mutated = extern.mutated_arguments(node)
        if mutated:
            self._evaluate_pending_reads(node)
        reads: list[str] = []
        writes: list[str] = []
        origins = {node.name}

        def reference(x: Any) -> Any:
            if isinstance(x, Lazy):
                ref = self._reference(x)
                reads.append(ref.buffer.name)
                if x.base is not None:
                    origins.update(x.origins())
                return ref
            if isinstance(x, ScalarRef):
                reads.append(x.name)
            return x

        leaves_args, leaves_kwargs = pytree.tree_map_only((Lazy, ScalarRef), reference, (args, kwargs))
        for target in mutated:
            lazies = [lazy for lazy in pytree.tree_leaves(self._arg_of(target)) if isinstance(lazy, Lazy)]
            writes.extend(self._reference(lazy).buffer.name for lazy in lazies)
        value: Any = node.meta.get("val")
        multiple = isinstance(value, tuple | list)
        results: list[Any] = []
        buffers: list[Buffer | None] = []
        items = [
            (result_name(f"ext_{node.name}", place if multiple else None), item)
            for place, item in enumerate(value if multiple else [value])
        ]
        bindings = self._bind(items)
        for name, item in items:
            aliased = self._aliased_input(item, node) if mutated else None
            if isinstance(item, torch.Tensor) and aliased is None:
                lazy = self._lazy_for(item, node.name)
                lazy.buffer = self._buffer(name, item, "extern", node.name)
                results.append(lazy)
                buffers.append(lazy.buffer)
            else:
                results.append(aliased if aliased is not None else self._scalar(item, name))
                buffers.append(None)
        self._steps.append(
            Extern(
                f"ext_{node.name}",
                node.name,
                node.target,
                leaves_args,
                leaves_kwargs,
                tuple(buffers),
                multiple,
                tuple(dict.fromkeys(reads)),
                tuple(dict.fromkeys(writes)),
                tuple(sorted(origins, key=self._order)),
                reason,
                detail,
                bool(mutated) or reason is ExternReason.RANDOM or extern.has_effects(node),
                tuple(bindings),
            )
        )
        return results if multiple else results[0]

    def _arg_of(self, arg: Any) -> Any:
        return pytree.tree_map_only(torch.fx.Node, self._arg, arg)

    def _aliased_input(self, value: Any, node: torch.fx.Node) -> Any:
        """The argument that an in-place op returns."""
        if not isinstance(value, torch.Tensor):
            return None
        for arg in extern.mutated_arguments(node):
            if isinstance(arg, torch.fx.Node) and arg.meta.get("val") is not None:
                return self._arg(arg)
        return None

    def _reference(self, value: Any) -> Any:
        """How the wrapper names a value: a TensorRef for tensors, anything else as it is."""
        if not isinstance(value, Lazy):
            return value
        self.realize(value)
        root = value.root()
        assert root.buffer is not None
        if value is root:
            return TensorRef(root.buffer, root.size, root.buffer.stride, 0, True)
        if not root.has_captured_layout:
            copy = Lazy(value.fx_node, value.size, value.stride, 0, value.dtype, value.device, compute=value.load)
            copy.inputs = (value,)
            self._realize_root(copy)
            return self._reference(copy)
        offset = value.offset - root.offset
        same = value.size == root.buffer.size and value.stride == root.buffer.stride and offset == 0
        return TensorRef(root.buffer, value.size, value.stride, offset, same)

    def _returned(self, value: Any) -> Any:
        """A result as the caller gets it: with the strides that the capture saw, gaps between elements included.

        Computed buffers have no gaps, so the few results that need some are copied into memory that has them.
        """
        ref = self._reference(value)
        if not isinstance(ref, TensorRef) or ref.stride == value.stride or not has_gaps(value.size, value.stride):
            return ref
        name = f"ext_restrided{self._buffers}"
        self._buffers += 1
        node = value.fx_node
        buffer = Buffer(name, value.size, value.stride, value.dtype, value.device, "extern", node)
        self._steps.append(
            Extern(
                name,
                node,
                restrided,
                (ref, value.stride),
                {},
                (buffer,),
                False,
                (ref.buffer.name,),
                (),
                (node,),
                ExternReason.NO_LOWERING,
                "a result whose elements have gaps between them in memory",
                False,
            )
        )
        return TensorRef(buffer, value.size, value.stride, 0, True)


def restrided(tensor: torch.Tensor, stride: Sequence[int]) -> torch.Tensor:
    """A copy of the tensor with these strides."""
    copy = torch.empty_strided(tensor.shape, stride, dtype=tensor.dtype, device=tensor.device)
    return copy.copy_(tensor)


def _tensors(value: Any) -> list[torch.Tensor]:
    return [t for t in pytree.tree_leaves(value) if isinstance(t, torch.Tensor)]


def lower_graph(gm: torch.fx.GraphModule, target: Target) -> Program:
    """Lower an ATen graph whose nodes carry fake values in ``meta["val"]``."""
    with no_new_guards(gm.graph):
        return GraphLowering(gm, target).run()
