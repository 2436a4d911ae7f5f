"""An LSTM compiled for a GPU that is not here has the ops that it has there."""

from __future__ import annotations

import pytest
import torch
from torch._decomp import decompositions

from compiler.pipeline import compile_model
from compiler.targets import resolve


class Tagger(torch.nn.Module):
    """Embeds words and reads them in order."""

    def __init__(self) -> None:
        super().__init__()
        self.words = torch.nn.Embedding(20, 8)
        self.reader = torch.nn.LSTM(8, 8, batch_first=True)

    def forward(self, words: torch.Tensor) -> torch.Tensor:
        read: torch.Tensor = self.reader(self.words(words))[0]
        return read[:, -1]


@pytest.mark.parametrize("compiler", ["fusescope", "inductor"])
def test_it_is_none_of_the_cpus_layers(compiler: str) -> None:
    before = decompositions.select_one_layer_lstm_function
    model, words = Tagger().eval(), torch.randint(0, 20, (2, 3))
    with torch._dynamo.config.patch(allow_rnn=True):
        compilation = compile_model(model, (words,), compiler=compiler, source="tagger", target=resolve("h100"))
        (region,) = compilation.report.regions
        ops = {node.op for node in region.nodes}
        assert not any("mkldnn" in op for op in ops), ops
        assert any("sigmoid" in op for op in ops), "its gates are ops of the graph, and fuse"
        assert region.groups
        torch.testing.assert_close(compilation.compiled(words), model(words))
    assert decompositions.select_one_layer_lstm_function is before
