"""Symbolic sizes on a GPU: one compilation, eager's numbers at every size, plain and replayed; indices past int32."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

torch = pytest.importorskip("torch")
F = torch.nn.functional

from compiler.backend import Session, default_target, fusescope  # noqa: E402
from compiler.kernel_library import KernelLibrary  # noqa: E402

pytestmark = [pytest.mark.gpu, pytest.mark.timeout(600)]

CASES: dict[str, Callable[[Any], Any]] = {
    "pointwise": lambda x: (x.tanh() * 2 + x.shape[0]) / x.shape[1],
    "softmax": lambda x: x.softmax(-1),
    "columns": lambda x: x.sum(0) + x.mean(),
    "transpose": lambda x: (x.t() * 2).contiguous(),
    "pieces": lambda x: F.pad(torch.cat([x, x.flip(1)], 1), (1, 2)).relu(),
    "norm": lambda x: F.layer_norm(x, (x.shape[-1],)),
    "product": lambda x: (x @ x.t()).relu().sum(1),
    "positions": lambda x: x.gather(1, x.argsort(1)).argmax(1),
    "scan": lambda x: x.cumsum(1),
}
SIZES = [(64, 128), (33, 65), (512, 4096), (7, 20_001), (20_001, 7), (128, 256)]


def compiled(function: Any, **options: Any) -> tuple[Callable[..., Any], Session]:
    target = default_target()
    session = Session(target, KernelLibrary(target, binaries=True, texts=False))
    backend = lambda gm, x: fusescope(gm, x, options={"session": session, **options})  # noqa: E731
    return torch.compile(function, backend=backend, dynamic=True), session


def close(result: Any, expected: Any) -> None:
    torch.testing.assert_close(result, expected, rtol=2e-3, atol=2e-3)


@pytest.mark.parametrize("cuda_graph", [False, True])
@pytest.mark.parametrize("name", CASES)
def test_one_program_serves_every_size(name: str, cuda_graph: bool) -> None:
    function = CASES[name]
    run, session = compiled(function, cuda_graph=cuda_graph)
    with torch.no_grad():
        for size in (*SIZES, *SIZES[:2]):
            for _ in range(3 if cuda_graph else 1):  # warmed up, captured, replayed
                x = torch.randn(size, device="cuda")
                close(run(x).clone(), function(x))
    assert len(session.regions) == 1
    assert not session.specialized
    assert not [k.error for k in session.library.by_source.values() if k.error]


@pytest.mark.parametrize("rows", [0, 1])
def test_sizes_zero_and_one(rows: int) -> None:
    function = lambda x: (x.sum(0), x * 2 + 1)  # noqa: E731
    run, _ = compiled(function)
    for count in (64, rows, 100, rows):
        x = torch.randn(count, 33, device="cuda")
        for result, expected in zip(run(x), function(x), strict=True):
            close(result, expected)


def test_training_with_any_batch_and_length() -> None:
    layer = torch.nn.TransformerEncoderLayer(64, 4, 128, dropout=0.0, batch_first=True, activation="gelu").cuda()
    run, session = compiled(layer)
    for size in ((4, 32), (3, 17), (16, 100), (2, 5)):
        x = torch.randn(*size, 64, device="cuda")
        found = torch.autograd.grad(run(x).square().mean(), list(layer.parameters()))
        for gradient, expected in zip(
            found, torch.autograd.grad(layer(x).square().mean(), list(layer.parameters())), strict=True
        ):
            close(gradient, expected)
    assert [region.kind for region in session.regions] == ["forward", "backward"]
    assert not session.specialized


@pytest.mark.parametrize("cuda_graph", [False, True])
def test_counts_known_only_at_run_time(cuda_graph: bool) -> None:
    function = lambda x: ((x * 2 + 1)[x > 0].exp() * 3, x.sum())  # noqa: E731
    with torch._dynamo.config.patch(capture_dynamic_output_shape_ops=True):
        run, session = compiled(function, cuda_graph=cuda_graph)
        for count in (1000, 37, 4096, 1000, 1000):
            x = torch.randn(count, device="cuda")
            for result, expected in zip(run(x), function(x), strict=True):
                close(result.clone(), expected)
    assert len(session.regions) == 1


def test_indices_beyond_an_int32_use_the_wide_kernel() -> None:
    """4.3 GB of bytes in, as many out: the same program, its kernel compiled for int64 when such a size comes."""
    run, session = compiled(lambda x: x + 1)
    rows = 2**16 + 1
    if torch.cuda.mem_get_info()[0] < 20 * 2**30:
        pytest.skip("less than 20 GB are free")
    for size in ((16, 2**15), (rows, 2**15 + 3), (16, 2**15)):
        x = torch.zeros(size, dtype=torch.int8, device="cuda")
        x[-1, -1] = 5
        result = run(x)
        assert result[0, 0] == 1
        assert result[-1, -1] == 6
        assert int(result[:, -1].sum(dtype=torch.int64)) == size[0] + 5
        del x, result
    assert len(session.regions) == 1


def test_a_tall_transpose_has_more_tiles_than_a_grid_is_high() -> None:
    for static in (torch.randn(2, 16, 1 << 20, device="cuda"), torch.randn(33, 2**21, device="cuda")):
        tall = torch.compile(lambda x: x.transpose(-1, -2).contiguous() + 1, backend=fusescope, dynamic=False)
        close(tall(static), static.transpose(-1, -2).contiguous() + 1)
    run, _ = compiled(lambda x: x.permute(1, 2, 0).contiguous() + 1)
    for size in ((64, 40, 50), (64, 5000, 600)):
        x = torch.randn(size, device="cuda")
        close(run(x), x.permute(1, 2, 0).contiguous() + 1)
