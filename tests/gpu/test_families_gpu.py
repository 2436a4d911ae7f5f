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
    # torch 2.11's own gradient of avg_pool2d is another on CUDA where tensors are channels-last, so it cannot judge.
    to_gpu = (lambda x: x.cuda().contiguous()) if name == "pools" else (lambda x: x.cuda())
    check(function, *pytree.tree_map_only(torch.Tensor, to_gpu, inputs))


class Cache(torch.nn.Module):
    """Keys written into a buffer, and read with all that were written before."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("keys", torch.zeros(4, 64, 32))

    def forward(self, key: torch.Tensor, place: torch.Tensor) -> torch.Tensor:
        self.keys.index_copy_(1, place, key.sin())
        return self.keys.sum(1)


@pytest.mark.parametrize("graphed", [False, True])
def test_a_cache_is_written_in_place(graphed: bool) -> None:
    eager, model = Cache().cuda(), Cache().cuda()
    run = torch.compile(model, backend="fusescope", options={"cuda_graph": graphed})
    with torch.no_grad():
        for step in range(6):
            key, place = torch.randn(4, 2, 32, device="cuda"), torch.tensor([2 * step, 2 * step + 1], device="cuda")
            torch.testing.assert_close(run(key, place), eager(key, place))
            torch.testing.assert_close(model.keys, eager.keys)


def test_a_position_outside_stops_the_program() -> None:
    """In a process of its own: an assertion on the device ends every later call, too."""
    script = """
import torch
from compiler.backend import fusescope
f = torch.compile(lambda x, i: x[i] + 1, backend=fusescope)
x = torch.randn(5, 4, device="cuda")
torch.testing.assert_close(f(x, torch.tensor([0, -5], device="cuda")), x[[0, 0]] + 1)
f(x, torch.tensor([1, 5], device="cuda"))
torch.cuda.synchronize()
"""
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=False)
    assert done.returncode != 0
    assert "index out of range for size 5" in done.stdout + done.stderr


def test_powers_cut_off_to_whole_numbers_are_eagers() -> None:
    def powers() -> list[torch.Tensor]:
        return [torch.logspace(0, end, 4, 5, dtype=torch.int64, device="cuda") for end in (2, 3, 4)]

    for ours, eager in zip(torch.compile(powers, backend="fusescope")(), powers(), strict=True):
        assert torch.equal(ours, eager)
