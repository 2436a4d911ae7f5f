"""The one error of sources."""

from __future__ import annotations


class SourceError(Exception):
    """The user's model cannot be had. ``message`` is one sentence, ``hint`` what to do next.

    ``code`` is "source" (the file or name is at fault) or "unsafe" (loading it would run pickled code).
    ``detail`` is the traceback of the user's own code, where there is one.
    """

    def __init__(self, message: str, hint: str = "", *, code: str = "source", detail: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.code = code
        self.detail = detail
