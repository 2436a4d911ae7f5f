"""The command line: one module a family of commands, each imported when its command is given."""

from app.cli.entry import run

__all__ = ["run"]
