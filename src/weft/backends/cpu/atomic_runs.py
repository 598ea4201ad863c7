"""Atomic operations on neighbours: several elements by one compare-and-swap.

A lane's `atomicrmw` of a float is a loop around a compare-and-swap of 4 bytes, and each of these waits until all stores
before it are done. Where lanes are consecutive in memory and nobody asks for the old values, as many elements as one
such instruction exchanges are changed together:

    old = 16 bytes of memory                  retry from here
    new = old + four of the values            where the mask holds, else old
    16 bytes of memory = new, if they are old still

For each element that is as atomic as before, and stronger besides. Memory that is not aligned for it is changed element
by element.
"""

from __future__ import annotations

from collections.abc import Callable

from weft.backends.cpu.elementwise import narrow, widen
from weft.backends.cpu.forms import Affine, Form, Pointer
from weft.backends.llvm.emit import Function
from weft.backends.llvm.values import I1, I64, Type, Value, const, vec

Combine = Callable[[Function, Value, Value], Value]


def _called(name: str) -> Combine:
    return lambda f, a, b: f.intrinsic(name, a.type, [a, b])


COMBINE: dict[str, Combine] = {
    "fadd": lambda f, a, b: f.emit(a.type, f"fadd {a.type} {a.name}, {b.name}"),
    "add": lambda f, a, b: f.add(a, b),
    "and": lambda f, a, b: f.and_(a, b),
    "or": lambda f, a, b: f.or_(a, b),
    "xor": lambda f, a, b: f.xor(a, b),
    "max": _called("smax"),
    "min": _called("smin"),
    "umax": _called("umax"),
    "umin": _called("umin"),
    "xchg": lambda f, a, b: b,
}
"""What each kind of `atomicrmw` makes of what is in memory and of a value."""


def run_length(f: Function, pointer: Pointer, element: Type, lanes: int) -> int:
    """How many lanes of an atomic operation are changed together; 1 where it is one after the other."""
    offset = pointer.offset
    if not isinstance(offset, Affine) or offset.constant_lanes != tuple(range(lanes)):
        return 1
    return min(lanes, f.module.swapped_bits // element.bits) if pointer.elem.bits == element.bits else 1


def change_runs(
    f: Function,
    combine: Combine,
    order: str,
    pointer: Pointer,
    operands: tuple[Value, Value | None],
    count: int,
    one: Callable[[Value, Value], None],
) -> None:
    """Change memory by values under a mask (if there is one), `count` elements at a time; where their address is not
    aligned for that, change `one` place for one lane after the other.
    """
    value, mask = operands
    offset: Form = pointer.offset
    assert isinstance(offset, Affine)
    start = f.gep(value.type, pointer.base, offset.base)
    size = count * value.type.bits // 8
    aligned = f.icmp("eq", f.and_(f.cast("ptrtoint", start, I64), const(I64, size - 1)), const(I64, 0))

    def together() -> list[Value]:
        for first in range(0, value.type.lanes, count):
            lanes = list(range(first, first + count))
            part = f.shuffle(value, None, lanes)
            holds = None if mask is None else f.shuffle(mask, None, lanes)
            at = f.gep(value.type, start, const(I64, first)) if first else start
            _when_any(f, holds, lambda at=at, part=part, holds=holds: swap(f, combine, order, at, part, holds))  # type: ignore[misc]
        return []

    def apart() -> list[Value]:
        with f.loop(const(I64, 0), const(I64, value.type.lanes), const(I64, 1), at_least_once=True) as lane:
            one(f.gep(value.type, start, lane), lane)
        return []

    f.if_else(aligned, together, apart)


def _when_any(f: Function, holds: Value | None, then: Callable[[], object]) -> None:
    if holds is None:
        then()
    else:
        f.when(f.call(f"llvm.vector.reduce.or.v{holds.type.lanes}i1", I1, [holds]), then)


def swap(f: Function, combine: Combine, order: str, at: Value, part: Value, holds: Value | None) -> Value:
    """Change an element or a run of them, again and again until nothing else has changed them in between; the bits
    that were there before.
    """
    bits = part.type.bits * max(1, part.type.lanes)
    whole = vec(f"i{bits}", 0)
    first = _seen_first(f, at, bits)
    before = f.block
    head, done = f.new_label("retry"), f.new_label("swapped")
    f.br(head)
    f.start(head)
    seen, again = f.reserve(whole), f.reserve(whole)
    f.define(seen, f"phi {whole} [ {first.name}, %{before} ], [ {again.name}, %{head} ]")
    old = f.bitcast(seen, part.type)
    new = combine(f, old, part)
    new = f.bitcast(new if holds is None else f.select(holds, new, old), whole)
    pair_type = vec(f"{{ {whole}, i1 }}", 0)
    pair = f.emit(pair_type, f"cmpxchg {at}, {seen}, {new} {order} monotonic, align {bits // 8}")
    f.define(again, f"extractvalue {pair_type} {pair.name}, 0")
    f.cond_br(f.emit(I1, f"extractvalue {pair_type} {pair.name}, 1"), done, head)
    f.start(done)
    return seen


def _seen_first(f: Function, at: Value, bits: int) -> Value:
    """What may be in memory: the two halves of 16 bytes are read apart, and compared as one."""
    type = vec(f"i{min(bits, 64)}", 0)
    halves = []
    for k in range(max(1, bits // 64)):
        half = f.gep(type, at, const(I64, k)) if k else at
        halves.append(f.emit(type, f"load atomic {type}, {half} monotonic, align {type.bits // 8}"))
    if len(halves) == 1:
        return halves[0]
    whole = vec(f"i{bits}", 0)
    low, high = (f.cast("zext", half, whole) for half in halves)
    return f.or_(low, f.shl(high, const(whole, 64)))


def bf16_sum(f: Function, a: Value, b: Value) -> Value:
    """The sum of bfloat16s that are held as their bits."""
    return narrow(f, "bf16", f.fadd(widen(f, "bf16", a), widen(f, "bf16", b)))
