"""Sizes known only at run time: one compilation, and then eager's numbers at every size that comes."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from compiler.backend import Session, fusescope
from compiler.codegen.compile import CompiledKernel
from compiler.ir import Extern, Lazy
from compiler.kernel_library import KernelLibrary
from compiler.lowering import registry
from compiler.lowering.registry import Scope
from compiler.ops import const, op
from compiler.options import DEFAULTS
from compiler.report import ExternReason
from tests.graphs import TARGET, launches

Sizes = Sequence[tuple[int, ...]]
MATRICES: Sizes = [(6, 8), (4, 5), (33, 70)]  # torch compiles anew where a slice of them has one element or none


@pytest.fixture(autouse=True)
def anew() -> Iterator[None]:
    torch._dynamo.reset()
    torch.manual_seed(0)
    with torch._dynamo.config.patch(capture_dynamic_output_shape_ops=True, capture_scalar_outputs=True):
        yield
    torch._dynamo.reset()


def compiled(function: Any, dynamic: bool | None = True) -> tuple[Callable[..., Any], Session]:
    session = Session(TARGET, KernelLibrary(TARGET, binaries=False, texts=False))
    backend = lambda gm, inputs: fusescope(gm, inputs, options={"session": session})  # noqa: E731
    return torch.compile(function, backend=backend, dynamic=dynamic), session


def listed(result: Any) -> list[Any]:
    return list(result) if isinstance(result, tuple | list) else [result]


def equal(results: Any, expected: Any) -> None:
    for result, eager in zip(listed(results), listed(expected), strict=True):
        if isinstance(eager, Tensor):
            assert result.stride() == eager.stride() or eager.numel() == 0
            torch.testing.assert_close(result, eager, rtol=1e-4, atol=1e-4, equal_nan=True)
        else:
            assert result == eager


def serves_all(function: Any, sizes: Sizes = MATRICES, make: Callable[..., Any] = torch.randn) -> Session:
    """Assert that one compilation gives eager's results for inputs of all sizes, without a library call that a static
    program would not need."""
    run, session = compiled(function)
    for size in sizes:
        inputs = make(*size)
        inputs = inputs if isinstance(inputs, tuple) else (inputs,)
        equal(run(*inputs), function(*inputs))
    assert [r.kind for r in session.regions] == ["inference"]
    assert not session.specialized
    reasons = {step.reason for step in session.regions[0].steps if isinstance(step, Extern)}
    assert reasons <= {ExternReason.LIBRARY_IS_FASTER}
    return session


POINTWISE = {
    "chain": lambda x: (x.tanh() * 2 + x, x.shape[0] * 2, x.shape[1] - 1),
    "sizes as numbers": lambda x: x / x.shape[0] + x.shape[1] ** 2,
    "broadcast": lambda x: x[:, :1] * x[:1] + x.sum(0) * x.shape[0],
    "arange": lambda x: torch.arange(x.shape[0])[:, None] * x + torch.full((x.shape[1],), x.shape[0]),
    "masks": lambda x: x.tril().masked_fill(x > 0.5, 0.25) + torch.where(x < 0, x.triu(1), x),
}
VIEWS = {
    "transposed": lambda x: (x.t() + 1, x.t().contiguous() * 2),
    "flattened": lambda x: (x.reshape(-1).exp(), x.reshape(x.shape[1], x.shape[0]) + 1),
    "slices": lambda x: x[-2:, 1::2] * 2 + x[:1, 1::2],
    "pieces": lambda x: [torch.cat([x, x[:, 1:] * 2, x[:, :1]], 1).relu(), torch.stack([x, -x]).sum(0)],
    "many pieces": lambda x: (torch.cat([x * i for i in range(9)], 1), torch.cat([x[i % 2 :] + i for i in range(12)])),
    "padded": lambda x: F.pad(x, (1, 2, 0, 1), value=3.0) * 2,
    "flipped": lambda x: x.flip(0) + x.roll(1, 1) + x.roll(-1, 0),
    "repeated": lambda x: (x.repeat(2, 3) + 1, x[None].expand(3, -1, -1) * 2),
    "unbound halves": lambda x: [half.cos() for half in x.repeat(2, 1).chunk(2)],
    "gathered": lambda x: x[torch.arange(x.shape[0]).flip(0)] * x.gather(1, (x > 0).long()),
}
REDUCED = {
    "softmax": lambda x: x.softmax(-1) + x.softmax(0),
    "sums": lambda x: (x.sum(), x.sum(0), x.mean(1), x.amax(1, keepdim=True), x.prod(1)),
    "norms": lambda x: F.layer_norm(x, (x.shape[-1],)) + x.var(0) + x.std(),
    "positions": lambda x: (x.argmax(1), *x.min(0), (x > 0).any(1), (x > -3).all()),
    "scans": lambda x: (x.cumsum(0), x.cumsum(1).sum(0)),
}
LIBRARY = {
    "products": lambda x: ((x @ x.t()).relu() + 1, torch.addmm(x[0], x, x.t() @ x)),
    "scatter": lambda x: torch.zeros_like(x).scatter_add(1, (x > 0).long(), x),
}
ALL = {**POINTWISE, **VIEWS, **REDUCED, **LIBRARY}


@pytest.mark.parametrize("name", ALL)
def test_one_program_serves_every_size(name: str) -> None:
    serves_all(ALL[name])


REAL: dict[str, Callable[[Tensor], Tensor]] = {
    "variance": lambda x: x.var(0) + x.std(),
    "batch norm": lambda x: F.batch_norm(x, None, None, training=True),
    "ratio": lambda x: x * (x.shape[0] / x.shape[1]) + (x.shape[1] // 2 + 0.5) ** 1.5,
    "root": lambda x: x.sin() / math.sqrt(x.shape[1]) + x.shape[0] ** 0.5,
    "another resolution": lambda x: F.interpolate(x[None, None], size=(11, 5), mode="bilinear")[0, 0],
    "of a library call": lambda x: torch.addmm(x, x, x.t() @ x, alpha=1 / x.shape[0], beta=0.5 * x.shape[1]),
}


@pytest.mark.parametrize("name", REAL)
def test_real_numbers_made_of_sizes_are_computed_where_they_are_needed(name: str) -> None:
    """Gradients too; only products and convolutions are library calls, none for the numbers."""
    run, session = compiled(REAL[name])
    for size in MATRICES:
        x = torch.randn(size)
        pairs = []
        for call in (run, REAL[name]):
            given = x.clone().requires_grad_()
            result = call(given)
            (result * torch.linspace(-1, 1, result.numel()).reshape(result.shape)).sum().backward()
            pairs.append([result.detach(), given.grad])
        equal(*pairs)
    assert len(session.regions) == 2
    calls = [step for region in session.regions for step in region.steps if isinstance(step, Extern)]
    assert {step.reason for step in calls} <= {ExternReason.LIBRARY_IS_FASTER}


def test_a_real_number_of_a_size_takes_pythons_type() -> None:
    """It is no tensor: whole numbers times it are of the default type, half floats stay half."""
    for dtype in (torch.int64, torch.float16, torch.float64):
        serves_all(lambda x: x * (x.shape[0] / 3), make=lambda *size, t=dtype: (torch.randn(size) * 8).to(t))
        torch._dynamo.reset()


def test_batches_of_two_to_nine_compile_once() -> None:
    model = nn.Sequential(nn.Linear(6, 12), nn.GELU(), nn.LayerNorm(12), nn.Linear(12, 3)).eval()
    with torch.no_grad():
        serves_all(model, [(batch, 6) for batch in range(2, 10)])


def test_a_marked_dimension_is_symbolic_and_others_are_not() -> None:
    run, session = compiled(lambda x: (x * 2).sum(1), dynamic=None)
    x = torch.randn(4, 5)
    torch._dynamo.mark_dynamic(x, 0)
    equal(run(x), (x * 2).sum(1))
    for rows in (7, 2, 31):
        x = torch.randn(rows, 5)
        equal(run(x), (x * 2).sum(1))
    assert len(session.regions) == 1
    (launch,) = launches(session.regions[0])
    assert [name for name, _ in launch.kernel.sizes] == ["xnumel"]
    assert launch.kernel.domain.r is not None
    assert launch.kernel.domain.r.numel == 5


def test_a_size_that_changes_is_symbolic_from_then_on() -> None:
    run, session = compiled(lambda x: x.softmax(1), dynamic=None)
    for columns in (5, 6, 7, 90):
        x = torch.randn(3, columns)
        equal(run(x), x.softmax(1))
    assert len(session.regions) == 2


@pytest.mark.parametrize("rows", [0, 1])
def test_sizes_zero_and_one_have_programs_of_their_own(rows: int) -> None:
    function = lambda x: (x.sum(0), (x * 2 + 1).t(), x.sum(1))  # noqa: E731
    run, session = compiled(function)
    for count in (4, rows, 9, rows, 2):
        x = torch.randn(count, 3)
        equal(run(x), function(x))
    assert len(session.regions) == 2


def test_inputs_may_have_any_strides() -> None:
    function = lambda x, y: (x * 2 + y, (x + y).sum(0))  # noqa: E731
    run, session = compiled(function)
    for rows, columns in ((4, 6), (9, 5), (3, 17)):
        x, y = torch.randn(columns, rows).t(), torch.randn(rows, 2 * columns)[:, ::2]
        equal(run(x, y), function(x, y))
    assert len(session.regions) == 1


class Block(nn.Module):
    """A small language model's block: embeddings, attention with a causal mask, a gated MLP, a norm before each."""

    def __init__(self, width: int = 12, heads: int = 2) -> None:
        super().__init__()
        self.heads = heads
        self.words, self.places = nn.Embedding(20, width), nn.Embedding(64, width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 2 * width), nn.Linear(2 * width, width)
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, 20)

    def forward(self, tokens: Tensor) -> Tensor:
        x = self.words(tokens) + self.places(torch.arange(tokens.shape[1]))
        batch, length, width = x.shape
        split = self.qkv(self.norm(x)).view(batch, length, 3, self.heads, width // self.heads)
        q, k, v = split.permute(2, 0, 3, 1, 4).unbind(0)
        scores = q @ k.transpose(-1, -2) / (width // self.heads) ** 0.5
        future = torch.triu(torch.ones(length, length, dtype=torch.bool), 1)
        mixed = scores.masked_fill(future, float("-inf")).softmax(-1) @ v
        x = x + self.out(mixed.transpose(1, 2).reshape(batch, length, width))
        return self.head(x + self.down(F.gelu(self.up(self.norm(x)))))


def test_a_language_model_trains_with_any_batch_and_length() -> None:
    model = Block()
    run, session = compiled(model)
    for size in ((2, 5), (3, 9)):
        tokens = torch.randint(0, 20, size)
        loss = F.cross_entropy(run(tokens[:, :-1]).flatten(0, 1), tokens[:, 1:].flatten())
        found = torch.autograd.grad(loss, list(model.parameters()))
        loss = F.cross_entropy(model(tokens[:, :-1]).flatten(0, 1), tokens[:, 1:].flatten())
        equal(found, torch.autograd.grad(loss, list(model.parameters())))
    assert [region.kind for region in session.regions] == ["forward", "backward"]
    assert not session.specialized


def test_a_count_known_only_at_run_time_lies_between_fused_parts() -> None:
    function = lambda x: ((x * 2 + 1)[x > 0].exp() * 3, x.nonzero().sum(0))  # noqa: E731
    run, session = compiled(function)
    for count in (9, 4, 30):
        x = torch.randn(count)
        equal(run(x), function(x))
    x = -torch.ones(9)  # none is positive
    equal(run(x), function(x))
    (region,) = session.regions
    assert len(launches(region)) >= 2
    calls = [step for step in region.steps if isinstance(step, Extern)]
    assert ExternReason.DATA_DEPENDENT_SHAPE in {call.reason for call in calls}


def test_a_number_read_from_a_tensor_sizes_what_follows() -> None:
    function = lambda x, n: (torch.zeros(n.item()) + 1, x * n.item() + torch.arange(x.shape[0]))  # noqa: E731
    run, session = compiled(function)
    for count, number in ((6, 3), (9, 5), (4, 2)):
        x, n = torch.randn(count), torch.tensor(number)
        equal(run(x, n), function(x, n))
    assert len(session.regions) == 1


OPS: dict[str, Callable[[Tensor], Tensor]] = {
    "relu": lambda x: x.relu() + 1,
    "center": lambda x: x - x.mean(-1, keepdim=True),
    "columns": lambda x: x / (1 + x.abs().amax(0)),
    "transpose": lambda x: x.t().contiguous(),
    "join": lambda x: torch.cat([x, x[:, :1] * 2], 1),
    "cut": lambda x: x[1:, :-1] if x.shape[0] > 3 and x.shape[1] > 3 else x * 0.5,
    "pad": lambda x: F.pad(x, (1, 0, 0, 2)),
    "flip": lambda x: x.flip(1) * 0.5,
    "fold": lambda x: torch.stack([x, x + 1], 1).flatten(0, 1),
    "rows": lambda x: x + torch.arange(x.shape[0])[:, None] / x.shape[0],
    "product": lambda x: x @ x.t() / x.shape[1],
}


@pytest.mark.parametrize("seed", range(5))
def test_random_programs_at_random_sizes(seed: int) -> None:
    draw = random.Random(seed)
    names = draw.choices(sorted(OPS), k=5)

    def function(x: Tensor) -> Tensor:
        for name in names:
            x = OPS[name](x)
        return x

    run, session = compiled(function)
    for _ in range(3):
        x = torch.randn(draw.randint(8, 20), draw.randint(21, 40))
        equal(run(x), function(x))
    assert len(session.regions) == 1, names
    assert not session.specialized


def test_a_rule_that_asks_for_a_size_runs_as_a_call(monkeypatch: pytest.MonkeyPatch) -> None:
    def hasty(scope: Scope, x: Lazy) -> Lazy:
        scale = int(scope.output.shape[0])  # would fix the size to the example's
        return scope.pointwise((x,), lambda index: op("mul", x.dtype, x.load(index), const(scale, x.dtype)))

    monkeypatch.setitem(registry._RULES, torch.ops.aten.sinh, hasty)
    run, session = compiled(lambda x: x.sinh() + 1)
    for rows in (4, 7):
        x = torch.randn(rows, 3)
        equal(run(x), x.sinh() + 1)
    (region,) = session.regions
    (call,) = [step for step in region.steps if isinstance(step, Extern)]
    assert call.reason is ExternReason.DATA_DEPENDENT_SHAPE
    assert "known only at run time" in call.detail


def test_lowering_adds_no_guard() -> None:
    counts = []

    def backend(gm: torch.fx.GraphModule, inputs: Sequence[Any]) -> Any:
        env = next(x.node.shape_env for x in inputs if isinstance(x, torch.SymInt))
        before = len(env.guards)
        run = fusescope(gm, inputs, options={"session": session})
        counts.append(len(env.guards) - before)
        return run

    session = Session(TARGET, KernelLibrary(TARGET, binaries=False, texts=False))
    plain: list[int] = []

    def capture_only(gm: torch.fx.GraphModule, inputs: Sequence[Any]) -> Any:
        from torch._dynamo.backends.common import aot_autograd

        env = next(x.node.shape_env for x in inputs if isinstance(x, torch.SymInt))
        before = len(env.guards)
        run = aot_autograd(fw_compiler=lambda graph, _: graph)(gm, inputs)
        plain.append(len(env.guards) - before)
        return run

    for function in (VIEWS["pieces"], REDUCED["norms"]):
        for backends in (backend, capture_only):
            torch._dynamo.reset()
            torch.compile(function, backend=backends, dynamic=True)(torch.randn(6, 8))
    assert counts == plain


def test_more_tiles_than_a_grid_is_high_are_in_layers() -> None:
    from compiler.codegen import config, kernel

    function = lambda x: x.t().contiguous() + 1  # noqa: E731
    with pytest.MonkeyPatch.context() as patch:
        for module in (config, kernel):
            patch.setattr(module, "MAX_GRID_HEIGHT", 1)
        for dynamic in (False, True):
            torch._dynamo.reset()
            run, session = compiled(function, dynamic)
            x = torch.randn(200, 300)
            equal(run(x), function(x))
            (launch,) = launches(session.regions[0])
            assert launch.kernel.domain.y is not None
            assert "tl.program_id(2)" in launch.kernel.source


@pytest.mark.parametrize("name", ["softmax", "layer norm", "scaled"])
def test_a_row_of_any_length_stays_in_registers_while_it_fits(name: str) -> None:
    """One kernel keeps the row, for each block that rows of the call need; another passes over what is longer."""
    functions: dict[str, Callable[[Tensor], Tensor]] = {
        "softmax": lambda x: x.softmax(1),
        "layer norm": lambda x: torch.layer_norm(x, [x.shape[1]]),
        "scaled": lambda x: x * 3 / x.abs().amax(1, keepdim=True) + x.shape[1],
    }
    run, session = compiled(functions[name])
    for length in (100, 30, 65, 3, DEFAULTS.persistent_inner, DEFAULTS.persistent_inner + 1, 3000):
        x = torch.randn(3, length)
        torch.testing.assert_close(run(x), functions[name](x), rtol=2e-5, atol=2e-6)
    (region,) = session.regions
    (launch,) = launches(region)
    assert launch.kernel.persistent
    assert launch.kernel.longer is not None
    assert not launch.kernel.longer.persistent
    assert not launch.kernel.reads_once, "a long row is read again: nothing may be written over it"


@pytest.mark.parametrize(
    ("function", "blocks"),
    [
        (lambda x: x.softmax(1), [2048, 0, 0]),  # found online, maximum and sum take one pass
        (lambda x: torch.layer_norm(x, [x.shape[1]]), [2048, 4096, 8192]),
    ],
)
def test_long_rows_of_any_length_stay_in_registers_unless_one_pass_reduces_them(
    function: Callable[[Tensor], Tensor], blocks: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    made: list[int] = []
    original = KernelLibrary._for_rows

    def for_rows(library: KernelLibrary, kernel: CompiledKernel, block: int) -> CompiledKernel:
        made.append(block)
        return original(library, kernel, block)

    monkeypatch.setattr(KernelLibrary, "_for_rows", for_rows)
    run, _ = compiled(function)
    chosen = []
    for length in (100, 2048, 2049, 8192):
        made.clear()
        x = torch.randn(3, length)
        torch.testing.assert_close(run(x), function(x), rtol=2e-5, atol=2e-6)
        chosen.append(made[0] if made else 0)  # one that was made for an earlier row is not made again
    assert chosen == [0, *blocks]


def test_a_row_of_known_length_stays_in_registers_whatever_reduces_it() -> None:
    run, session = compiled(lambda x: x.softmax(1), dynamic=False)
    run(torch.randn(3, 4000))
    assert launches(session.regions[0])[0].kernel.persistent


def test_a_row_of_any_length_that_is_passed_over_once_has_one_kernel() -> None:
    run, session = compiled(lambda x: x.exp().sum(1))
    x = torch.randn(3, 50)
    torch.testing.assert_close(run(x), x.exp().sum(1))
    (launch,) = launches(session.regions[0])
    assert launch.kernel.longer is None
    assert not launch.kernel.persistent
