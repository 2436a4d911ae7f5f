"""Which library call ran which kernels on the GPU, by the ops that launched them, else by their names and order.

A call may run several kernels (a split product multiplies, then adds up), and code of the user's own may run between
two regions. So this is an alignment of two sequences: calls run in their order, each runs consecutive kernels.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from enum import Enum, auto
from functools import lru_cache
from typing import NamedTuple


class Ran(NamedTuple):
    """Something that ran on the GPU. ``op`` launched it ("aten::mm", "" where unknown), in the ``call``-th call."""

    name: str
    op: str = ""
    call: int = -1


class _Kind(Enum):
    """What a kernel does, by its name, or what kernels a call needs, by its op."""

    PRODUCT = auto()
    PRODUCT_SUM = auto()  # adds up what a split product multiplied
    CONVOLUTION = auto()
    ATTENTION = auto()
    GENERATED = auto()
    FILL = auto()
    OTHER = auto()


# the first match counts
_KERNELS = (
    (re.compile(r"^triton_"), _Kind.GENERATED),
    (re.compile(r"^Memset"), _Kind.FILL),
    (re.compile(r"flash|fmha|attention|sdpa", re.I), _Kind.ATTENTION),
    (re.compile(r"^(void )?at::native::(?!.*(conv(?!ert)|gemv))", re.I), _Kind.OTHER),
    (re.compile(r"conv(?!ert)|cudnn|fprop|dgrad|wgrad|winograd|nchw|nhwc|implicit", re.I), _Kind.CONVOLUTION),
    (re.compile(r"split_?k_?reduce|reduce_?split_?k|execute_split_k", re.I), _Kind.PRODUCT_SUM),
    (re.compile(r"gemm|gemv|cutlass|xmma|nvjet|split_?k|cublas|dot_kernel", re.I), _Kind.PRODUCT),
)
_PRODUCTS = {"mm", "addmm", "bmm", "baddbmm", "mv", "addmv", "dot", "bias_addmm", "_int_mm", "_scaled_mm"}
_WRITTEN_OUT = {"_mm_plus_mm": ("mm", "addmm"), "bias_addmm": ("addmm",)}  # Inductor's own, in Python
# The kernels that a call of a kind begins with, and those that it may run after its first.
_BEGINS = {
    _Kind.PRODUCT: {_Kind.PRODUCT},
    _Kind.CONVOLUTION: {_Kind.CONVOLUTION, _Kind.PRODUCT},
    _Kind.ATTENTION: {_Kind.ATTENTION},
    _Kind.OTHER: {_Kind.OTHER},
}
_GOES_ON = {
    _Kind.PRODUCT: {_Kind.PRODUCT_SUM, _Kind.FILL},
    _Kind.CONVOLUTION: {_Kind.PRODUCT_SUM, _Kind.FILL, _Kind.OTHER},
    _Kind.ATTENTION: {_Kind.FILL, _Kind.OTHER},
    _Kind.OTHER: {_Kind.FILL},
}
_FIRST, _MORE, _SECOND_MAIN = 10.0, 1.0, 0.5  # a call that ran nothing is the least likely


def base_name(op: str) -> str:
    """ "mm" of "aten::mm", "aten.mm.default", "torch.ops.aten.mm.out" and "extern_kernels.mm"."""
    if "::" in op:
        return op.partition("::")[2].partition(".")[0]
    parts = op.removeprefix("torch.ops.").split(".")
    return parts[1] if len(parts) > 1 else parts[0]


def ops_of(*names: str) -> frozenset[str]:
    """The ops by which a call may show in a trace, without namespace and overload."""
    ops = {base_name(name) for name in names if name}
    return frozenset(ops.union(*(_WRITTEN_OUT.get(op, ()) for op in ops)))


def align(ran: Sequence[Ran], calls: Sequence[frozenset[str]], inside: bool) -> dict[int, int]:
    """Position in ``ran`` -> position in ``calls`` that ran it; what is not in it no call ran.

    Args:
        calls: each call's possible op names, without namespace and overload.
        inside: nothing but these calls ran here. Elsewhere, a kernel that is no library's and whose op is unknown may
            be of the user's own code: it is left out unless there are as many as calls that could have run one.
    """
    kinds = [_kind_of_call(ops) for ops in calls]
    open_to_all = inside or sum(_may_be_foreign(one) for one in ran) == kinds.count(_Kind.OTHER)
    # Of the best way with the first n calls: score and pairs, where no call runs on ([n]), where the nth does ([n]).
    none: _Way = (0.0, None)
    ended: list[_Way] = [none] * (len(calls) + 1)
    running: list[_Way | None] = [None] * (len(calls) + 1)
    for position, one in enumerate(ran):
        last = ran[position - 1] if position else None
        joins = open_to_all or not _may_be_foreign(one)
        next_ended: list[_Way] = []
        next_running: list[_Way | None] = [None] * (len(calls) + 1)
        before: _Way = none  # the best with fewer calls
        for n, was in enumerate(ended):
            if n and joins:
                gain = _gain_of_first(calls[n - 1], kinds[n - 1], one, last)
                on = running[n]
                more = _gain_of_more(calls[n - 1], kinds[n - 1], one, last) if on is not None else 0.0
                ways = [(before[0] + gain, (position, n - 1, before[1]))] if gain else []
                ways += [(on[0] + more, (position, n - 1, on[1]))] if on is not None and more else []
                next_running[n] = max(ways, key=_score, default=None)
            before = max((before, was, running[n] or none), key=_score)
            next_ended.append(before)
        ended, running = next_ended, next_running
    _, pairs = max((*ended, *(way for way in running if way is not None)), key=_score)
    found = {}
    while pairs is not None:
        position, call, pairs = pairs
        found[position] = call
    return found


_Pairs = tuple[int, int, "_Pairs"] | None
_Way = tuple[float, _Pairs]


def _score(way: _Way) -> float:
    return way[0]


@lru_cache(maxsize=4096)  # an iteration launches few kernels, some of them thousands of times
def _kind_of_kernel(name: str) -> _Kind:
    return next((kind for pattern, kind in _KERNELS if pattern.search(name)), _Kind.OTHER)


def _kind_of_call(ops: frozenset[str]) -> _Kind:
    if ops & _PRODUCTS:
        return _Kind.PRODUCT
    if any("convolution" in op for op in ops):
        return _Kind.CONVOLUTION
    return _Kind.ATTENTION if any("attention" in op for op in ops) else _Kind.OTHER


def _may_be_foreign(one: Ran) -> bool:
    return not one.op and _kind_of_kernel(one.name) is _Kind.OTHER


def _gain_of_first(ops: frozenset[str], kind: _Kind, one: Ran, last: Ran | None) -> float:
    """How well ``one`` is the first kernel of a call; 0 where it cannot be."""
    if one.op:
        fits = base_name(one.op) in ops and (last is None or last.call != one.call)
    else:
        fits = _kind_of_kernel(one.name) in _BEGINS[kind]
    return _FIRST if fits else 0.0


def _gain_of_more(ops: frozenset[str], kind: _Kind, one: Ran, last: Ran | None) -> float:
    """The same for a further kernel of the call that ``last`` is of, which may be of another of its ops."""
    if one.op:
        same = last is not None and last.call == one.call
        return _MORE if same else _SECOND_MAIN if base_name(one.op) in ops else 0.0
    found = _kind_of_kernel(one.name)
    if found in _BEGINS[kind]:
        return _SECOND_MAIN
    return _MORE if found in _GOES_ON[kind] else 0.0
