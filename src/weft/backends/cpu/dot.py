"""Matrix products: operands packed into scratch, then a register-blocked kernel.

A (M x K) is packed by rows, B (K x N) in panels as wide as the register block, so that the inner loop reads both in
order. The block is `rows` x `vectors` accumulators kept in registers over the whole of K; each step loads `vectors`
vectors of B and broadcasts one element of A for each row (Goto and van de Geijn, Anatomy of High-Performance Matrix
Multiplication, 2008, section 4, with the tile in place of their cache blocks). The accumulator tile is updated in place
wherever nobody else needs its old contents.

Half, fp8 and, without the instruction, bf16 operands are widened to single when they are packed. With AVX512-BF16,
pairs along K are multiplied by `vdpbf16ps`; with AVX512-VNNI, 8-bit integers as pairs of 16 bits by `vpdpwssd`; on
AArch64, quadruples of 8-bit integers by `sdot`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from weft.backends.cpu import prefetch, tiles
from weft.backends.cpu.buffers import Buffer
from weft.backends.cpu.coords import log2, row_major
from weft.backends.cpu.elementwise import llvm_type
from weft.backends.cpu.program import Op, Value
from weft.backends.cpu.roots import WriteRoot
from weft.backends.cpu.schedule import Scheduler, anchor
from weft.backends.llvm.emit import Function
from weft.backends.llvm.values import I64, const, vec
from weft.backends.llvm.values import Value as Reg
from weft.base import Unsupported
from weft.base.remarks import InstructionDeclined, RegisterBlock
from weft.targets import NEON, PRODUCTS, Product


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


def plan(a: Value, b: Value, vector_bits: int, features: frozenset[str]) -> Plan:
    """The way to multiply these tiles on a host with these features."""
    n, m = b.shape[-1], a.shape[-2]
    by = instruction_for(a, b, vector_bits, features)
    if by is not None:
        block = (by.columns, *tiles.block_of(m, n)) if by.in_tiles else _block(m, n, by.columns)
        return Plan(by.elements, by.accumulator, by.name, *block, by)
    if a.elem == "f64" or b.elem == "f64":
        return Plan("f64", "f64", "fma", *_block(m, n, vector_bits // 64))
    if a.elem[0] == "i":
        return Plan("i32", "i32", "muladd", *_block(m, n, vector_bits // 32))
    return Plan("f32", "f32", "fma", *_block(m, n, vector_bits // 32))


def is_in_tiles(op: Op, features: frozenset[str]) -> bool:
    """Whether an operation is a product that is computed by tile registers."""
    if op.name != "tt.dot":
        return False
    by = instruction_for(op.args[0], op.args[1], 0, features)
    return by is not None and by.in_tiles


def _block(m: int, n: int, width: int) -> tuple[int, int, int]:
    """Lanes, rows and vectors of a block of registers."""
    lanes = min(width, n)
    # Eight accumulators cover the latency of the multiply-add; fewer rows want more vectors.
    rows = min(m, 4)
    return lanes, rows, min(8 // rows if rows > 1 else 4, max(1, n // lanes))


def panel_weights(shape: Sequence[int], panel: int, pair: int) -> tuple[tuple[int, ...], ...]:
    """Offset bits of B's packing: pair of K, column within the panel, the rest of K, the panel, then the batch."""
    k, n = log2(shape[-2]), log2(shape[-1])
    pair_bits, low = log2(pair), log2(panel)
    column = [pair_bits + i if i < low else i + k for i in range(n)]
    row = [i if i < pair_bits else i + low for i in range(k)]
    leading = [tuple(w + 0 for w in weights) for weights in row_major(shape)[:-2]]
    return (*leading, tuple(row), tuple(column))


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


def pack(s: Scheduler, value: Value, elem: str, weights: tuple[tuple[int, ...], ...]) -> Buffer:
    """A tile in scratch with a given element type and layout."""
    have = s.env.get(value)
    if isinstance(have, Buffer) and have.elem == elem and have.weights == weights:
        return have
    if value.elem == elem and not isinstance(have, Buffer) and len(value.users) == 1:
        return s.materialise(value, weights)
    s.flush()
    buffer = s.arena.allocate(value, s.position, s.position, elem=elem, weights=weights)
    s.nest([WriteRoot(value, buffer, row_major(value.shape), value.shape, keep=False)])
    return buffer


def accumulator_buffer(s: Scheduler, op: Op, elem: str, operands: tuple[Buffer, Buffer]) -> tuple[Buffer, bool]:
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


@anchor("tt.dot")
def _dot(s: Scheduler, op: Op) -> None:
    a, b, _ = op.args
    p = plan(a, b, s.vector_bits, s.context.product_features)
    if s.remarks:
        _tell(s, op, p)
    out = op.result.elem
    panel = p.lanes * p.vectors
    s.flush()
    ahead = prefetch.find(s, op, (a, b))
    left = pack(s, a, p.packed, row_major(a.shape))
    right = pack(s, b, p.packed, panel_weights(b.shape, panel, p.pair))
    target, from_zero = accumulator_buffer(s, op, p.accumulator, (left, right))
    batch = 1
    for size in a.shape[:-2]:
        batch *= size
    m, k, n = a.shape[-2], a.shape[-1], b.shape[-1]
    f = s.f

    between = prefetch.between(s, ahead, (m // p.down) * (n // panel)) if batch == 1 else None

    def one(left_at: Reg, right_at: Reg, out_at: Reg) -> None:
        multiply(f, p, left_at, right_at, out_at, (m, n, k), from_zero, between)

    if batch == 1:
        one(left.address, right.address, target.address)
    else:
        packed, acc = llvm_type(p.packed), llvm_type(p.accumulator)
        with f.loop(const(I64, 0), const(I64, batch), const(I64, 1), at_least_once=True) as i:
            one(
                f.gep(packed, left.address, f.mul(i, const(I64, m * k))),
                f.gep(packed, right.address, f.mul(i, const(I64, k * n))),
                f.gep(acc, target.address, f.mul(i, const(I64, m * n))),
            )
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


def _tell(s: Scheduler, op: Op, p: Plan) -> None:
    """The block of a product, and which better instructions it was not given, and why."""
    a, b = op.args[:2]
    block = p.packed, p.instruction, p.lanes, p.rows, p.vectors, p.by.rows if p.by is not None else 1
    s.remarks.add(RegisterBlock(op.span, (*op.result.shape, a.shape[-1]), a.elem, *block))
    for by in PRODUCTS:
        if by is p.by:
            break
        arm = NEON in s.context.cpu_features
        if by.multiplies == a.elem == b.elem and (by.arch == "aarch64") == arm:
            needs = [by.feature, *([] if by.in_tiles else [f"vectors of {32 * by.columns} bits"])]
            needs += [f"{by.rows} rows"] if by.in_tiles else []
            why = f"it needs {', '.join(needs)}, {by.columns} columns and a depth of {by.depth}"
            why += "" if s.context.matrix_units else ", and matrix_units=True"
            s.remarks.add(InstructionDeclined(op.span, by.name, why))


def multiply(
    f: Function,
    p: Plan,
    a: Reg,
    b: Reg,
    c: Reg,
    size: tuple[int, int, int],
    from_zero: bool,
    between: prefetch.Between | None = None,
) -> None:
    """C (m x n, row-major) = or += A (packed by rows) times B (packed in panels); `between` runs once in each register
    block.
    """
    m, n, k = size
    panel = p.lanes * p.vectors
    packed, acc_type = llvm_type(p.packed), llvm_type(p.accumulator, p.lanes if p.lanes > 1 else 0)
    step = p.pair * min(4, k // p.pair)

    def tile_block(by: Product, panel_at: Reg, column: Reg, row: Reg) -> None:
        left = f.gep(packed, a, f.mul(row, const(I64, k)))
        sums = f.gep(acc_type, c, f.add(f.mul(row, const(I64, n)), column))
        at = tiles.Operands(left, panel_at, sums, k * 4 // p.pair, panel * 4, n * 4)
        tiles.multiply(f, by, (p.rows, p.vectors), at, const(I64, k // by.depth), from_zero)

    def block(panel_at: Reg, column: Reg, row: Reg) -> None:
        if p.by is not None and p.by.in_tiles:
            tile_block(p.by, panel_at, column, row)
            return
        rows = [f.gep(packed, a, f.mul(f.add(row, const(I64, i)), const(I64, k))) for i in range(p.rows)]
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
                b_row = f.gep(packed, panel_at, f.mul(at_k, const(I64, panel)))
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
        panel_at = f.gep(packed, b, f.mul(column, const(I64, k)))
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
    if p.instruction == "sdot":  # where it is missing, LLVM makes long multiplications and additions
        n = 4 * p.lanes
        wide = [f.cast("sext", f.bitcast(x, vec("i8", n)), vec("i32", n)) for x in (left, right)]
        return f.call(f"llvm.vector.partial.reduce.add.v{p.lanes}i32.v{n}i32", acc.type, [acc, f.mul(*wide)])
    halves = vec("i16", 2 * p.lanes)
    return f.call("llvm.x86.avx512.vpdpwssd.512", acc.type, [acc, f.bitcast(left, halves), f.bitcast(right, halves)])


__all__ = ["Plan", "multiply", "panel_weights", "plan"]
