"""What a loop loads ahead is taken up behind the barrier that it is loaded across.

    %a = load global                                   begun
    barrier
    ... products of what was stored before
    barrier
    %w = instruction %a {isa=held}                     and wanted from here on
    store shared %w

Between the two stand all products of an iteration, which take as long as the load does. What packs elements on their
way to shared memory moves no memory and waits for nobody, so that LLVM may put it right behind the load, and with it a
wait for the load. The word that comes out of `held` is the one that went in, but nobody sees that it is; and what has
effects stays behind barriers.

What stands right in front of a barrier and only computes for what comes behind it is moved there first: barriers are
put as late as they can be, so that the first store's elements have been put in order in front of them.
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
