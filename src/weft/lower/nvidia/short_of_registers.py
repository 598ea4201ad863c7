"""Find loops whose tiles take most of a thread's registers if as many blocks run as shared memory has room for.

    dk, dv = for ...: s = k * q; dp = v * do; ...        64 + 64 words of 32 bits, three blocks of 128 threads: 168

A value that is computed before such a loop and used after it is better computed after it (behind_loops.py): gradients
of attention with heads of 64 then hold 11 registers fewer. If they are causal, this makes room for a third block, and
they are predicted to take 3.56 ms instead of 3.91.

Loops that only accumulate products are left alone. Of them, some gain too (64x256x32: 292 us instead of 309), but
others only compute addresses twice (float32, 128x128x32: 1,102 us instead of 1,092).
"""

from __future__ import annotations

from collections.abc import Iterable

from weft.ir.lane import ELEMENT_BITS, Builder, LaneOp, LaneProgram, Value
from weft.targets.table import instruction

MUCH = 0.75
"""The part of the registers of a thread that tiles take, from which on others matter."""


def is_short(program: LaneProgram, loop: LaneOp) -> bool:
    """Whether tiles of a loop leave few registers; a loop of warps that went apart has its own number of them."""
    if program.body.ops[0].name == "partitions":
        return False
    threads = program.warps * program.lanes
    blocks = program.machine.blocks_at_a_time(threads, program.shared_bytes)
    registers = program.machine.registers // (threads * max(1, blocks))
    carried, results = sum_words(loop), result_words(loop)
    return registers < program.machine.thread_registers and results > 0 and carried + results >= MUCH * registers


def sum_words(loop: LaneOp) -> int:
    """Words of the tiles that a loop carries."""
    return _words(v for v in loop.operands if v.count > 1)


def result_words(loop: LaneOp) -> int:
    """Words of the results of a loop's products that start from what is made before the loop, so that it carries none
    of them."""
    inner = [x for region in loop.regions for x in region.walk()]
    made = {r for x in inner for r in x.results} | {v for region in loop.regions for v in region.arguments}
    products = [x for x in inner if x.name == "instruction" and instruction(x.attrs["isa"]).products]
    return _words(
        x.results[0] for x in products if not any(v in made and _are_alike(v, x.results[0]) for v in x.operands)
    )


def _are_alike(one: Value, other: Value) -> bool:
    """Whether one may be the sum to which a product adds that gives the other."""
    return (one.elem, one.count) == (other.elem, other.count)


def _words(values: Iterable[Value]) -> int:
    return sum(v.count * ELEMENT_BITS[v.elem] for v in values) // 32


def hidden(build: Builder, number: Value) -> Value:
    """A number of which neither LLVM nor ptxas knows that it is the same: neither knows that `zero` is 0."""
    return build.op("arith.xori", [number, build.add("zero", (), [("i32", 1)]).result], "i32")
