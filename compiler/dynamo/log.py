"""What Dynamo says while it captures: graph breaks, the guards of every region, and why it compiled something again.

torch writes these facts to its structured log (the logger ``torch.__trace``), whatever the backend. ``watch_dynamo``
listens there for as long as a compilation runs, in its own thread unless told otherwise.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from compiler.dynamo.messages import DynamoFacts

_LOGGER = "torch.__trace"


class DynamoLog(logging.Handler):
    """Gives what is logged in this thread, or in every one, to ``facts``."""

    def __init__(self, every_thread: bool = False) -> None:
        super().__init__(logging.DEBUG)
        self.facts = DynamoFacts(_interned())
        self._thread = None if every_thread else threading.get_ident()

    def emit(self, record: logging.LogRecord) -> None:
        """Take what is wanted of one message. Never raises: a log that changed its form costs facts, not the model."""
        if self._thread is not None and record.thread != self._thread:
            return
        try:
            self.facts.take(getattr(record, "metadata", None) or {}, getattr(record, "payload", None) or "")
        except Exception:
            logging.getLogger(__name__).debug("a message of Dynamo's log could not be read", exc_info=True)

@contextmanager
def watch_dynamo(every_thread: bool = False) -> Iterator[DynamoFacts]:
    """Collect Dynamo's facts for as long as the context is open."""
    log, logger = DynamoLog(every_thread), logging.getLogger(_LOGGER)
    level = logger.level
    logger.addHandler(log)
    logger.setLevel(logging.DEBUG)
    try:
        yield log.facts
    finally:
        logger.removeHandler(log)
        logger.setLevel(level)


def _interned() -> dict[int, str]:
    """Files that the log named before we listened."""
    from torch._logging import structured

    return {number: text for text, number in structured.INTERN_TABLE.items()}


