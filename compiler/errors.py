"""What goes wrong in a compilation, said in one sentence with its place."""

from __future__ import annotations


class CompileError(Exception):
    """A stage could not do its work.

    ``stage`` is the stage's name, ``node`` the FX node at fault (or ""), ``hint`` what the user can do next.
    """

    def __init__(self, message: str, *, stage: str = "", node: str = "", hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.stage = stage
        self.node = node
        self.hint = hint

    def __str__(self) -> str:
        place = f" (stage {self.stage}, node {self.node})" if self.node else f" (stage {self.stage})"
        return self.message + (place if self.stage else "")
