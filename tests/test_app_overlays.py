"""Overlays: levels follow the figures, what was not measured is not called wasted, dtypes are counted."""

from __future__ import annotations

import pytest

from app.overlays import LEVELS, OVERLAYS, overlay
from app.roofline import points
from tests.fake_reports import transformer_report
from tests.fake_runs import lab_report


def test_levels_follow_the_figures() -> None:
    report = lab_report(120)
    region = report.regions[0]
    made = overlay(report, region, "time")
    assert made is not None
    assert made.is_measured
    by_time = sorted(points(report, region), key=lambda point: point.time.us)
    levels = [made.units[point.unit] for point in by_time]
    assert levels == sorted(levels)
    assert levels[-1] == LEVELS - 1
    assert made.largest == by_time[-1].time.us


def test_nothing_measured_is_not_wasted() -> None:
    report = transformer_report(60)
    made = overlay(report, report.regions[0], "wasted")
    assert made is not None
    assert made.units == {}
    time = overlay(report, report.regions[0], "time")
    assert time is not None
    assert not time.is_measured


def test_dtypes_are_categories_the_commonest_first() -> None:
    report = transformer_report(60)
    region = report.regions[0]
    node = next(node for node in region.nodes if node.name in region.groups[0].nodes)
    node.outputs[0] = type(node.outputs[0])(node.outputs[0].shape, "float32")
    made = overlay(report, region, "dtype")
    assert made is not None
    assert made.keys == ["bfloat16", "float32"]
    assert made.nodes[node.name] == 1
    assert "input_ids" not in made.nodes


@pytest.mark.parametrize("kind", [kind for kind in OVERLAYS if kind != "decision"])
def test_an_empty_region_has_overlays_too(kind: str) -> None:
    report = transformer_report(60)
    region = report.regions[0]
    region.nodes, region.groups, region.extern_calls = [], [], []
    made = overlay(report, region, kind)
    assert made is not None
    assert overlay(report, region, "decision") is None
