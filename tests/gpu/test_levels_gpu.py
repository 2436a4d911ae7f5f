"""Levels, resources and options where the kernels really run: what is told of a binary is what the driver says, and
whatever the options, the numbers are eager's."""

from __future__ import annotations

from typing import Any

import pytest

torch = pytest.importorskip("torch")

from app.diff import compare  # noqa: E402
from app.meter import meter  # noqa: E402
from compiler.codegen.binary import read_binary  # noqa: E402
from compiler.kernel_library import KernelLibrary  # noqa: E402
from compiler.pipeline import compile_model  # noqa: E402
from compiler.targets import resolve  # noqa: E402
from tests.graphs import compiled, launches  # noqa: E402

OPTIONS = {
    "nothing fused": {"max_fused_loops": "1", "horizontal_fusion": "false"},
    "in passes, few warps": {"persistent_inner": "0", "persistent_outer": "0", "num_warps": "2"},
    "in registers, many warps": {"persistent_inner": "65536", "persistent_outer": "1024", "num_warps": "16"},
    "small blocks, no reuse, untuned": {"pointwise_block": "64", "memory_reuse": "false", "autotune": "false"},
}


@pytest.mark.parametrize("function", [torch.relu, lambda x: x.softmax(1), lambda x: x.sum(0)])
def test_resources_are_those_of_the_driver(function: Any) -> None:
    target = resolve("local")
    region, _ = compiled(function, torch.empty(2048, 1024, device="cuda"))
    library = KernelLibrary(target, binaries=True, texts=False)
    library.add(launches(region))
    for kernel in library.by_source.values():
        facts = read_binary(kernel.binary, target)
        kernel.binary._init_handles()  # loads it, which is when the driver tells
        assert facts.registers == kernel.binary.n_regs
        assert facts.spills == 4 * kernel.binary.n_spills
        assert facts.warps == kernel.config.num_warps
        assert facts.occupancy is not None
        assert 0 < facts.occupancy <= 1
        assert "sass" in facts.irs


@pytest.mark.parametrize("name", ["softmax", "transformer_block", "resnet18"])
def test_lines_lead_back(name: str, load_example: Any) -> None:
    model, inputs, training = load_example(name)
    report = compile_model(model, inputs, source=f"example:{name}", target=resolve("local"), training=training).report
    found = meter(report)
    assert found.kernels.mapped == 1.0
    assert found.ir_lines.mapped > 0.9
    assert compare(report, report).is_empty


@pytest.mark.parametrize("choice", OPTIONS)
def test_numbers_do_not_depend_on_options(choice: str, load_example: Any) -> None:
    model, inputs, _ = load_example("transformer_block")
    options = OPTIONS[choice]
    compilation = compile_model(model, inputs, source="x", target=resolve("local"), options=options)
    with torch.no_grad():
        expected = model(*inputs)
        torch.testing.assert_close(compilation.compiled(*compilation.inputs), expected, rtol=2e-2, atol=2e-2)
    assert compilation.report.options == options
    warps = options.get("num_warps")
    assert warps is None or {str(kernel.warps) for kernel in compilation.report.kernels} == {warps}
