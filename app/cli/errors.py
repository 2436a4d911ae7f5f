"""How a command says that it could not do its work."""

from __future__ import annotations


class CommandError(Exception):
    """One sentence for stderr and what to do next. ``detail`` is shown with --debug.

    ``status`` is 1 where the model or file is at fault, 2 for wrong usage.
    """

    def __init__(self, message: str, hint: str = "", *, status: int = 1, detail: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint
        self.status = status
        self.detail = detail
