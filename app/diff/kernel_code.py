"""What a kernel's source computes, apart from names and from what only tells how and where it was compiled.

Inductor writes beside a kernel what its own runtime needs: the device, sizes to tune for, options. None of that is
code: it is taken out of the text and read as settings, of which a comparison shows those that differ.
"""

from __future__ import annotations

import ast
import io
import keyword
import re
import tokenize
from collections.abc import Iterator


def code(source: str, name: str) -> str:
    """What two kernels have in common where only names and settings differ. ``name``: the kernel's."""
    return renamed(plain(source, name))


def plain(source: str, name: str) -> str:
    """The source with the kernel's name as "kernel", and without imports, settings, comments and blank lines.

    Of Inductor's decorator the kind of the kernel and the types of its arguments stay.
    """
    source = _IMPORT.sub("", source)
    call = _decorator(source)
    if call is not None:
        lines = source.splitlines()
        assert call.end_lineno is not None
        types = _literal(dict(_entries(call)).get("signature"))
        told = ", ".join(map(repr, types.values())) if isinstance(types, dict) else ""
        lines[call.lineno - 1 : call.end_lineno] = [f"@{ast.unparse(call.func)}({told})"]
        source = "\n".join(lines)
    text = re.sub(rf"\b{re.escape(name)}\b", "kernel", source) if name else source
    rows = (re.sub(r"\s*#(?![^'\"]*['\"]).*$", "", line).rstrip() for line in text.splitlines())
    return "\n".join(row for row in rows if row)


def settings_of(source: str) -> dict[str, str | int | float]:
    """What Inductor's decorator says beside the types of the arguments, without the device and the kernel's name.

    A setting of several parts is one for each ("size_hints.x"). Of what the compiler may assume of arguments
    ("tt.divisibility") it is those of which it may.
    """
    call = _decorator(_IMPORT.sub("", source))
    found: dict[str, str | int | float] = {}
    for name, value in _entries(call) if call is not None else ():
        if name == _ASSUMED:
            found |= _assumed(_literal(value))
        elif name not in _NO_SETTINGS:
            found |= dict(_parts(name, value))
    return found


def _decorator(source: str) -> ast.Call | None:
    """The call that tells Inductor's runtime of the kernel; None for a source without one, or no Python."""
    if "triton_meta" not in source:
        return None
    try:
        functions = [node for node in ast.parse(source).body if isinstance(node, ast.FunctionDef)]
    except SyntaxError:
        return None
    calls = (call for function in functions for call in function.decorator_list)
    return next((call for call in calls if isinstance(call, ast.Call)), None)


def _entries(call: ast.Call) -> Iterator[tuple[str, ast.expr]]:
    """Keywords of the call, and in place of the two big dictionaries what these hold."""
    for argument in call.keywords:
        if argument.arg in ("triton_meta", "inductor_meta") and isinstance(argument.value, ast.Dict):
            for key, value in zip(argument.value.keys, argument.value.values, strict=True):
                if isinstance(key, ast.Constant):
                    yield (_ASSUMED if key.value == "configs" else str(key.value)), value
        elif argument.arg is not None:
            yield argument.arg, argument.value


def _parts(name: str, value: ast.expr) -> Iterator[tuple[str, str | int | float]]:
    if isinstance(value, ast.Dict) and value.keys and all(isinstance(key, ast.Constant) for key in value.keys):
        for key, part in zip(value.keys, value.values, strict=True):
            assert isinstance(key, ast.Constant)
            yield from _parts(f"{name}.{key.value!s}", part)
        return
    known = value.value if isinstance(value, ast.Constant) else None
    if isinstance(known, str | int | float) and not isinstance(known, bool):
        yield name, known
    else:
        yield name, ast.unparse(value)


def _assumed(configs: object) -> dict[str, str | int | float]:
    """Which arguments the compiler may assume what of: "tt.divisibility 16" -> "arguments 0, 1, 2"."""
    found: dict[str, list[int]] = {}
    first = configs[0] if isinstance(configs, list) and configs else {}
    for position, attributes in first.items():
        for attribute, value in attributes:
            found.setdefault(f"{attribute} {value}", []).append(position[0])
    return {name: "arguments " + ", ".join(map(str, positions)) for name, positions in found.items()}


def _literal(value: ast.expr | None) -> object:
    try:
        return ast.literal_eval(value) if value is not None else None
    except ValueError:
        return None


def renamed(source: str) -> str:
    """The source with its own names numbered by first appearance, so that only what it computes counts.

    Names after a dot, of keyword arguments and of the modules ``tl``, ``triton`` and ``libdevice`` stay.
    """
    try:
        tokens = list(tokenize.generate_tokens(io.StringIO(source).readline))
    except (tokenize.TokenError, IndentationError, SyntaxError):
        return source  # another language than Python: compared as it stands
    names: dict[str, str] = {}
    parts: list[str] = []
    depth = 0
    told = [token for token in tokens if token.type not in _SILENT]
    for number, token in enumerate(told):
        text = token.string
        depth += (text in ("(", "[")) - (text in (")", "]"))
        if token.type == tokenize.INDENT:
            text = "<in>"
        elif token.type == tokenize.DEDENT:
            text = "<out>"
        elif token.type == tokenize.NAME and text not in _KEPT and not keyword.iskeyword(text):
            attribute = number > 0 and told[number - 1].string == "."
            argument = depth > 0 and number + 1 < len(told) and told[number + 1].string == "="
            text = text if attribute or argument else names.setdefault(text, f"v{len(names)}")
        parts.append(text)
    return " ".join(parts)


_ASSUMED = "configs of triton_meta"  # a kernel of the user's own has another "configs" beside it
_IMPORT = re.compile(r"^(?:import |from \S+ import |triton_helpers\.set_driver_to_gpu\(\)).*$", re.M)
# the types are code, the device is told as the report's target, and the rest are names of files and compilers
_NO_SETTINGS = frozenset({"signature", "device", "backend_hash", "filename", "kernel_name", "is_hip", "is_fbcode"})
_SILENT = frozenset({tokenize.COMMENT, tokenize.NL, tokenize.ENDMARKER})
_KEPT: frozenset[str] = frozenset({"tl", "triton", "libdevice", "language", "float", "int", "range", "min", "max"})
