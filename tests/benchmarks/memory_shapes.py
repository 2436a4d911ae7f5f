"""Peak memory of every gallery model by shapes alone, in eager and by Fusescope, the steps as captured and as chosen:

    python -m tests.benchmarks.memory_shapes FOLDER [--only NAMES]

Needs no GPU: iterations run on fake tensors, through our own wrappers, and storages are counted while they live. What
libraries allocate inside a call is not seen; ``bench_memory.py`` measures that on a GPU. Returns 1 where the chosen
order needs more than the captured one.
"""

from __future__ import annotations

import argparse
import sys
import time
from dataclasses import dataclass
from pathlib import Path

from compiler.options import DEFAULTS, Options
from tests.memory_model import Measured, example_of, measure

NAMES = (
    "relu_add_mul", "softmax", "layer_norm", "rms_norm_residual", "mlp", "conv_bn_relu", "dropout", "transformer_block",
    "llama_block", "resnet18", "mobilenet_v3", "gpt2", "bert_base", "vit_b16",
)  # fmt: skip


@dataclass(frozen=True)
class ShapeRow:
    """One model, inference or training, peaks in bytes."""

    name: str
    phase: str
    eager: int
    captured: int
    chosen: int
    moved: int
    steps: int


def run_case(name: str, training: bool) -> ShapeRow:
    """One model in one phase."""

    def measured(options: Options) -> Measured:
        model, inputs, _ = example_of(name, {})
        return measure(model, inputs, training, options)

    captured, chosen = measured(Options(reorder=False)), measured(DEFAULTS)
    moved = sum(region.ordered.moved for region in chosen.regions if region.ordered is not None)
    steps = sum(len(region.steps) for region in chosen.regions)
    phase = "training" if training else "inference"
    return ShapeRow(name, phase, chosen.eager, captured.compiled, chosen.compiled, moved, steps)


def markdown(rows: list[ShapeRow]) -> str:
    """The table."""
    date = time.strftime("%Y-%m-%d", time.gmtime())
    about = " ".join((__doc__ or "").split("Needs no GPU: ")[1].split("Returns")[0].split())
    lines = ["# Peak memory by shapes", "", f"{date}. No GPU: {about}", ""]
    lines += ["| model | phase | eager MB | captured order MB | chosen order MB | share of eager's | steps moved |"]
    lines += ["|---|---|---|---|---|---|---|"]
    for row in rows:
        peaks = " | ".join(f"{value / 1e6:.2f}" for value in (row.eager, row.captured, row.chosen))
        share = f"{row.chosen / row.eager:.1%}"
        lines.append(f"| {row.name} | {row.phase} | {peaks} | {share} | {row.moved} of {row.steps} |")
    return "\n".join(lines) + "\n"


def main() -> int:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--only", default="", help="models whose names contain one of these, separated by commas")
    options = parser.parse_args()
    words = [word for word in options.only.split(",") if word]
    chosen = [name for name in NAMES if not words or any(word in name for word in words)]
    rows = []
    for name in chosen:
        for training in (False, True):
            rows.append(run_case(name, training))
            print(rows[-1], flush=True)
    options.folder.mkdir(parents=True, exist_ok=True)
    (options.folder / "memory_shapes.md").write_text(markdown(rows))
    return int(any(row.chosen > row.captured for row in rows))


if __name__ == "__main__":
    sys.exit(main())
