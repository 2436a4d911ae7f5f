"""A region's steps on several streams, which a capture turns into branches of the graph."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, Protocol

import torch

from compiler.planning.lanes import Lanes
from compiler.runtime.executable import Call
from compiler.runtime.observe import Mark, Observer


class Streams(Protocol):
    """Streams of one kind of device, and events between them."""

    def current(self) -> Any:
        """The caller's stream."""

    def side(self, count: int) -> Sequence[Any]:
        """``count`` further streams."""

    def use(self, stream: Any) -> None:
        """Submit what follows to the stream."""

    def record(self, stream: Any) -> Any:
        """An event after what the stream has been given so far."""

    def wait(self, stream: Any, event: Any) -> None:
        """Let what the stream is given from now on wait for the event."""


class CudaStreams:
    """Of one CUDA device."""

    def __init__(self, device: torch.device) -> None:
        self._device = device

    def current(self) -> torch.cuda.Stream:
        return torch.cuda.current_stream(self._device)

    def side(self, count: int) -> Sequence[torch.cuda.Stream]:
        return _side_streams(self._device.index, count)

    def use(self, stream: torch.cuda.Stream) -> None:
        torch.cuda.set_stream(stream)

    def record(self, stream: torch.cuda.Stream) -> torch.cuda.Event:
        event = torch.cuda.Event()
        event.record(stream)
        return event

    def wait(self, stream: torch.cuda.Stream, event: torch.cuda.Event) -> None:
        stream.wait_event(event)


@functools.cache
def _side_streams(device: int, count: int) -> tuple[torch.cuda.Stream, ...]:
    return tuple(torch.cuda.Stream(device) for _ in range(count))


class ForkedCall:
    """``call(args)`` of a wrapper that tells where its steps begin and frees nothing before it returns.

    Every stream but the first begins after what the caller's stream has been given, and the caller's stream goes on
    after all of them: memory that the call made is free for others only then.
    """

    def __init__(
        self,
        make_call: Callable[[Mark], Call],
        steps: Sequence[str],
        lanes: Lanes,
        streams: Streams,
        observer: Observer | None = None,
    ) -> None:
        """``steps`` are the names by which the wrapper calls its steps, in order."""
        self._call = make_call(self._mark)
        self._position = {name: position for position, name in enumerate(steps)}
        self._lanes = lanes
        self._streams = streams
        self._observer = observer or Observer()
        self._waited_for = {earlier for waits in lanes.waits for earlier in waits}
        self._used: list[Any] = []
        self._begun: set[int] = set()
        self._events: dict[int, Any] = {}
        self._start: Any = None
        self._latest: int | None = None

    def __call__(self, args: list[Any]) -> Any:
        """Run once and empty ``args``."""
        streams = self._streams
        main = streams.current()
        self._used = [main, *streams.side(self._lanes.count - 1)]
        self._begun, self._events, self._latest = {0}, {}, None
        self._start = streams.record(main)
        try:
            return self._call(args)
        finally:
            for lane in sorted(self._begun - {0}):
                streams.wait(main, streams.record(self._used[lane]))
            streams.use(main)

    def _mark(self, region: str, unit: str) -> None:
        if self._observer.mark is not None:
            self._observer.mark(region, unit)
        streams = self._streams
        if self._latest in self._waited_for:
            assert self._latest is not None
            self._events[self._latest] = streams.record(self._used[self._lanes.lane[self._latest]])
        self._latest = self._position.get(unit)
        if self._latest is None:
            return
        lane = self._lanes.lane[self._latest]
        stream = self._used[lane]
        if lane not in self._begun:
            self._begun.add(lane)
            streams.wait(stream, self._start)
        for earlier in self._lanes.waits[self._latest]:
            streams.wait(stream, self._events[earlier])
        streams.use(stream)
