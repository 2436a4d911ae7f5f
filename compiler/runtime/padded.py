"""Few graphs for many sizes of a batch: a call runs at the next larger of some given sizes, on rows added at the end.

Only for graphs of which it is known that each sample is computed from itself alone (``passes/independent_rows.py``).
The added rows hold what earlier calls left there, and what becomes of them is not handed out.
"""

from __future__ import annotations

import bisect
from collections.abc import Sequence
from typing import Any

import msgspec
import torch
from torch import Tensor

from compiler.passes.independent_rows import Batch
from compiler.report import CudaGraph
from compiler.runtime.cuda_graph import GraphedRegion
from compiler.runtime.flags import flags, flipped
from compiler.runtime.outputs import reinterpret
from compiler.runtime.pool import GraphPool
from compiler.runtime.signature import copyable


class PaddedRegion:
    """Calls a graphed region at sizes of ``buckets`` only; beyond the largest at the size that comes.

    Inputs that have rows are copied at every call, into memory that stays for each bucket. What is copied for one call
    lasts until it has been read: calls of several threads and streams follow one another.
    """

    def __init__(self, graphed: GraphedRegion, batch: Batch, buckets: Sequence[int], pool: GraphPool) -> None:
        """``pool`` is the region's."""
        self._graphed = graphed
        self._pool = pool
        self._batch = batch
        self._buckets = [size for size in sorted(set(buckets)) if batch.serves(size)]
        first = min(batch.inputs)
        self._first, self._dim = first, batch.inputs[first].dim
        self._buffers: dict[int, dict[int, Tensor]] = {}  # bucket -> input -> memory of that many samples
        self._latest: tuple[int, int] | None = None

    def __call__(self, inputs: list[Any]) -> list[Any]:
        """Run on ``inputs``; the outputs have as many samples as these."""
        samples = inputs[self._first].shape[self._dim]
        place = bisect.bisect_left(self._buckets, samples)
        # A capture of the caller's would keep the address of memory that other calls write to.
        if place == len(self._buckets) or self._pool.recorder.is_capturing():
            self._latest = None
            return self._graphed(inputs)
        with self._pool.lock:
            self._pool.follow(inputs[self._first].device)
            return self._at_bucket(inputs, samples, self._buckets[place])

    def _at_bucket(self, inputs: list[Any], samples: int, bucket: int) -> list[Any]:
        self._latest = samples, bucket
        padded = self._padded(inputs, samples, bucket)
        results = list(self._graphed(padded))
        if bucket != samples:
            for position, rows in self._batch.outputs.items():
                whole = results[position]
                size = list(whole.shape)
                size[rows.dim] = samples * rows.per_sample
                results[position] = reinterpret(whole, size, whole.stride(), 0)  # no view, for autograd minds those
        return results

    def _padded(self, inputs: list[Any], samples: int, bucket: int) -> list[Any]:
        buffers = self._buffers.get(bucket)
        if buffers is None:
            made = {i: _with_size(inputs[i], rows.dim, bucket) for i, rows in self._batch.inputs.items()}
            buffers = self._buffers[bucket] = made
        padded = list(inputs)
        with torch.no_grad():
            for index, rows in self._batch.inputs.items():
                padded[index] = buffers[index]
                part = buffers[index].narrow(rows.dim, 0, samples)
                copyable(part).copy_(copyable(inputs[index]))
        for index in self._batch.numbers:
            padded[index] = bucket
        return padded

    def facts(self, facts: CudaGraph) -> CudaGraph:
        """The region's facts with what the last call's padding did."""
        if self._latest is None:
            return facts
        samples, bucket = self._latest
        routes = list(facts.routes)
        copied = facts.copied_bytes
        for index in self._batch.inputs:
            buffer = self._buffers[bucket][index]
            taken = buffer.numel() * buffer.element_size() * samples // bucket
            copied += taken
            if index < len(routes):
                detail = f"Copied into memory for {bucket} samples, of which {samples} are the call's."
                routes[index] = msgspec.structs.replace(routes[index], route="copied", bytes=taken, detail=detail)
        return msgspec.structs.replace(facts, routes=routes, copied_bytes=copied)


def _with_size(tensor: Tensor, dim: int, size: int) -> Tensor:
    """Zeros with the tensor's layout but for one size; positions that are read from there are good for any table."""
    shape = list(tensor.shape)
    shape[dim] = size
    with torch.inference_mode(False):
        made = torch.empty_strided(shape, tensor.stride(), dtype=tensor.dtype, device=tensor.device)
        copyable(made).zero_()
        return flipped(made, flags(tensor))
