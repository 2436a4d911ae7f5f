"""What a layout is: arrays of rectangles and edge pieces, and their encoding for the session."""

from __future__ import annotations

import io
import json
from dataclasses import dataclass
from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float32]
IntArray = NDArray[np.int32]
ByteArray = NDArray[np.uint8]

_FORMAT = 1
_ARRAYS = (
    "node_rect", "node_style", "node_group", "group_rect", "pieces",
    "edges", "edge_start", "edge_pieces", "edge_cut", "stub_rect", "stub_owner", "stub_peer",
)  # fmt: skip


class NodeStyle(IntEnum):
    """How a node is drawn."""

    OP = 0
    PILL = 1  # placeholders and attributes
    EXTERN = 2
    OUTPUT = 3


@dataclass(frozen=True, eq=False)
class GraphLayout:
    """Coordinates of a region's drawing, in pixels at scale 1; x grows rightwards and y downwards.

    Shapes, with n nodes, g groups, p pieces, e edges and s stubs:

    - ``node_rect`` (n, 4) and ``group_rect`` (g, 4), ``stub_rect`` (s, 4): left, top, width, height.
    - ``node_group`` (n,): index of the box that a node is drawn in, -1 where it stands alone.
    - ``pieces`` (p, 4): x0, y0, x1, y1 of one stretch of an edge, going down. Where x0 differs from x1 the stretch
      is an S-curve with vertical ends. Edges of one value share pieces.
    - ``edges`` (e, 2): producer and consumer as node indices. Edge i consists of
      ``edge_pieces[edge_start[i]:edge_start[i + 1]]``. ``edge_cut`` (e,) marks edges that are too long to draw: theirs
      are the pieces of a stub at the consumer, which names the producer, and of a stub below the producer.
    - ``stub_owner`` (s,): the node that a stub belongs to; ``stub_peer`` (s,): the node at the other end of the cut
      edge, -1 where the stub stands for several.
    """

    names: tuple[str, ...]
    group_names: tuple[str, ...]
    stub_labels: tuple[str, ...]
    node_rect: FloatArray
    node_style: ByteArray
    node_group: IntArray
    group_rect: FloatArray
    pieces: FloatArray
    edges: IntArray
    edge_start: IntArray
    edge_pieces: IntArray
    edge_cut: ByteArray
    stub_rect: FloatArray
    stub_owner: IntArray
    stub_peer: IntArray

    @property
    def bounds(self) -> tuple[float, float, float, float]:
        """Left, top, width and height of everything drawn; zeros for an empty region."""
        rects = np.concatenate([self.node_rect, self.group_rect, self.stub_rect])
        if not len(rects):
            return (0.0, 0.0, 0.0, 0.0)
        low = rects[:, :2].min(axis=0)
        high = (rects[:, :2] + rects[:, 2:]).max(axis=0)
        if len(self.pieces):
            across = self.pieces[:, 0::2]
            low[0], high[0] = min(low[0], across.min()), max(high[0], across.max())
        return (float(low[0]), float(low[1]), float(high[0] - low[0]), float(high[1] - low[1]))

    def to_bytes(self) -> bytes:
        """The layout as an uncompressed .npz archive without pickled objects (the session compresses it)."""
        texts = {
            "format": _FORMAT,
            "names": self.names,
            "group_names": self.group_names,
            "stub_labels": self.stub_labels,
        }
        stream = io.BytesIO()
        arrays = {key: getattr(self, key) for key in _ARRAYS}
        np.savez(stream, texts=np.frombuffer(json.dumps(texts).encode(), np.uint8), **arrays)
        return stream.getvalue()

    @classmethod
    def from_bytes(cls, data: bytes) -> GraphLayout:
        """The layout that ``to_bytes`` encoded.

        Raises:
            ValueError: ``data`` is no layout, or one of another format; the caller lays the region out again.
        """
        try:
            with np.load(io.BytesIO(data), allow_pickle=False) as archive:
                texts = json.loads(archive["texts"].tobytes())
                arrays = {key: archive[key] for key in _ARRAYS}
        except Exception as error:  # zip, header and key errors have no common base class
            raise ValueError(f"This is no stored layout: {error}") from error
        if texts.get("format") != _FORMAT:
            raise ValueError(f"The stored layout has format {texts.get('format')}; this version reads {_FORMAT}.")
        return cls(
            names=tuple(texts["names"]),
            group_names=tuple(texts["group_names"]),
            stub_labels=tuple(texts["stub_labels"]),
            **arrays,
        )
