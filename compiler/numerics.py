"""How far every value that a compiled region writes to memory is from float64.

Each region runs once, and what each step writes is kept. Its captured graph is then run op by op on the same inputs,
in the tensors' own dtypes (as eager does) and in float64 side by side. Errors add up along the region, in ours as in
eager's: beside eager's error, ours tells whether a kernel loses digits that the dtype would have kept.

Random numbers are taken from the compiled region, so that both sides compute with the same ones.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import torch
from torch.utils import _pytree as pytree

from compiler.codegen.wrapper import generate_wrapper
from compiler.errors import CompileError
from compiler.ir import Buffer
from compiler.kernel_library import KernelLibrary
from compiler.planning.schedule import Launch, Scheduled
from compiler.region import CompiledRegion
from compiler.report import NodeCheck, Numerics, Target
from compiler.runtime.executable import aligned, build, interpreting
from compiler.verify import relative_error

INTERPRETER = "Triton's interpreter on the CPU"
_ATTENTION = frozenset(
    {
        "_scaled_dot_product_flash_attention",
        "_scaled_dot_product_efficient_attention",
        "_scaled_dot_product_cudnn_attention",
        "_scaled_dot_product_flash_attention_for_cpu",
        "_scaled_dot_product_fused_attention_overrideable",
    }
)


def check_numerics(
    model: Any,
    inputs: Sequence[Any],
    *,
    target: Target,
    training: bool = False,
    dynamic: bool = False,
    options: Mapping[str, str] | None = None,
) -> Numerics:
    """Check every value that the regions of ``model`` write, on the example inputs.

    Kernels run on this machine's GPU where ``target`` is it, else through Triton's interpreter, which
    TRITON_INTERPRET=1 must have switched on before Triton was imported.

    Raises:
        CompileError: a stage failed, Dynamo captured nothing, or there is nothing here to run the kernels.
    """
    from compiler.backend import Session, fusescope
    from compiler.dynamo.log import watch_dynamo
    from compiler.options import parse_options
    from compiler.pipeline import nothing_captured, run_once, to_gpu
    from compiler.retarget.compositions import composed_as_on_gpu

    if not target.local and not interpreting():
        raise CompileError(
            "There is no GPU here to run the kernels on",
            stage="numerics",
            hint="Set TRITON_INTERPRET=1 to run them through Triton's interpreter.",
        )
    torch._dynamo.reset()
    args = tuple(inputs)
    if target.local and not interpreting():
        model, args = to_gpu(model, args)
    library = KernelLibrary(
        target, binaries=not interpreting(), texts=False, options=parse_options(dict(options or {}))
    )
    runs: list[_Run] = []

    def watch(region: CompiledRegion) -> Callable[[list[Any]], Any]:
        run = _Run(region, library)
        runs.append(run)
        return run

    session = Session(target, library)
    session.executable = watch
    compiled = torch.compile(
        model, backend=lambda gm, x: fusescope(gm, x, options={"session": session}), dynamic=dynamic or None
    )
    with watch_dynamo() as dynamo, composed_as_on_gpu(traced_on_cpu=not target.local):
        run_once(compiled, args, training)
    if not session.regions:
        raise nothing_captured(dynamo.graph_breaks, "check")
    device = INTERPRETER if interpreting() else target.title
    return Numerics(device, [check for run in runs for check in run.checks])


class Held(NamedTuple):
    """A value that the compiled region wrote: by which step, of which FX node, which of its results (-1: unknown)."""

    unit: str
    node: str
    result: int
    tensor: torch.Tensor


class _Run:
    """Runs a region in place of its executable and checks what it wrote."""

    def __init__(self, region: CompiledRegion, library: KernelLibrary) -> None:
        self.checks: list[NodeCheck] = []
        self._region = region
        self._library = library

    def __call__(self, args: list[Any]) -> Any:
        from compiler.backend import launchers_of

        region = self._region
        launchers = launchers_of(region, self._library)
        if launchers is None:
            raise CompileError(f"A kernel of {region.name} did not compile, so it cannot be checked", stage="numerics")
        given = [value.clone() if isinstance(value, torch.Tensor) else value for value in args]
        watcher = _Watcher(region.steps)
        text, names = generate_wrapper(region.program, region.steps, region.plan, region.kernels, observed=region.name)
        call = build(text, {**names, "mark": watcher.mark}, launchers)
        results = call([aligned(value) if isinstance(value, torch.Tensor) else value for value in args])
        self.checks = compare(region.name, region.graph, given, watcher.held.values())
        return results


class _Watcher:
    """Keeps a copy of what each step of a wrapper wrote, taken from the wrapper's variables when the next one begins.

    Only the last value written for an FX node counts: what comes before it is a partial result.
    """

    def __init__(self, steps: Sequence[Scheduled]) -> None:
        self.held: dict[tuple[str, int], Held] = {}
        self._steps = {step.name: step for step in steps}
        self._done: Scheduled | None = None

    def mark(self, region: str, step: str) -> None:
        """Called by the wrapper's ``call`` before each step, and with empty names after the last."""
        if self._done is not None:
            self._keep(self._done, sys._getframe(1).f_locals)
        self._done = self._steps.get(step)

    def _keep(self, step: Scheduled, variables: Mapping[str, Any]) -> None:
        if isinstance(step, Launch):
            wrote: list[tuple[int, Buffer | None]] = [(-1, buffer) for buffer in step.stored]
        else:
            wrote = list(enumerate(step.outputs)) if step.multiple else [(-1, buffer) for buffer in step.outputs]
        for result, buffer in wrote:
            value = variables.get(buffer.name) if buffer is not None else None
            if buffer is not None and isinstance(value, torch.Tensor):
                held = Held(step.name, buffer.fx_node, result, value.detach().clone())
                self.held[(buffer.fx_node, result)] = held


@dataclass
class _Value:
    """One FX node's value as eager has it, and in float64."""

    own: Any
    exact: Any


def compare(region: str, graph: torch.fx.GraphModule, args: Sequence[Any], held: Iterable[Held]) -> list[NodeCheck]:
    """Run ``graph`` op by op in both precisions, and compare what was written with each node as it is computed."""
    waiting: dict[str, list[Held]] = {}
    for one in held:
        waiting.setdefault(one.node, []).append(one)
    values: dict[torch.fx.Node, _Value] = {}
    uses = Counter(source for node in graph.graph.nodes for source in node.all_input_nodes)
    inputs = iter(args)
    checks: list[NodeCheck] = []
    with torch.no_grad():
        for node in graph.graph.nodes:
            wrote = waiting.pop(node.name, [])
            value = _evaluate(node, graph, values, inputs, wrote)
            if value is None:
                continue
            values[node] = value
            checks += [check for one in wrote if (check := _check(region, one, value)) is not None]
            for source in node.all_input_nodes:
                uses[source] -= 1
                if not uses[source]:
                    values.pop(source, None)
    return checks


def _evaluate(
    node: torch.fx.Node,
    graph: torch.fx.GraphModule,
    values: dict[torch.fx.Node, _Value],
    inputs: Any,
    wrote: Sequence[Held],
) -> _Value | None:
    """A node's value, or None where it is not known: a random number that no step wrote, and what comes of it."""
    if node.op == "placeholder":
        return _given(next(inputs))
    if node.op == "get_attr":
        return _given(_attribute(graph, str(node.target)))
    if node.op != "call_function" or any(source not in values for source in node.all_input_nodes):
        return None
    if _is_random(node):
        return _given(wrote[0].tensor) if len(wrote) == 1 and wrote[0].result < 0 else None
    owns = pytree.tree_map_only(torch.fx.Node, lambda n: values[n].own, (node.args, node.kwargs))
    exacts = pytree.tree_map_only(torch.fx.Node, lambda n: values[n].exact, (node.args, node.kwargs))
    own = _call(node.target, *owns)
    if getattr(node.target, "namespace", "") == "fusescope":  # draws from seeds: another dtype draws other numbers
        return _Value(own, _widen(own))
    try:
        exact = _in_float64(node.target, owns, exacts)
    except (RuntimeError, NotImplementedError) as error:
        if isinstance(error, torch.OutOfMemoryError):
            raise
        return None  # what is computed from it has no reference either, and is not told
    return _Value(own, _laid_out(exact, own))


def _call(target: Any, args: Any, kwargs: Any) -> Any:
    return target(*args, **kwargs)


def _in_float64(target: Any, owns: Any, exacts: Any) -> Any:
    """The op in float64; where it has no such kernel, in its own dtypes on the exact values rounded to them."""
    wide = pytree.tree_map_only(torch.dtype, lambda d: torch.float64 if d.is_floating_point else d, exacts)
    name = getattr(getattr(target, "overloadpacket", None), "__name__", "")
    try:
        if name in _ATTENTION:
            return _attention(target, wide, owns, exacts)
        return _widen(_call(target, *wide))
    except (RuntimeError, NotImplementedError, TypeError, ValueError) as error:
        if isinstance(error, torch.OutOfMemoryError):
            raise
        return _rounded(target, owns, exacts)


def _rounded(target: Any, owns: Any, exacts: Any) -> Any:
    narrow = pytree.tree_map(
        lambda own, exact: exact.to(own.dtype) if isinstance(own, torch.Tensor) else exact, owns, exacts
    )
    return _widen(_call(target, *narrow))


def _attention(target: Any, wide: Any, owns: Any, exacts: Any) -> Any:
    """Attention has no float64 kernel on a GPU: its first result from the definition, the others as they are."""
    names = [argument.name for argument in target._schema.arguments]
    given = {**dict(zip(names, wide[0], strict=False)), **wide[1]}
    if given.get("dropout_p", 0.0):
        return _rounded(target, owns, exacts)
    query, key, value = given["query"], given["key"], given["value"]
    mask = given.get("attn_bias", given.get("attn_mask"))
    with torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.MATH):
        out = torch.nn.functional.scaled_dot_product_attention(
            query, key, value, mask, 0.0, bool(given.get("is_causal", False)), scale=given.get("scale")
        )
    _, *others = _rounded(target, owns, exacts)
    return (out, *others)


def _check(region: str, held: Held, value: _Value) -> NodeCheck | None:
    """The check of one value; None where it is no float, or not the node's whole value (a partial result)."""
    tensor = held.tensor
    if not tensor.dtype.is_floating_point:
        return None
    pairs = list(zip(_results(value.own, held.result), _results(value.exact, held.result), strict=False))
    fitting = [
        (own.reshape(tensor.shape), exact.reshape(tensor.shape))
        for own, exact in pairs
        if own.numel() == tensor.numel() and own.dtype.is_floating_point
    ]
    if not fitting:
        return None
    # an op with several results of one size: the buffer holds the one that it is closest to
    error, which = min((relative_error(tensor, exact), place) for place, (_, exact) in enumerate(fitting))
    own, exact = fitting[which]
    dtype = str(tensor.dtype).removeprefix("torch.")
    return NodeCheck(region, held.unit, held.node, error, relative_error(own, exact), dtype)


def _results(value: Any, place: int) -> list[torch.Tensor]:
    if place >= 0 and isinstance(value, list | tuple):
        value = value[place] if place < len(value) else None
    return [item for item in pytree.tree_leaves(value) if isinstance(item, torch.Tensor)]


def _widen(value: Any) -> Any:
    """Floats in float64; what is not changed keeps its memory, for ops may write into it through another view."""
    return pytree.tree_map_only(torch.Tensor, lambda t: t.to(torch.float64) if t.dtype.is_floating_point else t, value)


def _laid_out(exact: Any, own: Any) -> Any:
    """``exact`` with the strides of ``own``: a view that follows may need them."""

    def one(wide: Any, like: Any) -> Any:
        if not isinstance(wide, torch.Tensor) or wide.shape != like.shape or wide.stride() == like.stride():
            return wide
        return torch.empty_like(like, dtype=wide.dtype).copy_(wide)

    return pytree.tree_map(one, exact, own)


def _given(value: Any) -> _Value:
    """A value that comes from outside: both sides may write into it."""
    return _Value(value, _widen(pytree.tree_map_only(torch.Tensor, torch.clone, value)))


def _is_random(node: torch.fx.Node) -> bool:
    """Whether a node draws random numbers: attention only does with dropout."""
    target = node.target
    if not isinstance(target, torch._ops.OpOverload) or torch.Tag.nondeterministic_seeded not in target.tags:
        return False
    names = [argument.name for argument in target._schema.arguments]
    given = {**dict(zip(names, node.args, strict=False)), **node.kwargs}
    return "dropout_p" not in names or bool(given.get("dropout_p", 0.0))


def _attribute(graph: torch.fx.GraphModule, path: str) -> Any:
    found: Any = graph
    for name in path.split("."):
        found = getattr(found, name)
    return found
