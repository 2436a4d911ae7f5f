"""What goes wrong in a compilation, said in one sentence with its place."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

# Of others, as the capture of a model, the sentence itself says what could not be done.
_OF_A_GRAPH = frozenset(("lower", "fuse", "generate", "plan", "compile"))


class CompileError(Exception):
    """A stage could not do its work.

    ``stage`` is the stage's name, ``node`` the FX node at fault (or ""), ``source`` the user's line behind that node
    ("model.py:12, in forward: return x @ y", or ""), ``hint`` what the user can do next.
    """

    def __init__(self, message: str, *, stage: str = "", node: str = "", hint: str = "", source: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.stage = stage
        self.node = node
        self.hint = hint
        self.source = source

    def __str__(self) -> str:
        parts = [f"stage {self.stage}"] if self.stage in _OF_A_GRAPH else []
        parts += [f"node {self.node}"] if self.node else []
        parts += [self.source] if self.source else []
        return self.message + (f" ({', '.join(parts)})" if parts else "")


class TracingError(CompileError):
    """Dynamo gave up on the model as a whole. The model may have failed by itself, which only calling it tells."""


@contextmanager
def at_node(node: str) -> Iterator[None]:
    """Whatever goes wrong inside is said to have gone wrong at this FX node.

    Raises:
        CompileError: in place of any other exception.
    """
    try:
        yield
    except CompileError:
        raise
    except Exception as error:
        raise CompileError(sentence(error), node=node) from error


def sentence(error: BaseException) -> str:
    """An exception in one line: its type, and the first line of what it says."""
    said = first_line(error)
    return f"{type(error).__name__}: {said}" if said else type(error).__name__


def first_line(error: BaseException) -> str:
    """The first line of what an exception says; "" where it says nothing."""
    try:
        return next(iter(str(error).strip().splitlines()), "")
    except Exception:  # a user's own exception may fail even at that
        return ""
