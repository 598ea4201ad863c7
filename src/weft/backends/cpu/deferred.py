"""Products that wait for each other: those of several iterations of a loop are computed at once.

    for k in range(0, K, 32):                          for k in range(0, K, 32):
        acc = tl.dot(a, b, acc)                            pack a and b into slot number `filled`
                                                ->         if all slots are filled, or this is the last iteration:
                                                               acc = acc + a * b for all that is in the slots

Each time the sums are touched they go from memory to registers and back, which costs as much as to multiply where they
are more than the first cache holds. A loop that does nothing with them but add the next product can as well add several
of them: the order in which an element's products are added stays the same. So the operands of an iteration are packed
as they always are, but side by side with those of others, in slots, and the sums are taken up once for all.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from weft.backends.cpu.buffers import Buffer
from weft.backends.cpu.coords import Coords, log2, row_major
from weft.backends.cpu.elementwise import llvm_type
from weft.backends.cpu.program import Op, element_bits
from weft.backends.cpu.schedule import Loop, Scheduler
from weft.backends.llvm.emit import Function
from weft.backends.llvm.values import I64, Value as Reg, const

FIRST_CACHE = 32 << 10
"""Bytes: sums that are no more do not wait; a panel of B, which each row of blocks reads, is no longer."""
SLOT_BYTES = 128 << 10
"""Of all slots, at most (64 to 512 KB measured, with blocks of 128x128 and 128x256)."""


@dataclass
class Slots:
    """Where the operands of several iterations lie: one A behind the other, panels of B side by side along K.

    `filled` is the address of the number of iterations whose operands are there.
    """

    left: Buffer
    right: Buffer
    count: int
    filled: Reg

    def next(self, f: Function, of_a: int, of_panel: int) -> tuple[Buffer, Buffer]:
        """Where the operands of this iteration go; elements of A and of a panel of B in one."""
        number = f.load(I64, self.filled, 8)
        buffers = []
        for of, size in ((self.left, of_a), (self.right, of_panel)):
            address = f.gep(llvm_type(of.elem), of.address, f.mul(number, const(I64, size)))
            buffers.append(Buffer(address, of.elem, of.weights))
        return buffers[0], buffers[1]

    def advance(self, f: Function, loop: Loop) -> tuple[Reg, Reg]:
        """The number of slots that are filled, one more than before; whether what is in them is multiplied now."""
        filled = f.add(f.load(I64, self.filled, 8), const(I64, 1))
        is_last = f.icmp("ule", f.sub(loop.upper, loop.now), loop.step)
        is_time = f.or_(f.icmp("eq", filled, const(I64, self.count)), is_last)
        f.store(f.select(is_time, const(I64, 0), filled), self.filled, 8)
        return filled, is_time


def waits(op: Op, loop: Op) -> bool:
    """Whether all that a loop does with the sums of a product is to carry them to the next."""
    block = loop.regions[0][0]
    a, b, sums = op.args
    if op.name != "tt.dot" or op.block is not block or len(op.result.shape) != 2 or sums not in block.args[1:]:
        return False
    end, number = block.ops[-1], block.args.index(sums) - 1
    carried = sums.users == [op] and op.result.users == [end] and end.args[number] is op.result
    return carried and all(v.op is not None and v.block is block for v in (a, b))


def slots_for(s: Scheduler, op: Op, loop: Op, elem: str, panel: int, weights: Callable[..., Coords]) -> Slots | None:
    """Slots for the operands of a product in a loop, if two or more iterations fit.

    `weights` are those of a packed B of some shape.
    """
    a, b = op.args[:2]
    k, n = b.shape
    size = element_bits(elem) // 8
    count = min(FIRST_CACHE // (panel * k * size), SLOT_BYTES // ((a.numel + b.numel) * size))
    trips = _trips(loop)
    count = min(count, trips) if trips is not None else count
    sums = op.result.numel * element_bits(op.result.elem) // 8
    if count < 2 or k * size % 64 or sums <= FIRST_CACHE:
        return None
    count = 1 << log2(count)
    right = tuple(bits[: log2(extent)] for bits, extent in zip(weights((count * k, n)), b.shape, strict=True))
    buffers = [
        s.arena.allocate(v, s.position, loop.last, elem=elem, weights=w, copies=count)
        for v, w in ((a, row_major(a.shape)), (b, right))
    ]
    return Slots(buffers[0], buffers[1], count, s.f.variable(const(I64, 0)))


def _trips(loop: Op) -> int | None:
    """How many iterations a loop has, if that is known."""
    bounds = [a.op.attrs["value"] for a in loop.args[:3] if a.op is not None and a.op.name == "arith.constant"]
    return len(range(*bounds)) if len(bounds) == 3 and bounds[2] > 0 else None
