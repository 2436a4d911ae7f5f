"""Calls of loggers, at which Dynamo breaks a graph though no number comes of them."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

# How the names of the methods that write begin, those that libraries put beside them (warning_once) among them.
_WRITING = ("debug", "info", "warn", "error", "exception", "critical", "fatal", "log")
_SETTINGS = ("ignore_logging_functions", "ignore_logger_methods")  # Dynamo's, by its age


def is_at_logger(reason: str) -> bool:
    """Whether a graph break came of a call of a logger, by Dynamo's words for it."""
    return "logging.Logger method" in reason


@contextmanager
def calls_of_loggers_left_out() -> Iterator[None]:
    """What is compiled meanwhile does not call loggers, and has no graph breaks there."""
    from torch._dynamo import config

    setting = next(name for name in _SETTINGS if hasattr(config, name))
    metrics = logging.getLogger("torch._dynamo.metrics_context")
    with config.patch({setting: getattr(config, setting) | set(_writing_methods())}):
        metrics.addFilter(_can_be_written)
        try:
            yield
        finally:
            metrics.removeFilter(_can_be_written)


def _can_be_written(record: logging.LogRecord) -> bool:
    """torch 2.11 fails to write these settings, which are functions, into its metrics, and logs that as an error."""
    return "logging compilation metrics" not in record.getMessage()


def _writing_methods() -> Iterator[Callable[..., Any]]:
    classes: list[type] = [logging.Logger]
    for cls in classes:
        classes += cls.__subclasses__()
        yield from (method for name, method in vars(cls).items() if name.startswith(_WRITING) and callable(method))
