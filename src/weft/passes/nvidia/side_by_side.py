"""Find products of a loop with one left operand, whose right operands can be adjacent in shared memory.

    %0 = ttng.warp_group_dot %a, %b, %c                64x128 columns: %b is 16 KiB, in blocks of 64 columns
    %1 = ttng.warp_group_dot %a, %d, %e                64x64: %d is 8 KiB, such a block

The columns of a tile are a power of two. A kernel whose blocks have 192 columns has two sums, and one instruction
computes both if %d follows %b in shared memory as another of its blocks would. It reads %a once; two instructions would
read it twice, and keep shared memory busy for longer than the matrix units. The right operands are then parts of one
buffer, filled and released together (rings.py), and the second product is marked as a continuation of the first
(`SIDE_BY_SIDE`).

Other left operands may multiply the same right operands, in the same order. This makes tiles whose number of rows is no
power of two either:

    %2 = ttng.warp_group_dot %f, %b, %g                %f has the rows below those of %a
    %3 = ttng.warp_group_dot %f, %d, %h
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from xdsl.dialects import scf
from xdsl.ir import Attribute, SSAValue

from weft import ir
from weft.ir.gpu import MemDescType, memdesc, name_of
from weft.ir.gpu.products import SharedProductOp
from weft.ir.gpu.ttg import LocalAllocOp
from weft.ir.nvidia.ttng import SIDE_BY_SIDE, WarpGroupDotOp
from weft.layouts import NVMMADistributedLayout
from weft.machines import Machine
from weft.targets.nvidia import with_columns
from weft.targets.table import has, products as instructions

from ..blocks_of_clusters import own_shape
from .bulk_loads import BulkLoad
from .warpgroup_products import LEAST_COLUMNS

GROUP = 4
"""Warps that multiply together."""


@dataclass(frozen=True)
class Operand:
    """A load of a right operand, and which dimension of what is copied are the product's columns."""

    load: BulkLoad
    dim: int

    @property
    def columns(self) -> int:
        """The number of columns that a block of a cluster has."""
        return own_shape(self.load.block, self.load.copied.cga_layout)[self.dim]

    @property
    def is_repeated(self) -> bool:
        """Whether a tile of twice the columns lies in memory as two of these behind each other. It does not where
        columns of more than 128 bytes are contiguous: of each the first 128 bytes come first."""
        shape = [n << (i == self.dim) for i, n in enumerate(self.load.block)]
        one = self.load.memory()
        two = memdesc(shape, one.element_type, self.load.copied, mutable=True)
        step = (0, self.columns) if self.dim else (self.columns, 0)
        return bool(two.linear.bases["offset"] == (*one.linear.bases["offset"], step))

    def goes_on(self, unit: Operand) -> bool:
        """Whether the tile lies in memory as several of another one behind each other."""
        if (self.dim, self.load.copied) != (unit.dim, unit.load.copied):
            return False
        steps = [unit.columns << i for i in range((self.columns // unit.columns).bit_length() - 1)]
        mine, others = (x.load.memory() for x in (self, unit))
        bases = (*others.linear.bases["offset"], *((0, x) if self.dim else (x, 0) for x in steps))
        return mine.element_type == others.element_type and mine.linear.bases["offset"] == bases


@dataclass(frozen=True)
class Row:
    """Products that one instruction computes, and their right operands; or a product by itself, without."""

    products: tuple[SharedProductOp, ...]
    operands: tuple[Operand, ...] = ()

    @property
    def loads(self) -> list[BulkLoad]:
        """The loads of the right operands, in their order in memory."""
        return [x.load for x in self.operands]

    @property
    def unit(self) -> Operand:
        """The smallest of the right operands, of several of which the others are made."""
        return min(self.operands, key=lambda x: x.columns)

    def mark(self) -> None:
        """Say of products that they go on where the one before ends."""
        for op in self.products[1:]:
            op.attributes[SIDE_BY_SIDE] = ir.unit_attr()


def rows_of(
    loop: scf.ForOp, products: Sequence[SharedProductOp], loads: Sequence[BulkLoad], machine: Machine
) -> list[Row]:
    """All products of a loop, in order."""
    rows: list[Row] = []
    for op in products:
        longer = _longer(loop, rows[-1], op, loads, machine) if rows else None
        if longer is not None:
            rows[-1] = longer
        else:
            rows.append(Row((op,)))
    return [part for row in rows for part in ([row] if _has_alone(row, rows) else [Row((x,)) for x in row.products])]


def _has_alone(row: Row, rows: Sequence[Row]) -> bool:
    """Whether only rows with the same right operands, in the same order, multiply the loads of a row."""
    alike = {op for other in rows if other.operands == row.operands for op in other.products}
    return all(op in alike for load in row.loads for op in products_of(load.load.result))


def _longer(
    loop: scf.ForOp, row: Row, op: SharedProductOp, loads: Sequence[BulkLoad], machine: Machine
) -> Row | None:
    """A row and a product more, if that can be."""
    those = [x for x in (*row.products, op) if isinstance(x, WarpGroupDotOp)]
    first, end = those[0], loop.body.block.last_op
    if len(those) <= len(row.products) or any(use.operation is not end for x in those for use in x.d.uses):
        return None
    if any(x.imprecise or x.useC is not None or x.inputPrecision != first.inputPrecision for x in those):
        return None
    if any(_stored(x.a) is not _stored(first.a) for x in those):
        return None
    operands = tuple(x for x in (_right(x, loads) for x in those) if x is not None)
    if len(operands) < len(those) or len({x.load for x in operands}) < len(operands):
        return None
    longer = Row(tuple(those), operands)
    if not longer.unit.is_repeated or not all(x.goes_on(longer.unit) for x in operands):
        return None
    return longer if _has_instruction(those, machine) else None


def products_of(value: SSAValue) -> list[SharedProductOp]:
    """The products that multiply a tile, as it is or transposed."""
    found: list[SharedProductOp] = []
    for op in {use.operation for use in value.uses}:
        found += [op] if isinstance(op, SharedProductOp) else [p for r in op.results for p in products_of(r)]
    return found


def _stored(operand: SSAValue) -> SSAValue:
    """What is stored as an operand."""
    op = operand.owner
    return op.src if isinstance(op, LocalAllocOp) and op.src is not None else operand


def _right(product: WarpGroupDotOp, loads: Sequence[BulkLoad]) -> Operand | None:
    """The right operand, if it is loaded."""
    tile = _stored(product.b)
    is_turned = isinstance(tile.owner, ir.tt.TransOp)
    loaded = tile.owner.operands[0] if isinstance(tile.owner, ir.tt.TransOp) else tile
    load = next((x for x in loads if x.load.result is loaded), None)
    return Operand(load, int(load.transposed == is_turned)) if load is not None else None


def _has_instruction(products: Sequence[WarpGroupDotOp], machine: Machine) -> bool:
    """Whether one instruction can compute a block's columns of all products: each warp group has all columns, or every
    other 8."""
    columns = 0
    for op in products:
        layout = name_of(op.d.type)
        if not isinstance(layout, NVMMADistributedLayout):
            return False
        _, own = own_shape(ir.shape_of(op.d.type), layout.cga_layout)
        groups, each = layout.warps_per_cta[1], layout.instr_shape[1]
        if own != each if groups == 1 else each != LEAST_COLUMNS or own % (groups * each):
            return False
        columns += own // groups
    element = ir.type_text(_element(products[0].b))
    left = ir.type_text(_element(products[0].a))
    total = ir.type_text(ir.element_of(products[0].d.type))
    entries = instructions(machine, left, element, total, GROUP)
    return bool(entries) and has(machine, with_columns(entries[0].name, columns))


def _element(value: SSAValue) -> Attribute:
    return value.type.element_type if isinstance(value.type, MemDescType) else ir.element_of(value.type)
