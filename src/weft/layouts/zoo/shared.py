"""Layouts of tiles in shared memory, from (offset, block) to coordinates; offsets count elements, not bytes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from weft.base import LayoutError, Unsupported

from ..linear import LinearLayout
from . import checks
from .base import SharedLayout
from .cga import check_cga, combine, shape_per_block
from .parts import dim_names, grow, identity, identity_nd

__all__ = [
    "NVMMASharedLayout",
    "PaddedSharedLayout",
    "PartitionedSharedLayout",
    "SharedLinearLayout",
    "SwizzledSharedLayout",
    "with_gaps",
]

T = TypeVar("T", int, "npt.NDArray[np.integer[Any]]")


def with_gaps(offset: T, gaps: Sequence[Sequence[int]]) -> T:
    """Where an offset lies if after every `interval` places `padding` more are left out, for each pair of these.

    >>> [with_gaps(i, [(64, 8)]) for i in (63, 64, 130)]
    [63, 72, 146]
    """
    result = offset
    for interval, padding in gaps:
        result = result + offset // interval * padding
    return result


def _explicit(
    owner: str, offset_bases: Sequence[Sequence[int]], block_bases: Sequence[Sequence[int]], shape: Sequence[int] | None
) -> LinearLayout:
    """The layout of these bases; without a shape the sizes are what the bases reach."""
    rank = len(offset_bases[0] if offset_bases else (*block_bases, ())[0]) if shape is None else len(shape)
    bases = {"offset": offset_bases, "block": block_bases}
    names = dim_names(rank)
    if shape is not None:
        _check_reach(owner, offset_bases, block_bases, shape)
    try:
        if shape is None:
            return LinearLayout.from_bases(bases, names)
        return LinearLayout.from_bases(bases, dict(zip(names, shape, strict=True)))
    except LayoutError as error:
        raise LayoutError(f"{owner}: {error.message}", hint=error.hint) from None


def _check_reach(
    owner: str, offset_bases: Sequence[Sequence[int]], block_bases: Sequence[Sequence[int]], shape: Sequence[int]
) -> None:
    """LayoutError where bases lead outside of a tile."""
    reached = [1] * len(shape)
    for basis in (*offset_bases, *block_bases):
        reached = [max(size, 1 << x.bit_length()) for size, x in zip(reached, basis, strict=True)]
    beyond = [
        basis for basis in (*offset_bases, *block_bases) if any(x >= n for x, n in zip(basis, shape, strict=True))
    ]
    if beyond:
        raise LayoutError(
            f"{owner}: the layout is for a tile of {reached}, too big for one of {list(shape)}: the bases "
            f"{', '.join(str(list(basis)) for basis in beyond)} lead outside of it",
            hint=f"make the tile {reached}, or leave these bases out",
        )


@dataclass(frozen=True, repr=False)
class SwizzledSharedLayout(SharedLayout):
    """Row after row, in each of which the vectors of `vec` elements are permuted by xor with the row's phase.

    The phase of a row is row // per_phase % max_phase. `order` lists the dimensions, the fastest first; its first is
    that of columns, its second that of rows.

    >>> SwizzledSharedLayout(2, 1, 4, [1, 0]).to_linear([4, 8]).bases["offset"]
    ((0, 1), (0, 2), (0, 4), (1, 2), (2, 4))
    """

    vec: int
    per_phase: int
    max_phase: int
    order: Sequence[int]
    cga_layout: Sequence[Sequence[int]] = ()

    def __post_init__(self) -> None:
        name = self._name
        order = checks.permutation(name, "order", self.order)
        self._set(
            vec=checks.power_of_two(name, "vec", self.vec),
            per_phase=checks.power_of_two(name, "per_phase", self.per_phase),
            max_phase=checks.power_of_two(name, "max_phase", self.max_phase),
            order=order,
            cga_layout=check_cga(name, self.cga_layout, len(order)),
        )

    @property
    def rank(self) -> int:
        return len(self.order)

    def _linear(self, shape: tuple[int, ...]) -> LinearLayout:
        block_shape = shape_per_block(shape, self.cga_layout)
        if self.rank == 1:
            return combine(identity(block_shape[0], "offset", "dim0"), self.cga_layout, shape)
        column, row = self.order[:2]
        columns, rows = block_shape[column], block_shape[row]
        bases = [(0, 1 << i) for i in range(columns.bit_length() - 1)]
        for i in range(rows.bit_length() - 1):
            phase = (1 << i) // self.per_phase % self.max_phase
            bases.append((1 << i, self.vec * phase % columns))
        block = LinearLayout.from_bases({"offset": bases}, {f"dim{row}": rows, f"dim{column}": columns})
        if self.rank > 2:
            block = block * identity_nd("offset", block_shape, self.order[2:])
        return combine(block, self.cga_layout, shape)


@dataclass(frozen=True, repr=False)
class NVMMASharedLayout(SharedLayout):
    """The layouts that TMA writes and wgmma and tcgen05 read: tiles of 8 rows of `swizzle_byte_width` bytes.

    In each tile the units of 16 bytes are permuted by xor with the row (per 128 bytes); 0 is no permutation. The tile
    has the last dimension as its columns and all others as its rows; `transposed`, the first dimension as its columns.
    With `fp4_padded` each 8 bytes of data are followed by 8 bytes of padding, which the layout shows as copies.

    >>> NVMMASharedLayout(32, 16).to_linear([8, 16]).bases["offset"]
    ((0, 1), (0, 2), (0, 4), (0, 8), (1, 0), (2, 0), (4, 8))
    """

    swizzle_byte_width: int
    element_bitwidth: int
    rank: int = 2
    transposed: bool = False
    fp4_padded: bool = False
    cga_layout: Sequence[Sequence[int]] = ()

    def __post_init__(self) -> None:
        name = self._name
        rank = checks.integer(name, "rank", self.rank, 1, 5)
        width = checks.one_of(name, "swizzle_byte_width", self.swizzle_byte_width, (0, 32, 64, 128))
        if width and rank < 2:
            raise LayoutError(
                f"{name}: swizzle_byte_width is {width}, and a tile of rank 1 has no rows to swizzle; use 0"
            )
        self._set(
            swizzle_byte_width=width,
            element_bitwidth=checks.one_of(name, "element_bitwidth", self.element_bitwidth, (8, 16, 32, 64)),
            rank=rank,
            transposed=checks.flag(name, "transposed", self.transposed),
            fp4_padded=checks.flag(name, "fp4_padded", self.fp4_padded),
            cga_layout=check_cga(name, self.cga_layout, rank),
        )

    @staticmethod
    def get_default_for(
        block_shape: Sequence[int],
        dtype: checks.ElementType | int,
        transposed: bool = False,
        fp4_padded: bool = False,
        cga_layout: Sequence[Sequence[int]] | None = None,
    ) -> NVMMASharedLayout:
        """The layout with the widest swizzle that fits, so that the fewest TMA or matrix instructions are needed.

        `dtype` is an element type, or its width in bits.
        """
        name = "NVMMASharedLayout"
        rank = len(checks.sizes(name, "block_shape", block_shape))
        bits = checks.element_bits(name, "the width of dtype", dtype)
        cga = check_cga(name, cga_layout, rank)
        sizes = shape_per_block(checks.shape_of(name, block_shape, rank), cga)
        if transposed:
            sizes = sizes[1:] + sizes[:1]
        width = sizes[-1] * (2 if fp4_padded else 1) * bits // 8
        rows = int(np.prod(sizes[:-1], dtype=np.int64))
        fits = [w for w in (128, 64, 32) if width >= w and width % w == 0]
        swizzle = fits[0] if fits and rank >= 2 and rows >= 8 else 0
        return NVMMASharedLayout(swizzle, bits, rank, transposed, fp4_padded, cga)

    def box(self, shape: Sequence[int]) -> tuple[int, ...]:
        """What one bulk copy moves of a tile: at most 256 along a dimension, and the swizzle's width along columns.

        >>> NVMMASharedLayout(128, 16).box([64, 128])
        (64, 64)
        """
        return self._tma_shape(shape_per_block(shape, self.cga_layout))

    def _tma_shape(self, tile: tuple[int, ...]) -> tuple[int, ...]:
        box = [min(size, 256) for size in tile]
        contiguous = 0 if self.transposed else self.rank - 1
        if self.fp4_padded:
            box[contiguous] = min(tile[contiguous] * 2, 256)
        if self.swizzle_byte_width:
            needed = 8 * self.swizzle_byte_width // self.element_bitwidth
            if box[contiguous] < needed:
                raise LayoutError(
                    f"{self._name}: a row of {self.swizzle_byte_width} bytes has {needed} elements of "
                    f"{self.element_bitwidth} bits, and dimension {contiguous} of the tile, {list(tile)} in one block, "
                    f"has {box[contiguous]}",
                    hint="choose a narrower swizzle_byte_width; NVMMASharedLayout.get_default_for picks one that fits",
                )
            box[contiguous] = needed
        if self.fp4_padded:
            box[contiguous] //= 2
        return tuple(box)

    def _core(self) -> LinearLayout:
        """One tile of 8 rows, from offsets to (dim0: row, dim1: column)."""
        width = self.swizzle_byte_width
        vec = 128 // self.element_bitwidth
        per_phase, max_phase = 128 // width, width // 16

        def column(offset: int) -> int:
            return offset // 16 * 8 + offset % 8 if self.fp4_padded else offset

        columns = 8 * width // self.element_bitwidth
        bases = [(0, column(1 << i)) for i in range(columns.bit_length() - 1)]
        bases += [(row, column(vec * (row // per_phase % max_phase))) for row in (1, 2, 4)]
        return LinearLayout.from_bases({"offset": bases}, ["dim0", "dim1"])

    def _linear(self, shape: tuple[int, ...]) -> LinearLayout:
        block_shape = shape_per_block(shape, self.cga_layout)
        box = self._tma_shape(block_shape)
        if not self.swizzle_byte_width:
            block = identity_nd("offset", box, range(self.rank - 1, -1, -1))
            return combine(_in_order(block, block_shape), self.cga_layout, shape)
        rows, columns = int(np.prod(box[:-1], dtype=np.int64)), box[-1]
        if self.transposed:
            rows, columns = columns, rows
        if rows < 8:
            raise LayoutError(
                f"{self._name}: the tile, {list(block_shape)} in one block, has {rows} rows; a swizzle needs 8 or more",
                hint="use swizzle_byte_width=0",
            )
        tile = grow(self._core(), {"dim0": rows, "dim1": columns})
        # The matrix of rows and columns, read row by row, is the tile; transposed, with its dimension 0 the fastest.
        order = [0, *range(self.rank - 1, 0, -1)] if self.transposed else range(self.rank - 1, -1, -1)
        cut = {f"dim{d}": box[d] for d in order}
        block = tile.transpose_outs(["dim1", "dim0"]).reshape_outs(cut).transpose_outs(dim_names(self.rank))
        return combine(_in_order(block, block_shape), self.cga_layout, shape)


def _in_order(block: LinearLayout, block_shape: Sequence[int]) -> LinearLayout:
    """Repeat what one TMA instruction copies until it is the block's part of the tile."""
    return grow(block, dict(zip(dim_names(len(block_shape)), block_shape, strict=True)))


@dataclass(frozen=True, repr=False)
class SharedLinearLayout(SharedLayout):
    """A layout in shared memory given by its bases, at an address that is a multiple of `alignment` bytes.

    >>> SharedLinearLayout([[0, 1], [1, 1]]).to_linear([2, 2]).bases["offset"]
    ((0, 1), (1, 1))
    """

    offset_bases: Sequence[Sequence[int]]
    block_bases: Sequence[Sequence[int]] = ()
    alignment: int = 16

    def __post_init__(self) -> None:
        name = self._name
        offsets = checks.sequence(name, "offset_bases", self.offset_bases)
        if not offsets:
            raise LayoutError(f"{name}: offset_bases is empty; it needs a basis for each bit of an offset")
        rank = len(checks.sequence(name, "a basis of offset_bases", offsets[0]))
        if not rank:
            raise LayoutError(f"{name}: the bases in offset_bases are empty; they need a coordinate for each dimension")
        self._set(
            offset_bases=checks.bases(name, "offset_bases", self.offset_bases, rank),
            block_bases=checks.bases(name, "block_bases", self.block_bases, rank),
            alignment=checks.power_of_two(name, "alignment", self.alignment),
        )

    @property
    def rank(self) -> int:
        return len(self.offset_bases[0])

    @property
    def shape(self) -> list[int]:
        """The shape of the tile that the bases lead to."""
        reached = [0] * self.rank
        for basis in (*self.offset_bases, *self.block_bases):
            reached = [max(extent, step) for extent, step in zip(reached, basis, strict=True)]
        return [1 << step.bit_length() for step in reached]

    def _linear(self, shape: tuple[int, ...]) -> LinearLayout:
        return _explicit(self._name, self.offset_bases, self.block_bases, shape)


@dataclass(frozen=True, repr=False, init=False)
class PaddedSharedLayout(SharedLayout):
    """A linear layout in shared memory with gaps: after every `interval` elements, `padding` elements are left out.

    `to_linear` is the linear part, for which `address` gives the places. Several pairs add up where they coincide.

    >>> layout = PaddedSharedLayout.with_identity_for([[64, 8]], [16, 32], [1, 0])
    >>> layout.address(130), layout.size
    (146, 568)
    """

    interval_padding_pairs: Sequence[Sequence[int]]
    offset_bases: Sequence[Sequence[int]]
    block_bases: Sequence[Sequence[int]]
    shape: Sequence[int]

    def __init__(
        self, interval_padding_pairs: Any, offset_bases: Any, block_bases: Any = None, shape: Any = None,
        cga_layout: Any = None,
    ) -> None:  # fmt: skip
        name = self._name
        if (block_bases is None) == (cga_layout is None):
            raise LayoutError(f"{name}: block_bases, which Triton 3.7 calls cga_layout, must be given once")
        self._set(
            interval_padding_pairs=interval_padding_pairs,
            offset_bases=offset_bases,
            block_bases=cga_layout if block_bases is None else block_bases,
        )
        shape = checks.sizes(name, "shape", shape)
        pairs = tuple(
            checks.sizes(name, "a pair of interval_padding_pairs", pair, 2, "[interval, padding]")
            for pair in checks.sequence(name, "interval_padding_pairs", self.interval_padding_pairs)
        )
        if not pairs:
            raise LayoutError(f"{name}: interval_padding_pairs is empty; it needs a pair [interval, padding]")
        intervals = [interval for interval, _ in pairs]
        if len(set(intervals)) != len(intervals):
            raise LayoutError(f"{name}: an interval is given twice in {[list(p) for p in pairs]}")
        self._set(
            interval_padding_pairs=pairs,
            offset_bases=checks.bases(name, "offset_bases", self.offset_bases, len(shape)),
            block_bases=checks.bases(name, "block_bases", self.block_bases, len(shape)),
            shape=shape,
        )
        self.verify()

    def verify(self) -> None:
        """Raises LayoutError where its bases do not lead to each element of the shape; no layout is made of such."""
        _explicit(self._name, self.offset_bases, self.block_bases, tuple(self.shape))

    @staticmethod
    def with_identity_for(
        interval_padding_pairs: Sequence[Sequence[int]], shape: Sequence[int], order: Sequence[int],
        cga_layout: Sequence[Sequence[int]] = (),
    ) -> PaddedSharedLayout:  # fmt: skip
        """The layout whose linear part counts through the shape, the first dimension of `order` the fastest.

        The blocks of a cluster take what `cga_layout` leaves of it, whose bases count in parts of the tile.
        """
        name = "PaddedSharedLayout"
        sizes = checks.sizes(name, "shape", shape)
        pairs = checks.sequence(name, "interval_padding_pairs", interval_padding_pairs)
        cga = check_cga(name, cga_layout, len(sizes))
        block_shape = shape_per_block(sizes, cga)
        linear = identity_nd("offset", block_shape, checks.permutation(name, "order", order, len(sizes)))
        bases = linear.transpose_outs(dim_names(len(sizes))).bases["offset"]
        blocks = tuple(tuple(step * size for step, size in zip(basis, block_shape, strict=True)) for basis in cga)
        return PaddedSharedLayout(pairs, bases, blocks, sizes)

    @property
    def rank(self) -> int:
        return len(self.shape)

    def _shown(self, shape: Sequence[int]) -> LinearLayout:
        raise LayoutError(f"{self._name} cannot be visualized: its offsets have padding between them")

    def _linear(self, shape: tuple[int, ...]) -> LinearLayout:
        if shape != self.shape:
            pairs = [list(pair) for pair in self.interval_padding_pairs]
            raise LayoutError(
                f"{self._name}: the layout is for a tile of shape {list(self.shape)}, got {list(shape)}",
                hint=f"make it for this tile: {self._name}.with_identity_for({pairs}, {list(shape)}, order)",
            )
        return _explicit(self._name, self.offset_bases, self.block_bases, shape)

    @property
    def cga_layout(self) -> Sequence[Sequence[int]]:
        """`block_bases`, as Triton 3.7 calls them."""
        return self.block_bases

    def address(self, offset: T) -> T:
        """The place, in elements, of an offset of the linear part; also for an array of offsets."""
        return with_gaps(offset, self.interval_padding_pairs)

    @property
    def size(self) -> int:
        """The elements that the tile takes in one block, padding included; there is none after the last element."""
        return self.address((1 << len(self.offset_bases)) - 1) + 1


@dataclass(frozen=True, repr=False)
class PartitionedSharedLayout(SharedLayout):
    """A tile in `num_partitions` parts of shared memory dealt out in turn along a dimension, each piece in a layout of
    its own.

    For gfx1250, whose shared memory has such parts; there is no linear layout for it here yet.

    >>> from weft.layouts import PartitionedSharedLayout, SwizzledSharedLayout
    >>> PartitionedSharedLayout(2, 1, 0, SwizzledSharedLayout(1, 1, 1, [1, 0])).num_partitions
    2
    """

    num_partitions: int
    num_groups: int
    partition_dim: int
    partition_layout: SharedLayout

    def __post_init__(self) -> None:
        name = self._name
        if not isinstance(self.partition_layout, SharedLayout):
            raise LayoutError(
                f"{name}: partition_layout must be a layout of shared memory, got {self.partition_layout!r}"
            )
        self._set(
            num_partitions=checks.power_of_two(name, "num_partitions", self.num_partitions),
            num_groups=checks.power_of_two(name, "num_groups", self.num_groups),
            partition_dim=checks.integer(name, "partition_dim", self.partition_dim, 0, self.rank - 1),
        )

    @property
    def rank(self) -> int:
        return self.partition_layout.rank

    def _linear(self, shape: tuple[int, ...]) -> LinearLayout:
        raise Unsupported(f"{self._name}, which is for hip:gfx1250,", hint="Weft has no target of that generation yet")
