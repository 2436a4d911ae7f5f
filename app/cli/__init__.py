"""The command line: one module a family of commands, each imported when its command is given."""

from app.cli.entry import run
from app.cli.watched import run_watched

__all__ = ["run", "run_watched"]
