"""Every family of ops on a GPU: the kernels' numbers against eager's and against float64."""

from __future__ import annotations

import subprocess
import sys

import pytest
import torch
from torch.utils import _pytree as pytree

from tests.interpret.checking import check
from tests.test_families_compile import FAMILIES


@pytest.mark.parametrize("name", [name for name in FAMILIES if name != "random numbers"])
def test_numbers(name: str) -> None:
    function, inputs = FAMILIES[name]
    check(function, *pytree.tree_map_only(torch.Tensor, lambda x: x.cuda(), inputs))


def test_a_position_outside_stops_the_program() -> None:
    """In a process of its own: an assertion on the device ends every later call, too."""
    script = """
import torch
f = torch.compile(lambda x, i: x[i] + 1, backend="fusescope")
x = torch.randn(5, 4, device="cuda")
torch.testing.assert_close(f(x, torch.tensor([0, -5], device="cuda")), x[[0, 0]] + 1)
f(x, torch.tensor([1, 5], device="cuda"))
torch.cuda.synchronize()
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert done.returncode != 0
    assert "index out of range for size 5" in done.stdout + done.stderr
