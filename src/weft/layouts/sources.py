"""The choice among sources: where a layout holds copies, which of them a conversion reads.

All sources of an element are one of them plus the kernel of the layout. The textbook takes the one whose free bits are
zero, and conversions then cross warps that could stay within one. Here the member that is nearest is taken: reduced by
an echelon of the kernel in an order of bits with what matters most highest, a vector loses every bit that it can.
"""

from __future__ import annotations

from collections.abc import Sequence

from weft.base import LayoutError

from . import f2
from .dims import names_of, placed, starts_of
from .map import LinearMap


def nearest(solutions: list[int], inner: LinearMap, outer: LinearMap, prefer: Sequence[str]) -> list[int]:
    """Of each solution plus the kernel of `outer`, the member that stays where its input is as far as it can."""
    names = {n for n, _ in (*inner._ins, *outer._ins)}
    for dim in prefer:
        if dim not in names:
            raise LayoutError(
                f"prefer: neither layout has an input dimension {dim!r}; the outer has {names_of(outer._ins)}"
            )
    if outer.is_injective():
        return solutions
    copies = f2.kernel(outer._columns)
    preferred = [d for d in prefer if outer.has_in(d)]
    order = [*preferred, *(n for n, _ in outer._ins if n not in preferred)]
    starts = starts_of([(name, outer.in_log(name)) for name in reversed(order)])
    ranked = [placed(k, outer._ins, starts) for k in copies]
    rows = f2.Echelon(ranked)
    loose_bits = starts[preferred[-1]] if preferred else outer.total_in_log
    loose = f2.span([k for k, r in zip(copies, ranked, strict=True) if not r >> loose_bits][:6])
    result = []
    for solution, home in zip(solutions, _homes(inner, outer, preferred), strict=True):
        _, used = rows.reduce(placed(solution ^ home, outer._ins, starts))
        near = solution ^ f2.multiply(copies, used)
        result.append(min((near ^ k for k in loose), key=int.bit_count) if len(loose) > 1 else near)
    return result


def _homes(inner: LinearMap, outer: LinearMap, dims: Sequence[str]) -> list[int]:
    """For each input bit the same bit as an input of `outer`, if it is of these dimensions; 0 for others."""
    starts, sizes = starts_of(outer._ins), dict(outer._ins)
    homes: list[int] = []
    for name, log in inner._ins:
        start, size = (starts[name], sizes[name]) if name in sizes and name in dims else (0, 0)
        homes += [1 << start + i if i < size else 0 for i in range(log)]
    return homes
