"""The worker on another machine: the same protocol through ``ssh HOST``."""

from __future__ import annotations

import shlex


def ssh_command(host: str, folder: str, python: str = ".venv/bin/python") -> list[str]:
    """The command line that starts a worker from the checkout ``folder`` on ``host``; ``python`` is relative to it.

    Asks for no password: it needs a key or an agent. Killing the local ssh ends the remote worker, whose stdin closes.

    Raises:
        ValueError: ``host`` would be read as an option of ssh.
    """
    if not host or host.startswith("-"):
        raise ValueError(f"'{host}' is not a host name")
    remote = f"cd {shlex.quote(folder)} && exec {shlex.quote(python)} main.py worker"
    return ["ssh", "-T", "-o", "BatchMode=yes", "-o", "ServerAliveInterval=15", "--", host, remote]
