"""Finding anything by a few letters: every kind is found, names that begin so come first."""

from __future__ import annotations

import pytest

from app.finder import LIMIT, Entry, entries, find
from tests.fake_runs import lab_report


@pytest.fixture(scope="module")
def everything() -> list[Entry]:
    return entries(lab_report(120))


@pytest.mark.parametrize(
    ("text", "kind", "title"),
    [
        ("input_ids", "node", "input_ids"),
        ("aten.addmm.default", "op", "aten.addmm.default"),
        ("extern_addmm_1", "extern call", "extern_addmm_1"),
        ("region_0", "region", "region_0"),
        ("h.0.ln_1", "module", "h.0.ln_1"),
        ("self.mlp", "source line", "x = x + self.mlp(self.ln_2(x))"),
        ("model.py:4", "source line", "x = x + self.mlp(self.ln_2(x))"),
    ],
)
def test_every_kind_is_found(everything: list[Entry], text: str, kind: str, title: str) -> None:
    first = find(text, everything)[0]
    assert (first.kind, first.title) == (kind, title)


def test_all_words_must_match_in_any_order(everything: list[Entry]) -> None:
    found = find("pointwise poi", everything)
    assert found
    assert {entry.kind for entry in found} == {"group"}
    assert find("pointwise nobody", everything) == []


def test_names_that_begin_so_come_first() -> None:
    some = [Entry("node", name, "", ()) for name in ("preadd", "my_add", "add", "addmm", "other")]
    assert [entry.title for entry in find("add", some)] == ["add", "addmm", "my_add", "preadd"]


def test_results_are_few(everything: list[Entry]) -> None:
    assert len(find("", everything)) == min(LIMIT, len(everything))
