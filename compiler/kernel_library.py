"""The kernels of a compilation: each compiled once, in the fastest of its configurations, for whoever launches it."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from typing import Any

import torch

from compiler.codegen.attempts import attempt
from compiler.codegen.binary import read_binary
from compiler.codegen.compile import CompiledKernel, compile_binary, load_function
from compiler.codegen.config import choose_config, configs, grid_of
from compiler.codegen.kernel import KernelSource
from compiler.options import DEFAULTS, Options
from compiler.passes.products import Choice, Padding, Product
from compiler.planning.schedule import Launch
from compiler.report import Target
from compiler.runtime.autotune import tune, worth_tuning
from compiler.runtime.executable import gpu_launcher
from compiler.runtime.product_trials import time_bias, time_padding

MAX_COMPILE_THREADS = 8
MAX_TRIALS = 5  # configurations tried beside the default

# A kernel's text says nothing of what its pointers point to: sums of int64 and of float32 read alike.
KernelKey = tuple[str, tuple[torch.dtype, ...]]


class KernelLibrary:
    """Compiled kernels by their source and the dtypes of their arguments, so that identical layers share one."""

    def __init__(self, target: Target, *, binaries: bool, texts: bool, options: Options = DEFAULTS) -> None:
        """``binaries``: compile for the target (else only define); ``texts``: keep IR texts for the report.

        ``options`` hold for every region that shares the library.
        """
        self.target = target
        self.options = options
        self.binaries = binaries
        self.texts = texts
        # Times mean something only on the GPU that the kernels are for.
        self.tunes = binaries and target.local and options.autotune
        self.by_source: dict[KernelKey, CompiledKernel] = {}
        self._paddings: dict[tuple[Product, Padding], Choice | None] = {}
        self._biases: dict[Product, tuple[float, float] | None] = {}

    def add(self, launches: Sequence[Launch], on_progress: Callable[[float], None] | None = None) -> dict[str, str]:
        """Compile what is new among ``launches``; launch name -> kernel name."""
        fresh: list[CompiledKernel] = []
        names: dict[str, str] = {}
        for launch in launches:
            longer = launch.kernel.longer
            text = launch.kernel.source + (longer.source if longer is not None else "")
            key = (text, tuple(buffer.dtype for buffer in launch.kernel.arguments))
            if key not in self.by_source:
                kernel = self._define(launch)
                self.by_source[key] = kernel
                fresh.append(kernel)
            names[launch.name] = self.by_source[key].name
        if self.binaries and fresh:
            self._compile(fresh, on_progress)
        return names

    def time_padding(self, product: Product, padding: Padding) -> Choice | None:
        """A product as it is and padded, timed once; None where that cannot be."""
        if (product, padding) not in self._paddings:
            self._paddings[product, padding] = time_padding(product, padding, self.target)
        return self._paddings[product, padding]

    def time_bias(self, product: Product) -> tuple[float, float] | None:
        """A product with a bias and without, in µs, timed once; None where that cannot be."""
        if product not in self._biases:
            self._biases[product] = time_bias(product, self.target)
        return self._biases[product]

    def _define(self, launch: Launch) -> CompiledKernel:
        source = launch.kernel
        name = kernel_name(launch, len(self.by_source))
        text = source.source.replace("{name}", name)
        config = choose_config(source, self.target, self.options)
        kernel = CompiledKernel(name, text, source, config, grid_of(source, config), load_function(name, text))
        if source.longer is not None:
            kernel.for_rows = partial(self._for_rows, kernel)
        return kernel

    def _for_rows(self, kernel: CompiledKernel, block: int) -> CompiledKernel:
        """The kernel for rows that ``block`` holds, or with 0 the one that passes over longer ones.

        It is made when the first such row comes.
        """
        source = kernel.source
        name, text, function = kernel.name, kernel.text, kernel.function
        if not block:
            assert source.longer is not None
            source, name = source.longer, f"{kernel.name}_in_passes"
            text = source.source.replace("{name}", name)
            function = load_function(name, text)
        config = choose_config(source, self.target, self.options, row=block or None)
        made = CompiledKernel(name, text, source, config, grid_of(source, config), function)
        if self.binaries:
            made.binary = self._binary(made)
            made.compile_wide = partial(self._binary, made, wide=True)
        return made

    def _compile(self, kernels: Sequence[CompiledKernel], on_progress: Callable[[float], None] | None) -> None:
        # the first import of Triton's compiler from several threads at once would race
        import triton.compiler  # noqa: F401

        tuned = {id(k): self._candidates(k) for k in kernels if self.tunes and worth_tuning(k)}
        jobs = [*kernels, *(c for candidates in tuned.values() for c in candidates[1:])]
        workers = min(MAX_COMPILE_THREADS, os.cpu_count() or 1, len(jobs))
        with ThreadPoolExecutor(workers) as pool:
            for done, _ in enumerate(pool.map(self._compile_one, jobs), 1):
                if on_progress is not None:
                    on_progress(done / len(jobs))
            for kernel in kernels:
                if id(kernel) in tuned:
                    self._tune(kernel, tuned[id(kernel)])
            if self.texts:
                whole = [k for k in kernels if k.binary is not None]
                facts = pool.map(lambda kernel: read_binary(kernel.binary, self.target), whole)
                for kernel, read in zip(whole, facts, strict=True):
                    kernel.facts = read

    def _compile_one(self, kernel: CompiledKernel) -> None:
        try:
            kernel.binary = self._binary(kernel)
            kernel.compile_wide = partial(self._binary, kernel, wide=True)
        except Exception as error:  # Triton raises many kinds; the report shows the kernel with its error
            kernel.error = error_text(error)

    def _candidates(self, kernel: CompiledKernel) -> list[CompiledKernel]:
        """The kernel itself and copies in the other configurations that are worth a try."""
        others = [c for c in configs(kernel.source, self.target, self.options) if c != kernel.config][:MAX_TRIALS]
        return [kernel, *(replace(kernel, config=c, grid=grid_of(kernel.source, c)) for c in others)]

    def _tune(self, kernel: CompiledKernel, candidates: Sequence[CompiledKernel]) -> None:
        """Give the kernel the fastest of its configurations."""
        compiled = [c for c in candidates if c.binary is not None]
        device = torch.cuda.current_device()
        chosen, kernel.trials = tune(compiled, lambda candidate: gpu_launcher(candidate, device), self.target)
        kernel.config, kernel.grid, kernel.binary, kernel.error = chosen.config, chosen.grid, chosen.binary, ""

    def _binary(self, kernel: CompiledKernel, wide: bool = False) -> Any:
        return attempt(
            lambda: compile_binary(kernel.function, kernel.source, kernel.config, self.target, wide=wide)
        )


def error_text(error: BaseException) -> str:
    """An error and what it was raised from: Triton's own message often only marks the place."""
    lines = []
    cause: BaseException | None = error
    while cause is not None:
        lines.append(str(cause).strip() or type(cause).__name__)
        cause = cause.__cause__
    return "\n".join(dict.fromkeys(lines))


def kernel_name(launch: Launch, number: int) -> str:
    """ "pointwise_add_mul_relu_0": the kind, the ops in order without repeats, a number that makes it unique."""
    ops = list(dict.fromkeys(re.sub(r"_\d+$", "", node) for node in launch.origins))
    shown = "_".join(ops[:6]) + ("_etc" if len(ops) > 6 else "")
    return re.sub(r"\W", "_", f"{kind_of(launch.kernel)}_{shown}_{number}")


def kind_of(kernel: KernelSource) -> str:
    """ "pointwise" or "reduction"."""
    return "reduction" if kernel.domain.r is not None else "pointwise"
