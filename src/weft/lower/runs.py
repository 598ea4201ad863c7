"""Compute registers of a thread that are known to be equal only once.

    %m = arith.cmpi slt, %columns, %n : 8 registers        %a = rename %columns {table=(0, 4)}
                                                  becomes  %c = arith.cmpi slt, %a, %n : 2 registers
                                                           %m = rename %c {table=(0, 0, 0, 0, 1, 1, 1, 1)}

Consecutive numbers below a multiple of 4 are so in runs of 4 (`analysis/axis.py`), and a thread of this layout has two
such runs. What a mask selects then takes one predicate for each run, as the accesses under it do (memory.py). A thread
of an NVIDIA GPU has seven: with a predicate for each element ptxas computes some anew where they are used, and lets
loads wait for each other that would else be under way at the same time.

Done for comparisons and quotients, in which runs begin; what is computed of them element by element repeats itself,
which the code generator sees. But for what loops carry (control.py): of 128 counts that begin as 0 and grow by what one
mask in four registers says, no code generator sees that 96 are copies.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import Operation, SSAValue

from weft.ir import is_tensor
from weft.layouts import f2

from .context import Context, elem_of, lowering, tile_shape


def alike(c: Context, tiles: Sequence[SSAValue], registers: Sequence[int]) -> list[int]:
    """For each register of the tiles' layout the first one in which every tile is known to hold the same."""
    layout, within, shift = c.layout(tiles[0]), 0, 0
    constancies = [c.facts.of(tile).constancy for tile in tiles]
    for axis, extent in enumerate(tile_shape(tiles[0])):
        within |= min(extent, *(constancy[axis] for constancy in constancies)) - 1 << shift
        shift += extent.bit_length() - 1
    columns = layout.in_columns("register")
    first: dict[int, int] = {}
    return [first.setdefault(f2.multiply(columns, r) & ~within, r) for r in registers]


def carried_registers(c: Context, value: SSAValue) -> list[int]:
    """For each register of what a loop carries the first one that is known to hold the same.

    Of floats those of the same element: nothing more is known of them, and it would be looked for in vain in each loop.
    """
    count = c.count(value.type)
    if count == 1 or not is_tensor(value.type):
        return list(range(count))
    if elem_of(value.type)[0] == "i":
        return alike(c, [value], range(count))
    columns = c.layout(value).in_columns("register")
    first: dict[int, int] = {}
    return [first.setdefault(f2.multiply(columns, r), r) for r in range(count)]


@lowering("arith.cmpi", "arith.divsi", "arith.divui")
def _in_runs(c: Context, op: Operation) -> None:
    result = op.results[0]
    count = max(c[x].count for x in op.operands)
    if c.elements is not None or not is_tensor(result.type) or count == 1:
        c[result] = c.elementwise(op)
        return
    same = alike(c, [result], range(count))
    kept = list(dict.fromkeys(same))
    place = {register: k for k, register in enumerate(kept)}
    c[result] = c.build.rename(c.elementwise(op, kept), [place[r] for r in same])
