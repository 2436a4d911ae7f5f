"""Inductor's kernels as its wrapper defines them; those in Triton compiled by Inductor's own code for the target."""

from __future__ import annotations

import ast
import linecache
import os
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from compiler.codegen.attempts import attempt
from compiler.codegen.binary import BinaryFacts, read_binary
from compiler.kernel_library import MAX_COMPILE_THREADS, error_text
from compiler.patching import replaced
from compiler.report import Target

_DEFINITION = re.compile(r"^(\w+) = async_compile\.triton\('(\w+)', r?'''(.*?)'''", re.M | re.S)
_CPP_DEFINITION = re.compile(r"^(\w+) = async_compile\.cpp_pybinding\(\[.*?\], r?'''(.*?)'''\)", re.M | re.S)


@dataclass
class InductorKernel:
    """A kernel, the configuration it is shown in, and what compiling it told."""

    name: str
    source: str
    function: str  # the name that the source defines
    binary: BinaryFacts = field(default_factory=BinaryFacts)
    config: dict[str, int] = field(default_factory=dict)
    timed: bool = False  # the configuration is the one that Inductor chose by timing, or there is only one
    grid_of: Callable[[Mapping[str, int]], list[int]] | None = None
    error: str = ""
    language: str = "triton"


def kernels_in(wrapper: str) -> dict[str, InductorKernel]:
    """The kernels that a wrapper defines, by name: in Triton, and in C++ for the CPU."""
    found = {m[1]: InductorKernel(m[1], m[3].strip() + "\n", m[2]) for m in _DEFINITION.finditer(wrapper)}
    for m in _CPP_DEFINITION.finditer(wrapper):
        found[m[1]] = InductorKernel(m[1], m[2].strip() + "\n", "kernel", timed=True, language="cpp")
    return found


def launches_in(wrapper: str) -> list[str]:
    """Names of the kernels that a wrapper launches, in order, with repeats. Those that it launches in the branches of a
    condition or in a loop, too, are left out: only a run knows how often they come."""
    tree = ast.parse(wrapper)
    functions = {f.name: f for f in ast.walk(tree) if isinstance(f, ast.FunctionDef)}
    in_cpp = {match[1] for match in _CPP_DEFINITION.finditer(wrapper)}
    found = list(_launched(functions["call"].body, functions, in_cpp)) if "call" in functions else []
    uncounted = {name for name, counted in found if not counted}
    return [name for name, _ in found if name not in uncounted]


def _launched(
    body: Sequence[ast.stmt], functions: Mapping[str, ast.FunctionDef], in_cpp: Collection[str], counted: bool = True
) -> Iterator[tuple[str, bool]]:
    """Each kernel launched, and whether that is neither in a branch nor in a loop."""
    for statement in body:
        if isinstance(statement, (ast.With, ast.If, ast.While)):
            surely = counted and isinstance(statement, ast.With)
            inner = [*statement.body, *getattr(statement, "orelse", [])]
            yield from _launched(inner, functions, in_cpp, surely)
        call = getattr(statement, "value", None)  # of an assignment, or a call alone
        match call.func if isinstance(call, ast.Call) else None:
            case ast.Attribute(value=ast.Name(name), attr="run"):
                yield name, counted
            case ast.Name(name) if name in in_cpp:
                yield name, counted
            case ast.Name(name) if name in functions:  # a graph that the graph calls
                yield from _launched(functions[name].body, functions, in_cpp, counted)
            case ast.Subscript(value=ast.Attribute(attr="partitions"), slice=ast.Constant(int(number))):
                yield from _launched(functions[f"partition_{number}"].body, functions, in_cpp, counted)


def compile_kernels(
    kernels: Sequence[InductorKernel], target: Target, chosen: Mapping[str, Any], on_done: Callable[[float], None]
) -> None:
    """Compile each Triton kernel and read its binary; what is in C++ is compiled when Inductor's program is loaded.

    Args:
        chosen: kernel -> the configuration that Inductor chose for it on this machine, where it ran.
        on_done: called with the share (0..1) that is done.
    """
    kernels = [kernel for kernel in kernels if kernel.language == "triton"]
    if not kernels:
        return
    import triton.compiler  # noqa: F401  several threads must not be the first to import it

    # Triton's binary is wanted, not the launcher that Inductor would wrap around it
    with _no_static_launcher(), ThreadPoolExecutor(min(MAX_COMPILE_THREADS, os.cpu_count() or 1)) as pool:
        futures = [pool.submit(_compile, kernel, target, chosen.get(kernel.name)) for kernel in kernels]
        for number, future in enumerate(futures, 1):
            future.result()
            on_done(number / len(futures))


def _compile(kernel: InductorKernel, target: Target, chosen: Any) -> None:
    try:
        tuner = _load(kernel)
        config = chosen if chosen is not None else tuner.configs[0]
        kernel.timed = chosen is not None or len(tuner.configs) == 1
        binary = attempt(lambda: tuner._precompile_config(config)).kernel
        kernel.config = {
            **{k: v for k, v in config.kwargs.items() if isinstance(v, int)},
            "num_warps": config.num_warps,
            "num_stages": config.num_stages,
        }
        kernel.grid_of = _grid(tuner.inductor_meta, config)
        kernel.binary = read_binary(binary, target)
    except Exception as error:  # Triton raises many kinds; the report shows the kernel with its error
        kernel.error = error_text(error)


def _load(kernel: InductorKernel) -> Any:
    """Inductor's autotuner of the kernel. Triton reads its source through ``linecache``, so no file is needed."""
    filename = f"<inductor {kernel.name}>"
    linecache.cache[filename] = (len(kernel.source), None, kernel.source.splitlines(keepends=True), filename)
    namespace: dict[str, Any] = {"__name__": f"fusescope.{kernel.name}", "__file__": filename}
    exec(attempt(lambda: compile(kernel.source, filename, "exec")), namespace)
    return namespace[kernel.function]


def _grid(inductor_meta: Mapping[str, Any], config: Any) -> Callable[[Mapping[str, int]], list[int]] | None:
    """The grid from the sizes of the kernel's loops; None for a template, whose program computes its own."""
    from torch._inductor.runtime.triton_heuristics import GridExpr

    if inductor_meta.get("extra_launcher_args"):
        return None

    def grid_of(numels: Mapping[str, int]) -> list[int]:
        grid = GridExpr.from_meta(dict(inductor_meta), config)
        return [int(n) for n in grid.eval_slow({f"{prefix}numel": n for prefix, n in numels.items()})]

    return grid_of


@contextmanager
def _no_static_launcher() -> Iterator[None]:
    from torch._inductor.runtime import triton_heuristics

    for name in ("StaticTritonCompileResult", "StaticCudaLauncherCompileResult"):
        result = getattr(triton_heuristics, name, None)
        if result is not None:
            with replaced(result, "can_statically_launch", staticmethod(lambda *args: None)):
                yield
            return
    yield


def chosen_configs(module: Any) -> dict[str, Any]:
    """Kernel -> the configuration that Inductor chose when the wrapper ran; those not launched are left out."""
    found = {}
    for name, tuner in vars(module).items() if module is not None else ():
        launchers = getattr(tuner, "launchers", None)
        if isinstance(launchers, list) and len(launchers) == 1 and hasattr(launchers[0], "config"):
            found[name] = launchers[0].config
    return found
