"""The suite's judge, and a few operators of every family through it; all of them: ``python -m tests.ops.suite``."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch

pytest.importorskip("triton", reason="torch's CPU wheels bring no Triton, and kernels are written in it")
pytest.importorskip("expecttest", reason="op_db needs it")

from tests.ops.judging import alias_difference, number_difference, statistics_difference, stride_difference
from tests.ops.tables import Refusal, check_of, expected_refusals, special_numbers_mean_nothing, unset_outputs

ROOT = Path(__file__).resolve().parents[2]
FAST = (
    "add var_mean cat nn_functional_gelu index_put split_with_sizes fmod nn_functional_dropout masked_select"
).split()


@pytest.mark.timeout(300)
def test_a_few_operators_of_every_family(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "tests.ops.suite", "--samples", "1", "--ops", ",".join(FAST), "-o", str(tmp_path)]
    environment = {**os.environ, "CUDA_VISIBLE_DEVICES": ""}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr[-2000:]
    summary = json.loads((tmp_path / "summary.json").read_text())
    assert summary["pass"] == len(FAST)
    assert summary["groups"] > len(FAST)
    assert "| var_mean | pass |" in (tmp_path / "table.md").read_text()


def test_one_wrong_element_is_seen_however_the_others_are() -> None:
    exact = torch.linspace(-2, 2, 1000, dtype=torch.float64)
    eager = exact.float()
    assert number_difference(eager + 1e-7, eager, exact) == ""
    for at, wrong in ((500, 0.01), (3, float("inf")), (7, float("nan"))):
        result = eager.clone()
        result[at] = wrong
        assert number_difference(result, eager, exact)
    large = eager.clone()
    large[0] = exact[0] = 1e9
    result = large.clone()
    result[1] = 5.0
    assert number_difference(result, large, exact)


def test_what_is_left_of_a_sum_that_cancels_is_nothing() -> None:
    zero = torch.zeros(1)
    assert number_difference(zero + 5e-6, zero, zero.double()) == ""
    assert number_difference(zero + 2e-5, zero, zero.double())


def test_infinities_and_nan_hide_nothing() -> None:
    eager = torch.tensor([float("nan"), float("inf"), 1.0, 2.0])
    assert number_difference(eager.clone(), eager, eager.double()) == ""
    assert number_difference(torch.tensor([float("nan"), float("inf"), 1.0, 2.1]), eager, eager.double())
    assert number_difference(torch.tensor([float("nan"), -float("inf"), 1.0, 2.0]), eager, eager.double())
    assert number_difference(torch.tensor([0.0, float("inf"), 1.0, 2.0]), eager, eager.double())


def test_whole_numbers_are_exact() -> None:
    eager = torch.tensor([100_000_000, 1])
    assert number_difference(eager + 1, eager, None)
    assert number_difference(eager.clone(), eager, None) == ""


def test_strides_and_shared_memory_are_compared() -> None:
    x = torch.randn(4, 3)
    assert stride_difference(x.t().contiguous(), x.t())
    assert stride_difference(x[:1].t(), x[:1].t().contiguous()) == ""  # a dimension of one element
    assert alias_difference([x.clone()], [x], [x[1:]], [x])
    assert alias_difference([x[:2]], [x], [x[1:]], [x]) == ""


def test_random_numbers_of_another_distribution_are_seen() -> None:
    generator = torch.Generator().manual_seed(0)

    def runs(scale: float, count: int = 24) -> list[torch.Tensor]:
        return [torch.rand(64, generator=generator) * scale for _ in range(count)]

    assert statistics_difference(runs(1.0), runs(1.0)) == ""
    assert statistics_difference(runs(1.5), runs(1.0))
    assert check_of("nn.functional.dropout") == "statistics"
    assert check_of("empty_like") == "sizes"
    assert check_of("add") == "numbers"


def test_what_eager_itself_does_not_survive_or_write_is_not_judged() -> None:
    assert special_numbers_mean_nothing("bernoulli", "cuda")
    assert not special_numbers_mean_nothing("bernoulli", "cpu")
    assert unset_outputs("torch.ops.aten._flash_attention_forward") == [2, 3]
    assert unset_outputs("add") == []


def test_rows_of_the_table_of_refusals_have_their_reasons() -> None:
    assert all(row.reason and row.error for row in expected_refusals())
    row = Refusal("svd", "error", "reason", dtype="float32")
    assert row.covers("svd", "float32", "backward")
    assert not row.covers("svd", "bfloat16", "backward")


def test_a_result_as_near_as_its_dtype_can_be_is_right_however_exact_eager_is() -> None:
    exact = torch.tensor([0.7383, -0.7930], dtype=torch.float64)
    eager = exact.bfloat16()
    near = torch.nextafter(eager, torch.zeros_like(eager))
    assert number_difference(near, eager, exact) == ""
    assert number_difference(torch.nextafter(near, torch.zeros_like(eager)), eager, exact)


def test_memory_that_eager_has_not_written_is_not_judged() -> None:
    from tests.ops.cases import Case
    from tests.ops.running import Ran, _only_unwritten_differs

    class Half:
        """Writes the first two of four elements."""

        op = staticmethod(lambda x: [torch.cat([x, torch.empty(2)])])
        inplace_variant = None
        name = "half"

    class Sample:
        """Its one call."""

        input, args, kwargs = torch.ones(2), (), {}

    case = Case(Half, torch.float32, 0, "forward", Sample)
    found = lambda *numbers: Ran([torch.tensor(numbers)], [], [])  # noqa: E731
    assert _only_unwritten_differs(case, found(1.0, 1.0, 5.0, 6.0), found(1.0, 1.0, torch.inf, 8.0), None)
    assert not _only_unwritten_differs(case, found(2.0, 1.0, 5.0, 6.0), found(1.0, 1.0, 5.0, 6.0), None)
