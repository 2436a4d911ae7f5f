"""A Llama with 70 billion parameters on the meta device: the source, and what compiling it for inspection costs.

    python -m tests.benchmarks.large_llama                 # both compilers, CPU time and peak memory of each
    python main.py compile tests/benchmarks/large_llama.py:llama --compiler inductor --target h100

The shapes are those of Llama 3 70B; nothing is allocated for the weights (141 GB in bfloat16).
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
RESULTS = Path(__file__).parent / "results" / "large_llama.md"


def llama(layers: int = 80, length: int = 128) -> tuple[Any, tuple[Any]]:
    """The model for inference and one prompt, both on the meta device."""
    import torch
    import torch.nn.functional as F
    from torch import Tensor, nn

    width, heads, kv_heads, hidden, vocabulary = 8192, 64, 8, 28672, 128256

    def rotated(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
        a, b = x.chunk(2, dim=-1)
        return x * cos + torch.cat((-b, a), dim=-1) * sin

    class Attention(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            size = width // heads
            self.q, self.o = nn.Linear(width, width, bias=False), nn.Linear(width, width, bias=False)
            self.k, self.v = (nn.Linear(width, kv_heads * size, bias=False) for _ in range(2))

        def forward(self, x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
            batch, count, _ = x.shape
            q, k, v = (
                project(x).view(batch, count, -1, width // heads).transpose(1, 2)
                for project in (self.q, self.k, self.v)
            )
            k, v = (t.repeat_interleave(heads // kv_heads, dim=1) for t in (rotated(k, cos, sin), v))
            y = F.scaled_dot_product_attention(rotated(q, cos, sin), k, v, is_causal=True)
            return self.o(y.transpose(1, 2).reshape(batch, count, width))

    class Block(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.attention, self.before, self.after = Attention(), nn.RMSNorm(width), nn.RMSNorm(width)
            self.gate, self.up = (nn.Linear(width, hidden, bias=False) for _ in range(2))
            self.down = nn.Linear(hidden, width, bias=False)

        def forward(self, x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
            x = x + self.attention(self.before(x), cos, sin)
            y = self.after(x)
            return x + self.down(F.silu(self.gate(y)) * self.up(y))

    class Llama(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.embed, self.norm = nn.Embedding(vocabulary, width), nn.RMSNorm(width)
            self.blocks = nn.ModuleList(Block() for _ in range(layers))
            self.head = nn.Linear(width, vocabulary, bias=False)

        def forward(self, ids: Tensor) -> Tensor:
            size = width // heads
            angles = torch.arange(0, size, 2, device=ids.device) / -size
            positions = torch.arange(ids.shape[1], device=ids.device)
            phase = (positions[:, None] * 500000.0**angles).repeat(1, 2)
            cos, sin = phase.cos().to(self.head.weight.dtype), phase.sin().to(self.head.weight.dtype)
            x = self.embed(ids)
            for block in self.blocks:
                x = block(x, cos, sin)
            return self.head(self.norm(x))

    with torch.device("meta"):
        return Llama().to(torch.bfloat16).eval(), (torch.zeros(1, length, dtype=torch.int64),)


def measured(compiler: str) -> dict[str, Any]:
    """Compile it from the command line in a process of its own."""
    with tempfile.TemporaryDirectory() as folder:
        environment = {**os.environ, "TRITON_CACHE_DIR": f"{folder}/triton"}  # a warm cache would flatter
        command = [sys.executable, "main.py", "compile", f"{__file__}:llama", "--compiler", compiler]
        command += ["--target", "h100", "--json", "-o", f"{folder}/large.fscope"]
        process = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, env=environment)
        assert process.stdout is not None
        out = process.stdout.read()
        _, status, usage = os.wait4(process.pid, 0)
        if status:
            raise SystemExit(f"{compiler} failed; its message is above.")
        report = json.loads(out)
        size = Path(folder, "large.fscope").stat().st_size
    region = report["regions"][0]
    return {
        "compiler": compiler,
        "cpu_s": usage.ru_utime + usage.ru_stime,
        "peak_gb": usage.ru_maxrss * 1024 / 1e9,
        "nodes": region["nodes"],
        "groups": len(region["groups"]),
        "calls": len(region["extern_calls"]),
        "kernels": len(report["kernels"]),
        "session_mb": size / 1e6,
    }


def main() -> None:
    """Measure both compilers and write the table."""
    rows = [measured(compiler) for compiler in ("fusescope", "inductor")]
    lines = [
        "# A Llama with 70 billion parameters, compiled for inspection",
        "",
        "80 layers of width 8192 in bfloat16 on the meta device, a prompt of 128 tokens, target h100, on 2 CPU cores",
        "without a GPU. `python -m tests.benchmarks.large_llama` makes this table. Peak memory is the resident set.",
        "",
        "| compiler | CPU seconds | peak memory | FX nodes | groups | extern calls | kernels | session |",
        "|---|---:|---:|---:|---:|---:|---:|---:|",
    ]
    for row in rows:
        lines.append(
            f"| {row['compiler']} | {row['cpu_s']:.0f} | {row['peak_gb']:.2f} GB "
            f"| {row['nodes']:,} | {row['groups']} | {row['calls']} | {row['kernels']} | {row['session_mb']:.1f} MB |"
        )
    RESULTS.write_text("\n".join(lines) + "\n")
    print(RESULTS.read_text())


if __name__ == "__main__":
    main()
