"""Mask loads of shared memory like the masked stores that are the only users of their values.

    %v = load %a                          %n = cmpi ...
    %w = addf %v, %v                      %v = load %a, mask %n
    %m = cmpi ...              becomes    %w = addf %v, %v
    store %p, %w, mask %m                 %m = cmpi ...
                                          store %p, %w, mask %m

The sum of a row is loaded by all warps, and stored by those of them that come first; the others need not load it. An
assembler sees that too, in some kernels and not in others: it leaves before the load where the mask does not hold.
With the mask in the program, what is loaded is the same in both, and the counter knows it.

Done where one mask stands for all registers, so that no more predicates are held; not for very many registers, because
each is set to zero first (left unset, ptxas keeps it for the whole kernel); and where what lies between the load and
its stores is computed by each thread for itself. This comes before barriers are inserted: fewer may be needed.
"""

from __future__ import annotations

from weft.base import each_once
from weft.ir.lane import Block, LaneOp, LaneProgram, Value, is_elementwise

FOR_ITSELF = ("rename", "join", "pack", "unpack", "permute")
"""What each thread does with its own registers, beside what is computed element by element."""
NUMBERS = ("constant", "program_id", "num_programs", "linear", *FOR_ITSELF)
"""What a mask may be made of to be computed earlier, beside what is computed element by element."""
MOST = 64
"""Registers of a load that are set to zero for it."""


def mask_loads(program: LaneProgram) -> None:
    """Give masks to the loads of shared memory that can have one."""
    uses = program.body.uses()
    blocks = [program.body, *(region for op in program.body.walk() for region in op.regions)]
    for block in blocks:
        _in_block(block, uses)


def _in_block(block: Block, uses: dict[Value, list[LaneOp]]) -> None:
    inside = set(block.ops)
    for load in list(block.ops):
        if load.name != "load" or load.attrs["space"] != "shared" or load.attrs.get("masked"):
            continue
        if load.attrs.get("volatile") or load.result.count > MOST:
            continue
        mask = _mask_of_stores(load.result, uses, inside)
        earlier = _earlier(block, mask, load) if mask is not None else None
        if earlier is not None:
            load.operands = (load.operands[0], earlier)
            load.attrs = {**load.attrs, "masked": True}


def _mask_of_stores(value: Value, uses: dict[Value, list[LaneOp]], inside: set[LaneOp]) -> Value | None:
    """The one mask, for all registers, of the stores that all uses of a value end in; None where there is none."""
    masks: set[Value] = set()
    todo = [value]
    for current in each_once(todo):
        for op in uses.get(current, ()):
            if op not in inside:
                return None
            if op.name == "store" and op.attrs.get("masked") and current not in (op.operands[0], op.operands[2]):
                masks.add(op.operands[2])
            elif op.name in FOR_ITSELF or is_elementwise(op.name):
                todo += op.results
            else:
                return None
    only = masks.pop() if len(masks) == 1 else None
    return only if only is not None and only.count == 1 else None


def _earlier(block: Block, mask: Value, load: LaneOp) -> Value | None:
    """A mask as it can be had before a load: what is computed later is computed there too; None where it cannot be.

    The later computation stays where it is: a line of the kernel keeps its operations.
    """
    place = {op: i for i, op in enumerate(block.ops)}
    wanted: set[LaneOp] = set()
    todo: list[Value] = [mask]
    while todo:
        op = todo.pop().op
        if op is None or op in wanted or place.get(op, -1) < place[load]:  # an argument, or there already
            continue
        if op.name not in NUMBERS and not is_elementwise(op.name):
            return None
        wanted.add(op)
        todo += op.operands
    copies: dict[Value, Value] = {}
    moved = []
    for op in sorted(wanted, key=place.__getitem__):
        copy = LaneOp(op.name, tuple(copies.get(v, v) for v in op.operands), (), dict(op.attrs), (), load.span)
        copy.results = tuple(Value(v.elem, v.count, copy) for v in op.results)
        copies |= dict(zip(op.results, copy.results, strict=True))
        moved.append(copy)
    block.ops[place[load] : place[load]] = moved
    return copies.get(mask, mask)
