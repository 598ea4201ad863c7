"""Which values of a program may be computed some registers at a time, and how many at least (in_parts.py).

%x = load global, 64 registers, 8 a vector     8: what an access takes, and an eighth of a tile
%y = extf %x                                   8: as many as of what it is computed from
%a = rename %y, table (0, 2, 4, ...)           4: these are of 8 registers of %y
%b = addf %a, %c                               4
"""

from __future__ import annotations

from weft.ir.lane import Block, LaneOp, Value, is_elementwise

WIDE = 32
"""Registers of a value that is one of a tile."""
PARTS = 8
"""Into how many parts tiles are divided, if accesses are not wider."""
LAZY = ("linear", "rename", "join", "pack", "unpack", "permute", "shuffle")
"""Operations that can be done for some registers, beside those on elements, loads of tiles, and branches without
effects."""


def granules_of(block: Block) -> dict[Value, int]:
    """The values that are made of tiles, and those; of each, how many registers are computed together at least."""
    granules: dict[Value, int] = {}
    _note(block, granules, everything=False)
    return granules


def _note(block: Block, granules: dict[Value, int], *, everything: bool) -> None:
    """With `everything`, of the region of a branch that gives a tile: all of it is written once for each part."""
    for op in block.ops:
        result = op.results[0] if len(op.results) == 1 else None
        is_wide = result is not None and result.count >= WIDE
        is_tile = bool(op.regions) and is_wide and all(map(_is_pure, op.regions))
        for region in op.regions:
            _note(region, granules, everything=everything or is_tile)
        if result is None:
            continue
        if is_tile or (is_wide and op.name == "load" and op.attrs["space"] == "global"):
            granules[result] = granule_of(op, granules)
        elif everything and op.name == "constant":
            granules[result] = 1
        elif is_lazy(op) and (everything or is_wide or any(x in granules for x in op.operands)):
            granules[result] = granule_of(op, granules)


def is_lazy(op: LaneOp) -> bool:
    """Whether an operation can be done for some registers."""
    return op.name in LAZY or is_elementwise(op.name)


def _is_pure(block: Block) -> bool:
    return all(op.name in ("constant", "yield") or is_lazy(op) for op in block.walk())


def granule_of(op: LaneOp, granules: dict[Value, int]) -> int:
    """How many registers of the result of an operation are computed together, at least."""
    count = op.results[0].count
    if op.name in ("linear", "join"):
        return 1
    if op.name == "load":
        part, vector = count // PARTS, int(op.attrs["vector"])
        return part if part and part % vector == 0 and count % part == 0 else vector
    if op.regions:
        sources = [granules.get(region.ops[-1].operands[0], 1) for region in op.regions]
        return max((g for g in sources if count % g == 0), default=1)
    sources = [granules[x] for x in op.operands if x in granules]
    if op.name == "rename":
        most = max(count // PARTS, 1) if count >= WIDE else count
        return _of_table(op.attrs["table"], sources[0] if sources else count, most)
    if op.name == "pack":
        return max(1, max(sources, default=1) * count // op.operands[0].count)
    if op.name == "unpack":
        return max(sources, default=1) * count // op.operands[0].count
    return max((g for g in sources if count % g == 0), default=1)


def _of_table(table: tuple[int, ...], granule: int, most: int) -> int:
    """The most registers of a renamed value, at most so many, that lie within one group of what it renames.

    >>> _of_table((0, 2, 4, 6, 8, 10, 12, 14), 8, 8), _of_table((8, 9, 10, 11), 8, 4)
    (4, 4)
    """
    size = most
    while size > 1:
        runs = (table[i : i + size] for i in range(0, len(table), size))
        if len(table) % size == 0 and all(len({k // granule for k in run}) == 1 for run in runs):
            return size
        size //= 2
    return 1
