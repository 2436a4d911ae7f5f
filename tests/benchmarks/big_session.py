"""A session of about 100 MB, the same every time: a decoder of 10,000 nodes and 400 kernels with long texts.

    python -m tests.benchmarks.big_session FILE.fscope [--nodes 10000] [--kernels 400] [--megabytes 100]

Texts are made of lines like those of real kernels, with numbers that keep them from packing much better than real ones.
"""

from __future__ import annotations

import argparse
import random
import sys
from itertools import cycle
from pathlib import Path

import msgspec

from app.session import save_session
from compiler.report import Kernel, Report
from tests.fake_runs import lab_report

# level -> its share of a kernel's text, and a line of it; zero or more numbers go in
_LEVELS = {
    "ttir": (0.16, "    %{0} = arith.addf %{1}, %{2} : tensor<1024xf32> loc(#loc{3})"),
    "ttgir": (0.20, "    %{0} = tt.load %{1}, %{2} {{cache = {3} : i32}} : tensor<1024x!tt.ptr<f32>, #blocked{3}>"),
    "llir": (0.28, '  %{0} = call float asm sideeffect "ld.global.b32", "=r,l,b"(ptr %{1}, i1 %{2}), !dbg !{3}'),
    "ptx": (0.24, "\tfma.rn.f32 \t%f{0}, %f{1}, %f{2}, 0f{3:08X};"),
    "sass": (0.12, "        /*{0:04x}*/                   FFMA R{1}, R{2}, R{3}, R{0} ;"),
}
_SOURCE = "    tmp{0} = tl.load(in_ptr{1} + (x{2} + {3}*r0_1), rmask & xmask, other=0.0)"
_PACKED = 6.35  # how many bytes of these texts make one of the file
_SOURCE_LINES = 220


def big_report(nodes: int = 10_000, kernels: int = 400, megabytes: float = 100.0) -> Report:
    """The report whose session takes about ``megabytes`` on the disk."""
    report = lab_report(nodes)
    names = [kernel.name for kernel in report.kernels][:kernels]
    by_name = {kernel.name: kernel for kernel in report.kernels}
    each = int(megabytes * 1e6 * _PACKED / len(names))
    report.kernels = [_filled(by_name[name], each, seed) for seed, name in enumerate(names)]
    region = report.regions[0]
    for group, name in zip(region.groups, cycle(names), strict=False):
        group.kernel = name
    of_kernel: dict[str, list[str]] = {}
    for group in region.groups:
        of_kernel.setdefault(group.kernel, []).extend(f"{region.name}/{node}" for node in group.nodes)
    for kernel in report.kernels:
        kernel.line_nodes = {10 + 3 * i: [node] for i, node in enumerate(of_kernel[kernel.name][:60])}
    report.sources = {"model.py": "\n".join(_lines(_SOURCE, 3000, 1))}
    return report


def _filled(kernel: Kernel, size: int, seed: int) -> Kernel:
    """A copy with about ``size`` characters of text over all levels, and where each line comes from."""
    texts, lines = {}, {}
    for number, (level, (share, pattern)) in enumerate(_LEVELS.items()):
        count = int(size * share / (len(pattern) + 14))
        texts[level] = "\n".join(_lines(pattern, count, seed * 10 + number))
        lines[level] = [10 + line * _SOURCE_LINES // count for line in range(count)]
    head = ["import triton", "import triton.language as tl", "", "", "@triton.jit", f"def {kernel.name}(in_ptr0):"]
    source = "\n".join([*head, *_lines(_SOURCE, _SOURCE_LINES, seed)])
    return msgspec.structs.replace(kernel, source=source, irs=texts, ir_lines=lines)


def _lines(pattern: str, count: int, seed: int) -> list[str]:
    numbers = random.Random(seed)
    return [pattern.format(i, *(numbers.getrandbits(bits) for bits in (12, 10, 16))) for i in range(count)]


def main() -> int:
    """Write the file and say how large it is."""
    parser = argparse.ArgumentParser(description="Write a large synthetic session.")
    parser.add_argument("file", type=Path)
    parser.add_argument("--nodes", type=int, default=10_000)
    parser.add_argument("--kernels", type=int, default=400)
    parser.add_argument("--megabytes", type=float, default=100.0)
    options = parser.parse_args()
    save_session(options.file, big_report(options.nodes, options.kernels, options.megabytes))
    print(f"{options.file}: {options.file.stat().st_size / 1e6:.1f} MB")
    return 0


if __name__ == "__main__":
    sys.exit(main())
