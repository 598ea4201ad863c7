"""Which registers of each value something wants: of 32 addresses whose elements lie in runs of 8, four are.

    %1 = i64x32 addi %0, %step            a pointer of a loop, for 32 elements
    %2 = i64x4 rename %1 [0, 8, 16, 24]   one load each 16 bytes
    %3 = f16x32 load %2

Of %1 and of what the loop carries to it, registers 0, 8, 16 and 24 are wanted; LLVM leaves out the others. It is found
going back from what has an effect: operations element by element want of their operands what is wanted of them, names
(`rename`, `join`) the registers that they name, loops and branches of what they hand on; all others want all.
"""

from __future__ import annotations

from weft.ir.lane import Block, LaneOp, Value

__all__ = ["wanted_registers"]

EFFECTS = frozenset(("store", "atomic", "compare_and_swap", "instruction", "barrier", "copy_async", "condition"))
ONE_BY_ONE = ("arith.", "math.")
Wanted = dict[Value, set[int]]


def wanted_registers(body: Block) -> Wanted:
    """By value; values that nothing wants are not in it."""
    wanted: Wanted = {}
    while _block(body, wanted):
        pass
    return wanted


def _block(block: Block, wanted: Wanted) -> bool:
    """One time through the operations, backwards; whether more is wanted than before."""
    changed = False
    for op in reversed(block.ops):
        for region in op.regions:
            changed |= _hand_on(op, region, wanted)
            changed |= _block(region, wanted)
        changed |= _operands(op, wanted)
    return changed


def _hand_on(op: LaneOp, region: Block, wanted: Wanted) -> bool:
    """What a region yields is wanted as the results are, and as what it carries is wanted in the next iteration."""
    last = region.ops[-1] if region.ops else None
    if last is None or last.name != "yield":
        return False
    carried = region.arguments[1:] if op.name == "for" else ()
    changed = False
    for at, value in enumerate(last.operands):
        for other in (*op.results[at : at + 1], *carried[at : at + 1]):
            changed |= _want(value, wanted.get(other, set()), wanted)
    return changed


def _operands(op: LaneOp, wanted: Wanted) -> bool:
    if op.name == "yield":
        return False
    if op.name == "for":
        changed = False
        for value in op.operands[:3]:
            changed |= _want(value, {0}, wanted)
        for value, inside, result in zip(op.operands[3:], op.regions[0].arguments[1:], op.results, strict=True):
            changed |= _want(value, wanted.get(inside, set()) | wanted.get(result, set()), wanted)
        return changed
    of = set[int]().union(*(wanted.get(result, set()) for result in op.results))
    if not of and op.results and op.name not in EFFECTS and not op.regions:
        return False
    changed, start = False, 0
    for value in op.operands:
        which = set(range(value.count))
        if op.name == "rename":
            which = {op.attrs["table"][k] for k in of}
        elif op.name == "join":
            which, start = {k - start for k in of if start <= k < start + value.count}, start + value.count
        elif op.name.startswith(ONE_BY_ONE) or op.name in ("select", "keep", "await"):
            same = len(op.results) == 1 and value.count == op.result.count
            which = of if same else {0} if value.count == 1 else which
        changed |= _want(value, which, wanted)
    return changed


def _want(value: Value, which: set[int], wanted: Wanted) -> bool:
    before = wanted.setdefault(value, set())
    more = which - before
    before |= more
    return bool(more)
