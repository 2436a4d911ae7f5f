"""The loop-level IR: what one element of a result is, as a graph of values over loop variables.

A ``Value`` is immutable and shared by identity, so a graph of values is walked in linear time with a memo keyed by
``id``. ``Loop`` is the unit that fusion groups: one value, stored at every point of its iteration space.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import sympy
import torch

from compiler.index import Expr, Index, IndirectVar, LoopVar, linear_index, substitute
from compiler.report import ExternReason
from compiler.sizes import Size, hint, product, size_vars


@dataclass(frozen=True, eq=False)
class Buffer:
    """Memory of a region, and the name of the tensor that holds it in the wrapper.

    ``kind`` is "input" (placeholder or attribute), "computed" (a Loop writes it) or "extern" (a library call makes it).
    """

    name: str
    size: tuple[Size, ...]
    stride: tuple[Size, ...]
    dtype: torch.dtype
    device: torch.device
    kind: str
    fx_node: str

    @property
    def numel(self) -> Size:
        """Elements."""
        return product(self.size)

    @property
    def bytes(self) -> int:
        """Bytes of its elements (gaps between them not counted), at the example's sizes."""
        return hint(self.numel) * self.dtype.itemsize


@dataclass(frozen=True, eq=False)
class Value:
    """One scalar of the computation. ``dtype`` is torch's; half floats are carried as float32 until stored.

    ``origin`` is the FX node whose rule made the value.
    """

    dtype: torch.dtype
    origin: str = field(default="", kw_only=True)


@dataclass(frozen=True, eq=False)
class Const(Value):
    """A literal."""

    value: bool | int | float


@dataclass(frozen=True, eq=False)
class IndexValue(Value):
    """An index expression used as a number (arange, a mask's position)."""

    expr: Expr


@dataclass(frozen=True, eq=False)
class Load(Value):
    """The element of ``buffer`` at ``index``; where ``mask`` is false nothing is read and ``other`` stands instead."""

    buffer: Buffer
    index: Expr
    mask: Value | None = None
    other: bool | int | float = 0


@dataclass(frozen=True, eq=False)
class Op(Value):
    """A primitive of ``compiler.ops`` applied to values."""

    name: str
    args: tuple[Value, ...]


@dataclass(frozen=True, eq=False)
class Reduce(Value):
    """``value`` combined over ``rvars``. ``kind`` is a key of ``compiler.ops.REDUCTIONS``.

    For "argmax" and "argmin" the result is ``position`` (an expression over ``rvars``) of the first extremum, for
    "firstmax" and "firstmin" the extremum found there: of equal zeros the first one's sign.
    """

    kind: str
    value: Value
    rvars: tuple[LoopVar, ...]
    position: Expr | None = None


@dataclass(frozen=True, eq=False)
class Scan(Value):
    """``value`` combined over all points up to and including each along ``rvar``. ``kind`` is a key of
    ``compiler.ops.SCANS``.

    Where ``position`` (an expression of ``rvar``) is given, the result is that of the last extremum so far.
    """

    kind: str
    value: Value
    rvar: LoopVar
    position: Expr | None = None


@dataclass(frozen=True, eq=False)
class Scatter(Value):
    """A write of ``value`` at ``index``, which computed values supply, into memory that holds something already.

    ``combine`` is how what stands there and ``value`` make the new element: "store" (the value alone; where several
    points have one index, one of them wins), "add", "max" or "min". Where ``mask`` is false nothing is written.
    Only the value of a ``Loop`` can be one.
    """

    combine: str
    value: Value
    index: Expr
    mask: Value | None = None


def children(value: Value) -> Iterator[Value]:
    """The values that ``value`` is computed from, indirect indices included."""
    if isinstance(value, Op):
        yield from value.args
    elif isinstance(value, Reduce | Scan):
        yield value.value
    elif isinstance(value, Load):
        if value.mask is not None:
            yield value.mask
        yield from indirect_values(value.index)
    elif isinstance(value, IndexValue):
        yield from indirect_values(value.expr)
    elif isinstance(value, Scatter):
        yield value.value
        if value.mask is not None:
            yield value.mask
        yield from indirect_values(value.index)


def indirect_values(expr: Expr) -> Iterator[Value]:
    """The values that supply parts of an index expression."""
    for symbol in expr.free_symbols:
        if isinstance(symbol, IndirectVar):
            yield symbol.value


def walk(*roots: Value) -> Iterator[Value]:
    """Every value below ``roots`` once, operands before their users."""
    seen: set[int] = set()
    stack: list[tuple[Value, bool]] = [(root, False) for root in reversed(roots)]
    while stack:
        value, done = stack.pop()
        if done:
            yield value
        elif id(value) not in seen:
            seen.add(id(value))
            stack.append((value, True))
            stack.extend((child, False) for child in children(value))


def tag(root: Value, fx_node: str) -> None:
    """Note ``fx_node`` on every value below ``root`` that no other node has claimed."""
    stack = [root]
    while stack:
        value = stack.pop()
        if not value.origin:
            object.__setattr__(value, "origin", fx_node)
            stack.extend(children(value))


def rewrite(
    root: Value,
    mapping: Mapping[LoopVar, Expr],
    memo: dict[int, Value],
    load: Callable[[Load], Value] | None = None,
    reduce: Callable[[Reduce], Value] = lambda reduce: reduce,
) -> Value:
    """``root`` with loop variables replaced; ``load`` may replace a rewritten Load by another value, ``reduce`` a
    rewritten Reduce.

    ``memo`` maps ``id`` of an old value to the new one and may be shared by calls with the same mapping.
    """
    for value in walk(root):
        if id(value) not in memo:
            memo[id(value)] = _rewrite_one(value, mapping, memo, load, reduce)
    return memo[id(root)]


def _rewrite_one(
    value: Value,
    mapping: Mapping[LoopVar, Expr],
    memo: dict[int, Value],
    load: Callable[[Load], Value] | None,
    reduce: Callable[[Reduce], Value],
) -> Value:
    if isinstance(value, Op):
        args = tuple(memo[id(arg)] for arg in value.args)
        unchanged = all(a is b for a, b in zip(args, value.args, strict=True))
        return value if unchanged else Op(value.dtype, value.name, args, origin=value.origin)
    if isinstance(value, Reduce):
        rvars = tuple(dict.fromkeys(v for r in value.rvars for v in _variables(mapping.get(r, r))))
        place = substitute(value.position, mapping) if value.position is not None else None
        return reduce(Reduce(value.dtype, value.kind, memo[id(value.value)], rvars, place, origin=value.origin))
    if isinstance(value, Scan):
        rvar = mapping.get(value.rvar, value.rvar)
        assert isinstance(rvar, LoopVar), "a scan runs along one loop"
        place = substitute(value.position, mapping) if value.position is not None else None
        return Scan(value.dtype, value.kind, memo[id(value.value)], rvar, place, origin=value.origin)
    if isinstance(value, Load):
        mask = memo[id(value.mask)] if value.mask is not None else None
        index = _rewrite_index(value.index, mapping, memo)
        new = Load(value.dtype, value.buffer, index, mask, value.other, origin=value.origin)
        return load(new) if load is not None else new
    if isinstance(value, IndexValue):
        return IndexValue(value.dtype, _rewrite_index(value.expr, mapping, memo), origin=value.origin)
    if isinstance(value, Scatter):
        mask = memo[id(value.mask)] if value.mask is not None else None
        index = _rewrite_index(value.index, mapping, memo)
        return Scatter(value.dtype, value.combine, memo[id(value.value)], index, mask, origin=value.origin)
    return value


def _variables(expr: Expr) -> list[LoopVar]:
    return sorted((s for s in expr.free_symbols if isinstance(s, LoopVar)), key=lambda v: v.name)


def _rewrite_index(expr: Expr, mapping: Mapping[LoopVar, Expr], memo: dict[int, Value]) -> Expr:
    full: dict[Expr, Expr] = dict(mapping)
    for symbol in expr.free_symbols:
        if isinstance(symbol, IndirectVar) and memo[id(symbol.value)] is not symbol.value:
            full[symbol] = IndirectVar(memo[id(symbol.value)], symbol.extent)
    return substitute(expr, full)


@dataclass(eq=False)
class Loop:
    """A value stored at every point of an iteration space: the unit of fusion.

    ``xvars`` are the loops of the output, ``rvars`` those reduced over (empty for pointwise) or the one scanned along,
    which is an output's loop, too. The result goes to ``buffer`` at ``index`` (over ``xvars``). ``origins`` are the FX
    nodes whose work this is, in graph order.

    Where the value is a ``Scatter``, ``into`` names the buffer whose memory ``buffer`` takes over with its elements,
    and ``index`` is the scatter's. A result that is written in parts is a row of such buffers: the first holds the
    first part only, each other what those before it hold and one part more. ``over`` names the input whose memory
    ``buffer`` takes over to be written element for element: whatever else reads that input has to run before, or at the
    same point of the same kernel.
    """

    buffer: Buffer
    xvars: tuple[LoopVar, ...]
    rvars: tuple[LoopVar, ...]
    value: Value
    index: Expr
    origins: tuple[str, ...]
    into: str = ""
    over: str = ""

    @property
    def scans(self) -> bool:
        """Whether it has a result at every point of ``rvars``, made of those before it."""
        return any(v in self.index.free_symbols for v in self.rvars)

    @property
    def name(self) -> str:
        """The buffer's name."""
        return self.buffer.name

    @property
    def numel(self) -> Size:
        """Points of the output."""
        return product([v.extent for v in self.xvars])

    @property
    def rnumel(self) -> Size:
        """Points reduced into one (1 for pointwise)."""
        return product([v.extent for v in self.rvars])

    def loads(self) -> list[Load]:
        """Every read, once per (buffer, index)."""
        found: dict[tuple[str, Expr], Load] = {}
        for value in walk(self.value):
            if isinstance(value, Load):
                found.setdefault((value.buffer.name, value.index), value)
        return list(found.values())


@dataclass(frozen=True)
class TensorRef:
    """A tensor as the wrapper names it: ``buffer`` seen with this size and stride, ``offset`` elements further in.

    ``whole`` says that it is the buffer itself, with nothing to reinterpret.
    """

    buffer: Buffer
    size: tuple[Size, ...]
    stride: tuple[Size, ...]
    offset: Size
    whole: bool


@dataclass(frozen=True)
class ScalarRef:
    """A number (or any other result that is no tensor) that a library call leaves in a variable of the wrapper."""

    name: str


@dataclass(frozen=True)
class Binding:
    """Where a symbol of the capture gets its value: it is ``(number - rest) // factor``, where the number is the
    wrapper's ``name`` itself (``what`` is "value"), or the "size" or "stride" of that tensor along ``dim``.

    ``hint`` is the symbol's value in the example that was captured.
    """

    symbol: str
    name: str
    what: str = "value"
    dim: int = 0
    factor: int = 1
    rest: int = 0
    hint: int = 0


@dataclass(eq=False)
class Extern:
    """A library call: ``target(*args, **kwargs)`` with TensorRef and ScalarRef standing for run-time values.

    ``outputs`` are the buffers it makes, in the order of its results (None for results that are no tensors).
    ``mutates`` names buffers that it writes in place; ``keeps_order`` says that it must not pass another such call
    (it draws random numbers, or has effects that no tensor shows). ``reason`` and ``detail`` say why it is not
    generated. ``bindings`` are the symbols whose values are known once the call has returned.
    """

    name: str
    fx_node: str
    target: Any
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    outputs: tuple[Buffer | None, ...]
    multiple: bool  # the call returns a tuple or list
    reads: tuple[str, ...]
    mutates: tuple[str, ...]
    origins: tuple[str, ...]
    reason: ExternReason
    detail: str
    keeps_order: bool
    bindings: tuple[Binding, ...] = ()

    @property
    def result_names(self) -> tuple[str, ...]:
        """The wrapper's variable for each result: its buffer, or where that is no tensor a name made of the call's."""
        return tuple(
            output.name if output is not None else result_name(self.name, number if self.multiple else None)
            for number, output in enumerate(self.outputs)
        )


def result_name(call: str, number: int | None) -> str:
    """The name of a call's only result (``number`` None) or of one among several."""
    return call if number is None else f"{call}_{number}"


Step = Loop | Extern


def symbols_of(step: Step) -> set[str]:
    """The capture's symbols that a step's sizes and indices are made of, by name."""
    numbers: list[Any] = []
    if isinstance(step, Loop):
        numbers += [v.extent for v in (*step.xvars, *step.rvars)]
        numbers += [step.index, *step.buffer.size, *step.buffer.stride]
        for value in walk(step.value):
            if isinstance(value, Load | Scatter):
                numbers.append(value.index)
            elif isinstance(value, IndexValue):
                numbers.append(value.expr)
    else:
        numbers += numbers_in([*step.args, *step.kwargs.values()])
    return symbol_names(numbers)


def numbers_in(values: Sequence[Any]) -> list[Any]:
    """The symbolic numbers in what the wrapper passes on, the sizes and strides of tensors included."""
    numbers: list[Any] = []
    stack = list(values)
    while stack:
        value = stack.pop()
        if isinstance(value, list | tuple):
            stack.extend(value)
        elif isinstance(value, TensorRef):
            numbers += [] if value.whole else [*value.size, *value.stride, value.offset]
        elif isinstance(value, sympy.Expr):
            numbers.append(value)
    return numbers


def symbol_names(numbers: Iterable[Any]) -> set[str]:
    """The capture's symbols that numbers are made of."""
    variables = {var for number in numbers for var in size_vars(number)}
    return {str(symbol) for var in variables for symbol in var.definition.free_symbols}


@dataclass(eq=False)
class Program:
    """A lowered graph: its steps in a legal order and what it returns.

    ``inputs`` has one entry a placeholder (None where the placeholder is no tensor); ``constants`` maps a buffer's
    name to the attribute that holds it. ``input_names`` are the placeholders, ``bindings`` the symbols that the inputs
    give a value.
    """

    inputs: tuple[Buffer | None, ...]
    constants: dict[str, torch.Tensor]
    steps: list[Step]
    outputs: tuple[Any, ...]
    input_names: tuple[str, ...] = ()
    bindings: tuple[Binding, ...] = ()


@dataclass(eq=False)
class Lazy:
    """What an FX node stands for: how to compute an element, and the memory that holds it once there is one.

    A view has ``base``: its elements are those of the base at another index, so realizing it means realizing the base.
    """

    fx_node: str
    size: tuple[Size, ...]
    stride: tuple[Size, ...]
    offset: Size
    dtype: torch.dtype
    device: torch.device
    compute: Callable[[Index], Value] | None = None
    base: Lazy | None = None
    buffer: Buffer | None = None
    inputs: tuple[Lazy, ...] = ()
    memo: dict[Index, Value] = field(default_factory=dict)

    def load(self, index: Index) -> Value:
        """The element at ``index``: read from memory where there is memory, else computed in place."""
        root = self.root()
        if root.buffer is not None and root is self:
            return Load(self.dtype, root.buffer, linear_index(index, root.buffer.stride))
        if root.buffer is not None and root.has_captured_layout:
            return Load(self.dtype, root.buffer, linear_index(index, self.stride, self.offset - root.offset))
        assert self.compute is not None, f"{self.fx_node} has neither memory nor a rule"
        if self.base is not None:  # not remembered: the root may come to have memory later
            return self.compute(index)
        found = self.memo.get(index)
        if found is None:
            found = self.memo[index] = self.compute(index)
            tag(found, self.fx_node)
        return found

    def origins(self) -> set[str]:
        """This FX node and those computed in place below it (what lies in memory is somebody else's work)."""
        found: set[str] = set()
        stack = [self]
        while stack:
            lazy = stack.pop()
            if lazy.fx_node in found or (lazy.base is None and lazy.buffer is not None and lazy is not self):
                continue
            found.add(lazy.fx_node)
            stack.extend(lazy.inputs)
        return found

    @property
    def has_captured_layout(self) -> bool:
        """Whether the memory has the strides that the capture saw. A value with gaps between its elements is stored
        without them, and the captured strides of its views then mean nothing."""
        return self.buffer is not None and self.buffer.stride == self.stride

    def root(self) -> Lazy:
        """The Lazy that owns the memory."""
        lazy = self
        while lazy.base is not None:
            lazy = lazy.base
        return lazy
