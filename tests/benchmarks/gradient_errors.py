"""How far each gradient of a model's training step is from float64: eager's, ours, and eager's again.

    python tests/benchmarks/gradient_errors.py deeplab --runs 3
    TRITON_INTERPRET=1 python tests/benchmarks/gradient_errors.py unet --device cpu

Says whether a gradient that bench_models.py calls wrong is so by what we compute or by how far rounding carries in that
model: ``moved`` is eager with inputs that differ in their last place, and repeated runs of eager differ where atomic
additions come in any order. Errors are ||x - float64|| / ||float64||. ``in one`` is the part of our squared error that
lies in one channel: near 1 in a layer where a single ReLU's input has another sign than in float64, and nowhere else.
"""

from __future__ import annotations

import argparse
import sys
import warnings
from typing import Any

import torch
from bench_models import moved


def gradients(model: Any, inputs: Any, run: Any) -> dict[str, torch.Tensor]:
    """Of the mean square of the output, by parameter; buffers are put back afterwards."""
    buffers = {name: value.clone() for name, value in model.named_buffers()}
    model.zero_grad(set_to_none=True)
    torch.manual_seed(0)
    output = run(*inputs)
    loss = sum(o.float().square().mean() for o in output) if isinstance(output, tuple) else output.square().mean()
    loss.backward()
    with torch.no_grad():
        for name, value in model.named_buffers():
            value.copy_(buffers[name])
    found = {name: p.grad.double().cpu() for name, p in model.named_parameters() if p.grad is not None}
    return {"output": output.detach().double().cpu(), **found} if isinstance(output, torch.Tensor) else found


def main() -> int:
    """The command line."""
    from zoo import MODELS

    from compiler.backend import fusescope
    from compiler.runtime.compare import in_float64

    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", choices=sorted(MODELS))
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
    parser.add_argument("--runs", type=int, default=2, help="runs of eager and of ours")
    parser.add_argument("--moved", type=int, default=3, help="runs of eager on inputs that differ in their last place")
    parser.add_argument("--worst", type=int, default=12, help="lines to print")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    torch.set_float32_matmul_precision("highest")
    torch.backends.cudnn.allow_tf32 = False
    torch.manual_seed(0)
    model, inputs = MODELS[options.model]()
    model = model.to(options.device).train()
    inputs = tuple(value.to(options.device) for value in inputs)
    exact_model, exact_inputs = in_float64(model, inputs)
    exact = gradients(exact_model, exact_inputs, exact_model)
    compiled = torch.compile(model, backend=fusescope)
    columns = {f"eager {n + 1}": gradients(model, inputs, model) for n in range(options.runs)}
    columns |= {f"moved {n + 1}": gradients(model, moved(inputs, n), model) for n in range(options.moved)}
    columns |= {f"ours {n + 1}": gradients(model, inputs, compiled) for n in range(options.runs)}
    errors = {
        title: {name: float((found[name] - x).norm() / x.norm().clamp(min=1e-300)) for name, x in exact.items()}
        for title, found in columns.items()
    }
    ours = errors["ours 1"]
    order = sorted(exact, key=lambda name: -ours[name] / max(errors["eager 1"][name], 1e-12))
    kept = [name for name in order if float(exact[name].norm()) > 1e-7 * max(float(x.norm()) for x in exact.values())]
    print(f"{'':60}" + "".join(f"{title:>10}" for title in columns) + "    in one")
    print(f"{'all together':60}" + "".join(f"{_together(found, exact):10.1e}" for found in columns.values()))
    for name in kept[: options.worst]:
        line = "".join(f"{errors[title][name]:10.1e}" for title in columns)
        print(f"{name[-60:]:60}{line}{_in_one(columns['ours 1'][name] - exact[name]):10.2f}")
    return 0


def _in_one(error: torch.Tensor) -> float:
    by_channel = error.square().flatten(1).sum(1) if error.dim() > 1 else error.square()
    return float(by_channel.max() / by_channel.sum().clamp(min=1e-300))


def _together(found: dict[str, torch.Tensor], exact: dict[str, torch.Tensor]) -> float:
    distance = sum(float((found[name] - x).square().sum()) for name, x in exact.items())
    return (distance / sum(float(x.square().sum()) for x in exact.values())) ** 0.5


if __name__ == "__main__":
    sys.exit(main())
