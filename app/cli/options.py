"""The command that lists what a compiler can be told."""

from __future__ import annotations

import argparse
import textwrap

import msgspec

from app.cli.errors import CommandError
from app.worker.options import compiler_options
from compiler.options import OptionInfo

_WIDTH = 100


def options_command(options: argparse.Namespace) -> int:
    """Print the compiler's options with their defaults and texts."""
    word = options.word.lower()
    found = [info for info in compiler_options(options.compiler) if word in f"{info.name} {info.doc}".lower()]
    if options.json:
        print(msgspec.json.format(msgspec.json.encode([msgspec.structs.asdict(info) for info in found])).decode())
        return 0
    if not found:
        hint = "Leave the word out to see them all."
        raise CommandError(f"No option of {options.compiler} has '{options.word}' in its name or text.", hint)
    print("\n".join(map(option_text, found)))
    return 0


def option_text(info: OptionInfo) -> str:
    """Name, type, default and text of one option."""
    takes = "|".join(info.choices) if info.choices else info.type
    now = f" (now {info.current})" if info.current else ""
    head = f"{info.name}={info.default}{now}  [{takes}]"
    return "\n".join([head, *textwrap.wrap(info.doc, _WIDTH, initial_indent="    ", subsequent_indent="    ")])
