"""A kernel that is wrong in any way is called wrong, and one that is right is not."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

from compiler import verify
from compiler.errors import CompileError
from compiler.report import KernelCheck
from compiler.runtime.executable import interpreted_launcher


@pytest.fixture(autouse=True)
def fresh_dynamo() -> None:
    torch._dynamo.reset()


def checks(function: Any, *inputs: Tensor) -> list[KernelCheck]:
    return verify.verify_model(function, inputs, source="test", interpret=True)


def normalise(x: Tensor, w: Tensor) -> Tensor:
    return (x - x.mean(-1, keepdim=True)) * w


def test_a_model_of_which_nothing_is_captured_was_not_checked() -> None:
    """It is no model without a group, which would be in order."""
    with pytest.raises(CompileError, match="captured no part of this model, so there is nothing to check"):
        checks(torch.nn.Identity(), torch.randn(3))
    assert checks(lambda x: x @ x, torch.randn(3, 3)) == []


FAULTS: dict[str, Callable[[Tensor], object]] = {
    "a last element not written": lambda t: t.view(-1)[-1:].fill_(float("nan")),
    "one element off by a thousandth": lambda t: t.view(-1)[:1].add_(1e-3 * t.abs().max() * t.numel() ** 0.5),
    "rows exchanged": lambda t: t.copy_(t.roll(1, 0)),
    "everything rounded to halves": lambda t: t.copy_(t.bfloat16().float()),
    "zeros": lambda t: t.zero_(),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_wrong_kernel_is_found(fault: str, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(kernel: Any) -> Callable[..., None]:
        run = interpreted_launcher(kernel)

        def launch(*tensors: Tensor) -> None:
            run(*tensors)
            FAULTS[fault](tensors[-1])

        return launch

    monkeypatch.setattr(verify, "interpreted_launcher", broken)
    (check,) = checks(normalise, torch.randn(6, 40), torch.randn(40))
    assert not check.ok
    assert not check.error <= check.tolerance
    assert "is off" in check.detail


def test_a_kernel_that_does_nothing_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(verify, "interpreted_launcher", lambda kernel: lambda *tensors: None)
    for function in (torch.relu, torch.isnan, lambda x: x.argmax(-1)):
        torch._dynamo.reset()
        assert not any(check.ok for check in checks(function, torch.randn(6, 40)))


def test_right_kernels_pass_whatever_they_hold() -> None:
    x = torch.tensor([[0.0, float("inf"), 1.0], [float("nan"), -1.0, float("-inf")]])
    assert all(c.ok for c in checks(lambda x: (x.exp(), x.amax(-1), x.argmin(-1), x > 0), x))
    assert all(c.ok for c in checks(lambda x: (x.half() + 1, x.softmax(-1)), x[:, 2:]))


def test_split_and_many_stepped_groups_are_checked_at_their_end() -> None:
    found = checks(lambda x: (x.var(), x.softmax(-1).sum(0)), torch.randn(2, 140_000))
    assert len(found) > 2
    assert all(c.ok for c in found)


def test_options_of_the_compiler_hold_in_verification() -> None:
    """Two kernels are checked where one would be, had the option not reached the compiler."""
    x = torch.randn(4, 8)

    def model(x: Tensor) -> Tensor:
        return x.softmax(-1).sum(0)

    plain = verify.verify_model(model, (x,), source="m", interpret=True)
    apart = verify.verify_model(model, (x,), source="m", interpret=True, options={"max_fused_loops": "1"})
    assert len(apart) > len(plain)
    assert all(check.ok for check in (*plain, *apart))


def sized(x: Tensor, y: Tensor) -> tuple[Tensor, ...]:
    both = torch.cat([x, y]).softmax(-1)
    return both.view(both.shape[0] // 1, -1) * x.shape[0] + y.sum(), x.var() + x.mean(0), torch.arange(x.shape[0]) * 2.5


@pytest.mark.parametrize("wrong", [False, True])
def test_kernels_of_symbolic_sizes_are_checked_at_those_of_the_inputs(
    wrong: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    symbolic: list[bool] = []

    def launcher(kernel: Any) -> Callable[..., None]:
        symbolic.append(bool(kernel.source.sizes))
        run = interpreted_launcher(kernel)

        def launch(*given: Any, **keywords: Any) -> None:
            run(*given, **keywords)
            last = [value for value in given if isinstance(value, Tensor)][-1]
            if wrong:
                last.view(-1)[-1:].fill_(float("nan"))

        return launch

    monkeypatch.setattr(verify, "interpreted_launcher", launcher)
    inputs = (torch.randn(7, 40), torch.randn(5, 40))
    found = verify.verify_model(sized, inputs, source="m", interpret=True, dynamic=True)
    assert len(found) == len(symbolic) == 5
    assert all(symbolic)
    # what reads a wrong value, and computes rightly of it, is right: those that read inputs alone are found wrong
    assert [check.ok for check in found] == ([False, True, False, True, False] if wrong else [True] * 5)


def test_a_result_that_is_written_in_parts_is_checked_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    def many(x: Tensor) -> Tensor:
        return torch.cat([x * i for i in range(20)])

    found = checks(many, torch.randn(4, 6))
    assert len(found) == 3
    assert all(check.ok for check in found)
    done: list[str] = []

    def broken(kernel: Any) -> Callable[..., None]:
        run = interpreted_launcher(kernel)

        def launch(*tensors: Tensor) -> None:
            run(*tensors)
            if not done:
                tensors[-1].view(-1)[:1].fill_(7.0)
            done.append(kernel.name)

        return launch

    monkeypatch.setattr(verify, "interpreted_launcher", broken)
    torch._dynamo.reset()
    assert [check.ok for check in checks(many, torch.randn(4, 6))] == [True, True, False], "the first part is off"
