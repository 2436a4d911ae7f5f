"""Random programs of a dozen ops give eager's numbers and gradients; what fails is shrunk to few lines."""

from __future__ import annotations

from random import Random

import pytest
import torch
from hypothesis import HealthCheck, given, note, settings
from hypothesis import strategies as st

from tests.interpret import running
from tests.interpret.programs import Program, random_program
from tests.interpret.running import run_program, train_program


@settings(max_examples=50, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(st.randoms(use_true_random=False), st.integers(1, 12))
def test_a_random_program_gives_eagers_numbers(random: Random, length: int) -> None:
    program = random_program(random, length)
    note(str(program))
    assert run_program(program) == ""


@pytest.mark.usefixtures("fresh_dynamo")
@settings(max_examples=15, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(st.randoms(use_true_random=False), st.integers(1, 12))
def test_a_random_program_has_eagers_gradients(random: Random, length: int) -> None:
    program = random_program(random, length)
    note(str(program))
    assert train_program(program) == ""


def test_what_cancels_in_eager_alone_is_forgiven_and_a_wrong_number_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    x = torch.full((7,), 2.1)
    program = Program([x], ["v0 = F.layer_norm(x0,[7])"], ["v0"], {torch.float32})
    for error, fault in ((3e-4, False), (0.1, True)):
        results = [program.function()(x)[0] + error]
        monkeypatch.setattr(running, "generated", lambda *_, results=results: (results, None))
        assert bool(run_program(program)) is fault
    calm = Program([x], ["v0 = x0.sin()"], ["v0"], {torch.float32})
    results = [x.sin() + 3e-4]
    monkeypatch.setattr(running, "generated", lambda *_: (results, None))
    assert run_program(calm)


@pytest.mark.usefixtures("fresh_dynamo")
def test_a_wrong_gradient_of_right_results_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    program = Program([torch.ones(3)], ["v0 = x0.sin()"], ["v0"], {torch.float32})

    def wrong(graph: torch.fx.GraphModule, inputs: list[torch.Tensor], **options: object) -> object:
        return lambda x: [result + 0.1 * (x - x.detach()) for result in graph(x)]

    monkeypatch.setattr(running, "fusescope", wrong)
    assert train_program(program).startswith("gradient of x0: 2 of 3 differ")  # the middle one weighs nothing
