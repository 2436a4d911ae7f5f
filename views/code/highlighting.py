"""The colours of a text's lines, each found when it is asked for."""

from __future__ import annotations

from views.code.lines import Lines
from views.code.python_tokens import Open, open_strings, python_line_spans, string_at
from views.code.tokens import Span, line_spans


class Highlighter:
    """Spans of the lines of a text in ``language``: "python" or the name of an IR ("ptx", "ttir", ...)."""

    def __init__(self, language: str, lines: Lines) -> None:
        self._language = language
        self._lines = lines
        self._strings: list[Open] | None = None

    def spans(self, number: int, line: str, end: int) -> list[Span]:
        """Those of a line (from 0) up to the column ``end``; ``line`` is its text as it is painted."""
        if self._language != "python":
            return line_spans(self._language, line, end)
        if self._strings is None:
            self._strings = open_strings(self._lines.text, self._lines)
        return python_line_spans(line, string_at(self._strings, number), end)
