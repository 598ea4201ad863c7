"""Layouts of rectangular blocks: blocked, slices of others, and those given by their bases."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from weft.base import LayoutError

from ..linear import LinearLayout
from . import checks
from .base import DistributedLayout
from .cga import Bases, check_cga, combine
from .parts import boxes, clip, dim_names, fragment, grow, identity_nd

__all__ = ["BlockedLayout", "DistributedLinearLayout", "SliceLayout"]

IN_DIMS = ("register", "lane", "warp", "block")


@dataclass(frozen=True, repr=False)
class BlockedLayout(DistributedLayout):
    """Each thread has a box of elements, each warp a box of threads, each block a box of warps.

    `order` lists the dimensions, the fastest first, in which registers, lanes and warps are counted. A larger tile is
    covered by repeating all of it, a smaller one is held in copies.

    >>> print(BlockedLayout([1, 2], [2, 2], [2, 1], [1, 0]).to_linear([4, 4]))
    <BLANKLINE>
     - register=1 -> (0, 1)
     - lane=1 -> (0, 2)
       lane=2 -> (1, 0)
     - warp=1 -> (2, 0)
     - block is a size 1 dimension
    where out dims are: [dim0 (size 4), dim1 (size 4)]
    """

    size_per_thread: Sequence[int]
    threads_per_warp: Sequence[int]
    warps_per_cta: Sequence[int]
    order: Sequence[int]
    cga_layout: Sequence[Sequence[int]] = ()

    def __post_init__(self) -> None:
        name = self._name
        sizes = checks.sizes(name, "size_per_thread", self.size_per_thread)
        rank = len(sizes)
        self._set(
            size_per_thread=sizes,
            threads_per_warp=checks.sizes(name, "threads_per_warp", self.threads_per_warp, rank, "size_per_thread"),
            warps_per_cta=checks.sizes(name, "warps_per_cta", self.warps_per_cta, rank, "size_per_thread"),
            order=checks.permutation(name, "order", self.order, rank),
            cga_layout=check_cga(name, self.cga_layout, rank),
        )

    @property
    def rank(self) -> int:
        return len(self.order)

    def _linear(self, shape: tuple[int, ...]) -> LinearLayout:
        lanes, warps = ("lane", self.threads_per_warp), ("warp", self.warps_per_cta)
        block = boxes(self.order, ("register", self.size_per_thread), lanes, warps)
        return combine(block, self.cga_layout, shape)

    def check_operand(self, index: int, k_width: int) -> None:
        if k_width:
            raise LayoutError(
                f"DotOperandLayout: k_width is {k_width}, and a product of blocked layouts is made of single "
                "multiplications; k_width must be 0"
            )
        if self.rank < 2:
            raise LayoutError(f"DotOperandLayout: the parent {self!r} has rank {self.rank}, a product needs 2 or more")

    def operand(self, index: int, k_width: int, shape: tuple[int, ...]) -> LinearLayout:
        """The operand of a product by single multiplications: each thread has all of the row, or column, it needs."""
        k = self.rank - 1 if index == 0 else self.rank - 2
        registers = [shape[d] if d == k else size for d, size in enumerate(self.size_per_thread)]
        block = fragment(
            self.order,
            identity_nd("register", registers, self.order),
            identity_nd("lane", self.threads_per_warp, self.order, zero=k),
            identity_nd("warp", self.warps_per_cta, self.order, zero=k),
        )
        return combine(block, operand_cga(self.cga_layout, k), shape)


def operand_cga(cga_layout: Sequence[Sequence[int]], k: int) -> Bases:
    """The cluster part of an operand: blocks that differ along the dimension that is summed over need the same."""
    return tuple(tuple(0 if d == k else c for d, c in enumerate(basis)) for basis in cga_layout)


@dataclass(frozen=True, repr=False)
class SliceLayout(DistributedLayout):
    """A layout without one of its dimensions: that of a reduction along it, or of what is broadcast along it.

    >>> SliceLayout(1, BlockedLayout([1, 2], [2, 2], [2, 1], [1, 0])).to_linear([4]).bases["lane"]
    ((0,), (1,))
    """

    dim: int
    parent: DistributedLayout

    def __post_init__(self) -> None:
        self._set(parent=checks.unwrapped(self.parent))
        if not isinstance(self.parent, DistributedLayout):
            raise LayoutError(f"SliceLayout: parent must be a distributed layout, got {self.parent!r}")
        if self.parent.rank < 2:
            raise LayoutError(
                f"SliceLayout: the parent {self.parent!r} has rank 1, a slice of it would have no dimension"
            )
        self._set(dim=checks.integer("SliceLayout", "dim", self.dim, 0, self.parent.rank - 1))

    @property
    def rank(self) -> int:
        return self.parent.rank - 1

    @property
    def cga_layout(self) -> Bases:
        """The parent's, without the dimension."""
        parent: Bases = getattr(self.parent, "cga_layout", ())
        return tuple(basis[: self.dim] + basis[self.dim + 1 :] for basis in parent)

    def _linear(self, shape: tuple[int, ...]) -> LinearLayout:
        parent = self.parent.to_linear((*shape[: self.dim], 1, *shape[self.dim :]))
        kept = [name for i, name in enumerate(parent.out_dims) if i != self.dim]
        names = dict(zip(kept, dim_names(self.rank), strict=True))
        return parent.sublayout(parent.in_dims, kept).rename_outs(names).remove_zero_bases("register")


@dataclass(frozen=True, repr=False)
class DistributedLinearLayout(DistributedLayout):
    """A distributed layout given by its bases, for a tile of `shape`.

    For a tile of another shape it is repeated or wrapped; registers that then hold copies are left out. A basis may
    move in several dimensions, and bases may overlap, so that elements are held more than once.

    >>> DistributedLinearLayout([[0, 1]], [[1, 0]], [], [], [2, 2]).to_linear([2, 4]).bases["register"]
    ((0, 1), (0, 2))
    """

    reg_bases: Sequence[Sequence[int]]
    lane_bases: Sequence[Sequence[int]]
    warp_bases: Sequence[Sequence[int]]
    block_bases: Sequence[Sequence[int]]
    shape: Sequence[int]

    def __post_init__(self) -> None:
        name = self._name
        shape = checks.sizes(name, "shape", self.shape)
        names = ("reg_bases", "lane_bases", "warp_bases", "block_bases")
        fields = {field: checks.bases(name, field, getattr(self, field), len(shape)) for field in names}
        self._set(shape=shape, **fields)
        self._own()

    def _own(self) -> LinearLayout:
        """The layout of a tile of its own shape."""
        bases = (self.reg_bases, self.lane_bases, self.warp_bases, self.block_bases)
        outs = dict(zip(dim_names(self.rank), self.shape, strict=True))
        try:
            return LinearLayout.from_bases(dict(zip(IN_DIMS, bases, strict=True)), outs)
        except LayoutError as error:
            raise LayoutError(f"{self._name}: {error.message}", hint=error.hint) from None

    @property
    def rank(self) -> int:
        return len(self.shape)

    @property
    def cga_layout(self) -> Bases:
        """The block bases in parts of the tile, as other layouts have them."""
        part = [self.shape[d] for d in range(self.rank)]
        for basis in self.block_bases:
            part = [min(p, c) if c else p for p, c in zip(part, basis, strict=True)]
        return tuple(tuple(c // p for c, p in zip(basis, part, strict=True)) for basis in self.block_bases)

    def _linear(self, shape: tuple[int, ...]) -> LinearLayout:
        layout = self._own()
        if shape == self.shape:
            return layout
        sizes = dict(zip(dim_names(self.rank), shape, strict=True))
        fitted = clip(grow(layout.transpose_outs([f"dim{d}" for d in self.repeat_order()]), sizes), sizes)
        return _without_new_copies(layout, fitted).transpose_outs(list(sizes))

    def repeat_order(self) -> tuple[int, ...]:
        """The dimensions in which registers move, the fastest first, then the others from the last one on."""
        seen = [next(d for d, c in enumerate(basis) if c) for basis in self.reg_bases if any(basis)]
        return tuple(dict.fromkeys([*seen, *range(self.rank - 1, -1, -1)]))


def _without_new_copies(layout: LinearLayout, fitted: LinearLayout) -> LinearLayout:
    """Without the registers that came to hold copies when the layout was wrapped."""
    before = layout.in_columns("register")
    kept = [
        basis for i, basis in enumerate(fitted.bases["register"]) if any(basis) or (i < len(before) and not before[i])
    ]
    return LinearLayout.from_bases({**fitted.bases, "register": kept}, fitted.out_dims, require_surjective=False)
