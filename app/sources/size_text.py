"""Whether the text of a size in an exported program is arithmetic and no more, for torch evaluates it as Python.

torch writes a size as sympy's ``srepr`` does: ``Add(Symbol('s0', positive=True, integer=True), Integer(1))``.
"""

from __future__ import annotations

import ast
import builtins

_SYMPY = {
    "Abs", "Add", "And", "Dummy", "Equality", "Eq", "Float", "GreaterThan", "Integer", "LessThan", "Max", "Min", "Mod",
    "Mul", "Ne", "Not", "Or", "Piecewise", "Pow", "Rational", "StrictGreaterThan", "StrictLessThan", "Symbol", "Tuple",
    "Unequality", "ceiling", "floor",
}  # fmt: skip
_TORCH = {
    "CeilDiv", "CeilToInt", "CleanDiv", "FloatPow", "FloatTrueDiv", "FloorDiv", "FloorToInt", "Identity", "IntTrueDiv",
    "LShift", "ModularIndexing", "PowByNatural", "PythonMod", "RShift", "RoundDecimal", "RoundToInt", "ToFloat",
    "TruncToFloat", "TruncToInt", "Where",
}  # fmt: skip
_NAMED = {"Dummy", "Symbol"}  # called with a name as text; sympy reads text as Python in most other places
_OPERATORS = (ast.BinOp, ast.UnaryOp, ast.BoolOp, ast.Compare)
_PARTS = (ast.operator, ast.unaryop, ast.boolop, ast.cmpop, ast.expr_context)


def is_arithmetic(text: str) -> bool:
    """True where ``text`` only computes with numbers and named sizes."""
    try:
        return _is_plain(ast.parse(text.strip(), mode="eval").body)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return False


def _is_plain(node: ast.AST) -> bool:
    match node:
        case ast.Constant(value=value):
            return isinstance(value, (bool, int, float))
        case ast.Name(id=name):
            return _is_size(name)
        case ast.Call(func=ast.Name(id=name), args=args, keywords=keywords):
            if not all(isinstance(keyword.value, ast.Constant) and _is_plain(keyword.value) for keyword in keywords):
                return False
            if name in _NAMED:
                return len(args) == 1 and _is_name(args[0])
            if name == "Float" and len(args) == 1 and _is_number(args[0]):
                return True
            return name in _SYMPY | _TORCH and all(map(_is_plain, args))
        case _:
            return isinstance(node, (*_OPERATORS, *_PARTS)) and all(map(_is_plain, ast.iter_child_nodes(node)))


def _is_size(name: str) -> bool:
    """True for a name that nothing of Python's own has."""
    return name.isidentifier() and name.isascii() and "__" not in name and not hasattr(builtins, name)


def _is_name(node: ast.AST) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str) and _is_size(node.value)


def _is_number(node: ast.AST) -> bool:
    """True for the text of a decimal number."""
    if not isinstance(node, ast.Constant) or not isinstance(node.value, str):
        return False
    try:
        float(node.value)
    except ValueError:
        return False
    return True
