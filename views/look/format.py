"""Figures as people read them: bytes, FLOPs, times, shapes."""

from __future__ import annotations

import re

from compiler.report import ExternReason, RefusalRule, TensorInfo
from compiler.texts import scaled, size_text, time_text

_SHORT_DTYPES = {
    "float64": "f64", "float32": "f32", "float16": "f16", "bfloat16": "bf16", "int64": "i64", "int32": "i32",
    "int16": "i16", "int8": "i8", "uint8": "u8", "bool": "b8", "complex64": "c64", "complex128": "c128",
}

EXTERN_REASONS: dict[ExternReason, str] = {
    ExternReason.LIBRARY_IS_FASTER: "A tuned library call exists for this op.",
    ExternReason.NO_LOWERING: "No rule generates code for this op yet.",
    ExternReason.UNSUPPORTED_DTYPE: "Triton cannot hold this dtype.",
    ExternReason.DATA_DEPENDENT_SHAPE: "The size of the result is known only at run time.",
    ExternReason.MUTATION: "It writes into a tensor that the caller sees.",
    ExternReason.RANDOM: "It draws from the device's random generator.",
    ExternReason.HOST_SYNC: "It moves a value to the CPU, which waits for the GPU.",
    ExternReason.CPU_TENSOR: "It works on a CPU tensor while the region runs on the GPU.",
    ExternReason.COLLECTIVE: "It moves data between processes.",
    ExternReason.TOO_SMALL_TO_HELP: "The work is too small for a generated kernel to help.",
}

REFUSAL_RULES: dict[RefusalRule, str] = {
    RefusalRule.EXTERN: "one of them is an extern call",
    RefusalRule.DOMAIN_MISMATCH: "they iterate over different domains",
    RefusalRule.ACCESS_MISMATCH: "they read the shared data in different orders",
    RefusalRule.CYCLE: "fusing them would make a cycle",
    RefusalRule.NO_SHARED_DATA: "they share no data",
    RefusalRule.TOO_LARGE: "the fused kernel would be too large",
    RefusalRule.DEVICE: "they are on different devices",
    RefusalRule.MUTATION: "a write between them must stay in order",
    RefusalRule.REDUCTION_SPLIT: "the reduction is split over blocks",
    RefusalRule.NOT_PROFITABLE: "fusing them would not save memory traffic",
    RefusalRule.OPTION: "an option of the compilation forbids it",
    RefusalRule.COMPILER_RULE: "by a rule of this compiler",
    RefusalRule.NO_REASON_RECORDED: "the compiler recorded no reason",
}


def count(value: int) -> str:
    """A whole number with thousands apart: 12,345."""
    return f"{value:,}"


def size(value: float) -> str:
    """Bytes in decimal units: "12.3 MB"."""
    return size_text(value)


def flops(value: float) -> str:
    """Floating-point operations: "1.2 GFLOP"."""
    return scaled(value, ("FLOP", "kFLOP", "MFLOP", "GFLOP", "TFLOP"))


def microseconds(value: float) -> str:
    """A time given in microseconds, in the unit that suits it: "2.10 ns", "12.3 µs", "1.23 ms", "2.10 s"."""
    return time_text(value)


def milliseconds(value: float) -> str:
    """A time given in milliseconds."""
    return microseconds(value * 1000)


def dtype(name: str) -> str:
    """The short name of a dtype: "bf16" for "bfloat16"."""
    return _SHORT_DTYPES.get(name, name)


def tensor(info: TensorInfo) -> str:
    """A tensor's dtype and shape: "bf16[8, 1024, 768]"."""
    return f"{dtype(info.dtype)}[{', '.join(map(str, info.shape))}]"


def strides(info: TensorInfo) -> str:
    """A tensor's strides in elements: "(768, 1)"."""
    return f"({', '.join(map(str, info.stride))})" if info.stride else ""


def ratio(value: float) -> str:
    """How many times something is another: "310×", "1.94×"."""
    if 0 < value < 0.005:
        return "<0.01×"
    if value >= 99.95:
        return f"{value:,.0f}×"
    return f"{value:.1f}×" if value >= 9.995 else f"{value:.2f}×"


def share(part: float) -> str:
    """A share of one as per cent: "64%"; what is there is never told as none, nor a part as all."""
    if 0 < part < 0.005 or 0.995 <= part < 1:
        return "<1%" if part < 0.5 else ">99%"
    return f"{part:.0%}"


def plural(value: int, noun: str, many: str = "") -> str:
    """A count with its noun: "1 node", "3 nodes"; ``many`` where the plural is not the noun with an s."""
    return f"{count(value)} {noun if value == 1 else many or noun + 's'}"


def breakable(name: str) -> str:
    """A name with places where it may go on on the next line, which are not seen: after what joins its words."""
    return re.sub(r"(::|[_<>(),.])(?=.)", "\\1\u200b", name)
