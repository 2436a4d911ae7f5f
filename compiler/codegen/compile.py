"""Kernel sources compiled by Triton for a target, with or without that GPU at hand."""

from __future__ import annotations

import linecache
import re
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from compiler.codegen.config import KernelConfig
from compiler.codegen.kernel import KernelSource
from compiler.codegen.text import POINTER_TYPES
from compiler.report import Target, Trial

IR_LEVELS = ("ttir", "ttgir", "llir", "ptx", "amdgcn")


@dataclass
class CompiledKernel:
    """A named kernel in one configuration. ``binary`` is Triton's compiled object, None where compiling failed."""

    name: str
    text: str
    source: KernelSource
    config: KernelConfig
    grid: tuple[int, int, int]
    function: Any
    binary: Any = None
    irs: dict[str, str] = field(default_factory=dict)
    registers: int | None = None
    spills: int | None = None
    shared_bytes: int | None = None
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
    return triton.compile(kernel_source, target=gpu_target(target), options=options)


def constexpr_values(function: Any, source: KernelSource, config: KernelConfig) -> tuple[int, ...]:
    """The block sizes in the order of the function's last parameters."""
    return tuple(config.blocks[p] for p in function.arg_names[len(source.arguments) :])


def describe(kernel: CompiledKernel, target: Target, *, disassemble: bool) -> None:
    """Fill in the intermediate texts and the resources that the binary tells of."""
    asm = kernel.binary.asm
    kernel.irs = {level: asm[level] for level in IR_LEVELS if level in asm and isinstance(asm[level], str)}
    kernel.shared_bytes = int(kernel.binary.metadata.shared)
    if target.backend != "cuda":
        return
    usage = resource_usage(asm["cubin"])
    kernel.registers, kernel.spills = usage.get("REG"), usage.get("LOCAL")
    if disassemble:
        sass = disassembly(asm["cubin"])
        if sass:
            kernel.irs["sass"] = sass


def _tool(name: str) -> Path:
    import triton

    return Path(triton.__file__).parent / "backends" / "nvidia" / "bin" / name


def resource_usage(cubin: bytes) -> dict[str, int]:
    """REG, STACK, SHARED, LOCAL (bytes a thread spills) as ``cuobjdump`` reports them; empty without the tool."""
    text = _run_tool("cuobjdump", ["--dump-resource-usage"], cubin)
    return {key: int(value) for key, value in re.findall(r"\b(REG|STACK|SHARED|LOCAL):(\d+)", text)}


def disassembly(cubin: bytes) -> str:
    """SASS with source lines as ``nvdisasm`` prints it; empty without the tool."""
    return _run_tool("nvdisasm", ["--print-line-info", "--no-dataflow"], cubin) or _run_tool("nvdisasm", [], cubin)


def _run_tool(name: str, options: Sequence[str], cubin: bytes) -> str:
    import tempfile

    tool = _tool(name)
    if not tool.exists():
        return ""
    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        file.write(cubin)
        file.flush()
        done = subprocess.run([str(tool), *options, file.name], capture_output=True, text=True, check=False)
    return done.stdout if done.returncode == 0 else ""
