"""Every gallery model in every mode: python tests/benchmarks/bench_gallery.py FOLDER [--only NAMES] [--modes MODES]."""

from __future__ import annotations

import functools
import importlib
import sys
from typing import Any

from bench_common import DEFAULT_MODES, Cases, main

# Small models first, so that the budget running out costs the fewest rows.
NAMES = (
    "relu_add_mul", "softmax", "layer_norm", "rms_norm_residual", "mlp", "conv_bn_relu", "graph_break", "cpu_sync",
    "dropout", "transformer_block", "llama_block", "resnet18", "mobilenet_v3", "gpt2", "bert_base", "vit_b16",
)  # fmt: skip
# A dropout mask differs between eager and a generated kernel, so errors are compared without it.
OPTIONS: dict[str, dict[str, Any]] = {"dropout": {"probability": 0.0}}


def load(name: str) -> tuple[Any, tuple[Any, ...], bool]:
    """The example on the GPU."""
    import torch

    module = importlib.import_module(f"resources.examples.{name}")
    model, inputs = getattr(module, name)(**OPTIONS.get(name, {}))
    if isinstance(model, torch.nn.Module):
        model = model.cuda()
    return model, tuple(value.cuda() for value in inputs), module.TRAINING


CASES: Cases = {name: functools.partial(load, name) for name in NAMES}

if __name__ == "__main__":
    sys.exit(main("gallery", "Gallery", CASES, __file__, DEFAULT_MODES, case_seconds=120, budget=460))
