"""Give each block of a cluster a whole tile for operations that work within a block.

    block 0    rows 0 to 31            block 0    rows 0 to 63
    block 1    rows 32 to 63    ->     block 1    rows 0 to 63

A scan along the rows, a gather, a histogram: each block is given all that it needs, and does the same as the others.
"""

from __future__ import annotations

from weft.layouts import LinearLayout, f2


def as_in_memory(layout: LinearLayout, memory: LinearLayout) -> LinearLayout:
    """The layout whose blocks hold what is in their shared memory, lanes and warps as before as far as that goes.

    >>> rows = LinearLayout.from_bases({"register": [], "lane": [(1,)], "warp": [], "block": [(2,)]}, {"dim0": 4})
    >>> as_in_memory(rows, LinearLayout.from_bases({"offset": [(1,), (2,)], "block": [(0,)]}, {"dim0": 4})).bases
    {'register': ((2,),), 'lane': ((1,),), 'warp': (), 'block': ((0,),)}
    """
    whole = f2.Echelon(memory.in_columns("offset"))
    blocks = [0] * layout.in_log("block")
    if memory.has_in("block"):
        blocks[: memory.in_log("block")] = memory.in_columns("block")
    if all(x ^ y in whole for x, y in zip(layout.in_columns("block"), blocks, strict=True)):
        held = [x for d in ("register", "lane", "warp") for x in layout.in_columns(d)]
        if f2.rank([*held, *memory.in_columns("offset")]) == f2.rank(held) == f2.rank(memory.in_columns("offset")):
            return layout
    rows = f2.Echelon()
    columns = {d: [x if x in whole and rows.add(x) else 0 for x in layout.in_columns(d)] for d in ("warp", "lane")}
    wanted = (*layout.in_columns("register"), *memory.in_columns("offset"))
    registers = [x for x in wanted if x in whole and rows.add(x)]
    parts = {"register": registers, "lane": columns["lane"], "warp": columns["warp"], "block": blocks}
    bases = {d: [layout._coordinates(x) for x in held] for d, held in parts.items()}
    return LinearLayout.from_bases(bases, layout.out_dims, require_surjective=False)


def in_each_block(layout: LinearLayout, axis: int | None = None) -> LinearLayout:
    """The layout in which each block holds what the cluster held: along an axis, or everything; in more registers.

    >>> rows = LinearLayout.from_bases({"register": [(1,)], "lane": [], "warp": [], "block": [(2,)]}, {"dim0": 4})
    >>> in_each_block(rows).bases["register"], in_each_block(rows).bases["block"]
    (((1,), (2,)), ((0,),))
    """
    bases = {dim: list(columns) for dim, columns in layout.bases.items()}
    moved = [any(b) if axis is None else bool(b[axis]) for b in bases.get("block", [])]
    if not any(moved):
        return layout
    nowhere = (0,) * len(layout.out_dims)
    bases["register"] += [b for b, away in zip(bases["block"], moved, strict=True) if away]
    bases["block"] = [nowhere if away else b for b, away in zip(bases["block"], moved, strict=True)]
    return LinearLayout.from_bases(bases, layout.out_dims, require_surjective=False)


def without_blocks(layout: LinearLayout) -> LinearLayout:
    """The layout of one block alone, of a layout in which all blocks hold the same."""
    return layout.sublayout(["register", "lane", "warp"], layout.out_dims)
