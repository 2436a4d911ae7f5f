"""Which launches share a kernel."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")

from compiler.kernel_library import KernelLibrary  # noqa: E402
from tests.graphs import TARGET, compiled, launches  # noqa: E402


def test_kernels_of_one_text_over_other_dtypes_are_kernels_of_their_own() -> None:
    """A sum of float32 and one of int64 read alike in Triton, and a binary of one gives wrong numbers for the other."""
    library = KernelLibrary(TARGET, binaries=True, texts=False)
    for dtype in (torch.float32, torch.int64, torch.float64, torch.int32, torch.int64):
        region, _ = compiled(lambda x, y: x + y, torch.ones((), dtype=dtype), torch.ones((), dtype=dtype))
        names = library.add(launches(region))
        kernel = next(k for k in library.by_source.values() if k.name == names[launches(region)[0].name])
        pointer = {torch.float32: "f32", torch.int64: "i64", torch.float64: "f64", torch.int32: "i32"}[dtype]
        assert f"!tt.ptr<{pointer}>" in kernel.binary.asm["ttir"]
    texts = [text for text, _ in library.by_source]
    assert len(texts) == 4
    assert len(set(texts)) == 1, "the case that this test is about"
