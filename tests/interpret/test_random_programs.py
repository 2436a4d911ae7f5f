"""Random programs of a dozen ops give eager's numbers; what fails is shrunk to few lines."""

from __future__ import annotations

from random import Random

from hypothesis import HealthCheck, given, note, settings
from hypothesis import strategies as st

from tests.interpret.programs import random_program
from tests.interpret.running import run_program


@settings(max_examples=50, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(st.randoms(use_true_random=False), st.integers(1, 12))
def test_a_random_program_gives_eagers_numbers(random: Random, length: int) -> None:
    program = random_program(random, length)
    note(str(program))
    assert run_program(program) == ""
