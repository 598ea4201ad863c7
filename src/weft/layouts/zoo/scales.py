"""The scales of block-scaled products on AMD, in registers: one scale for 32 elements along K."""

from __future__ import annotations

from collections.abc import Sequence

from weft.base import LayoutError

from ..linear import LinearLayout
from . import checks
from .amd import AMDMFMALayout, AMDWMMALayout
from .blocked import DistributedLinearLayout
from .cga import combine
from .dot import DotOperandLayout
from .parts import copies, fragment, identity

__all__ = ["mfma_scale_layout", "wmma_scale_layout"]


def mfma_scale_layout(dot_operand_layout: DotOperandLayout, shape: Sequence[int]) -> DistributedLinearLayout:
    """The layout of the scales of an operand of a scaled MFMA: [M, K / 32] for operand 0, [N, K / 32] for operand 1.

    Each lane has the scale of the elements that it has of the operand. Gluon's get_mfma_scale_layout.

    >>> parent = AMDMFMALayout(4, [32, 32, 64], True, [1, 1])
    >>> mfma_scale_layout(DotOperandLayout(0, parent, 16), [32, 4]).lane_bases[-1]
    (0, 1)
    """
    parent = dot_operand_layout.parent if isinstance(dot_operand_layout, DotOperandLayout) else None
    if not isinstance(parent, AMDMFMALayout) or parent.instr_shape[0] not in (16, 32) or parent.rank != 2:
        raise LayoutError(
            "mfma_scale_layout: the layout must be an operand of a 16x16 or 32x32 AMDMFMALayout of rank 2, got "
            f"{dot_operand_layout!r}"
        )
    size = parent.instr_shape[0]
    lanes = [identity(size, "lane", "dim0"), identity(64 // size, "lane", "dim1")]
    return _scales(dot_operand_layout, parent, lanes, shape, 1)


def wmma_scale_layout(dot_operand_layout: DotOperandLayout, shape: Sequence[int]) -> DistributedLinearLayout:
    """The layout of the scales of an operand of a scaled WMMA of gfx1250: [M, K / 32] or [N, K / 32].

    The upper 16 lanes have the scales of a second tile, if `tiles_per_warp` is 2 there, or copies. Gluon's
    get_wmma_scale_layout.

    >>> parent = AMDWMMALayout(3, True, [1, 1], [16, 16, 128])
    >>> wmma_scale_layout(DotOperandLayout(0, parent, 16), [16, 4]).lane_bases[-1]
    (0, 0)
    """
    parent = dot_operand_layout.parent if isinstance(dot_operand_layout, DotOperandLayout) else None
    if not isinstance(parent, AMDWMMALayout) or parent.version != 3 or parent.rank != 2:
        raise LayoutError(
            "wmma_scale_layout: the layout must be an operand of an AMDWMMALayout of version 3 and rank 2, got "
            f"{dot_operand_layout!r}"
        )
    tiles = (parent.tiles_per_warp or ())[dot_operand_layout.operand_index]
    if tiles > 2:
        raise LayoutError(f"wmma_scale_layout: there are lanes for 1 or 2 tiles per warp, tiles_per_warp says {tiles}")
    upper = identity(2, "lane", "dim0") if tiles == 2 else copies("lane", 2, "dim0")
    lanes = [identity(4, "register", "dim1"), identity(16, "lane", "dim0"), upper]
    return _scales(dot_operand_layout, parent, lanes, shape, tiles)


def _scales(
    operand: DotOperandLayout,
    parent: AMDMFMALayout | AMDWMMALayout,
    tile: list[LinearLayout],
    shape: Sequence[int],
    tiles_in_lanes: int,
) -> DistributedLinearLayout:
    """A tile of scales over all of K, then over the tiles of a warp, then over the warps that share the operand."""
    index = operand.operand_index
    sizes = checks.shape_of("the layout of scales", shape, 2)
    covered = fragment((0, 1), *tile).out_dims["dim1"]
    warps = parent.warps_per_cta
    along = [identity(warps[1], "warp", "dim0"), copies("warp", warps[0], "dim1")]
    if index == 0:
        along = [copies("warp", warps[1], "dim1"), identity(warps[0], "warp", "dim0")]
    pieces = [
        *tile,
        identity(max(1, sizes[1] // covered), "register", "dim1"),
        identity((parent.tiles_per_warp or ())[index] // tiles_in_lanes, "register", "dim0"),
        *along,
    ]
    bases = combine(fragment((0, 1), *pieces), (), sizes).bases
    return DistributedLinearLayout(bases["register"], bases["lane"], bases["warp"], bases["block"], sizes)
