"""The log that torch writes where TORCH_TRACE names a folder.

A message is a line "V1130 01:26:32.003000 12377 FILE:LINE] {metadata as JSON}", and where that has "has_payload" (the
payload's MD5 sum), the payload follows on lines that begin with a tab. Ranks and processes have a file each.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from app.importing.errors import ImportingError

_HEAD = re.compile(r"^[VDIWEC]\d{4} \d\d:\d\d:\d\d\.\d+ \d+ .*?:\d+\] (?P<metadata>\{.*)$")
_FILE_NAME = re.compile(r"^dedicated_log_torch_trace_(?:rank_(?P<rank>\d+)_)?.*\.log$")
_MAX_BYTES = 4 << 30  # a log of more is not read


class Message(NamedTuple):
    """One message: its metadata as torch logged it, and the text that came with it."""

    metadata: dict[str, Any]
    payload: str

    @property
    def artifact(self) -> str:
        """The name of the artifact that the payload is; "" for other messages."""
        found = self.metadata.get("artifact")
        return str(found.get("name", "")) if isinstance(found, dict) else ""

    @property
    def compile_id(self) -> str:
        """Which compilation it is about, as torch prints it: "0/1" is frame 0's second. "" for none."""
        frame, number = self.metadata.get("frame_id"), self.metadata.get("frame_compile_id")
        if frame is None or number is None:
            return ""
        under = self.metadata.get("compiled_autograd_id")
        return f"{f'!{under}/' if under is not None else ''}{frame}/{number}"


@dataclass
class TraceLog:
    """The messages of one process, and how many lines or payloads could not be read."""

    path: Path
    messages: list[Message] = field(default_factory=list)
    damaged: int = 0


def is_trace_log(path: Path) -> bool:
    """Whether a file is such a log by its name or by its first line."""
    if _FILE_NAME.match(path.name):
        return True
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return _HEAD.match(file.readline(10_000)) is not None
    except OSError:
        return False


def rank_of(path: Path) -> int | None:
    """The rank in a log's name; None for a process without one."""
    match = _FILE_NAME.match(path.name)
    return int(match["rank"]) if match and match["rank"] else None


def read_trace_log(path: Path) -> TraceLog:
    """Every whole message of the file. A message that was cut short or changed is counted and left out.

    Raises:
        ImportingError: the file cannot be read at all.
    """
    log = TraceLog(path)
    try:
        if path.stat().st_size > _MAX_BYTES:
            raise ImportingError(f"{path.name} is larger than 4 GiB.", "Compile less of the program at once.")
        with open(path, encoding="utf-8", errors="replace", newline="\n") as file:
            for head, body in _records(file):
                message = _message(head, body)
                if message is None:
                    log.damaged += 1
                else:
                    log.messages.append(message)
    except OSError as error:
        raise ImportingError(f"{path} cannot be read: {error.strerror}.", "Check its permissions.") from error
    return log


def _records(lines: Iterator[str]) -> Iterator[tuple[str, list[str]]]:
    """A head line with the payload's lines that follow it."""
    head: str | None = None
    body: list[str] = []
    for line in lines:
        line = line.removesuffix("\n")
        if line.startswith("\t"):
            body.append(line[1:])
            continue
        if head is not None:
            yield head, body
        head, body = line, []
    if head is not None:
        yield head, body


def _message(head: str, body: list[str]) -> Message | None:
    match = _HEAD.match(head)
    if match is None:
        return None
    try:
        metadata = json.loads(match["metadata"])
    except (ValueError, RecursionError):
        return None
    if not isinstance(metadata, dict) or not _is_plain(metadata):
        return None
    payload = "\n".join(body)
    expected = metadata.get("has_payload")
    if isinstance(expected, str) and hashlib.md5(payload.encode(), usedforsecurity=False).hexdigest() != expected:
        return None
    return Message(metadata, payload)


def _is_plain(metadata: dict[str, Any]) -> bool:
    """Whether a session can hold it: numbers of 64 bits, characters that are whole."""
    try:
        msgspec.msgpack.encode(metadata)
    except (OverflowError, UnicodeEncodeError, RecursionError):
        return False
    return True
