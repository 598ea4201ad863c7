"""Store all tiles that change their layouts to shared memory before the first is loaded: one barrier instead of three.

    store shared %a, %x                       store shared %a, %x
    barrier                                   store shared %b, %y
    %u = load shared %a                       barrier
    barrier                        becomes    %u = load shared %a
    store shared %b, %y                       %v = load shared %b
    barrier
    %v = load shared %b

A tile changes its layout by a store to shared memory and a load. Buffers that are used one after the other share bytes,
so the store of each tile waits for the load of the one before: the two operands of a product take three barriers. If
each has bytes of its own, one barrier is enough, and the loads are in flight together. This pass only moves stores;
barriers and addresses of buffers are assigned later.

A store moves up over loads of other buffers, as far as the value that it stores is available. What only the store uses
moves with it, and so do computations of addresses, so a thread holds no more values than before. If the program would
then need so much shared memory that fewer of its blocks ran at a time, it stays as it is.
"""

from __future__ import annotations

from collections.abc import Iterable

from weft.analysis import origins, touches_of
from weft.ir.lane import ELEMENT_BITS, Block, LaneOp, LaneProgram, Value, is_elementwise
from weft.targets.table import instruction

from .placement import needed_bytes

NUMBERS = ("constant", "program_id", "num_programs", "linear", "shared")
"""Operations that compute addresses: these move up even if others use them too."""
OF_THREAD = ("rename", "join", "pack", "unpack", "permute", "shuffle")
"""Operations on values of a thread or a warp, besides those that compute element by element."""
WALLS = (
    "atomic", "compare_and_swap", "copy_async", "commit_async", "wait_async", "barrier", "fence", "await", "prefetch",
    "assembly", "print", "assert", "check", "trap", "clock", "keep", "yield", "condition", "return",
)  # fmt: skip
"""Operations that no store moves over, besides products, loads of global memory, branches and loops."""
OTHERS = 32
"""Registers of a thread for what is not counted: addresses, masks, sums."""
Order = list[tuple[Block, list[LaneOp]]]


def store_first(program: LaneProgram) -> None:
    """Move stores to shared memory over loads of other buffers."""
    before: Order = [(block, list(block.ops)) for block in program.body.blocks()]
    mover = _Mover(program)
    for block, _ in before:
        mover.move_all(block)
    if not mover.words:
        return
    moved: Order = [(block, list(block.ops)) for block, _ in before]
    needed = needed_bytes(program)
    _restore(before)
    if _fits(program, needed_bytes(program), needed, mover.words):
        _restore(moved)


def _restore(order: Order) -> None:
    for block, ops in order:
        block.ops[:] = ops


def _fits(program: LaneProgram, now: int, then: int, words: int) -> bool:
    """Whether as many blocks run at a time with `then` bytes of shared memory as with `now`. Registers may allow fewer:
    a thread holds `words` of tiles."""
    machine, threads = program.machine, program.warps * program.lanes
    if then > machine.shared_bytes:
        return False
    fit = [machine.blocks_at_a_time(threads, shared, OTHERS + words) for shared in (now, then)]
    return fit[0] <= fit[1]


class _Mover:
    def __init__(self, program: LaneProgram) -> None:
        self.buffers = origins(program)
        self.uses = program.body.uses()
        self.words = 0
        """The most registers of a thread that loads behind one barrier fill; 0 if no store has moved."""

    def move_all(self, block: Block) -> None:
        """Move the stores of a block."""
        for at, op in enumerate(list(block.ops)):  # moving a store up leaves later operations where they are
            if self.written(op):
                self.move(block, at)

    def written(self, op: LaneOp) -> frozenset[int]:
        """The buffers that an operation writes to, if that is all it does; none for other operations."""
        touches = touches_of(op)
        if any(t.how != "write" or t.later or t.far or t.release for t in touches):
            return frozenset()
        return frozenset().union(*(self.buffers.get(t.address, frozenset()) for t in touches))

    def move(self, block: Block, at: int) -> None:
        """Move a store, with what it needs, before the earliest load that it can reach, if there is one."""
        store, first, loaded = block.ops[at], at, 0
        written, numbers = self.written(store), makers(store.operands[:1])
        wanted, going = makers(store.operands), {store}
        for i in range(at - 1, -1, -1):
            op = block.ops[i]
            if op in wanted:
                if not (op.name in NUMBERS or is_elementwise(op.name) or op.name in OF_THREAD):
                    break
                if op not in numbers and not all(user in going for v in op.results for user in self.uses.get(v, ())):
                    break
                numbers |= makers(op.operands) if op in numbers else set()
                wanted |= makers(op.operands)
                going.add(op)
            elif self.may_pass(op, written):
                if touches_of(op) and not self.written(op):
                    first, loaded = i, loaded + sum(map(words_of, op.results))
            else:
                break
        passed = block.ops[first : at + 1]
        block.ops[first : at + 1] = [op for op in passed if op in going] + [op for op in passed if op not in going]
        if first < at:
            self.words = max(self.words, loaded + sum(map(words_of, store.operands[1:])))

    def may_pass(self, op: LaneOp, written: frozenset[int]) -> bool:
        """Whether a store to these buffers may go before an operation that it does not need."""
        if op.regions or op.name in WALLS or (op.name == "load" and op.attrs["space"] == "global"):
            return False
        if op.name == "instruction":
            entry = instruction(op.attrs["isa"])
            if entry.products or entry.touches not in ("", "shared"):
                return False
        for touch in touches_of(op):
            buffers = self.buffers.get(touch.address)
            if touch.how == "atomic" or touch.later or touch.far or not buffers or buffers & written:
                return False
        return True


def makers(values: Iterable[Value]) -> set[LaneOp]:
    """The operations that define these values."""
    return {v.op for v in values if v.op is not None}


def words_of(value: Value) -> int:
    """The registers of a thread that a value takes, of 32 bits each."""
    return max(1, value.count * ELEMENT_BITS[value.elem] >> 5)
