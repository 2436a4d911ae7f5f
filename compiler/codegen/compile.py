"""Kernel sources compiled by Triton for a target, with or without that GPU at hand."""

from __future__ import annotations

import linecache
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from compiler.codegen.binary import BinaryFacts
from compiler.codegen.config import KernelConfig
from compiler.codegen.kernel import KernelSource
from compiler.codegen.text import POINTER_TYPES
from compiler.report import Target, Trial
from compiler.sizes import multiple_of


@dataclass
class CompiledKernel:
    """A named kernel in one configuration.

    ``binary`` is Triton's compiled object, None where compiling failed; ``facts`` is what was read from it.
    ``compile_wide`` makes another one that computes with int64, for sizes that an int32 cannot index. ``for_rows``
    makes the kernel for rows that an RBLOCK holds, or with 0 the one that passes over longer ones.
    """

    name: str
    text: str
    source: KernelSource
    config: KernelConfig
    grid: tuple[int, int, int]
    function: Any
    binary: Any = None
    facts: BinaryFacts = field(default_factory=BinaryFacts)
    error: str = ""
    trials: list[Trial] = field(default_factory=list)
    compile_wide: Callable[[], Any] | None = None
    for_rows: Callable[[int], CompiledKernel] | None = None


def load_function(name: str, text: str) -> Any:
    """Define the kernel that ``text`` contains and return its Triton function.

    Triton reads a function's source through ``linecache``, so no file is needed.
    """
    filename = f"<fusescope {name}>"
    linecache.cache[filename] = (len(text), None, text.splitlines(keepends=True), filename)
    namespace: dict[str, Any] = {"__name__": f"fusescope.{name}"}
    exec(compile(text, filename, "exec"), namespace)
    return namespace[name]


def compile_binary(
    function: Any, source: KernelSource, config: KernelConfig, target: Target, *, wide: bool = False
) -> Any:
    """Compile for ``target``. Pointers are taken to be 16-byte aligned: the executable sees to it.

    Sizes known only at run time are passed as int32, or where ``wide`` as int64, and so indices are computed.
    """
    import triton
    from triton.compiler import ASTSource

    from compiler.targets import gpu_target

    parameters = list(function.arg_names)
    pointers, sizes = len(source.arguments), len(source.sizes)
    first = pointers + sizes
    signature = {p: POINTER_TYPES[b.dtype] for p, b in zip(parameters, source.arguments, strict=False)}
    signature.update(dict.fromkeys(parameters[pointers:first], "i64" if wide else "i32"))
    signature.update(dict.fromkeys(parameters[first:], "constexpr"))
    constants = {(first + i,): config.blocks[p] for i, p in enumerate(parameters[first:])}
    attributes = {(i,): [["tt.divisibility", 16]] for i in range(pointers)}
    for place, (_, value) in enumerate(source.sizes, pointers):
        if multiple_of(value, 16):
            attributes[place,] = [["tt.divisibility", 16]]
    kernel_source = ASTSource(function, signature, constants, attributes)
    options = {"num_warps": config.num_warps, "num_stages": config.num_stages}
    if "tl.device_assert(" in source.source:  # only then: "debug" costs registers
        options |= {"debug": True, "sanitize_overflow": False}
    return triton.compile(kernel_source, target=gpu_target(target), options=options)


def constexpr_values(function: Any, source: KernelSource, config: KernelConfig) -> tuple[int, ...]:
    """The block sizes in the order of the function's last parameters."""
    return tuple(config.blocks[p] for p in function.arg_names[len(source.arguments) + len(source.sizes) :])
