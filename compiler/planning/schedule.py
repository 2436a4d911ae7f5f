"""The partition as launches: each group with the results it has to store, under the name of its kernel."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

from compiler.codegen.kernel import KernelSource, generate_kernel
from compiler.errors import at_node
from compiler.fusion import FusionGroup, Partition
from compiler.ir import Buffer, Extern, Program, TensorRef
from compiler.options import DEFAULTS, Options


@dataclass(eq=False)
class Launch:
    """One kernel launch: a group, the source generated for it, and the buffers that it writes."""

    name: str
    group: FusionGroup
    kernel: KernelSource
    stored: tuple[Buffer, ...]
    parts: int = 1  # how many launches this one was made of (``combine.py``)

    @property
    def reads(self) -> tuple[str, ...]:
        """Buffers read from memory, those whose memory the kernel goes on with included."""
        stored = {b.name for b in self.stored}
        return (*(b.name for b in self.kernel.arguments if b.name not in stored), *self.takes_over.values())

    @property
    def into(self) -> dict[str, str]:
        """What scatters write, and the buffer whose memory and elements each takes over."""
        stored = {b.name for b in self.stored}
        return {made: taken for made, taken in self.group.scattered.items() if made in stored}

    @property
    def over(self) -> dict[str, str]:
        """What is written into inputs, and the input whose memory each takes over."""
        return self.group.overwritten

    @property
    def takes_over(self) -> dict[str, str]:
        """What is written into memory that another buffer held until then, and that buffer."""
        return {**self.into, **self.over}

    @property
    def origins(self) -> tuple[str, ...]:
        """FX nodes computed here, each once, in graph order of first use."""
        return tuple(dict.fromkeys(node for loop in self.group.loops for node in loop.origins))


Scheduled = Launch | Extern


def schedule(partition: Partition, program: Program, options: Options = DEFAULTS) -> list[Scheduled]:
    """Turn groups into launches. A result is stored only where another step or the caller reads it."""
    readers: dict[str, set[int]] = defaultdict(set)
    for position, unit in enumerate(partition.schedule):
        for name in unit.reads if isinstance(unit, Extern) else unit.needs:
            readers[name].add(position)
    returned = {ref.buffer.name for ref in program.outputs if isinstance(ref, TensorRef)}
    result: list[Scheduled] = []
    for position, unit in enumerate(partition.schedule):
        if isinstance(unit, Extern):
            result.append(unit)
            continue
        needed = [
            loop.buffer
            for loop in unit.loops
            if loop.over or loop.name in returned or readers[loop.name] - {position}
        ]
        if not needed:
            continue  # nothing reads it: dead code that the capture left behind
        with at_node(needed[-1].fx_node):
            kernel = generate_kernel(unit, [b.name for b in needed], options)
        result.append(Launch(f"group{len(result)}", unit, kernel, tuple(needed)))
    return result


def writes_of(step: Scheduled) -> tuple[Buffer, ...]:
    """The buffers that a step makes."""
    if isinstance(step, Launch):
        return step.stored
    return tuple(b for b in step.outputs if b is not None)
