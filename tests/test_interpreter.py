"""Kernels give the right numbers in Triton's interpreter: see ``interpreted.py``."""

from __future__ import annotations

import pytest

from tests.conftest import INTERPRETED

pytest.importorskip("triton", reason="torch's CPU wheels bring no Triton, and kernels are written in it")


@pytest.mark.timeout(900)
def test_generated_kernels_give_the_right_numbers_in_tritons_interpreter(request: pytest.FixtureRequest) -> None:
    status, output = request.config.stash[INTERPRETED].wait()
    assert status == 0, output
