"""What every lowering rule keeps to, read off its source."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

FILES = sorted((Path(__file__).parents[1] / "compiler" / "lowering").glob("*.py"))
FUNCTIONS = (ast.FunctionDef, ast.Lambda)


def late_questions(tree: ast.Module) -> Iterator[int]:
    """Lines at which a function inside a rule asks the scope for its node: by then the scope is at another one."""
    for rule in ast.walk(tree):
        if not isinstance(rule, ast.FunctionDef) or "scope" not in (a.arg for a in rule.args.args):
            continue
        inner = (node for node in ast.walk(rule) if isinstance(node, FUNCTIONS) and node is not rule)
        for node in (node for function in inner for node in ast.walk(function)):
            if isinstance(node, ast.Attribute) and ast.unparse(node) in ("scope.output", "scope.node", "scope.shape"):
                yield node.lineno


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_values_ask_for_the_node_while_it_is_lowered(path: Path) -> None:
    assert list(late_questions(ast.parse(path.read_text()))) == []


def test_a_late_question_is_found() -> None:
    rule = (
        "def rule(scope, x):\n    def compute(index):\n        return cast(x, scope.output.dtype)\n    return compute\n"
    )
    assert list(late_questions(ast.parse(rule))) == [3]
