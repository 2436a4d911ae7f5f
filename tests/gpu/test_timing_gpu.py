"""Timing and the local target on a real GPU: structure, never a duration."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch")

from compiler.runtime.timing import measure, sample, stream  # noqa: E402
from compiler.runtime.trace import kernel_names, trace  # noqa: E402
from compiler.targets import TARGETS, local_target  # noqa: E402

pytestmark = pytest.mark.gpu


def work(milliseconds_of_matmul: int = 1) -> Any:
    x = torch.randn(1024 * milliseconds_of_matmul, 1024, device="cuda")
    weight = torch.randn(1024, 1024, device="cuda")
    return lambda: x @ weight


def test_sample_and_stream_keep_every_iteration() -> None:
    samples = sample(work(), 300)
    assert len(samples.cpu_us) == len(samples.gpu_us) == 300
    assert min(samples.gpu_us) > 0
    batches = []
    for batch in stream(work(), lambda: len(batches) >= 4):
        batches.append(batch)
    assert sum(len(batch) for batch in batches) > 4


def test_measure_orders_its_three_clocks() -> None:
    record = measure(work(), "eager", iterations=30)
    assert record.iterations == len(record.cpu_samples) == len(record.gpu_samples) == len(record.wall_samples) == 30
    assert all(wall >= cpu for wall, cpu in zip(record.wall_samples, record.cpu_samples, strict=True))
    assert record.gpu == torch.cuda.get_device_name()


def test_launched_kernels_are_counted() -> None:
    x = torch.randn(1024, device="cuda")
    assert len(kernel_names(trace(lambda: torch.relu(x + 1), "eager"))) == 2


def test_local_target_agrees_with_its_datasheet() -> None:
    target = local_target()
    assert target is not None
    assert target.local
    assert target.multiprocessors > 0
    known = {sheet.title.split(" ")[1]: sheet for sheet in TARGETS.values()}
    sheet = known.get(target.title.split(" ")[1])
    if sheet is not None and "MIG" not in target.title:
        assert target.arch == sheet.arch
        assert target.shared_bytes == sheet.shared_bytes
        assert target.l2_bytes == pytest.approx(sheet.l2_bytes, rel=0.05)
        assert target.multiprocessors == pytest.approx(sheet.multiprocessors, rel=0.1)
