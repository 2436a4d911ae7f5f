"""The real worker process: it compiles, and whatever the user's code does costs at most the worker."""

from __future__ import annotations

import queue
import subprocess
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeVar

import pytest

from app.worker.client import WorkerClient, local_command
from app.worker.protocol import (
    CheckNumerics,
    Compile,
    Compiled,
    Event,
    Failed,
    ListOptions,
    NumericsChecked,
    OptionsListed,
    Ready,
    StageFinished,
    StageStarted,
    StartRun,
    StopRun,
    Verified,
    Verify,
    WorkerDied,
)

torch = pytest.importorskip("torch")

PATIENCE_S = 120.0
E = TypeVar("E", bound=Event)
Write = Callable[[str, str], str]


class Worker:
    """A client of a real worker, its events in order."""

    def __init__(self) -> None:
        self.events: queue.Queue[Event] = queue.Queue()
        self.client = WorkerClient(self.events.put)
        self.client.start()
        self.last_id = 0

    def compile(self, source: str, target: str = "h100", **options: str) -> int:
        """Send a Compile; returns its id."""
        self.last_id += 1
        self.client.send(Compile(self.last_id, source, target, options=options))
        return self.last_id

    def answer(self, kind: type[E], command_id: int) -> tuple[E, list[Event]]:
        """The event that ends the command, which must be of ``kind``, and all events before it."""
        before: list[Event] = []
        while True:
            event = self.events.get(timeout=PATIENCE_S)
            answers = Compiled | Failed | Verified | NumericsChecked | OptionsListed | WorkerDied
            if isinstance(event, answers) and event.id == command_id:
                assert isinstance(event, kind), event
                return event, before
            before.append(event)

    def wait_for_stage(self, stage: str) -> None:
        """Until a stage of that name has begun."""
        while True:
            event = self.events.get(timeout=PATIENCE_S)
            if isinstance(event, StageStarted) and event.stage == stage:
                return


@pytest.fixture(scope="module")
def worker() -> Iterator[Worker]:
    made = Worker()
    yield made
    made.client.close()


@pytest.fixture
def write(tmp_path: Path) -> Write:
    """Write NAME.py; returns its path as a SOURCE."""

    def write_file(name: str, text: str) -> str:
        path = tmp_path / f"{name}.py"
        path.write_text(textwrap.dedent(text))
        return str(path)

    return write_file


def test_it_compiles_relu_add_mul_into_one_kernel(worker: Worker) -> None:
    compiled, before = worker.answer(Compiled, worker.compile("example:relu_add_mul"))
    report = compiled.report
    (kernel,) = report.kernels
    assert "triton.jit" in kernel.source
    assert "ptx" in kernel.irs
    assert [group.kernel for region in report.regions for group in region.groups] == [kernel.name]
    assert any(name.endswith("relu_add_mul.py") for name in report.sources)
    started = [event.stage for event in before if isinstance(event, StageStarted)]
    finished = [event.stage for event in before if isinstance(event, StageFinished)]
    assert started[0] == finished[0] == "load"
    assert {"capture", "lower", "fuse", "generate", "compile"} <= set(started)
    assert set(started) == set(finished)
    fractions = [event.fraction for event in before if isinstance(event, StageStarted)]
    assert fractions == sorted(fractions)
    assert worker.client.ready is not None
    assert worker.client.ready.versions["torch"] == torch.__version__


def test_options_reach_the_examples_function(worker: Worker) -> None:
    compiled, _ = worker.answer(Compiled, worker.compile("example:relu_add_mul", rows="64", columns="32"))
    shapes = [info.shape for node in compiled.report.regions[0].nodes for info in node.outputs]
    assert [64, 32] in shapes
    assert compiled.report.options == {"rows": "64", "columns": "32"}


@pytest.mark.parametrize(
    ("body", "sentence"),
    [
        ("return torch.ones(2) @ torch.ones(3)", "bad.py:5 raised RuntimeError"),
        ("return 3", "returned an int"),
        ("sys.exit(4)", "bad.py:5 called sys.exit(4)"),
        ("def f(x): raise ValueError('inside')\n    return f, (torch.ones(2),)", "bad.py:5 raised ValueError: inside"),
        ("def f(x): return x @ torch.ones(3)\n    return f, (torch.ones(2),)", "bad.py:5 raised RuntimeError"),
        ("return torch.nn.Linear(4, 4), (torch.ones(2, 5),)", "bad, called with its example inputs, raised"),
        ("return torch.relu, (torch.ones(2), torch.ones(3))", "raised TypeError"),
        ("def f(x): sys.exit(5)\n    return f, (torch.ones(2),)", "bad.py:5 called sys.exit(5)"),
    ],
)
def test_faults_of_the_model_are_one_sentence_and_the_worker_lives(
    worker: Worker, write: Write, body: str, sentence: str
) -> None:
    source = write("bad", f"import sys\nimport torch\n\ndef bad():\n    {body}\n")
    failed, before = worker.answer(Failed, worker.compile(source))
    assert sentence in failed.message
    assert "\n" not in failed.message
    assert "Traceback" in failed.detail or "returned" in failed.message
    assert failed.code == "source"
    assert not any(isinstance(event, WorkerDied) for event in before)


def test_a_model_that_ends_the_process_ends_only_the_worker(worker: Worker, write: Write) -> None:
    source = write(
        "killer",
        """
        import os, sys

        def killer():
            print("about to leave", file=sys.stderr, flush=True)
            os._exit(9)
        """,
    )
    died, _ = worker.answer(WorkerDied, worker.compile(source))
    assert (died.exit_code, died.cancelled, died.doing) == (9, False, f"loaded {source}")
    assert "about to leave" in died.stderr_tail
    worker.answer(Compiled, worker.compile("example:relu_add_mul"))


def test_a_model_that_never_returns_can_be_cancelled(worker: Worker, write: Write) -> None:
    command_id = worker.compile(write("forever", "def forever():\n    while True: pass\n"))
    worker.wait_for_stage("load")
    worker.client.cancel()
    died, _ = worker.answer(WorkerDied, command_id)
    assert died.cancelled
    worker.answer(Compiled, worker.compile("example:relu_add_mul"))


def test_what_the_model_prints_or_reads_does_not_disturb_the_protocol(worker: Worker, write: Write) -> None:
    source = write(
        "noisy",
        """
        import os, sys, torch

        def noisy():
            print("x" * 100_000)
            os.write(1, b"raw bytes on the real stdout")
            assert sys.stdin.read() == ""
            return torch.relu, (torch.ones(8),)
        """,
    )
    worker.answer(Compiled, worker.compile(source))


def test_running_needs_a_model_compiled_for_this_machine(worker: Worker) -> None:
    worker.answer(Compiled, worker.compile("example:relu_add_mul"))
    worker.last_id += 1
    worker.client.send(StartRun(worker.last_id, ["compiled"]))
    worker.client.send(StopRun(worker.last_id))
    failed, _ = worker.answer(Failed, worker.last_id)
    assert failed.code == "no_gpu"


@pytest.mark.skipif(torch.cuda.is_available(), reason="there is a local target here")
def test_the_local_target_without_a_gpu(worker: Worker) -> None:
    failed, _ = worker.answer(Failed, worker.compile("example:relu_add_mul", target="local"))
    assert failed.code == "no_gpu"
    assert "no GPU" in failed.message


def test_verify_runs_the_interpreter_in_a_process_of_its_own(worker: Worker) -> None:
    worker.last_id += 1
    worker.client.send(Verify(worker.last_id, "example:relu_add_mul?rows=16&columns=16", interpret=True))
    verified, _ = worker.answer(Verified, worker.last_id)
    assert [check.ok for check in verified.checks] == [True]


def test_numerics_are_checked_in_a_process_of_their_own(worker: Worker) -> None:
    worker.last_id += 1
    options = {"rows": "16", "columns": "16"}
    worker.client.send(CheckNumerics(worker.last_id, "example:relu_add_mul", "h100", options=options))
    checked, _ = worker.answer(NumericsChecked, worker.last_id)
    assert [(check.unit, check.node) for check in checked.numerics.nodes] == [("group0", "relu")]
    assert checked.numerics.nodes[0].error < 1e-6


def test_the_worker_ends_when_the_app_is_gone() -> None:
    process = subprocess.Popen(local_command(), stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdin is not None
    process.stdin.close()
    assert process.wait(timeout=PATIENCE_S) == 0


def test_a_stranger_on_stdin_is_told_so() -> None:
    done = subprocess.run(local_command(), input=b"hello, is this a shell?\n", capture_output=True, check=False)
    assert b"not the Fusescope app" in done.stderr


def test_ready_is_the_first_event() -> None:
    watched = Worker()
    assert isinstance(watched.events.get(timeout=PATIENCE_S), Ready)
    watched.client.close()


@pytest.mark.parametrize(("compiler", "name"), [("fusescope", "num_warps"), ("inductor", "max_fusion_size")])
def test_options_are_listed(worker: Worker, compiler: str, name: str) -> None:
    worker.last_id += 1
    worker.client.send(ListOptions(worker.last_id, compiler))
    listed, _ = worker.answer(OptionsListed, worker.last_id)
    assert listed.compiler == compiler
    assert name in {info.name for info in listed.options}
