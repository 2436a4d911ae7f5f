"""The call that nearly every iteration makes: the same graph, on inputs where they were or where it can follow them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

from compiler.runtime.captured import CapturedGraph
from compiler.runtime.pool import GraphPool

# Takes a region's inputs; None where the call has to be looked at more closely, of which nothing has happened yet.
FastReplay = Callable[[Sequence[Any]], list[Any] | None]


def no_replay(inputs: Sequence[Any]) -> None:
    """Of a region without a graph."""


class Replaying(Protocol):
    """What is asked first to serve a call; ``fast`` is another one when another graph has been used."""

    fast: FastReplay


class Nothing:
    """In place of a region of which no graph serves a whole call."""

    fast: FastReplay = staticmethod(no_replay)


def fast_replay(graph: CapturedGraph, pool: GraphPool, mutated: frozenset[int]) -> FastReplay:
    """Replays ``graph`` where it can follow inputs that have moved and nobody holds what it would overwrite.

    It may be called when the region has gone on to other graphs: what it asks is asked of the graph and its pool.
    ``mutated`` are the inputs that the region writes to.
    """
    copied = bool(graph.copied)
    if copied and mutated:  # which of them share memory has to be looked at in each call
        return no_replay
    recorder, handed_out, lock = pool.recorder, pool.handed_out, pool.lock
    is_capturing, same_addresses, raw_stream = recorder.is_capturing, recorder.same_addresses, recorder.raw_stream
    number, device, outputs = graph.number, graph.device.index, graph.outputs
    addresses, direct, varying = graph.addresses, graph.direct, graph.varying
    replay, results, count, own_count = graph.recorded.replay, outputs.results, outputs.count, outputs.own_count

    def call(inputs: Sequence[Any]) -> list[Any] | None:
        stream = raw_stream(device)
        # The driver captures no default stream, whose handle is 0, so there it need not be asked.
        if (stream and is_capturing()) or (varying and not graph.same_layout(inputs)):
            return None
        with lock:
            moved = not same_addresses(inputs, addresses, direct)
            if moved and not graph.takes(inputs, same_addresses):
                return None
            if number < pool.newest and pool.held_by(number):
                return None
            if number not in handed_out:
                pool.hand_out(number, outputs)
            elif count() != own_count:
                return None
            if moved and not graph.follow(inputs):
                return None
            if stream != pool.stream_handle:
                pool.follow(graph.device)
            if copied:
                graph.run(inputs, mutated, stream)
            else:
                replay(stream)
            graph.replays += 1
            graph.held = 0
            fresh = outputs.fresh
            return results(inputs) if fresh is None else [tensor.data for tensor in fresh]

    return call
