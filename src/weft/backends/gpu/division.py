"""Quotients and remainders of integers: x / 0 is 0, x % 0 is x; the smallest value by -1 is itself and leaves nothing.

What depends on the divisor alone, which mostly is the same for all elements, is done once, and for each element as
little as can be is left. Numbers of 64 bits mostly fit in 32, where division takes a quarter of the time: the registers
of a tile are asked together, so that one branch is taken for all of them and the assembler makes one reciprocal for a
divisor.
"""

from __future__ import annotations

from weft.ir.lane import LaneOp

from .elementwise import elementwise, scalars, shared
from .emitter import Emitter, Register, emitter

TOGETHER = 8
"""Registers that are asked together: the long way has the code of each."""
DIVISIONS = ("arith.divsi", "arith.remsi", "arith.divui", "arith.remui")


def _literal(y: str) -> bool:
    return y.lstrip("-").isdigit()


@emitter(*DIVISIONS)
def _divide(e: Emitter, op: LaneOp) -> None:
    result = op.results[0]
    columns = [[e.name(r) for r in e.wide(v, result.count)] for v in op.operands]
    pairs = list(zip(*columns, strict=True))
    if result.elem != "i64" or any(_literal(y) for _, y in pairs):
        elementwise(e, op)
        return
    signed, result_kind = op.name.endswith("si"), "rem" if "rem" in op.name else "div"
    new = [pair for pair in dict.fromkeys(pairs) if e.known(("div", signed, *pair)) is None]
    for first in range(0, len(new), TOGETHER):
        _divide_wide(e, new[first : first + TOGETHER], signed)
    out: list[Register] = []
    for pair in pairs:
        register = e.known((result_kind, signed, *pair))
        assert register is not None
        out.append(register)
    e.env[result] = out


@scalars(*DIVISIONS)
def _divide_register(e: Emitter, op: LaneOp, a: list[str]) -> str:
    """By 1 where the divisor is 0 or -1, and the quotient times it. LLVM makes one division of a pair."""
    signed, remainder = op.name.endswith("si"), "rem" in op.name
    type = e.llvm[op.results[0].elem]
    if type == "i1":  # which has no 2, of which the divisors that need care are asked
        return shared(e, op)(e, op, a)
    x, y = a
    name = ("s" if signed else "u") + ("rem" if remainder else "div")
    if _literal(y) and int(y) not in (0, -1):
        return e.ins(f"{name} {type} {x}, {y}")
    unsafe, safe = _safe(e, type, y, signed)
    divided = e.pure(f"{name} {type} {x}, {safe}")
    if signed and not remainder:
        return e.early(f"mul {type}", divided, e.pure(f"select i1 {unsafe}, {type} {y}, {type} 1"))
    zero = e.early(f"icmp eq {type}", y, "0")
    return e.pure(f"select i1 {zero}, {type} {x if remainder else 0}, {type} {divided}")


def _safe(e: Emitter, type: str, y: str, signed: bool) -> tuple[str, str]:
    """(whether LLVM does not say what division by y is, y or there 1)."""
    if signed:
        unsafe = e.early(f"icmp ult {type}", e.early(f"add {type}", y, "1"), "2")
    else:
        unsafe = e.early(f"icmp eq {type}", y, "0")
    return unsafe, e.pure(f"select i1 {unsafe}, {type} 1, {type} {y}")


def _divide_wide(e: Emitter, pairs: list[tuple[str, str]], signed: bool) -> None:
    """Quotients and remainders of registers of 64 bits, remembered under ("div" or "rem", signed, x, y)."""
    f = e.f
    divisors = {y: e.pure(f"select i1 {e.early('icmp eq i64', y, '0')}, i64 -1, i64 {y}") for _, y in pairs}
    names = list(dict.fromkeys([x for x, _ in pairs] + list(divisors.values())))
    together = names[0]
    for name in names[1:]:
        together = e.ins(f"or i64 {together}, {name}")
    fit = e.ins(f"icmp ult i64 {together}, 4294967296")
    short, long, join = f.new_label("short"), f.new_label("long"), f.new_label("divided")
    e.do(f'br i1 {fit}, label %{short}, label %{long}, !prof !{{!"branch_weights", i32 1000, i32 1}}')
    f.start(short)
    mark = e.mark()
    brief = [_short(e, x, divisors[y]) for x, y in pairs]
    e.forget(mark)
    e.do(f"br label %{join}")
    f.start(long)
    mark = e.mark()
    full = [_long(e, x, y, signed) for x, y in pairs]
    e.forget(mark)
    e.do(f"br label %{join}")
    f.start(join)
    for (x, y), narrow, other in zip(pairs, brief, full, strict=True):
        for kind, a, b in zip(("div", "rem"), narrow, other, strict=True):
            e.once((kind, signed, x, y), f"phi i64 [ {a}, %{short} ], [ {b}, %{long} ]")


def _short(e: Emitter, x: str, y: str) -> list[str]:
    """(quotient, remainder) of what fits in 32 bits; the divisor is not 0."""
    low, by = (e.pure(f"trunc i64 {v} to i32") for v in (x, y))
    quotient = e.ins(f"udiv i32 {low}, {by}")
    remainder = e.ins(f"sub i32 {low}, {e.ins(f'mul i32 {quotient}, {by}')}")
    return [e.ins(f"zext i32 {v} to i64") for v in (quotient, remainder)]


def _long(e: Emitter, x: str, y: str, signed: bool) -> list[str]:
    """By an instruction that LLVM does not see, or it would ask again whether the operands are short."""
    unsafe, safe = _safe(e, "i64", y, signed)
    divided = e.ins(e.dialect.hidden("sdiv" if signed else "udiv", x, safe))
    quotient = e.ins(f"mul i64 {divided}, {e.pure(f'select i1 {unsafe}, i64 {y}, i64 1')}")
    return [quotient, e.ins(f"sub i64 {x}, {e.ins(f'mul i64 {quotient}, {y}')}")]
