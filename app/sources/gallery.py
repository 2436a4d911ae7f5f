"""The example models, listed by reading their source: nothing is imported, so no torch is needed."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field
from importlib import resources
from pathlib import Path

from app.sources.errors import SourceError

_ORDER = ("relu_add_mul", "softmax", "layer_norm", "rms_norm_residual", "mlp", "conv_bn_relu")  # small ones first


@dataclass(frozen=True)
class ExampleInfo:
    """A gallery model as its file describes it. ``options`` maps each parameter to its default as Python text."""

    name: str
    title: str
    description: str
    training: bool
    options: dict[str, str] = field(default_factory=dict)


def examples() -> list[ExampleInfo]:
    """Every gallery model, the small ones first, then by name."""
    found = [_describe(path) for path in _folder().glob("*.py") if not path.name.startswith("_")]
    rank = {name: position for position, name in enumerate(_ORDER)}
    return sorted(found, key=lambda info: (rank.get(info.name, len(rank)), info.name))


def example_path(name: str) -> Path:
    """The file of the gallery model called ``name``.

    Raises:
        SourceError: there is no such example.
    """
    known = [info.name for info in examples()]
    if name not in known:
        raise SourceError(f"There is no example called '{name}'.", f"The gallery has {', '.join(known)}.")
    return _folder() / f"{name}.py"


def _folder() -> Path:
    return Path(str(resources.files("resources") / "examples"))


def _describe(path: Path) -> ExampleInfo:
    tree = ast.parse(path.read_text(encoding="utf-8"), filename=str(path))
    constants: dict[str, object] = {}
    options: dict[str, str] = {}
    for statement in tree.body:
        match statement:
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.Constant(value=value)):
                constants[name] = value
            case ast.AnnAssign(target=ast.Name(id=name), value=ast.Constant(value=value)):
                constants[name] = value
            case ast.FunctionDef(name=path.stem, args=arguments):
                options = _defaults(arguments)
    return ExampleInfo(
        name=path.stem,
        title=str(constants.get("TITLE", path.stem)),
        description=str(constants.get("DESCRIPTION", "")),
        training=bool(constants.get("TRAINING", False)),
        options=options,
    )


def _defaults(arguments: ast.arguments) -> dict[str, str]:
    positional = [*arguments.posonlyargs, *arguments.args]
    with_default = positional[len(positional) - len(arguments.defaults) :]
    pairs = [*zip(with_default, arguments.defaults, strict=True)]
    pairs += [(arg, value) for arg, value in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True) if value]
    return {arg.arg: ast.unparse(value) for arg, value in pairs}
