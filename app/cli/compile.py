"""The commands that compile a model and that check its numbers, in this process: Ctrl-C ends them."""

from __future__ import annotations

import argparse
import os
import shlex
import sys
from typing import TYPE_CHECKING

import msgspec

from app.cli.errors import CommandError
from app.cli.model_code import run_model_code
from app.cli.show import print_json
from app.cli.summary import summary
from app.cli.text import count_text, table
from app.places import check_place
from app.session import SUFFIX, save_session
from app.worker.ended import work_text
from app.worker.protocol import Compile, Verify
from app.worker.work import compile_source, verify_source
from compiler.report import KernelCheck, Report
from compiler.targets import TARGETS, local_target

if TYPE_CHECKING:
    from compiler.pipeline import Compilation
    from compiler.stages import StageEvent

DEFAULT_TARGET = "h100"


def compile_command(options: argparse.Namespace) -> int:
    """Compile, print what became of it, write the session."""
    target = target_named(options.target)
    if options.output:
        check_place(options.output, SUFFIX)  # before minutes of work, not after
    report = compile_for(options, target).report
    deliver(report, options)
    return 1 if any(kernel.error for kernel in report.kernels) else 0


def compile_for(options: argparse.Namespace, target: str) -> Compilation:
    """Compile what the command line names for ``target``, the stages told on stderr.

    Raises:
        CommandError: in one sentence, whatever went wrong.
    """
    request = Compile(
        0,
        options.source,
        target,
        compiler=options.compiler,
        training=options.train,
        dynamic=options.dynamic,
        options=dict(options.option),
        allow_unsafe=options.allow_unsafe,
    )

    def on_stage(event: StageEvent) -> None:
        options.doing(work_text(options.source, event.stage, event.region))
        _tell_stage(event)

    return run_model_code(lambda: compile_source(request, on_stage), options, f"began with {options.source}")


def deliver(report: Report, options: argparse.Namespace) -> None:
    """Write the session where one is wanted, and print the summary or JSON."""
    if options.output:
        save_session(options.output, report)  # first: who reads the rest may stop in the middle, as head does
    if options.json:
        print_json(report)
    else:
        print(summary(report), flush=True)
        if options.output:
            print(f"\nWrote {options.output}; open it with: python main.py {shlex.quote(str(options.output))}")


def verify_command(options: argparse.Namespace) -> int:
    """Check every group's numbers. Returns 1 where one is out of tolerance."""
    if options.interpret:
        os.environ["TRITON_INTERPRET"] = "1"  # read when triton is imported, which nothing has done yet
    checks = run_model_code(
        lambda: verify_source(_verification(options)), options, f"checked the groups of {options.source}"
    )
    if options.json:
        print(msgspec.json.encode(checks).decode())
    else:
        print(_checks_table(checks))
    return 0 if all(check.ok for check in checks) else 1


def _verification(options: argparse.Namespace) -> Verify:
    chosen = dict(options.option)
    return Verify(0, options.source, options.interpret, options.train, chosen, options.dynamic, options.allow_unsafe)


def target_named(name: str) -> str:
    """The target to compile for: the one named, else this machine's GPU, else a named one.

    Raises:
        CommandError: wrong usage, there is no target of that name.
    """
    known = name.lower()
    if known and known != "local" and known not in TARGETS:
        hint = f"Choose one of local, {', '.join(TARGETS)}."
        raise CommandError(f"There is no target called '{name}'.", hint, status=2)
    if known:
        return known
    return "local" if local_target() else DEFAULT_TARGET


def _tell_stage(event: StageEvent) -> None:
    if event.ms is not None:
        region = f" {event.region}" if event.region else ""
        print(f"{event.stage}{region}: {event.ms / 1e3:.2f} s", file=sys.stderr, flush=True)


def _checks_table(checks: list[KernelCheck]) -> str:
    if not checks:
        return "No fusion group to check: no op of the model became a generated kernel."
    rows = [
        (
            check.region,
            check.group,
            check.kernel,
            f"{check.error:.2e}",
            f"{check.eager_error:.2e}",
            f"{check.tolerance:.2e}",
            "ok" if check.ok else f"WRONG {check.detail}",
        )
        for check in checks
    ]
    headers = ("region", "group", "kernel", "error", "eager's error", "tolerance", "")
    wrong = sum(not check.ok for check in checks)
    told = f"{count_text(len(checks), 'group')} against float64 eager, {wrong} out of tolerance"
    return f"{table(headers, rows, right=headers[3:6])}\n\n{told}"
