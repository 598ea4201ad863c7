"""triton._C.libtriton.gluon_ir."""

from __future__ import annotations

from collections.abc import Sequence

from weft import layouts


def make_cga_layout(
    ctas_per_cga: Sequence[int], cta_split_num: Sequence[int], cta_order: Sequence[int]
) -> list[list[int]]:
    """The bases of `cga_layout`, as lists: blocks of a cluster split a tile `cta_split_num`, the rest hold copies."""
    return [list(basis) for basis in layouts.make_cga_layout(ctas_per_cga, cta_split_num, cta_order)]
