"""On a GPU every value that the gallery's regions write is about as near to float64 as eager's."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch")

from compiler.numerics import check_numerics  # noqa: E402
from compiler.targets import resolve  # noqa: E402

pytestmark = [pytest.mark.gpu, pytest.mark.timeout(600)]


@pytest.mark.parametrize("name", ["softmax", "layer_norm", "mlp", "resnet18", "transformer_block", "gpt2", "dropout"])
def test_values_are_as_exact_as_eagers(name: str, load_example: Any) -> None:
    torch.set_float32_matmul_precision("highest")
    model, inputs, training = load_example(name)
    found = check_numerics(model, inputs, target=resolve("local"), training=training)
    assert found.nodes
    for check in found.nodes:
        assert check.error <= max(8 * check.eager_error, 1e-5), check
