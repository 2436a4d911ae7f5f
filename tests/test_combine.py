"""Kernels of the same code joined into one launch: which, where they run, and that the result compiles for a GPU."""

from __future__ import annotations

import itertools

import pytest
import torch
from torch import Tensor

from compiler.codegen.combined import combination_key
from compiler.describe import describe_region
from compiler.ir import Extern
from compiler.kernel_library import KernelLibrary
from compiler.planning import combine
from compiler.planning.schedule import Launch
from compiler.region import CompiledRegion, compile_region
from tests.graphs import TARGET, capture, compiled, launches

pytest.importorskip("triton", reason="kernels are Triton's")


def many(*tensors: Tensor) -> list[Tensor]:
    return [x.sin() * 2 + x.shape[0] * 0 for x in tensors]


def sizes(*lengths: int) -> list[Tensor]:
    return [torch.randn(n) for n in lengths]


def positions(region: CompiledRegion) -> dict[str, int]:
    """When each buffer is made."""
    return {
        b.name: i
        for i, step in enumerate(region.steps)
        for b in (step.stored if isinstance(step, Launch) else step.outputs)
        if b is not None
    }


def test_equal_code_is_one_launch_whatever_the_lengths() -> None:
    region, library = compiled(many, *sizes(5, 300, 7, 2, 999))
    (launch,) = region.steps
    assert isinstance(launch, Launch)
    assert launch.parts == 5
    assert launch.kernel.parts == (5, 300, 7, 2, 999)
    assert [b.numel for b in launch.stored] == [5, 300, 7, 2, 999]
    block = next(iter(library.by_source.values())).config.blocks["XBLOCK"]
    (kernel,) = library.by_source.values()
    assert kernel.grid == (sum(-(-n // block) for n in launch.kernel.parts), 1, 1)
    described = describe_region(region, library, library.target)
    assert described.groups[0].rule == "horizontal"
    assert "5 unrelated tensors" in described.groups[0].reason
    assert len(described.groups[0].nodes) == len({n.name for n in described.nodes if n.kind == "call"})


def test_lengths_that_vectors_divide_are_kept_apart_from_the_others() -> None:
    region, _ = compiled(many, *sizes(64, 128, 33, 35))
    assert sorted(launch.kernel.parts for launch in launches(region)) == [(33, 35), (64, 128)]


def test_other_code_and_other_dtypes_stay_apart() -> None:
    def function(a: Tensor, b: Tensor, c: Tensor) -> list[Tensor]:
        return [a.sin(), b.cos(), c.sin()]

    region, _ = compiled(function, torch.randn(5), torch.randn(7), torch.randn(9, dtype=torch.float64))
    assert [launch.parts for launch in launches(region)] == [1, 1, 1]


def test_what_is_needed_meanwhile_is_not_put_off() -> None:
    def function(a: Tensor, b: Tensor, w: Tensor) -> list[Tensor]:
        first = (a.sin() @ w).relu()
        return [first, (first @ w).sin(), b.sin()]

    region, _ = compiled(function, torch.randn(4, 4), torch.randn(3, 4), torch.randn(4, 4))
    made = positions(region)
    for position, step in enumerate(region.steps):
        assert all(made.get(name, -1) < position for name in step.reads)


def test_a_launch_takes_no_more_pointers_than_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(combine, "MAX_POINTERS", 12)
    region, _ = compiled(many, *sizes(*range(17, 32)))
    assert sorted(launch.parts for launch in launches(region)) == [3, 6, 6]
    assert [step.name for step in region.steps] == [f"group{i}" for i in range(len(region.steps))]


def test_overwriting_keeps_its_order() -> None:
    """y's new value is made of x's old one: x must not be overwritten with the first kernels."""

    def function(x: Tensor, y: Tensor, z: Tensor) -> Tensor:
        product = x @ x
        y.copy_((x * 2).flatten())
        x.copy_(z * 2)
        return product

    region, _ = compiled(function, torch.randn(5, 5), torch.randn(25), torch.randn(5, 5))
    seen: set[str] = set()
    for step in region.steps:
        assert not seen & {name for name in step.reads if name not in getattr(step, "over", {}).values()}
        seen |= set(step.over.values()) if isinstance(step, Launch) else set()


def test_reductions_and_tiles_are_no_parts() -> None:
    region, _ = compiled(lambda x, y: [x.sum(-1), y.sum(-1)], torch.randn(4, 40), torch.randn(5, 40))
    assert [combination_key(launch.kernel) for launch in launches(region)] == [None, None]


@pytest.mark.parametrize("count", [2, 3, 40])
def test_it_compiles_for_a_gpu_and_moves_vectors(count: int) -> None:
    library = KernelLibrary(TARGET, binaries=True, texts=False)
    graph = capture(many, *sizes(*(256 * (i + 1) for i in range(count))))
    region = compile_region(graph, name="inference", kind="inference", target=TARGET, library=library)
    (kernel,) = library.by_source.values()
    assert not kernel.error
    assert "v4.b32" in kernel.binary.asm["ptx"]
    assert not [step for step in region.steps if isinstance(step, Extern)]
    assert sorted(itertools.chain(*kernel.source.lines.values()))
