"""Division of layouts: the layout C with whole = divisor * C, or whole = C * divisor, if there is one.

The product is block diagonal, dimension by dimension (Zhou et al., Linear Layouts, arXiv 2505.23819v5, definition 4.4):
in each dimension the divisor has the low bits, or the high ones, and nothing else may touch them.
"""

from __future__ import annotations

from collections.abc import Mapping

from .dims import Dims, starts_of
from .map import LinearMap


def quotient_of(whole: LinearMap, divisor: LinearMap, *, left: bool) -> tuple[Dims, Dims, list[int]] | None:
    """Input dimensions, output dimensions and columns of the quotient, or None where the divisor does not divide."""
    small_ins, small_outs = dict(divisor._ins), dict(divisor._outs)
    mine_in, mine_out = dict(whole._ins), dict(whole._outs)
    if any(log > mine_in.get(n, -1) for n, log in divisor._ins):
        return None
    if any(log > mine_out.get(n, -1) for n, log in divisor._outs):
        return None
    quotient_logs = {n: log - small_outs.get(n, 0) for n, log in whole._outs}  # bits of the quotient in each output
    columns, at = [], 0
    for name, log in whole._ins:
        count = small_ins.get(name, 0)
        bases = whole._columns[at : at + log]
        at += log
        cut, rest = (bases[:count], bases[count:]) if left else (bases[log - count :], bases[: log - count])
        theirs = divisor.in_columns(name) if count else ()
        for column, wanted in zip(cut, theirs, strict=True):
            if _split(whole._outs, column, quotient_logs, left) != (_spread(whole._outs, divisor, wanted), 0):
                return None
        for column in rest:
            tile, outside = _split(whole._outs, column, quotient_logs, left)
            if tile:
                return None
            columns.append(outside)
    return tuple((n, log - small_ins.get(n, 0)) for n, log in whole._ins), tuple(quotient_logs.items()), columns


def _split(outs: Dims, column: int, quotient_logs: Mapping[str, int], left: bool) -> tuple[int, int]:
    """A column's coordinates within the divisor and within the quotient, each flattened in the whole's order."""
    tile = outside = tile_at = outside_at = 0
    for name, log in outs:
        value = column & (1 << log) - 1
        column >>= log
        mine = quotient_logs[name]
        inner = log - mine if left else mine
        low, high = value & (1 << inner) - 1, value >> inner
        a, b = (low, high) if left else (high, low)
        tile |= a << tile_at
        outside |= b << outside_at
        tile_at += log - mine
        outside_at += mine
    return tile, outside


def _spread(outs: Dims, divisor: LinearMap, column: int) -> int:
    """A column of the divisor, flattened in the whole's order of dimensions."""
    theirs = dict(divisor._outs)
    starts = starts_of([(name, theirs[name]) for name, _ in outs if name in theirs])
    coordinates = divisor._unflatten_out(column)
    return sum(int(value) << starts[name] for name, value in coordinates.items())
