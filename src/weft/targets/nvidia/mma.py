"""mma.sync: one warp multiplies two small matrices that lie in its registers.

A fragment is cut into cells of 8 rows by four words. Lanes count the words of a row first, then the rows; registers
count the elements of a word, then the other half of the rows, then the words further along the summed dimension:

    A (rows are m, a row is along k), m16n8k16 of f16      lane 0: a0 a1 | lane 1: a0 a1 | ...      lane 0: a4 a5 | ...
                                                           8 rows further down a2 a3                        a6 a7

B is cut the same way with columns for rows, the accumulator with n for k and two elements a word.

Products are exact and summed with the accumulator in f64, then rounded once; a tensor core keeps fewer bits (f32 or
more, it says, in no order it names), so that it agrees where sums are exact and is close elsewhere.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np

from weft.layouts import LinearLayout, NVMMADistributedLayout
from weft.machines import Machine

from ..instruction import BITS, Array, Instruction, Operand
from ..meaning import from_matrix, multiply, tf32, to_matrix

PTX_TYPES = {"f8E4M3FN": "e4m3", "f8E5M2": "e5m2"}
# (m, n, k), accumulator, operand type, since, cycles of a warp on an A100 (H100 for what only it has)
SHAPES: list[tuple[tuple[int, int, int], str, str, int, float]] = [
    ((16, 8, 8), "f16", "f16", 75, 4),
    ((16, 8, 8), "f32", "f16", 75, 4),
    ((16, 8, 16), "f16", "f16", 80, 8),
    ((16, 8, 16), "f32", "f16", 80, 8),
    ((16, 8, 8), "f32", "bf16", 80, 4),
    ((16, 8, 16), "f32", "bf16", 80, 8),
    ((16, 8, 4), "f32", "tf32", 80, 4),
    ((16, 8, 8), "f32", "tf32", 80, 8),
    ((8, 8, 4), "f64", "f64", 80, 16),
    ((16, 8, 4), "f64", "f64", 90, 16),
    ((16, 8, 8), "f64", "f64", 90, 32),
    ((16, 8, 16), "f64", "f64", 90, 64),
    ((16, 8, 32), "f32", "f8E4M3FN", 89, 16),
    ((16, 8, 32), "f32", "f8E5M2", 89, 16),
]
SATURATING = ".satfinite"
"""At the end of the name of a product of integers: sums stop at the ends of int32 where otherwise they wrap."""
INTEGERS = [((8, 8, 16), 75, 2.0), ((16, 8, 16), 80, 4.0), ((16, 8, 32), 80, 8.0)]


def fragment(rows: str, row_count: int, along: str, length: int, width: int) -> LinearLayout:
    """One operand of mma.sync: `row_count` rows (8 or 16) along `rows`, `length` elements of `along` in each.

    `width` elements make a word.
    """
    names = sorted((rows, along))

    def at(row: int, column: int) -> tuple[int, int]:
        return (row, column) if names[0] == rows else (column, row)

    def powers(low: int, high: int) -> list[int]:
        return [1 << i for i in range(low.bit_length() - 1, high.bit_length() - 1)]

    registers = [at(0, x) for x in powers(1, width)]
    registers += [at(x, 0) for x in powers(8, row_count)]
    registers += [at(0, x) for x in powers(4 * width, length)]
    lanes = [at(0, x) for x in powers(width, 4 * width)] + [at(x, 0) for x in (1, 2, 4)]
    sizes = {rows: row_count, along: length}
    return LinearLayout.from_bases({"register": registers, "lane": lanes}, {n: sizes[n] for n in names})


def _semantics(
    a: LinearLayout,
    b: LinearLayout,
    c: LinearLayout,
    accumulator: str,
    views: tuple[str | None, str | None],
    saturates: bool,
) -> Callable[..., tuple[Array, ...]]:
    def view(x: Array, elements: str | None) -> Array:
        if elements == "tf32":
            return tf32(x)
        return x.view(np.uint8) if elements == "u8" else x

    def run(x: Array, y: Array, z: Array) -> tuple[Array, ...]:
        left, right = to_matrix(view(x, views[0]), a), to_matrix(view(y, views[1]), b)
        return (from_matrix(multiply(left, right, to_matrix(z, c), accumulator, saturates), c),)

    return run


def _named(warps: Sequence[int], machine: Machine) -> NVMMADistributedLayout:
    """The layout of a result that so many warps along each dimension make of these instructions."""
    return NVMMADistributedLayout([2, 0], list(warps), [1] * (len(warps) - 2) + [16, 8])


def _entry(
    shape: tuple[int, int, int],
    acc: str,
    names: tuple[str, str],
    elem: str,
    since: int,
    cost: float,
    modifier: str = "",
) -> Instruction:
    m, n, k = shape
    width = max(1, 32 // BITS[elem])
    a = fragment("dim0", m, "dim1", k, width)
    b = fragment("dim1", n, "dim0", k, width)
    c = fragment("dim0", m, "dim1", n, 2)
    kinds = {"f64": "d", "tf32": "r", "f32": "f", "f16": "r", "i32": "r"}
    word, total = kinds.get(elem, "r"), kinds[acc]
    acc_ptx = {"i32": "s32"}.get(acc, acc)
    size = f"m{m}n{n}k{k}"
    plain = f"mma.sync.{size}.{acc_ptx}.{names[0]}.{names[1]}.{acc_ptx}"
    stored = "f32" if elem == "tf32" else elem
    c_count = m * n // 32
    views = tuple("tf32" if t == "tf32" else "u8" if t == "u8" else None for t in names)
    return Instruction(
        name=plain + modifier,
        since=since,
        text=f"mma.sync.aligned.{size}.row.col{modifier}.{acc_ptx}.{names[0]}.{names[1]}.{acc_ptx} "
        "<d*>, <a*>, <b*>, <c*>;",
        operands=(
            Operand("a", stored, m * k // 32, word, a),
            Operand("b", stored, n * k // 32, word, b),
            Operand("c", acc, c_count, total, c),
        ),
        results=(Operand("d", acc, c_count, total, c),),
        semantics=_semantics(a, b, c, acc, (views[0], views[1]), bool(modifier)),
        cost=cost,
        version="8.4" if since == 89 else "7.8" if since == 90 else "7.0",
        params={
            "shape": shape,
            "accumulator": acc,
            "types": names,
            "multiplies": None if modifier else tuple("u8" if t == "u8" else stored for t in names),
            "tile": (16, 8),
            "named": _named,
            "described": "NVMMADistributedLayout([2, 0], warps_per_cta, [16, 8])",
            "saturating": f"{plain}{SATURATING}" if acc == "i32" else "",
        },
    )


def mma_instructions() -> Iterator[Instruction]:
    """All entries of mma.sync."""
    for shape, acc, elem, since, cost in SHAPES:
        name = PTX_TYPES.get(elem, elem)
        yield _entry(shape, acc, (name, name), elem, since, cost)
    yield _mixed("e4m3", "e5m2")
    yield _mixed("e5m2", "e4m3")
    for shape, since, cost in INTEGERS:
        for left in ("s8", "u8"):
            for right in ("s8", "u8"):
                for modifier in ("", SATURATING):
                    yield _entry(shape, "i32", (left, right), "i8", since, cost, modifier)


def _mixed(left: str, right: str) -> Instruction:
    """fp8 of two kinds."""
    elems = {ptx: elem for elem, ptx in PTX_TYPES.items()}
    plain = _entry((16, 8, 32), "f32", (left, right), elems[left], 89, 16)
    a, b, c = plain.operands
    b = Operand("b", elems[right], b.count, b.constraint, b.layout)
    params = {**plain.params, "multiplies": (elems[left], elems[right])}
    return Instruction(**{**plain.__dict__, "operands": (a, b, c), "params": params})
