"""Several pointwise kernels of the same code as one: each program first finds out which of them it works for.

The kernels may be of different lengths. Their pointers are all parameters of the one kernel, so that a captured CUDA
Graph sees every address; a program picks its own by comparing its number with where each part's programs end.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from compiler.codegen.domain import Axis, Domain
from compiler.codegen.kernel import KernelSource
from compiler.index import LoopVar

_HEAD = re.compile(r"^def \{name\}\((?P<pointers>[\w, ]+), XBLOCK: tl\.constexpr\):$", re.MULTILINE)
_LENGTH = re.compile(r"^    xnumel = (?P<length>\d+)$", re.MULTILINE)
_INDEX = "    xindex = tl.program_id(0) * XBLOCK + tl.arange(0, XBLOCK)\n"
VECTOR = 16  # elements: a length that this divides lets the compiler move 16 bytes at a time


def combination_key(kernel: KernelSource) -> tuple[object, ...] | None:
    """What two kernels must have in common to become one; None where the kernel cannot be part of one."""
    if kernel.domain.r is not None or kernel.domain.y is not None or not isinstance(kernel.domain.x.numel, int):
        return None
    text = kernel.source
    if _HEAD.search(text) is None or _LENGTH.search(text) is None or _INDEX not in text:
        return None
    dtypes = tuple(b.dtype for b in kernel.arguments)
    return _LENGTH.sub("", text, count=1), dtypes, kernel.domain.x.numel % VECTOR == 0


def combine_kernels(kernels: Sequence[KernelSource]) -> KernelSource:
    """One kernel that does the work of all, which share a ``combination_key``. Arguments are theirs, in order."""
    first = kernels[0]
    head = _HEAD.search(first.source)
    length = _LENGTH.search(first.source)
    assert head is not None
    assert length is not None
    names = head["pointers"].split(", ")
    lengths = [k.domain.x.numel for k in kernels]
    pointers = [f"{name}_{part}" for part in range(len(kernels)) for name in names]
    lines = ["    pid = tl.program_id(0)", f"    end0 = tl.cdiv({lengths[0]}, XBLOCK)"]
    lines += [f"    end{i} = end{i - 1} + tl.cdiv({n}, XBLOCK)" for i, n in enumerate(lengths[1:-1], 1)]
    lines += _choice(names, lengths, 0, len(kernels), "    ")
    lines.append("    xindex = (pid - first) * XBLOCK + tl.arange(0, XBLOCK)")
    body = first.source[length.end() + 1 :].removeprefix(_INDEX)
    before = first.source[: head.start()]
    signature = f"def {{name}}({', '.join(pointers)}, XBLOCK: tl.constexpr):\n"
    source = before + signature + "\n".join(lines) + "\n" + body
    moved = source.count("\n") - first.source.count("\n")
    total = sum(lengths)
    return KernelSource(
        source,
        tuple(b for k in kernels for b in k.arguments),
        tuple(name for k in kernels for name in k.stored),
        Domain(Axis("x", (LoopVar("x0", total),)), None, None, {}, False),
        False,
        _lines(kernels, moved),
        sum(k.flops for k in kernels),
        sum(k.bytes for k in kernels),
        parts=tuple(lengths),
    )


def _choice(names: Sequence[str], lengths: Sequence[int], low: int, high: int, indent: str) -> list[str]:
    """Python text that sets the pointers, the length and the first program of the part that ``pid`` belongs to."""
    if high - low == 1:
        lines = [f"{indent}{name} = {name}_{low}" for name in names]
        return [*lines, f"{indent}xnumel = {lengths[low]}", f"{indent}first = {f'end{low - 1}' if low else 0}"]
    middle = (low + high) // 2
    return [
        f"{indent}if pid < end{middle - 1}:",
        *_choice(names, lengths, low, middle, indent + "    "),
        f"{indent}else:",
        *_choice(names, lengths, middle, high, indent + "    "),
    ]


def _lines(kernels: Sequence[KernelSource], moved: int) -> dict[int, list[str]]:
    """The FX nodes of every part at each line of the common body, which stands ``moved`` lines further down."""
    found: dict[int, list[str]] = {}
    for kernel in kernels:
        for line, nodes in kernel.lines.items():
            known = found.setdefault(line + moved, [])
            known.extend(node for node in nodes if node not in known)
    return found
