"""An LSTM traced on the CPU for a GPU: torch would take oneDNN's layer there, an op that no GPU has."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext

from compiler.inductor.patching import replaced


def lstm_as_on_gpu(traced_on_cpu: bool) -> AbstractContextManager[None]:
    """While the context is held an LSTM is decomposed as torch decomposes it on a GPU."""
    if not traced_on_cpu:
        return nullcontext()
    from torch._decomp import decompositions

    return replaced(decompositions, "select_one_layer_lstm_function", lambda *_: decompositions.one_layer_lstm)
