"""Whether two results are equal: the rule torch judges its own compilers by, with a float64 run as the referee."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from typing import Any

import msgspec
import torch
from torch import Tensor, nn
from torch.utils import _pytree as pytree

# Where both results are this close they count as equal without asking float64.
_TOLERANCE = {torch.float16: 1e-3, torch.bfloat16: 1e-3}
_DEFAULT_TOLERANCE = 1e-4


class Comparison(msgspec.Struct, frozen=True):
    """``error`` and ``baseline_error`` are ||x - reference|| / ||reference||, the largest over all outputs."""

    equal: bool
    error: float
    baseline_error: float
    detail: str = ""


def compare_outputs(baseline: Sequence[Any], result: Sequence[Any], reference: Sequence[Any]) -> Comparison:
    """Compare ``result`` with ``baseline``, both against ``reference`` in float64.

    A result passes where it is as close to float64 as the baseline is, within the factor of
    ``torch._dynamo.utils.same`` (2, or 3 for half precision and small tensors), or close to the baseline itself.
    """
    from torch._dynamo.utils import same

    if not len(baseline) == len(result) == len(reference):
        return Comparison(False, float("inf"), 0.0, f"{len(result)} outputs where eager returns {len(baseline)}.")
    error = baseline_error = 0.0
    faults: list[str] = []
    for index, (expected, got, exact) in enumerate(zip(baseline, result, reference, strict=True)):
        if isinstance(expected, Tensor) and isinstance(got, Tensor) and expected.shape != got.shape:
            return Comparison(False, float("inf"), 0.0, f"Output {index} has sizes {list(got.shape)}.")
        messages: list[str] = []
        tolerance = _TOLERANCE.get(getattr(expected, "dtype", None), _DEFAULT_TOLERANCE)  # type: ignore[arg-type]
        log = lambda text, *values: messages.append(text % values)  # noqa: B023, E731
        if not same(expected, got, exact, tol=tolerance, equal_nan=True, log_error=log):
            faults.append(f"Output {index}: {'; '.join(messages) or 'values differ'}.")
        if isinstance(exact, Tensor) and exact.is_floating_point():
            error = max(error, relative_error(got, exact))
            baseline_error = max(baseline_error, relative_error(expected, exact))
    return Comparison(not faults, error, baseline_error, " ".join(faults))


def relative_error(value: Tensor, reference: Tensor) -> float:
    """||value - reference|| / ||reference|| in float64; the absolute norm where the reference is zero."""
    exact = reference.double()
    norm = float(torch.linalg.vector_norm(exact))
    difference = float(torch.linalg.vector_norm(value.double() - exact))
    return difference / norm if norm else difference


def in_float64(model: Callable[..., Any], inputs: Sequence[Any]) -> tuple[Callable[..., Any], tuple[Any, ...]]:
    """A copy of the model and its inputs with every floating-point tensor in float64. The model is left as it is."""
    exact = copy.deepcopy(model).double() if isinstance(model, nn.Module) else model
    cast = lambda value: value.double() if isinstance(value, Tensor) and value.is_floating_point() else value  # noqa: E731
    return exact, tuple(pytree.tree_map(cast, tuple(inputs)))
