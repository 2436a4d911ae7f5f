"""How the iteration space of one loop maps onto that of another, found from an access that both make to one buffer."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import TYPE_CHECKING

import sympy

from compiler.index import Expr, LoopVar, bounds, coefficients, contiguous_strides, floor_div, mod
from compiler.sizes import Size, as_size, divide, hint

if TYPE_CHECKING:
    from compiler.fusion import FusionGroup

Mapping = dict[LoopVar, Expr]



def match_dims(host: Sequence[tuple[Size, LoopVar]], guest: Sequence[tuple[Size, LoopVar]]) -> Mapping | None:
    """Map the guest's variables to the host's so that both walk the same addresses.

    ``host`` and ``guest`` list (stride, variable) of one access each, strides non-zero. Both are peeled from the
    smallest stride up; where extents differ the larger variable is split. None where the addresses differ.
    """
    hosts = [(s, v.extent, v) for s, v in sorted(host, key=lambda p: hint(p[0]))]
    guests = [(s, v.extent, v) for s, v in sorted(guest, key=lambda p: hint(p[0]))]
    parts: dict[LoopVar, list[Expr]] = defaultdict(list)
    scale: dict[LoopVar, Size] = defaultdict(lambda: 1)
    h = g = 0
    host_rest: tuple[Size, Size, Expr] | None = None
    guest_rest: tuple[Size, Size, LoopVar] | None = None
    while True:
        if host_rest is None and h < len(hosts):
            host_rest, h = hosts[h], h + 1
        if guest_rest is None and g < len(guests):
            guest_rest, g = guests[g], g + 1
        if host_rest is None or guest_rest is None:
            break
        (hs, he, hx), (gs, ge, gv) = host_rest, guest_rest
        if hs != gs:
            return None
        common = he if divide(ge, he) is not None else ge
        host_more, guest_more = divide(he, common), divide(ge, common)
        if host_more is None or guest_more is None:
            return None
        parts[gv].append(sympy.expand((hx if he == common else mod(hx, common)) * scale[gv]))
        scale[gv] = as_size(scale[gv] * common)
        stride = as_size(hs * common)
        host_rest = (stride, host_more, floor_div(hx, common)) if host_more != 1 else None
        guest_rest = (stride, guest_more, gv) if guest_more != 1 else None
    if host_rest is not None or guest_rest is not None:
        return None
    return {var: sympy.Add(*terms) for var, terms in parts.items()}


def _match_access(
    host_index: Expr, host_vars: Sequence[LoopVar], guest_index: Expr, guest_vars: Sequence[LoopVar]
) -> Mapping | None:
    """Map guest variables to host variables so that ``guest_index`` becomes ``host_index``.

    Variables that the access does not depend on (broadcast) are paired in their order.
    """
    host = coefficients(host_index, host_vars)
    guest = coefficients(guest_index, guest_vars)
    if host is None or guest is None or host[1] != guest[1]:
        return None
    if any(bounds(sympy.sympify(c))[0] < 0 for c in (*host[0].values(), *guest[0].values())):
        return None
    used = match_dims([(c, v) for v, c in host[0].items()], [(c, v) for v, c in guest[0].items()])
    free_host = [v for v in host_vars if v not in host[0]]
    free_guest = [v for v in guest_vars if v not in guest[0]]
    free = match_dims(_row_major(free_host), _row_major(free_guest))
    return None if used is None or free is None else {**used, **free}


def _row_major(variables: Sequence[LoopVar]) -> list[tuple[Size, LoopVar]]:
    return list(zip(contiguous_strides([v.extent for v in variables]), variables, strict=True))


def match_levels(host: FusionGroup, guest: FusionGroup, host_index: Expr, guest_index: Expr) -> Mapping | None:
    """Match one shared access under the level at which the guest joins the host."""
    if guest.rvars:
        hx, gx = _restrict(host_index, host.rvars), _restrict(guest_index, guest.rvars)
        hr, gr = _restrict(host_index, host.xvars), _restrict(guest_index, guest.xvars)
        rows = _match_access(hx, host.xvars, gx, guest.xvars)
        columns = _match_access(hr, host.rvars, gr, guest.rvars)
        return None if rows is None or columns is None else {**rows, **columns}
    if guest.xnumel == host.xnumel * host.rnumel:
        return _match_access(host_index, (*host.xvars, *host.rvars), guest_index, guest.xvars)
    if any(v in host_index.free_symbols for v in host.rvars):
        return None
    return _match_access(host_index, host.xvars, guest_index, guest.xvars)


def _restrict(index: Expr, dropped: Sequence[LoopVar]) -> Expr:
    return index.subs(dict.fromkeys(dropped, 0)) if dropped else index
