"""Matrix products: operands packed into scratch, then a register-blocked kernel.

B (K x N) is packed in panels as wide as the register block, so that the inner loop reads it in order; A (M x K) is read
by rows (see `operands`). The block is `rows` x `vectors` accumulators kept in registers over the whole of K; each step
loads `vectors` vectors of B and broadcasts one element of A for each row (Goto and van de Geijn, Anatomy of
High-Performance Matrix Multiplication, 2008, section 4, with the tile in place of their cache blocks). The accumulator
tile is updated in place wherever nobody else needs its old contents.

Half, fp8 and, without an instruction, bf16 operands are widened to single when they are packed. The instructions of
`targets.PRODUCTS` multiply pairs or quadruples along K at once: those of vectors here, of tile registers in `tiles`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Protocol

from weft.backends.cpu import prefetch, tiles
from weft.backends.cpu.buffers import Buffer
from weft.backends.cpu.coords import row_major
from weft.backends.cpu.deferred import Slots, slots_for, waits
from weft.backends.cpu.elementwise import llvm_type
from weft.backends.cpu.operands import Panels, Rows, packed_panels, panel_weights, panels_of, rows_of
from weft.backends.cpu.program import Op, Value, element_bits
from weft.backends.cpu.roots import WriteRoot
from weft.backends.cpu.schedule import Scheduler, anchor
from weft.backends.llvm.emit import Function
from weft.backends.llvm.values import I8, I64, Value as Reg, const, vec
from weft.base import Unsupported
from weft.base.remarks import InstructionDeclined, ProductWaits, RegisterBlock
from weft.targets import CPU, NEON, PRODUCTS, Product

UNROLLED = 32
"""Multiplications of vectors in the body of the innermost loop."""


@dataclass(frozen=True)
class Plan:
    """How a product is computed: the packed element, the accumulator, the instruction and the block of registers.

    A block is `rows` rows of `vectors` vectors of `lanes` sums; by an instruction that works on tiles, `rows` rows of
    `vectors` tiles.
    """

    packed: str  # element of the packed operands
    accumulator: str
    instruction: str  # "fma", "muladd", or the name of `by`
    lanes: int
    rows: int
    vectors: int
    by: Product | None = None

    @property
    def pair(self) -> int:
        """Elements of K multiplied by one lane of one instruction."""
        return self.by.pair if self.by is not None else 1

    @property
    def panel(self) -> int:
        """Columns of sums of a block."""
        return self.lanes * self.vectors

    @property
    def down(self) -> int:
        """Rows of sums of a block."""
        return self.rows * (self.by.rows if self.by is not None else 1)


def instruction_for(a: Value, b: Value, vector_bits: int, features: frozenset[str]) -> Product | None:
    """The instruction by which these tiles are multiplied, if there is one for more than one element at a time."""
    n, m, k = b.shape[-1], a.shape[-2], a.shape[-1]
    for by in PRODUCTS:
        fits = m >= by.rows and n >= by.columns and k >= by.depth and (by.in_tiles or vector_bits == 32 * by.columns)
        if fits and by.feature in features and a.elem == b.elem == by.multiplies:
            return by
    return None


def plan(a: Value, b: Value, vector_bits: int, context: Context) -> Plan:
    """The way to multiply these tiles on the processor of a compilation, with vectors of so many bits."""
    n, m, registers = b.shape[-1], a.shape[-2], context.cpu.vector_registers
    by = instruction_for(a, b, vector_bits, context.product_features)
    if by is not None:
        block = (by.columns, *tiles.block_of(m, n)) if by.in_tiles else _block(m, n, by.columns, registers)
        return Plan(by.elements, by.accumulator, by.name, *block, by)
    if a.elem == "f64" or b.elem == "f64":
        return Plan("f64", "f64", "fma", *_block(m, n, vector_bits // 64, registers))
    if a.elem[0] == "i":
        return Plan("i32", "i32", "muladd", *_block(m, n, vector_bits // 32, registers))
    return Plan("f32", "f32", "fma", *_block(m, n, vector_bits // 32, registers))


class Context(Protocol):
    """What a plan depends on besides the tiles."""

    cpu: CPU
    product_features: frozenset[str]


def is_in_tiles(op: Op, features: frozenset[str]) -> bool:
    """Whether an operation is a product that is computed by tile registers."""
    if op.name != "tt.dot":
        return False
    by = instruction_for(op.args[0], op.args[1], 0, features)
    return by is not None and by.in_tiles


def _block(m: int, n: int, width: int, registers: int) -> tuple[int, int, int]:
    """Lanes, rows and vectors of a block of registers: half of these, or of 32 or more 16, hold sums.

    Eight cover the latency of the multiply-add. 16 in 4x4 load eight values for 16 multiplications, in 4x2 six for
    eight; fewer rows want more vectors.
    """
    lanes = min(width, n)
    rows, sums = min(m, 4), 16 if registers >= 32 else 8
    return lanes, rows, min(sums // rows if rows > 1 else sums // 2, max(1, n // lanes))


def is_zero(value: Value) -> bool:
    """Whether a tile is known to be all zeros."""
    op = value.op
    while op is not None and op.name in ("tt.splat", "tt.broadcast"):
        op = op.args[0].op
    return (
        op is not None
        and op.name == "arith.constant"
        and not isinstance(op.attrs["value"], list)
        and op.attrs["value"] == 0
    )


def accumulator_buffer(s: Scheduler, op: Op, elem: str, operands: Sequence[Buffer | None]) -> tuple[Buffer, bool]:
    """The buffer that receives a product, holding the addend; and whether it starts from zero instead. Not an
    operand's.
    """
    addend, result = op.args[2], op.result
    last = s.last_use(result)
    weights = row_major(result.shape)
    if is_zero(addend) and addend not in s.env:
        return s.arena.allocate(result, s.position, last, elem=elem), True
    s.flush()
    have = s.env.get(addend)
    if elem == addend.elem and addend.block is op.block:
        target = have if isinstance(have, Buffer) else _in_place(s, op, addend)
        free = target is not None and all(target is not o for o in operands)
        if free and target is not None and target.weights == weights and not s.needed_later(addend, {op}):
            target.last = max(target.last, last)
            if have is not target:
                s.write_into(addend, target)
                s.flush()
            return target, False
    buffer = s.arena.allocate(result, s.position, last, elem=elem)
    s.write_into(addend, buffer)
    s.flush()
    return buffer, False


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
            if p.by is not None and p.by.in_tiles:
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
    in_tiles = p.by is not None and p.by.in_tiles  # they are done before much could be fetched
    ahead = [] if in_tiles else prefetch.find(s, op, (a, b))
    left, kept = rows_of(s, a, p.packed)
    right, kept_right = panels_of(s, b, p.packed, p.panel, p.pair, once=a.shape[-2] == p.down)
    _tell(s, op, p, None, in_place=(kept is None, kept_right is None))
    target, from_zero = accumulator_buffer(s, op, p.accumulator, (kept, kept_right))
    batch = 1
    for size in a.shape[:-2]:
        batch *= size
    m, k, n = a.shape[-2], a.shape[-1], b.shape[-1]
    f = s.f
    between = prefetch.between(s, ahead, (m // p.down) * (n // p.panel)) if batch == 1 else None

    def one(left: Rows, right: Panels, out_at: Reg) -> None:
        multiply(f, p, (left, right, out_at), (m, n, k), const(I64, 1), from_zero, between)

    if batch == 1:
        one(left, right, target.address)
    else:
        packed, acc = llvm_type(p.packed), llvm_type(p.accumulator)
        with f.loop(const(I64, 0), const(I64, batch), const(I64, 1), at_least_once=True) as i:
            one(
                Rows(f.gep(packed, left.address, f.mul(i, const(I64, m * k))), left.stride),
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
        rows = Rows(slots.left.address, const(I64, k * element_bits(p.packed) // 8))
        panels = packed_panels(slots.right.address, slots.count * k, p.panel, p.packed)
        multiply(f, p, (rows, panels, target.address), (m, n, k), filled, False)

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


def multiply(
    f: Function,
    p: Plan,
    at: tuple[Rows, Panels, Reg],
    size: tuple[int, int, int],
    pieces: Reg,
    from_zero: bool,
    between: prefetch.Between | None = None,
) -> None:
    """C (m x n, row-major) = or += A (by rows) times B (in panels).

    For tile registers A may be several `pieces` of `size`, one behind the other; a panel of B goes on through them.
    `between` runs once in each register block.
    """
    (a, b, c), (m, n, k) = at, size
    panel = p.panel
    packed, acc_type = llvm_type(p.packed), llvm_type(p.accumulator, p.lanes if p.lanes > 1 else 0)
    step = p.pair * min(max(1, UNROLLED // (p.rows * p.vectors)), k // p.pair)

    def tile_block(by: Product, panel_at: Reg, column: Reg, row: Reg) -> None:
        sums = f.gep(acc_type, c, f.add(f.mul(row, const(I64, n)), column))
        left = Rows(a.at(f, row), a.stride)
        at = tiles.Operands(left, panel_at, sums, panel * 4, n * 4, m * k * 4 // p.pair, k)
        tiles.multiply(f, by, (p.rows, p.vectors), at, pieces, from_zero)

    def block(panel_at: Reg, column: Reg, row: Reg) -> None:
        if p.by is not None and p.by.in_tiles:
            tile_block(p.by, panel_at, column, row)
            return
        rows = [a.at(f, f.add(row, const(I64, i))) for i in range(p.rows)]
        outs = []
        for i in range(p.rows):
            at = f.gep(acc_type, c, f.add(f.mul(f.add(row, const(I64, i)), const(I64, n)), column))
            outs.append([f.gep(acc_type, at, const(I64, j * p.lanes)) for j in range(p.vectors)])
        if from_zero:
            start = [const(acc_type, 0) for _ in range(p.rows * p.vectors)]
        else:
            start = [f.load(acc_type, at, 4) for row_at in outs for at in row_at]

        def inner(kk: Reg, acc: list[Reg]) -> list[Reg]:
            state = list(acc)
            for u in range(0, step, p.pair):
                at_k = f.add(kk, const(I64, u))
                b_row = f.gep(I8, panel_at, f.mul(at_k, b.stride))
                columns = [_b_vector(f, p, b_row, j) for j in range(p.vectors)]
                for i in range(p.rows):
                    left = _a_broadcast(f, p, f.gep(packed, rows[i], at_k))
                    for j in range(p.vectors):
                        index = i * p.vectors + j
                        state[index] = _accumulate(f, p, state[index], left, columns[j])
            return state

        final = f.loop_carrying(const(I64, 0), const(I64, k), const(I64, step), start, inner, at_least_once=True)
        for i in range(p.rows):
            for j in range(p.vectors):
                f.store(final[i * p.vectors + j], outs[i][j], 4)

    with f.loop(const(I64, 0), const(I64, n), const(I64, panel), at_least_once=True) as column:
        panel_at = b.at(f, column)
        with f.loop(const(I64, 0), const(I64, m), const(I64, p.down), at_least_once=True) as row:
            if between is not None:
                blocks_down = const(I64, m // p.down)
                number = f.add(
                    f.mul(f.bin("udiv", column, const(I64, panel)), blocks_down), f.bin("udiv", row, const(I64, p.down))
                )
                between(number)
            block(panel_at, column, row)


def _b_vector(f: Function, p: Plan, row: Reg, j: int) -> Reg:
    at = f.gep(llvm_type(p.packed), row, const(I64, j * p.lanes * p.pair))
    if p.by is not None:
        return f.load(vec("i32", p.lanes), at, 4)
    return f.load(vec(llvm_type(p.packed).elem, p.lanes if p.lanes > 1 else 0), at, 4)


def _a_broadcast(f: Function, p: Plan, at: Reg) -> Reg:
    lanes = p.lanes if p.lanes > 1 else 0
    if p.by is not None:
        return f.splat(f.load(vec("i32", 0), at, 4 // p.pair), p.lanes)
    value = f.load(llvm_type(p.packed), at, 4)
    return f.splat(value, lanes) if lanes else value


def _accumulate(f: Function, p: Plan, acc: Reg, left: Reg, right: Reg) -> Reg:
    if p.instruction == "fma":
        return f.fma(left, right, acc)
    if p.instruction == "muladd":
        return f.add(acc, f.mul(left, right))
    if p.instruction == "vdpbf16ps":
        pairs = vec("bfloat", 2 * p.lanes)
        args = [acc, f.bitcast(left, pairs), f.bitcast(right, pairs)]
        return f.call("llvm.x86.avx512bf16.dpbf16ps.512", acc.type, args)
    if p.instruction == "sdot":
        quads = vec("i8", 4 * p.lanes)
        args = [acc, f.bitcast(left, quads), f.bitcast(right, quads)]
        return f.call("llvm.aarch64.neon.sdot.v4i32.v16i8", acc.type, args)
    halves = vec("i16", 2 * p.lanes)
    return f.call("llvm.x86.avx512.vpdpwssd.512", acc.type, [acc, f.bitcast(left, halves), f.bitcast(right, halves)])

