"""One captured graph with the inputs that it was captured for: whether it can serve others, and how they reach it."""

from __future__ import annotations

import time
from collections.abc import Collection, Sequence
from typing import Any

import torch
from torch import Tensor

from compiler.report import InputRoute
from compiler.runtime.addresses import SameAddresses
from compiler.runtime.buffering import WHY_COPIED, Buffering, InputUse
from compiler.runtime.outputs import OutputPlan
from compiler.runtime.pool import Recorded
from compiler.runtime.signature import CopyPlan, describe

_NOWHERE = 1  # an address that no tensor has
ALIGNMENT = 16  # bytes that generated kernels assume of every pointer


class CapturedGraph:
    """A graph and how it gets its inputs.

    Attributes:
        number: its place in the order of captures.
        copied: positions of the inputs that are copied into buffers at every call.
        direct: positions of the tensors that it reads where they are, which is at ``addresses``.
        movable: inputs whose address in it can be replaced.
        varying: positions whose layout or number may differ from call to call, with what they were at the capture.
        replays: how often it ran.
        held: calls in a row that found the outputs of the last ones held.
        collected: whether garbage was collected because a call found them held.
        patched: input -> microseconds that its last patch took.
    """

    def __init__(
        self,
        number: int,
        inputs: Sequence[Any],
        copied: dict[int, Tensor],
        recorded: Recorded,
        outputs: OutputPlan,
        movable: dict[int, Any],
        static: frozenset[int],
        varying: Collection[int],
        buffering: Buffering,
        device: torch.device,
    ) -> None:
        self.number = number
        self.recorded = recorded
        self.outputs = outputs
        self.device = device
        self.buffering = buffering
        self.copies = CopyPlan(copied)
        self.copied = frozenset(copied)
        self.movable = movable
        self.replays = 0
        self.held = 0
        self.collected = False
        self.patched: dict[int, float] = {}
        tensors = [index for index, value in enumerate(inputs) if isinstance(value, Tensor)]
        read = [index for index in tensors if index not in self.copied]
        self.addresses: list[int] = [value.data_ptr() if isinstance(value, Tensor) else 0 for value in inputs]
        self.varying = [(index, describe(inputs[index])) for index in sorted(varying)]
        self._static = [index for index in read if index in static]
        self._moving = [index for index in read if index not in static]
        self.direct = [*self._moving, *self._static]  # what has moved is found before hundreds of parameters are asked

    def same_layout(self, inputs: Sequence[Any]) -> bool:
        """Whether the inputs are those it was captured with, but for addresses and contents."""
        for index, known in self.varying:  # noqa: SIM110 - asked at every call, and a generator would take longer
            if describe(inputs[index]) != known:
                return False
        return True

    def takes(self, inputs: Sequence[Any], same_addresses: SameAddresses) -> bool:
        """Whether it can serve inputs of its layout: those it reads in place have not moved, or can be followed."""
        if not same_addresses(inputs, self.addresses, self._static):
            return False
        for index in self._moving:
            address = inputs[index].data_ptr()
            if address != self.addresses[index] and (index not in self.movable or address % ALIGNMENT):
                return False
        return True

    def has_moved(self, index: int, value: Tensor) -> bool:
        """Whether the input is elsewhere than the graph reads it, or is copied for having moved before."""
        return index in self.copied or value.data_ptr() != self.addresses[index]

    def follow(self, inputs: Sequence[Any]) -> bool:
        """Read the inputs, which it ``takes``, where they are now; where the driver refuses False, for good."""
        began = time.perf_counter_ns()
        moved = [index for index in self._moving if inputs[index].data_ptr() != self.addresses[index]]
        if not moved:
            return True
        if not self.recorded.move([(self.movable[index], inputs[index]) for index in moved]):
            for index in moved:  # some nodes may have taken the new address, so it does not read the old one either
                self.addresses[index] = _NOWHERE
            self.movable.clear()
            return False
        cost_us = (time.perf_counter_ns() - began) / 1e3 / len(moved)
        for index in moved:
            self.addresses[index] = inputs[index].data_ptr()
            self.patched[index] = cost_us
        return True

    def run(self, inputs: Sequence[Any], mutated: frozenset[int], stream: int) -> None:
        """Submit it to the current stream, ``stream``; the inputs in ``mutated`` are written to."""
        if self.copied and torch.is_grad_enabled():  # to enter no_grad takes as long as a copy does
            with torch.no_grad():
                self.run(inputs, mutated, stream)
            return
        if self.copied:
            self.copies.copy_from(inputs)
        self.recorded.replay(stream)
        if self.copied and mutated:
            self.copies.copy_back(inputs, mutated)

    def routes(self, static: frozenset[int], uses: Sequence[InputUse]) -> list[InputRoute]:
        """How each input reached the graph at the last calls."""
        routes = []
        for index in range(len(self.addresses)):
            name = uses[index].name if index < len(uses) else f"input {index}"
            if index in self.copied:
                detail = WHY_COPIED[self.buffering]
                routes.append(InputRoute(name, "copied", bytes=self.copies.bytes_of[index], detail=detail))
            elif index not in self.direct:
                routes.append(InputRoute(name, "host", detail="A number, fixed in the graph."))
            elif index in static:
                routes.append(InputRoute(name, "static"))
            elif index in self.patched:
                nodes = len(uses[index].kernels) + len(uses[index].calls)
                routes.append(InputRoute(name, "patched", nodes=nodes, cost_us=self.patched[index]))
            else:
                routes.append(InputRoute(name, "same_address", detail="It has not moved since the capture."))
        return routes
