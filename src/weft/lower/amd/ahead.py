"""Use what a loop loads ahead only after the barrier across which it should be in flight.

    %a = load global                                   begun
    barrier
    ... products of what was stored before
    barrier
    %w = instruction %a {isa=held}                     first use
    store shared %w

Between the load and its use are all products of an iteration, which take as long as the load. Operations that pack
elements for shared memory access no memory and wait for nothing, so LLVM could place them right after the load, and a
wait for the load with them. `held` returns its operand, which is opaque to LLVM, and as an operation with effects it
stays after the barrier.

Operations right before a barrier that only compute values used after it are first moved after it: barriers are inserted
as late as possible, and so after the operations that order the elements of the first store.
"""

from __future__ import annotations

from weft.ir.lane import ELEMENT_BITS, Block, Builder, LaneOp, LaneProgram, Value

from .used_up import is_movable

WORD = 32


def take_up_behind_barriers(program: LaneProgram) -> None:
    """In the loops of a program, for each load of global memory that nothing uses before a barrier."""
    for op in program.body.walk():
        if op.name == "for":
            _in_block(op.regions[0])


def _in_block(block: Block) -> None:
    if not any(op.name == "barrier" for op in block.ops):
        return
    _bring_forward(block)
    barriers = [i for i, op in enumerate(block.ops) if op.name == "barrier"]
    behind: dict[int, list[LaneOp]] = {}
    for i, op in enumerate(block.ops):
        if op.name != "load" or op.attrs["space"] != "global" or not _fits(op.result):
            continue
        first = _first_use(block, i, op.result)
        between = [b for b in barriers if i < b < first]
        if between:
            behind.setdefault(between[-1], []).append(op)
    for barrier, loads in sorted(behind.items(), reverse=True):
        build = Builder(Block())
        renamed = {}
        for load in loads:
            build.span = load.span
            renamed[load.result] = _held(build, load.result)
        for op in block.ops[barrier + 1 :]:
            op.operands = tuple(renamed.get(v, v) for v in op.operands)
        block.ops[barrier + 1 : barrier + 1] = build.block.ops


def _bring_forward(block: Block) -> None:
    """Barriers to before what only computes for others behind them."""
    ops: list[LaneOp] = []
    for op in block.ops:
        at = len(ops)
        if op.name == "barrier" and "id" not in op.attrs:
            while at and is_movable(ops[at - 1]):
                at -= 1
        ops.insert(at, op)
    block.ops[:] = ops


def _first_use(block: Block, at: int, value: Value) -> int:
    """Where a value is used first, after where it is made."""
    for i in range(at + 1, len(block.ops)):
        op = block.ops[i]
        if value in op.operands:
            return i
        if op.regions and any(value in inner.operands for region in op.regions for inner in region.walk()):
            return at
    return at


def _fits(value: Value) -> bool:
    bits = ELEMENT_BITS[value.elem]
    return bits in (8, 16, WORD) and value.count * bits % WORD == 0 and value.elem != "i1"


def _held(build: Builder, value: Value) -> Value:
    """The registers of a value, of which nobody knows where they come from."""
    bits = ELEMENT_BITS[value.elem]
    words = value
    if bits < WORD:
        words = build.add("pack", [value], [("i32", value.count * bits // WORD)]).result
    elif value.elem != "i32":
        words = build.op("arith.bitcast", [value], "i32")
    held = build.instruction("held", [words], [("i32", words.count)]).result
    if bits < WORD:
        return build.add("unpack", [held], [(value.elem, value.count)]).result
    return held if value.elem == "i32" else build.op("arith.bitcast", [held], value.elem)
