"""Products by vectors: blocks of sums in registers, B in panels.

A block is `rows` x `vectors` sums that stay in registers over the whole of K; each step along K loads `vectors` vectors
of B and multiplies them by one element of A for each row (Goto and van de Geijn, Anatomy of High-Performance Matrix
Multiplication, 2008, section 4, with the tile in place of their cache blocks):

    for each run of blocks as high as each other, for each of its rows of blocks:
        for each panel of B, as wide as a block:
            sums = the block of C
            for k: for each row i: sums[i] += A[row + i, k] * panel[k]
            the block of C = sums

The rows of A that a row of blocks reads stay in the first cache while the panels come from the second, one after the
other. Where B is still where the kernel loads it from, the first row of blocks puts what it loads into the panels: to
pack it beforehand would wait for memory with nothing to multiply meanwhile.
"""

from __future__ import annotations

from dataclasses import dataclass

from weft.backends.cpu.access import load_vector
from weft.backends.cpu.coords import log2
from weft.backends.cpu.elementwise import llvm_type
from weft.backends.cpu.operands import Operands
from weft.backends.cpu.plans import Plan
from weft.backends.cpu.prefetch import Between
from weft.backends.cpu.product_ends import ProductEnds
from weft.backends.llvm.emit import Function
from weft.backends.llvm.values import I8, I32, I64, Value as Reg, const, const_lanes, vec

UNROLLED, UNROLLED_REST = 48, 16
"""Multiplications of vectors in the body of the innermost loop, at most: of blocks as high as planned, of others."""
REST = 4
"""Rows of the blocks that pack B, and of those below the last that is as high as planned."""

ALL_OF_IT = ProductEnds()

INTRINSICS = {
    "vdpbf16ps": "llvm.x86.avx512bf16.dpbf16ps.512",
    "vpdpwssd": "llvm.x86.avx512.vpdpwssd.512",
    "sdot": "llvm.aarch64.neon.sdot.v4i32.v16i8",
}


@dataclass(frozen=True)
class Run:
    """Rows of blocks, one below the other: the first row, how many rows of blocks, the height of each.

    A run that `packs` reads B where it lies and puts it into the panels.
    """

    first: int
    count: int
    rows: int
    packs: bool = False


def runs_of(m: int, rows: int, packs: bool) -> list[Run]:
    """The runs that make up m rows with blocks of `rows` rows: m=32 is 4 that pack, four times 6, and 4."""
    first = REST if packs else 0
    rest = m - first
    while rest % rows:
        rest -= REST
    main = first + rest
    runs = [Run(0, 1, REST, packs=True), Run(first, rest // rows, rows), Run(main, (m - main) // REST, REST)]
    return [run for run in runs[not packs :] if run.count]


def numbered(m: int, n: int, p: Plan, packs: bool) -> int:
    """How many blocks are told their number, a power of two: most of the longest run."""
    longest = max(run.count for run in runs_of(m, p.rows, packs))
    return (1 << log2(longest)) * (n // p.panel)


def multiply(
    f: Function,
    p: Plan,
    at: Operands,
    size: tuple[int, int, int],
    from_zero: bool,
    between: Between | None = None,
    ends: ProductEnds = ALL_OF_IT,
    exactly: bool = False,
) -> None:
    """C (m x n) = or += A times B, as far as some ends, and along K no further if `exactly`. Blocks of the longest run
    call `between` with their number.
    """
    m, n, _ = size
    runs = runs_of(m, p.rows, at.unpacked is not None)
    longest, across = max(runs, key=lambda run: run.count), n // p.panel
    panels = _blocks_before(f, ends.columns, 0, p.panel, across)
    for run in runs:
        count = _blocks_before(f, ends.rows, run.first, run.rows, run.count)
        with f.loop(const(I64, 0), count, const(I64, 1), at_least_once=ends.rows is None) as number:
            row = f.add(const(I64, run.first), f.mul(number, const(I64, run.rows)))
            with f.loop(const(I64, 0), panels, const(I64, 1), at_least_once=ends.columns is None) as panel:
                if between is not None and run is longest:
                    down = f.and_(number, const(I64, (1 << log2(run.count)) - 1))
                    between(f.add(f.mul(down, const(I64, across)), panel))
                _block(f, p, at, size, run, (row, f.mul(panel, const(I64, p.panel))), from_zero, ends.depth, exactly)


def _blocks_before(f: Function, end: Reg | None, first: int, length: int, count: int) -> Reg:
    """How many of `count` blocks of some length, from a first place on, begin before an end."""
    if end is None:
        return const(I64, count)
    rest = f.sub(end, const(I64, first))
    blocks = f.bin("udiv", f.add(rest, const(I64, length - 1)), const(I64, length))
    blocks = f.select(f.icmp("sgt", rest, const(I64, 0)), blocks, const(I64, 0))
    return f.select(f.icmp("ult", blocks, const(I64, count)), blocks, const(I64, count))


def _block(
    f: Function,
    p: Plan,
    at: Operands,
    size: tuple[int, int, int],
    run: Run,
    place: tuple[Reg, Reg],
    from_zero: bool,
    depth: Reg | None,
    exactly: bool,
) -> None:
    """One block of sums, whose first row and column are given, over the first `depth` elements of K. It may go on to a
    multiple of what the innermost loop does at once, unless it is to be `exactly` these.
    """
    (row, column), (_, n, k) = place, size
    lanes = p.lanes if p.lanes > 1 else 0
    packed, acc_type = llvm_type(p.packed), llvm_type(p.accumulator, lanes)
    word = packed if p.by is None else I32
    source = at.unpacked if run.packs and at.unpacked is not None else at.b
    panel, start_of_b = at.b.panel(f, column), source.panel(f, column)
    much = run.rows == p.rows and not run.packs and p.by is None  # in long bodies LLVM takes vpdpwssd apart
    unrolled = (UNROLLED if much else UNROLLED_REST) // (run.rows * p.vectors)
    step = p.pair * (1 if exactly else min(1 << log2(max(1, unrolled)), k // p.pair))
    rows = [at.a.row(f, f.add(row, const(I64, i))) for i in range(run.rows)]
    outs = []
    for i in range(run.rows):
        out = f.gep(acc_type, at.c, f.add(f.mul(f.add(row, const(I64, i)), const(I64, n)), column))
        outs += [f.gep(acc_type, out, const(I64, j * p.lanes)) for j in range(p.vectors)]
    masks = _before(f, source.columns, column, p)
    start = [const(acc_type, 0) if from_zero else f.load(acc_type, out, 4) for out in outs]

    def inner(kk: Reg, acc: list[Reg]) -> list[Reg]:
        sums = list(acc)
        for u in range(0, step, p.pair):
            at_k = f.add(kk, const(I64, u))
            there = f.gep(I8, start_of_b, f.mul(at_k, source.stride))
            vectors = [f.gep(packed, there, const(I64, j * p.lanes * p.pair)) for j in range(p.vectors)]
            columns = [load_vector(f, vec(word.elem, lanes), *v) for v in zip(vectors, masks, strict=True)]
            if run.packs:
                here = f.gep(I8, panel, f.mul(at_k, at.b.stride))
                for j, vector in enumerate(columns):
                    f.store(vector, f.gep(packed, here, const(I64, j * p.lanes)), 4)
            for i in range(run.rows):
                left = f.load(word, f.gep(packed, rows[i], at_k), 4 // p.pair)
                left = f.splat(left, lanes) if lanes else left
                for j in range(p.vectors):
                    index = i * p.vectors + j
                    sums[index] = _accumulate(f, p, sums[index], left, columns[j])
        return sums

    stop = const(I64, k) if depth is None else depth
    final = f.loop_carrying(const(I64, 0), stop, const(I64, step), start, inner, at_least_once=depth is None)
    for total, out in zip(final, outs, strict=True):
        f.store(total, out, 4)


def _before(f: Function, end: Reg | None, column: Reg, p: Plan) -> list[Reg | None]:
    """For each vector of a panel that begins with a column, its lanes before an end, if there is one."""
    if end is None:
        return [None] * p.vectors
    lanes = const_lanes(vec("i32", p.lanes), list(range(p.lanes)))
    rest = f.cast("trunc", f.sub(end, column), I32)
    return [f.icmp("slt", lanes, f.splat(f.sub(rest, const(I32, j * p.lanes)), p.lanes)) for j in range(p.vectors)]


def _accumulate(f: Function, p: Plan, acc: Reg, left: Reg, right: Reg) -> Reg:
    if p.instruction == "fma":
        return f.fma(left, right, acc)
    if p.instruction == "muladd":
        return f.add(acc, f.mul(left, right))
    neighbours = vec(llvm_type(p.packed).elem, p.pair * p.lanes)
    return f.call(INTRINSICS[p.instruction], acc.type, [acc, f.bitcast(left, neighbours), f.bitcast(right, neighbours)])
