"""How indices, literals and dtypes are spelled in Triton."""

from __future__ import annotations

from collections.abc import Callable

import sympy
import torch

from compiler.index import Expr, IndirectVar, Quotient, Remainder
from compiler.sizes import Size, SizeVar

POINTER_TYPES = {
    torch.float16: "*fp16",
    torch.bfloat16: "*bf16",
    torch.float32: "*fp32",
    torch.float64: "*fp64",
    torch.int8: "*i8",
    torch.int16: "*i16",
    torch.int32: "*i32",
    torch.int64: "*i64",
    torch.uint8: "*u8",
    torch.bool: "*i1",
    # read and written as codes: Triton's own conversions saturate where torch's overflow, and need newer GPUs
    torch.float8_e4m3fn: "*u8",
    torch.float8_e5m2: "*u8",
}
FLOAT8 = {torch.float8_e4m3fn: "e4m3", torch.float8_e5m2: "e5m2"}

TRITON_TYPES = {
    torch.float16: "tl.float16",
    torch.bfloat16: "tl.bfloat16",
    torch.float32: "tl.float32",
    torch.float64: "tl.float64",
    torch.int8: "tl.int8",
    torch.int16: "tl.int16",
    torch.int32: "tl.int32",
    torch.int64: "tl.int64",
    torch.uint8: "tl.uint8",
    torch.bool: "tl.int1",
}


def is_half(dtype: torch.dtype) -> bool:
    """Whether values of the dtype are carried as float32."""
    return dtype in (torch.float16, torch.bfloat16, *FLOAT8)


def code_of(value: bool | int | float, dtype: torch.dtype) -> str:
    """The code of a number in a dtype of ``FLOAT8``."""
    return str(int(torch.tensor(float(value)).to(dtype).view(torch.uint8)))


def carrier(dtype: torch.dtype) -> torch.dtype:
    """The dtype that a value is computed in."""
    return torch.float32 if is_half(dtype) else dtype


def literal(value: bool | int | float, dtype: torch.dtype) -> str:
    """A number as Triton reads it."""
    if dtype is torch.bool:
        return "True" if value else "False"
    if not dtype.is_floating_point:
        return str(int(value)) if value >= 0 else f"({int(value)})"
    number = float(value)
    if number != number:
        return 'float("nan")'
    if number in (float("inf"), float("-inf")):
        return f'float("{"-" if number < 0 else ""}inf")'
    text = repr(number)
    return f"({text})" if number < 0 or text.startswith("-") else text


NameOf = Callable[[IndirectVar | SizeVar], str]


def index_text(expr: Expr, name_of: NameOf) -> str:
    """An index expression; ``name_of`` gives the variable that holds an indirect index, or a size's parameter."""
    return _index(sympy.sympify(expr), name_of, False)


def size_text(size: Size, name_of: NameOf) -> str:
    """A size as one operand."""
    return str(size) if isinstance(size, int) else _index(size, name_of, True)


def _index(expr: Expr, name_of: NameOf, tight: bool) -> str:
    if isinstance(expr, IndirectVar | SizeVar):
        return name_of(expr)
    if expr.is_Symbol:
        return str(expr.name)
    if expr.is_Integer:
        return str(expr) if int(expr) >= 0 or not tight else f"({expr})"
    if expr.is_Add:
        terms = sorted(expr.args, key=lambda t: (t.is_Integer, str(t)))
        text = " + ".join(_index(term, name_of, False) for term in terms).replace("+ -", "- ")
        return f"({text})" if tight else text
    if expr.is_Mul:
        factors = sorted(expr.args, key=lambda f: (not f.is_Integer, str(f)))
        if factors[0] == sympy.Integer(-1):
            rest = " * ".join(_index(f, name_of, True) for f in factors[1:])
            return f"-{rest}" if not tight else f"(-{rest})"
        text = " * ".join(_index(f, name_of, True) for f in factors)
        return f"({text})" if tight else text
    if expr.is_Pow and expr.exp.is_Integer and expr.exp > 0:
        text = " * ".join([_index(expr.base, name_of, True)] * int(expr.exp))
        return f"({text})" if tight else text
    if isinstance(expr, Quotient | Remainder):
        sign = "//" if isinstance(expr, Quotient) else "%"
        return f"({_index(expr.args[0], name_of, True)} {sign} {_index(expr.args[1], name_of, True)})"
    raise TypeError(f"cannot print the index {expr!r}")
