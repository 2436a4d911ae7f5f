"""The words and options of the command line."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from importlib import metadata
from pathlib import Path
from typing import NoReturn

from app.titles import COMPILERS

MODES = ("eager", "compiled", "graph", "inductor", "inductor-graph")
IRS = ("triton", "ttir", "ttgir", "llir", "ptx", "sass", "amdgcn")
_SOURCE_HELP = "example:NAME, FILE.py[:function], FILE.pt2 or package.module:function"
_SESSION_HELP = "a session file (.fscope)"
_TARGET_HELP = "a GPU of 'targets', or local (default: this machine's GPU, else h100)"


class Parser(argparse.ArgumentParser):
    """A parser whose errors name the command to ask for help."""

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"{self.prog}: {message} (see {self.prog} --help)\n")

    def parse_known_args(  # type: ignore[override]
        self, args: Sequence[str] | None = None, namespace: argparse.Namespace | None = None
    ) -> tuple[argparse.Namespace, list[str]]:
        """As argparse's, but a word too many is told by the command that has no use for it."""
        parsed, unknown = super().parse_known_args(args, namespace)
        if unknown:
            self.error(f"unrecognized arguments: {' '.join(unknown)}")
        return parsed, unknown


def build_parser() -> Parser:
    """The whole command line's parser; the command's name is in ``command``."""
    parser = Parser(prog="fusescope", description="See how PyTorch compiles a model for a GPU.")
    parser.add_argument("--version", action="version", version=f"fusescope {_version()}")
    common = Parser(add_help=False)
    # before or after the command; left unset there so that it does not undo the one before
    parser.add_argument("--debug", action="store_true", help="show the traceback of an error")
    common.add_argument(
        "--debug", action="store_true", default=argparse.SUPPRESS, help="show the traceback of an error"
    )
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True, parser_class=Parser)

    def command(name: str, text: str) -> argparse.ArgumentParser:
        return commands.add_parser(name, help=text, description=text, parents=[common])

    add = command("open", "open the app (the default command)")
    add.add_argument("file", nargs="?", metavar="FILE", help=f"{_SESSION_HELP}, or a source: {_SOURCE_HELP}")

    add = command("compile", "compile a model and say what became of it")
    _add_compile_options(add)
    add.add_argument("-o", "--output", type=Path, metavar="X.fscope", help="write the session here")
    add.add_argument("--json", action="store_true", help="the result as JSON")

    add = command("bench", "time a model on this machine's GPU, mode by mode")
    _add_compile_options(add, target=False)
    add.add_argument(
        "--modes",
        type=_modes,
        default=["eager", "compiled", "graph"],
        metavar="A,B",
        help=f"of {', '.join(MODES)} (default: eager,compiled,graph)",
    )
    add.add_argument("--iterations", type=_positive, default=200, metavar="N", help="of each mode (default: 200)")
    add.add_argument("-o", "--output", type=Path, metavar="X.fscope", help="write the session here")
    add.add_argument("--json", action="store_true", help="the result as JSON")

    add = command("verify", "check the numbers of every fusion group against float64")
    add.add_argument("source", metavar="SOURCE", help=_SOURCE_HELP)
    add.add_argument("--interpret", action="store_true", help="run kernels on the CPU, through Triton's interpreter")
    add.add_argument("--train", action="store_true", help="forward and backward")
    add.add_argument("--dynamic", action="store_true", help="with symbolic sizes")
    _add_option(add)
    _add_allow_unsafe(add)
    add.add_argument("--json", action="store_true", help="the checks as JSON")

    add = command("numerics", "compare every value that a model's regions write with float64")
    _add_compile_options(add, compiler=False)
    add.add_argument("--interpret", action="store_true", help="run kernels on the CPU, through Triton's interpreter")
    add.add_argument("--json", action="store_true", help="the values as JSON")

    add = command("minify", "find the smallest graph of a model that still fails, as a Python file")
    add.add_argument("source", metavar="SOURCE", help=_SOURCE_HELP)
    add.add_argument("--accuracy", action="store_true", help="look for numbers that differ from eager's, not a crash")
    add.add_argument("--interpret", action="store_true", help="run kernels on the CPU, through Triton's interpreter")
    add.add_argument("--target", default="", metavar="NAME", help=_TARGET_HELP)
    add.add_argument("--train", action="store_true", help="forward and backward")
    _add_allow_unsafe(add)
    add.add_argument(
        "-o", "--output", type=Path, default=Path("minified.py"), metavar="F.py", help="the file (default: minified.py)"
    )

    add = command("show", "print what is in a session")
    add.add_argument("session", type=Path, metavar="X.fscope", help=_SESSION_HELP)
    what = add.add_mutually_exclusive_group()
    what.add_argument("--json", action="store_true", help="everything but the texts, as JSON")
    what.add_argument("--kernel", metavar="NAME", help="the text of one kernel, by its name or its group's")
    add.add_argument("--ir", choices=IRS, help="which text of the kernel (default: triton)")

    add = command("diff", "compare two sessions: of two compilers, or before and after a change")
    add.add_argument("a", type=Path, metavar="A.fscope", help=_SESSION_HELP)
    add.add_argument("b", type=Path, metavar="B.fscope", help=_SESSION_HELP)
    add.add_argument("--json", action="store_true", help="what differs as JSON, with the kernels' whole diffs")

    add = command("record", "run a program as it is, and make a session of what torch.compile does in it")
    add.usage = "%(prog)s [-h] [--debug] -o X.fscope -- PROGRAM [ARGUMENT ...]"
    add.add_argument("-o", "--output", type=Path, required=True, metavar="X.fscope", help="write the session here")
    add.add_argument(
        "program",
        nargs=argparse.REMAINDER,
        metavar="PROGRAM",
        help="with its arguments, as in: -- python train.py --lr 1",
    )

    add = command("import", "make a session of a log that torch wrote: TORCH_TRACE, or TORCH_COMPILE_DEBUG")
    add.add_argument("place", type=Path, metavar="TRACE_DIR", help="the folder, or one file of it")
    add.add_argument("-o", "--output", type=Path, metavar="X.fscope", help="write the session here")

    add = command("export", "write parts of a session for other programs")
    add.add_argument("session", type=Path, metavar="X.fscope", help=_SESSION_HELP)
    forms = add.add_mutually_exclusive_group(required=True)
    forms.add_argument("--html", type=Path, metavar="R.html", help="a report in one file")
    forms.add_argument(
        "--kernel", metavar="NAME", help="the source of one kernel, by its name or its group's, to the file -o"
    )
    forms.add_argument("--svg", type=Path, metavar="G.svg", help="the graph, as a drawing")
    forms.add_argument("--csv", type=Path, metavar="T.csv", help="the kernels, as a table")
    add.add_argument("-o", "--output", type=Path, metavar="k.py", help="the file for --kernel")

    add = command("screenshot", "draw the window with a session, without a display")
    add.add_argument("session", type=Path, metavar="X.fscope", help=_SESSION_HELP)
    add.add_argument("--view", default="graph", metavar="NAME", help="the panel in front (default: graph)")
    add.add_argument("--select", default="", metavar="NAME", help="the group, extern call or node to select")
    add.add_argument("--compare", type=Path, metavar="Y.fscope", help="compared with this session, as view 'compare'")
    add.add_argument("--size", type=_size, default=(1600, 1000), metavar="WxH", help="in pixels (default: 1600x1000)")
    add.add_argument("--theme", choices=("light", "dark"), default="light", help="(default: light)")
    add.add_argument("-o", "--output", type=Path, required=True, metavar="X.png", help="the picture to write")

    command("targets", "the GPUs that can be compiled for")
    command("examples", "the gallery of models")
    add = command("options", "what a compiler can be told with --option")
    add.add_argument("word", nargs="?", default="", metavar="WORD", help="only those with WORD in the name or the text")
    add.add_argument("--compiler", choices=tuple(COMPILERS), default="fusescope", help="(default: fusescope)")
    add.add_argument("--json", action="store_true", help="the options as JSON")
    command("doctor", "what is missing on this machine")
    command("worker", "the worker's end of the protocol, on stdin and stdout")
    return parser


def _add_compile_options(parser: argparse.ArgumentParser, target: bool = True, compiler: bool = True) -> None:
    parser.add_argument("source", metavar="SOURCE", help=_SOURCE_HELP)
    if compiler:
        parser.add_argument("--compiler", choices=tuple(COMPILERS), default="fusescope", help="(default: fusescope)")
    if target:
        parser.add_argument("--target", default="", metavar="NAME", help=_TARGET_HELP)
    parser.add_argument("--train", action="store_true", help="forward and backward")
    parser.add_argument("--dynamic", action="store_true", help="with symbolic sizes")
    _add_option(parser)
    _add_allow_unsafe(parser)


def _add_allow_unsafe(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--allow-unsafe", action="store_true", help="load a .pt2 that needs unpickling, which can run any code"
    )


def _add_option(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--option",
        type=_option,
        action="append",
        default=[],
        metavar="k=v",
        help="for the source's function if it has such a parameter, else for the compiler",
    )


def _option(text: str) -> tuple[str, str]:
    name, equals, value = text.partition("=")
    if not equals or not all(part.isidentifier() for part in name.split(".")):
        raise argparse.ArgumentTypeError(f"'{text}' is not NAME=VALUE")
    return name, value


def _modes(text: str) -> list[str]:
    modes = [mode.strip() for mode in text.split(",") if mode.strip()]
    unknown = [mode for mode in modes if mode not in MODES]
    if unknown or not modes:
        raise argparse.ArgumentTypeError(f"'{text}' should be some of {','.join(MODES)}")
    return modes


def _positive(text: str) -> int:
    if not text.isdecimal() or int(text) == 0:
        raise argparse.ArgumentTypeError(f"'{text}' is not a positive number")
    return int(text)


def _size(text: str) -> tuple[int, int]:
    width, _, height = text.lower().partition("x")
    if not (width.isdecimal() and height.isdecimal() and 200 <= int(width) <= 8192 and 200 <= int(height) <= 8192):
        raise argparse.ArgumentTypeError(f"'{text}' is not WIDTHxHEIGHT, each from 200 to 8192")
    return int(width), int(height)


def _version() -> str:
    try:
        return metadata.version("fusescope")
    except metadata.PackageNotFoundError:
        return "(not installed)"
