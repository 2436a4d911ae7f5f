"""The stages in order: the place to start reading.

    model, inputs
      -> capture   Dynamo and AOTAutograd call our backend with each ATen graph (compiler/backend.py)
      -> lower     FX nodes become loops over elements and library calls  (compiler/lowering)
      -> fuse      loops that can share a kernel become groups            (compiler/fusion.py)
      -> generate  each group becomes the source of a Triton kernel       (compiler/codegen/kernel.py)
      -> plan      buffers get lifetimes and storage                      (compiler/planning/memory.py)
      -> compile   Triton compiles the kernels for the target             (compiler/codegen/compile.py)
      -> report    all of it as records                                   (compiler/describe.py)

``compile_region`` (compiler/region.py) runs the middle on one graph; this module runs a whole model through it.
"""

from __future__ import annotations

import platform
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, NamedTuple

from compiler.dynamo.messages import advice, parse_error
from compiler.errors import CompileError, TracingError, sentence
from compiler.options import parse_options
from compiler.report import GraphBreak, Report, Stage, Target
from compiler.stages import OnStage, StageEvent

__all__ = ["Compilation", "StageEvent", "compile_model"]


@dataclass
class Compilation:
    """A compiled model: its report, and ``compiled``, which is called like the model.

    ``observer`` (``runtime/observe.py``) hears which step of a region runs. ``options`` and ``dynamic`` are what our
    own compiler was told, so that it can compile the model in the same way once more.
    """

    report: Report
    compiled: Callable[..., Any]
    model: Any
    inputs: tuple[Any, ...]
    observer: Any = None
    options: Mapping[str, str] = field(default_factory=dict)
    dynamic: bool = False


def compile_model(
    model: Any,
    inputs: Sequence[Any],
    *,
    source: str,
    target: Target,
    compiler: str = "fusescope",
    training: bool = False,
    dynamic: bool = False,
    options: Mapping[str, str] | None = None,
    on_stage: OnStage | None = None,
    files: Mapping[str, str] | None = None,
) -> Compilation:
    """Compile ``model`` by calling it once on ``inputs`` (and, in training, by one backward).

    Where the target is this machine's GPU, model and inputs are moved there and the kernels run. Otherwise the model is
    traced on the CPU as it is traced on the target, its graphs are moved there and compiled (``compiler/retarget``),
    and what runs are the traced graphs, on the CPU, for their values. A model or inputs on the ``meta`` device have
    none: they are compiled by their shapes alone, and need no memory.

    Args:
        source: what the report calls the model.
        options: of the compiler, by name (``compiler/options.py``).
        files: texts of the user's source files, kept in the report.

    Raises:
        CompileError: a stage could not do its work; the message is one sentence.
    """
    from compiler.retarget.compositions import composed_as_on_gpu
    from compiler.retarget.tracing import traced_for
    from compiler.runtime.executable import interpreting

    if compiler not in _COMPILERS:
        hint = f"The compilers are {' and '.join(_COMPILERS)}."
        raise CompileError(f"There is no compiler {compiler!r}", hint=hint, stage="capture")
    listen = on_stage or (lambda event: None)
    # our own kernels run on the CPU where Triton interprets them, and Inductor's never do
    elsewhere = not target.local and (compiler == "inductor" or not interpreting())
    job = _Job(source, target, training, dynamic, dict(options or {}), dict(files or {}), listen, elsewhere)
    with traced_for(target) if elsewhere else composed_as_on_gpu(not target.local):
        return _COMPILERS[compiler](model, tuple(inputs), job)


class _Job(NamedTuple):
    """What ``compile_model`` was asked, but for the model."""

    source: str
    target: Target
    training: bool
    dynamic: bool
    options: dict[str, str]
    files: dict[str, str]
    on_stage: OnStage
    elsewhere: bool  # graphs are moved to a GPU that is not here, and run as traced, on the CPU


def _with_fusescope(model: Any, inputs: tuple[Any, ...], job: _Job) -> Compilation:
    import torch

    from compiler.backend import Session, fusescope
    from compiler.dynamo.log import watch_dynamo
    from compiler.kernel_library import KernelLibrary
    from compiler.runtime.executable import interpreting

    chosen = parse_options(job.options)
    torch._dynamo.reset()
    model, inputs = _placed(model, inputs, job.target)
    library = KernelLibrary(job.target, binaries=not interpreting(), texts=True, options=chosen)
    job.on_stage(StageEvent("capture", "", 0.0))
    start = time.perf_counter()
    with watch_dynamo() as dynamo:
        session = Session(job.target, library, on_stage=job.on_stage, dynamo=dynamo, elsewhere=job.elsewhere)
        compiled = torch.compile(
            model,
            backend=lambda gm, example: fusescope(gm, example, options={"session": session}),
            dynamic=job.dynamic or None,
        )
        run_once(compiled, inputs, job.training)
    stages = [stage for region in session.regions for stage in region.stages]
    capture_ms = max((time.perf_counter() - start) * 1e3 - sum(stage.ms for stage in stages), 0.0)
    if not session.regions:
        raise nothing_captured(dynamo.graph_breaks)
    job.on_stage(StageEvent("capture", "", 0.95, capture_ms))
    job.on_stage(StageEvent("report", "", 0.95))
    start = time.perf_counter()
    report = fusescope_report(session, dynamo, job.source, job.training, job.options, job.files)
    report_ms = (time.perf_counter() - start) * 1e3
    report.stages = [Stage("capture", capture_ms), *stages, Stage("report", report_ms)]
    job.on_stage(StageEvent("report", "", 1.0, report_ms))
    return Compilation(report, compiled, model, inputs, session.observer, job.options, job.dynamic)


def _with_inductor(model: Any, inputs: tuple[Any, ...], job: _Job) -> Compilation:
    import torch

    from compiler.inductor.compile import compile_with_inductor

    torch._dynamo.reset()
    model, inputs = _placed(model, inputs, job.target)
    report, compiled = compile_with_inductor(
        model,
        lambda call: run_once(call, inputs, job.training),
        source=job.source,
        target=job.target,
        training=job.training,
        dynamic=job.dynamic,
        options=job.options,
        files=job.files,
        versions=versions(),
        on_stage=job.on_stage,
    )
    if not report.regions:
        raise nothing_captured(report.graph_breaks)
    return Compilation(report, compiled, model, inputs)


_COMPILERS = {"fusescope": _with_fusescope, "inductor": _with_inductor}


def nothing_captured(breaks: Sequence[GraphBreak], wanted: str = "show") -> CompileError:
    """What to say of a model of which Dynamo captured no part: the reason it gave, if it gave one."""
    message = f"Dynamo captured no part of this model, so there is nothing to {wanted}"
    if not breaks:
        return CompileError(message, stage="capture", hint="Nothing in it computes with tensors.")
    found = breaks[-1]
    place = f" ({found.source.file}:{found.source.line})" if found.source else ""
    return CompileError(f"{message}: {found.reason}{place}", stage="capture", hint=advice(found.detail))


def _placed(model: Any, inputs: tuple[Any, ...], target: Target) -> tuple[Any, tuple[Any, ...]]:
    """The model and its inputs where they are compiled: on the GPU they will run on, else on the CPU.

    Raises:
        CompileError: they have no values (``meta`` device) and are meant to run.
    """
    from compiler.dynamo.without_values import lacks_values, with_fakes

    if lacks_values(model, inputs):
        if target.local:
            raise CompileError(
                "The model has no values (it is on the meta device), so it cannot run on this machine's GPU",
                stage="capture",
                hint="Compile it for a target by its name, as h100: then only its shapes are used.",
            )
        return with_fakes(model, inputs)
    return to_gpu(model, inputs) if target.local else (model, inputs)


def to_gpu(model: Any, inputs: tuple[Any, ...]) -> tuple[Any, tuple[Any, ...]]:
    """The model and its inputs on this machine's GPU."""
    import torch
    from torch.utils import _pytree as pytree

    if isinstance(model, torch.nn.Module):
        model = model.to("cuda")
    return model, pytree.tree_map_only(torch.Tensor, lambda t: t.to("cuda"), inputs)


def run_once(compiled: Callable[..., Any], inputs: tuple[Any, ...], training: bool) -> None:
    """Call the model so that everything is compiled; in training, the backward of the mean of its outputs too."""
    import torch
    from torch.utils import _pytree as pytree

    try:
        with torch.set_grad_enabled(training):
            outputs = compiled(*inputs)
        if training:
            losses = [
                t.float().mean() for t in pytree.tree_leaves(outputs) if isinstance(t, torch.Tensor) and t.requires_grad
            ]
            if losses:
                _backward(torch.stack(losses).sum())
    except torch._subclasses.fake_tensor.DataDependentOutputException as error:
        raise CompileError(
            f"The model decides by a tensor's value ({error.func}), and it has none on the meta device",
            stage="capture",
            hint="Give it weights and inputs with values.",
        ) from error
    except (torch._dynamo.exc.TorchRuntimeError, torch._dynamo.exc.Unsupported, torch._dynamo.exc.UserError) as error:
        found = parse_error(str(error))
        place = f"{found.source.file}:{found.source.line}" if found.source else ""
        message = f"Dynamo cannot trace this model: {found.reason.rstrip('.')}"
        raise TracingError(message, stage="capture", source=place, hint=advice(found.detail)) from error
    except torch._dynamo.exc.BackendCompilerFailed as error:
        inner = error.inner_exception
        if isinstance(inner, CompileError):
            raise inner from error
        hint = "This looks like a fault of the compiler; the other one may take the model."
        raise CompileError(sentence(inner), stage="capture", hint=hint) from error


def _backward(loss: Any) -> None:
    try:
        loss.backward()
    except RuntimeError as error:
        if "backward through the graph a second time" not in str(error):
            raise
        hint = "Return the loss and leave the backward out: in training, that of the outputs' mean is run for you."
        raise CompileError("The model runs a backward itself", stage="capture", hint=hint) from error


def fusescope_report(
    session: Any, dynamo: Any, source: str, training: bool, options: dict[str, str], files: dict[str, str]
) -> Report:
    """The report of all that ``session`` (``backend.Session``) collected; ``dynamo`` are the facts of its capture."""
    from compiler.describe import describe_kernels, describe_region

    report = Report(
        compiler="fusescope",
        source=source,
        target=session.target,
        versions=versions(),
        options=options,
        training=training,
        regions=[describe_region(region, session.library, session.target) for region in session.regions],
        kernels=describe_kernels(session.regions, session.library, session.target),
        graph_breaks=dynamo.graph_breaks,
        guards=dynamo.guards,
        recompiles=dynamo.recompiles,
        sources=files,
        created=datetime.now(UTC).isoformat(timespec="seconds"),
    )
    report.notes = list(_notes(session, report))
    return report


def _notes(session: Any, report: Report) -> Iterator[str]:
    """What whoever reads the report has to know of it, a sentence each."""
    import torch

    from compiler.describe import sizes_note
    from compiler.runtime.executable import interpreting

    for region in session.regions:
        if region.fallback is not None:
            yield f"Region {region.name} runs in eager, as the option fallback=eager has it: {region.fallback}."
    yield from sizes_note(report.regions)
    for name, reason in session.specialized.items():
        yield f"Region {name} is compiled anew for every combination of sizes: {reason}."
    yield from session.notes
    failed = sum(bool(kernel.error) for kernel in report.kernels)
    if failed:
        yield f"{failed} kernels did not compile for {session.target.name}; their regions run as captured."
    if session.target.backend == "cpu":
        how = "in Triton's interpreter" if interpreting() else "as captured, op by op: generated kernels need a GPU"
        yield (
            f"The regions ran on the CPU, {how}. The groups and kernels shown are those for "
            f"{session.library.target.title}; none was compiled or launched."
        )
    elif not torch.cuda.is_available() and not session.target.local:
        yield (
            f"Compiled for {session.target.title} on a machine without that GPU; nothing was measured. "
            "Models are traced on the CPU: copies between CPU and GPU leave no trace."
        )


def versions() -> dict[str, str]:
    """The versions that a report depends on."""
    import torch

    found = {"python": platform.python_version(), "torch": str(torch.__version__)}
    try:
        import triton

        found["triton"] = triton.__version__
    except ImportError:
        pass
    return found
