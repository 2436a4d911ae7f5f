"""The numbers of every group against float64.

Each region runs with recording: what every kernel reads and writes is kept. The group's own FX nodes are then run in
float64 on the same inputs, and in their own dtype by eager. A group is right when its error is within a few
roundings of its dtype, or no worse than twice eager's.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import sympy
import torch
from torch.utils import _pytree as pytree

from compiler.ir import Buffer
from compiler.kernel_library import KernelLibrary
from compiler.options import parse_options
from compiler.planning.schedule import Launch
from compiler.region import CompiledRegion
from compiler.report import KernelCheck
from compiler.runtime.executable import build, gpu_launcher, interpreted_launcher, interpreting
from compiler.sizes import Size, hint

TOLERANCE = {torch.float64: 1e-12, torch.float32: 2e-6, torch.float16: 1e-3, torch.bfloat16: 8e-3}
EAGER_FACTOR = 2.0


def verify_model(
    model: Any,
    inputs: Sequence[Any],
    *,
    source: str,
    interpret: bool,
    training: bool = False,
    dynamic: bool = False,
    options: Mapping[str, str] | None = None,
) -> list[KernelCheck]:
    """Check every launch of every region on the example inputs. ``options`` are the compiler's, by name.

    ``dynamic``: the regions are compiled for symbolic sizes, and checked at those of the inputs.

    With ``interpret`` the kernels run on the CPU through Triton's interpreter, which TRITON_INTERPRET=1 must have
    switched on before Triton was imported; otherwise on this machine's GPU.

    Raises:
        RuntimeError: neither the interpreter nor a GPU is there to run kernels.
        CompileError: a stage failed, or Dynamo captured nothing.
    """
    from compiler.backend import Session, default_target, fusescope
    from compiler.dynamo.log import watch_dynamo
    from compiler.pipeline import nothing_captured, run_once, to_gpu
    from compiler.retarget.compositions import composed_as_on_gpu

    if interpret and not interpreting():
        raise RuntimeError("TRITON_INTERPRET=1 must be set before Triton is imported")
    if not interpret and not torch.cuda.is_available():
        raise RuntimeError("there is no GPU to run the kernels on; use --interpret")
    torch._dynamo.reset()
    args = tuple(inputs)
    if not interpret:
        model, args = to_gpu(model, args)
    target = default_target()
    library = KernelLibrary(target, binaries=not interpret, texts=False, options=parse_options(options or {}))
    session = Session(target, library)
    recorders: list[_Recorder] = []

    def watch(region: CompiledRegion) -> Callable[[list[Any]], Any]:
        recorder = _Recorder(region, library)
        recorders.append(recorder)
        return recorder

    settings = {"session": session, "executable": watch}
    compiled = torch.compile(model, backend=lambda gm, x: fusescope(gm, x, options=settings), dynamic=dynamic or None)
    with watch_dynamo() as dynamo, composed_as_on_gpu(traced_on_cpu=interpret):
        run_once(compiled, args, training)
    if not session.regions:
        raise nothing_captured(dynamo.graph_breaks, "check")
    return [check for recorder in recorders for check in recorder.checks]


class _Recorder:
    """Runs a region and checks each launch as it happens."""

    def __init__(self, region: CompiledRegion, library: KernelLibrary) -> None:
        self.region = region
        self.checks: list[KernelCheck] = []
        self.kernels = {k.name: k for k in library.by_source.values()}
        self.launches = [s for s in region.steps if isinstance(s, Launch)]
        self.nodes = {node.name: node for node in region.graph.graph.nodes}
        self.in_place = region.plan.in_place
        self.overwritten = {name for launch in self.launches for name in launch.over.values()}
        self.overwritten.update(self.in_place.values())
        self.unfinished = _unfinished(self.launches)
        self.values: dict[str, torch.Tensor] = {}
        self.sizes: dict[str, int] = {}
        self._next = 0

    def __call__(self, args: list[Any]) -> Any:
        self.values = {}
        self.sizes = sizes_of(self.region.graph, args)
        self._next = 0
        for buffer, value in zip(self.region.program.inputs, args, strict=True):
            if buffer is not None:
                self.values[buffer.name] = value.clone() if buffer.name in self.overwritten else value
        launchers = {name: self._watched(name) for name in set(self.region.kernels.values())}
        return build(self.region.wrapper, self.region.wrapper_names, launchers)(list(args))

    def _watched(self, name: str) -> Callable[..., None]:
        kernel = self.kernels[name]
        if interpreting():
            run = interpreted_launcher(kernel)
        else:
            run = gpu_launcher(kernel, torch.cuda.current_device())

        def launch(*given: Any, **keywords: Any) -> None:
            step = self.launches[self._next]
            self._next += 1
            stored = {b.name for b in step.stored}
            pairs = list(zip(step.kernel.arguments, given, strict=False))  # symbolic sizes follow the tensors
            for buffer, tensor in pairs:
                if buffer.name in stored and buffer.name not in {*step.into, *step.over, *self.in_place}:
                    _poison(tensor)
            taken = {*step.over.values(), *(self.in_place.get(name, "") for name in stored)}
            read = {b.name: t.clone() if b.name in taken else t for b, t in pairs if b.name not in stored}
            run(*given, **keywords)
            written = {b.name: t for b, t in pairs if b.name in stored}
            self.checks.append(self._check(step, name, read, written))

        return launch

    def _check(
        self, step: Launch, kernel: str, read: dict[str, torch.Tensor], written: dict[str, torch.Tensor]
    ) -> KernelCheck:
        worst = KernelCheck(self.region.name, step.name, kernel, 0.0, 0.0, 0.0, True)
        known = {_key(b): read[b.name] for b in step.kernel.arguments if b.name in read and not self._internal(b)}
        self.values.update({name: tensor.clone() for name, tensor in known.items() if name not in self.values})
        partial = {b.name for b in step.stored if b.fx_node in known or self._internal(b)} | self.unfinished
        for buffer in step.stored:
            if buffer.name in partial:
                continue  # a partial result that no FX node stands for; the group that finishes it is checked
            node = self.nodes[buffer.fx_node]
            reads_partial = any(self._internal(b) for b in step.kernel.arguments if b.name in read)
            reads_partial |= step.into.get(buffer.name) in self.unfinished
            given = (self.values if reads_partial else known) | self.sizes
            out = written[buffer.name]
            references = _candidates(evaluate(node, given, double=True), out)
            eagers = _candidates(evaluate(node, given, double=False), out)
            if not references:
                raise KeyError(f"{buffer.fx_node} has no result of size {tuple(out.shape)}")
            tolerance = TOLERANCE.get(out.dtype, 0.0)
            # an op with several results of one size: the buffer holds the one that it is closest to
            error, which = min((relative_error(out, ref), i) for i, ref in enumerate(references))
            eager_error = relative_error(eagers[which], references[which])
            ok = error <= max(tolerance, EAGER_FACTOR * eager_error)
            if not ok or error >= worst.error:
                detail = "" if ok else f"{buffer.fx_node} is off"
                worst = KernelCheck(
                    self.region.name, step.name, kernel, error, eager_error, tolerance, ok and worst.ok, detail
                )
        for buffer in step.stored:
            if buffer.name not in partial and isinstance(self.nodes[buffer.fx_node].meta.get("val"), torch.Tensor):
                self.values[buffer.fx_node] = written[buffer.name].clone()
        return worst

    def _internal(self, buffer: Buffer) -> bool:
        """Whether the buffer holds part of an FX node's work (a partial sum, the mean inside a variance)."""
        value = self.nodes[buffer.fx_node].meta.get("val")
        if buffer.kind == "computed" and not isinstance(value, torch.Tensor):
            return True
        return buffer.kind == "computed" and not _same_shape(buffer.size, value.shape)


def _unfinished(launches: Sequence[Launch]) -> set[str]:
    """The buffers that hold the first parts of an FX node's result, whose other parts later launches add."""
    made_for = {buffer.name: buffer.fx_node for launch in launches for buffer in launch.stored}
    goes_on = [pair for launch in launches for pair in launch.into.items()]
    return {taken for made, taken in goes_on if made_for.get(taken) == made_for[made]}


def sizes_of(graph: torch.fx.GraphModule, args: Sequence[Any]) -> dict[str, int]:
    """The values of the FX nodes that are symbolic sizes, for these inputs; without those that only running tells."""
    placeholders = [node for node in graph.graph.nodes if node.op == "placeholder"]
    symbols: dict[Any, sympy.Integer] = {}
    for node, arg in zip(placeholders, args, strict=True):
        value = node.meta.get("val")
        pairs = zip(value.shape, arg.shape, strict=True) if isinstance(arg, torch.Tensor) else ((value, arg),)
        for symbolic, own in pairs:
            if isinstance(symbolic, torch.SymInt):
                symbols[symbolic.node.expr] = sympy.Integer(own)
    found: dict[str, int] = {}
    for node in graph.graph.nodes:
        if isinstance(value := node.meta.get("val"), torch.SymInt):
            number = value.node.expr.xreplace(symbols)
            if number.is_number:
                found[node.name] = int(number)
    return found


def _same_shape(size: Sequence[Size], shape: Sequence[Any]) -> bool:
    """Whether a buffer's sizes are those of a node's value, as far as the example tells."""

    def same(own: Size, other: Any) -> bool:
        if not isinstance(other, torch.SymInt):
            return bool(own == other)
        return other.node.hint is None or hint(own) == other.node.hint

    return len(size) == len(shape) and all(map(same, size, shape))


def _key(buffer: Buffer) -> str:
    """What ``evaluate`` looks a buffer up by: its FX node, or for one of several results of a call the buffer."""
    return buffer.name if buffer.kind == "extern" else buffer.fx_node


def _poison(tensor: torch.Tensor) -> None:
    """Fill with what a kernel that forgets an element would leave visible."""
    if tensor.dtype.is_floating_point:
        tensor.fill_(float("nan"))
    elif tensor.dtype is torch.bool:
        tensor.fill_(True)
    else:
        tensor.fill_(torch.iinfo(tensor.dtype).max)


def _candidates(value: Any, like: torch.Tensor) -> list[torch.Tensor]:
    """The results that have the buffer's size (broadcast dimensions of a kept reduction aside)."""
    tensors = [item for item in pytree.tree_leaves(value) if isinstance(item, torch.Tensor)]
    fitting = [t for t in tensors if t.dtype.is_floating_point == like.dtype.is_floating_point]
    return [t.reshape(like.shape) for t in fitting if t.numel() == like.numel()]


def evaluate(node: torch.fx.Node, known: Mapping[str, torch.Tensor | int], *, double: bool) -> Any:
    """Run the FX nodes below ``node`` down to those whose values are ``known``, in float64 where ``double``."""
    memo: dict[torch.fx.Node, Any] = {}

    def widen(value: Any) -> Any:
        if double and isinstance(value, torch.Tensor) and value.dtype.is_floating_point:
            return value.to(torch.float64)
        return value

    stack = [node]
    while stack:
        current = stack[-1]
        if current in memo:
            stack.pop()
            continue
        name = _recorded_name(current, known)
        if current is not node and name is not None:
            memo[current] = widen(known[name])
            stack.pop()
            continue
        missing = [n for n in current.all_input_nodes if n not in memo]
        if missing:
            stack.extend(missing)
            continue
        args, kwargs = pytree.tree_map_only(torch.fx.Node, lambda n: memo[n], (current.args, current.kwargs))
        if double:
            args, kwargs = pytree.tree_map_only(
                torch.dtype, lambda d: torch.float64 if d.is_floating_point else d, (args, kwargs)
            )
        if not callable(current.target):
            raise KeyError(f"{current.name} was not recorded")
        memo[current] = widen(current.target(*args, **kwargs))
        stack.pop()
    return memo[node]


def _recorded_name(node: torch.fx.Node, known: Mapping[str, Any]) -> str | None:
    names = [node.name, f"ext_{node.name}"]
    if node.target is operator.getitem and isinstance(node.args[0], torch.fx.Node):
        names.append(f"ext_{node.args[0].name}_{node.args[1]}")
    return next((name for name in names if name in known), None)


def relative_error(value: torch.Tensor, reference: torch.Tensor) -> float:
    """||value - reference|| / ||reference||; positions where both are NaN or the same infinity agree."""
    a, b = value.to(torch.float64), reference.to(torch.float64)
    same = (a == b) | (torch.isnan(a) & torch.isnan(b))
    difference = torch.where(same, torch.zeros_like(a), a - b)
    scale = torch.where(torch.isfinite(b), b, torch.zeros_like(b)).norm()
    return float(difference.norm() / scale) if scale > 0 else float(difference.norm())
