"""Which compiled graphs are called without AOTAutograd's wrapper, and that the others still have it."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch")

from compiler import backend  # noqa: E402
from compiler.backend import fusescope  # noqa: E402


@pytest.fixture
def direct(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """The runs that were given out directly; each call of one counts."""
    given: list[Any] = []
    make = backend.direct_call

    def noting(run: Any) -> Any:
        given.append(run)
        return make(run)

    monkeypatch.setattr(backend, "direct_call", noting)
    torch._dynamo.reset()
    return given


def compare(function: Any, *inputs: Any) -> Any:
    def copies() -> list[Any]:
        return [x.detach().clone().requires_grad_(x.requires_grad) for x in inputs]

    ours, theirs = copies(), copies()
    compiled = torch.compile(function, backend=fusescope)
    for _ in range(2):
        got, expected = compiled(*ours), function(*theirs)
        torch.testing.assert_close(got, expected)
    torch.testing.assert_close(ours, theirs)
    return got


def test_a_plain_function_is_called_directly(direct: list[Any]) -> None:
    compare(lambda a, b: (torch.relu(a + b), (a * b).sum(-1)), torch.randn(4, 8), torch.randn(4, 8))
    assert len(direct) == 1


def test_a_module_without_gradients_is_called_directly(direct: list[Any]) -> None:
    model = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.GELU(), torch.nn.LayerNorm(8)).eval()
    with torch.no_grad():
        compare(model, torch.randn(4, 8))
    assert len(direct) == 1


def test_no_gradients_are_recorded(direct: list[Any]) -> None:
    def function(x: Any) -> Any:
        with torch.no_grad():
            return x * 2 + 1

    got = compare(function, torch.randn(4, requires_grad=True))
    assert not got.requires_grad


@pytest.mark.parametrize(
    "function",
    [
        lambda x: x.t(),  # an output that is a view of an input
        lambda x: x.add_(1),  # a write into an input
        lambda x: x.mul_(2).sum(),
    ],
)
def test_views_and_writes_keep_the_wrapper(function: Any, direct: list[Any]) -> None:
    with torch.no_grad():
        compare(function, torch.randn(3, 4))
    assert direct == []


def test_training_keeps_the_wrapper(direct: list[Any]) -> None:
    got = compare(lambda x: (x * x).sum(), torch.randn(4, requires_grad=True))
    assert got.requires_grad
    assert direct == []


def test_autocast_acts_once(direct: list[Any]) -> None:
    seen = []

    @torch.library.custom_op("fusescope_direct_tests::look", mutates_args=())
    def look(x: torch.Tensor) -> torch.Tensor:
        seen.append((torch.is_autocast_enabled("cpu"), torch.is_grad_enabled()))
        return x.clone()

    look.register_fake(torch.empty_like)
    x, weight = torch.randn(4, 8), torch.randn(8, 8)
    function = torch.nn.functional.linear
    with torch.autocast("cpu", torch.bfloat16):
        compiled = torch.compile(lambda x, w: look(function(x, w)), backend=fusescope)
        torch.testing.assert_close(compiled(x, weight), function(x, weight))
    assert len(direct) == 1
    assert set(seen) == {(False, False)}


def test_sizes_that_change_keep_the_wrapper(direct: list[Any]) -> None:
    compiled = torch.compile(lambda x: torch.relu(x) + 1, backend=fusescope, dynamic=True)
    for size in (4, 6, 9):
        x = torch.randn(size, 3)
        torch.testing.assert_close(compiled(x), torch.relu(x) + 1)
    assert direct == []


def guards_of(function: Any, backend: Any, *inputs: Any) -> str:
    """The guards of a function, compiled by a backend and called once."""
    from torch._dynamo.eval_frame import _debug_get_cache_entry_list

    torch.compile(function, backend=backend)(*inputs)
    (entry,) = _debug_get_cache_entry_list(function.__code__)
    return str(entry.guard_manager)


HOOKS = "top_saved_tensors_hooks"


def test_what_is_never_differentiated_asks_for_no_hooks(direct: list[Any]) -> None:
    def function(x: Any) -> Any:
        return torch.relu(x) + 1

    x = torch.randn(4)
    assert HOOKS not in guards_of(function, fusescope, x)
    with torch.autograd.graph.saved_tensors_hooks(lambda t: t + 1, lambda t: t):
        torch.testing.assert_close(torch.compile(function, backend=fusescope)(x), function(x))
    assert len(direct) == 1  # not compiled again


def test_what_is_trained_asks_for_hooks(direct: list[Any]) -> None:
    def function(x: Any) -> Any:
        return torch.relu(x) + 1

    assert HOOKS in guards_of(function, fusescope, torch.randn(4, requires_grad=True))


def test_a_frame_that_is_trained_in_part_asks_for_hooks(direct: list[Any]) -> None:
    """As DDP's optimizer cuts one."""
    from torch.fx.passes.split_module import split_module

    def function(x: Any, weight: Any) -> Any:
        return torch.sin(torch.relu(x) * weight)

    def cutting(gm: Any, inputs: Any) -> Any:
        parts = split_module(gm, None, lambda node: int(node.name != "relu"))
        for part in (parts.submod_0, parts.submod_1):
            (output,) = part.graph.find_nodes(op="output")
            output.args = ((output.args[0],),)
            part.recompile()
        first = fusescope(parts.submod_0, [inputs[0]])
        second = fusescope(parts.submod_1, [*parts.submod_0(inputs[0]), inputs[1]])
        return lambda x, weight: second(*first(x), weight)

    assert HOOKS in guards_of(function, cutting, torch.randn(4), torch.randn(4, requires_grad=True))
    assert len(direct) == 1


def test_no_profiler_range_is_entered_before_the_graph() -> None:
    from torch._dynamo.eval_frame import _debug_get_cache_entry_list

    config = torch._dynamo.config
    if not hasattr(config, "record_runtime_overhead"):
        pytest.skip("this torch has no such ranges")
    torch._dynamo.reset()

    def function(x: Any) -> Any:
        return torch.relu(x) + 1

    def names_in_code(backend: Any) -> set[str]:
        torch.compile(function, backend=backend)(torch.randn(4))
        return set(_debug_get_cache_entry_list(function.__code__)[0].code.co_names)

    assert not any("pregraph" in name for name in names_in_code(fusescope))
    assert config.record_runtime_overhead
    torch._dynamo.reset()
    assert any("pregraph" in name for name in names_in_code("eager"))


def test_the_setting_of_profiler_ranges_is_back_after_a_compilation_that_fails() -> None:
    torch._dynamo.reset()
    with pytest.raises(Exception, match="no_such_option"):
        torch.compile(lambda x: x + 1, backend=fusescope, options={"no_such_option": 1})(torch.randn(4))
    assert getattr(torch._dynamo.config, "record_runtime_overhead", True)
    assert not torch._dynamo.callback_handler.end_callbacks
