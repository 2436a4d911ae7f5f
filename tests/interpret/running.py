"""A random program run eagerly and by its generated kernels."""

from __future__ import annotations

from tests.interpret.checking import generated
from tests.interpret.programs import Program


def run_program(program: Program) -> str:
    """What differs from eager, in words; "" where nothing does. Strides count too."""
    function = program.function()
    expected = function(*program.inputs)
    results, _ = generated(function, *program.inputs)
    for name, result, eager in zip(program.outputs, results, expected, strict=True):
        if result.shape != eager.shape or result.dtype is not eager.dtype:
            return f"{name} is {result.dtype}{list(result.shape)}, not {eager.dtype}{list(eager.shape)}"
        if eager.dtype.is_floating_point:
            error = (result.double() - eager.double()).abs() / eager.double().abs().clamp(min=1.0)
            wrong = ~(error <= program.tolerance())
        else:
            wrong = result != eager
        if bool(wrong.any()):
            at = tuple(wrong.nonzero()[0].tolist())
            return f"{name}: {int(wrong.sum())} of {wrong.numel()} differ, first at {at}: {result[at]} for {eager[at]}"
    return ""
