"""Where an FX node comes from: the user's source frames and the nn.Module path that Dynamo recorded on it."""

from __future__ import annotations

import inspect
import linecache
import pydoc
import re
from types import CodeType
from typing import Any

import msgspec
import torch

from compiler.dynamo.frames import parse_stack
from compiler.report import Provenance, SourceLine


def provenance_of(node: torch.fx.Node) -> Provenance:
    """The node's frames, innermost first and without torch's own, and its module."""
    frames = parse_stack(node.meta.get("stack_trace") or "")
    path, kind = module_of(node)
    return Provenance(frames, path, kind, exact=bool(frames))


def with_forward(found: Provenance, node: torch.fx.Node) -> Provenance:
    """Where a node has no frame, its module's ``forward``, as inferred.

    Dynamo leaves torch's own frames out, so a model that is one of torch's modules has no other.
    """
    line = None if found.frames else _forward(_innermost(node)[1])
    return found if line is None else msgspec.structs.replace(found, frames=[line], exact=False)


def _forward(kind: Any) -> SourceLine | None:
    """The line that begins a module class's ``forward``. Programs that were exported name the class as text."""
    if isinstance(kind, str):
        kind = pydoc.locate(kind) if kind.startswith("torch.nn.") else None
    forward = getattr(kind, "forward", None)
    code = getattr(inspect.unwrap(forward), "__code__", None) if callable(forward) else None
    if not isinstance(code, CodeType):
        return None
    text = linecache.getline(code.co_filename, code.co_firstlineno).strip()
    return SourceLine(code.co_filename, code.co_firstlineno, code.co_name, text)


def module_of(node: torch.fx.Node) -> tuple[str, str]:
    """The innermost nn.Module ("layers.0.attn", "Attention"); for backward nodes that of their forward."""
    path, kind = _innermost(node)
    return clean_path(path), getattr(kind, "__name__", str(kind).rsplit(".", 1)[-1])


def _innermost(node: torch.fx.Node) -> tuple[str, Any]:
    """Path and class of the innermost module, as Dynamo has them; ("", "") for none."""
    stack: dict[str, Any] = node.meta.get("nn_module_stack") or node.meta.get("fwd_nn_module_stack") or {}
    if not stack:
        return "", ""
    path, kind = list(stack.values())[-1]
    return str(path), kind


def clean_path(path: str) -> str:
    """``L['self'].layers[0].attn`` as ``layers.0.attn``."""
    path = re.sub(r"^L\['(?:self|fn|args_\d+|[\w]+)'\]", "", path)
    path = re.sub(r"\._modules\['([^']+)'\]", r".\1", path)
    path = re.sub(r"\[['\"]?([^\]'\"]+)['\"]?\]", r".\1", path)
    return path.strip(".")
