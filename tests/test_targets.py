"""Targets: the datasheet table, the local GPU's description, and occupancy."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from compiler.occupancy import LIMITS, occupancy
from compiler.report import Target
from compiler.targets import TARGETS, local_target, resolve, target_from_properties


def properties(**changes: object) -> SimpleNamespace:
    """What torch reports of an H200."""
    values: dict[str, object] = {
        "name": "NVIDIA H200",
        "major": 9,
        "minor": 0,
        "gcnArchName": "",
        "multi_processor_count": 132,
        "warp_size": 32,
        "L2_cache_size": 60 << 20,
        "total_memory": 150_000_000_000,
        "shared_memory_per_block": 48 << 10,
        "shared_memory_per_block_optin": 227 << 10,
        "clock_rate": 1_980_000,
        "memory_clock_rate": 3_201_000,
        "memory_bus_width": 6144,
    }
    return SimpleNamespace(**(values | changes))


def test_the_named_targets() -> None:
    assert set(TARGETS) == {"a100", "h100", "h200", "b200", "rtx4090", "rtx5090", "l4", "mi300x"}
    for name, target in TARGETS.items():
        assert target.name == name
        assert not target.local
        assert target.source
        assert min(target.bandwidth_gbs, target.tflops_fp32, target.tflops_fp16, target.memory_gb) > 0
        assert target.arch in LIMITS


def test_resolve_ignores_case_and_explains_an_unknown_name() -> None:
    assert resolve("H100") is TARGETS["h100"]
    with pytest.raises(ValueError, match='no target called "h900"; the targets are local, a100'):
        resolve("h900")


def test_local_follows_torch() -> None:
    torch = pytest.importorskip("torch")
    if torch.cuda.is_available():
        assert resolve("local") == local_target()
    else:
        assert local_target() is None
        with pytest.raises(ValueError, match="no GPU"):
            resolve("local")


def test_local_target_of_a_known_board() -> None:
    target = target_from_properties(properties())
    assert (target.name, target.local, target.backend, target.arch) == ("local", True, "cuda", 90)
    assert target.shared_bytes == 227 << 10
    assert target.bandwidth_gbs == TARGETS["h200"].bandwidth_gbs
    assert target.tflops_fp16 == TARGETS["h200"].tflops_fp16


def test_mig_slice_gets_its_share() -> None:
    slice_ = target_from_properties(
        properties(name="NVIDIA H200 MIG 1g.18gb", multi_processor_count=16, total_memory=17_600_000_000)
    )
    assert slice_.bandwidth_gbs == pytest.approx(4800 * 17.6 / 141, rel=1e-3)
    assert slice_.tflops_fp32 == pytest.approx(67 * 16 / 132, abs=0.1)


def test_unknown_board_is_computed_from_clocks() -> None:
    target = target_from_properties(properties(name="NVIDIA H200 NVL"))
    assert target.bandwidth_gbs == pytest.approx(2 * 3.201e9 * 768 / 1e9, rel=1e-3)
    assert target.tflops_fp32 == pytest.approx(2 * 128 * 132 * 1.98e9 / 1e12, rel=1e-2)
    assert "clocks" in target.source


def test_unknown_clocks_stay_zero() -> None:
    unknown = properties(name="NVIDIA X", major=77, minor=0)
    for field in ("clock_rate", "memory_clock_rate", "memory_bus_width"):
        delattr(unknown, field)
    target = target_from_properties(unknown)
    assert (target.bandwidth_gbs, target.tflops_fp32, target.tflops_fp16) == (0.0, 0.0, 0.0)


def test_triton_target() -> None:
    pytest.importorskip("triton")
    from compiler.targets import gpu_target

    cuda, hip = gpu_target(TARGETS["h100"]), gpu_target(TARGETS["mi300x"])
    assert (cuda.backend, cuda.arch, cuda.warp_size) == ("cuda", 90, 32)
    assert (hip.backend, hip.arch, hip.warp_size) == ("hip", "gfx942", 64)


# Worked by hand from the calculator's rules: A100 with 33 registers hands out 1280 a warp, 12 warps a partition.
@pytest.mark.parametrize(
    ("name", "registers", "shared", "warps", "blocks", "limited_by"),
    [
        ("h100", 32, 0, 4, 16, "warps"),
        ("h100", 16, 0, 1, 32, "blocks"),
        ("h100", 128, 0, 8, 2, "registers"),
        ("h100", 255, 0, 8, 1, "registers"),
        ("h100", 32, 100 << 10, 4, 2, "shared memory"),
        ("h100", 32, 227 << 10, 4, 1, "shared memory"),
        ("a100", 33, 0, 8, 6, "registers"),
        ("rtx4090", 40, 0, 8, 6, "warps"),
        ("mi300x", 128, 0, 4, 4, "registers"),
    ],
)
def test_occupancy(name: str, registers: int, shared: int, warps: int, blocks: int, limited_by: str) -> None:
    result = occupancy(TARGETS[name], registers=registers, shared_bytes=shared, warps=warps)
    assert result is not None
    assert (result.blocks, result.limited_by) == (blocks, limited_by)
    assert result.warps == blocks * warps
    assert result.fraction == pytest.approx(result.warps / LIMITS[TARGETS[name].arch].warps)


def test_a_block_that_does_not_fit_has_no_occupancy() -> None:
    result = occupancy(TARGETS["h100"], registers=32, shared_bytes=228 << 10, warps=4)
    assert result is not None
    assert (result.blocks, result.fraction, result.limited_by) == (0, 0.0, "shared memory")


def test_unknown_architecture_has_no_answer() -> None:
    unknown = Target("x", "X", "cuda", 77, 32, 1, 1, 1, 1.0, 1.0, 1.0, 1.0)
    assert occupancy(unknown, registers=32, shared_bytes=0, warps=4) is None
