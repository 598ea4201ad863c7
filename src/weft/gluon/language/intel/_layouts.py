"""The layout of DPAS with the parameters that Intel's branch of Triton gives it."""

from __future__ import annotations

from collections.abc import Sequence

from weft import layouts

from ..layouts import takes_plain_values

__all__ = ["IntelDPASLayout"]


@takes_plain_values
class IntelDPASLayout(layouts.IntelDPASLayout):
    """The result of DPAS; see `weft.layouts.IntelDPASLayout`. The order of blocks is always that of the dimensions."""

    def __init__(
        self,
        repeatCount: int,
        systolic_depth: int,
        execution_size: int,
        ops_per_chan: int,
        warps_per_cta: Sequence[int],
        rep_cluster: Sequence[int],
        threads_per_warp: int,
        cta_order: Sequence[int] | None = None,
    ) -> None:
        super().__init__(
            repeatCount, systolic_depth, execution_size, ops_per_chan, warps_per_cta, rep_cluster, threads_per_warp
        )
