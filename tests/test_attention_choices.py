"""Which attention torch takes on an H200, by our rules and by torch's own choice there.

The file has the choices of torch 2.11.0 with cuDNN 9.19 on an H200 (2026-11-30), a letter for each of ``CALLS``:
``torch._fused_sdp_choice`` of queries of 2 samples and 4 heads (keys and values of 2 heads where grouped).
"""

from __future__ import annotations

import itertools
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")

from compiler.retarget.attention import Call, chosen  # noqa: E402
from compiler.targets import resolve  # noqa: E402

RECORDED = Path(__file__).parent / "fixtures" / "attention_choices_h200.txt"
LETTERS = {"m": "MATH", "f": "FLASH_ATTENTION", "e": "EFFICIENT_ATTENTION", "c": "CUDNN_ATTENTION"}
CALLS = [
    call
    for call in itertools.product(
        (torch.float16, torch.bfloat16, torch.float32, torch.float64),
        (5, 12, 16, 64, 96, 128, 136, 256, 264),  # elements of a head
        ("none", "bool", "float"),  # the mask
        (False, True),  # causal
        (1, 16),  # queries
        (1, 16, 20),  # keys
        (0.0, 0.1),  # dropout
        (False, True),  # trained
        (False, True),  # grouped
    )
    if call[2] == "none" or not call[3]
]


def test_attention_is_chosen_as_torch_chose_it_on_an_h200() -> None:
    target = resolve("h200")
    recorded = RECORDED.read_text().replace("\n", "")
    assert len(recorded) == len(CALLS)
    wrong = []
    for letter, call in zip(recorded, CALLS, strict=True):
        dtype, head, masked, causal, queries, keys, dropout, trained, grouped = call
        with torch.device("meta"):
            query, key, value = (
                torch.empty(2, heads, length, head, dtype=dtype, requires_grad=trained)
                for heads, length in ((4, queries), (2 if grouped else 4, keys), (2 if grouped else 4, keys))
            )
            mask = None
            if masked != "none":
                mask = torch.ones(2, 1, queries, keys, dtype=torch.bool if masked == "bool" else dtype)
        kind = chosen(target, Call(query, key, value, mask, dropout, causal, grouped)).name
        if kind != LETTERS[letter]:
            wrong.append((call, LETTERS[letter], kind))
    assert not wrong
