"""torch's symbolic sizes as ours (``compiler/sizes.py``), without adding a guard.

The ShapeEnv of the capture knows the range of every symbol and what its guards have shown to be equal. It is only
read: a question that it answered by a guard would make the program valid for fewer sizes than it was captured for.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import sympy
import torch

from compiler.ir import Binding
from compiler.ops import REAL_ARITHMETIC
from compiler.sizes import UNBOUNDED, UNKNOWN_HINT, Expr, Size, SizeVar, as_size, hint, size_vars


class Symbols:
    """Converts the sizes of one graph; equal expressions give the same size."""

    def __init__(self) -> None:
        self._sizes: dict[Expr, Size] = {}
        self._numbers: dict[Expr, Size] = {}

    def size(self, value: int | torch.SymInt) -> Size:
        """A size, stride or count: an int or a monomial, with every sum in it as one variable."""
        if isinstance(value, int):
            return value
        return self._size(value.node.expr, value.node.shape_env)

    def _size(self, expr: Expr, env: Any) -> Size:
        if expr not in self._sizes:
            self._sizes[expr] = as_size(_monomial(expr, env))
        return self._sizes[expr]

    def number(self, value: int | torch.SymInt) -> Any:
        """A number that positions are made of: an int or a sum of monomials (it may be negative)."""
        if isinstance(value, int):
            return value
        node = value.node
        expr = node.expr
        if expr not in self._numbers:
            terms = sympy.Add.make_args(sympy.expand(expr))
            self._numbers[expr] = as_size(sympy.Add(*(_monomial(term, node.shape_env) for term in terms)))
        return self._numbers[expr]

    def real(self, value: torch.SymFloat) -> Expr:
        """A real number made of sizes (``made_of_sizes``) as the same arithmetic over our size variables."""
        env = value.node.shape_env

        def over_sizes(expr: Expr) -> Expr:
            if expr.is_number:
                return expr
            return self._size(expr, env) if expr.is_integer else expr.func(*map(over_sizes, expr.args))

        return over_sizes(value.node.expr)

    def sizes(self, values: Sequence[int | torch.SymInt]) -> tuple[Size, ...]:
        """``size`` of each."""
        return tuple(self.size(value) for value in values)

    def strides(self, tensor: torch.Tensor) -> tuple[Size, ...]:
        """The strides of a tensor; of other layouts none. The ``Max(1, size)`` that torch multiplies strides by counts
        as ``size``: the two differ only where there is no element."""
        if tensor.layout is not torch.strided:
            return ()
        return tuple(
            stride if isinstance(stride, int) else self._size(_without_empty_case(stride), stride.node.shape_env)
            for stride in tensor.stride()
        )

    def offset(self, tensor: torch.Tensor) -> Any:
        """Where the tensor starts in its storage, in elements."""
        return self.number(tensor.storage_offset()) if tensor.layout is torch.strided else 0


def made_of_sizes(value: torch.SymFloat) -> bool:
    """Whether a real number is plain arithmetic over sizes, which a kernel can do (``ops.scalar``)."""

    def is_plain(expr: Expr) -> bool:
        if expr.is_number or expr.is_integer:
            return True
        return expr.func.__name__ in REAL_ARITHMETIC and all(map(is_plain, expr.args))

    return is_plain(value.node.expr)


def derived(definition: Expr, like: Size) -> SizeVar:
    """A size variable that is computed from others: ``definition`` is over torch's symbols (see ``torch_expr``), and
    ``like`` a size of the same order, which hints at its value."""
    return SizeVar(str(definition), 0, UNBOUNDED, hint(like), definition)


def example(value: int | torch.SymInt) -> int:
    """The number in the example that was captured."""
    return value if isinstance(value, int) else _hint(value.node.expr, value.node.shape_env)


def torch_expr(size: Size) -> Expr:
    """A size (or number) as an expression of torch's symbols."""
    if isinstance(size, int):
        return sympy.Integer(size)
    return size.xreplace({var: var.definition for var in size_vars(size)})


class SizeAsked(TypeError):
    """Somebody compared symbolic sizes in a way that only one of the possible answers could be compiled for."""


@contextmanager
def no_new_guards(graph: torch.fx.Graph) -> Iterator[None]:
    """Raise where a guard on the graph's symbols would be added: by then Dynamo may take no more of them, and the
    program would go on with wrong numbers.

    Raises:
        SizeAsked: instead of the guard.
    """

    def refuse(expr: Any, value: Any) -> None:
        raise SizeAsked(f"whether {expr} is {value} is known only at run time")

    env = _shape_env(graph)
    if env is None:
        yield
        return
    env._check_frozen = refuse  # what torch calls before it adds one
    try:
        yield
    finally:
        del env._check_frozen


def _shape_env(graph: torch.fx.Graph) -> Any:
    for node in graph.nodes:
        value = node.meta.get("val")
        sizes = [*value.shape] if isinstance(value, torch.Tensor) else [value]
        for size in sizes:
            if isinstance(size, torch.SymInt):
                return size.node.shape_env
    return None


def bind(values: Sequence[tuple[str, Any]], bound: set[Expr]) -> list[Binding]:
    """Where the symbols in these run-time values (a name and a fake value each) get their numbers from.

    Symbols in ``bound`` have one already; those found here are added to it. Numbers come before sizes, and those
    before strides, for the plainer of several sources is the one to read.
    """
    found: list[Binding] = []
    numbers: list[tuple[Any, str, str, int]] = []
    for name, value in values:
        if isinstance(value, torch.SymInt):
            numbers.append((value, name, "value", 0))
    for what in ("size", "stride"):
        for name, value in values:
            if isinstance(value, torch.Tensor) and (what == "size" or value.layout is torch.strided):
                tensor_numbers = value.shape if what == "size" else value.stride()
                numbers += [(number, name, what, dim) for dim, number in enumerate(tensor_numbers)]
    nodes = [(n.node, name, what, dim) for n, name, what, dim in numbers if isinstance(n, torch.SymInt)]
    for plain in (True, False):
        for node, name, what, dim in nodes:
            expr = node.expr
            missing = expr.free_symbols - bound
            if len(missing) != 1 or expr.is_Symbol is not plain:
                continue
            (symbol,) = missing
            factor, rest = expr.coeff(symbol), sympy.expand(expr - expr.coeff(symbol) * symbol)
            if factor.is_Integer and factor > 0 and rest.is_Integer:
                bound.add(symbol)
                example = _hint(symbol, node.shape_env)
                found.append(Binding(str(symbol), name, what, dim, int(factor), int(rest), example))
    return found


def size_printer() -> Any:
    """Prints torch's expressions as Python."""
    from torch.utils._sympy.printers import PythonPrinter

    return PythonPrinter()


def _monomial(expr: Expr, env: Any) -> Expr:
    """``expr`` as a product of an integer and size variables."""
    if expr.is_Integer:
        return expr
    if expr.is_Symbol:
        return _variable(expr, env)
    if expr.is_Add:
        factored = sympy.factor(expr)
        if factored.is_Add or (factored.is_Mul and not factored.as_coeff_Mul()[0].is_Integer):
            return _variable(expr, env)
        expr = factored
    if expr.is_Mul:
        return sympy.Mul(*(_monomial(arg, env) for arg in expr.args))
    if expr.is_Pow and expr.exp.is_Integer and expr.exp > 0:
        return _monomial(expr.base, env) ** expr.exp
    return _variable(expr, env)


def _without_empty_case(stride: torch.SymInt) -> Expr:
    from torch.utils._sympy.functions import Max

    env = stride.node.shape_env

    def is_guarded(expr: Expr) -> bool:
        return isinstance(expr, Max) and len(expr.args) == 2 and sympy.Integer(1) in expr.args

    def size(expr: Expr) -> Expr:
        other = expr.args[0] if expr.args[1] == 1 else expr.args[1]
        return other if _range(other, env)[0] >= 0 else expr

    return stride.node.expr.replace(is_guarded, size)


def _variable(expr: Expr, env: Any) -> SizeVar:
    low, high = _range(expr, env)
    return SizeVar(str(expr), low, high, _hint(expr, env), expr)


def _range(expr: Expr, env: Any) -> tuple[int, int]:
    from torch.utils._sympy.value_ranges import bound_sympy

    ranges = bound_sympy(expr, env.var_to_range)
    low = int(ranges.lower) if ranges.lower.is_Integer else -UNBOUNDED
    high = int(ranges.upper) if ranges.upper.is_Integer else UNBOUNDED
    return max(low, -UNBOUNDED), min(high, UNBOUNDED)


def _hint(expr: Expr, env: Any) -> int:
    known = getattr(env, "backed_var_to_val", None)  # its name before torch 2.12: var_to_val
    values = dict(env.var_to_val if known is None else known)
    values.update({s: sympy.Integer(UNKNOWN_HINT) for s in expr.free_symbols if s not in values})
    value = expr.xreplace(values)
    return int(value) if value.is_Integer else UNKNOWN_HINT
