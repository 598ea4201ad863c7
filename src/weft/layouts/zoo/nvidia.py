"""The results and operands of NVIDIA's matrix instructions that are in registers: mma.sync and wgmma."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from weft.base import LayoutError

from ..linear import LinearLayout
from . import checks
from .base import DistributedLayout
from .blocked import operand_cga
from .cga import check_cga, combine
from .parts import fragment, identity, identity_nd, matrix_order, operand_order

__all__ = ["NVMMADistributedLayout"]


def _tile(inner: str, outer: str, sizes: tuple[int, int], k_width: int) -> list[LinearLayout]:
    """The tile of one instruction, as pieces: (8 lanes) x (4 lanes of k_width registers), repeated outwards."""
    m, n = sizes
    return [
        identity(k_width, "register", inner),
        identity(4, "lane", inner),
        identity(8, "lane", outer),
        identity(m // 8, "register", outer),
        identity(n // (4 * k_width), "register", inner),
    ]


@dataclass(frozen=True, repr=False)
class NVMMADistributedLayout(DistributedLayout):
    """The accumulator of a matrix instruction: `version` [2, 0] is mma.sync, [3, 0] is wgmma.

    `instr_shape` is [16, 8] (with leading ones for a batch) for mma.sync and [16, N, K] for wgmma, the part of one
    warp. Warps are counted along dim1 first for mma.sync, along dim0 first for wgmma. There is no wgmma of a batch:
    with three entries in `warps_per_cta`, version [3, 0] only is the parent of operands in registers.

    >>> NVMMADistributedLayout([2, 0], [1, 1], [16, 8]).to_linear([16, 8]).bases["lane"]
    ((0, 2), (0, 4), (1, 0), (2, 0), (4, 0))
    """

    warp_threads: ClassVar[int] = 32
    version: Sequence[int]
    warps_per_cta: Sequence[int]
    instr_shape: Sequence[int]
    cga_layout: Sequence[Sequence[int]] = ()

    def __post_init__(self) -> None:
        name = self._name
        version = checks.sequence(name, "version", self.version)
        if len(version) != 2 or version[0] not in (2, 3):
            raise LayoutError(
                f"{name}: version must be [2, 0] (mma.sync) or [3, 0] (wgmma), got {list(version)}",
                hint="the accumulators of version [5, 0] (tcgen05) are in tensor memory, see TensorMemoryLayout"
                if version[:1] == (5,)
                else None,
            )
        warps = checks.sizes(name, "warps_per_cta", self.warps_per_cta)
        if len(warps) not in (2, 3):
            raise LayoutError(f"{name}: warps_per_cta must have 2 entries, or 3 for a batch, got {list(warps)}")
        self._set(
            version=version,
            warps_per_cta=warps,
            instr_shape=self._checked_shape(version, len(warps)),
            cga_layout=check_cga(name, self.cga_layout, len(warps)),
        )

    def _checked_shape(self, version: tuple[int, ...], rank: int) -> tuple[int, ...]:
        name = self._name
        shape = checks.sizes(name, "instr_shape", self.instr_shape)
        legal = (len(shape) == rank, "[..., 16, 8], one for each dimension")
        if version[0] == 3:
            legal = (len(shape) in (2, 3), "[16, N, K]")
            m, n = shape[:2] if legal[0] else (0, 0)
        else:
            m, n = shape[-2:] if legal[0] else (0, 0)
        if m < 8 or n < 8:
            raise LayoutError(
                f"{name}: instr_shape of version {list(version)} for rank {rank} must be {legal[1]}, with 8 or more "
                f"rows and columns; got {list(shape)}"
            )
        return shape

    @property
    def rank(self) -> int:
        return len(self.warps_per_cta)

    @property
    def _warp_order(self) -> tuple[int, ...]:
        return matrix_order(self.rank, row_major=self.version[0] == 2)

    def _linear(self, shape: tuple[int, ...]) -> LinearLayout:
        if self.version[0] == 3 and self.rank != 2:
            raise LayoutError(
                f"{self._name}: the rank of wgmma's result must be 2, got {self.rank} from warps_per_cta",
                hint="there is no wgmma of a batch; only operands in registers have a layout of rank 3",
            )
        order = matrix_order(self.rank)
        size = self.instr_shape[-2:] if self.version[0] == 2 else self.instr_shape[:2]
        tile = _tile(f"dim{order[0]}", f"dim{order[1]}", (size[0], size[1]), 2)
        warps = identity_nd("warp", self.warps_per_cta, self._warp_order)
        return combine(fragment(order, *tile, warps), self.cga_layout, shape)

    def check_operand(self, index: int, k_width: int) -> None:
        if not k_width:
            raise LayoutError(f"DotOperandLayout: k_width is 0; operands of {self!r} need a power of two")
        if index and self.version[0] == 3:
            raise LayoutError(
                "DotOperandLayout: operand 1 of wgmma is in shared memory, it has no layout in registers",
                hint="store it to shared memory in an NVMMASharedLayout",
            )

    def operand(self, index: int, k_width: int, shape: tuple[int, ...]) -> LinearLayout:
        """An operand: 16 rows (operand 0) or 8 columns (1), by 8 * `k_width` elements along the summed dimension."""
        order = operand_order(index, self.rank)
        k = order[0]
        tile = _tile(f"dim{k}", f"dim{order[1]}", (8 if index else 16, 8 * k_width), k_width)
        warps = identity_nd("warp", self.warps_per_cta, self._warp_order, zero=k)
        return combine(fragment(order, *tile, warps), operand_cga(self.cga_layout, k), shape)
