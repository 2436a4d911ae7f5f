"""The door: the app by default, else the command line. Nothing heavy is imported before a command needs it."""

from __future__ import annotations

import sys


def main() -> int:
    """Run the command line of this process. Returns the exit status."""
    from app.cli import run_watched

    return run_watched(sys.argv[1:])


if __name__ == "__main__":
    sys.exit(main())
