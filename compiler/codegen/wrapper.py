"""The wrapper: the Python program that allocates buffers, launches kernels and makes library calls, in order."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

import sympy
import torch

from compiler.codegen.kernel import MAX_BLOCK
from compiler.errors import CompileError
from compiler.index import INT32_MAX
from compiler.ir import Binding, Buffer, Extern, Program, ScalarRef, TensorRef
from compiler.lowering.symbols import size_printer, torch_expr
from compiler.planning.memory import MemoryPlan, inputs_left_in_place, views_from_calls
from compiler.planning.partitions import Piece
from compiler.planning.schedule import Launch, Scheduled, writes_of
from compiler.sizes import Size

HEADER = """import torch
from torch import device
from torch._C._dynamo.guards import _empty_strided_cuda as empty_strided_cuda, _reinterpret_tensor as reinterpret

from compiler.runtime.executable import aligned

aten = torch.ops.aten
empty_strided = torch.empty_strided
inf = float("inf")
nan = float("nan")

"""

# The same ATen functions through torch's own bindings: about half the CPU time of a call through torch.ops.
DIRECT: dict[Any, str] = {
    torch.ops.aten.mm.default: "torch.mm",
    torch.ops.aten.addmm.default: "torch.addmm",
    torch.ops.aten.bmm.default: "torch.bmm",
    torch.ops.aten.convolution.default: "torch.convolution",
}


def generate_wrapper(
    program: Program,
    steps: Sequence[Scheduled],
    plan: MemoryPlan,
    kernels: Mapping[str, str],
    *,
    observed: str = "",
    compared: bool = False,
) -> tuple[str, dict[str, Any]]:
    """The program's text, and the objects that its free names stand for.

    ``kernels`` maps a launch's name to its kernel's. The text defines ``call(args)``, which empties the list ``args``
    and returns a tuple. With ``observed``, the region's name, it calls ``mark(region, step)`` before each step and
    ``mark("", "")`` after the last. Where ``compared``, what library calls return goes through ``conform``, as
    ``compiler/runtime/results.py`` has it.
    """
    writer = _Writer(program, steps, plan.last_use, plan.reuses, kernels, observed, compared)
    return writer.run(input_names(program), list(enumerate(steps)), program.outputs)


def generate_concurrent(
    program: Program, steps: Sequence[Scheduled], plan: MemoryPlan, kernels: Mapping[str, str], *, observed: str
) -> tuple[str, dict[str, Any]]:
    """The same for steps that may run at the same time: what one is done with, another must not write to.

    Storage is only gone on with, and everything is kept until the end. It is observed and compared.
    """
    goes_on = {made: taken for step in steps if isinstance(step, Launch) for made, taken in step.takes_over.items()}
    kept = dict.fromkeys(plan.last_use, len(steps))
    writer = _Writer(program, steps, kept, goes_on, kernels, observed, True)
    return writer.run(input_names(program), list(enumerate(steps)), program.outputs)


def generate_piece(
    program: Program,
    steps: Sequence[Scheduled],
    plan: MemoryPlan,
    kernels: Mapping[str, str],
    piece: Piece,
    *,
    observed: str = "",
    compared: bool = False,
) -> tuple[str, dict[str, Any]]:
    """The same of a part of the schedule: ``call(args)`` takes what the piece reads and returns what it makes.

    A buffer takes over the storage of one that was made outside only where it goes on with what is in there or is what
    an input becomes: other storage belongs to whoever made it.
    """
    goes_on = {made: taken for step in steps if isinstance(step, Launch) for made, taken in step.takes_over.items()}
    part = [(position, steps[position]) for position in range(piece.first, piece.last)]
    inside = {buffer.name for _, step in part for buffer in writes_of(step)}
    reuses = {heir: source for heir, source in plan.reuses.items() if heir in inside and source in inside}
    writer = _Writer(program, steps, plan.last_use, {**reuses, **goes_on}, kernels, observed, compared)
    return writer.run(piece.reads, part, [ScalarRef(name) for name in piece.makes])


def generate_return(program: Program, names: Sequence[str]) -> tuple[str, dict[str, Any]]:
    """``call(args)`` that takes the variables ``names`` and returns the program's outputs."""
    return _Writer(program, [], {}, {}, {}, "", False).run(names, [], program.outputs)


def input_names(program: Program) -> list[str]:
    """The wrapper's variable for each input."""
    return list(program.input_names)


class _Writer:
    def __init__(
        self,
        program: Program,
        steps: Sequence[Scheduled],
        last_use: Mapping[str, int],
        reuses: Mapping[str, str],
        kernels: Mapping[str, str],
        observed: str,
        compared: bool,
    ) -> None:
        self.program = program
        self.last_use = last_use
        self.reuses = reuses
        self.kernels = kernels
        self.observed = observed
        self.compared = compared
        self.read = {name for step in steps if isinstance(step, Launch) for name in step.reads}
        self.lines: list[str] = []
        self.names: dict[str, Any] = {}
        self.bound: set[str] = set()  # symbols whose values are at hand
        self.taken_over = set(reuses.values())
        # Kernels assume aligned addresses, but a view may begin anywhere. Only they get a copy: results stay views.
        self.anywhere = views_from_calls(steps) | inputs_left_in_place(program)

    def run(
        self, inputs: Sequence[str], steps: Sequence[tuple[int, Scheduled]], results: Sequence[Any]
    ) -> tuple[str, dict[str, Any]]:
        self._line("def call(args):", 0)
        if inputs:
            self._line(f"{', '.join(inputs)}{',' if len(inputs) == 1 else ''} = args")
        self._line("args.clear()")
        self.bound = set(inputs)
        self._bind([b for b in self.program.bindings if b.name in self.bound])
        self.names.update(self.program.constants)
        for position, step in steps:
            if self.observed:
                self._line(f"mark({self.observed!r}, {step.name!r})")
            if isinstance(step, Launch):
                self._launch(step)
            else:
                self._extern(step)
            self._free(position, step)
        if self.observed:
            self._line('mark("", "")')
        outputs = ", ".join(self._value(x) for x in results)
        self._line(f"return ({outputs}{',' if len(results) == 1 else ''})")
        return HEADER + "\n" + "\n".join(self.lines) + "\n", self.names

    def _line(self, text: str, depth: int = 1) -> None:
        self.lines.append("    " * depth + text)

    def _launch(self, step: Launch) -> None:
        for buffer in step.stored:
            self._line(f"{buffer.name} = {self._allocate(buffer)}")
        names = [b.name for b in step.kernel.arguments]
        arguments = [f"aligned({name})" if name in self.anywhere else name for name in names]
        arguments += [self._number(value) for _, value in step.kernel.sizes]
        if step.kernel.largest:
            largest = [self._number(value) for value in step.kernel.largest]
            whole = largest[0] if len(largest) == 1 else f"max({', '.join(largest)})"
            arguments.append(f"wide={whole} > {INT32_MAX - MAX_BLOCK}")
        self._line(f"{self.kernels[step.name]}({', '.join(arguments)})")

    def _allocate(self, buffer: Buffer) -> str:
        source = self.reuses.get(buffer.name)
        size, stride = self._value(buffer.size), self._value(buffer.stride)
        if source is not None:
            return f"reinterpret({source}, {size}, {stride}, 0)"
        if buffer.device.type == "cuda":
            return f"empty_strided_cuda({size}, {stride}, {buffer.dtype})"
        return f"empty_strided({size}, {stride}, dtype={buffer.dtype}, device='{buffer.device}')"

    # --- sizes known only at run time ------------------------------------------------------------------------------

    def _bind(self, bindings: Sequence[Binding]) -> None:
        for binding in bindings:
            text = binding.name if binding.what == "value" else f"{binding.name}.{binding.what}({binding.dim})"
            if binding.rest:
                text = f"({text} - {binding.rest})"
            if binding.factor != 1:
                text = f"{text} // {binding.factor}"
            self._line(f"{binding.symbol} = {text}")
            self.bound.add(binding.symbol)

    def _number(self, value: Size) -> str:
        """A size, or a number made of sizes.

        Raises:
            CompileError: it takes a size that nothing in the program tells.
        """
        if isinstance(value, int):
            return str(value)
        expr = torch_expr(value)
        missing = sorted({str(s) for s in expr.free_symbols} - self.bound)
        if missing:
            raise CompileError(f"nothing tells the size {', '.join(missing)} at run time", stage="generate")
        text: str = size_printer().doprint(expr)
        if "math." in text:
            self.names["math"] = math
        return text

    def _extern(self, step: Extern) -> None:
        target = self._target(step.target)
        arguments = [self._value(x) for x in step.args]
        arguments += [f"{k}={self._value(v)}" for k, v in step.kwargs.items()]
        call = f"{target}({', '.join(arguments)})"
        results = step.result_names
        if not step.multiple:
            self._line(f"{results[0]} = {call}")
        elif len(results) == 1:
            self._line(f"{results[0]}, = {call}")
        else:
            self._line(f"{', '.join(results)} = {call}")
        self._bind(step.bindings)
        if self.compared:
            self._compare(step)

    def _compare(self, step: Extern) -> None:
        for output in step.outputs:
            if output is not None and self._known((*output.size, *output.stride)):
                layout = f"{self._value(output.size)}, {self._value(output.stride)}, {output.dtype}"
                known_by = f"{str(step.target)!r}, {output.name in self.read}"
                self._line(f"{output.name} = conform({output.name}, {layout}, {known_by})")

    def _known(self, sizes: Sequence[Size]) -> bool:
        symbols = {str(s) for size in sizes if not isinstance(size, int) for s in torch_expr(size).free_symbols}
        return symbols <= self.bound

    def _target(self, target: Any) -> str:
        if target in DIRECT:
            return DIRECT[target]
        if isinstance(target, torch._ops.OpOverload):
            if target.namespace == "aten":
                return f"aten.{target.overloadpacket.__name__}.{target._overloadname}"
            return f"torch.ops.{target.namespace}.{target.overloadpacket.__name__}.{target._overloadname}"
        return self._constant(getattr(target, "__name__", "function"), target)

    def _constant(self, stem: str, value: Any) -> str:
        name = re.sub(r"\W", "_", stem)
        while name in self.names and self.names[name] is not value:
            name += "_"
        self.names[name] = value
        return name

    def _value(self, value: Any) -> str:
        if isinstance(value, TensorRef):
            if value.whole:
                return value.buffer.name
            layout = f"{self._value(value.size)}, {self._value(value.stride)}, {self._number(value.offset)}"
            return f"reinterpret({value.buffer.name}, {layout})"
        if isinstance(value, ScalarRef):
            return value.name
        if isinstance(value, sympy.Expr):
            return self._number(value)
        if isinstance(value, list | tuple):
            inner = ", ".join(self._value(v) for v in value)
            if isinstance(value, list):
                return f"[{inner}]"
            return f"({inner}{',' if len(value) == 1 else ''})"
        if isinstance(value, dict):
            return f"{{{', '.join(f'{self._value(k)}: {self._value(v)}' for k, v in value.items())}}}"
        if isinstance(value, torch.device):
            return f"device({str(value)!r})"
        if value is None or isinstance(value, bool | int | float | str | torch.dtype | torch.layout):
            return repr(value) if not isinstance(value, torch.layout) else str(value)
        if isinstance(value, torch.memory_format):
            return str(value)
        return self._constant("constant", value)

    def _free(self, position: int, step: Scheduled) -> None:
        """Let go of what was used for the last time, but for storage that a later buffer takes over."""
        made = step.result_names if isinstance(step, Extern) else (b.name for b in step.stored)
        names = dict.fromkeys([*step.reads, *made])
        dead = [n for n in names if self.last_use.get(n) == position and n not in self.taken_over]
        if isinstance(step, Launch):  # whose storage is another's now need not be held under the old name, too
            sources = (self.reuses.get(b.name, "") for b in step.stored)
            dead += [
                n for n in dict.fromkeys(sources) if n and self.last_use.get(n, position) <= position and n not in dead
            ]
        dead = [n for n in dead if n not in self.program.constants]
        if dead:
            self._line(f"del {', '.join(dead)}")
