"""Copies of the copy engine that one warp of a loop begins are in a branch of that warp.

    %first = this warp is the first                      %first = this warp is the first
    %all = arith.andi elect, %first, %exists             if %first {
    bulk copy, where %all                     becomes      %all = arith.andi elect, %first, %exists
    %also = arith.andi elect, %first, %exists              bulk copy, where %all
    bulk copy, where %also                                 %also = arith.andi elect, %first, %exists
                                                           bulk copy, where %also
                                                         }

A copy is one instruction of the engine, but it takes some fifteen to elect a lane, and to bring the address of a tensor
map and coordinates to where the engine reads them. Without a branch all warps execute these, and then do nothing: in
gradients of attention with blocks of 64 x 64, 34 of the 320 instructions of an iteration.

Done in loops only, as what is executed once costs little, and where all copies of an iteration are that warp's. ptxas
moves nothing into a branch or out of it: where several warps begin copies, it would execute one after the other what it
can do side by side (gradients of attention with heads of 128, one block of 64 x 64 on a multiprocessor: 8.50 ms instead
of 8.13 by prediction). The arrivals that say how many bytes are to come belong to the copies. LLVM sees that the
condition holds in the branch.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from weft.ir.lane import Block, Builder, LaneOp, LaneProgram, Value, is_elementwise

from ..depth_first import MOVABLE

COPY, EXPECTS = "cp.async.bulk.tensor.", "mbarrier.arrive.expect_tx"
EQUAL = 0
"""Comparison of integers, by xDSL's number."""


def begin_by_warp(program: LaneProgram) -> None:
    """Put what begins copies in loops into a branch of the warp that begins them."""
    loops = [op for op in program.body.walk() if op.name in ("for", "while")]
    uses = program.body.uses() if loops else {}
    for block in (region for loop in loops for region in loop.regions):
        copies = [op for op in block.ops if _is_of(op, COPY)]
        if copies and all(map(_of_first_warp, copies)):
            for is_first, ops in list(_runs(block)):
                if any(op in copies for op in ops):
                    _into_branch(program, block, is_first, ops, uses)


def _runs(block: Block) -> Iterator[tuple[Value, Sequence[LaneOp]]]:
    """What one warp begins, with what is computed in front and in between: whether a warp is that one, and the
    operations."""
    is_first: Value | None = None
    begin = end = 0
    for i, op in enumerate(block.ops):
        if _is_pure(op):
            continue
        holds = _of_first_warp(op)
        if is_first is not None and holds is not is_first:
            yield is_first, block.ops[begin:end]
            begin = end
        is_first, end = holds, i + 1
        if holds is None:
            begin = end
    if is_first is not None:
        yield is_first, block.ops[begin:end]


def _into_branch(
    program: LaneProgram, block: Block, is_first: Value, ops: Sequence[LaneOp], uses: dict[Value, list[LaneOp]]
) -> None:
    """Put operations that begin copies into a branch, and what is computed for them alone."""
    taken: set[LaneOp] = set()
    for op in reversed(ops):
        is_for_them = all(user in taken for x in op.results for user in uses.get(x, ()))
        if _of_first_warp(op) is is_first or (op.results and op is not is_first.op and is_for_them):
            taken.add(op)
    build = Builder(Block())
    build.span = next(op.span for op in ops if op in taken)
    build.add("if", [is_first], (), {"of_warp": True}, [Block(), Block()])
    inside, otherwise = build.block.ops[-1].regions
    inside.ops[:] = [op for op in ops if op in taken]
    for region in (inside, otherwise):
        Builder(region).add("yield")
    hidden = {x for op in taken for x in op.results}
    program.variables[:] = [v for v in program.variables if v.value not in hidden]
    begin = block.ops.index(ops[0])
    block.ops[begin : begin + len(ops)] = [*(op for op in ops if op not in taken), *build.block.ops]


def _of_first_warp(op: LaneOp) -> Value | None:
    """What holds in the warp that alone executes an operation which begins copies; None of others."""
    if not _is_of(op, COPY) and not _is_of(op, EXPECTS):
        return None
    return next((x for x in _conditions(op.operands[-1]) if _is_first(x)), None)


def _is_of(op: LaneOp, family: str) -> bool:
    return op.name == "instruction" and str(op.attrs["isa"]).startswith(family)


def _conditions(value: Value) -> Iterator[Value]:
    """What all holds where a condition does."""
    todo = [value]
    while todo:
        x = todo.pop()
        if x.op is not None and x.op.name == "arith.andi":
            todo += x.op.operands
        else:
            yield x


def _is_first(condition: Value) -> bool:
    """Whether a condition says that a warp's number is zero."""
    op = condition.op
    if op is None or op.name != "arith.cmpi" or op.attrs["predicate"] != EQUAL:
        return False
    number, zero = (x.op for x in op.operands)
    if number is None or zero is None or number.name != "linear" or zero.attrs.get("value") != 0:
        return False
    bits = number.attrs["warp"]
    return bool(bits) and all(bits) and not any((*number.attrs["lane"], *number.attrs["block"]))


def _is_pure(op: LaneOp) -> bool:
    return op.name == "elect" or (not op.regions and (op.name in MOVABLE or is_elementwise(op.name)))
