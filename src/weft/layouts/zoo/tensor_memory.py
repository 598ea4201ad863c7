"""Layouts of tensor memory (Blackwell), and the register layouts with which it is loaded and stored.

Tensor memory has 128 rows, 32 for each of four warps, of columns of 32 bits. A layout maps (row, col) to coordinates, a
column being as wide as an element; columns and rows that hold nothing are shown as copies of the first.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import reduce
from operator import mul
from typing import Any

from weft.base import LayoutError, Unsupported

from ..linear import LinearLayout
from . import checks
from .base import Layout
from .blocked import DistributedLinearLayout
from .cga import Bases, check_cga
from .parts import clip, copies, identity

__all__ = ["TensorMemoryLayout", "TensorMemoryScalesLayout", "get_tmem_reg_layout"]

ATOMS = ("32x32b", "16x64b", "16x128b", "16x256b")
VARIANTS = (*ATOMS, "32x32b_splitn")


def _cta_split(owner: str, value: Any) -> tuple[int, int] | None:
    if value is None:
        return None
    rows, columns = checks.sizes(owner, "cta_split_num", value, 2, "[rows, columns]")
    return rows, columns


def _split_of(owner: str, split: Any, bases: Any) -> tuple[tuple[int, int] | None, Bases]:
    """`cta_split_num` and `cga_layout` of a layout, which say the same: how often blocks split rows and columns.

    Triton 3.7 has the bases where 3.6 has the numbers; a list of lists in the place of the numbers is bases.
    """
    if isinstance(split, (list, tuple)) and all(isinstance(basis, (list, tuple)) for basis in split):
        split, bases = None, bases or split
    cga = check_cga(owner, bases, 2)
    counts = _cta_split(owner, split)
    if cga:
        rows, columns = (1 << sum(1 for basis in cga if basis[dim]) for dim in range(2))
        if counts not in (None, (rows, columns)):
            raise LayoutError(f"{owner}: cta_split_num {split} and cga_layout {[list(b) for b in cga]} differ")
        counts = None if (rows, columns) == (1, 1) else (rows, columns)
    return counts, cga


def _split(layout: LinearLayout, split: Sequence[int] | None) -> LinearLayout:
    """The layout of a cluster from that of one block: the parts lie side by side, as more columns."""
    for dim, count in enumerate(split or ()):
        layout = layout * identity(count, "col", f"dim{dim}")
    return layout


def _part(owner: str, shape: tuple[int, ...], split: Sequence[int] | None) -> tuple[int, int]:
    """The shape of one block's part."""
    rows, columns = (size // count for size, count in zip(shape, split or (1, 1), strict=True))
    if not rows or not columns:
        raise LayoutError(f"{owner}: cta_split_num {list(split or ())} splits a tile of shape {list(shape)} too far")
    return rows, columns


@dataclass(frozen=True, repr=False)
class TensorMemoryLayout(Layout):
    """Blocks of `block` = (rows, columns) elements in tensor memory, 64 or 128 rows.

    Elements that follow each other in a row are `col_stride` columns apart: 1 if they are packed, 32 / bits if each
    has 32 bits for itself. Blocks of 64 rows use every other 16 rows; a second one lies in the rows between. With
    `two_ctas` each of a pair of blocks has 64 of 128 rows, and half of the columns in the rows from 64 on. The blocks
    of a cluster are told by `cta_split_num`, or by `cga_layout`.

    >>> TensorMemoryLayout((64, 8), 1).to_linear([64, 8]).bases["row"][3:]
    ((8, 0), (0, 0), (16, 0), (32, 0))
    """

    block: Sequence[int]
    col_stride: int
    cta_split_num: Sequence[int] | None = None
    two_ctas: bool = False
    cga_layout: Sequence[Sequence[int]] = ()
    fp4_padded: bool = False

    def __post_init__(self) -> None:
        name = self._name
        rows, columns = checks.sizes(name, "block", self.block, 2, "(rows, columns)")
        checks.one_of(name, "the number of rows in block", rows, (64, 128))
        if columns > 512:
            raise LayoutError(f"{name}: block has {columns} columns, tensor memory has 512")
        stride = checks.one_of(name, "col_stride", self.col_stride, (1, 2, 4))
        counts, cga = _split_of(name, self.cta_split_num, self.cga_layout)
        self._set(
            block=(rows, columns),
            col_stride=stride,
            cta_split_num=counts,
            two_ctas=checks.flag(name, "two_ctas", self.two_ctas),
            cga_layout=cga,
            fp4_padded=checks.flag(name, "fp4_padded", self.fp4_padded),
        )

    @property
    def rank(self) -> int:
        return 2

    def _linear(self, shape: tuple[int, ...]) -> LinearLayout:
        if self.fp4_padded:
            hint = "Weft does not write that generation's own instructions yet"
            raise Unsupported(f"{self._name} with fp4_padded", hint=hint)
        rows, columns = _part(self._name, shape, self.cta_split_num)
        high, wide = self.block[0], min(self.block[1], columns)
        if rows < high:
            raise LayoutError(
                f"{self._name}: a block has {high} rows, and the tile, of shape {list(shape)}, {rows} in one CTA"
            )
        start = copies("col", self.col_stride, "dim1")
        if self.two_ctas and high == 64 and self.cta_split_num and self.cta_split_num[0] > 1:
            return _split(self._pair(start, rows, columns), self.cta_split_num)
        if high == 128:
            tile = start * identity(128, "row", "dim0") * identity(wide, "col", "dim1")
        else:
            between = (64, 0) if rows > 64 else (0, wide) if columns > wide else (0, 0)
            tile = _canonical(start * identity(16, "row", "dim0") * identity(wide, "col", "dim1"))
            bases = {**tile.bases, "row": [*tile.bases["row"], between, (16, 0), (32, 0)]}
            tile = LinearLayout.from_bases(bases, ["dim0", "dim1"])
        sizes = tile.out_dims
        repeated = (
            tile
            * identity(max(1, rows // sizes["dim0"]), "col", "dim0")
            * identity(max(1, columns // sizes["dim1"]), "col", "dim1")
        )
        return _split(_canonical(repeated), self.cta_split_num)

    def _pair(self, start: LinearLayout, rows: int, columns: int) -> LinearLayout:
        """What each of a pair of blocks has of 128 rows: 64 of them, the upper half of the columns from row 64 on."""
        if rows != 64 or columns < 2 or (self.cta_split_num or ())[0] != 2:
            raise LayoutError(
                f"{self._name}: with two_ctas and blocks of 64 rows, cta_split_num must split 128 rows among 2 blocks; "
                f"it is {list(self.cta_split_num or ())}, with {rows} rows and {columns} columns for each"
            )
        upper = identity(2, "row", "dim1")
        half = start * identity(64, "row", "dim0") * identity(columns // 2, "col", "dim1")
        return _canonical(half * upper)


@dataclass(frozen=True, repr=False)
class TensorMemoryScalesLayout(Layout):
    """Scales of block-scaled products in tensor memory: 32 rows, of which all four warps have a copy.

    >>> TensorMemoryScalesLayout().to_linear([64, 4]).bases["col"]
    ((0, 1), (0, 2), (32, 0))
    """

    cta_split_num: Sequence[int] | None = None
    block_rep_order: str = "mnThenK"
    cga_layout: Sequence[Sequence[int]] = ()

    def __post_init__(self) -> None:
        name = self._name
        counts, cga = _split_of(name, self.cta_split_num, self.cga_layout)
        order = checks.word(name, "block_rep_order", self.block_rep_order, ("mnThenK", "kThenMn"))
        self._set(cta_split_num=counts, cga_layout=cga, block_rep_order=order)

    @property
    def rank(self) -> int:
        return 2

    def _linear(self, shape: tuple[int, ...]) -> LinearLayout:
        if self.block_rep_order != "mnThenK":
            raise Unsupported(
                f"{self._name} with block_rep_order {self.block_rep_order!r}",
                hint="Weft does not write that generation's own instructions yet",
            )
        rows, columns = _part(self._name, shape, self.cta_split_num)
        pieces = [
            identity(32, "row", "dim0"),
            copies("row", 4, "dim0"),
            identity(4, "col", "dim1"),
            identity(2, "col", "dim0"),
            identity(max(1, rows // 64), "col", "dim0"),
            identity(max(1, columns // 4), "col", "dim1"),
        ]
        return _split(_canonical(clip(reduce(mul, pieces), {"dim0": rows, "dim1": columns})), self.cta_split_num)


def _canonical(layout: LinearLayout) -> LinearLayout:
    return layout.transpose_ins(["row", "col"]).transpose_outs(["dim0", "dim1"])


def get_tmem_reg_layout(
    element_ty: checks.ElementType | int,
    shape: Sequence[int],
    layout: TensorMemoryLayout | TensorMemoryScalesLayout,
    num_warps: int,
    instr_variant: str = "32x32b",
    cga_layout: Sequence[Sequence[int]] = (),
) -> DistributedLinearLayout:
    """The register layout with which an instruction loads a tile from tensor memory, or stores it.

    `instr_variant` is "32x32b" (a lane has a row), "16x64b", "16x128b", "16x256b" (the fragments of matrix
    instructions), or "32x32b_splitn" (as the first, the halves of the columns in different registers, as for a split).
    `num_warps` is a power of two from 4 on; `element_ty` is an element type, or its width in bits, 8, 16 or 32.
    LayoutError where no such instruction can reach the tile.

    >>> get_tmem_reg_layout(32, [128, 64], TensorMemoryLayout((128, 64), 1), 4).lane_bases
    ((1, 0), (2, 0), (4, 0), (8, 0), (16, 0))
    """
    name = "get_tmem_reg_layout"
    bits = checks.element_bits(name, "the width of element_ty", element_ty)
    if bits > 32:
        raise LayoutError(f"{name}: elements of tensor memory have 8, 16 or 32 bits, got {bits}")
    if instr_variant not in VARIANTS:
        raise LayoutError(f"{name}: instr_variant must be one of {', '.join(VARIANTS)}, got {instr_variant!r}")
    if checks.power_of_two(name, "num_warps", num_warps) < 4:
        raise LayoutError(f"{name}: num_warps must be 4 or more, as each warp reaches 32 of 128 rows; got {num_warps}")
    cga = check_cga(name, cga_layout, 2)
    if isinstance(layout, TensorMemoryLayout) and bits * layout.col_stride > 32:
        raise LayoutError(
            f"{name}: elements of {bits} bits with col_stride {layout.col_stride} are {bits * layout.col_stride} bits "
            f"apart; a column of tensor memory has 32, so that col_stride is at most {32 // bits}"
        )
    memory = _one_block(name, layout.to_linear(shape), cga)
    if memory.in_dims["col"] * bits > 512 * 32:
        taken = memory.in_dims["col"] * bits // 32
        raise LayoutError(
            f"{name}: a tile of shape {list(shape)} in {layout!r} takes {taken} columns of each block, tensor memory "
            "has 512"
        )
    registers = _registers(memory, instr_variant.removesuffix("_splitn"), num_warps, bits)
    if registers is None:
        raise LayoutError(
            f"{name}: {instr_variant} cannot load a tile of shape {list(shape)} in {layout!r} with {num_warps} warps",
            hint="32x32b loads any tile",
        )
    cluster = LinearLayout.from_bases({"block": cga}, ["dim0", "dim1"])
    bases = {n: [list(b) for b in bs] for n, bs in (registers * cluster).bases.items()}
    if instr_variant == "32x32b_splitn":
        _split_columns(name, bases, shape[1], bits)
    return DistributedLinearLayout(bases["register"], bases["lane"], bases["warp"], bases["block"], shape)


def _one_block(owner: str, memory: LinearLayout, cga: Bases) -> LinearLayout:
    """The layout of one block, from that of a cluster, in which the blocks' parts are the last columns."""
    parts = LinearLayout.from_bases({"block": cga}, ["dim0", "dim1"]).out_dims
    outer = identity(parts["dim0"], "col", "dim0") * identity(parts["dim1"], "col", "dim1")
    quotient = memory.divide_right(outer)
    if quotient is None:
        raise LayoutError(
            f"{owner}: the blocks of cga_layout {[list(b) for b in cga]} are not those of the tensor memory layout",
            hint="cta_split_num must say how many blocks split the rows and the columns",
        )
    return quotient


def _registers(memory: LinearLayout, atom: str, num_warps: int, bits: int) -> LinearLayout | None:
    """The register layout for elements of this width: as many as fit are packed into registers of 32 bits."""
    if bits == 32:
        return _words(memory, atom, num_warps)
    packed, quotient, count = 1, memory, 2
    while bits * count <= 32:
        smaller = memory.divide_left(identity(count, "col", "dim1"))
        if smaller is None:
            break
        packed, quotient, count = count, smaller, 2 * count
    if packed > 1:
        registers = _registers(quotient, atom, num_warps, bits * packed)
        return None if registers is None else identity(packed, "register", "dim1") * registers
    padding = copies("col", 32 // bits, "dim1")
    pairs = memory.divide_left(padding * identity(2, "col", "dim1"))
    if bits == 16 and pairs is not None:
        registers = _words(pairs, atom, num_warps)
        return None if registers is None else identity(2, "register", "dim1") * registers
    return _words(memory.divide_left(padding) or memory, atom, num_warps)


def _atom(name: str) -> LinearLayout:
    """What one instruction moves for one warp, from (register, lane) to (row, col) of 32 bits."""
    if name == "32x32b":
        pieces = [identity(32, "lane", "row")]
    elif name == "16x64b":
        lanes = [(8, 0), (0, 1), (1, 0), (2, 0), (4, 0)]
        return LinearLayout.from_bases({"register": [], "lane": lanes}, ["row", "col"])
    else:
        pieces = [identity(2 if name == "16x256b" else 1, "register", "col")]
        pieces += [identity(4, "lane", "col"), identity(8, "lane", "row"), identity(2, "register", "row")]
    start = LinearLayout.from_bases({"register": [], "lane": []}, {"row": 1, "col": 1})
    return reduce(lambda a, b: a * b.transpose_outs([n for n in ("row", "col") if b.has_out(n)]), pieces, start)


def _words(memory: LinearLayout, atom: str, num_warps: int) -> LinearLayout | None:
    """The register layout for elements of 32 bits: the instruction's tile, extended over columns and warps."""
    tile = _atom(atom)
    columns = memory.in_dims["col"] // tile.out_dims["col"]
    all_rows, half_empty = atom == "32x32b", not any(memory.basis("row", 4))
    reached = tile.compose(memory)
    if all_rows:  # lanes 16 to 31 may read other columns instead, with 16x32bx2
        reached = reached.resize_in("lane", 16)
    if columns == 0 or not reached.is_injective():
        return None
    # Rows 16 to 31 of each warp's, if the instruction moves only the first 16: to other warps, else to other registers.
    row16 = None if all_rows or half_empty else "warp" if num_warps > 4 else "register"
    side_by_side = num_warps // (8 if row16 == "warp" else 4)
    idle = side_by_side // min(columns, side_by_side)
    side_by_side //= idle
    columns //= side_by_side
    if columns > 1 and all_rows and half_empty:
        half = tile.divide_left(identity(2, "lane", "row"))
        assert half is not None  # the tile of 32x32b is the identity on lanes
        tile = half * identity(columns // 2, "register", "col") * identity(2, "lane", "col")
    elif columns > 1:
        tile = tile * identity(columns, "register", "col")
    bases = {name: list(tile_bases) for name, tile_bases in tile.bases.items()} | {"warp": [(32, 0), (64, 0)]}
    if row16:
        bases[row16].append((16, 0))
    whole = LinearLayout.from_bases(bases, {"row": 128, "col": tile.out_dims["col"]}, require_surjective=False)
    whole = whole * identity(side_by_side, "warp", "col") * copies("warp", idle, "col")
    return whole.compose(memory)


def _split_columns(owner: str, bases: dict[str, list[list[int]]], columns: int, bits: int) -> None:
    """Exchange bases so that the last register bit tells the two halves of the columns apart."""
    half = [0, columns // 2]
    registers = bases["register"]
    if not registers:
        if bases["lane"][-1] != half:
            raise LayoutError(f"{owner}: 32x32b_splitn needs two or more columns for each lane")
        registers.append(half)
        bases["lane"][-1] = [0, 0]
        return
    if registers[-1] == half:
        return
    if 1 << len(registers) <= 32 // bits:
        raise LayoutError(
            f"{owner}: 32x32b_splitn needs more than {32 // bits} registers of {bits} bits, the tile has "
            f"{1 << len(registers)} for each lane",
            hint="load it with 32x32b and convert",
        )
    for dim in ("lane", "warp"):
        if half in bases[dim]:
            at = bases[dim].index(half)
            registers[-1], bases[dim][at] = bases[dim][at], registers[-1]
            return
    raise LayoutError(f"{owner}: no part of the layout tells the halves of {columns} columns apart")
