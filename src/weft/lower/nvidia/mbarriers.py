"""mbarriers, fences for the asynchronous proxy, and barriers of a cluster.

One thread acts for the block, or for the partition: the first lane of its first warp. All lanes wait.
"""

from __future__ import annotations

from xdsl.dialects.builtin import UnitAttr
from xdsl.ir import Operation, SSAValue

from weft.base import CompilationError, Unsupported
from weft.ir import int_value, walk
from weft.ir.lane import Block, LaneOp, Value
from weft.ir.nvidia import ttng
from weft.layouts import f2
from weft.targets.table import has

from ..context import Context
from .table import lowering

INIT_FENCE = "fence.mbarrier_init"
"""Comes after each init. It costs nothing; without it ptxas puts a branch around each init, and a fence before it."""
BETWEEN = ("constant", "shared", "linear", "arith.addi", "arith.muli", "arith.cmpi", "arith.andi", "barrier")
"""What may stand between two inits: where the second barrier is."""


def elected(c: Context, predicate: SSAValue | None = None, warps: int = 1, whichever: bool = False) -> Value:
    """i1: whether a lane is the one that acts, where the predicate holds; one in each of the first `warps` warps.

    It is the first one of its warp, or `whichever` the hardware chooses: one that the assembler knows to be alone.
    """
    masks = {"lane": c.program.lanes - 1, "warp": (c.program.warps - 1) & -warps}
    conditions: list[Value | None] = []
    if whichever:
        conditions.append(c.build.add("elect", (), [("i1", 1)]).result)
        del masks["lane"]
    conditions += [c.is_zero(c.index(dim, mask)) for dim, mask in masks.items() if mask]
    if predicate is not None and not c.is_true(predicate):
        conditions.append(c[predicate])
    condition = c.all_of(conditions)
    return condition if condition is not None else c.build.constant("i1", 1)


def holds(op: Operation, name: str) -> bool:
    """Whether a boolean property is there and true; one without a value is true where it is there."""
    attr = op.properties.get(name, op.attributes.get(name))
    if isinstance(attr, UnitAttr):
        return True
    value = getattr(attr, "value", None)
    return bool(getattr(value, "data", getattr(attr, "data", False)))


def _has(c: Context, name: str) -> bool:
    """Whether the target has an instruction."""
    return has(c.program.machine, name)


def makes_barriers(op: LaneOp) -> bool:
    """Whether an operation is part of making mbarriers."""
    return op.name == "instruction" and op.attrs["isa"] in ("mbarrier.init", INIT_FENCE)


@lowering("ttng.init_barrier")
def _init(c: Context, op: Operation) -> None:
    """The copy engine sees a barrier only after a fence, other warps after a barrier of the block."""
    count = int_value(op.properties["count"])
    if not 1 <= count < 1 << 20:
        raise CompilationError(f"an mbarrier is for 1 to {(1 << 20) - 1} arrivals, got {count}", c.build.span)
    ops = c.build.block.ops
    at = len(ops) - 1
    while at >= 0 and (ops[at].name in BETWEEN or ops[at].attrs.get("made_barriers") or makes_barriers(ops[at])):
        if ops[at].attrs.get("made_barriers"):  # of several in a row, one fence after the last
            del ops[at]
        at -= 1
    c.build.instruction("mbarrier.init", [c[op.operands[0]], c.number(count), elected(c)])
    if _has(c, INIT_FENCE):
        c.build.instruction(INIT_FENCE, [])
    first = len(ops)
    if _has(c, "mbarrier.arrive.expect_tx"):
        kind = "async" if c.program.blocks == 1 else "async.cluster"
        c.build.add("fence", (), (), {"kind": kind, "inserted": True})
    c.build.barrier("block")
    for lane_op in ops[first:]:
        lane_op.attrs["made_barriers"] = True


@lowering("ttng.inval_barrier")
def _inval(c: Context, op: Operation) -> None:
    c.build.instruction("mbarrier.inval", [c[op.operands[0]], elected(c)])


@lowering("ttng.barrier_expect")
def _expect(c: Context, op: Operation) -> None:
    size = int_value(op.properties["size"])
    if not 0 <= size < 1 << 20:
        raise CompilationError(f"an mbarrier counts 0 to {(1 << 20) - 1} bytes, got {size}", c.build.span)
    where, active = c[op.operands[0]], elected(c, op.operands[1])
    name = "mbarrier.arrive.expect_tx"
    if _to_others(c, op, name, where, c.number(size), active):
        return
    c.build.instruction(name, [where, c.number(size), active])


def _to_others(c: Context, op: Operation, name: str, where: Value, amount: Value, active: Value) -> bool:
    """Whether an arrival is routed to mbarriers of other blocks too, which is done then.

    The mbarrier of block r is told by block r & mask: a block whose other bits are 0 tells all that differ in those.
    """
    blocks = op.properties.get("fromCTA")
    if blocks is None or c.program.blocks == 1:
        return False
    others = (c.program.blocks - 1) & ~int_value(blocks)
    tells = c.build.op("arith.andi", [active, c.is_zero(c.index("block", others))], "i1")
    this_rank = c.index("block", c.program.blocks - 1)
    for more in f2.span([1 << i for i in f2.bits(others)]):
        rank = c.build.op("arith.ori", [this_rank, c.number(more)], "i32") if more else this_rank
        c.build.instruction(f"{name}.remote", [c.build.remote(where, rank), amount, tells])
    return True


def _has_routed_arrivals(op: Operation) -> bool:
    """Whether blocks of the cluster arrive at each other's mbarriers anywhere in the kernel."""
    top = op
    while (parent := top.parent_op()) is not None:
        top = parent
    return any("fromCTA" in x.properties for x in walk(top))


@lowering("ttng.arrive_barrier")
def _arrive(c: Context, op: Operation) -> None:
    predicate = op.operands[1] if len(op.operands) > 1 else None
    count = int_value(op.properties["count"])
    if ttng.EACH_WARP in op.attributes:
        active = elected(c, predicate, c.program.warps)
        where = c[op.operands[0]]
        c.build.instruction("mbarrier.arrive.each", [where, active])
        if ttng.EVERY_BLOCK in op.attributes and c.program.blocks > 1:
            this_rank = c.index("block", c.program.blocks - 1)
            for more in range(1, c.program.blocks):
                rank = c.build.op("arith.xori", [this_rank, c.number(more)], "i32")
                told = c.build.instruction("mbarrier.arrive.each.remote", [c.build.remote(where, rank), active])
                told.attrs["awaited"] = True
        return
    where, active = c[op.operands[0]], elected(c, predicate)
    if _to_others(c, op, "mbarrier.arrive", where, c.number(count), active):
        return
    if _has(c, "mbarrier.arrive"):
        c.build.instruction("mbarrier.arrive", [where, c.number(count), active])
        return
    for _ in range(count):
        c.build.instruction("mbarrier.arrive.once", [where, active])


@lowering("ttng.wait_barrier")
def _wait(c: Context, op: Operation) -> None:
    barrier, phase, *rest = op.operands
    segments = op.properties.get("operandSegmentSizes")
    counts = [int(x) for x in segments.get_values()] if segments is not None else [1, 1, min(1, len(rest)), 0]  # type: ignore[attr-defined]
    predicate = rest[0] if counts[2] else None
    where, parity = c[barrier], c[phase]
    wait = "mbarrier.wait.parity"
    if not _has(c, wait):
        wait += ".awake"
    elif c.program.blocks > 1 and _has_routed_arrivals(op):
        wait += ".cluster"
    if predicate is None or c.is_true(predicate):
        c.build.instruction(wait, [where, parity])
        return
    condition = c[predicate]
    with c.inside(Block()) as waiting:
        c.build.instruction(wait, [where, parity])
        c.build.add("yield")
    with c.inside(Block()) as otherwise:
        c.build.add("yield")
    c.build.add("if", [condition], (), {}, [waiting, otherwise])


@lowering("ttng.async_copy_mbarrier_arrive")
def _copies_arrive(c: Context, op: Operation) -> None:
    suffix = ".noinc" if holds(op, "noIncrement") else ""
    c.build.instruction(f"mbarrier.copies.arrive{suffix}", [c[op.operands[0]]])


@lowering("ttng.fence_async_shared")
def _fence(c: Context, op: Operation) -> None:
    c.build.add("fence", (), (), {"kind": "async.cluster" if holds(op, "bCluster") else "async"})


@lowering("ttng.cluster_arrive", "ttng.cluster_wait")
def _cluster(c: Context, op: Operation) -> None:
    """The hardware's barrier is for all warps; that of a partition is made of an mbarrier, arrival and wait in one."""
    if c.build.partition is not None and c.program.blocks > 1:
        arrives, other = op.name.endswith("arrive"), op.next_op if op.name.endswith("arrive") else op.prev_op
        if other is None or other.name != ("ttng.cluster_wait" if arrives else "ttng.cluster_arrive"):
            raise Unsupported(
                "an arrival at a barrier of the cluster, in a kernel of partitions, that is not waited for at once",
                c.program.target,
                c.build.span,
                hint="cluster.barrier() arrives and waits",
            )
        if not arrives:
            c.build.barrier("cluster", inserted=False)
        return
    c.build.instruction(f"barrier.cluster.{op.name.rpartition('_')[2]}", [])
