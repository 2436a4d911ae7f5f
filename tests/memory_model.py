"""The memory of an iteration by shapes alone: which storages live when, in eager and in our own wrapper.

Models run on fake tensors, so that an iteration takes neither time nor memory; a storage counts from the op that makes
it until nothing holds it. What the libraries allocate inside a call is not seen.
"""

from __future__ import annotations

import contextlib
import importlib
import weakref
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor
from torch._subclasses.fake_tensor import FakeTensor
from torch.utils import _pytree as pytree
from torch.utils._python_dispatch import TorchDispatchMode

from compiler.backend import Session, fusescope
from compiler.dynamo.without_values import with_fakes
from compiler.kernel_library import KernelLibrary
from compiler.options import DEFAULTS, Options
from compiler.region import CompiledRegion
from compiler.runtime.executable import build
from compiler.runtime.modes import Iteration
from compiler.targets import resolve

Region = Callable[[list[Any]], Any]


class Meter(TorchDispatchMode):
    """Counts the bytes of storages made while it is on. ``peak`` is the most that lived at once."""

    def __init__(self) -> None:
        super().__init__()
        self.live = 0
        self.peak = 0
        self._known: dict[int, Any] = {}
        self._before: set[int] = set()

    @classmethod
    def is_infra_mode(cls) -> bool:
        """Whether compiled code runs under this mode as without it: it only looks on."""
        return True

    @classmethod
    def ignore_compile_internals(cls) -> bool:
        """The same, to torch's guards."""
        return True

    def ignore(self, tensors: Sequence[Any]) -> None:
        """Storages that were there before."""
        self._before |= {t.untyped_storage()._cdata for t in tensors if isinstance(t, Tensor)}

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        result = func(*args, **(kwargs or {}))
        for value in pytree.tree_leaves(result):
            if isinstance(value, Tensor):
                self._note(value.untyped_storage())
        return result

    def _note(self, storage: torch.UntypedStorage) -> None:
        key = storage._cdata
        if key in self._known or key in self._before:
            return
        size = storage.nbytes()
        self._known[key] = weakref.finalize(storage, self._gone, key, size)
        self.live += size
        self.peak = max(self.peak, self.live)

    def _gone(self, key: int, size: int) -> None:
        self._known.pop(key, None)
        self.live -= size


@dataclass
class Measured:
    """Peaks in bytes above what was there before; ``regions`` are the compiled ones in the order of compilation."""

    eager: int
    compiled: int
    regions: list[CompiledRegion] = field(default_factory=list)


def example_of(name: str, options: Mapping[str, Any]) -> tuple[Any, tuple[Any, ...], bool]:
    """A gallery model, its inputs, and whether its example trains it."""
    module = importlib.import_module(f"resources.examples.{name}")
    model, inputs = getattr(module, name)(**options)
    return model, tuple(inputs), module.TRAINING


def on_shapes(region: CompiledRegion, meter: Meter) -> Region:
    """The region's own wrapper on fake tensors, with kernels that do nothing."""
    mode: list[Any] = []

    def reinterpret(tensor: Tensor, size: Sequence[int], stride: Sequence[int], offset: int) -> Tensor:
        return tensor.as_strided(size, stride, tensor.storage_offset() + offset)

    names = {**region.wrapper_names, "reinterpret": reinterpret, "aligned": lambda tensor: tensor}
    call = build(region.wrapper, names, {kernel: lambda *a, **k: None for kernel in set(region.kernels.values())})

    def run(args: list[Any]) -> Any:
        if not mode:
            mode.append(next(a.fake_mode for a in args if isinstance(a, FakeTensor)))
        with mode[0], meter, torch._C._AutoDispatchBelowAutograd():
            return call(args)

    return run


def measure(
    model: Any, inputs: tuple[Any, ...], training: bool, options: Options = DEFAULTS, target: str = "h100"
) -> Measured:
    """One iteration in eager and compiled."""
    torch._dynamo.reset()
    chosen = resolve(target)
    model, inputs = with_fakes(model, inputs)
    meters = []
    kept = Session(chosen, KernelLibrary(chosen, binaries=False, texts=False, options=options))
    meter = Meter()

    def executable(region: CompiledRegion) -> Region:
        run = on_shapes(region, meter)
        run._boxed_call = True  # type: ignore[attr-defined]
        return run

    settings = {"session": kept, "executable": executable}
    compiled = torch.compile(model, backend=lambda gm, x: fusescope(gm, x, options=settings))
    for call in (model, compiled):
        iteration = Iteration(call, model, inputs, training=training)
        for warm in (True, False):
            for parameter in iteration.parameters:
                parameter.grad = None
            mine = meter if call is compiled else Meter()
            mine.live = mine.peak = 0
            mine._known.clear()
            held = [*inputs]
            if isinstance(model, torch.nn.Module):
                held += [*model.parameters(), *model.buffers()]
            mine.ignore(held)
            with mine if not warm else contextlib.nullcontext():
                result = iteration()
            if not warm:
                meters.append(mine.peak)
            del result
    return Measured(meters[0], meters[1], kept.regions)
