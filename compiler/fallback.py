"""The region that runs when a stage of ours failed and the option ``fallback`` is "eager": the graph as captured.

Every op is a library call with the failure as its reason, so that the report shows what ran and why.
"""

from __future__ import annotations

import operator

import torch

from compiler.errors import CompileError
from compiler.fusion import Partition
from compiler.ir import Extern, Program
from compiler.lowering.graph import is_view
from compiler.planning.memory import MemoryPlan
from compiler.region import CompiledRegion
from compiler.report import ExternReason


def eager_region(graph: torch.fx.GraphModule, name: str, kind: str, error: CompileError) -> CompiledRegion:
    """A region in which nothing was compiled, because of ``error``."""
    calls = [n for n in graph.graph.nodes if n.op == "call_function" and not is_view(n)]
    inputs = [n for n in graph.graph.nodes if n.op == "placeholder"]
    steps = [_call(node, str(error)) for node in calls]
    program = Program(tuple(None for _ in inputs), {}, list(steps), ())
    plan = MemoryPlan({}, {}, {}, {}, 0, 0)
    return CompiledRegion(
        name,
        kind,
        graph,
        program,
        Partition(list(steps), []),
        list(steps),
        plan,
        {},
        f"# The captured graph itself runs: {error}\n\n{graph.code.strip()}\n",
        {},
        fallback=error,
    )


def _call(node: torch.fx.Node, detail: str) -> Extern:
    multiple = isinstance(node.meta.get("val"), tuple | list) or any(u.target is operator.getitem for u in node.users)
    return Extern(
        f"ext_{node.name}",
        node.name,
        node.target,
        (),
        {},
        (),
        multiple,
        (),
        (),
        (node.name,),
        ExternReason.COMPILE_FAILED,
        detail,
        True,
    )
