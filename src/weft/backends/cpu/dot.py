"""Matrix products: operands packed into scratch, then a register-blocked kernel.

B (K x N) is packed in panels as wide as the register block, so that the inner loop reads it in order; A (M x K) is read
by rows (see `operands`). `plans` chooses the instruction and the block of registers, `blocks` multiplies by vectors and
`tiles` by tile registers. The accumulator tile is updated in place wherever nobody else needs its old contents.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from math import prod

from weft.backends.cpu import blocks, prefetch, tiles
from weft.backends.cpu.buffers import Buffer
from weft.backends.cpu.coords import row_major
from weft.backends.cpu.deferred import Slots, slots_for, waits
from weft.backends.cpu.elementwise import llvm_type
from weft.backends.cpu.operands import Matrix, Operands, packed_panels, panel_weights, panels_of, rows_of
from weft.backends.cpu.plans import Plan, plan
from weft.backends.cpu.product_ends import ProductEnds, is_zero, product_ends
from weft.backends.cpu.program import Op, Value, element_bits
from weft.backends.cpu.roots import WriteRoot
from weft.backends.cpu.schedule import Scheduler, anchor
from weft.backends.llvm.values import I64, Value as Reg, const
from weft.base import Unsupported
from weft.base.remarks import InstructionDeclined, ProductWaits, RegisterBlock
from weft.targets import NEON, PRODUCTS


def accumulator_buffer(s: Scheduler, op: Op, elem: str, operands: Sequence[Buffer | None]) -> tuple[Buffer, bool]:
    """The buffer that receives a product, holding the addend; and whether it starts from zero instead. Not an
    operand's.
    """
    addend, result = op.args[2], op.result
    last = s.last_use(result)
    if is_zero(addend) and addend not in s.env:
        return s.arena.allocate(result, s.position, last, elem=elem), True
    s.flush()
    have, target = s.env.get(addend), None
    if elem == addend.elem and addend.block is op.block and not s.needed_later(addend, {op}):
        target = have if isinstance(have, Buffer) else _in_place(s, op, addend)
    if target is None or any(target is o for o in operands) or target.weights != row_major(result.shape):
        target = s.arena.allocate(result, s.position, last, elem=elem)
    target.last = max(target.last, last)
    if have is not target:
        s.write_into(addend, target)
        s.flush()
    return target, False


def _in_place(s: Scheduler, op: Op, addend: Value) -> Buffer | None:
    """A carried tile that the addend rescales element by element and that nothing else needs: its buffer can be
    overwritten.
    """
    start = row_major(addend.shape)
    for value, coords in s.analysis().walk([(addend, start)]):
        have = s.env.get(value)
        if (
            isinstance(have, Buffer)
            and value.op is None
            and coords == start
            and value.elem == addend.elem
            and value.block is op.block
            and not s.needed_later(value, {op})
        ):
            return have
    return None


def prepare_products(s: Scheduler, loop: Op) -> None:
    """Make room, before a loop, for the operands of its products that wait for those of further iterations."""
    for op in loop.regions[0][0].ops:
        if op.name == "tt.dot" and waits(op, loop):
            a, b, _ = op.args
            p = plan(a, b, s.vector_bits, s.context)
            if p.in_tiles:
                slots = slots_for(s, op, loop, p.packed, p.panel, partial(panel_weights, panel=p.panel, pair=p.pair))
                if slots is not None:
                    s.waiting[op] = slots


@anchor("tt.dot")
def _dot(s: Scheduler, op: Op) -> None:
    a, b, _ = op.args
    p = plan(a, b, s.vector_bits, s.context)
    slots = s.waiting.get(op)
    s.flush()
    if slots is not None:
        _tell(s, op, p, slots)
        _wait(s, op, p, slots)
        return
    ahead = [] if p.in_tiles else prefetch.find(s, op, (a, b))  # tiles are done before much could be fetched
    ends = ProductEnds() if p.in_tiles else product_ends(s, op)
    left, kept = rows_of(s, a, p.packed, p.pair, ends)
    right, unpacked, kept_right = panels_of(s, b, p.packed, p.panel, p.pair, a.shape[-2] == p.down, ends)
    _tell(s, op, p, None, in_place=(kept is None, kept_right is None))
    target, from_zero = accumulator_buffer(s, op, p.accumulator, (kept, kept_right))
    batch, m, k, n = prod(a.shape[:-2]), a.shape[-2], a.shape[-1], b.shape[-1]
    f = s.f
    in_place = kept is None or kept_right is None or unpacked is not None
    between = None
    if ahead and batch == 1:
        between = prefetch.between(s, ahead, blocks.numbered(m, n, p, unpacked is not None))

    def one(left: Matrix, right: Matrix, out_at: Reg) -> None:
        if p.in_tiles:
            tiles.multiply(f, p, Operands(left, right, out_at), (m, n, k), const(I64, 1), from_zero)
        else:
            at = Operands(left, right, out_at, unpacked)
            blocks.multiply(f, p, at, (m, n, k), from_zero, between, ends, ends.depth is not None and in_place)

    if batch == 1:
        one(left, right, target.address)
    else:
        packed, acc = llvm_type(p.packed), llvm_type(p.accumulator)
        with f.loop(const(I64, 0), const(I64, batch), const(I64, 1), at_least_once=True) as i:
            one(
                Matrix(f.gep(packed, left.address, f.mul(i, const(I64, m * k))), left.stride),
                replace(right, address=f.gep(packed, right.address, f.mul(i, const(I64, k * n)))),
                f.gep(acc, target.address, f.mul(i, const(I64, m * n))),
            )
    out = op.result.elem
    if out == p.accumulator:
        s.env[op.result] = target
        return
    if out not in ("f16", "f32", "f64"):
        raise Unsupported(f"a product with a result of {out}", "cpu", span=op.span)
    s.env[op.result] = target  # read as the accumulator's element; narrowed below
    narrow = s.arena.allocate(op.result, s.position, s.last_use(op.result), elem=out)
    wide = Value(op.result.shape, p.accumulator, "", None, 0, op.block)
    s.env[wide] = target
    s.nest([WriteRoot(wide, narrow, row_major(wide.shape), wide.shape, keep=False)])
    s.env[op.result] = narrow


def _wait(s: Scheduler, op: Op, p: Plan, slots: Slots) -> None:
    """Put the operands of a product into slots, and multiply what is in these where it is time."""
    a, b, sums = op.args
    f, target = s.f, s.env[sums]
    assert isinstance(target, Buffer)
    for value, buffer in zip((a, b), slots.next(f, a.numel, a.shape[1] * p.panel), strict=True):
        s.nest([WriteRoot(value, buffer, row_major(value.shape), value.shape)])
    filled, is_time = slots.advance(f, s.loops[-1])
    m, k, n = a.shape[0], a.shape[1], b.shape[1]

    def now() -> None:
        rows = Matrix(slots.left.address, const(I64, k * element_bits(p.packed) // 8))
        panels = packed_panels(slots.right.address, slots.count * k, p.panel, p.packed)
        tiles.multiply(f, p, Operands(rows, panels, target.address), (m, n, k), filled, False)

    f.when(is_time, now)
    s.env[op.result] = target


def _tell(s: Scheduler, op: Op, p: Plan, slots: Slots | None, in_place: tuple[bool, bool] = (False, False)) -> None:
    """The block of a product, which better instructions it was not given, and why, and for what it waits."""
    if not s.remarks:
        return
    if slots is not None:
        s.remarks.add(ProductWaits(op.span, slots.count, slots.count * op.args[0].shape[-1]))
    a, b = op.args[:2]
    block = p.packed, p.instruction, p.lanes, p.rows, p.vectors, p.by.rows if p.by is not None else 1, in_place
    s.remarks.add(RegisterBlock(op.span, (*op.result.shape, a.shape[-1]), a.elem, *block))
    for by in PRODUCTS:
        if by is p.by:
            break
        arm = s.context.cpu.has(NEON)
        if by.multiplies == a.elem == b.elem and (by.arch == "aarch64") == arm:
            needs = [by.feature, *([] if by.in_tiles else [f"vectors of {32 * by.columns} bits"])]
            needs += [f"{by.rows} rows"] if by.in_tiles else []
            why = f"it needs {', '.join(needs)}, {by.columns} columns and a depth of {by.depth}"
            why += "" if s.context.matrix_units else ", and matrix_units=True"
            s.remarks.add(InstructionDeclined(op.span, by.name, why))
