"""Where an FX node comes from: the user's source frames and the nn.Module path that Dynamo recorded on it."""

from __future__ import annotations

import re
from typing import Any

import torch

from compiler.frames import parse_stack
from compiler.report import Provenance


def provenance_of(node: torch.fx.Node) -> Provenance:
    """The node's frames, innermost first and without torch's own, and its module."""
    frames = parse_stack(node.meta.get("stack_trace") or "")
    path, kind = module_of(node)
    return Provenance(frames, path, kind, exact=bool(frames))


def module_of(node: torch.fx.Node) -> tuple[str, str]:
    """The innermost nn.Module ("layers.0.attn", "Attention"); for backward nodes that of their forward."""
    stack: dict[str, Any] = node.meta.get("nn_module_stack") or node.meta.get("fwd_nn_module_stack") or {}
    if not stack:
        return "", ""
    path, kind = list(stack.values())[-1]
    return clean_path(str(path)), getattr(kind, "__name__", str(kind).rsplit(".", 1)[-1])


def clean_path(path: str) -> str:
    """``L['self'].layers[0].attn`` as ``layers.0.attn``."""
    path = re.sub(r"^L\['(?:self|fn|args_\d+|[\w]+)'\]", "", path)
    path = re.sub(r"\._modules\['([^']+)'\]", r".\1", path)
    path = re.sub(r"\[['\"]?([^\]'\"]+)['\"]?\]", r".\1", path)
    return path.strip(".")
