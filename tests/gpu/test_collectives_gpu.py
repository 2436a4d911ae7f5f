"""Collectives of two GPUs through NCCL: between graphs by default, in them on demand."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

from tests import collective_processes  # noqa: E402

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.timeout(150),
    pytest.mark.skipif(torch.cuda.device_count() < 2, reason="needs two GPUs"),
]


def test_collectives_run_between_graphs_or_in_them() -> None:
    """The processes compare their numbers with eager's at every call."""
    for outcome in collective_processes.outcomes("cuda", "nccl", seconds=90):
        parts, whole = outcome["parts"], outcome["whole"]
        cuts = [rest for rule, *rest in parts["reasons"] if rule == "collective"]
        # What a collective still reads is kept, so a graph whose memory that is may run plainly once.
        assert cuts
        assert {rule for rule, *_ in parts["reasons"]} <= {"collective", "kept_outputs"}
        for node, file, detail in cuts:
            assert node
            assert file == collective_processes.__file__
            assert "graph_collectives" in detail
        assert parts["partitions"] >= 2
        assert parts["replays"] > 0
        assert not any("nccl" in name.lower() for name in parts["kernels"])
        assert (whole["reasons"], whole["partitions"], whole["captures"]) == ([], 1, 1)
        assert whole["replays"] == 7
        assert any("nccl" in name.lower() for name in whole["kernels"])
