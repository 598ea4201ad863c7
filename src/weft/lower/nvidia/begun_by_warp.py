"""Move what one warp of a loop executes to begin bulk copies into a branch, so that the other warps skip it.

    %first = this warp is the first                      %first = this warp is the first
    %all = arith.andi elect, %first, %exists             if %first {
    bulk copy, where %all                     becomes      %all = arith.andi elect, %first, %exists
    %also = arith.andi elect, %first, %exists              bulk copy, where %all
    bulk copy, where %also                                 %also = arith.andi elect, %first, %exists
                                                           bulk copy, where %also
                                                         }

The copy engine takes one instruction, but some fifteen others elect a lane and move the address of the tensor map and
the coordinates to uniform registers. Without a branch all warps execute these, although the copy itself is predicated
off in all but one. In gradients of attention with blocks of 64 x 64 they are 34 of the 320 instructions of an
iteration.

Done only in loops, because what is executed once costs little, and only if one warp begins all copies of the iteration.
ptxas moves no instructions across a branch. If several warps begin copies, branches would serialize what it otherwise
interleaves: gradients of attention with heads of 128 and one block of 64 x 64 on each multiprocessor are predicted to
take 8.50 ms instead of 8.13. The arrivals that announce the bytes of a copy (`expect_tx`) move with it. LLVM derives
that the condition is true inside the branch, and simplifies it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from weft.ir.lane import Block, Builder, LaneOp, LaneProgram, Value, is_elementwise

from ..depth_first import MOVABLE

COPY, EXPECTS = "cp.async.bulk.tensor.", "mbarrier.arrive.expect_tx"
EQUAL = 0
"""Comparison of integers, by xDSL's number."""


def begin_by_warp(program: LaneProgram) -> None:
    """In each loop, put what begins copies into a branch of the warp that begins them."""
    loops = [op for op in program.body.walk() if op.name in ("for", "while")]
    uses = program.body.uses() if loops else {}
    for block in (region for loop in loops for region in loop.regions):
        copies = [op for op in block.ops if _is_of(op, COPY)]
        if copies and all(map(_of_first_warp, copies)):
            for is_first, ops in list(_runs(block)):
                if any(op in copies for op in ops):
                    _into_branch(program, block, is_first, ops, uses)


def _runs(block: Block) -> Iterator[tuple[Value, Sequence[LaneOp]]]:
    """Maximal runs of copies by one warp, with the computations before and between them, each as (the condition that
    holds in that warp, operations)."""
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
    """Put operations that begin copies into a branch, with what is computed for them alone."""
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
    """The condition that selects the one warp in which an operation begins a copy; None for other operations."""
    if not _is_of(op, COPY) and not _is_of(op, EXPECTS):
        return None
    return next((x for x in _conditions(op.operands[-1]) if _is_first(x)), None)


def _is_of(op: LaneOp, family: str) -> bool:
    return op.name == "instruction" and str(op.attrs["isa"]).startswith(family)


def _conditions(value: Value) -> Iterator[Value]:
    """The conditions whose conjunction this is."""
    todo = [value]
    while todo:
        x = todo.pop()
        if x.op is not None and x.op.name == "arith.andi":
            todo += x.op.operands
        else:
            yield x


def _is_first(condition: Value) -> bool:
    """Whether a condition says that the number of the warp is zero."""
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
