"""The look at addresses before a replay: our function says what torch's says, and torch's serves where ours cannot."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from compiler.runtime import addresses  # noqa: E402
from compiler.runtime.addresses import same_addresses  # noqa: E402

needs_compiler = pytest.mark.skipif(shutil.which("c++") is None, reason="needs a C++ compiler")


@pytest.fixture(autouse=True)
def _built_anew() -> Iterator[None]:
    """What one test finds, or makes fail, is not the next one's."""
    same_addresses.cache_clear()
    yield
    same_addresses.cache_clear()


@pytest.fixture
def ours() -> Any:
    return addresses._ours()


@needs_compiler
def test_tensors_are_where_they_were_until_one_moves(ours: Any) -> None:
    tensors = [torch.randn(8), torch.nn.Parameter(torch.randn(8)), torch.randn(8)[3:], torch.empty(0)]
    known = [tensor.data_ptr() for tensor in tensors]
    assert ours(tensors, known, [0, 1, 2, 3])
    assert ours(tuple(tensors), known, [0, 1, 2, 3]), "as Dynamo's code hands them over"
    assert ours(tensors, known, [])
    tensors[1].data = torch.randn(8)
    assert not ours(tensors, known, [0, 1, 2, 3])
    assert ours(tensors, known, [0, 2, 3]), "only those at the indices are asked"
    known[1] = tensors[1].data_ptr()
    assert ours(tensors, known, [0, 1, 2, 3])


@needs_compiler
def test_it_says_what_torchs_function_says(ours: Any) -> None:
    torchs = getattr(torch._C, "_tensors_data_ptrs_at_indices_equal", None)
    if torchs is None:
        pytest.skip("this torch is built without CUDA")
    tensors = [torch.randn(4) for _ in range(9)]
    known = [tensor.data_ptr() for tensor in tensors]
    for moved in range(9):
        elsewhere = [*known]
        elsewhere[moved] += 16
        for indices in ([moved], [index for index in range(9) if index != moved], [*range(9)]):
            assert ours(tensors, elsewhere, indices) == torchs(tensors, elsewhere, indices)


@needs_compiler
def test_what_has_no_address_is_an_error_and_not_the_end(ours: Any) -> None:
    sparse = torch.eye(3).to_sparse()
    with pytest.raises(RuntimeError, match="storage"):
        ours([sparse], [0], [0])
    with pytest.raises(RuntimeError, match="tensor"):
        ours([3], [0], [0])
    with pytest.raises(IndexError):
        ours([torch.ones(1)], [0], [1])
    with pytest.raises(IndexError):
        ours([torch.ones(1)], [0], [-1])
    with pytest.raises(TypeError):
        ours([torch.ones(1)], [None], [0])
    with pytest.raises(TypeError):
        ours({0: torch.ones(1)}, [0], [0])


@needs_compiler
def test_it_is_built_once(monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path))
    built: list[None] = []
    build = addresses._built
    monkeypatch.setattr(addresses, "_built", lambda: built.append(None) or build())
    for _ in range(2):
        addresses._ours()
    assert len(built) == 1


@pytest.mark.parametrize("why", ["no compiler", "no headers", "another torch"])
def test_without_ours_torchs_function_serves(why: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Any) -> None:
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path))
    asked: list[tuple[Any, ...]] = []

    def torchs(*arguments: Any) -> bool:
        asked.append(arguments)
        return True

    monkeypatch.setattr(torch._C, "_tensors_data_ptrs_at_indices_equal", torchs, raising=False)
    if why == "no compiler":
        monkeypatch.setattr(shutil, "which", lambda name: None)
    elif why == "no headers":
        error = subprocess.CalledProcessError(1, "c++")
        monkeypatch.setattr(subprocess, "run", lambda *_, **__: (_ for _ in ()).throw(error))
    else:
        monkeypatch.delattr(torch._C._dynamo.guards, "_torchinductor_pyobject_tensor_data_ptr")
    assert same_addresses()((1, 2), [3, 4], [0])
    assert asked == [([1, 2], [3, 4], [0])], "a list, for torch's takes nothing else"
