"""Read tiles from LDS by transposing instructions, if that costs less than reading them in their own order.

    %x = ttg.local_load %b : 64x128xf16, rows of 128 side by side -> a right operand: 8 of a column in each lane
becomes
    %d = instruction %addresses {isa=ds_read_tr16.b64}          four of a column at a time
instead of a load of 2 bytes for each element
"""

from __future__ import annotations

from xdsl.ir import Operation

from weft.layouts.plan import plan_local_access
from weft.targets.amd.transposed import transposed_read

from ..context import LOWERINGS, Context, elem_of
from ..padding import gaps_of, place
from ..shared import memory_of


def lower_local_load(c: Context, op: Operation) -> None:
    """As everywhere, but for operands that are to be transposed."""
    source, result = op.operands[0], op.results[0]
    type, memory, width = memory_of(source)
    gaps, layout, offset, elem = gaps_of(type, width), c.layout(result), c.offset_of(source), elem_of(result.type)
    pairs = tuple((interval // width, padding // width) for interval, padding in gaps)
    read = transposed_read(layout, memory, 8 * width, c.machine, pairs)
    shape = tuple(layout.out_dims.values())
    if read is None or elem == "i1" or offset % read.bytes:
        LOWERINGS["ttg.local_load"](c, op)
        return
    plain = plan_local_access(layout, memory, shape, 8 * width, c.machine, gaps=pairs)
    if plain.cycles <= read.cycles:
        LOWERINGS["ttg.local_load"](c, op)
        return
    starts, lanes, warps = ([x * width for x in part] for part in (read.starts, read.lanes, read.warps))
    address = c.plus(place(c, starts, [lanes, warps, []], gaps, offset), c[source])
    count = len(read.registers)
    loaded = c.build.add("instruction", [address], [(elem, count)], {"isa": read.instruction}).result
    where = {r: i for i, r in enumerate(read.registers)}
    copies = layout.free_variable_masks()["register"]
    c[result] = c.build.rename(loaded, [where[r & ~copies] for r in range(layout.in_dims["register"])])
