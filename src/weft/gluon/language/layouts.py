"""The layout classes of `gl`: those of `weft.layouts`, made in kernels from values known when compiling."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from weft.base import LayoutError
from weft.layouts import (
    AMDMFMALayout as AMDMFMALayout,
    AMDWMMALayout as AMDWMMALayout,
    AutoLayout as AutoLayout,
    BlockedLayout as BlockedLayout,
    CoalescedLayout as CoalescedLayout,
    DistributedLayout as DistributedLayout,
    DistributedLinearLayout as DistributedLinearLayout,
    DotOperandLayout as DotOperandLayout,
    Layout as _Layout,
    NVMMADistributedLayout as NVMMADistributedLayout,
    NVMMASharedLayout as NVMMASharedLayout,
    PaddedSharedLayout as PaddedSharedLayout,
    PartitionedSharedLayout as PartitionedSharedLayout,
    SharedLayout as SharedLayout,
    SharedLinearLayout as SharedLinearLayout,
    SliceLayout as SliceLayout,
    SwizzledSharedLayout as SwizzledSharedLayout,
    TensorMemoryLayout as TensorMemoryLayout,
    TensorMemoryScalesLayout as TensorMemoryScalesLayout,
)


def takes_plain_values(function: Any) -> Any:
    """Mark a class or a function of the host that, called in a kernel, is to get Python's values."""
    function.__takes_plain_values__ = True
    return function


def MBarrierLayout(cga_layout: Any = None) -> SwizzledSharedLayout:
    """The layout of an mbarrier: one word of shared memory."""
    return SwizzledSharedLayout(1, 1, 1, [0], cga_layout or ())


def _multicta(num_ctas: int, two_cta: bool = False) -> SwizzledSharedLayout:
    """The layout of an mbarrier for each block of a cluster, or with `two_cta` for each pair of blocks."""
    if num_ctas < 1 or num_ctas & (num_ctas - 1) or (two_cta and num_ctas < 2):
        raise LayoutError(f"MBarrierLayout.multicta: num_ctas must be a power of two, 2 or more for pairs: {num_ctas}")
    pairs = int(two_cta)
    return MBarrierLayout([[0]] * pairs + [[1 << i] for i in range(num_ctas.bit_length() - 1 - pairs)])


MBarrierLayout.multicta = _multicta  # type: ignore[attr-defined]


for _callable in (
    _Layout,  # and with it all of its classes
    NVMMASharedLayout.get_default_for,
    PaddedSharedLayout.with_identity_for,
    MBarrierLayout,
    _multicta,
):
    takes_plain_values(_callable)


def bases_per_dim(bases: Sequence[Sequence[int]], rank: int, skip_broadcast: bool = True) -> list[int]:
    """How many places bases tell apart in each dimension; a basis counts in the first dimension that it moves in.

    Bases of zeros count nowhere, or, without `skip_broadcast`, where the basis before them does.

    >>> bases_per_dim([[0, 1], [4, 0], [0, 0]], 2), bases_per_dim([[0, 1], [4, 0], [0, 0]], 2, skip_broadcast=False)
    ([2, 2], [4, 2])
    """
    sizes = [1] * rank
    last: int | None = None
    for basis in bases:
        moved = next((dim for dim, step in enumerate(basis) if step), None)
        if moved is None:
            if skip_broadcast:
                continue
            if last is None:
                raise LayoutError(f"bases_per_dim: the bases begin with zeros, in no dimension: {list(bases)}")
            moved = last
        last = moved
        sizes[moved] *= 2
    return sizes


def warps_per_cta(layout: Any, shape: Sequence[int]) -> Sequence[int]:
    """How the warps of a layout are spread over the dimensions of it, or of the layout that it is derived from.

    >>> warps_per_cta(SliceLayout(1, BlockedLayout([1, 1], [8, 4], [2, 2], [1, 0])), [64])
    (2, 2)
    """
    if isinstance(layout, DistributedLinearLayout):
        return bases_per_dim(layout.warp_bases, len(shape))
    if isinstance(layout, (SliceLayout, DotOperandLayout)):
        return warps_per_cta(layout.parent, shape)
    warps: Sequence[int] = layout.warps_per_cta
    return warps
