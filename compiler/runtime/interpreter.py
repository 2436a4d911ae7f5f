"""Generated kernels on the CPU, through Triton's interpreter.

The interpreter knows no libdevice (it is linked in as bitcode); its functions are supplied here by torch, elementwise
and in the operand's own dtype.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch


def _fmod(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
    """C's fmod, which is exact. torch's own on a CPU gives NaN where a / b overflows."""
    return torch.from_numpy(np.fmod(a.numpy(), b.numpy()))


_TORCH_NAMES = {
    "acos": torch.acos,
    "acosh": torch.acosh,
    "asin": torch.asin,
    "asinh": torch.asinh,
    "atan": torch.atan,
    "atan2": torch.atan2,
    "atanh": torch.atanh,
    "ceil": torch.ceil,
    "copysign": torch.copysign,
    "cos": torch.cos,
    "cosh": torch.cosh,
    "erfc": torch.special.erfc,
    "erfinv": torch.special.erfinv,
    "exp2": torch.exp2,
    "expm1": torch.expm1,
    "floor": torch.floor,
    "fmod": _fmod,
    "hypot": torch.hypot,
    "lgamma": torch.lgamma,
    "log10": torch.log10,
    "log1p": torch.log1p,
    "log2": torch.log2,
    "nearbyint": torch.round,
    "nextafter": torch.nextafter,
    "pow": torch.pow,
    "rsqrt": torch.rsqrt,
    "sin": torch.sin,
    "sinh": torch.sinh,
    "sqrt": torch.sqrt,
    "tan": torch.tan,
    "tanh": torch.tanh,
    "trunc": torch.trunc,
}


class Libdevice:
    """Stands for ``triton.language.extra.libdevice`` in an interpreted kernel."""

    def __getattr__(self, name: str) -> Callable[..., Any]:
        if name == "signbit":
            return lambda x: _apply(lambda a: torch.signbit(a).to(torch.int32), x)
        if name not in _TORCH_NAMES:
            raise AttributeError(f"the interpreter has no libdevice.{name}")
        function = _TORCH_NAMES[name]
        return lambda *operands: _apply(function, *operands)


def _apply(function: Callable[..., torch.Tensor], *operands: Any) -> Any:
    """Apply a torch function to interpreter tensors (or numbers), broadcasting."""
    import triton.language as tl
    from triton.runtime.interpreter import TensorHandle

    model = next(x for x in operands if isinstance(x, tl.tensor))
    arrays = [x.handle.data if isinstance(x, tl.tensor) else np.asarray(x, model.handle.data.dtype) for x in operands]
    result = function(*(torch.from_numpy(np.ascontiguousarray(a)) for a in arrays)).numpy()
    scalar = model.type.scalar if result.dtype == model.handle.data.dtype else tl.int32  # signbit's
    blocks = any(isinstance(x, tl.tensor) and x.type.is_block() for x in operands)  # scalars are arrays of one, too
    kind = tl.block_type(scalar, list(result.shape)) if blocks else scalar
    return tl.tensor(TensorHandle(result, scalar), kind)


def tree_reduce(reduce: Any, operands: Sequence[Any]) -> list[Any]:
    """Reduce along the axis by halves, with the kernel's own combine function on whole arrays.

    Stands for the interpreter's ``ReduceOps.generic_reduce``, which calls that function once per element. Block
    lengths are powers of two, as Triton demands.
    """
    import triton.language as tl

    axis = reduce.axis
    values = [(x.handle.data, x.dtype) for x in operands]
    while values[0][0].shape[axis] > 1:
        low, high = zip(*(np.split(data, 2, axis) for data, _ in values), strict=True)
        kinds = [kind for _, kind in values]
        halves = [reduce.to_tensor(a, kind) for half in (low, high) for a, kind in zip(half, kinds, strict=True)]
        combined = reduce.combine_fn.fn(*halves)
        combined = combined if isinstance(combined, tuple | tl.tuple) else (combined,)
        values = [(c.handle.data, kind) for c, kind in zip(combined, kinds, strict=True)]
    results = [data if reduce.keep_dims else data.squeeze(axis) for data, _ in values]
    return [reduce.to_tensor(data, kind) for data, (_, kind) in zip(results, values, strict=True)]


def doubling_scan(scan: Any, operands: Sequence[Any]) -> list[Any]:
    """Scan along the axis in steps of 1, 2, 4, … elements, with the kernel's own combine function on whole arrays.

    Stands for the interpreter's ``ScanOps.generic_scan``, which calls that function once per element.
    """
    import triton.language as tl

    kinds = [x.dtype for x in operands]
    values = [np.moveaxis(x.handle.data, scan.axis, 0).copy() for x in operands]
    step = 1
    while step < values[0].shape[0]:
        sides = [np.roll(v, step, 0) for v in values] + values  # blocks keep their length; the first are left alone
        tensors = [scan.to_tensor(side, kind) for side, kind in zip(sides, [*kinds, *kinds], strict=True)]
        combined = scan.combine_fn.fn(*tensors)
        combined = combined if isinstance(combined, tuple | tl.tuple) else (combined,)
        for value, result in zip(values, combined, strict=True):
            value[step:] = result.handle.data[step:]
        step *= 2
    back = (np.ascontiguousarray(np.moveaxis(v, 0, scan.axis)) for v in values)
    return [scan.to_tensor(data, kind) for data, kind in zip(back, kinds, strict=True)]


def splat(builder: Any, kind: Any, scalar: Any) -> Any:
    """A scalar as a block. Stands for the interpreter's own, which makes floats of the outcome of a comparison."""
    from triton.runtime.interpreter import TensorHandle

    value = scalar.data.reshape(-1)[0]
    return TensorHandle(np.full(kind.shape, value, dtype=scalar.data.dtype), scalar.dtype.scalar)


def assertion(builder: Any, condition: Any, message: str) -> None:
    """A kernel's check of a position, as eager's: on a GPU it stops the program."""
    if not condition.data.all():
        raise IndexError(message)


def atomic(original: Callable[..., Any]) -> Callable[..., Any]:
    """The interpreter's atomic operation on operands whose elements lie one after the other: broadcast ones do not,
    and it reads past them."""
    from triton.runtime.interpreter import TensorHandle

    def packed(operand: Any) -> Any:
        return TensorHandle(np.ascontiguousarray(operand.data), operand.dtype)

    def apply(builder: Any, kind: Any, pointer: Any, value: Any, mask: Any, order: Any, scope: Any) -> Any:
        return original(builder, kind, packed(pointer), packed(value), packed(mask), order, scope)

    return apply


def convert_float(data: np.ndarray[Any, Any], source: Any, target: Any, rounding: Any) -> np.ndarray[Any, Any]:
    """Between float32 and bfloat16 (held as bits), to the nearest even. The interpreter's own cuts digits off."""
    if target.is_bf16():
        return torch.from_numpy(np.ascontiguousarray(data)).to(torch.bfloat16).view(torch.uint16).numpy()
    bits = torch.from_numpy(np.ascontiguousarray(data)).view(torch.bfloat16)
    return bits.to(torch.float32).numpy()


def whole_number(scalar: Any) -> int:
    """The interpreter's scalars are arrays of one element. Triton 3.6 asks such an array itself where Python wants a
    number, as the end of a loop, which NumPy refuses from 2.4 on."""
    return int(scalar.handle.data.item())


def counting(original: Callable[..., None]) -> Callable[..., None]:
    """The interpreter's patch of Triton's tensors, with ``whole_number`` in it."""

    def patch_tensor(tensor: Any, scope: Any) -> None:
        original(tensor, scope)
        scope.set_attr(tensor, "__index__", whole_number)

    return patch_tensor


def interpretable(function: Any) -> Any:
    """``function`` (defined while TRITON_INTERPRET=1) with what the interpreter lacks or does slowly or wrongly."""
    from triton.runtime import interpreter

    interpreter._convert_float = convert_float
    interpreter.InterpreterBuilder.create_splat = splat
    interpreter.InterpreterBuilder.create_assert = assertion
    if interpreter.InterpreterBuilder.create_atomic_rmw.__name__ != "apply":
        interpreter.InterpreterBuilder.create_atomic_rmw = atomic(interpreter.InterpreterBuilder.create_atomic_rmw)
    if interpreter._patch_lang_tensor.__name__ != "patch_tensor":
        interpreter._patch_lang_tensor = counting(interpreter._patch_lang_tensor)
    interpreter.interpreter_builder.options = interpreter.InterpreterOptions(debug=True, sanitize_overflow=False)
    interpreter.ReduceOps.generic_reduce = tree_reduce
    interpreter.ScanOps.generic_scan = doubling_scan
    namespace = function.fn.__globals__
    if "libdevice" in namespace:
        namespace["libdevice"] = Libdevice()
    return function
