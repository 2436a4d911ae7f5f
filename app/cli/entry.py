"""Dispatch a command line to its command, and turn faults into one line on stderr and an exit status."""

from __future__ import annotations

import argparse
import importlib
import itertools
import os
import re
import sys
import traceback
from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType

from app.cli.errors import CommandError
from app.cli.parser import build_parser
from app.session import SessionError

# command -> the module under app.cli and its function
_COMMANDS: Mapping[str, tuple[str, str]] = MappingProxyType(
    {
        "open": ("window", "open_app"),
        "screenshot": ("window", "screenshot"),
        "compile": ("compile", "compile_command"),
        "bench": ("bench", "bench_command"),
        "verify": ("compile", "verify_command"),
        "numerics": ("numerics", "numerics_command"),
        "minify": ("minify", "minify_command"),
        "show": ("show", "show_command"),
        "diff": ("diff", "diff_command"),
        "record": ("traces", "record_command"),
        "import": ("traces", "import_command"),
        "export": ("export", "export_command"),
        "targets": ("info", "targets_command"),
        "examples": ("info", "examples_command"),
        "options": ("options", "options_command"),
        "doctor": ("doctor", "doctor_command"),
        "worker": ("worker", "worker_command"),
    }
)

_LONG_WORD = re.compile(r"\S{256,}")  # such a name would hide the sentence around it


def run(arguments: Sequence[str]) -> int:
    """Run one command line. Returns 0, 1 (the model or file is at fault), or 2 (wrong usage).

    Raises:
        SystemExit: from argparse, for --help and wrong usage.
    """
    options = build_parser().parse_args(with_default_command(arguments))
    module_name, function_name = _COMMANDS[options.command]
    try:
        module = importlib.import_module(f"app.cli.{module_name}")
        command: Callable[[argparse.Namespace], int] = getattr(module, function_name)
        status = command(options)
        sys.stdout.flush()
        return status
    except (CommandError, SessionError) as error:
        return _complain(error, error.message, error.hint, getattr(error, "status", 1), options.debug)
    except ModuleNotFoundError as error:
        missing = (error.name or "").split(".")[0]
        if missing not in ("torch", "triton", "PySide6", "numpy"):
            raise
        extra = "fusescope[compile]" if missing in ("torch", "triton") else "fusescope"
        message = f"This needs {missing}, which is not installed."
        return _complain(error, message, f"pip install '{extra}' adds it.", 1, options.debug)
    except KeyboardInterrupt:
        print("fusescope: stopped", file=sys.stderr)
        return 130
    except BrokenPipeError:
        # the reader of our output (head, less) has had enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0


def with_default_command(arguments: Sequence[str]) -> list[str]:
    """``arguments`` with the default command put in where none is named."""
    before = list(itertools.takewhile(lambda argument: argument == "--debug", arguments))
    rest = arguments[len(before) :]
    if rest and (rest[0] in _COMMANDS or rest[0].startswith("-")):
        return list(arguments)
    return [*before, "open", *rest]


def _complain(error: Exception, message: str, hint: str, status: int, debug: bool) -> int:
    if debug:
        print(getattr(error, "detail", "") or traceback.format_exc(), file=sys.stderr)
    message = _LONG_WORD.sub(lambda word: f"{word[0][:80]}…{word[0][-40:]}", message)
    end = "" if message.endswith((".", "!", "?")) else "."
    print(f"fusescope: {message}{end} {hint}".rstrip(), file=sys.stderr)
    return status
