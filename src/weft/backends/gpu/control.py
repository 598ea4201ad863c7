"""Loops and branches, and what ends a program.

Carried fragments of small elements are carried in words, and integers that differ by constants, as the addresses of a
tile do, in one register if they still do so at the end of the loop's body.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from weft.ir.lane import LaneOp, Value, barrier_of

from .emitter import BITS, Emitter, Register, Sum, Walk, emitter
from .registers import warp_index
from .steps import Phi, one_way, other_uses


@dataclass
class Carried:
    """How one value is carried: in registers of one LLVM type each, of which `of` gives those of the fragment."""

    value: Value
    type: str
    each: int
    """Elements in a register."""
    bases: list[str] | None = None
    """For sums: the register that each distinct base is carried in."""
    places: list[tuple[int, int]] | None = None
    """For sums: which base each register has, and the distance to it."""
    vector: bool = False
    """Whether elements in a register are those of a vector, not parts of a word."""

    @property
    def groups(self) -> list[int]:
        """Which of them each register of the fragment is in."""
        return [r // self.each for r in range(self.value.count)] if self.places is None else [g for g, _ in self.places]

    def pack(self, e: Emitter, registers: Sequence[Register]) -> list[str] | None:
        """The registers that carry a fragment; None if its sums are not what they were."""
        if self.places is not None:
            return _bases(e, self.places, registers, e.llvm[self.value.elem])
        if self.vector:
            names = [e.name(r) for r in registers]
            return [e.vector(names[i : i + self.each], self.type) for i in range(0, len(names), self.each)]
        if self.each > 1:
            type = e.llvm[self.value.elem]
            return [e.word(registers[i : i + self.each], type) for i in range(0, len(registers), self.each)]
        return [e.name(r) for r in registers]

    def unpack(self, e: Emitter, names: Sequence[str], value: Value) -> list[Register]:
        """The fragment in the registers that carry it, which is `value` there."""
        if self.places is not None:
            return [Sum(names[k], distance, e.llvm[self.value.elem]) for k, distance in self.places]
        if self.vector:
            return [r for n in names for r in e.elements(n, self.type, self.each, value)]
        if self.each > 1:
            return [r for n in names for r in e.parts(n, e.llvm[self.value.elem], self.each)]
        return list(names)


def _bases(e: Emitter, places: Sequence[tuple[int, int]], registers: Sequence[Register], type: str) -> list[str] | None:
    """The base of each group of registers that are to have fixed distances."""
    sums: dict[int, Sum] = {}
    for (group, distance), register in zip(places, registers, strict=True):
        sum = register if isinstance(register, Sum) else Sum(e.name(register), 0, type)
        mine = Sum(sum.base, sum.offset - distance, type)
        first = sums.setdefault(group, mine)
        if (first.base, first.offset) != (mine.base, mine.offset):
            return None
    return [e.name(sums[k]) for k in range(len(sums))]


def _carried(e: Emitter, value: Value, initial: Sequence[Register], apart: bool, following: Value) -> Carried:
    """How a value is to be carried, of which `following` is the next; with `apart` no sums are."""
    type = e.llvm[value.elem]
    together = e.dialect.together(following)
    if together > 1:
        return Carried(value, f"<{together} x {type}>", together, vector=True)
    each = 32 // BITS[type]
    if each in (2, 4) and value.count % each == 0:
        return Carried(value, "i32", each)
    if value.elem in ("i32", "i64") and value.count > 1 and not apart:
        bases: dict[str, int] = {}
        places: list[tuple[int, int]] = []
        firsts: dict[int, int] = {}
        for register in initial:
            base, offset = (register.base, register.offset) if isinstance(register, Sum) else (e.name(register), 0)
            group = bases.setdefault(base, len(bases))
            places.append((group, offset - firsts.setdefault(group, offset)))
        if len(bases) < value.count:
            return Carried(value, type, 1, list(bases), places)
    return Carried(value, type, 1)


def _phis(phis: Iterable[Phi], before: str, end: str) -> list[str]:
    return [f"  {n} = phi {t} [ {a}, %{before} ], [ {b}, %{end} ]" for n, t, a, b in phis]


def _packed(e: Emitter, kinds: Sequence[Carried], values: Sequence[Value]) -> list[list[str] | None]:
    return [k.pack(e, e.wide(v, k.value.count)) for k, v in zip(kinds, values, strict=True)]


def _flat(groups: Sequence[Sequence[str] | None]) -> list[str]:
    return [n for g in groups if g is not None for n in g]


@emitter("for")
def _for(e: Emitter, op: LaneOp) -> None:
    if "ping_pong" in op.attrs:
        _wait(e, op, "uge")
    lines, mark, block = len(e.lines), e.mark(), e.f.block
    if not _loop(e, op, apart=False):
        del e.lines[lines:]
        e.forget(mark)
        e.f.block = block
        _loop(e, op, apart=True)
    if "ping_pong" in op.attrs:
        _wait(e, op, "ult")


def _wait(e: Emitter, op: LaneOp, predicate: str) -> None:
    """A barrier of the block for one of two groups of warps; the others reach another one meanwhile."""
    waits, on = e.f.new_label("waits"), e.f.new_label("on")
    is_mine = e.ins(f"icmp {predicate} i32 {warp_index(e)}, {op.attrs['ping_pong']}")
    e.do(f"br i1 {is_mine}, label %{waits}, label %{on}")
    e.f.start(waits)
    e.dialect.barrier(e, barrier_of(op))
    e.do(f"br label %{on}")
    e.f.start(on)


def _loop(e: Emitter, op: LaneOp, apart: bool) -> bool:
    """Emit the loop; whether what is carried in sums still was at the end of the body."""
    f, body = e.f, op.regions[0]
    index, *arguments = body.arguments
    type = e.llvm[index.elem]
    lower, upper, step = (e.one(v) for v in op.operands[:3])
    values = zip(arguments, op.operands[3:], body.ops[-1].operands, strict=True)
    kinds = [_carried(e, a, e.wide(v, a.count), apart, following) for a, v, following in values]
    first = _packed(e, kinds, op.operands[3:])
    head, before = f.new_label("body"), f.block
    done = f"done.{e.loops[op]}" if op in e.loops else f.new_label("done")
    enters = e.ins(f"icmp slt {type} {lower}, {upper}")
    [number] = e.reserve(1, 1)
    names = [e.reserve(len(g or ()), 1) for g in first]
    types = [k.type for k, g in zip(kinds, first, strict=True) for _ in g or ()]
    with e.loop():
        e.do(f"br i1 {enters}, label %{head}, label %{done}")
        f.start(head)
        mark, at = e.mark(), len(e.lines)
        e.env[index] = [number]
        for kind, group in zip(kinds, names, strict=True):
            e.env[kind.value] = kind.unpack(e, group, kind.value)
        yielded = e.region(body)
        last = _packed(e, kinds, yielded)
        same = all(group is not None for group in last)
        following = e.ins(f"add nsw {type} {number}, {step}")
        again = e.ins(f"icmp slt {type} {following}, {upper}")
        end = f.block
        if same:
            phis = map(Phi, [number, *_flat(names)], [type, *types], [lower, *_flat(first)], [following, *_flat(last)])
            carried, top = list(phis), list[str]()
            if any(x.name == "copy_async" for x in body.walk()):
                ends = zip(kinds, body.ops[-1].operands, strict=True)
                used = [x for kind, value in ends for x in other_uses(e, kind.value, body.ops[-1], value, kind.groups)]
                carried, top = one_way(e, carried, [(False, False), *used])
            e.lines[at:at] = [*_phis(carried, before, end), *top]
        e.do(f"br i1 {again}, label %{head}, label %{done}")
    if not same:
        return False
    e.forget(mark)
    f.start(done)
    results = e.reserve(len(types))
    e.lines += _phis(map(Phi, results, types, _flat(first), _flat(last)), before, end)
    _give(e, op.results, kinds, names, results)
    return True


def _give(
    e: Emitter, values: Sequence[Value], kinds: Sequence[Carried], groups: Sequence[Sequence[str]], names: Sequence[str]
) -> None:
    """Results of a loop or a branch from the registers that hold them."""
    at = 0
    for value, kind, group in zip(values, kinds, groups, strict=True):
        e.env[value] = kind.unpack(e, names[at : at + len(group)], value)
        at += len(group)


@emitter("while")
def _while(e: Emitter, op: LaneOp) -> None:
    f, (before, after) = e.f, op.regions
    kinds = [_carried(e, a, (), True, v) for a, v in zip(before.arguments, after.ops[-1].operands, strict=True)]
    first = _packed(e, kinds, op.operands)
    head, inside, done, entry = f.new_label("again"), f.new_label("body"), f.new_label("done"), f.block
    types = [k.type for k, g in zip(kinds, first, strict=True) for _ in g or ()]
    names = [e.reserve(len(g or ()), 1) for g in first]
    with e.loop():
        e.do(f"br label %{head}")
        f.start(head)
        mark, at = e.mark(), len(e.lines)
        e.dialect.load_anew(e)  # it may wait for what another program stores
        for kind, group in zip(kinds, names, strict=True):
            e.env[kind.value] = kind.unpack(e, group, kind.value)
        condition, *handed = e.region(before)
        for argument, value in zip(after.arguments, handed, strict=True):
            e.env[argument] = [e.name(r) for r in e.wide(value, argument.count)]
        for result, value in zip(op.results, handed, strict=True):
            e.env[result] = [e.name(r) for r in e.wide(value, result.count)]
        e.do(f"br i1 {e.one(condition)}, label %{inside}, label %{done}")
        outer = e.mark()
        f.start(inside)
        yielded = e.region(after)
        last = _packed(e, kinds, yielded)
        e.lines[at:at] = _phis(map(Phi, _flat(names), types, _flat(first), _flat(last)), entry, f.block)
        e.do(f"br label %{head}")
    e.forget(outer)
    e.forget(mark)
    f.start(done)


@emitter("if")
def _if(e: Emitter, op: LaneOp) -> None:
    f = e.f
    condition = e.one(op.operands[0])
    number = e.branches[op]
    yes, no, join = (f"{side}.{number}" for side in ("then", "else", "join"))
    e.do(f"br i1 {condition}, label %{yes}, label %{no}")
    handed_on = op.regions[0].ops[-1].operands if op.results else ()
    kinds = [_carried(e, r, (), True, v) for r, v in zip(op.results, handed_on, strict=True)]
    sides: list[tuple[list[list[str] | None], str]] = []
    for label, region in zip((yes, no), (*op.regions, None), strict=False):
        f.start(label)
        mark = e.mark()
        handed = e.region(region) if region is not None else []
        sides.append((_packed(e, kinds, handed), f.block))
        e.do(f"br label %{join}")
        e.forget(mark)
    f.start(join)
    (left, first), (right, second) = sides
    types = [k.type for k, g in zip(kinds, left, strict=True) for _ in g or ()]
    names = e.reserve(len(types))
    e.lines += _phis(map(Phi, names, types, _flat(left), _flat(right)), first, second)
    _give(e, op.results, kinds, [g or [] for g in left], names)


@emitter("partitions")
def _partitions(e: Emitter, op: LaneOp) -> None:
    """Each warp goes to the region that is its own, and all meet at the end; warps that have none go there at once."""
    f = e.f
    thread = e.dialect.place(e, "thread", e.program.warps * e.program.lanes)
    warp = e.early("lshr i32", thread, str(e.program.lanes.bit_length() - 1))
    end = f.new_label("together")
    for start, warps, region in zip(op.attrs["starts"], op.attrs["warps"], op.regions, strict=True):
        inside, following = f.new_label("partition"), f.new_label("others")
        is_member = e.ins(f"icmp ult i32 {e.early('sub i32', warp, str(start))}, {warps}")
        e.do(f"br i1 {is_member}, label %{inside}, label %{following}")
        f.start(inside)
        mark, e.partition = e.mark(), (start, warps)
        e.region(region)
        e.partition = None
        e.forget(mark)
        e.do(f"br label %{end}")
        f.start(following)
    e.do(f"br label %{end}")
    f.start(end)


def programs(e: Emitter, count: str) -> None:
    """The program for each index along x that is the block's, of `count`: its own, and on from there in steps of as
    many as there are blocks.

    The loop ends by what is left, for the next index may have more than 32 bits. With a `count` of 0, as a launch
    gives that does not know of this parameter, each block executes its own program.
    """
    f = e.f
    first, step = e.dialect.place(e, "block.x"), e.dialect.place(e, "blocks.x")
    head, following, done, before = f.new_label("program"), f.new_label("following"), f.new_label("done"), f.block
    with e.loop():
        e.do(f"br label %{head}")
        f.start(head)
        mark, at = e.mark(), len(e.lines)
        [number] = e.reserve(1, 1)
        e.walk = Walk(number, count, following)
        e.region(e.program.body)
        e.do(f"br label %{following}")
        f.start(following)
        left = e.ins(f"sub i32 {count}, {number}")
        again = e.ins(f"icmp sgt i32 {left}, {step}")
        further = e.ins(f"add nuw i32 {number}, {step}")
        e.lines[at:at] = _phis([Phi(number, "i32", first, further)], before, f.block)
        e.do(f"br i1 {again}, label %{head}, label %{done}")
    e.forget(mark)
    f.start(done)


@emitter("return")
def _return(e: Emitter, op: LaneOp) -> None:
    e.do("ret void" if e.walk is None else f"br label %{e.walk.following}")
    e.f.start(e.f.new_label("never"))
