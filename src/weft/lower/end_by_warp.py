"""Let only one warp compute the end of a program if that ends in a number that one thread stores.

    %total = ... the sum of all warps                 %total = ...
    %log = math.log %total                            if %stores holds in any lane of this warp {
    %loss = arith.addf %most, %log          becomes     %log = math.log %total
    store global %loss, where %stores                   %loss = arith.addf %most, %log
                                                        store global %loss, where %stores
                                                      }

Every thread has the sum, so every warp would compute the loss. A logarithm is 30 instructions of 180 in the cross
entropy of a row of 1,024 by four warps, whose time is that of its instructions.

This is done for the operations after the last barrier, exchange and access to global memory of a program of several
warps, if they cost as much as a function: the branch takes three instructions.
"""

from __future__ import annotations

from collections.abc import Hashable

from weft.ir.lane import Block, Builder, LaneOp, LaneProgram, Value, is_elementwise
from weft.ops.table import ROWS

from .depth_first import MOVABLE

LEAST = 16
"""The cost of what is computed, in additions, from which on this is done."""


def end_by_warp(program: LaneProgram) -> None:
    """Put the end of a program into a branch of the warps that store."""
    ops = program.body.ops
    end = len(ops) - bool(ops and ops[-1].name in ("return", "yield"))
    start = end
    while start and (_is_pure(ops[start - 1]) or _stores_number(ops[start - 1])):
        start -= 1
    stores = [op for op in ops[start:end] if op.name == "store"]
    if program.warps < 2 or not stores or len({_key(op.operands[2]) for op in stores}) > 1:
        return
    mask = stores[0].operands[2]
    taken = set(stores)
    uses = program.body.uses()
    needed = {mask}  # what the branch itself is decided by stays before it
    for op in reversed(ops[start:end]):
        if needed & set(op.results):
            needed |= set(op.operands)
        elif op not in taken and all(user in taken for x in op.results for user in uses.get(x, ())):
            taken.add(op)
    if sum(_cost(op) for op in taken) < LEAST:
        return
    build = Builder(Block())
    build.span = stores[0].span
    condition = build.holds_somewhere(mask, program.lanes)
    build.add("if", [condition], (), {"of_warp": True}, [Block(), Block()])
    inside, otherwise = build.block.ops[-1].regions
    inside.ops[:] = [op for op in ops[start:end] if op in taken]
    for region in (inside, otherwise):
        Builder(region).add("yield")
    hidden = {x for op in taken for x in op.results}
    program.variables[:] = [v for v in program.variables if v.value not in hidden]
    ops[start:end] = [*(op for op in ops[start:end] if op not in taken), *build.block.ops]


def _is_pure(op: LaneOp) -> bool:
    if op.name == "load":
        return op.attrs["space"] == "shared" and not op.attrs.get("volatile")
    return not op.regions and (op.name in MOVABLE or is_elementwise(op.name))


def _stores_number(op: LaneOp) -> bool:
    """Whether an operation stores single registers to global memory in some threads."""
    is_store = op.name == "store" and op.attrs["space"] == "global" and len(op.operands) == 3
    return is_store and all(x.count == 1 for x in op.operands)


def _cost(op: LaneOp) -> int:
    row = ROWS.get(op.name)
    return row.cost * max(x.count for x in op.results) if row is not None and op.results else 0


def _key(value: Value) -> Hashable:
    """What two values have in common that are computed in the same way."""
    op = value.op
    if op is None or op.name not in ("linear", "constant", "arith.cmpi", "arith.andi"):
        return value
    return op.name, tuple(sorted((k, str(v)) for k, v in op.attrs.items())), tuple(_key(x) for x in op.operands)
