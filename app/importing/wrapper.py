"""Inductor's generated program, read for what it defines and in which order it calls it.

The program is parsed, never run. Above a kernel, Inductor writes the graph fragment that it lowered:

    # Graph fragment:
    #   %addmm : Tensor "f32[8, 32][32, 1]cuda:0" = PlaceHolder[target=addmm]
    #   %mul : Tensor "f32[8, 32][32, 1]cuda:0"[num_users=1] = call_function[target=torch.ops.aten.mul.Tensor](args = …
    #   return %mul
    triton_poi_fused_mul_0 = async_compile.triton('triton_poi_fused_mul_0', '''…''', device_str='cuda')

and above a call, with provenance on, a handle that names it elsewhere:

    # [Provenance debug handles] triton_poi_fused_mul_0:2
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

_HANDLE = re.compile(r"\[Provenance debug handles\] (?P<handle>\S+)")
_AOT_ID = re.compile(r"^# AOT ID: \['(?P<number>\d{1,9})_(?P<kind>\w+)'\]", re.M)
_FRAGMENT_NODE = re.compile(r"^#\s+%(?P<name>\w+) : .*= (?:call_function|call_method)\[")
_FRAGMENT_READ = re.compile(r"^#\s+%(?P<name>\w+) : .*= PlaceHolder\[target=(?P<target>\w+)\]")
_FRAGMENT_RETURN = re.compile(r"^#\s+return (?P<names>.+)$")
_LIBRARY = ("extern_kernels.", "torch.ops.", "aten.", "inductor_ops.", "_quantized.")
_BOOKKEEPING = ("reinterpret_tensor", "alloc_from_pool", "assert_", "copy_if_misaligned", "set_device")
_LANGUAGES = {"triton": "triton", "cpp": "cpp", "cpp_pybinding": "cpp", "cuda": "cuda", "cutedsl": "cutedsl"}


@dataclass
class KernelText:
    """A kernel that the program defines, and what the fragment above it says."""

    name: str
    language: str
    source: str
    nodes: list[str] = field(default_factory=list)  # FX nodes that it computes, at its first launch
    reads: list[str] = field(default_factory=list)  # FX nodes and buffers that it reads
    writes: list[str] = field(default_factory=list)


@dataclass
class Step:
    """A launch or a library call, in the order of the program. ``kernel`` is "" for a library call."""

    kernel: str
    operation: str  # "extern_kernels.addmm"; a kernel's name
    handle: str  # of the provenance mappings; "" where they are off
    reads: list[str]  # buffers and inputs among the arguments
    result: str  # the buffer that a library call's result is bound to, or its "out" argument


@dataclass
class BufferText:
    """A buffer that the program allocates: bytes (0 where symbolic) and the steps that it lives between."""

    name: str
    bytes: int
    first: int
    last: int
    reuses: str = ""


@dataclass
class Program:
    """What was read of one program."""

    number: int | None = None
    kind: str = ""  # "inference", "forward", "backward"; "" where it does not say
    kernels: dict[str, KernelText] = field(default_factory=dict)
    steps: list[Step] = field(default_factory=list)
    buffers: list[BufferText] = field(default_factory=list)
    partitions: int = 0  # parts that a CUDA Graph each would hold, where the program is split
    problem: str = ""  # why it could not be read


def read_program(text: str) -> Program:
    """Read the text that Inductor calls "output code"."""
    program = Program()
    match = _AOT_ID.search(text)
    if match is not None:
        program.number, program.kind = int(match["number"]), match["kind"]
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        program.problem = "The generated program is not in Python, so its calls are not told apart."
        return program
    lines = text.splitlines()
    for statement in tree.body:
        kernel = _definition(statement, lines)
        if kernel is not None:
            program.kernels[kernel.name] = kernel
    functions = {f.name: f for f in ast.walk(tree) if isinstance(f, ast.FunctionDef)}
    program.partitions = sum(name.startswith("partition_") for name in functions)
    if "call" in functions:
        reader = _CallReader(program, functions, lines)
        reader.read(functions["call"].body)
        program.buffers = list(reader.buffers.values())
    return program


def _definition(statement: ast.stmt, lines: Sequence[str]) -> KernelText | None:
    """``NAME = async_compile.triton('NAME', '''source''', …)`` and its like for other languages."""
    if not (isinstance(statement, ast.Assign) and isinstance(statement.value, ast.Call)):
        return None
    call, target = statement.value, statement.targets[0]
    function = ast.unparse(call.func)
    if not function.startswith("async_compile.") or not isinstance(target, ast.Name):
        return None
    language = _LANGUAGES.get(function.removeprefix("async_compile."))
    texts = [a.value for a in call.args if isinstance(a, ast.Constant) and isinstance(a.value, str)]
    if language is None or not texts:
        return None
    kernel = KernelText(target.id, language, max(texts, key=len).strip() + "\n")
    for line in _comments_above(statement.lineno, lines):
        if (match := _FRAGMENT_READ.match(line)) is not None:
            kernel.reads.append(match["target"])
        elif (match := _FRAGMENT_NODE.match(line)) is not None:
            kernel.nodes.append(match["name"])
        elif (match := _FRAGMENT_RETURN.match(line)) is not None:
            kernel.writes += [name.strip().lstrip("%") for name in match["names"].split(",")]
    return kernel


def _comments_above(line: int, lines: Sequence[str]) -> list[str]:
    """The comments directly above a line (1-based), in order."""
    first = line - 1
    while first > 0 and lines[first - 1].lstrip().startswith("#"):
        first -= 1
    return [text.strip() for text in lines[first : line - 1]]


class _CallReader:
    """Follows the statements of ``call``, and of the partitions that it calls, in order."""

    def __init__(self, program: Program, functions: Mapping[str, ast.FunctionDef], lines: Sequence[str]) -> None:
        self.buffers: dict[str, BufferText] = {}
        self._program = program
        self._functions = functions
        self._lines = lines
        self._handle = ""
        self._within: set[str] = set()  # the partitions that are being read

    def read(self, body: Sequence[ast.stmt]) -> None:
        """Read these statements and those within them."""
        for statement in body:
            for line in _comments_above(statement.lineno, self._lines):
                if (match := _HANDLE.search(line)) is not None:
                    self._handle = match["handle"]
            if isinstance(statement, (ast.With, ast.If, ast.For, ast.Try)):
                self.read(statement.body)
                self.read(getattr(statement, "orelse", []))
                continue
            partition = self._partition(statement)
            if partition is not None:
                self._read_partition(partition)
                continue
            step = self._step(statement)
            if step is not None:
                self._program.steps.append(step)
            self._storage(statement)

    def _read_partition(self, partition: ast.FunctionDef) -> None:
        """Read it, unless it is being read: Inductor's never call themselves, but a damaged log's may."""
        if partition.name in self._within:
            return
        self._within.add(partition.name)
        self.read(partition.body)
        self._within.discard(partition.name)

    def _partition(self, statement: ast.stmt) -> ast.FunctionDef | None:
        """The function behind ``self.partitions[0](args)``."""
        call = getattr(statement, "value", None)
        if not (isinstance(call, ast.Call) and isinstance(call.func, ast.Subscript)):
            return None
        of = ast.unparse(call.func.value)
        return self._functions.get(f"partition_{ast.unparse(call.func.slice)}") if of == "self.partitions" else None

    def _step(self, statement: ast.stmt) -> Step | None:
        call = getattr(statement, "value", None)
        if not isinstance(call, ast.Call):
            return None
        function = ast.unparse(call.func)
        name = function.removesuffix(".run")
        handle, reads = self._handle, list(dict.fromkeys(_names(call)))
        if name in self._program.kernels:
            self._handle = ""
            return Step(name, name, handle, reads, "")
        if not function.startswith(_LIBRARY) or any(word in function for word in _BOOKKEEPING):
            return None
        out = next((ast.unparse(k.value) for k in call.keywords if k.arg == "out"), "")
        if not out and isinstance(statement, ast.Assign):
            out = ast.unparse(statement.targets[0])
        self._handle = ""
        return Step("", function, handle, [name for name in reads if name != out], out)

    def _storage(self, statement: ast.stmt) -> None:
        """Buffers that are allocated, taken over or read by a statement."""
        now = max(len(self._program.steps) - 1, 0)
        for name in _names(statement):
            if name in self.buffers and not isinstance(statement, ast.Delete):
                self.buffers[name].last = max(self.buffers[name].last, now)
        if not (isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Name)):
            return
        name, value = statement.targets[0].id, statement.value
        if isinstance(value, ast.Call) and ast.unparse(value.func).startswith("empty_strided"):
            begin = len(self._program.steps)
            self.buffers[name] = BufferText(name, _bytes(value), begin, begin)
        elif "# reuse" in self._lines[statement.lineno - 1]:
            taken = next((n for n in _names(value) if n in self.buffers), "")
            if taken:
                size = self.buffers[taken].bytes
                begin = len(self._program.steps)
                self.buffers[name] = BufferText(name, size, begin, begin, reuses=taken)


def _names(node: ast.AST) -> Iterator[str]:
    return (n.id for n in ast.walk(node) if isinstance(n, ast.Name) and not n.id.startswith("raw_stream"))


_WIDTHS = {"float64": 8, "int64": 8, "float32": 4, "int32": 4, "float16": 2, "bfloat16": 2, "int16": 2,
           "complex64": 8, "complex128": 16, "bool": 1, "int8": 1, "uint8": 1}  # fmt: skip


def _numbers(node: ast.expr) -> list[int]:
    """The numbers of a tuple such as ``(8, 32)``.

    Raises:
        ValueError, TypeError: it is none, or something in it is no number.
    """
    numbers = list(ast.literal_eval(node))
    if not all(isinstance(number, int) for number in numbers):
        raise TypeError("a size is no number")
    return numbers


def _bytes(call: ast.Call) -> int:
    """Bytes of ``empty_strided_cuda(shape, stride, torch.dtype)``; 0 where a size is no number."""
    if len(call.args) < 3:
        return 0
    dtype = ast.unparse(call.args[2]).removeprefix("torch.")
    width = _WIDTHS.get(dtype, 1 if dtype.startswith("float8") else 0)
    try:
        shape, stride = _numbers(call.args[0]), _numbers(call.args[1])
    except (ValueError, TypeError, SyntaxError, RecursionError, MemoryError):
        return 0
    extent = 1 + sum((size - 1) * step for size, step in zip(shape, stride, strict=False))
    return width * extent if 0 not in shape else 0
