"""One result of each block, sent to all blocks of a cluster: how a reduction of a whole tile ends in a cluster.

    when the kernel begins                          where the reduction comes to the blocks' results
      mbarrier.init %m, 1                             barrier.cluster.arrive, wait           (the first one only)
      mbarrier.arrive.expect_tx %m, 4 * blocks        st.async to each block: %slots[rank] = %result, counted at %m
                                                      mbarrier.wait %m
                                                      load shared %slots[0:blocks]

The other way is that each block stores its result, all meet at a barrier of the cluster, and each reads what the others
have. That barrier orders all accesses of memory: it waits until every store to global memory has been acknowledged, and
it empties the L1 cache. A program has one for each reduction and a last one, because no block may end while others read
its memory. An st.async orders only the data that it sends, so a reduction costs one trip to another block. A block that
has received the results of all blocks may end, because nothing more will arrive.

The only barrier left makes sure that the mbarriers exist before any block sends. Blocks arrive at it when they begin
and wait for it when they first send (`arrive_early`), which is after they have loaded their rows.

Done for reductions to a number that each program runs exactly once: an mbarrier serves one phase. Those in loops and
branches, and those with several results for each block, go through `reduce.py`.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.ir import Operation

from weft.analysis import is_cluster_barrier
from weft.ir import int_value, is_tensor, walk
from weft.ir.lane import ELEMENT_BITS, LaneOp, LaneProgram, Value
from weft.layouts import f2
from weft.layouts.plan import plan_reduction

from ..context import Context, elem_of, tile_shape
from .mbarriers import elected

ARRIVE, WAIT = "barrier.cluster.arrive", "barrier.cluster.wait"
ARRIVE_EARLY = "barrier.cluster.made.arrive"
"""An arrival that tells of mbarriers alone."""
SLOTS = 16
"""Bytes of a buffer before its slots: the mbarrier and what aligns them."""
VECTOR_BYTES = 16
MOST = 16
"""Reductions that have a buffer of their own."""
ORDERS = ("ttg.warp_specialize", "ttng.cluster_arrive", "ttng.cluster_wait")
"""Operations beside which there may be no further barrier of the cluster."""


class Exchanges:
    """The buffers of the reductions of a kernel that are done so; made where its program begins."""

    def __init__(self, c: Context, ops: Sequence[Operation]) -> None:
        self.buffers: dict[Operation, Value] = {}
        self.has_met = False
        """Whether it is known that all blocks have made their mbarriers."""
        if any(inner.name in ORDERS for op in ops for inner in walk(op)):
            return
        for op in ops:
            if op.name == "tt.reduce" and len(self.buffers) < MOST and _is_of_all(c, op):
                self.buffers[op] = self._made(c, op)

    @staticmethod
    def _made(c: Context, op: Operation) -> Value:
        blocks = c.program.blocks
        widths = [max(4, ELEMENT_BITS[elem_of(value.type)] // 8) for value in op.results]
        buffer = c.allocate(SLOTS + sum(_room(blocks * width) for width in widths), "reduction")
        acts = elected(c)
        c.build.instruction("mbarrier.init", [buffer, c.number(1), acts])
        c.build.instruction("mbarrier.arrive.expect_tx", [buffer, c.number(blocks * sum(widths)), acts])
        return buffer

    def of(self, c: Context, op: Operation, values: Sequence[Value], ranks: Sequence[int]) -> list[list[Value]] | None:
        """The values of all blocks, in the order in which `ranks`, a basis, spans them; None where it is not done so.

        Each is one register, the same in all threads of a block.
        """
        buffer = self.buffers.get(op)
        if buffer is None:
            return None
        if not self.has_met:
            c.build.instruction(ARRIVE, []).attrs["made_barriers"] = True
            c.build.instruction(WAIT, [])
            self.has_met = True
        blocks = c.program.blocks
        to = c.index("lane", blocks - 1)
        idle = (("lane", c.program.lanes - blocks), ("warp", c.program.warps - 1))
        sends = c.all_of([c.is_zero(c.index(dim, mask)) for dim, mask in idle if mask])
        sends = c.build.constant("i1", 1) if sends is None else sends
        counted, place, places = c.build.remote(buffer, to), SLOTS, []
        for value in values:
            words = _as_words(c, value)
            width = 4 * words.count
            slot = c.build.linear([0], block=[width << i for i in range(blocks.bit_length() - 1)])
            mine = c.plus(buffer, c.number(place), slot)
            vector = f".v{words.count}" if words.count > 1 else ""
            sent = c.build.instruction(f"st.async{vector}.b32", [c.build.remote(mine, to), words, counted, sends])
            sent.attrs["awaited"] = True
            places.append(place)
            place += _room(blocks * width)
        c.build.instruction("mbarrier.wait.parity", [buffer, c.number(0)])
        order = list(f2.span(ranks))
        return [self._read(c, buffer, place, value.elem, order) for value, place in zip(values, places, strict=True)]

    @staticmethod
    def _read(c: Context, buffer: Value, place: int, elem: str, order: Sequence[int]) -> list[Value]:
        words = ELEMENT_BITS[elem] // 32 or 1
        kept = elem if ELEMENT_BITS[elem] >= 32 else "i32"
        vector = min(len(order), VECTOR_BYTES // (4 * words))
        starts = range(place, place + len(order) * 4 * words, vector * 4 * words)
        loaded = c.build.load("shared", c.plus(buffer, c.build.linear(list(starts))), kept, vector)
        return [_of_word(c, c.build.rename(loaded, [rank]), elem) for rank in order]


def arrive_early(program: LaneProgram) -> None:
    """Have blocks arrive at their first barrier as soon as they have made their mbarriers, if no other barrier of the
    cluster comes before they wait. Barriers have not been inserted yet; accesses of other blocks' memory need some."""
    ops = program.body.ops
    at = next((i for i, op in enumerate(ops) if op.attrs.get("isa") == ARRIVE and "made_barriers" in op.attrs), None)
    if at is None:
        return
    first = 1 + max(i for i, op in enumerate(ops[:at]) if op.attrs.get("isa") == "mbarrier.arrive.expect_tx")
    if not any(_meets(op) or _reaches_others(op) for op in ops[first:at]):
        arrival = ops.pop(at)
        arrival.attrs["isa"] = ARRIVE_EARLY
        ops.insert(first, arrival)


def arrive_late(program: LaneProgram) -> None:
    """Undo that if a barrier of the cluster has been inserted there."""
    ops = program.body.ops
    at = next((i for i, op in enumerate(ops) if op.attrs.get("isa") == ARRIVE_EARLY), None)
    if at is None:
        return
    wait = next(i for i, op in enumerate(ops) if op.attrs.get("isa") == WAIT)
    if any(_meets(op) for op in ops[at + 1 : wait]):
        arrival = ops.pop(at)
        arrival.attrs["isa"] = ARRIVE
        ops.insert(wait - 1, arrival)


def _meets(op: LaneOp) -> bool:
    return any(is_cluster_barrier(op, phase) for phase in ("arrive", "wait")) or any(
        _meets(inner) for region in op.regions for inner in region.ops
    )


def _reaches_others(op: LaneOp) -> bool:
    return op.name == "remote" or any(_reaches_others(inner) for region in op.regions for inner in region.ops)


def _is_of_all(c: Context, op: Operation) -> bool:
    """Whether a reduction gives numbers, to which each block of the cluster contributes other elements."""
    if any(is_tensor(x.type) for x in op.results):
        return False
    source, axis = op.operands[0], int_value(op.properties["axis"])
    plan = plan_reduction(c.layout(source), tile_shape(source), axis, 32, c.machine)
    return 1 << len(plan.blocks) == c.program.blocks <= c.program.lanes


def _room(size: int) -> int:
    """Bytes for the slots of one value, so that they are read by vectors."""
    return -(-size // VECTOR_BYTES) * VECTOR_BYTES


def _as_words(c: Context, value: Value) -> Value:
    """A register as one or two words of 32 bits."""
    bits = ELEMENT_BITS[value.elem]
    if bits == 64:
        return c.build.add("unpack", [value], [("i32", 2)]).result
    if value.elem != f"i{bits}":
        value = c.build.op("arith.bitcast", [value], f"i{bits}")
    return value if bits == 32 else c.build.op("arith.extui", [value], "i32")


def _of_word(c: Context, value: Value, elem: str) -> Value:
    """The other way about; a value of 64 bits has been loaded as one."""
    bits = ELEMENT_BITS[elem]
    if bits >= 32:
        return value
    value = c.build.op("arith.trunci", [value], f"i{bits}")
    return value if elem == f"i{bits}" else c.build.op("arith.bitcast", [value], elem)
