"""What a compiled Triton kernel tells of itself: the texts of its levels with their lines, and its resources."""

from __future__ import annotations

import re
import struct
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from compiler.codegen.linemap import definition_file, ir_lines, with_call_sites
from compiler.occupancy import occupancy
from compiler.report import Target

IR_LEVELS = ("ttir", "ttgir", "llir", "ptx", "amdgcn")


@dataclass(frozen=True)
class BinaryFacts:
    """The fields of ``report.Kernel`` that only a binary can fill; None for what it does not tell."""

    irs: dict[str, str] = field(default_factory=dict)
    ir_lines: dict[str, list[int]] = field(default_factory=dict)
    registers: int | None = None  # per thread
    spills: int | None = None  # bytes of local memory per thread
    shared_bytes: int | None = None
    warps: int | None = None
    stages: int | None = None
    occupancy: float | None = None


def read_binary(binary: Any, target: Target, *, shift: int = 0) -> BinaryFacts:
    """The facts of what ``triton.compile`` returned for ``target``.

    Args:
        shift: by how many lines the shown source begins below the top of the file that Triton compiled.
    """
    asm, metadata = binary.asm, binary.metadata
    irs = {level: asm[level] for level in IR_LEVELS if isinstance(asm.get(level), str)}
    file = definition_file(irs.get("ttir", "")) or definition_file(irs.get("ttgir", ""))
    shared, warps = int(metadata.shared), int(metadata.num_warps)
    registers = spills = None
    if "cubin" in asm:
        usage = resource_usage(asm["cubin"])
        registers, spills = usage.get("REG"), usage.get("LOCAL")
        sass = disassembly(_at_call_sites(irs.get("ptx", ""), asm["cubin"], file, metadata, target))
        if sass:
            irs["sass"] = sass
    elif "amdgcn" in irs:
        registers, spills = amd_usage(irs["amdgcn"])
    resident = None
    if registers is not None:
        resident = occupancy(target, registers=registers, shared_bytes=shared, warps=warps)
    return BinaryFacts(
        irs=irs,
        ir_lines={level: ir_lines(level, text, file, shift) for level, text in irs.items()},
        registers=registers,
        spills=spills,
        shared_bytes=shared,
        warps=warps,
        stages=int(metadata.num_stages),
        occupancy=resident.fraction if resident is not None else None,
    )


# --- NVIDIA --------------------------------------------------------------------------------------------------------


def _tool(name: str) -> Path:
    import triton

    return Path(triton.__file__).parent / "backends" / "nvidia" / "bin" / name


def resource_usage(cubin: bytes) -> dict[str, int]:
    """REG, STACK, SHARED, LOCAL (bytes a thread spills) as ``cuobjdump`` reports them; empty without the tool."""
    text = _run_tool("cuobjdump", ["--dump-resource-usage"], cubin)
    return {key: int(value) for key, value in re.findall(r"\b(REG|STACK|SHARED|LOCAL):(\d+)", text)}


def disassembly(cubin: bytes) -> str:
    """SASS with source lines as ``nvdisasm`` prints it; empty without the tool."""
    options = ["--print-code", "--print-line-info", "--no-dataflow"]
    return _run_tool("nvdisasm", options, cubin) or _run_tool("nvdisasm", ["--print-code"], cubin)


def _at_call_sites(ptx: str, cubin: bytes, file: str, metadata: Any, target: Target) -> bytes:
    """The same machine code with inlined instructions marked by their call site in ``file``.

    A cubin's line table has no call sites, so the PTX is assembled once more with them in place (some 30 ms). Where
    the code does not come out the same, byte by byte, the cubin itself is returned: its inlined instructions then map
    to no line.
    """
    marked = with_call_sites(ptx, file)
    if marked == ptx:
        return cubin
    try:
        again = _assemble(marked, metadata, target)
    except Exception:  # an assembler of another Triton version: do without
        return cubin
    return again if code_sections(again) == code_sections(cubin) else cubin


def _assemble(ptx: str, metadata: Any, target: Target) -> bytes:
    """PTX through the last step of Triton's own pipeline."""
    from triton.backends.compiler import Language
    from triton.compiler.compiler import make_backend

    from compiler.targets import gpu_target

    backend = make_backend(gpu_target(target))
    options = backend.parse_options(dict(metadata._asdict()))
    stages: dict[str, Any] = {}
    backend.add_stages(stages, options, Language.TRITON)
    return bytes(stages["cubin"](ptx, {}))


def code_sections(elf: bytes) -> dict[str, bytes]:
    """The sections ".text.*" of a 64-bit little-endian ELF file by name."""
    (table,) = struct.unpack_from("<Q", elf, 0x28)
    size, count, names_index = struct.unpack_from("<HHH", elf, 0x3A)
    headers = [struct.unpack_from("<IIQQQQ", elf, table + number * size) for number in range(count)]
    names_at = headers[names_index][4]
    found = {}
    for name_at, _, _, _, offset, length in headers:
        start = names_at + name_at
        name = elf[start : elf.index(b"\0", start)].decode()
        if name.startswith(".text."):
            found[name] = elf[offset : offset + length]
    return found


def _run_tool(name: str, options: Sequence[str], cubin: bytes) -> str:
    tool = _tool(name)
    if not tool.exists():
        return ""
    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        file.write(cubin)
        file.flush()
        done = subprocess.run([str(tool), *options, file.name], capture_output=True, text=True, check=False)
    return done.stdout if done.returncode == 0 else ""


# --- AMD -----------------------------------------------------------------------------------------------------------


def amd_usage(amdgcn: str) -> tuple[int | None, int | None]:
    """Vector registers per thread (accumulation registers included) and bytes of scratch memory per thread."""
    found = {
        key: int(value)
        for key, value in re.findall(r"^\s+\.(vgpr_count|private_segment_fixed_size):\s+(\d+)$", amdgcn, re.M)
    }
    return found.get("vgpr_count"), found.get("private_segment_fixed_size")
