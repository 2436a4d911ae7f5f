"""Dynamo's structured log messages as records: graph breaks, the guards of every region, and why it compiled again.

A message is its metadata and a text. They come live (``log.py``) or from a file that another process wrote.
"""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import compiler
from compiler.dynamo.frames import parse_stack, torch_folder, users_function
from compiler.report import GraphBreak, Guard, Recompile, SourceLine

_ROOT = Path(compiler.__file__).resolve().parents[1]
_OWN_FOLDERS = tuple(str(_ROOT / folder) for folder in ("app", "compiler", "tests/benchmarks"))
_NO_RESUME = ("Failed to handle graph break gracefully", "results in a skip")
_RAISED = re.compile(r"got (\w+)\((['\"])(.*?)\2\)\s*$", re.M)
_DYNAMOS_OWN = ("It may be possible to write Dynamo", "This graph break may be", "This is likely to be a Dynamo")
_NOT_THE_REASON = ("Encountered graph break", "Failed to handle graph break")
_GUARD_LINE = re.compile(r"^(?P<indent>[| ]*)\+- (?P<kind>\w+): (?P<text>.*)$")
_SUBJECT = re.compile(r"source=(?P<subject>.*?), accessed_by=")
_COMMENT = re.compile(r"\s+# (?P<comment>.*)$")
_PLACE = re.compile(r"(?P<file>[^\s#]+\.py):(?P<line>\d+) in (?P<function>[^\s(]+)")
_TORCHS = ("_dynamo/", "_functorch/", "_inductor/", "fx/", "utils/_")  # named from torch's own folder
_ADDRESS = re.compile(r", \d{9,}(?=\))")  # of an object in this process
_DYNAMOS_MARK = re.compile(r"_dynamo_\w+'\) == False|___skip_backend_check")


class DynamoFacts:
    """Collects records from Dynamo's messages, given one after the other."""

    def __init__(self, files: Mapping[int, str] | None = None) -> None:
        """``files``: names that were numbered before the first message."""
        self.graph_breaks: list[GraphBreak] = []
        self.recompiles: list[Recompile] = []
        self._guards: dict[tuple[str, str], Guard] = {}
        self._guard_sources: dict[str, SourceLine] = {}  # of the frame that is being compiled
        self._frames: dict[Any, SourceLine] = {}  # Dynamo's number of a frame -> where its function begins
        self._files: dict[int, str] = dict(files or {})
        self._open: dict[tuple[Any, Any], list[int]] = {}  # a compilation of a frame -> its breaks

    def note_guards(self, guards: Any) -> None:
        """Remember the user's line that each guarded thing is first used at, until this frame's guards are logged.

        ``guards`` are Dynamo's own, which last no longer than that either.
        """
        for guard in guards:
            frames = parse_stack("".join(guard.user_stack.format())) if guard.user_stack else []
            if frames and guard.name:
                self._guard_sources.setdefault(guard.name, frames[0])

    @property
    def guards(self) -> list[Guard]:
        """The guards of every region compiled so far, each once."""
        return list(self._guards.values())

    def take(self, metadata: Mapping[str, Any], payload: str) -> None:
        """Take what is wanted of one message."""
        compilation = (metadata.get("frame_id"), metadata.get("frame_compile_id"))
        if "str" in metadata:  # file names are sent once and numbered
            text, number = metadata["str"]
            self._files[number] = text
        elif "dynamo_start" in metadata:
            stack = metadata["dynamo_start"].get("stack") or []
            if stack:
                self._frames[compilation[0]] = self._frame(stack[-1])
        elif "dynamo_cpp_guards_str" in metadata:
            for guard in parse_guards(payload, self._guard_sources):
                self._guards.setdefault((guard.code, guard.subject), guard)
            self._guard_sources = {}
        elif "artifact" in metadata:
            name = metadata["artifact"].get("name")
            if name == "dynamo_graph_break_reason":
                self._break(compilation, payload)
            elif name == "dynamo_error":  # the frame is left to eager as a whole
                for position in self._open.get(compilation, []):
                    self.graph_breaks[position].skipped_frame = True
            elif name == "recompile_reasons":
                self._recompile(compilation[0], payload)

    def _break(self, compilation: tuple[Any, Any], payload: str) -> None:
        found = parse_break(payload)
        same = [
            i for i, b in enumerate(self.graph_breaks) if (b.reason, b.source) == (found.reason, found.source)
        ]  # met again in a second attempt or a recompile
        for position in same:
            self.graph_breaks[position].skipped_frame |= found.skipped_frame
        if not same:
            self.graph_breaks.append(found)
        self._open.setdefault(compilation, []).extend(same or [len(self.graph_breaks) - 1])

    def _recompile(self, frame: Any, payload: str) -> None:
        reasons = json.loads(payload) if payload.startswith(("[", '"')) else payload
        text = reasons if isinstance(reasons, str) else reasons[0]  # the most recent compilation's guard comes first
        begin = self._frames.get(frame)
        self.recompiles.append(parse_recompile(text, begin))

    def _frame(self, frame: dict[str, Any]) -> SourceLine:
        name = frame.get("filename", "")
        if isinstance(name, int):
            name = self._files.get(name, "")
        return SourceLine(str(name), int(frame.get("line", 0)), users_function(str(frame.get("name", ""))))


# --- the texts -----------------------------------------------------------------------------------------------------


def parse_break(text: str) -> GraphBreak:
    """Dynamo's account of a graph break: reason in one line, explanation and hints, the user's innermost line."""
    account, _, stack = text.partition("User code traceback:")
    if not stack:  # the shorter form, of a frame that cannot be resumed
        account, _, stack = text.partition("The graph break occurred in the following user code:")
    stack = stack.partition("\nTraceback (most recent call last)")[0]
    _, marker, reason = account.partition("Graph Break Reason:")
    paragraphs = [p for p in re.split(r"\n\s*\n", (reason if marker else _last_error(text)).strip()) if p.strip()]
    while len(paragraphs) > 1 and paragraphs[0].strip().startswith(_NOT_THE_REASON):
        paragraphs.pop(0)
    lines = "\n".join(paragraphs).splitlines()
    detail = [line.strip() for line in lines[1:] if line.strip()]
    detail = [line for line in detail if not line.startswith(("Developer debug context", "For more details", "File "))]
    detail = detail[: next((i for i, line in enumerate(detail) if line.startswith("Stack variable")), None)]
    return GraphBreak(
        lines[0].strip() if lines else "graph break",
        _innermost(stack),
        "\n".join(detail),
        skipped_frame=any(words in text for words in _NO_RESUME),
    )


def parse_error(text: str) -> GraphBreak:
    """The same of what Dynamo raised where it gave up on the whole model.

    Where an op failed on fake tensors, what it raised is the reason.
    """
    account, _, stack = text.partition("from user code:")
    lines = [line.strip() for line in account.strip().splitlines() if line.strip()]
    raised = _RAISED.search(account)
    reason = f"{raised[1]}: {raised[3]}".partition("\\n")[0] if raised else lines[0] if lines else "no reason given"
    # of an op that raised Dynamo explains no more than that it did
    detail = [line for line in lines[1:] if line.startswith(("Explanation: ", "Hint: ")) and not raised]
    return GraphBreak(reason, _innermost(stack), "\n".join(detail), skipped_frame=True)


def _innermost(stack: str) -> SourceLine | None:
    """The user's line nearest to what happened. What called us is no part of the model, be it the user's program."""
    inside = itertools.takewhile(lambda frame: not frame.file.startswith(_OWN_FOLDERS), parse_stack(stack))
    return next(inside, None)


def advice(detail: str) -> str:
    """Dynamo's explanation and its first hint to the user, as sentences; hints about Dynamo itself are left out."""
    lines = detail.splitlines()
    explained = [line.removeprefix("Explanation: ") for line in lines[:1]]
    hints = [line.removeprefix("Hint: ") for line in lines[1:] if line.startswith("Hint: ")]
    told = [hint for hint in hints if not hint.startswith(_DYNAMOS_OWN)]
    return " ".join(text.strip().rstrip(".") + "." for text in (*explained, *told[:1]) if text.strip())


def _last_error(text: str) -> str:
    """The message that a printed traceback ends with."""
    lines = text.rstrip().splitlines()
    starts = [number for number, line in enumerate(lines) if re.match(r"^[\w.]+: ", line)]
    return "\n".join(lines[starts[-1] :]).partition(": ")[2] if starts else ""


def parse_recompile(text: str, begin: SourceLine | None) -> Recompile:
    """One reason to recompile: the guard that failed, and the user's line that made the guard where it is known.

    ``begin`` is where the function that was compiled again begins.
    """
    first, _, rest = text.partition("\n")
    reason = re.sub(r"^\d+/\d+: ", "", first.strip())
    code, _ = _without_comment(reason)
    frames = parse_stack(rest)
    function = begin.function if begin is not None else ""
    return Recompile(code, function, frames[0] if frames else begin)


def parse_guards(text: str, sources: dict[str, SourceLine]) -> list[Guard]:
    """The guards in Dynamo's printed tree. ``sources`` has the user's line for what is guarded, by its name.

    Left out: marks that Dynamo itself sets on tensors, checked for each tensor several times over.
    """
    subjects: list[tuple[int, str]] = []
    found = []
    for line in text.splitlines():
        match = _GUARD_LINE.match(line)
        if match is None:
            continue
        depth, kind, body = len(match["indent"]), match["kind"], match["text"]
        while subjects and subjects[-1][0] >= depth:
            subjects.pop()
        if kind.endswith("GuardManager"):
            named = _SUBJECT.search(body)
            subjects.append((depth, named["subject"] if named else ""))
            continue
        code, comment = _without_comment(body)
        code = _ADDRESS.sub("", code)
        if _DYNAMOS_MARK.search(code):
            continue
        subject = subjects[-1][1] if subjects else ""
        source = sources.get(subject) or next((s for name, s in sources.items() if name in code), None)
        found.append(Guard(code, kind, subject, source or _place(comment)))
    return found


def _without_comment(text: str) -> tuple[str, str]:
    match = _COMMENT.search(text)
    return (text[: match.start()].strip(), match["comment"]) if match else (text.strip(), "")


def _place(comment: str) -> SourceLine | None:
    """The file and line that a guard's comment names, if that is no part of torch."""
    match = _PLACE.search(comment)
    if match is None:
        return None
    own = torch_folder()
    if match["file"].startswith(_TORCHS) or (own is not None and (own / match["file"]).exists()):
        return None
    return SourceLine(match["file"], int(match["line"]), match["function"], comment[: match.start()].rstrip(" #("))
