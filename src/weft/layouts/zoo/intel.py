"""The result and operands of Intel's matrix instruction DPAS (dot product accumulate systolic).

Gluon has no class for it; the parameters are those of the attribute `#triton_intel_gpu.dpas` of Intel's backend. One
instruction multiplies A, `repeat_count` rows of K, by B, K rows of `execution_size`, where K is `systolic_depth` times
`ops_per_channel`, the number of elements that are multiplied at once: as many as 32 bits hold.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from weft.base import LayoutError

from ..linear import LinearLayout
from . import checks
from .base import DistributedLayout
from .cga import Bases, combine
from .parts import copies, fragment, identity

__all__ = ["IntelDPASLayout"]


@dataclass(frozen=True, repr=False)
class IntelDPASLayout(DistributedLayout):
    """The result of DPAS: `repeat_count` rows of `execution_size` elements, row after row over the lanes.

    `rep_cluster` instructions side by side belong together; `threads_per_warp` is 16 or 32, and 8 with the instruction
    of DG2, whose `execution_size` is 8. Operands have the `k_width` that fills 16 bits (A), 32 bits (B):
    ops_per_channel / 2 (1 or more) and ops_per_channel. Eight threads have 32 bits of A as well, all of its K.

    >>> layout = IntelDPASLayout(8, 8, 16, 2, [1, 1], [1, 1], 16)
    >>> layout.to_linear([8, 16]).bases["register"], layout.to_linear([8, 16]).bases["lane"]
    (((1, 0), (2, 0), (4, 0)), ((0, 1), (0, 2), (0, 4), (0, 8)))
    """

    repeat_count: int
    systolic_depth: int
    execution_size: int
    ops_per_channel: int
    warps_per_cta: Sequence[int]
    rep_cluster: Sequence[int]
    threads_per_warp: int

    def __post_init__(self) -> None:
        name = self._name
        warps = checks.sizes(name, "warps_per_cta", self.warps_per_cta)
        if len(warps) not in (2, 3):
            raise LayoutError(f"{name}: warps_per_cta must have 2 entries, or 3 for a batch, got {list(warps)}")
        threads = checks.power_of_two(name, "threads_per_warp", self.threads_per_warp)
        wide = checks.power_of_two(name, "execution_size", self.execution_size)
        if threads < wide:
            raise LayoutError(f"{name}: threads_per_warp must be execution_size ({wide}) or more, got {threads}")
        self._set(
            repeat_count=checks.one_of(name, "repeat_count", self.repeat_count, (1, 2, 4, 8)),
            systolic_depth=checks.one_of(name, "systolic_depth", self.systolic_depth, (8,)),
            execution_size=wide,
            ops_per_channel=checks.one_of(name, "ops_per_channel", self.ops_per_channel, (1, 2, 4, 8)),
            warps_per_cta=warps,
            rep_cluster=checks.sizes(name, "rep_cluster", self.rep_cluster, len(warps), "warps_per_cta"),
            threads_per_warp=threads,
        )

    @property
    def rank(self) -> int:
        return len(self.warps_per_cta)

    @property
    def cga_layout(self) -> Bases:
        """There are no clusters."""
        return ()

    def _linear(self, shape: tuple[int, ...]) -> LinearLayout:
        m, n = f"dim{self.rank - 2}", f"dim{self.rank - 1}"
        rows = self.threads_per_warp // self.execution_size
        tile = [
            identity(self.execution_size, "lane", n),
            identity(rows, "lane", m),
            identity(max(1, self.repeat_count // rows), "register", m),
        ]
        return self._over(tile, shape, (self.rank - 2, self.rank - 1), None)

    def check_operand(self, index: int, k_width: int) -> None:
        wanted = self.k_widths[index]
        if k_width != wanted:
            raise LayoutError(
                f"DotOperandLayout: k_width of operand {index} of {self!r} must be {wanted}, got {k_width}",
                hint="lanes hold 16 bits of operand 0 (32 if there are 8 lanes) and 32 bits of operand 1 at once",
            )

    @property
    def k_widths(self) -> tuple[int, int]:
        """The `k_width` of operand 0 and of operand 1."""
        depth = self.systolic_depth * self.ops_per_channel
        return max(1, self.ops_per_channel // 2, depth // self.threads_per_warp), self.ops_per_channel

    def operand(self, index: int, k_width: int, shape: tuple[int, ...]) -> LinearLayout:
        """An operand: A row after row over the lanes, B in columns of `ops_per_channel` elements."""
        m, n = self.rank - 2, self.rank - 1
        depth = self.systolic_depth * self.ops_per_channel
        if index == 0:
            lanes_k = depth // k_width
            rows = self.threads_per_warp // lanes_k
            tile = [
                identity(k_width, "register", f"dim{n}"),
                identity(lanes_k, "lane", f"dim{n}"),
                identity(rows, "lane", f"dim{m}"),
                identity(max(1, self.repeat_count // rows), "register", f"dim{m}"),
            ]
            return self._over(tile, shape, (m, n), n)
        rows = self.threads_per_warp // self.execution_size
        tile = [
            identity(k_width, "register", f"dim{m}"),
            identity(self.execution_size, "lane", f"dim{n}"),
            identity(rows, "lane", f"dim{m}"),
            identity(max(1, self.systolic_depth // rows), "register", f"dim{m}"),
        ]
        return self._over(tile, shape, (n, m), m)

    def _over(
        self, tile: list[LinearLayout], shape: tuple[int, ...], dims: tuple[int, int], k: int | None
    ) -> LinearLayout:
        """One instruction's tile over the tensor: clusters, then warps, then again along `dims`, the last one first.

        Along `k`, the dimension that is summed over, there are no clusters, and all warps have the same.
        """
        pieces = list(tile)
        last_two = (self.rank - 1, self.rank - 2)
        for d in last_two:
            if d != k:
                pieces.append(identity(self.rep_cluster[d], "register", f"dim{d}"))
        for d in last_two:
            count, dim = self.warps_per_cta[d], f"dim{d}"
            pieces.append(copies("warp", count, dim) if d == k else identity(count, "warp", dim))
        order = (dims[1], dims[0], *range(self.rank - 3, -1, -1))
        if self.rank == 3:
            pieces.append(identity(self.warps_per_cta[0], "warp", "dim0"))
        return combine(fragment(order, *pieces), (), shape)
