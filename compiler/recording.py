"""Everything that torch.compile does in this process, collected while a program that knows nothing of it runs.

A ``Recorder`` stands where Inductor's ``compile_fx`` and our own backend are called, watches and passes on; the program
gets what it would have got. In the end ``reports`` describes it all: one report for each compiler that was used.
"""

from __future__ import annotations

import platform
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from types import ModuleType
from typing import Any

from compiler.dynamo.messages import DynamoFacts
from compiler.report import Report, Target

# what a call of our backend without these means, said outright since the sessions here outlive a call
_PLAIN_CALL: Mapping[str, Any] = {"cuda_graph": False, "on_graphed_region": None, "executable": None}


class Recorder:
    """What one process compiles. Each ``on_…`` is told of a module that was just imported, and steps in there."""

    def __init__(self) -> None:
        self._stack = ExitStack()
        self._dynamo = DynamoFacts()
        self._inductor: dict[bool, Any] = {}  # InductorRun by whether its graphs work on a GPU
        self._inductor_options: dict[str, str] = {}
        self._within = False  # a call of compile_fx
        self._sessions: list[Any] = []  # backend.Session, one for each call of our backend
        self._libraries: dict[tuple[Any, bool], Any] = {}  # by options, and whether the graphs work on a GPU

    def on_dynamo(self, module: ModuleType) -> None:
        """Listen to what Dynamo says, in every thread."""
        from compiler.dynamo.log import watch_dynamo

        self._dynamo = self._stack.enter_context(watch_dynamo(every_thread=True))

    def on_inductor(self, module: Any) -> None:
        """Watch every graph that is handed to ``torch._inductor.compile_fx``."""
        real = module.compile_fx
        default = module.compile_fx_inner

        def compile_fx(
            model: Any,
            inputs: Sequence[Any],
            inner_compile: Callable[..., Any] = default,
            config_patches: Any = None,
            **keywords: Any,
        ) -> Any:
            from compiler.inductor.run import around_aot, watched

            # compile_fx calls itself with the patches applied; that call is the watched one's own
            if self._within or not hasattr(model, "graph"):
                return real(model, inputs, inner_compile, config_patches=config_patches, **keywords)
            run = self.inductor_run(model, inputs)
            self._inductor_options |= {name: str(value) for name, value in (config_patches or {}).items()}
            inner, texts = watched(run, model, inner_compile, config_patches or {})
            self._within = True
            try:
                with around_aot(run, texts):
                    return real(model, inputs, inner, config_patches=config_patches, **keywords)
            finally:
                self._within = False

        module.compile_fx = compile_fx

    def on_backend(self, module: Any) -> None:
        """Give every call of our backend a session that keeps its regions."""
        real = module.fusescope

        def fusescope(gm: Any, inputs: Sequence[Any], *, options: Mapping[str, Any] | None = None) -> Any:
            settings = dict(options or {})
            if settings.get("session") is None:
                settings = {**_PLAIN_CALL, **settings, "session": self._session(module, gm, inputs, settings)}
            return real(gm, inputs, options=settings)

        module.fusescope = fusescope

    def reports(self, source: str) -> list[Report]:
        """One report for each compiler that compiled something. Kernels whose texts are missing are compiled now."""
        from compiler.pipeline import fusescope_report, versions

        self._stack.close()
        found: list[Report] = []
        for run in self._inductor.values():
            if run.regions:
                found.append(self._inductor_report(run, source, versions()))
        for (_, runs_on_gpu), library in self._libraries.items():
            session = self._merged(library, library.target if runs_on_gpu else _cpu())
            if session.regions:
                training = any(region.kind == "backward" for region in session.regions)
                found.append(fusescope_report(session, self._dynamo, source, training, {}, {}))
        for report in found:
            report.notes.append("Recorded while a program ran; regions are in the order in which they were compiled.")
        return found

    def _inductor_report(self, run: Any, source: str, versions: Mapping[str, str]) -> Report:
        from compiler.inductor.compile import inductor_report

        return inductor_report(
            run,
            self._dynamo,
            source=source,
            training=any(region.kind == "backward" for region in run.regions),
            options=self._inductor_options,
            files={},
            versions=versions,
        )

    def inductor_run(self, model: Any, inputs: Sequence[Any]) -> Any:
        """What collects the graphs of ``model``'s device: the GPU's and the CPU's are reports of their own."""
        from compiler.backend import on_gpu
        from compiler.inductor.run import InductorRun
        from compiler.targets import local_target

        runs_on_gpu = on_gpu(model, inputs)
        if runs_on_gpu not in self._inductor:
            target = (local_target() if runs_on_gpu else None) or _cpu()
            self._inductor[runs_on_gpu] = InductorRun(target, {}, lambda event: None, dynamo=self._dynamo)
        return self._inductor[runs_on_gpu]

    def _session(self, module: Any, gm: Any, inputs: Sequence[Any], settings: Mapping[str, Any]) -> Any:
        from compiler.kernel_library import KernelLibrary
        from compiler.options import parse_options

        own = {name: value for name, value in settings.items() if name not in module.OWN_SETTINGS}
        chosen = parse_options(own)
        target = module.default_target()
        runs_on_gpu = module.on_gpu(gm, inputs)
        key = (chosen, runs_on_gpu)
        if key not in self._libraries:
            self._libraries[key] = KernelLibrary(target, binaries=runs_on_gpu, texts=True, options=chosen)
        before = sum(region.kind != "backward" for session in self._sessions for region in session.regions)
        session = module.Session(target, self._libraries[key], dynamo=self._dynamo, first_number=before)
        self._sessions.append(session)
        return session

    def _merged(self, library: Any, target: Target) -> Any:
        from compiler.backend import Session

        merged = Session(target, library)
        for session in self._sessions:
            if session.library is library:
                merged.regions += session.regions
                merged.specialized |= session.specialized
        return merged


def _cpu() -> Target:
    from compiler.targets import cpu_target

    return cpu_target(platform.machine(), "this machine's processor, whose rates are not known")
