"""What can be wrong with a log."""

from __future__ import annotations


class ImportingError(Exception):
    """A log cannot be read. ``message`` is one sentence, ``hint`` what to do next."""

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
