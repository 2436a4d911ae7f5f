"""What Dynamo says of a capture, as records: breaks and skipped frames, guards, recompiles, with the user's line."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.torch_version import TorchVersion

from compiler.dynamo.log import watch_dynamo
from compiler.dynamo.messages import DynamoFacts, parse_break, parse_guards
from compiler.errors import CompileError
from compiler.pipeline import compile_model
from compiler.report import Guard, SourceLine
from tests.graphs import TARGET

pytestmark = pytest.mark.usefixtures("fresh_dynamo")


def run(function: Any, *calls: tuple[Any, ...]) -> DynamoFacts:
    """Compile with a backend that changes nothing, and call once for each tuple of arguments."""
    with watch_dynamo() as log:

        def backend(gm: torch.fx.GraphModule, inputs: Any) -> Callable[..., Any]:
            log.note_guards(torch._guards.TracingContext.get().guards_context.dynamo_guards)
            return gm.forward

        compiled = torch.compile(function, backend=backend)
        for arguments in calls:
            compiled(*arguments)
    return log


def line_of(function: Any, text: str) -> int:
    lines, first = inspect.getsourcelines(function)
    return first + next(i for i, line in enumerate(lines) if text in line)


def chatty(x: Tensor) -> Tensor:
    y = x + 1
    print("half-way")
    return y * 2


def test_a_break_has_its_reason_its_hints_and_the_users_line() -> None:
    (found,) = run(chatty, (torch.ones(3),)).graph_breaks
    assert "print" in found.reason + found.detail
    assert "Hint:" in found.detail
    assert found.source is not None
    assert (found.source.file, found.source.line) == (__file__, line_of(chatty, "print"))
    assert found.source.function == "chatty"
    assert not found.skipped_frame


def test_a_break_met_again_in_a_recompile_is_told_once() -> None:
    log = run(chatty, (torch.ones(3),), (torch.ones(5),), (torch.ones(7, 2),))
    assert len(log.graph_breaks) == 1
    assert log.recompiles


class Recurrent(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.lstm = nn.LSTM(3, 4)

    def forward(self, x: Tensor) -> Tensor:
        return self.lstm(x * 2)[0] + 1


def test_a_function_left_to_eager_as_a_whole_says_so() -> None:
    (found,) = run(Recurrent(), (torch.ones(2, 2, 3),)).graph_breaks
    # until torch 2.14 Dynamo cannot resume after it; later it does
    assert found.skipped_frame == (torch.__version__ < TorchVersion("2.15"))
    assert "LSTM" in f"{found.reason} {found.detail}"
    assert found.source is not None
    assert found.source.line == line_of(Recurrent.forward, "self.lstm")


def test_a_recompile_names_the_guard_the_function_and_the_line() -> None:
    def scaled(x: Tensor, n: int) -> Tensor:
        y = x.cos()
        return y * n

    (found,) = run(scaled, (torch.ones(3), 2), (torch.ones(3), 3)).recompiles
    assert found.reason == "n == 2"
    assert found.function == "scaled"
    assert found.source is not None
    assert found.source.file == __file__
    assert line_of(scaled, "def scaled") <= found.source.line <= line_of(scaled, "return y")


def test_guards_are_what_is_checked_and_where_it_was_first_used() -> None:
    def doubled(x: Tensor, names: dict[str, int]) -> Tensor:
        if names["k"]:
            x = x * 2
        return x

    guards = run(doubled, (torch.ones(3), {"k": 1})).guards
    tensor = next(g for g in guards if g.kind == "TENSOR_MATCH")
    assert tensor.subject == "L['x']"
    assert "size=[3]" in tensor.code
    assert tensor.source is not None
    assert (tensor.source.file, tensor.source.line) == (__file__, line_of(doubled, "x * 2"))
    assert any(g.subject == "L['names']['k']" and "== 1" in g.code for g in guards)
    assert len({(g.code, g.subject) for g in guards}) == len(guards)


def test_guards_name_no_addresses_and_not_dynamos_own_marks() -> None:
    guards = run(nn.Linear(3, 3), (torch.ones(2, 3),)).guards
    assert guards
    assert not [g for g in guards if "_dynamo_dynamic_indices" in g.code]
    assert not [g for g in guards if any(part.isdigit() and len(part) > 9 for part in g.code.replace(")", " ").split())]


def test_another_thread_s_compilation_is_not_ours() -> None:
    import threading

    with watch_dynamo() as log:
        thread = threading.Thread(target=lambda: torch.compile(chatty, backend="eager")(torch.ones(3)))
        thread.start()
        thread.join()
    assert not log.graph_breaks


def test_the_log_is_left_as_it_was() -> None:
    import logging

    logger = logging.getLogger("torch.__trace")
    before = list(logger.handlers), logger.level
    with watch_dynamo():
        pass
    assert (list(logger.handlers), logger.level) == before


def test_a_report_has_all_of_it() -> None:
    def function(x: Tensor) -> Tensor:
        return chatty(x) + chatty(x[:2]).sum()

    report = compile_model(function, (torch.ones(4),), source="function", target=TARGET).report
    assert [b.source.line for b in report.graph_breaks if b.source] == [line_of(chatty, "print")]
    assert {r.function for r in report.recompiles} == {"chatty"}
    assert {g.kind for g in report.guards} >= {"TENSOR_MATCH"}


def test_a_model_of_which_nothing_is_captured_says_why() -> None:
    with pytest.raises(CompileError) as raised:
        compile_model(nn.LSTM(3, 4), (torch.ones(2, 2, 3),), source="lstm", target=TARGET)
    assert "RNN, GRU, or LSTM" in f"{raised.value} {raised.value.hint}"


def test_a_message_in_another_form_still_gives_a_reason() -> None:
    text = 'Graph break: skipped.\nThe graph break occurred in the following user code:\n  File "m.py", line 3, in f\n'
    traceback = "Traceback (most recent call last):\n  File x\ntorch.Unsupported: no such op\n"
    found = parse_break(f"{text}    g(x)\n\n{traceback}")
    assert (found.reason, found.source) == ("no such op", SourceLine("m.py", 3, "f", "g(x)"))
    assert parse_break("").reason == "graph break"


def test_the_printed_tree_of_guards() -> None:
    tree = """
TREE_GUARD_MANAGER:
+- RootGuardManager
| +- GLOBAL_STATE: ___check_global_state()
| +- GuardManager: source=L['n'], accessed_by=FrameLocals(key='n'), type=<class 'int'>
| | +- EQUALS_MATCH: L['n'] == 2   # y = x * n  # place/model.py:8 in f
| +- GuardManager: source=L['m'], accessed_by=FrameLocals(key='m'), type=<class 'M'>
| | +- ID_MATCH: ___check_obj_id(L['m'], 140201584590048), type=<class 'M'>
+- LAMBDA_GUARD: 2 <= L['x'].size()[0]  # y = x * n  # place/model.py:8 in f (user code shown is first use)
"""
    known = SourceLine("/place/model.py", 8, "f", "y = x * n")
    place = SourceLine("place/model.py", 8, "f", "y = x * n")
    assert parse_guards(tree, {"L['x']": known}) == [
        Guard("___check_global_state()", "GLOBAL_STATE"),
        Guard("L['n'] == 2", "EQUALS_MATCH", "L['n']", place),
        Guard("___check_obj_id(L['m']), type=<class 'M'>", "ID_MATCH", "L['m']"),
        Guard("2 <= L['x'].size()[0]", "LAMBDA_GUARD", "", known),
    ]
