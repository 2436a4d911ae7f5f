"""One case through eager, float64 and the compiler."""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor, fx

from compiler.backend import Session, default_target, fusescope
from compiler.errors import CompileError
from compiler.kernel_library import KernelLibrary
from compiler.planning.schedule import Launch
from tests.ops.cases import Call, Case, call_of
from tests.ops.judging import alias_difference, difference, statistics_difference, stride_difference
from tests.ops.tables import unset_outputs

RUNS = 24  # of a random operator, for its statistics


@dataclass
class Outcome:
    """What became of a case. ``kind`` is "pass", "skip" (eager, or AOTAutograd itself, cannot run it), or a failure:

    "number", "metadata", "alias", "mutation", "error" (an exception that is no clear refusal), "refused" (one that
    is: a CompileError). ``groups`` counts launches, ``externs`` the library calls by their op.
    """

    kind: str
    message: str = ""
    groups: int = 0
    externs: dict[str, int] = field(default_factory=dict)
    compiled: bool = True  # False: Dynamo broke the graph at the call and left it to eager


@dataclass
class Ran:
    """What a call left: its results (then gradients), and its inputs, which it may have written into."""

    results: list[Any]
    gradients: list[Tensor | None]
    inputs: list[Tensor]


Compile = Callable[[Call], Callable[..., list[Any]]]


def run_case(case: Case, library: KernelLibrary, check: str) -> Outcome:
    """Run a case and judge it. ``check``: "numbers", or for an operator without set results "statistics", "sizes"."""
    try:
        eager = _run(case, _as_it_is)
    except Exception as error:
        return Outcome("skip", f"eager raises {_line(error)}")
    session = Session(default_target(), library)
    try:
        ours = _run(case, lambda call: _compiled(case, call, session))
    except Exception as error:
        if gpu_works(case.device) and _aot_eager_raises(case):
            return Outcome("skip", f"AOTAutograd by itself (aot_eager) raises {_line(error)}")
        refused = isinstance(error, CompileError)
        return Outcome("refused" if refused else "error", _line(error), *_counts(session))
    exact = _reference(case) if check == "numbers" else None
    kind, message = _judge(case, ours, eager, check, exact)
    if kind == "number" and check == "statistics":
        kind, message = _judge_statistics(case, session)
    if kind == "number" and check == "numbers" and _only_unwritten_differs(case, ours, eager, exact):
        kind, message = "pass", ""
    if kind == "number" and case.device == "cuda":
        kind, message = _judge_beside_cpu(case, ours, exact, check, message)
    torchs = kind in ("layout", "alias", "metadata") or case.way == "special"
    if torchs and kind not in ("pass", "skip") and _aot_eager_is_so(case, ours, eager, (kind, message), check, exact):
        kind, message = "skip", f"AOTAutograd by itself (aot_eager) differs from eager, too: {message}"
    broken = [kernel for kernel in library.by_source.values() if kernel.error]
    if broken:  # the region ran as captured, so its numbers say nothing
        kind, message = "error", f"{broken[0].name} does not compile: {broken[0].error.splitlines()[0]}"
    return Outcome(kind, message, *_counts(session))


def _judge(case: Case, ours: Ran, eager: Ran, check: str, exact: Ran | None) -> tuple[str, str]:
    if len(ours.results) != len(eager.results):
        return "metadata", f"{len(ours.results)} results where eager returns {len(eager.results)}"
    if len(ours.gradients) != len(eager.gradients):
        return "metadata", f"{len(ours.gradients)} gradients where eager has {len(eager.gradients)}"
    unset = unset_outputs(case.op.name)
    parts = (
        ("output", ours.results, eager.results, exact and exact.results),
        ("gradient", ours.gradients, eager.gradients, exact and exact.gradients),
        ("input after the call,", ours.inputs, eager.inputs, exact and exact.inputs),
    )
    for title, mine, theirs, wide in parts:
        for number, (a, b) in enumerate(zip(mine, theirs, strict=True)):
            if (a is None) is not (b is None):
                return "metadata", f"{title} {number} is {'missing' if a is None else 'there'}, unlike eager's"
            if a is None:
                continue
            reference = wide[number] if wide is not None and len(wide) == len(theirs) else None
            nothing_there = check == "sizes" or (title == "output" and number in unset)
            if nothing_there and isinstance(b, Tensor):
                fault = "" if (a.shape, a.dtype) == (b.shape, b.dtype) else "sizes or dtypes differ"
            else:
                fault = difference(a, b, reference)
            if fault:
                kind = "metadata" if fault.split()[0] in ("dtype", "shape", "layout", "device") else "number"
                return kind, f"{title} {number}: {fault}"
    for number, (a, b) in enumerate(zip(ours.results, eager.results, strict=True)):
        fault = stride_difference(a, b)
        if fault:
            return "layout", f"output {number}: {fault}"
    fault = alias_difference(ours.results, ours.inputs, eager.results, eager.inputs)
    return ("alias", fault) if fault else ("pass", "")


def _judge_beside_cpu(case: Case, ours: Ran, exact: Ran | None, check: str, message: str) -> tuple[str, str]:
    """A result that is not the GPU's own in eager, beside what eager has on the CPU.

    Of NaN, infinities and numbers whose square is none eager's kernels on the two may make different things; either is
    right. Where the CPU refuses to divide whole numbers by zero, a GPU returns what the hardware happens to leave.
    """
    try:
        eager = _run(case, _as_it_is, device="cpu")
    except Exception as error:
        if "ZeroDivisionError" in str(error):
            return "skip", f"whole numbers divided by zero have no result: on the CPU eager raises {_line(error)}"
        return "number", message
    if case.way != "special":
        return "number", message
    here = _on_cpu(ours)
    exact_here = _on_cpu(exact) if exact is not None else None
    kind, beside = _judge(case, here, _in_dtypes_of(here, eager), check, exact_here)
    return ("pass", "") if kind == "pass" else ("number", f"{message}; and beside eager on the CPU: {beside}")


def _only_unwritten_differs(case: Case, ours: Ran, eager: Ran, exact: Ran | None) -> bool:
    """Whether the results differ only where eager hands out memory that it has not written: the gradients of
    sequences packed into one tensor, say, beyond the last sequence's end. Those elements become NaN where torch fills
    fresh memory with NaN."""
    try:
        with _fresh_memory_filled():
            filled = _run(case, _as_it_is)
    except Exception:
        return False
    for mine, theirs, marked in zip(_tensors_of(ours), _tensors_of(eager), _tensors_of(filled), strict=True):
        if mine.is_floating_point() and mine.shape == theirs.shape == marked.shape:
            unwritten = marked.isnan() & ~theirs.isnan()
            mine.masked_fill_(unwritten, 0.0)
            theirs.masked_fill_(unwritten, 0.0)
    return _judge(case, ours, eager, "numbers", exact)[0] == "pass"


@contextlib.contextmanager
def _fresh_memory_filled() -> Iterator[None]:
    before = torch.are_deterministic_algorithms_enabled(), torch.is_deterministic_algorithms_warn_only_enabled()
    torch.use_deterministic_algorithms(True, warn_only=True)
    try:
        yield
    finally:
        torch.use_deterministic_algorithms(before[0], warn_only=before[1])


def _tensors_of(ran: Ran) -> list[Tensor]:
    return [x for x in (*ran.results, *ran.gradients) if isinstance(x, Tensor)]


def _on_cpu(ran: Ran) -> Ran:
    def moved(values: Sequence[Any]) -> list[Any]:
        return [v.cpu() if isinstance(v, Tensor) else v for v in values]

    return Ran(moved(ran.results), moved(ran.gradients), moved(ran.inputs))


def _in_dtypes_of(ours: Ran, eager: Ran) -> Ran:
    """Eager's numbers in our floating-point dtypes: statistics of half floats are float32 on a GPU alone."""

    def cast(mine: Sequence[Any], theirs: Sequence[Any]) -> list[Any]:
        pairs = itertools.zip_longest(mine, theirs)
        return [b.to(a.dtype) if _both_float(a, b) else b for a, b in pairs]

    return Ran(
        cast(ours.results, eager.results), cast(ours.gradients, eager.gradients), cast(ours.inputs, eager.inputs)
    )


def _both_float(a: Any, b: Any) -> bool:
    return all(isinstance(x, Tensor) and x.is_floating_point() for x in (a, b))


def _judge_statistics(case: Case, session: Session) -> tuple[str, str]:
    """Several runs of an operator that draws random numbers, compared as samples of a distribution."""
    call = call_of(case)
    compiled = _compiled(case, call, session)
    ours, theirs = [], []
    for seed in range(RUNS):
        ours.append(_numbers(compiled(*call_of(case).tensors)))
        with _seeded(seed):
            theirs.append(_numbers(call.function(*call_of(case).tensors)))
    for number in range(len(theirs[0])):
        mine, eager = [run[number] for run in ours], [run[number] for run in theirs]
        if any(a.shape != b.shape or a.dtype is not b.dtype for a, b in zip(mine, eager, strict=True)):
            return "metadata", f"output {number}: sizes or dtypes differ"
        fault = statistics_difference(mine, eager)
        if fault:
            return "number", f"output {number}: {fault}"
    return "pass", ""


@contextlib.contextmanager
def _seeded(seed: int) -> Iterator[None]:
    """With this seed, whatever seed op_db's own functions set: theirs would draw the same numbers in every run."""
    manual_seed = torch.manual_seed
    with torch.random.fork_rng(devices=range(torch.cuda.device_count())):
        manual_seed(seed)
        torch.manual_seed = lambda _: torch.default_generator
        try:
            yield
        finally:
            torch.manual_seed = manual_seed


def _numbers(results: Sequence[Any]) -> list[Tensor]:
    return [r for r in results if isinstance(r, Tensor)]


def _run(case: Case, prepare: Compile, *, double: bool = False, device: str = "") -> Ran:
    """``device``: where the tensors are moved first; "" leaves them."""
    call = call_of(case, double=double)
    if device:
        call = Call(call.function, [t.detach().to(device).requires_grad_(t.requires_grad) for t in call.tensors])
    function = prepare(call)
    torch.manual_seed(0)
    inputs = list(call.tensors)
    if case.way == "backward":
        results = list(function(*inputs))
        gradients = _gradients(results, inputs)
        ran = Ran([_detached(r) for r in results], gradients, [t.detach() for t in inputs])
    else:
        with torch.no_grad():
            ran = Ran(list(function(*inputs)), [], inputs)
    if case.device == "cuda":
        torch.cuda.synchronize()  # an assertion on the device that fails is this run's, not the next one's
    return ran


def gpu_works(device: str) -> bool:
    """Whether this process can still use the device: after a fault in a kernel it never can again."""
    try:
        if device == "cuda":
            torch.cuda.synchronize()
    except RuntimeError:
        return False
    return True


def _gradients(results: list[Any], inputs: list[Tensor]) -> list[Tensor | None]:
    """Of a fixed random combination of the outputs, with regard to every input."""
    outputs = [r for r in results if isinstance(r, Tensor) and r.requires_grad]
    wanted = [t for t in inputs if t.requires_grad]
    if not outputs or not wanted:
        return []
    generator = torch.Generator().manual_seed(7)
    directions = [
        torch.randn(o.shape, generator=generator, dtype=torch.complex128 if o.is_complex() else torch.float64)
        .to(torch.complex64 if o.is_complex() else torch.bfloat16)
        .to(device=o.device, dtype=o.dtype)
        for o in outputs
    ]
    return list(torch.autograd.grad(outputs, wanted, directions, allow_unused=True))


def _detached(x: Any) -> Any:
    return x.detach() if isinstance(x, Tensor) else x


def _reference(case: Case) -> Ran | None:
    with _double_precision():
        try:
            return _run(case, _as_it_is, double=True)
        except Exception:  # not every operator takes float64
            return None


@contextlib.contextmanager
def _double_precision() -> Iterator[None]:
    """So that an operator that makes floats of integers makes float64."""
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    try:
        yield
    finally:
        torch.set_default_dtype(before)


# --- ways to run ---------------------------------------------------------------------------------------------------


def _as_it_is(call: Call) -> Callable[..., list[Any]]:
    return call.function


def _compiled(case: Case, call: Call, session: Session) -> Callable[..., list[Any]]:
    """The call through our backend: AOTAutograd gets it as a graph of one node, or Dynamo as a function."""
    options = {"session": session}
    if case.way == "dynamo":
        return _through_dynamo(call, lambda gm, inputs: fusescope(gm, inputs, options=options))
    graph, constants = _one_node(call)
    try:
        compiled = fusescope(graph, call.tensors, options=options)
    except Exception as error:
        if not _depends_on_data(error):
            raise
        session.regions.clear()
        return _through_dynamo(call, lambda gm, inputs: fusescope(gm, inputs, options=options))
    return lambda *tensors: _with_constants(compiled(*tensors), constants)


def _through_dynamo(call: Call, backend: Any) -> Callable[..., list[Any]]:
    torch._dynamo.reset()
    return torch.compile(call.function, backend=backend)


def _one_node(call: Call) -> tuple[fx.GraphModule, dict[int, Any]]:
    """A graph whose only node is the call. Results that are no tensors are set down in the returned dictionary."""
    constants: dict[int, Any] = {}

    def tensors_only(*given: Tensor) -> list[Any]:
        results = call.function(*given)
        constants.clear()
        constants.update({k: r for k, r in enumerate(results) if not isinstance(r, Tensor)})
        return [r for r in results if isinstance(r, Tensor)]

    graph = fx.Graph()
    inputs = tuple(graph.placeholder(f"x{k}") for k in range(len(call.tensors)))
    graph.output(graph.call_function(tensors_only, inputs))
    return fx.GraphModule({}, graph), constants


def _with_constants(results: Sequence[Any], constants: dict[int, Any]) -> list[Any]:
    merged = list(results)
    for k in sorted(constants):
        merged.insert(k, constants[k])
    return merged


def _depends_on_data(error: Exception) -> bool:
    """Whether the sizes or numbers that the call makes depend on data; Dynamo breaks the graph at such calls."""
    names = {cls.__name__ for cls in type(error).__mro__}
    return bool(
        names
        & {"DataDependentOutputException", "DynamicOutputShapeException", "GuardOnDataDependentSymNode",
           "UnsupportedFakeTensorException", "UnsupportedOperatorException"}
    )  # fmt: skip


def _aot_eager(case: Case, call: Call) -> Callable[..., list[Any]]:
    """The call through AOTAutograd with nothing of ours behind it."""
    from torch._dynamo.backends.debugging import aot_eager

    if case.way == "dynamo":
        return _through_dynamo(call, aot_eager)
    graph, constants = _one_node(call)
    try:
        compiled = aot_eager(graph, call.tensors)
    except Exception as error:
        if not _depends_on_data(error):
            raise
        return _through_dynamo(call, aot_eager)
    return lambda *tensors: _with_constants(compiled(*tensors), constants)


def _aot_eager_raises(case: Case) -> bool:
    try:
        _run(case, lambda call: _aot_eager(case, call))
    except Exception:
        return True
    return False


def _aot_eager_is_so(
    case: Case, ours: Ran, eager: Ran, found: tuple[str, str], check: str, exact: Ran | None
) -> bool:
    """Whether AOTAutograd by itself differs from eager in the same way: strides, aliases, and what has gradients are
    its work, and it takes a few ops apart into ones that treat infinities otherwise. Numbers have to be its own."""
    theirs = _run(case, lambda call: _aot_eager(case, call))
    verdict = _judge(case, theirs, eager, check, exact)
    if found[0] != "number":
        return verdict == found
    return verdict[0] == "number" and _judge(case, ours, theirs, check, None)[0] != "number"


def _counts(session: Session) -> tuple[int, dict[str, int], bool]:
    groups = 0
    externs: dict[str, int] = {}
    for region in session.regions:
        for step in region.steps:
            if isinstance(step, Launch):
                groups += 1
            else:
                name = str(step.target) if hasattr(step.target, "_schema") else step.target.__name__
                externs[name] = externs.get(name, 0) + 1
    return groups, externs, bool(session.regions)


def _line(error: BaseException) -> str:
    """The error's type and first lines."""
    text = " ".join(str(error).split())
    return f"{type(error).__name__}: {text[:300]}"
