"""Which configuration a tuned kernel gets. The clock is made up; times are taken on a GPU only."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import msgspec
import pytest

torch = pytest.importorskip("torch")

from torch._subclasses.fake_tensor import FakeTensorMode  # noqa: E402

import compiler.kernel_library  # noqa: E402
from compiler.codegen.compile import CompiledKernel  # noqa: E402
from compiler.codegen.config import grid_of  # noqa: E402
from compiler.kernel_library import KernelLibrary  # noqa: E402
from compiler.planning.schedule import Launch  # noqa: E402
from compiler.report import Target, Trial  # noqa: E402
from compiler.runtime.autotune import fastest, tune  # noqa: E402
from compiler.targets import resolve  # noqa: E402
from tests.graphs import compiled, launches  # noqa: E402

LOCAL = msgspec.structs.replace(resolve("h100"), local=True)


def timed_as(*times: float) -> Any:
    return [(f"kernel {i}", Trial({}, us)) for i, us in enumerate(times)]


def test_the_default_stays_unless_another_is_clearly_faster() -> None:
    assert fastest(timed_as(10.0, 9.9, 12.0))[0] == "kernel 0"
    assert fastest(timed_as(10.0, 9.5, 9.0))[0] == "kernel 2"
    assert [trial.us for trial in fastest(timed_as(10.0, 9.5, 9.0))[1]] == [10.0, 9.5, 9.0]


def launches_over(size: int, device: str = "cuda") -> list[Launch]:
    """Of a graph on the CPU, said to be on ``device``: compiling asks for no memory."""
    region, _ = compiled(lambda x: torch.relu(x) + 1, torch.randn(size))
    return [_moved(launch, torch.device(device)) for launch in launches(region)]


def _moved(launch: Launch, device: torch.device) -> Launch:
    arguments = tuple(replace(buffer, device=device) for buffer in launch.kernel.arguments)
    return replace(launch, kernel=replace(launch.kernel, arguments=arguments))


def test_a_tuned_kernel_runs_in_its_fastest_configuration(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[CompiledKernel] = []

    def timed(candidates: Sequence[CompiledKernel], launcher: Callable[..., Any], target: Target) -> Any:
        seen.extend(replace(c) for c in candidates)
        return candidates[-1], [Trial(c.config.as_dict(), 10.0 - i) for i, c in enumerate(candidates)]

    monkeypatch.setattr(compiler.kernel_library, "tune", timed)
    monkeypatch.setattr(torch.cuda, "current_device", lambda: 0)
    library = KernelLibrary(LOCAL, binaries=True, texts=True)
    (launch,) = launches_over(1 << 20)
    library.add([launch])
    (kernel,) = library.by_source.values()
    assert len(seen) >= 3
    assert all(candidate.binary is not None for candidate in seen)
    assert kernel.config == seen[-1].config
    assert kernel.binary is seen[-1].binary
    assert kernel.grid == grid_of(kernel.source, kernel.config)
    assert [trial.config for trial in kernel.trials] == [candidate.config.as_dict() for candidate in seen]
    assert kernel.facts.registers, "the texts are of the chosen binary"


def test_little_kernels_and_memory_elsewhere_are_not_tuned(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiler.kernel_library, "tune", lambda *_: pytest.fail("nothing to time here"))
    for target, size, device in ((LOCAL, 1024, "cuda"), (resolve("h100"), 1 << 20, "cuda"), (LOCAL, 1 << 20, "cpu")):
        library = KernelLibrary(target, binaries=True, texts=False)
        library.add(launches_over(size, device))
        (kernel,) = library.by_source.values()
        assert kernel.binary is not None
        assert kernel.trials == []


def test_arguments_are_real_and_leave_the_users_random_numbers_alone() -> None:
    region, _ = compiled(lambda x, i: torch.relu(x)[i] + 1, torch.randn(64, 3), torch.tensor([1, 2]))
    buffers = [b for launch in launches(region) for b in launch.kernel.arguments]
    torch.manual_seed(7)
    expected = torch.rand(3)
    torch.manual_seed(7)
    kernel = _NothingToRun(buffers)
    with FakeTensorMode():  # as where Dynamo traces
        _, trials = tune([kernel], lambda kernel: kernel.see, LOCAL)  # type: ignore[arg-type, list-item]
    assert kernel.seen
    assert trials == []
    assert torch.equal(torch.rand(3), expected)


class _NothingToRun:
    """A kernel that looks at its arguments and refuses to run."""

    def __init__(self, buffers: list[Any]) -> None:
        self.source = self
        self.arguments = buffers
        self.sizes = ()
        self.seen = False

    def see(self, *tensors: Any) -> None:
        for tensor, buffer in zip(tensors, self.arguments, strict=True):
            assert type(tensor) is torch.Tensor
            assert (tuple(tensor.shape), tensor.stride(), tensor.dtype) == (buffer.size, buffer.stride, buffer.dtype)
            assert tensor.dtype.is_floating_point or not tensor.any()
        self.seen = True
        raise torch.OutOfMemoryError("enough seen")
