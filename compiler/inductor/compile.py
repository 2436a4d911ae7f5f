"""A model through the real TorchInductor, with the same report as our own compiler's."""

from __future__ import annotations

import itertools
import re
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, nullcontext
from datetime import UTC, datetime
from typing import Any

import torch

from compiler.describe import sizes_note
from compiler.dynamo.log import watch_dynamo
from compiler.dynamo.messages import DynamoFacts
from compiler.errors import CompileError
from compiler.inductor.describe import describe_inductor_kernels, describe_inductor_region
from compiler.inductor.fake_gpu import fake_gpu
from compiler.inductor.hooks import LaunchFacts
from compiler.inductor.kernels import InductorKernel, chosen_configs, compile_kernels, kernels_in, launches_in
from compiler.inductor.options import parse_config
from compiler.inductor.run import InductorRegion, InductorRun, inductor_backend
from compiler.patching import replaced
from compiler.report import Report, Stage, Target
from compiler.stages import OnStage, StageEvent

RunOnce = Callable[[Callable[..., Any]], None]


def compile_with_inductor(
    model: Any,
    run_once: RunOnce,
    *,
    source: str,
    target: Target,
    training: bool,
    dynamic: bool,
    options: Mapping[str, str],
    files: Mapping[str, str],
    versions: Mapping[str, str],
    on_stage: OnStage,
) -> tuple[Report, Callable[..., Any]]:
    """Compile ``model`` by calling it once through ``run_once``. Returns the report and the compiled model.

    Raises:
        CompileError: a stage could not do its work; the message is one sentence.
    """
    config = parse_config(options)
    _refuse_other_programs(config)
    if not target.local:
        _refuse_timing(config)
    run = InductorRun(target, config, on_stage)
    on_stage(StageEvent("capture", "", 0.0))
    start = time.perf_counter()
    with watch_dynamo() as dynamo, _advice_as_note(run):
        run.dynamo = dynamo
        compiled = torch.compile(model, backend=inductor_backend(run), dynamic=dynamic or None)
        run_once(compiled)
    capture_ms = (time.perf_counter() - start) * 1e3 - sum(region.ms for region in run.regions)
    on_stage(StageEvent("capture", "", 0.95, max(capture_ms, 0.0)))
    report = inductor_report(
        run, dynamo, source=source, training=training, options=options, files=files, versions=versions
    )
    report.stages.insert(0, Stage("capture", max(capture_ms, 0.0)))
    return report, compiled


@contextmanager
def _advice_as_note(run: InductorRun) -> Iterator[None]:
    """What Inductor warns of becomes notes of the report: products of float32 not in TF32, complex numbers."""
    from torch._inductor import compile_fx, lowering

    def noted(warn: Any) -> Callable[[], None]:
        def note() -> None:
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                warn.__wrapped__()  # itself, it speaks once a process
            for warning in caught:
                run.note(str(warning.message))

        return note

    with ExitStack() as stack:
        for module, name in ((compile_fx, "_warn_tf32_disabled"), (lowering, "_warn_complex_not_supported")):
            stack.enter_context(replaced(module, name, noted(getattr(module, name))))
        yield


def inductor_report(
    run: InductorRun,
    dynamo: DynamoFacts,
    *,
    source: str,
    training: bool,
    options: Mapping[str, str],
    files: Mapping[str, str],
    versions: Mapping[str, str],
) -> Report:
    """The report of what ``run`` collected; its kernels are compiled for the target. Its stages begin after capture."""
    stages = [Stage(name, ms, region.name) for region in run.regions for name, ms in region.facts.stages.items()]
    kernels, compile_ms = _kernels(run)
    stages.append(Stage("compile", compile_ms))
    run.on_stage(StageEvent("report", "", 0.95))
    start = time.perf_counter()
    report = _report(run, dynamo, kernels, source, training, options, files, versions)
    report.stages = [*stages, Stage("report", (time.perf_counter() - start) * 1e3)]
    run.on_stage(StageEvent("report", "", 1.0, report.stages[-1].ms))
    return report


# They choose between kernels by running them, or write a program that times its own.
_TIMED_OPTIONS = (
    "max_autotune", "max_autotune_gemm", "max_autotune_pointwise", "coordinate_descent_tuning", "benchmark_fusion",
    "benchmark_kernel", "benchmark_combo_kernel", "profile_bandwidth",
)  # fmt: skip
_OTHER_PROGRAMS = ("cpp_wrapper", "fx_wrapper")


def _refuse_other_programs(config: Mapping[str, Any]) -> None:
    """Raises CompileError where an option makes Inductor write no program in Python."""
    from torch._inductor import config as defaults

    for name in _OTHER_PROGRAMS:
        if config.get(name, getattr(defaults, name, False)):
            raise CompileError(
                f"With Inductor's option {name} its program is not Python, and a report is read off that",
                stage="capture",
                hint="Leave the option out: fusion, kernels and memory are the same without.",
            )


def _refuse_unread(run: InductorRun, known: Mapping[str, InductorKernel]) -> None:
    """Raises CompileError where a program launches a kernel that is not defined in a way that is known here."""
    launched = (launch.kernel for region in run.regions for launch in region.facts.launches)
    unread = next((name for name in launched if name not in known), None)
    if unread is not None:
        raise CompileError(
            f"Inductor's program defines the kernel {unread} in another language than Triton or C++",
            stage="compile",
            hint="An option of Inductor's asks for it, as cuda_backend does; leave it out.",
        )


def _refuse_timing(config: Mapping[str, Any]) -> None:
    """Raises CompileError where an option needs times that no GPU is here to give."""
    for name in _TIMED_OPTIONS:
        if config.get(name):
            raise CompileError(
                f"Inductor's option {name} needs times of kernels, and the target is not this machine's GPU",
                stage="capture",
                hint="Leave the option out, or compile for the target local on a machine with a GPU.",
            )


def _kernels(run: InductorRun) -> tuple[list[InductorKernel], float]:
    """The kernels of all regions, compiled. A name that regions use for different kernels gets a number in them all."""
    start = time.perf_counter()
    run.on_stage(StageEvent("compile", "", 0.8))
    found: dict[str, InductorKernel] = {}
    chosen: dict[str, Any] = {}
    for region in run.regions:
        configs = chosen_configs(region.facts.module)
        for name, kernel in kernels_in(region.facts.wrapper).items():
            shown = name
            if name in found and found[name].source != kernel.source:
                shown = _renamed(region, name, found)
                kernel = kernels_in(region.facts.wrapper)[shown]
            found.setdefault(shown, kernel)
            if name in configs:
                chosen[shown] = configs[name]

    def told(done: float) -> None:
        run.on_stage(StageEvent("compile", "", 0.8 + 0.15 * done))

    with nullcontext() if run.on_this_machine else fake_gpu(run.target):
        compile_kernels(list(found.values()), run.target, chosen, told)
    ms = (time.perf_counter() - start) * 1e3
    run.on_stage(StageEvent("compile", "", 0.95, ms))
    return list(found.values()), ms


def _renamed(region: InductorRegion, name: str, taken: Mapping[str, Any]) -> str:
    """Give a kernel of ``region`` a name that no other region uses, in its wrapper and launches. Returns the name."""
    numbers = itertools.count(2)
    fresh = f"{name}_{region.name}"
    while fresh in taken:
        fresh = f"{name}_{region.name}_{next(numbers)}"
    region.facts.wrapper = re.sub(rf"\b{re.escape(name)}\b", fresh, region.facts.wrapper)
    for launch in region.facts.launches:
        if launch.kernel == name:
            launch.kernel = fresh
    return fresh


def _report(
    run: InductorRun,
    dynamo: DynamoFacts,
    kernels: Sequence[InductorKernel],
    source: str,
    training: bool,
    options: Mapping[str, str],
    files: Mapping[str, str],
    versions: Mapping[str, str],
) -> Report:
    by_name = {kernel.name: kernel for kernel in kernels}
    _refuse_unread(run, by_name)
    regions = [describe_inductor_region(region, by_name, run.target.backend) for region in run.regions]
    launches: dict[str, list[tuple[str, LaunchFacts]]] = {}
    for region in run.regions:
        for launch in region.facts.launches:
            launches.setdefault(launch.kernel, []).append((region.name, launch))
    called = Counter(name for region in run.regions for name in launches_in(region.facts.wrapper))
    return Report(
        compiler="inductor",
        source=source,
        target=run.target,
        versions=dict(versions),
        options=dict(options),
        training=training,
        regions=regions,
        kernels=describe_inductor_kernels(regions, launches, called, kernels, run.target),
        graph_breaks=dynamo.graph_breaks,
        guards=dynamo.guards,
        recompiles=dynamo.recompiles,
        sources=dict(files),
        created=datetime.now(UTC).isoformat(timespec="seconds"),
        notes=[*sizes_note(regions), *run.notes, *_notes(run, kernels)],
    )


def _notes(run: InductorRun, kernels: Sequence[InductorKernel]) -> list[str]:
    notes = []
    missing = list(dict.fromkeys(text for region in run.regions for text in region.facts.missing))
    if missing:
        notes.append(f"torch {torch.__version__} does not tell: {'; '.join(missing)}.")
    untimed = [k for k in kernels if not k.timed and not k.error]
    if untimed:
        notes.append(
            f"Inductor times several configurations of {_kernels_text(len(untimed))} at the first launch; "
            "with no launch to time, the first of each is shown."
        )
    nested = [region.name for region in run.regions if region.facts.has_nested]
    if nested:
        notes.append(
            f"Region {', '.join(nested)} calls graphs of its own (branches, loops), whose kernels are listed "
            "and in no group. Launches in a branch or a loop are not counted: only a run knows how many there are."
        )
    failed = [k for k in kernels if k.error]
    if failed:
        notes.append(f"{_kernels_text(len(failed))} did not compile for {run.target.name}; each has its error.")
    if run.target.backend != "cpu" and not any(region.facts.cudagraphs for region in run.regions):
        notes.append(
            "Inductor's CUDA Graphs are off unless asked for (option triton.cudagraphs=True); "
            "partitions and skip reasons say what they would do."
        )
    if not run.on_this_machine:
        notes.append(
            f"Compiled for {run.target.title} on a machine without that GPU; nothing was measured. "
            "Models are traced on the CPU: copies between CPU and GPU leave no trace."
        )
    return notes


def _kernels_text(count: int) -> str:
    return f"{count} kernel{'' if count == 1 else 's'}"
