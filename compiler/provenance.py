"""Where an FX node comes from: the user's source frames and the nn.Module path that Dynamo recorded on it."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import torch

from compiler.report import Provenance, SourceLine

_FRAME = re.compile(r'^\s*File "(?P<file>[^"]+)", line (?P<line>\d+), in (?P<function>.+)$')
_RESUMED = re.compile(r"^torch_dynamo_resume_in_(?P<name>.+)_at_\d+$")
_TORCH = str(Path(torch.__file__).parent)


def provenance_of(node: torch.fx.Node) -> Provenance:
    """The node's frames, innermost first and without torch's own, and its module."""
    frames = parse_stack(node.meta.get("stack_trace") or "")
    path, kind = module_of(node)
    return Provenance(frames, path, kind, exact=bool(frames))


def parse_stack(text: str) -> list[SourceLine]:
    """Read a stack trace as Python prints it; frames inside torch are left out."""
    frames: list[SourceLine] = []
    lines = text.splitlines()
    for number, line in enumerate(lines):
        match = _FRAME.match(line)
        if match is None or match["file"].startswith(_TORCH):
            continue
        code = lines[number + 1].strip() if number + 1 < len(lines) and not _FRAME.match(lines[number + 1]) else ""
        frames.append(SourceLine(match["file"], int(match["line"]), users_function(match["function"].strip()), code))
    frames.reverse()
    return frames


def users_function(name: str) -> str:
    """The function's name as the user wrote it: Dynamo names what follows a graph break in it after the line."""
    match = _RESUMED.match(name)
    return match["name"] if match else name


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
