"""Collectives between two processes through our wrappers and kernels: eager's numbers in each of them."""

from __future__ import annotations

from tests.collective_processes import outcomes


def test_two_processes_exchange_data_and_have_eagers_numbers() -> None:
    said = outcomes("cpu", "gloo", seconds=90)
    for outcome in said:
        assert [call.split()[0] for call in outcome["calls"]].count("waits") == len(outcome["calls"]) / 2 == 4
        assert outcome["kernels"] >= 5
