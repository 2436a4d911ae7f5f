"""Decodes a large record piece by piece, so that other threads come in between.

msgspec holds the interpreter's lock for the whole of one call; a report of 10,000 nodes would keep the window from
painting for as long as it takes. Here no call decodes more than one record of a list.
"""

from __future__ import annotations

import typing
from functools import cache
from typing import Any

import msgspec

from compiler.report import CudaGraph, Memory, Region, Report, Trace

_TAKEN_APART = (Report, Region, CudaGraph, Memory, Trace)  # the records that hold long lists
_RAW_FIELDS = dict[str, msgspec.Raw]
_RAW_ITEMS = list[msgspec.Raw]


def decode_report(data: bytes) -> Report:
    """The report in ``data`` (msgpack).

    Raises:
        msgspec.MsgspecError: it is none.
    """
    report = _decode(data, Report)
    assert isinstance(report, Report)
    return report


def _decode(data: bytes | msgspec.Raw, kind: Any) -> Any:
    if kind in _TAKEN_APART:
        parts = _decoder(_RAW_FIELDS).decode(data)
        found = {
            name: _decode(parts[encoded], inner) for name, encoded, inner in _fields(kind) if encoded in parts
        }
        try:
            return kind(**found)
        except TypeError as error:
            raise msgspec.ValidationError(f"{kind.__name__}: {error}") from error
    item = _record_of_list(kind)
    if item is None:
        return _decoder(kind).decode(data)
    decode = _decoder(item).decode if item not in _TAKEN_APART else lambda raw: _decode(raw, item)
    return [decode(raw) for raw in _decoder(_RAW_ITEMS).decode(data)]


@cache
def _fields(kind: Any) -> tuple[tuple[str, str, Any], ...]:
    return tuple((field.name, field.encode_name, field.type) for field in msgspec.structs.fields(kind))


@cache
def _decoder(kind: Any) -> Any:
    return msgspec.msgpack.Decoder(kind)


@cache
def _record_of_list(kind: Any) -> Any:
    """The record that ``kind`` is a list of, or None."""
    if typing.get_origin(kind) is not list:
        return None
    (item,) = typing.get_args(kind)
    return item if isinstance(item, type) and issubclass(item, msgspec.Struct) else None
