"""What a user can change about a compilation by our own compiler: one frozen value, passed down to the stages.

``Options`` is the single list of them. The command line (``--option NAME=VALUE``), ``torch.compile(options=...)`` and
the window all read names, types, defaults and texts from its fields, so a new option is one field here and its use.
Imports no torch, for the command line checks names before the slow imports.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec

from compiler.errors import CompileError


class OptionInfo(msgspec.Struct, frozen=True, omit_defaults=True):
    """One option of a compiler as the window shows it. Values are texts, as they are written on the command line."""

    name: str
    type: str  # "bool", "int", "float", "str", or what else Inductor's configuration holds
    default: str
    doc: str = ""
    current: str = ""  # the value in force where it is not the default: from the environment, say
    choices: list[str] = []  # the only values, where there are few

    @property
    def value(self) -> str:
        """The value in force when nothing is chosen."""
        return self.current or self.default


def option(
    default: bool | int | str,
    doc: str,
    *,
    low: int | None = None,
    high: int | None = None,
    choices: tuple[Any, ...] = (),
    numbers: bool = False,
) -> Any:
    """A field of ``Options``: its default, its text, and the values it takes (a range of numbers, or choices).

    ``numbers``: a text of whole numbers from ``low`` to ``high``, with commas between them.
    """
    taken = {"low": low, "high": high, "choices": choices, "numbers": numbers}
    return field(default=default, metadata={"doc": doc, **taken})


@dataclass(frozen=True)
class Options:
    """How Fusescope's own compiler compiles. The defaults are what it does when nothing is said."""

    horizontal_fusion: bool = option(
        True, "Let ops that read the same data share a kernel, without one feeding the other."
    )
    max_fused_loops: int = option(
        48, "The most loops (about one an op) in one kernel; 1 fuses nothing.", low=1, high=1024
    )
    max_fused_buffers: int = option(24, "The most buffers that one kernel reads and writes.", low=1, high=256)
    persistent_inner: int = option(
        8192,
        "The longest contiguous row that a reduction keeps in registers, in elements; longer ones are read again for "
        "every pass. A softmax over rows of unknown length keeps at most 2,048. 0: none.",
        low=0,
        high=65536,
    )
    persistent_outer: int = option(
        64,
        "The same for a reduction across rows, where one block holds many columns too.",
        low=0,
        high=1024,
    )
    num_warps: int = option(0, "Warps of every kernel. 0: chosen for each from its size.", choices=(0, 1, 2, 4, 8, 16))
    pointwise_block: int = option(
        0,
        "Elements that one program of a pointwise kernel computes. 0: chosen from its size.",
        choices=(0, 64, 128, 256, 512, 1024, 2048, 4096),
    )
    autotune: bool = option(
        True, "On the GPU compiled for, time kernels that move much in several configurations and take the fastest."
    )
    pad_products: bool = option(
        True, "Pad matrix products whose rows begin at misaligned addresses, where that is faster than cuBLAS without."
    )
    random: str = option(
        "kernel",
        "Where random numbers are drawn: in kernels from a seed drawn for each call, or by ATen's ops, which "
        "gives eager's numbers bit for bit.",
        choices=("kernel", "eager"),
    )
    memory_reuse: bool = option(True, "Let a buffer take over the storage of one that nothing reads any more.")
    reorder: bool = option(
        True, "Run kernels and library calls in another order than captured where that lowers the peak of memory."
    )
    fallback: str = option(
        "none",
        "What becomes of a region on which a stage of the compiler fails: none stops with the error, eager runs the "
        "captured graph as it is.",
        choices=("none", "eager"),
    )
    graph_capacity: int = option(
        4,
        "CUDA Graphs that a region keeps, one for each combination of sizes; beyond, the one used longest ago is "
        "dropped.",
        low=1,
        high=1024,
    )
    graph_buckets: str = option(
        "",
        "Sizes of a batch that CUDA Graphs are captured for, as 8,16,32; others are padded up to the next where that "
        "changes no number. Acts on models with dynamic sizes.",
        low=1,
        high=1 << 30,
        numbers=True,
    )
    graph_streams: int = option(
        1,
        "Streams that a CUDA Graph's independent branches may be captured on; both ways are timed, the faster is kept.",
        low=1,
        high=32,
    )
    graph_collectives: bool = option(
        False,
        "Capture collectives of NCCL in CUDA Graphs. Every process must then make the same calls on inputs of the same "
        "sizes, for a capture runs the region three times.",
    )

    @property
    def bucket_sizes(self) -> tuple[int, ...]:
        """``graph_buckets`` as numbers."""
        return _numbers(self.graph_buckets)


DEFAULTS = Options()


def parse_options(texts: Mapping[str, Any], start: Options = DEFAULTS) -> Options:
    """``start`` with the values of ``texts``, which are texts or already of the option's type.

    Raises:
        CompileError: a name that is no option, or a value that it does not take.
    """
    known = {f.name: f for f in dataclasses.fields(Options)}
    values: dict[str, Any] = {}
    for name, text in texts.items():
        if name not in known:
            hint = option_hint(name, list(known), "fusescope")
            raise CompileError(f"The compiler fusescope has no option '{name}'.", hint=hint)
        values[name] = _value(known[name], text)
    return dataclasses.replace(start, **values)


def option_hint(name: str, known: list[str], compiler: str) -> str:
    """What to do about an unknown name: the ones that resemble it, else all of them where they are few."""
    import difflib  # at the first wrong name: the window starts without it

    near = difflib.get_close_matches(name, known, n=3)
    if near:
        return f"Did you mean {' or '.join(near)}?"
    few = f"The compiler's options: {', '.join(known)}."
    return few if len(known) <= 40 else f"'python main.py options --compiler {compiler}' lists the compiler's."


def _value(known: dataclasses.Field[Any], given: Any) -> Any:
    """One value, checked.

    Raises:
        CompileError: it is not one that the option takes.
    """
    kind = type(known.default)
    value = given
    if isinstance(given, str):
        value = _read(kind, given.strip())
    low, high, choices = (known.metadata[key] for key in ("low", "high", "choices"))
    several = known.metadata["numbers"]
    if several and isinstance(given, list | tuple):
        value = ",".join(map(str, given))
    fits = type(value) is kind and (not choices or value in choices)
    try:
        every = _numbers(value) if several else (value,)
        fits = fits and all((low is None or n >= low) and (high is None or n <= high) for n in every)
    except ValueError:
        fits = False
    if not fits:
        if kind is bool:
            takes = "true or false"
        elif choices:
            takes = f"one of {', '.join(map(str, choices))}"
        elif several:
            takes = f"whole numbers from {low} on with commas between them"
        else:
            takes = f"a whole number from {low} to {high}"
        raise CompileError(f"The option {known.name} takes {takes}, not '{given}'.", hint=known.metadata["doc"])
    return value


def _numbers(text: str) -> tuple[int, ...]:
    """The whole numbers of a text.

    Raises:
        ValueError: it is something else.
    """
    return tuple(int(part) for part in text.split(",")) if text else ()


def _read(kind: type, text: str) -> Any:
    """The text as a value of ``kind``; None where it is not one."""
    if kind is bool:
        return {"true": True, "1": True, "false": False, "0": False}.get(text.lower())
    if kind is int:
        digits = text.removeprefix("-")
        return int(text) if digits.isascii() and digits.isdecimal() else None
    return text


def describe_options(current: Options = DEFAULTS) -> list[OptionInfo]:
    """Every option, for a dialog or a list."""
    infos = []
    for known in dataclasses.fields(Options):
        default, value = _text(known.default), _text(getattr(current, known.name))
        kind = type(known.default)
        choices = [_text(c) for c in known.metadata["choices"]] or (["true", "false"] if kind is bool else [])
        infos.append(
            OptionInfo(
                known.name, kind.__name__, default, known.metadata["doc"], value if value != default else "", choices
            )
        )
    return infos


def _text(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
