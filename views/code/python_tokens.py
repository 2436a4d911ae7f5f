"""The coloured spans of one line of Python, and the strings that reach over several lines."""

from __future__ import annotations

import builtins
import keyword
import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from functools import cache

from views.code.tokens import Span

Open = tuple[int, int, str]  # first line that begins within a string, the last such line, the string's quotes

_STRING = r"""
(?<!\w)[rRbBuUfFtT]{0,2}(?:\"{3}(?:\\.|(?!\"{3}).)*(?:\"{3}|\\?$)|'{3}(?:\\.|(?!'{3}).)*(?:'{3}|\\?$)
|"(?:\\.|[^"\\])*(?:"|\\?$)|'(?:\\.|[^'\\])*(?:'|\\?$))
"""
_QUOTES = ('"""', "'''")


def python_line_spans(line: str, within: str, end: int) -> list[Span]:
    """The spans of ``line`` up to the column ``end``; ``within`` are the quotes of a string that it begins in."""
    start = _closed_at(line, within) if within else 0
    made = [(0, start, "string")] if start else []
    found = _pattern().finditer(line, start, end)
    return made + [(m.start(), m.end() - m.start(), m.lastgroup) for m in found if m.lastgroup]


def open_strings(text: str, lines: Sequence[str]) -> list[Open]:
    """The lines that begin within a triple-quoted string, in order.

    Only lines that have such quotes are looked at. A string in single quotes that goes on over a backslash is not
    followed.
    """
    made: list[Open] = []
    first, within = 0, ""
    for number in _lines_with_quotes(text):
        line, at = lines[number], 0
        if within:
            if within not in line:
                continue
            at = _closed_at(line, within)
            if not _is_closed(line[:at], within):
                continue
            made.append((first, number, within))
            within = ""
        for match in _strings().finditer(line, at):
            quotes = next((q for q in _QUOTES if match[0].lstrip("rRbBuUfFtT").startswith(q)), "")
            if quotes and not _is_closed(match[0].lstrip("rRbBuUfFtT")[3:], quotes):
                first, within = number + 1, quotes
    if within:
        made.append((first, len(lines) - 1, within))
    return made


def string_at(strings: list[Open], line: int) -> str:
    """The quotes of the string that a line begins in, or ""."""
    before = bisect_right(strings, line, key=lambda one: one[0]) - 1
    return strings[before][2] if before >= 0 and line <= strings[before][1] else ""


def _lines_with_quotes(text: str) -> Iterator[int]:
    number = at = 0
    for match in re.finditer("\"\"\"|'''", text):
        fresh = text.count("\n", at, match.start())
        if fresh or not at:
            number += fresh
            yield number
        at = match.end()


def _closed_at(line: str, quotes: str) -> int:
    """The column behind the quotes that close a string; the line's length where none do."""
    match = re.match(rf"(?:\\.|(?!{quotes}).)*(?:{quotes}|$)", line)
    return match.end() if match else len(line)


def _is_closed(text: str, quotes: str) -> bool:
    return re.fullmatch(rf"(?:\\.|(?!{quotes}).)*{quotes}", text) is not None


@cache
def _strings() -> re.Pattern[str]:
    return re.compile(rf"\#.*|{_STRING}", re.VERBOSE)


@cache
def _pattern() -> re.Pattern[str]:
    constants = ("True", "False", "None", "Ellipsis", "NotImplemented")
    keywords = [word for word in (*keyword.kwlist, "match", "case") if word not in constants]
    kinds = ["self", "cls", *(name for name in dir(builtins) if name.islower() and not name.startswith("_"))]
    return re.compile(
        rf"""
        (?P<comment>\#.*)
        |(?P<decorator>^\s*@[\w.]+)
        |(?P<string>{_STRING})
        |(?P<number>(?<![\w.])(?:0[xX][\da-fA-F_]+|0[bB][01_]+|0[oO][0-7_]+
        |(?:\d[\d_]*(?:\.[\d_]*)?|\.\d[\d_]*)(?:[eE][-+]?\d+)?[jJ]?)|\b(?:{"|".join(constants)})\b)
        |(?P<name>(?<=\bdef[ ])\w+|(?<=\bclass[ ])\w+|\b__\w+__\b)
        |(?P<keyword>\b(?:{"|".join(keywords)})\b(?!\s*=[^=]))
        |(?P<type>(?<![\w.])(?:{"|".join(kinds)})\b(?!\s*=[^=]))
        |\w+
        |(?P<operator>[-+*/%@&|^~<>=!]+)
        """,
        re.VERBOSE,
    )
