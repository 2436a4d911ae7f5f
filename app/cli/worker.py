"""The command that the app starts its worker with."""

from __future__ import annotations

import argparse

from app.worker.torch_cache import own_torch_cache


def worker_command(_options: argparse.Namespace) -> int:
    """Serve the app on stdin and stdout until it goes away."""
    from app.worker.server import serve

    with own_torch_cache():
        serve()
    return 0
