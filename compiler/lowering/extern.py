"""Which ops run through a library, and why."""

from __future__ import annotations

import operator
from typing import Any

import torch
from torch.utils import _pytree as pytree

from compiler import collectives
from compiler.lowering.registry import rule_for
from compiler.lowering.symbols import made_of_sizes
from compiler.passes.own_kernels import own_kernel_of
from compiler.report import ExternReason

SUPPORTED_DTYPES = frozenset(
    {
        torch.float16,
        torch.bfloat16,
        torch.float32,
        torch.float64,
        torch.int8,
        torch.int16,
        torch.int32,
        torch.int64,
        torch.uint8,
        torch.bool,
        torch.float8_e4m3fn,
        torch.float8_e5m2,
    }
)

_PRODUCT, _CONVOLUTION = "product", "convolution"
# ops with a library of their own on every GPU: what they compute, and the kind of library
_LIBRARY_OPS = {
    "mm": ("a matrix product", _PRODUCT),
    "addmm": ("a matrix product with bias", _PRODUCT),
    "bmm": ("a batch of matrix products", _PRODUCT),
    "baddbmm": ("a batch of matrix products", _PRODUCT),
    "convolution": ("a convolution", _CONVOLUTION),
    "convolution_backward": ("a convolution's gradients", _CONVOLUTION),
    # the library of convolutions has them, too; models for a GPU that is not here are traced on the CPU
    "mkldnn_rnn_layer": ("a layer of a recurrent network", _CONVOLUTION),
    "_cudnn_rnn": ("a recurrent network", _CONVOLUTION),
    "miopen_rnn": ("a recurrent network", _CONVOLUTION),
}
# by the backend of a target; on a CPU torch chooses among several, and none is named
_LIBRARIES = {
    "cuda": {_PRODUCT: "cuBLAS", _CONVOLUTION: "cuDNN"},
    "hip": {_PRODUCT: "hipBLAS", _CONVOLUTION: "MIOpen"},
}
_ATTENTION = {"hip": "AOTriton"}  # where torch brings no kernels of its own


def library_reason(node: torch.fx.Node) -> ExternReason:
    """Why an op with no rule is a library call."""
    packet = getattr(node.target, "overloadpacket", None)
    name = packet.__name__ if packet is not None else str(node.target)
    if name in _LIBRARY_OPS or "scaled_dot_product" in name or "cudnn" in name:
        return ExternReason.LIBRARY_IS_FASTER
    return ExternReason.NO_LOWERING


def library_detail(node: torch.fx.Node, backend: str) -> str:
    """What a library does for the op, in words, and which of the target's: those of its ``backend``; or ""."""
    packet = getattr(node.target, "overloadpacket", None)
    name = packet.__name__ if packet is not None else ""
    if "scaled_dot_product" in name:
        return f"attention: {'cuDNN' if 'cudnn' in name else _ATTENTION.get(backend, 'a fused kernel of torch itself')}"
    what, kind = _LIBRARY_OPS.get(name, ("", ""))
    library = _LIBRARIES.get(backend, {}).get(kind, "")
    words = f"{what}: {library}" if library else what
    # What compiler/passes/padding.py and compiler/passes/biases.py chose, and why.
    return "; ".join(filter(None, (words, node.meta.get("padding", ""), node.meta.get("bias", ""))))


def static_reason(node: torch.fx.Node, on_gpu: bool, backend: str = "") -> tuple[ExternReason, str] | None:
    """What about the node itself (not its op's rule) forbids generated code; None where nothing does.

    Args:
        on_gpu: the region's kernels run on a GPU, so that what lies on the CPU is not theirs.
        backend: the target's, whose libraries the reason names; "" where nobody reads it.
    """
    if chooses_on_cpu(node.target):
        return ExternReason.HOST_SYNC, "control flow: the CPU reads a condition at every call and chooses what runs"
    if getattr(node.target, "__name__", "") == "graphsafe_run_with_rng_state":
        return ExternReason.RANDOM, f"{node.args[0]} draws random numbers, and the backward the same once more"
    if (kernel := own_kernel_of(node)) is not None:
        return ExternReason.NO_LOWERING, f"the model's own Triton kernel {kernel}".rstrip()
    if node.target is torch.ops.higher_order.invoke_subgraph:
        return ExternReason.NO_LOWERING, "a graph of its own (nested_compile_region), which this one calls"
    if not isinstance(node.target, torch._ops.OpOverload):
        return ExternReason.NO_LOWERING, f"{getattr(node.target, '__name__', node.target)} is no ATen op"
    if node.target is torch.ops.aten._local_scalar_dense.default:
        return ExternReason.HOST_SYNC, "reads a value back to the CPU"
    if collectives.is_collective(node.target):
        return ExternReason.COLLECTIVE, collectives.detail_of(node.target)
    detail = library_detail(node, backend)
    if detail:
        return ExternReason.LIBRARY_IS_FASTER, detail
    if mutated_arguments(node) and not copies_into_input(node):
        return ExternReason.MUTATION, f"{node.target} writes into its argument"
    if torch.Tag.nondeterministic_seeded in node.target.tags and node.target.overloadpacket.__name__ != "empty":
        return ExternReason.RANDOM, f"{node.target} draws random numbers"
    values = [n.meta.get("val") for n in node.all_input_nodes] + [node.meta.get("val")]
    tensors = [t for t in pytree.tree_leaves(values) if isinstance(t, torch.Tensor)]
    if node.meta.get("unbacked_bindings"):
        return ExternReason.DATA_DEPENDENT_SHAPE, f"a size of {node.name} is known only at run time"
    for tensor in tensors:
        if tensor.layout is not torch.strided or tensor.is_quantized:
            return ExternReason.UNSUPPORTED_DTYPE, f"the layout {tensor.layout} is not strided"
        if tensor.is_neg():  # the imaginary part of a conjugate; torch reads it by a copy, which knows
            return ExternReason.NO_LOWERING, "a tensor stands for the negatives of what lies in its memory"
        if tensor.dtype not in SUPPORTED_DTYPES:
            return ExternReason.UNSUPPORTED_DTYPE, f"{str(tensor.dtype).removeprefix('torch.')} has no generated code"
    if any(_is_unknown(v) for v in pytree.tree_leaves(values)):
        return ExternReason.DATA_DEPENDENT_SHAPE, f"{node.name} uses a number known only at run time"
    if not tensors:
        return ExternReason.NO_LOWERING, f"{node.target} makes no tensor"
    devices = {tensor.device.type for tensor in tensors}
    if len(devices) > 1:
        return ExternReason.CPU_TENSOR, f"{node.target} takes tensors of several devices"
    if on_gpu and "cpu" in devices:
        return ExternReason.CPU_TENSOR, f"{node.target} works on the CPU"
    if any(isinstance(s, int) and s == 0 for tensor in tensors for s in tensor.shape):
        return ExternReason.TOO_SMALL_TO_HELP, f"{node.name} has no elements"
    return None


# by name, for torch makes each when its module is imported, and not every version has them all
_CONTROL_FLOW = frozenset({"cond", "while_loop", "while_loop_stack_output", "switch"})


def chooses_on_cpu(target: Any) -> bool:
    """Whether the call runs one of several graphs, or one of them again, as a condition tells that the CPU reads."""
    return isinstance(target, torch._ops.HigherOrderOperator) and target.name() in _CONTROL_FLOW


def _is_unknown(value: Any) -> bool:
    """Whether a value is a number that no kernel can compute: one read from a tensor, or a truth."""
    return isinstance(value, torch.SymBool) or (isinstance(value, torch.SymFloat) and not made_of_sizes(value))


_SIZE_OPS = frozenset({"sym_size", "sym_stride", "sym_numel", "sym_storage_offset"})


def is_size_arithmetic(node: torch.fx.Node) -> bool:
    """Whether the node computes with sizes alone, which the wrapper does wherever it needs the result."""
    if isinstance(node.target, torch._ops.OpOverload):
        return node.target.overloadpacket.__name__ in _SIZE_OPS
    return True


def certainly_extern(node: torch.fx.Node, on_gpu: bool) -> bool:
    """Whether the node is a library call whatever its arguments; its inputs then have to lie in memory."""
    if node.op != "call_function" or node.target is operator.getitem:
        return False
    return static_reason(node, on_gpu) is not None or rule_for(node.target) is None


def mutated_arguments(node: torch.fx.Node) -> list[Any]:
    """The arguments that the op's schema says it writes into."""
    schema = getattr(node.target, "_schema", None)
    if schema is None or not schema.is_mutable:
        return []
    mutated = []
    for position, argument in enumerate(schema.arguments):
        if argument.alias_info is not None and argument.alias_info.is_write:
            if argument.name in node.kwargs:
                mutated.append(node.kwargs[argument.name])
            elif position < len(node.args):
                mutated.append(node.args[position])
    return [m for m in mutated if m is not None]


def copies_into_input(node: torch.fx.Node) -> bool:
    """Whether the node copies a tensor into one of the graph's inputs that nothing but the caller reads afterwards.

    The input has to cover its memory without gaps or overlaps, so that it can be written element for element.
    """
    if node.target is not torch.ops.aten.copy_.default or any(user.op != "output" for user in node.users):
        return False
    target, source = node.args[0], node.args[1]
    if not (isinstance(target, torch.fx.Node) and isinstance(source, torch.fx.Node) and target.op == "placeholder"):
        return False
    into, given = target.meta.get("val"), source.meta.get("val")
    if not (isinstance(into, torch.Tensor) and isinstance(given, torch.Tensor)) or into.shape != given.shape:
        return False
    static = all(isinstance(s, int) for s in (*into.shape, *into.stride()))
    if not static or not _is_dense(into):
        return False
    others = [reader for reader in readers(target) if reader is not node and reader.op != "output"]
    return not any(node < reader or _keeps_a_view(reader) for reader in others)


def readers(node: torch.fx.Node) -> list[torch.fx.Node]:
    """The users of a value and of its views."""
    found = []
    for user in node.users:
        found.append(user)
        if user.op == "call_function" and _returns_alias(user):
            found += readers(user)
    return found


def _is_dense(tensor: torch.Tensor) -> bool:
    expected = 1
    for stride, size in sorted(zip(tensor.stride(), tensor.shape, strict=True)):
        if size != 1 and stride != expected:
            return False
        expected *= size
    return True


def reaches_memory(target: Any) -> bool:
    """Whether the op takes elements by their place in memory rather than in its argument."""
    return str(target).startswith("aten.as_strided")


def _keeps_a_view(node: torch.fx.Node) -> bool:
    """Whether the call may take or return memory of its argument without our views knowing of it."""
    if node.op != "call_function":
        return False
    return reaches_memory(node.target) or (rule_for(node.target) is None and _returns_alias(node))


def _returns_alias(node: torch.fx.Node) -> bool:
    schema = getattr(node.target, "_schema", None)
    return schema is None or any(r.alias_info is not None for r in schema.returns)


def has_effects(node: torch.fx.Node) -> bool:
    """Whether the call does something that its results do not show (a check, a print, a custom op with effects, a
    message to another process)."""
    schema = getattr(node.target, "_schema", None)
    return schema is None or not schema.returns or collectives.is_collective(node.target)
