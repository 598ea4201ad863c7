"""Where the operands of a product lie: packed in scratch, or for A where a kernel loads it from.

A is read by rows. If it is a plain load (elements as the instruction takes them, no mask or one that ends it where the
product ends: see product_ends.py) whose rows are contiguous and at even distances, it is read where it is: to copy it
would cost up to a quarter of the product.

B is read in panels as wide as the block of registers, so that the inner loop reads it in order. A plain load is put
into them by the first blocks that multiply it, all else beforehand; where A has no more rows than a block, so that each
panel is read once, a plain load is read where it is as well.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from weft.backends.cpu.buffers import Buffer
from weft.backends.cpu.coords import ZERO, log2, row_major
from weft.backends.cpu.elementwise import memory_type
from weft.backends.cpu.evaluate import Evaluator
from weft.backends.cpu.forms import Affine, fold_add
from weft.backends.cpu.product_ends import ProductEnds
from weft.backends.cpu.program import Value, element_bits
from weft.backends.cpu.roots import WriteRoot
from weft.backends.cpu.row_bits import DIVISIONS
from weft.backends.cpu.schedule import Scheduler
from weft.backends.llvm.emit import Function
from weft.backends.llvm.values import I8, I64, Value as Reg, const


@dataclass(frozen=True)
class Matrix:
    """Where an operand begins, bytes from row to row, and for B from a column of the product to the next panel's.

    From `rows` or `columns` on it may lie outside of the kernel's arrays.
    """

    address: Reg
    stride: Reg
    column: int = 0
    rows: Reg | None = None
    columns: Reg | None = None

    def row(self, f: Function, number: Reg) -> Reg:
        """The address of a row, or of the last that there is."""
        if self.rows is not None:
            last = f.sub(self.rows, const(I64, 1))
            number = f.select(f.icmp("slt", number, last), number, last)
        return f.gep(I8, self.address, f.mul(number, self.stride))

    def panel(self, f: Function, column: Reg) -> Reg:
        """The address of the panel that begins with a column."""
        return f.gep(I8, self.address, f.mul(column, const(I64, self.column)))


def panel_weights(shape: Sequence[int], panel: int, pair: int) -> tuple[tuple[int, ...], ...]:
    """Offset bits of B's packing: pair of K, column within the panel, the rest of K, the panel, then the batch."""
    k, n = log2(shape[-2]), log2(shape[-1])
    pair_bits, low = log2(pair), log2(panel)
    column = [pair_bits + i if i < low else i + k for i in range(n)]
    row = [i if i < pair_bits else i + low for i in range(k)]
    leading = [tuple(w + 0 for w in weights) for weights in row_major(shape)[:-2]]
    return (*leading, tuple(row), tuple(column))


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


@dataclass(frozen=True)
class Operands:
    """What is multiplied: A, B in panels, the address of C, by rows; where B lies if it is not in the panels yet."""

    a: Matrix
    b: Matrix
    c: Reg
    unpacked: Matrix | None = None


def packed_panels(address: Reg, depth: int, panel: int, elem: str) -> Matrix:
    """Panels of a packed B, or of a part of it, for which there is room of so many rows."""
    size = element_bits(elem) // 8
    return Matrix(address, const(I64, panel * size), depth * size)


def panels_of(
    s: Scheduler, value: Value, elem: str, panel: int, pair: int, once: bool, ends: ProductEnds
) -> tuple[Matrix, Matrix | None, Buffer | None]:
    """B in panels, where it is if it has still to be put into them, and the buffer of the panels if there is one.

    If each panel is read but once, the panels are where B is loaded from.
    """
    unpacked = _where_it_is(s, value, elem, ends.right_lies) if pair == 1 else None
    if unpacked is not None and ends.right_lies:
        unpacked = replace(unpacked, columns=ends.right_columns)
    if unpacked is not None and once:
        return unpacked, None, None
    weights = panel_weights(value.shape, panel, pair)
    if unpacked is None:
        buffer = pack(s, value, elem, weights)
    else:
        buffer = s.arena.allocate(value, s.position, s.position, elem=elem, weights=weights)
    return packed_panels(buffer.address, value.shape[-2], panel, elem), unpacked, buffer


def rows_of(s: Scheduler, value: Value, elem: str, pair: int, ends: ProductEnds) -> tuple[Matrix, Buffer | None]:
    """A matrix, or the first of several, by rows: where it is loaded from if that does, else packed in a buffer."""
    where_it_is = _where_it_is(s, value, elem, ends.left_lies and (pair == 1 or ends.depth is None))
    if where_it_is is not None:
        return replace(where_it_is, rows=ends.rows if ends.left_lies else None), None
    buffer = pack(s, value, elem, row_major(value.shape))
    return Matrix(buffer.address, const(I64, value.shape[-1] * element_bits(elem) // 8)), buffer


def _where_it_is(s: Scheduler, value: Value, elem: str, under_mask: bool) -> Matrix | None:
    """A matrix where a kernel loads it from, perhaps under a mask, if all of it is there by rows."""
    load = value.op
    if load is None or load.name != "tt.load" or value in s.env or value.elem != elem or len(value.shape) != 2:
        return None
    if load.is_volatile or (len(load.args) > 1 and not under_mask) or value.is_inside:
        return None
    analysis, pointers, coords = s.analysis(), load.args[0], row_major(value.shape)
    found = analysis.walk([(pointers, coords)])
    walked = [v for v, _ in found]
    if any(v.op is not None and v.op.name in DIVISIONS and analysis.deps(v, c) & set(coords[1]) for v, c in found):
        return None  # columns that wrap around: `steps` says of them only how most vectors lie
    if any(v in s.env or v.op is None or v.op.fused or v.op.name == "tt.load" for v in walked if v.is_tile):
        return None
    steps = analysis.steps(pointers, coords)
    if any(steps.get(bit, 0) != 1 << bit for bit in coords[1]):
        return None
    f = s.f
    mark = len(f.lines)
    pointer = Evaluator(f, s.env, coords[0]).pointer(pointers, (coords[0], (ZERO,) * len(coords[1])))
    offset = pointer.offset
    if not isinstance(offset, Affine) or pointer.elem != memory_type(elem):
        del f.lines[mark:]
        return None
    stride = const(I64, 0)
    for scale, lanes in offset.terms:
        if any(lane != k * lanes[1] for k, lane in enumerate(lanes)):
            del f.lines[mark:]
            return None
        by = const(I64, lanes[1])
        stride = fold_add(f, stride, by if scale is None else f.mul(_wide(f, scale), by))
    size = memory_type(elem).bits // 8
    return Matrix(f.gep(pointer.elem, pointer.base, _wide(f, offset.base)), f.mul(stride, const(I64, size)), size)


def _wide(f: Function, value: Reg) -> Reg:
    return value if value.type == I64 else f.cast("sext", value, I64)
