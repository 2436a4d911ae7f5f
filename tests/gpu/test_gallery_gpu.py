"""On a GPU every gallery example, compiled and replayed, equals eager, in no more launches than promised."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch")

from compiler.pipeline import compile_model  # noqa: E402
from compiler.runtime.compare import compare_outputs, in_float64  # noqa: E402
from compiler.runtime.modes import prepare  # noqa: E402
from compiler.runtime.trace import kernel_names, trace  # noqa: E402
from compiler.targets import resolve  # noqa: E402

pytestmark = [pytest.mark.gpu, pytest.mark.timeout(600)]

# Dropout draws its mask otherwise in eager than in a generated kernel, so its numbers compare without it.
OPTIONS: dict[str, dict[str, Any]] = {"dropout": {"probability": 0.0}}
EXAMPLES = (
    "relu_add_mul", "softmax", "layer_norm", "rms_norm_residual", "mlp", "conv_bn_relu", "resnet18", "mobilenet_v3",
    "transformer_block", "gpt2", "bert_base", "vit_b16", "llama_block", "graph_break", "cpu_sync", "dropout",
)  # fmt: skip
LAUNCHES = {"relu_add_mul": 1, "softmax": 1, "layer_norm": 1, "rms_norm_residual": 1}


def outputs_of(step: Any) -> list[Any]:
    step()
    torch.cuda.synchronize()
    return [value.clone() if isinstance(value, torch.Tensor) else value for value in step.outputs()]


@pytest.mark.parametrize("name", EXAMPLES)
def test_compiled_and_replayed_equal_eager(name: str, load_example: Any) -> None:
    model, inputs, training = load_example(name, **OPTIONS.get(name, {}))
    eager = outputs_of(prepare("eager", model, inputs, training=training))
    exact_model, exact_inputs = in_float64(model, inputs)
    exact = outputs_of(prepare("eager", exact_model, exact_inputs, training=training))
    for mode in ("compiled", "graph"):
        step = prepare(mode, model, inputs, training=training)
        for _ in range(2):  # the second replay must not see what the first left behind
            result = compare_outputs(eager, outputs_of(step), exact)
            assert result.equal, f"{mode}: {result}"
    assert step.cuda_graph is not None
    assert step.cuda_graph.captured, step.note


@pytest.mark.parametrize("name", ["mlp", "gpt2", "resnet18"])
@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_half_precision_equals_eager(name: str, dtype: str, load_example: Any) -> None:
    model, inputs, training = load_example(name, dtype=dtype)
    eager = outputs_of(prepare("eager", model, inputs, training=training))
    exact_model, exact_inputs = in_float64(model, inputs)
    exact = outputs_of(prepare("eager", exact_model, exact_inputs, training=training))
    result = compare_outputs(eager, outputs_of(prepare("graph", model, inputs, training=training)), exact)
    assert result.equal, result


@pytest.mark.parametrize("name", LAUNCHES)
@pytest.mark.parametrize("mode", ["compiled", "graph"])
def test_launches(name: str, mode: str, load_example: Any) -> None:
    model, inputs, training = load_example(name)
    kernels = kernel_names(trace(prepare(mode, model, inputs, training=training), mode))
    assert 1 <= len(kernels) <= LAUNCHES[name], kernels


def test_mlp_makes_as_many_launches_as_inductor(load_example: Any) -> None:
    """9 kernels and 8 cuBLAS calls; cuBLAS may split one call into several kernels, for Inductor as well."""
    model, inputs, training = load_example("mlp")
    compilation = compile_model(model, inputs, source="example:mlp", target=resolve("local"))
    (region,) = compilation.report.regions
    assert len(region.groups) + len(region.extern_calls) <= 17
    ours = kernel_names(trace(prepare("compiled", model, inputs, training=training), "compiled"))
    inductors = kernel_names(trace(prepare("inductor", model, inputs, training=training), "inductor"))
    assert 1 <= len(ours) <= len(inductors), ours


@pytest.mark.parametrize("name", ["graph_break", "cpu_sync"])
def test_models_with_breaks_are_captured_region_by_region(name: str, load_example: Any, capfd: Any) -> None:
    model, inputs, training = load_example(name)
    step = prepare("graph", model, inputs, training=training)
    facts = step.cuda_graph
    assert facts is not None
    if name == "cpu_sync" and facts.capturable:
        # Where breaks are not allowed, Dynamo may keep the .item() on the GPU: then there is nothing to break for.
        assert facts.captured
        assert facts.partitions == 1
    else:
        assert facts.partitions >= 2
        assert facts.skip_reasons[0].rule in {"graph_break", "host_sync"}
    if name == "graph_break":
        capfd.readouterr()
        step()
        assert "hidden:" in capfd.readouterr().out, "a replay must not swallow what Python does between regions"


def test_dropout_draws_anew_at_every_replay(load_example: Any) -> None:
    model, inputs, training = load_example("dropout", probability=0.5)
    step = prepare("graph", model, inputs, training=training)
    first, second = outputs_of(step)[0], outputs_of(step)[0]
    assert not torch.equal(first, second)


def test_training_graph_follows_a_parameter_updated_in_place(load_example: Any) -> None:
    model, inputs, training = load_example("transformer_block")
    step = prepare("graph", model, inputs, training=training)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(1.1)
    eager = outputs_of(prepare("eager", model, inputs, training=training))
    exact_model, exact_inputs = in_float64(model, inputs)
    exact = outputs_of(prepare("eager", exact_model, exact_inputs, training=training))
    result = compare_outputs(eager, outputs_of(step), exact)
    assert result.equal, result
