"""Whether what the compiler returns is what eager returns."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch._dynamo.utils import same

TOLERANCE = {torch.bfloat16: 1e-3, torch.float16: 1e-3}  # of ``same``, beside three times eager's own error
NOTHING = {torch.float64: 1e-7}  # an element's error that torch.testing, too, takes for none; 1e-5 of other dtypes
STRAY = {torch.bfloat16: 6e-2, torch.float16: 1e-2, torch.float32: 1e-3, torch.float64: 1e-7}  # of one element


def difference(result: Any, eager: Any, reference: Any) -> str:
    """What is wrong with a result, in words; "" where nothing is. ``reference`` is eager's in float64, or None."""
    if not isinstance(eager, Tensor):
        same_number = result == eager or (result != result and eager != eager)
        if isinstance(eager, float) and isinstance(result, float):
            same_number = same_number or abs(result - eager) <= 1e-5 * max(abs(eager), 1.0)
        return "" if same_number else f"{result!r} where eager returns {eager!r}"
    if not isinstance(result, Tensor):
        return f"{type(result).__name__} where eager returns a tensor"
    fault = metadata_difference(result, eager)
    if fault:
        return fault
    if eager.layout is not torch.strided:
        result, eager = result.to_dense(), eager.to_dense()
        reference = None
    if eager.is_quantized:
        return number_difference(result.dequantize(), eager.dequantize(), None)
    return number_difference(result, eager, reference)


def metadata_difference(result: Tensor, eager: Tensor) -> str:
    """Size, dtype, layout and device."""
    for name in ("dtype", "shape", "layout", "device"):
        ours, theirs = getattr(result, name), getattr(eager, name)
        if ours != theirs:
            return f"{name} {ours} where eager's is {theirs}"
    return ""


def stride_difference(result: Any, eager: Any) -> str:
    """Strides, of dimensions where they matter."""
    if not isinstance(eager, Tensor) or eager.layout is not torch.strided or eager.numel() == 0:
        return ""
    pairs = zip(result.stride(), eager.stride(), eager.shape, strict=True)
    if any(ours != theirs and size > 1 for ours, theirs, size in pairs):
        return f"strides {result.stride()} where eager's are {eager.stride()} (size {tuple(eager.shape)})"
    return ""


def number_difference(result: Tensor, eager: Tensor, reference: Any) -> str:
    """The numbers: exactly where they are integers, else by ``same``, with a few holes of that closed.

    ``same`` compares root mean squares, which say nothing where one element is infinite or NaN, or where one is much
    larger than all others. So elements that are not finite are compared one by one, and no element may stray far.
    """
    result, eager = result.detach().resolve_conj().resolve_neg(), eager.detach().resolve_conj().resolve_neg()
    if eager.dtype.itemsize == 1 and eager.dtype.is_floating_point:
        result, eager = result.float(), eager.float()
    if eager.dtype.is_complex:
        wide = torch.view_as_real(reference.detach().resolve_conj()) if _fits(reference, eager, True) else None
        return number_difference(torch.view_as_real(result), torch.view_as_real(eager), wide)
    if not eager.dtype.is_floating_point:
        wrong = result != eager
        return _first_wrong(wrong, result, eager) if bool(wrong.any()) else ""
    exact = reference.detach() if _fits(reference, eager, False) else eager.double()
    finite = eager.isfinite() & result.isfinite()
    rounded = exact.to(eager.dtype)
    right = finite | (result == eager) | (eager.isnan() & result.isnan())
    right |= (result == rounded) | (rounded.isnan() & result.isnan())
    if not bool(right.all()):
        return _first_wrong(~right, result, eager)
    exact = torch.where(exact.isfinite(), exact, eager.double())
    ours, theirs, truth = result[finite], eager[finite], exact[finite]
    if not ours.numel():
        return ""
    tolerance = TOLERANCE.get(eager.dtype, 1e-4)
    if _nearest(ours, truth):
        return ""
    if not same(theirs, ours, fp64_ref=truth, tol=tolerance, equal_nan=True, log_error=lambda *_: None):
        stray = (result.double() - exact).abs() * finite
        return _worst(stray, result, eager)
    scale = truth.abs().clamp(min=float(truth.abs().pow(2).mean().sqrt().clamp(min=1e-3)))
    error, eager_error = (ours.double() - truth).abs(), (theirs.double() - truth).abs()
    far = error > STRAY[eager.dtype] * scale + 10 * eager_error
    # Where large terms cancel, the truth says nothing of rounding errors' size.
    far &= error > max(4 * float(eager_error.max()), NOTHING.get(eager.dtype, 1e-5))
    if bool(far.any()):
        wrong = torch.zeros_like(finite)
        wrong[finite] = far
        return _first_wrong(wrong, result, eager)
    return ""


def _nearest(result: Tensor, truth: Tensor) -> bool:
    """Whether every half float is the one nearest to the truth, or the next to it. ``same`` asks for more than a dtype
    has where eager happens to be exact."""
    if result.dtype not in TOLERANCE:
        return False
    rounded = truth.to(result.dtype)
    ours, theirs = result.view(torch.int16).int(), rounded.view(torch.int16).int()  # neighbours are one apart
    beside = ((ours - theirs).abs() <= 1) & ((ours < 0) == (theirs < 0))
    return bool((beside | (result == rounded)).all())


def _fits(reference: Any, eager: Tensor, is_complex: bool) -> bool:
    return (
        isinstance(reference, Tensor)
        and reference.shape == eager.shape
        and reference.dtype is (torch.complex128 if is_complex else torch.float64)
        and reference.layout is torch.strided
    )


def _first_wrong(wrong: Tensor, result: Tensor, eager: Tensor) -> str:
    at = tuple(wrong.nonzero()[0].tolist())
    return (
        f"{int(wrong.sum())} of {wrong.numel()} elements, first at {list(at)}: "
        f"{result[at].item()} where eager has {eager[at].item()}"
    )


def _worst(error: Tensor, result: Tensor, eager: Tensor) -> str:
    flat = int(error.nan_to_num().argmax())
    ours, theirs = result.flatten()[flat].item(), eager.flatten()[flat].item()
    return f"not the same as float64 ({error.numel()} elements); worst: {ours} where eager has {theirs}"


def alias_difference(
    results: list[Any], inputs: list[Tensor], eager_results: list[Any], eager_inputs: list[Tensor]
) -> str:
    """Which outputs share memory with which inputs."""
    ours, theirs = _aliases(results, inputs), _aliases(eager_results, eager_inputs)
    if ours == theirs:
        return ""
    return f"outputs share memory with inputs as {sorted(ours)} (output, input) where eager's do as {sorted(theirs)}"


def _aliases(results: list[Any], inputs: list[Tensor]) -> set[tuple[int, int]]:
    def storage(x: Any) -> int | None:
        if not isinstance(x, Tensor) or x.layout is not torch.strided or x.numel() == 0:
            return None
        return x.untyped_storage()._cdata

    return {
        (i, j)
        for i, a in enumerate(results)
        for j, b in enumerate(inputs)
        if storage(a) is not None and storage(a) == storage(b)
    }


def statistics_difference(result: list[Tensor], eager: list[Tensor]) -> str:
    """Random results of several runs: do they come from one distribution, as far as a location tells?

    The numbers are first squeezed into (-1, 1) about eager's median, since some distributions have no mean.
    """
    if eager[0].numel() == 0:
        return ""
    ours, theirs = (torch.stack([_real(r).flatten() for r in runs]) for runs in (result, eager))
    if not bool(theirs.isfinite().all()):
        return ""
    if not bool(ours.isfinite().all()):
        return "not finite where eager's is"
    middle = theirs.median()
    spread = (theirs - middle).abs().mean().clamp(min=1e-12)
    # one run's elements may be drawn together (a dropped channel), so the means of runs are what is compared
    a, b = (torch.atan((x - middle) / spread).mean(1) for x in (ours, theirs))
    deviation = float(((a.var() + b.var()) / len(result)).sqrt())
    if abs(float(a.mean() - b.mean())) > 6 * deviation + 1e-3:
        return f"about {float(ours.mean())} over {len(result)} runs where eager draws about {float(theirs.mean())}"
    return ""


def _real(tensor: Tensor) -> Tensor:
    tensor = tensor.detach().resolve_conj()
    return (torch.view_as_real(tensor) if tensor.dtype.is_complex else tensor).double()
