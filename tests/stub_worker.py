"""A worker for client tests: speaks the protocol, compiles nothing, and misbehaves as its command's source says."""

from __future__ import annotations

import os
import subprocess
import sys
import time

from app.worker.protocol import (
    Compile,
    Compiled,
    Failed,
    Ready,
    Shutdown,
    StageStarted,
    decode_command,
    read_frame,
    write_frame,
)
from compiler.report import Report
from compiler.targets import TARGETS


def main() -> None:
    """Serve until the app is gone."""
    out = sys.stdout.buffer
    if "slow-start" in sys.argv:
        time.sleep(600)
    if "no-start" in sys.argv:
        sys.exit("torch is not installed here")
    write_frame(out, Ready({"stub": str(os.getpid())}, None, [TARGETS["h100"]]))
    while (payload := read_frame(sys.stdin.buffer)) is not None:
        command = decode_command(payload)
        if isinstance(command, Shutdown):
            return
        assert isinstance(command, Compile)
        write_frame(out, StageStarted(command.id, "capture", 0.0))
        match command.source:
            case "ok":
                write_frame(out, Compiled(command.id, Report("stub", "ok", TARGETS["h100"])))
            case "failed":
                write_frame(out, Failed(command.id, "It cannot be done."))
            case "hang":
                time.sleep(600)
            case "exit":
                sys.exit(3)
            case "crash":
                print("the last words", file=sys.stderr, flush=True)
                os.abort()
            case "garbage":
                out.write(b"\xff" * 64)
                out.flush()
                time.sleep(600)
            case "child":
                child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
                write_frame(out, StageStarted(command.id, str(child.pid), 0.5))
                time.sleep(600)


if __name__ == "__main__":
    main()
