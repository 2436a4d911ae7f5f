"""The command that the app starts its worker with."""

from __future__ import annotations

import argparse


def worker_command(_options: argparse.Namespace) -> int:
    """Serve the app on stdin and stdout until it goes away."""
    from app.worker.server import serve

    serve()
    return 0
