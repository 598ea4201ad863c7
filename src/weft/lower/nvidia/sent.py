"""Asynchronous stores to the memory of another block of the cluster, which an mbarrier of that block counts."""

from __future__ import annotations

from xdsl.ir import Operation

from weft.base import LayoutError, Unsupported

from ..context import Context
from ..padding import gaps_of
from ..shared import Side, for_memory, memory_of
from .table import lowering


@lowering("ttng.async_shared_store")
def _async_shared_store(c: Context, op: Operation) -> None:
    """Words of 32 bits, up to four at once, each counted at the mbarrier of the block in whose memory it is to be."""
    source, target, barrier = op.operands
    if c.program.blocks == 1:
        raise Unsupported(
            "an asynchronous store in a kernel of one block each", c.program.target, c.build.span,
            hint="launch it with num_ctas=2 or more, or store what is for the block itself by memory.store(value)",
        )  # fmt: skip
    type, memory, width = memory_of(target)
    value, layout = for_memory(c, c.whole(source), c.layout(source), memory)
    side = Side(c, layout, memory, width, True, gaps_of(type, width), c.offset_of(target), False, c.rank_of(target))
    vector = 1 << side.plan.access.vector
    size = vector * width
    if size < 4:
        raise LayoutError(
            f"an asynchronous store sends words of 4 bytes, and a thread holds {vector} element(s) of {width} bytes "
            "that follow each other in shared memory",
            c.build.span,
            hint=f"a layout whose threads hold {4 // width} elements or more along the memory's fastest dimension",
        )
    words = c.build.rename(value, side.order)
    if words.elem == "i1":
        words = c.build.op("arith.extui", [words], "i8")
    count = len(side.order) * width // 4
    if width != 4:
        words = c.build.add("pack" if width < 4 else "unpack", [words], [("i32", count)]).result
    address = side.address(c, c[target], vector, c.offset_of(target), side.in_home(c, c[target], vector))
    counted = side.in_home(c, c[barrier], vector)
    active = c.all_of([*c.once(layout), *side.first_block(c)])
    active = c.build.constant("i1", 1) if active is None else active
    name = f"st.async{f'.v{size // 4}' if size > 4 else ''}.b32"
    c.build.instruction(name, [address, words, counted, active])
