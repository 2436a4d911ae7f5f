"""TorchInductor's own options: ``torch._inductor.config`` by name, with the texts its authors wrote beside them."""

from __future__ import annotations

import ast
import importlib
import inspect
import io
import tokenize
import typing
from collections.abc import Mapping
from typing import Any

from compiler.errors import CompileError
from compiler.options import OptionInfo, option_hint

_PLAIN = (bool, int, float, str)
_CONTAINERS = (list, tuple, set, dict)


def describe_config() -> list[OptionInfo]:
    """Every option that can be written as text, by name ("max_fusion_size", "triton.cudagraphs")."""
    import torch._inductor.config as config

    docs = option_docs(_source_of(config))
    current = config.get_config_copy()
    return [
        OptionInfo(
            name=name,
            type=_type_name(entry.default, entry.value_type),
            default=_text(entry.default),
            doc=docs.get(name, ""),
            current=_text(current[name]) if current.get(name) != entry.default else "",
            choices=["True", "False"] if isinstance(entry.default, bool) else [],
        )
        for name, entry in sorted(_writable().items())
        if name in current
    ]


def _source_of(module: Any) -> str:
    """The module's text; "" where only its compiled form is installed."""
    try:
        return inspect.getsource(module)
    except OSError:
        return ""


def parse_config(texts: Mapping[str, Any]) -> dict[str, Any]:
    """Values for ``torch._inductor.config.patch``.

    Raises:
        CompileError: a name that is no option, or a value of another type than the option's.
    """
    known = _writable()
    values: dict[str, Any] = {}
    for name, text in texts.items():
        entry = known.get(name)
        if entry is None:
            hint = option_hint(name, list(known), "inductor")
            raise CompileError(f"torch._inductor.config has no option '{name}'.", hint=hint)
        value = _read(text) if isinstance(text, str) else text
        kind = type(entry.default)
        if kind is float and type(value) is int:
            value = float(value)
        if kind in _PLAIN and type(value) is not kind and not _is_optional(entry.value_type, value):
            hint = f"Its default is {_text(entry.default)}."
            raise CompileError(f"The option {name} takes {_a(kind)}, not '{text}'.", hint=hint)
        values[name] = value
    return values


def _a(kind: type) -> str:
    return {bool: "True or False", int: "a whole number", float: "a number", str: "a text"}[kind]


def _is_optional(declared: Any, value: Any) -> bool:
    """Whether the declared type has room for this value beside the default's type ("Literal", unions)."""
    text = str(declared)
    return (value is None and ("None" in text or "Optional" in text)) or ("Literal" in text and repr(value) in text)


def _writable() -> dict[str, Any]:
    """The options whose values are plain data, by name; passes and other objects cannot be written as text."""
    config: Any = importlib.import_module("torch._inductor.config")
    return {name: entry for name, entry in config._config.items() if name != "TYPE_CHECKING" and _is_writable(entry)}


def _is_writable(entry: Any) -> bool:
    if entry.default is None:
        return _is_plain(entry.value_type)
    if isinstance(entry.default, _PLAIN):
        return True
    return isinstance(entry.default, _CONTAINERS) and not any(callable(item) for item in entry.default)


def _is_plain(declared: Any) -> bool:
    """Whether a declared type is made of plain data alone."""
    if typing.get_origin(declared) is typing.Literal:
        return True
    parts = typing.get_args(declared)
    if parts:
        return all(part is Ellipsis or _is_plain(part) for part in parts)
    return declared in (*_PLAIN, *_CONTAINERS, type(None))


def _type_name(default: Any, declared: Any) -> str:
    if default is not None:
        return type(default).__name__
    return str(getattr(declared, "__name__", declared)).replace("typing.", "").replace("NoneType", "None")


def _text(value: Any) -> str:
    return value if isinstance(value, str) else repr(value)


def _read(text: str) -> Any:
    """The text as Python reads it ("True", "8", "['a']"), with "true" and "false" as well; else the text itself."""
    lowered = {"true": True, "false": False}.get(text.strip().lower())
    if lowered is not None:
        return lowered
    try:
        return ast.literal_eval(text.strip())
    except (ValueError, SyntaxError):
        return text


def option_docs(source: str) -> dict[str, str]:
    """Option -> the comment above its assignment, the one behind it, or the text below it, as one paragraph."""
    comments: dict[int, str] = {}
    alone: set[int] = set()
    lines = source.splitlines()
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type == tokenize.COMMENT:
            comments[token.start[0]] = token.string.lstrip("#: ").rstrip()
            if lines[token.start[0] - 1].lstrip().startswith("#"):
                alone.add(token.start[0])
    docs: dict[str, str] = {}

    def read(body: list[ast.stmt], prefix: str) -> None:
        for number, statement in enumerate(body):
            if isinstance(statement, ast.ClassDef):
                read(statement.body, f"{prefix}{statement.name}.")
                continue
            target = _assigned(statement)
            if target is None:
                continue
            above = statement.lineno - 1
            while above in alone:
                above -= 1
            parts = [comments[line] for line in range(above + 1, statement.lineno)]
            parts += [
                comments[line] for line in range(statement.lineno, (statement.end_lineno or 0) + 1) if line in comments
            ]
            below = body[number + 1] if number + 1 < len(body) else None
            if (
                isinstance(below, ast.Expr)
                and isinstance(below.value, ast.Constant)
                and isinstance(below.value.value, str)
            ):
                parts.append(inspect.cleandoc(below.value.value))
            docs[prefix + target] = " ".join(" ".join(parts).split())

    read(ast.parse(source).body, "")
    return docs


def _assigned(statement: ast.stmt) -> str | None:
    """The name that a statement gives a value, if it is one name."""
    if isinstance(statement, ast.AnnAssign) and isinstance(statement.target, ast.Name):
        return statement.target.id
    if isinstance(statement, ast.Assign) and len(statement.targets) == 1 and isinstance(statement.targets[0], ast.Name):
        return statement.targets[0].id
    return None
