"""Dispatch a command line to its command, and turn faults into one line on stderr and an exit status."""

from __future__ import annotations

import argparse
import difflib
import importlib
import io
import itertools
import os
import re
import sys
import traceback
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

from app.cli.errors import CommandError
from app.cli.parser import build_parser
from app.places import PlaceError
from app.session import SessionError
from compiler.errors import first_line, sentence

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

_PACKAGES = ("torch", "triton", "PySide6", "numpy", "msgspec", "pygments")
_LONG_WORD = re.compile(r"\S{256,}")  # such a name would hide the sentence around it
_MOST = 600  # characters of a sentence; what a model raises may be pages long
_WORD = re.compile(r"[A-Za-z][A-Za-z_-]*")


def run(arguments: Sequence[str], doing: Callable[[str], None] = lambda text: None) -> int:
    """Run one command line. Returns 0, 1 (the model or file is at fault), 2 (wrong usage) or 130 (Ctrl+C).

    ``doing`` is told what is done with a model, in words that go on from "while it", before each part of it.

    Raises:
        SystemExit: from argparse, for --help and wrong usage.
    """
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")  # a terminal that has no µ shows something else in its place
    parser = build_parser()
    meant = with_default_command(arguments)
    if len(meant) > len(arguments) and (fault := _mistyped(arguments)):
        parser.error(fault)
    options = parser.parse_args(meant, argparse.Namespace(doing=doing))
    try:
        return _run_command(options)
    except KeyboardInterrupt:
        print("fusescope: stopped", file=sys.stderr)
        return 130


def _run_command(options: argparse.Namespace) -> int:
    module_name, function_name = _COMMANDS[options.command]
    try:
        module = importlib.import_module(f"app.cli.{module_name}")
        command: Callable[[argparse.Namespace], int] = getattr(module, function_name)
        status = command(options)
        sys.stdout.flush()
        return status
    except (CommandError, SessionError, PlaceError) as error:
        return _complain(error, error.message, error.hint, getattr(error, "status", 1), options.debug)
    except BrokenPipeError:
        # the reader of our output (head, less) has had enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except Exception as error:
        return _complain(error, *_unexpected(error, options.command), 1, options.debug)


def _unexpected(error: Exception, command: str) -> tuple[str, str]:
    """What stopped a command, and what to do next: what is missing on this machine, or a fault of ours."""
    package = (getattr(error, "name", "") or "").split(".")[0] if isinstance(error, ImportError) else ""
    if isinstance(error, ModuleNotFoundError) and package in _PACKAGES:
        extra = "fusescope[compile]" if package in ("torch", "triton") else "fusescope"
        return f"This needs {package}, which is not installed.", f"pip install '{extra}' adds it."
    if package in _PACKAGES:
        return f"{package} cannot be loaded: {first_line(error)}", "'doctor' says what is missing."
    hint = "This looks like a fault of Fusescope; --debug shows where."
    return f"The command '{command}' stopped with {sentence(error)}", hint


def with_default_command(arguments: Sequence[str]) -> list[str]:
    """``arguments`` with the default command put in where none is named."""
    before = list(itertools.takewhile(lambda argument: argument == "--debug", arguments))
    rest = arguments[len(before) :]
    if rest and (rest[0] in _COMMANDS or rest[0].startswith("-")):
        return list(arguments)
    return [*before, "open", *rest]


def command_of(arguments: Sequence[str]) -> str:
    """The name of the command that ``arguments`` give, "" where they only ask for help."""
    return next((word for word in with_default_command(arguments) if word in _COMMANDS), "")


def _mistyped(arguments: Sequence[str]) -> str:
    """What to say where the first word names no file, but may be meant as a command; "" where that is not so."""
    word = next((argument for argument in arguments if argument != "--debug"), "")
    if not _WORD.fullmatch(word) or Path(word).exists():
        return ""
    near = difflib.get_close_matches(word, _COMMANDS, 1)
    return f"there is no command '{word}'" + (f", did you mean '{near[0]}'?" if near else "")


def _complain(error: Exception, message: str, hint: str, status: int, debug: bool) -> int:
    if debug:
        print(getattr(error, "detail", "") or traceback.format_exc(), file=sys.stderr)
    tell(message, hint)
    return status


def tell(message: str, hint: str = "") -> None:
    """Say on stderr, in one line, what is wrong and what to do next."""
    message = _LONG_WORD.sub(lambda word: f"{word[0][:80]}…{word[0][-40:]}", _in_one_line(message))
    if len(message) > _MOST:
        message = f"{message[: _MOST - 80]}…{message[-80:]}"
    end = "" if message.endswith((".", "!", "?")) else "."
    print(f"fusescope: {message}{end} {_in_one_line(hint).strip()}".rstrip(), file=sys.stderr)


def _in_one_line(text: str) -> str:
    """``text`` with what a terminal would obey, as a file's name may have it, spelt out."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)
