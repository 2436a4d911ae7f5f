"""A compiled region as a callable: the wrapper with something to launch its kernels."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import torch

from compiler.codegen.compile import CompiledKernel, constexpr_values
from compiler.codegen.config import grid_function, interpreter_config, row_block
from compiler.codegen.text import FLOAT8
from compiler.ir import Buffer
from compiler.runtime.flags import flags, flipped
from compiler.runtime.observe import Mark, Observer
from compiler.runtime.results import Conform
from compiler.runtime.signature import span

Launcher = Callable[..., None]
ALIGNMENT = 16  # bytes that kernels assume of every pointer


def gpu_launcher(kernel: CompiledKernel, device: int) -> Launcher:
    """Launches the compiled binary on the current stream of ``device``."""
    constants = constexpr_values(kernel.function, kernel.source, kernel.config)
    launch = kernel.binary.run  # loads the binary; calling it directly leaves out Triton's launch hooks
    function, metadata = kernel.binary.function, kernel.binary.packed_metadata
    x, y, z = kernel.grid
    current_stream = torch._C._cuda_getCurrentRawStream
    if kernel.source.longer is not None:
        return _by_row(kernel, lambda chosen: _sized_launcher(chosen, device))
    if kernel.source.sizes:
        return _sized_launcher(kernel, device)
    if not x * y * z:
        return _nothing

    def run(*tensors: torch.Tensor) -> None:
        # Addresses, for Triton asks the driver about every tensor whether it is the GPU's.
        addresses = [tensor.data_ptr() for tensor in tensors]
        launch(x, y, z, current_stream(device), function, metadata, None, None, None, *addresses, *constants)

    return run


def _nothing(*_: Any) -> None:
    """A kernel over no elements."""


def _by_row(kernel: CompiledKernel, launcher_of: Callable[[CompiledKernel], Launcher]) -> Launcher:
    """Launches the kernel for the row's length that comes with each call, made when it is first needed."""
    source = kernel.source
    pointers = len(source.arguments)
    place = pointers + [name for name, _ in source.sizes].index("rnumel")
    launchers = {kernel.config.blocks["RBLOCK"]: launcher_of(kernel)}

    def run(*args: Any, wide: bool = False) -> None:
        row = args[place]
        block = row_block(row) if row <= source.most else 0
        launch = launchers.get(block)
        if launch is None:
            assert kernel.for_rows is not None
            launch = launchers[block] = launcher_of(kernel.for_rows(block))
        if not block:
            args = (*args[:pointers], *(args[pointers + at] for at in source.longer_sizes))
        launch(*args, wide=wide)

    return run


def _sized_launcher(kernel: CompiledKernel, device: int) -> Launcher:
    """Launches a kernel over sizes that come with each call; ``wide`` where they are too large for an int32."""
    source, config = kernel.source, kernel.config
    constants = constexpr_values(kernel.function, source, config)
    current_stream = torch._C._cuda_getCurrentRawStream
    pointers = len(source.arguments)
    binaries = {False: kernel.binary}
    grid_at = grid_function(source, config)

    def run(*args: Any, wide: bool = False) -> None:
        x, y, z = grid_at(args[pointers:])
        if not x * y * z:
            return
        binary = binaries.get(wide)
        if binary is None:
            assert kernel.compile_wide is not None
            binary = binaries[wide] = kernel.compile_wide()
        stream = current_stream(device)
        binary.run(x, y, z, stream, binary.function, binary.packed_metadata, None, None, None, *args, *constants)

    return run


def interpreting() -> bool:
    """Whether Triton was asked (by TRITON_INTERPRET=1 before its import) to run kernels on the CPU."""
    return os.environ.get("TRITON_INTERPRET") == "1"


def interpreted_launcher(kernel: CompiledKernel) -> Launcher:
    """Runs the kernel's own source through Triton's interpreter on CPU tensors."""
    return _by_row(kernel, _interpreted) if kernel.source.longer is not None else _interpreted(kernel)


def _interpreted(kernel: CompiledKernel) -> Launcher:
    from triton.runtime.errors import InterpreterError

    from compiler.runtime.interpreter import interpretable

    function = interpretable(kernel.function)
    config = interpreter_config(kernel.source, kernel.config)
    grid_at = grid_function(kernel.source, config)
    pointers = len(kernel.source.arguments)

    def run(*given: Any, wide: bool = False) -> None:
        grid = grid_at(given[pointers:])
        if 0 in grid:
            return
        args = [x.view(torch.uint8) if isinstance(x, torch.Tensor) and x.dtype in FLOAT8 else x for x in given]
        with np.errstate(all="ignore"):  # lanes that a mask discards may divide by zero
            try:
                function[grid](*args, **config.blocks)
            except InterpreterError as error:
                if isinstance(error.__cause__, IndexError):  # a wrong position, not a wrong kernel
                    raise error.__cause__ from None
                raise

    return run


Call = Callable[[list[Any]], Any]


def build(wrapper: str, names: Mapping[str, Any], launchers: Mapping[str, Launcher]) -> Call:
    """The wrapper's ``call`` with its kernels and constants bound."""
    namespace: dict[str, Any] = {}
    exec(compile(wrapper, "<fusescope wrapper>", "exec"), namespace)
    namespace.update(names)
    namespace.update(launchers)
    call: Call = namespace["call"]
    return call


class Executable:
    """Runs a region: ``executable([inputs...]) -> tuple``.

    The list is emptied, so that inputs that nobody else holds are freed as soon as the wrapper is done with them.

    Inputs that are not aligned as the kernels assume are copied first, and copied back where the region writes into
    them. ``static`` inputs stay where they are, so they are looked at once.
    """

    def __init__(
        self,
        call: Call,
        inputs: Sequence[Buffer | None],
        *,
        static: frozenset[int] = frozenset(),
        mutated: frozenset[int] = frozenset(),
        observer: Observer | None = None,
        variant: Callable[[Mark | None, Conform | None], Call] | None = None,
    ):
        """``variant`` makes a call that tells a ``Mark`` where its steps begin, used while ``observer`` listens, and
        whose library calls' results are made to ``Conform``: the first call's, and all where one then differed."""
        self._call = call
        self._observer = observer or Observer()
        self._variant = variant
        self._conform: Conform | None = None  # where some library call returns something else than was expected
        self._positions = tuple(i for i, b in enumerate(inputs) if b is not None and b.device.type == "cuda")
        self._checked: tuple[int, ...] | None = None
        self._static = static
        self._mutated = mutated

    def __call__(self, args: list[Any]) -> Any:
        """Run once and empty ``args``."""
        first = self._checked is None
        if self._checked is None:
            moved = [i for i in self._positions if i not in self._static or args[i].data_ptr() % ALIGNMENT]
            self._checked = tuple(moved)
        copied: list[tuple[torch.Tensor, torch.Tensor]] = []
        for i in self._checked:
            if args[i].data_ptr() % ALIGNMENT:
                original, args[i] = args[i], aligned(args[i])
                if i in self._mutated:
                    copied.append((original, args[i]))
        mark = self._observer.mark
        conform = Conform() if first else self._conform
        call = self._call
        if self._variant is not None and (first or mark is not None):
            call = self._variant(mark, conform)
        with torch._C._AutoDispatchBelowAutograd():  # gradients are AOTAutograd's work; the calls need not look
            results = call(args)
            if first and conform is not None and conform.differed and self._variant is not None:
                self._conform, self._call = conform, self._variant(None, conform)
            for original, copy in copied:
                original.copy_(copy)
        return results


def aligned(tensor: torch.Tensor) -> torch.Tensor:
    """The tensor itself where its address is as kernels assume, else a copy."""
    return _aligned_copy(tensor) if tensor.data_ptr() % ALIGNMENT else tensor


def _aligned_copy(tensor: torch.Tensor) -> torch.Tensor:
    """A copy in fresh memory with the same size, strides (overlapping ones as they are) and flags."""
    kept = flags(tensor)
    bare = flipped(tensor, kept)
    storage = bare.as_strided((span(tensor),), (1,), tensor.storage_offset()).clone()
    return flipped(storage.as_strided(tensor.shape, tensor.stride(), 0), kept)
