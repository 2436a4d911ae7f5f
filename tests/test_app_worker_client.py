"""The client: events arrive in order, and no death of the worker is ever the app's."""

from __future__ import annotations

import os
import queue
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeVar

import pytest

from app.worker.client import WorkerClient
from app.worker.protocol import Compile, Compiled, Event, Failed, Ready, StageStarted, WorkerDied
from app.worker.ssh import ssh_command

STUB = [sys.executable, "-m", "tests.stub_worker"]
PATIENCE_S = 30.0
E = TypeVar("E", bound=Event)


class Watched:
    """A client and the events that it reported."""

    def __init__(self, command: list[str]) -> None:
        self.events: queue.Queue[Event] = queue.Queue()
        self.client = WorkerClient(self.events.put, command)

    def wait(self, kind: type[E]) -> E:
        """The next event, which must be of ``kind``."""
        event = self.events.get(timeout=PATIENCE_S)
        assert isinstance(event, kind), event
        return event

    def compile(self, source: str, command_id: int = 1) -> None:
        self.client.send(Compile(command_id, source, "h100"))


@pytest.fixture
def start() -> Iterator[Callable[..., Watched]]:
    made: list[Watched] = []

    def start_client(*arguments: str) -> Watched:
        made.append(Watched([*STUB, *arguments]))
        made[-1].client.start()
        return made[-1]

    yield start_client
    for watched in made:
        watched.client.close()


Start = Callable[..., Watched]


def test_commands_are_answered_and_ready_is_kept(start: Start) -> None:
    watched = start()
    ready = watched.wait(Ready)
    assert watched.client.ready == ready
    for command_id in (1, 2):
        watched.compile("ok", command_id)
        assert watched.wait(StageStarted).id == command_id
        assert watched.wait(Compiled).id == command_id
    watched.compile("failed", 3)
    watched.wait(StageStarted)
    assert watched.wait(Failed).message == "It cannot be done."


def test_send_starts_the_process(start: Start) -> None:
    watched = Watched(STUB)
    watched.compile("ok")
    watched.wait(Ready)
    watched.wait(StageStarted)
    watched.wait(Compiled)
    watched.client.close()


@pytest.mark.parametrize(("source", "code"), [("exit", 3), ("crash", -6)])
def test_death_is_reported_with_the_command_and_a_new_worker_comes(start: Start, source: str, code: int) -> None:
    watched = start()
    first = watched.wait(Ready)
    watched.compile(source, 7)
    watched.wait(StageStarted)
    died = watched.wait(WorkerDied)
    assert (died.id, died.exit_code, died.cancelled) == (7, code, False)
    if source == "crash":
        assert "the last words" in died.stderr_tail
    second = watched.wait(Ready)
    assert second.versions != first.versions
    watched.compile("ok")
    watched.wait(StageStarted)
    watched.wait(Compiled)


def test_a_dead_idle_worker_was_busy_with_nothing(start: Start) -> None:
    watched = start()
    watched.wait(Ready)
    watched.compile("ok", 5)
    watched.wait(StageStarted)
    watched.wait(Compiled)
    assert watched.client.ready is not None
    os.kill(int(watched.client.ready.versions["stub"]), 9)
    assert watched.wait(WorkerDied).id == 0


def test_cancel_ends_a_hanging_compile_and_the_next_one_works(start: Start) -> None:
    watched = start()
    watched.wait(Ready)
    watched.compile("hang", 4)
    watched.wait(StageStarted)
    watched.client.cancel()
    died = watched.wait(WorkerDied)
    assert (died.id, died.cancelled) == (4, True)
    watched.compile("ok", 5)
    watched.wait(Ready)
    assert watched.wait(StageStarted).id == 5
    assert watched.wait(Compiled).id == 5


def test_cancel_before_the_worker_has_come_up(start: Start) -> None:
    watched = start("slow-start")
    watched.compile("ok", 9)
    watched.client.cancel()
    watched.client.cancel()
    for _ in range(2):
        assert watched.wait(WorkerDied).cancelled


def test_cancel_kills_what_the_worker_started(start: Start) -> None:
    watched = start()
    watched.wait(Ready)
    watched.compile("child")
    watched.wait(StageStarted)
    child = int(watched.wait(StageStarted).stage)
    assert _runs(child)
    watched.client.cancel()
    watched.wait(WorkerDied)
    deadline = time.monotonic() + PATIENCE_S
    while _runs(child) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert not _runs(child)


def test_garbage_is_a_death_not_a_crash(start: Start) -> None:
    watched = start()
    watched.wait(Ready)
    watched.compile("garbage")
    watched.wait(StageStarted)
    assert "did not speak the protocol" in watched.wait(WorkerDied).stderr_tail


def test_a_worker_that_never_comes_up_is_not_started_again_and_again(start: Start) -> None:
    watched = start("no-start")
    assert "torch is not installed here" in watched.wait(WorkerDied).stderr_tail
    with pytest.raises(queue.Empty):
        watched.events.get(timeout=0.5)


def test_a_command_that_cannot_be_started(tmp_path: Path) -> None:
    watched = Watched([str(tmp_path / "nothing")])
    watched.client.start()
    assert "cannot be started" in watched.wait(WorkerDied).stderr_tail


def test_nothing_arrives_after_close(start: Start) -> None:
    watched = start()
    watched.wait(Ready)
    watched.compile("hang")
    watched.wait(StageStarted)
    watched.client.close()
    watched.compile("ok")
    with pytest.raises(queue.Empty):
        watched.events.get(timeout=0.5)


def test_a_callback_may_send_and_cancel() -> None:
    events: queue.Queue[Event] = queue.Queue()

    def on_event(event: Event) -> None:
        events.put(event)
        if isinstance(event, Ready) and events.qsize() == 1:
            client.send(Compile(1, "hang", "h100"))
        if isinstance(event, StageStarted):
            client.cancel()

    client = WorkerClient(on_event, STUB)
    client.start()
    seen = [events.get(timeout=PATIENCE_S) for _ in range(3)]
    client.close()
    assert [type(event) for event in seen] == [Ready, StageStarted, WorkerDied]


def test_ssh_command_quotes_and_refuses_options() -> None:
    command = ssh_command("gpu1", "/data/my folder")
    assert command[-2:] == ["gpu1", "cd '/data/my folder' && exec .venv/bin/python main.py worker"]
    for host in ("", "-oProxyCommand=evil"):
        with pytest.raises(ValueError, match="is not a host name"):
            ssh_command(host, "x")


def _runs(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
    except OSError:
        return False
    return state != "Z"
