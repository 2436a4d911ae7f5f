"""The suite's worker processes, seen from the suite."""

from __future__ import annotations

import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tests.ops.records import Unit

ROOT = Path(__file__).resolve().parents[2]
START_SECONDS = 300.0  # until a process has imported torch on a machine that is busy


class Worker:
    """A worker process, replaced whenever it dies, hangs or has grown too large."""

    def __init__(self, device: str, samples: int, case_seconds: float) -> None:
        self._command = [sys.executable, "-m", "tests.ops.worker", "--device", device, "--samples", str(samples)]
        self._case_seconds = case_seconds
        self._process: subprocess.Popen[str] | None = None

    def run(self, unit: Unit, seconds: float) -> Iterator[dict[str, Any]]:
        """Run a unit's cases that begin within ``seconds``. Yields for each its "case" and "outcome", and in the end
        the "next" case (None: that was all), with how many are "left", and what "ended" the process before, if so."""
        process = self._started()
        assert process.stdin is not None
        op, first, step = unit
        process.stdin.write(json.dumps({"op": op, "first": first, "step": step, "seconds": seconds}) + "\n")
        process.stdin.flush()
        case: dict[str, Any] = {"title": op, "dtype": "", "way": ""}
        number, hung = first, False
        while True:
            message, hung = self._answer(process, self._case_seconds)
            if message is None:
                break
            if "case" in message:
                number, case = message["number"], message["case"]
            elif "outcome" in message:
                yield {"case": case, **message}
            else:
                if message["last"]:
                    self.stop()
                yield message
                return
        status = process.wait()
        self._process = None
        text = f"nothing came back in {self._case_seconds:.0f} s" if hung else f"the process ended with {status}"
        ended = {"title": case["title"], "kind": "hang" if hung else "crash", "message": text}
        yield {"next": number + step, "left": 0, "ended": ended}

    def stop(self) -> None:
        """End the process."""
        if self._process is not None:
            assert self._process.stdin is not None
            self._process.stdin.close()
            self._process.wait()
            self._process = None

    def _started(self) -> subprocess.Popen[str]:
        if self._process is None:
            self._process = subprocess.Popen(
                self._command, cwd=ROOT, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
            )  # fmt: skip
            self._answer(self._process, START_SECONDS)  # it is ready
        return self._process

    def _answer(self, process: subprocess.Popen[str], seconds: float) -> tuple[dict[str, Any] | None, bool]:
        """The next message, or None where the process ended; and whether it was ended for saying nothing so long."""
        hung = threading.Event()

        def end() -> None:
            hung.set()
            process.kill()

        timer = threading.Timer(seconds, end)
        timer.start()
        try:
            assert process.stdout is not None
            line = process.stdout.readline()
        finally:
            timer.cancel()
        return (json.loads(line), False) if line.endswith("\n") else (None, hung.is_set())
