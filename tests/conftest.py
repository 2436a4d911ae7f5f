"""What every test needs before anything is imported: no display, and settings of its own."""

from __future__ import annotations

import builtins
import gc
import os
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")

_import = builtins.__import__


@pytest.hookimpl(trylast=True)
def pytest_configure() -> None:
    """Qt, which pytest-qt has loaded, is not asked at every import statement: torch runs thousands of them a second."""
    builtins.__import__ = _import


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The longest test begins before the others: it would keep one core busy alone where it began last."""
    items.sort(key=lambda item: item.path.name != "test_interpreter.py")


def pytest_collection_finish() -> None:
    """What was imported outlives the tests: no garbage collection, which some of them ask for, looks at it again."""
    gc.collect()
    gc.freeze()


@pytest.fixture(autouse=True)
def same_numbers() -> None:
    """Random inputs are the same in every run and order. A test that does without torch does not load it for this."""
    if "torch" in sys.modules:
        sys.modules["torch"].manual_seed(0)


@pytest.fixture(autouse=True)
def same_interpreter() -> Iterator[None]:
    """No test chooses for those after it whether Triton, which looks when it is imported, interprets kernels.

    Looked at after ``monkeypatch`` has put back what it changed: what asks for that asks for this first.
    """
    before = os.environ.get("TRITON_INTERPRET")
    yield
    after = os.environ.get("TRITON_INTERPRET")
    if before is None:
        os.environ.pop("TRITON_INTERPRET", None)
    else:
        os.environ["TRITON_INTERPRET"] = before
    assert after == before, "the test left TRITON_INTERPRET changed"


@pytest.fixture
def fresh_dynamo(same_numbers: None) -> Iterator[None]:
    """Nothing that Dynamo compiled before or after is met."""
    import torch

    torch._dynamo.reset()
    torch.manual_seed(0)  # where this test is the first to load torch
    yield
    torch._dynamo.reset()


@pytest.fixture(autouse=True)
def own_settings(
    same_interpreter: None, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> Path:
    """A settings folder that no other test and no user shares."""
    folder = tmp_path_factory.mktemp("config")
    monkeypatch.setenv("FUSESCOPE_CONFIG", str(folder))
    return folder
