"""What a call that a graph serves goes through, from the function that Dynamo calls to the launch and back."""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("triton", reason="kernels are Triton's")

from torch import Tensor, nn  # noqa: E402

import compiler  # noqa: E402
from compiler.runtime import outputs  # noqa: E402
from compiler.runtime.partitioned import PartitionedRegion  # noqa: E402
from tests.fake_graphs import AddressRecording, FakeRecorder, graphing_backend  # noqa: E402

pytestmark = pytest.mark.usefixtures("fresh_dynamo")
OURS = str(Path(compiler.__file__).parent)
Graphed = tuple[Any, list[PartitionedRegion], FakeRecorder]


@pytest.fixture
def graphed(monkeypatch: pytest.MonkeyPatch) -> Graphed:
    recorder = FakeRecorder(AddressRecording)
    return *graphing_backend(monkeypatch, recorder), recorder


def frames_of_ours(call: Callable[[], object]) -> list[str]:
    """The functions of the compiler's that a call enters, in order."""
    entered: list[str] = []

    def note(frame: Any, event: str, _: object) -> None:
        if event == "call" and frame.f_code.co_filename.startswith(OURS):
            entered.append(f"{Path(frame.f_code.co_filename).stem}.{frame.f_code.co_name}")

    sys.setprofile(note)
    try:
        call()
    finally:
        sys.setprofile(None)
    return [name for name in entered if not name.endswith("comp>")]  # Python 3.11 makes a frame of each


def three_outputs(x: Tensor, y: Tensor) -> list[Tensor]:
    return [x + y, x * y, (x - y).sum()]


@pytest.mark.parametrize("function", [lambda x, y: torch.relu(x + y), three_outputs])
def test_a_call_that_a_graph_serves_goes_through_two_functions(function: Any, graphed: Graphed) -> None:
    own, _, recorder = graphed
    call = torch.compile(function, backend=own)
    inputs = torch.randn(4, 8), torch.randn(4, 8)
    with torch.no_grad():
        for _ in range(4):
            call(*inputs)
        (recording,) = recorder.recordings
        recording.run = lambda arguments: recording.written  # what a GPU does is no function of ours
        entered = frames_of_ours(lambda: call(*inputs))
    of_several = ["outputs._count"] if function is three_outputs else []
    assert entered == ["direct.call", "fast_replay.call", *of_several]


def test_a_call_with_inputs_elsewhere_goes_through_two_more(graphed: Graphed) -> None:
    own, regions, recorder = graphed
    weight = nn.Parameter(torch.randn(8))
    call = torch.compile(lambda x, y: torch.relu(x + y) * weight, backend=own)
    sets = [(torch.randn(4, 8), torch.randn(4, 8)) for _ in range(3)]
    with torch.no_grad():
        for x, y in sets * 2:
            torch.testing.assert_close(call(x, y), torch.relu(x + y) * weight)
        (recording,) = recorder.recordings
        recording.run = lambda arguments: recording.written
        entered = frames_of_ours(lambda: call(*sets[0]))
    assert entered == ["direct.call", "fast_replay.call", "captured.takes", "captured.follow"]
    assert sorted(route.route for route in regions[0].facts().routes) == ["patched", "patched", "static"]


class Unmovable(AddressRecording):
    """Holds every input where a library call reads it, which nobody can change."""

    def movable(self, *_: Any) -> None:
        return None


@pytest.mark.parametrize("grads", [False, True])
def test_what_is_copied_and_captured_twice_is_served_as_shortly(grads: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    recorder = FakeRecorder(Unmovable)
    own, regions = graphing_backend(monkeypatch, recorder)
    call = torch.compile(lambda x: torch.relu(x) + 1, backend=own)
    with torch.set_grad_enabled(grads):
        for x in torch.randn(5, 4, 8):
            torch.testing.assert_close(call(x.clone()), torch.relu(x) + 1)
        _, recording = recorder.recordings
        recording.run = lambda arguments: recording.written
        entered = frames_of_ours(lambda: call(x))
    again = ["captured.run"] if grads else []  # without gradients
    copying = ["captured.run", *again, "signature.copy_from", "signature.copy_all"]
    assert entered == ["direct.call", "fast_replay.call", *copying]
    assert [route.route for route in regions[0].facts().routes] == ["copied"]


def test_inputs_that_move_are_looked_at_before_parameters(graphed: Graphed) -> None:
    own, regions, recorder = graphed
    model = nn.Sequential(*(nn.Linear(8, 8) for _ in range(3))).eval()
    call = torch.compile(model, backend=own)
    with torch.no_grad():
        for _ in range(3):
            call(torch.randn(2, 8))
    (graph,) = regions[0].graphs
    assert graph.latest is not None
    shapes = [tuple(recorder.recordings[0].arguments[index].shape) for index in graph.latest.direct]
    assert shapes[0] == (2, 8)
    assert sorted(shapes[1:]) == [*[(8,)] * 3, *[(8, 8)] * 3]


def test_one_storage_is_asked_for_alone(graphed: Graphed, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[int] = []
    count = outputs._use_count
    monkeypatch.setattr(outputs, "_use_count", lambda storage: asked.append(storage) or count(storage))
    own, regions, _ = graphed
    call = torch.compile(lambda x: torch.relu(x) + 1, backend=own)
    x = torch.randn(8)
    for _ in range(3):
        call(x)
    asked.clear()
    kept = call(x)
    assert len(asked) == 1
    torch.testing.assert_close(call(x + 1), torch.relu(x + 1) + 1)  # what is held is not written over
    torch.testing.assert_close(kept, torch.relu(x) + 1)
    assert regions[0].replays


@pytest.mark.parametrize("autocast", [False, True])
def test_a_replay_records_no_gradients_and_autocast_does_not_act_on_it(autocast: bool, graphed: Graphed) -> None:
    own, regions, _ = graphed
    weight = torch.randn(8, 8, requires_grad=True)

    def function(x: Tensor) -> Tensor:
        with torch.no_grad():
            return torch.relu(x @ weight)

    call = torch.compile(function, backend=own)
    x = torch.randn(4, 8)
    with torch.autocast("cpu", torch.bfloat16, enabled=autocast):
        for _ in range(4):
            got, expected = call(x), function(x)
            assert (got.dtype, got.requires_grad, torch.is_grad_enabled()) == (expected.dtype, False, True)
            torch.testing.assert_close(got, expected)
            del got
    assert regions[0].replays >= 2


def test_a_parameter_that_moved_under_its_name_is_read_where_it_is(graphed: Graphed) -> None:
    own, regions, _ = graphed
    model = nn.Sequential(nn.Linear(8, 8), nn.ReLU()).eval()
    call = torch.compile(model, backend=own)
    x = torch.randn(4, 8)
    with torch.no_grad():
        for _ in range(4):
            torch.testing.assert_close(call(x), model(x))
        assert regions[0].replays >= 2
        before = model[0].weight.data
        for other in (torch.randn(8, 8), torch.randn(8, 8), before):
            model[0].weight.data = other
            torch.testing.assert_close(call(x), model(x))
            torch.testing.assert_close(call(x), model(x))


def test_threads_whose_inputs_move_get_their_own_results(graphed: Graphed) -> None:
    own, regions, _ = graphed
    interval = sys.getswitchinterval()
    call = torch.compile(lambda x: torch.relu(x) * 2 + 1, backend=own)
    for _ in range(3):
        call(torch.randn(4, 8))
    wrong: list[int] = []

    def work(seed: int) -> None:
        for x in torch.randn(400, 4, 8, generator=torch.Generator().manual_seed(seed)):
            if not torch.equal(call(x), torch.relu(x) * 2 + 1):
                wrong.append(seed)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    sys.setswitchinterval(1e-6)
    try:
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(interval)
    assert wrong == []
    assert regions[0].replays
