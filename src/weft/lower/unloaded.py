"""Compute one number instead of a tile of which a warp has loaded no element.

    %e = exp(%x - %m)                     %some = ballot(mask of %x) != 0
                              becomes     %e = if %some { exp(%x - %m) } else { exp(%other - %m), for all registers }

Of a tile of 32,768 elements a row of 16,385 fills half. Where a mask does not hold, a load gives the same number in all
lanes and registers, and so does all that is computed of it element by element. Only what is dear (an exponential, not a
sum) is worth a branch. Of a rotated row (rows.py) the warps that have its ends compute in any case.
"""

from __future__ import annotations

from collections.abc import Mapping

from weft.base import each_once
from weft.ir.lane import Builder, LaneOp, Value, is_elementwise

from .held import is_cheap


def is_dear(op: LaneOp) -> bool:
    """Whether an operation is worth a branch."""
    return op.name.startswith("math.") and not is_cheap(op)


def tile_of(value: Value, lazy: Mapping[Value, int]) -> Value | None:
    """The one masked tile that something is computed from element by element; None where it is not so."""
    tiles, todo = set[Value](), [value]
    for source in each_once(todo):
        if source not in lazy or source.op is None:
            continue
        if source.op.regions or source.op.name == "load":
            tiles.add(source)
        elif source.count != value.count or not is_elementwise(source.op.name):
            return None
        else:
            todo += source.op.operands
    if len(tiles) != 1:
        return None
    [tile] = tiles
    load = load_of(tile)
    return tile if load is not None and other_of(load) is not None and tile.count == value.count else None


def other_of(load: LaneOp) -> Value | None:
    """The number that a load gives where its mask does not hold; None where it is not the same for all registers."""
    if len(load.operands) < 3:
        return None
    other = load.operands[2]
    while other.op is not None and other.op.name == "rename" and other.count > 1:
        if len(set(other.op.attrs["table"])) > 1 and other.op.operands[0].count > 1:
            return None
        other = other.op.operands[0]
    return other if other.count == 1 else None


def load_of(tile: Value) -> LaneOp | None:
    """The load of a tile, or of a row whose ends some warps put in place: the others have what was loaded."""
    op = tile.op
    if op is not None and op.regions:
        region = op.regions[-1]
        op = region.ops[-1].operands[0].op if len(region.ops) == 1 else None
    return op if op is not None and op.name == "load" and op.attrs["space"] == "global" else None


def between(value: Value, lazy: Mapping[Value, int], wanted: set[Value]) -> list[Value]:
    """What something is computed from and is wanted for something else too."""
    values, todo, seen = list[Value](), [value], {value}
    while todo:
        op = todo.pop().op
        for x in op.operands if op is not None else ():
            if x in lazy and x.count == value.count and x not in seen:
                seen.add(x)
                todo.append(x)
                values += [x] if x in wanted else []
    return values


def of_other(build: Builder, value: Value, replaced: Mapping[Value, Value]) -> Value:
    """One register of something, computed from one of each value that is given."""
    values, todo = dict(replaced), [(value, False)]
    while todo:
        source, has_operands = todo.pop()
        op = source.op
        if source in values or op is None:
            values.setdefault(source, source)
        elif has_operands:
            values[source] = build.add(op.name, [values[x] for x in op.operands], [(source.elem, 1)], op.attrs).result
        else:
            todo += [(source, True), *((x, False) for x in op.operands)]
    return values[value]
