"""From the lines of Inductor's kernels to the FX nodes that they compute.

Inductor lowers an FX node to a function that computes one element, and nests these functions. While one runs, whatever
it emits is its node's work: the function is wrapped to say so, the loop body's operations are marked with the innermost
node that was running, and the temporary that an operation becomes in the kernel takes over its mark. Nothing that is
generated changes by it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from typing import Any

from compiler.patching import replaced

_MARK = "fusescope_node"
_MADE = re.compile(r"^\s*_?(tmp\d+)\w*(?:\s*:[^=]+)?(?:\s*,\s*\w+)*\s*=")
_NAMED = re.compile(r"\btmp\d+\b")
_STORE = re.compile(r"\b(?:tl\.store|tl\.atomic_\w+|\w+\.store)\(")


_STORING = ("store_output", "store_reduction")


class LineTags:
    """The marks of one compilation."""

    def __init__(self) -> None:
        self._running: list[str] = []
        self._temporaries: dict[int, dict[str, str]] = {}  # kernel -> temporary -> FX node

    def patches(self) -> Iterator[AbstractContextManager[None]]:
        """What is wrapped for the compilation."""
        from torch._inductor import ir
        from torch._inductor.codegen.common import CSE
        from torch._inductor.loop_body import LightTracer

        yield replaced(ir.IRNode, "__post_init__", self._made(ir.IRNode.__post_init__))
        yield replaced(LightTracer, "create_proxy", self._traced(LightTracer.create_proxy))
        yield replaced(CSE, "newvar", self._emitted(CSE.newvar))

    def lines_of(self, kernel: Any, source: str) -> dict[int, list[str]]:
        """Line of ``source`` (1-based) -> FX nodes, for a kernel that was generated in this compilation."""
        known = self._temporaries.get(id(kernel), {})
        found: dict[int, list[str]] = {}
        for number, line in enumerate(source.splitlines(), 1):
            names = [match[1]] if (match := _MADE.match(line)) else []
            if not names and _STORE.search(line):
                names = _NAMED.findall(line.partition("(")[2])[-1:]
            nodes = [known[name] for name in names if name in known]
            if nodes:
                found[number] = nodes
        return found

    def _made(self, real: Callable[..., None]) -> Callable[..., None]:
        def post_init(node: Any) -> None:
            real(node)
            name = current_fx_node()
            if name is None:
                return
            if callable(getattr(node, "inner_fn", None)):
                object.__setattr__(node, "inner_fn", self._saying(name, node.inner_fn))
            functions = getattr(node, "inner_fns", None)
            if isinstance(functions, tuple):
                object.__setattr__(node, "inner_fns", tuple(self._saying(name, f) for f in functions))
            for method in _STORING:  # what a reduction does beside its elements' function
                if callable(getattr(node, method, None)) and hasattr(node, "ranges"):
                    object.__setattr__(node, method, self._saying(name, getattr(node, method)))

        return post_init

    def _saying(self, name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **keywords: Any) -> Any:
            self._running.append(name)
            try:
                return function(*args, **keywords)
            finally:
                self._running.pop()

        return call

    def _traced(self, real: Callable[..., Any]) -> Callable[..., Any]:
        def create_proxy(tracer: Any, *args: Any, **keywords: Any) -> Any:
            proxy = real(tracer, *args, **keywords)
            # a body that is traced again from another one keeps the marks of that one's operations
            mark = self._running[-1] if self._running else mark_of_interpreted()
            if mark is not None:
                proxy.node.meta[_MARK] = mark
            return proxy

        return create_proxy

    def _emitted(self, real: Callable[..., Any]) -> Callable[..., Any]:
        def newvar(cse: Any, *args: Any, **keywords: Any) -> Any:
            from torch._inductor.virtualized import V

            variable = real(cse, *args, **keywords)
            mark = mark_of_interpreted()
            if mark is not None:
                self._temporaries.setdefault(id(V.kernel), {})[str(variable)] = mark
            return variable

        return newvar


def current_fx_node() -> str | None:
    """The FX node that is being lowered."""
    from torch._inductor.virtualized import V

    node = getattr(V.graph, "current_node", None)
    return node.name if node is not None and node.op == "call_function" else None


def mark_of_interpreted() -> str | None:
    """The mark of the loop body's operation that is being generated or traced again."""
    from torch._inductor.virtualized import V

    node = getattr(V.interpreter, "current_node", None)
    return node.meta.get(_MARK) if node is not None else None
