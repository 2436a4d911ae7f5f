"""Which configuration a tuned kernel gets. The clock is made up; times are taken on a GPU only."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import msgspec
import pytest

torch = pytest.importorskip("torch")

import compiler.region  # noqa: E402
from compiler.codegen.compile import CompiledKernel  # noqa: E402
from compiler.codegen.config import grid_of  # noqa: E402
from compiler.region import KernelLibrary  # noqa: E402
from compiler.report import Target, Trial  # noqa: E402
from compiler.runtime.autotune import fastest  # noqa: E402
from compiler.schedule import Launch  # noqa: E402
from compiler.targets import resolve  # noqa: E402
from tests.graphs import compiled, launches  # noqa: E402

LOCAL = msgspec.structs.replace(resolve("h100"), local=True)


def test_the_default_stays_unless_another_is_clearly_faster() -> None:
    assert fastest([Trial({}, 10.0), Trial({}, 9.9), Trial({}, 12.0)]) == 0
    assert fastest([Trial({}, 10.0), Trial({}, 9.5), Trial({}, 9.0)]) == 2


def launches_over(size: int) -> list[Launch]:
    region, _ = compiled(lambda x: torch.relu(x) + 1, torch.randn(size))
    return launches(region)


def test_a_tuned_kernel_runs_in_its_fastest_configuration(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[CompiledKernel] = []

    def timed(candidates: Sequence[CompiledKernel], launcher: Callable[..., Any], target: Target) -> list[Trial]:
        seen.extend(replace(c) for c in candidates)
        return [Trial(c.config.as_dict(), 10.0 - i) for i, c in enumerate(candidates)]

    monkeypatch.setattr(compiler.region, "trials", timed)
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


def test_little_kernels_and_far_targets_are_not_tuned(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiler.region, "trials", lambda *_: pytest.fail("nothing to time here"))
    for target, size in ((LOCAL, 1024), (resolve("h100"), 1 << 20)):
        library = KernelLibrary(target, binaries=True, texts=False)
        library.add(launches_over(size))
        (kernel,) = library.by_source.values()
        assert kernel.binary is not None
        assert kernel.trials == []
