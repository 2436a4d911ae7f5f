"""Kernel sources compiled by Triton for a target, with or without that GPU at hand."""

from __future__ import annotations

import linecache
from dataclasses import dataclass, field
from typing import Any

from compiler.codegen.binary import BinaryFacts
from compiler.codegen.config import KernelConfig
from compiler.codegen.kernel import KernelSource
from compiler.codegen.text import POINTER_TYPES
from compiler.report import Target, Trial


@dataclass
class CompiledKernel:
    """A named kernel in one configuration.

    ``binary`` is Triton's compiled object, None where compiling failed; ``facts`` is what was read from it.
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


def load_function(name: str, text: str) -> Any:
    """Define the kernel that ``text`` contains and return its Triton function.

    Triton reads a function's source through ``linecache``, so no file is needed.
    """
    filename = f"<fusescope {name}>"
    linecache.cache[filename] = (len(text), None, text.splitlines(keepends=True), filename)
    namespace: dict[str, Any] = {"__name__": f"fusescope.{name}"}
    exec(compile(text, filename, "exec"), namespace)
    return namespace[name]


def compile_binary(function: Any, source: KernelSource, config: KernelConfig, target: Target) -> Any:
    """Compile for ``target``. Pointers are taken to be 16-byte aligned: the executable sees to it."""
    import triton
    from triton.compiler import ASTSource

    from compiler.targets import gpu_target

    parameters = list(function.arg_names)
    pointers = len(source.arguments)
    signature = {p: POINTER_TYPES[b.dtype] for p, b in zip(parameters, source.arguments, strict=False)}
    signature.update(dict.fromkeys(parameters[pointers:], "constexpr"))
    constants = {(pointers + i,): config.blocks[p] for i, p in enumerate(parameters[pointers:])}
    attributes = {(i,): [["tt.divisibility", 16]] for i in range(pointers)}
    kernel_source = ASTSource(function, signature, constants, attributes)
    options = {"num_warps": config.num_warps, "num_stages": config.num_stages}
    if "tl.device_assert(" in source.source:  # only then: "debug" costs registers
        options |= {"debug": True, "sanitize_overflow": False}
    return triton.compile(kernel_source, target=gpu_target(target), options=options)


def constexpr_values(function: Any, source: KernelSource, config: KernelConfig) -> tuple[int, ...]:
    """The block sizes in the order of the function's last parameters."""
    return tuple(config.blocks[p] for p in function.arg_names[len(source.arguments) :])
