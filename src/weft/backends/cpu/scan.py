"""Prefix scans: in a vector by doubling blocks (Sklansky, 1960), from vector to vector by a carry.

    a b c d  ->  a ab c cd  ->  a ab abc abcd

A step adds the last element of a block to all of the next block, which is within the 128 bits that x86 permutes most
cheaply until blocks are as long. A scan ends where those that read it do (mask_bounds.py).

Along an axis that is not the fastest one there is nothing to do across lanes: the axis is a plain loop and the lanes
lie along the rest.
"""

from __future__ import annotations

from weft.backends.cpu.buffers import Buffer
from weft.backends.cpu.coords import log2, row_major
from weft.backends.cpu.elementwise import const_of, memory_type
from weft.backends.cpu.mask_bounds import ends_of_readers, last_end
from weft.backends.cpu.program import Op, Value
from weft.backends.cpu.reduce import emit_region, identity_of
from weft.backends.cpu.schedule import Scheduler, anchor
from weft.backends.cpu.telling import tell_loop
from weft.backends.llvm.emit import Function
from weft.backends.llvm.values import I64, Value as Reg, const, const_lanes, vec

Regs = list[Reg]
SHORT = 3
"""Operations of a combine function, its return included, that is rather done once more than waited for."""

NEUTRAL = ("arith.addf", "arith.addi", "arith.mulf", "arith.muli", "arith.andi", "arith.ori", "arith.xori")


@anchor("tt.scan")
def _scan(s: Scheduler, op: Op) -> None:
    s.flush()
    shape = op.args[0].shape
    axis = op.attrs["axis"]
    reverse = bool(op.attrs.get("reverse", False))
    end = None if reverse or not _may_leave_out(op) else _end(s, op)
    partly = None if end is None else (axis, end)
    sources = [s.materialise(a, row_major(shape), end=partly if a.users == [op] else None) for a in op.args]
    results = [s.allocate(r) for r in op.results]
    inner = 1
    for size in shape[axis + 1 :]:
        inner *= size
    outer = 1
    for size in shape[:axis]:
        outer *= size
    elems = [a.elem for a in op.args]
    width = max(1, s.vector_bits // max(32, *(memory_type(e).bits for e in elems)))
    emit = _Emitter(s, op, sources, results)
    f, length = s.f, shape[axis]
    stop = const(I64, length) if end is None else end

    def at(i: Reg) -> None:
        base = f.mul(i, const(I64, length * inner))
        if inner > 1:
            lanes = min(width, inner)
            with f.loop(const(I64, 0), const(I64, inner), const(I64, lanes), at_least_once=True) as j:
                emit.down(f.add(base, j), length, inner, lanes, reverse, stop)
        else:
            emit.along(base, length, min(width, length), reverse, stop)

    tell_loop(s.remarks, op, op.args[0], min(width, inner if inner > 1 else length), len(shape) - 1)
    with f.loop(const(I64, 0), const(I64, outer), const(I64, 1), at_least_once=True) as i:
        at(i)
    for r, buffer in zip(op.results, results, strict=True):
        s.env[r] = buffer


def _may_leave_out(op: Op) -> bool:
    """Whether nobody can tell if elements are combined that nothing reads: it cannot fail."""
    ops = op.regions[0][0].ops
    return not any(o.regions or o.name == "tt.assert" or o.name.startswith(("arith.div", "arith.rem")) for o in ops)


def _end(s: Scheduler, op: Op) -> Reg | None:
    """The place along the axis from which on nothing reads the results (i64), if there is one."""
    axis = op.attrs["axis"]
    ends = [ends_of_readers(s, result, axis) for result in op.results]
    return last_end(s, [end for of_one in ends for end in of_one], op.args[0].shape[axis]) if all(ends) else None


class _Emitter:
    def __init__(self, s: Scheduler, op: Op, sources: list[Buffer], results: list[Buffer]) -> None:
        self.s, self.f, self.op, self.sources, self.results = s, s.f, op, sources, results
        self.block = op.regions[0][0]
        self.neutral: float | int | None = None
        """What changes nothing when it is combined with any element, if that is known."""
        if self.block.ops[0].name in NEUTRAL and op.args[0].elem != "i1":
            self.neutral = identity_of(op)
            if self.neutral == 0 and self.block.ops[0].name == "arith.addf":
                self.neutral = -0.0  # 0.0 would make zeros of those that are negative

    def combine(self, a: Regs, b: Regs, lanes: Reg | None = None) -> Regs:
        """Combine; `lanes` says which of them count, if not all do."""

        def failed(op: Op, broken: Reg) -> None:
            self.s.failed(op, broken if lanes is None else self.f.and_(broken, lanes))

        return emit_region(self.f, self.block, [*a, *b], self.s.env, failed)

    def load(self, offset: Reg, lanes: int) -> Regs:
        return [load_elements(self.f, a, b, offset, lanes) for a, b in zip(self.op.args, self.sources, strict=True)]

    def store(self, values: Regs, offset: Reg) -> None:
        for value, result, buffer in zip(values, self.op.results, self.results, strict=True):
            store_elements(self.f, result, buffer, offset, value)

    def down(self, base: Reg, length: int, stride: int, lanes: int, reverse: bool, stop: Reg) -> None:
        """Scan a column of vectors, up to a place."""
        f = self.f

        def place(i: Reg) -> Reg:
            k = f.sub(const(I64, length - 1), i) if reverse else i
            return f.add(base, f.mul(k, const(I64, stride)))

        first_at = place(const(I64, 0))
        first = self.load(first_at, lanes)
        self.store(first, first_at)

        def step(i: Reg, carried: Regs) -> Regs:
            where = place(i)
            total = self.combine(carried, self.load(where, lanes))
            self.store(total, where)
            return total

        f.loop_carrying(const(I64, 1), stop, const(I64, 1), first, step)

    def along(self, base: Reg, length: int, lanes: int, reverse: bool, stop: Reg) -> None:
        """Scan consecutive elements, `lanes` at a time, up to a place."""
        f = self.f
        chunks = length // lanes

        def place(i: Reg) -> Reg:
            k = f.sub(const(I64, chunks - 1), i) if reverse else i
            return f.add(base, f.mul(k, const(I64, lanes)))

        def flipped(values: Regs) -> Regs:
            if not reverse or lanes == 1:
                return values
            return [f.shuffle(v, None, list(range(lanes - 1, -1, -1))) for v in values]

        def within(values: Regs) -> Regs:
            block = 1
            while block < lanes:
                second = [lane & block for lane in range(lanes)]  # of two blocks
                before = [(lane & -block) - 1 if second[lane] else lane for lane in range(lanes)]
                moved = [f.shuffle(v, None, before) for v in values]
                keep = const_lanes(vec("i1", lanes), [int(lane != 0) for lane in second])
                if self.neutral is not None:
                    neutral = const_of(self.op.args[0].elem, self.neutral)
                    values = self.combine([f.select(keep, moved[0], f.splat(neutral, lanes))], values)
                else:
                    mixed = self.combine(moved, values, keep)
                    values = [f.select(keep, m, v) for m, v in zip(mixed, values, strict=True)]
                block *= 2
            return values

        def last(values: Regs) -> Regs:
            return [f.splat(f.extract(v, lanes - 1), lanes) if lanes > 1 else v for v in values]

        first_at = place(const(I64, 0))
        first = within(flipped(self.load(first_at, lanes)))
        self.store(flipped(first), first_at)

        def step(i: Reg, carried: Regs) -> Regs:
            where = place(i)
            values = within(flipped(self.load(where, lanes)))
            total = self.combine(carried, values)
            self.store(flipped(total), where)
            # the same numbers as the last ones of `total`, which the next vector would have to wait for
            return self.combine(carried, last(values)) if len(self.block.ops) <= SHORT else last(total)

        needed = f.lshr(f.add(stop, const(I64, lanes - 1)), const(I64, log2(lanes)))
        f.loop_carrying(const(I64, 1), needed, const(I64, 1), last(first), step)


def load_elements(f: Function, value: Value, buffer: Buffer, offset: Reg, lanes: int) -> Reg:
    """Consecutive elements of a row-major buffer (a scalar for one lane)."""
    type = memory_type(buffer.elem, lanes if lanes > 1 else 0)
    loaded = f.load(type, f.gep(type, buffer.address, offset), max(1, type.bits // 8))
    if value.elem == "i1":
        return f.icmp("ne", loaded, const(type, 0))
    return loaded


def store_elements(f: Function, value: Value, buffer: Buffer, offset: Reg, data: Reg) -> None:
    """The inverse of `load_elements`."""
    if value.elem == "i1":
        data = f.cast("zext", data, data.type.with_elem("i8"))
    f.store(data, f.gep(data.type, buffer.address, offset), max(1, data.type.bits // 8))
