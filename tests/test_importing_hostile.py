"""Logs that no torch wrote: each is read as far as it can be, or refused with a sentence, and never takes long."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest

from app.importing import ImportingError, import_traces
from app.session import open_session, save_session
from compiler import report as r

_COMPILATION = {"frame_id": 0, "frame_compile_id": 0}
_GRAPH = """class GraphModule(torch.nn.Module):
    def forward(self, a: "f32[8][1]cuda:0"):
        # File: model.py:7 in forward, code: return a.sin()
        s: "f32[8][1]cuda:0" = torch.ops.aten.sin.default(a);  a = None
        return (s,)
"""


def _message(metadata: dict[str, object], payload: str | None = None) -> str:
    if payload is None:
        return f"V1130 01:26:32.003000 12377 x.py:1] {json.dumps(_COMPILATION | metadata)}\n"
    digest = hashlib.md5(payload.encode(), usedforsecurity=False).hexdigest()
    return _message({"has_payload": digest} | metadata) + "".join(f"\t{line}\n" for line in payload.split("\n"))


def _graph(text: str = _GRAPH) -> str:
    return _message({"artifact": {"name": "inductor_post_grad_graph"}}, text)


def _program(*lines: str) -> str:
    body = "\n".join(("# AOT ID: ['0_inference']", "def call(args):", *(f"    {line}" for line in lines)))
    return _message({"inductor_output_code": {}}, body)


_SELF_CALLING = """class Runner:
    def partition_0(self, args):
        self.partitions[0](args)
    def call(self, args):
        out = self.partitions[0](args)
"""
_HOSTILE = {
    "a partition that calls itself": _graph() + _message({"inductor_output_code": {}}, _SELF_CALLING),
    "a buffer whose shape is a number": _graph() + _program("b = empty_strided_cuda(8, 1, torch.float32)"),
    "a buffer with a size in words": _graph() + _program("b = empty_strided_cuda(('a',), (1,), torch.float32)"),
    "a size of 30 digits": _graph(_GRAPH.replace("[8]", f"[{'9' * 30}]")),
    "a size of more digits than Python converts": _graph(_GRAPH.replace("[8]", f"[{'9' * 5000}]")),
    "a tensor of a million dimensions": _graph(_GRAPH.replace("[8]", f"[{'8, ' * 1_000_000}8]")),
    "a line number of 40 digits": _graph(_GRAPH.replace("py:7", f"py:{'9' * 40}")),
    "a statement with a gap of 200000 characters": _graph(_GRAPH.replace("(a);", f"(a){' ' * 200_000};")),
    "a comment that names 100000 places": _graph(_GRAPH.replace("# File: ", "# File: " + "a:1 in " * 100_000 + ",")),
    "a version of blanks": _graph() + _message({"compilation_metrics": {"pytorch_version": " "}}),
    "an endless time": _graph() + _message({"compilation_metrics": {"dynamo_cumulative_compile_time_us": 1e999}}),
    "half a character": _graph() + _message({"compilation_metrics": {"pytorch_version": "\ud800"}}),
    "a line number without end": _graph() + _message({"dynamo_start": {"stack": [{"line": 1e999}]}}),
}


@pytest.mark.parametrize("log", _HOSTILE.values(), ids=_HOSTILE.keys())
def test_a_hostile_log_becomes_a_session_of_what_is_whole(tmp_path: Path, log: str) -> None:
    (tmp_path / "t.log").write_text(log)
    save_session(tmp_path / "t.fscope", import_traces(tmp_path / "t.log"))
    report = open_session(tmp_path / "t.fscope").report
    assert [node.op for node in report.regions[0].nodes if node.kind is r.NodeKind.CALL] == ["aten.sin.default"]


def test_numbers_that_no_session_can_hold_are_refused(tmp_path: Path) -> None:
    log = _graph() + _program(f"b = empty_strided_cuda(({'9' * 30},), (1,), torch.float32)")
    (tmp_path / "t.log").write_text(log)
    with pytest.raises(ImportingError, match="no session can hold"):
        import_traces(tmp_path / "t.log")


def test_a_name_that_no_file_system_takes_is_refused() -> None:
    with pytest.raises(ImportingError, match="cannot be read"):
        import_traces(Path("a" * 5000))
