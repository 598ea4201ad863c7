"""`gl.nvidia.ampere`: products in registers, asynchronous copies, barriers in shared memory (sm_80 and later)."""

from __future__ import annotations

from typing import Any

from weft.base import LayoutError
from weft.language.constants import unwrap
from weft.language.protocol import GIVEN, builtin
from weft.language.semantic import block_shape, shape_text
from weft.language.tensors import tensor
from weft.layouts import NVMMADistributedLayout

from ....operands import check_operands, check_precision
from ....semantic import GluonSemantic
from . import async_copy, mbarrier

__all__ = ["async_copy", "mbarrier", "mma_v2"]


@builtin
def mma_v2(a: tensor, b: tensor, acc: tensor, input_precision: Any = None, _semantic: GluonSemantic = GIVEN) -> tensor:
    """`a @ b + acc` by mma.sync.

    `acc` is in an NVMMADistributedLayout of version [2, 0], `a` and `b` in DotOperandLayouts of it. float32 operands
    are cut to tf32, for which there is an instruction; any other `input_precision` of theirs is an error.
    """
    layout = check_operands("mma_v2", a, b, acc, NVMMADistributedLayout)
    assert isinstance(layout, NVMMADistributedLayout)
    if tuple(layout.version) != (2, 0):
        raise LayoutError(
            f"mma_v2: the layout of `acc` must have version [2, 0], it has {list(layout.version)}: {layout!r}",
            hint="for version [3, 0] use hopper.warpgroup_mma",
        )
    _check_divides(a, b, acc, layout)
    check_precision("mma_v2", a, unwrap(input_precision))
    return _semantic.dot(a, b, acc, unwrap(input_precision), None, acc.dtype)


def _check_divides(a: tensor, b: tensor, acc: tensor, layout: NVMMADistributedLayout) -> None:
    """The instruction must go into the tile: 16 rows, 8 columns, 256 bits of K."""
    m, n = block_shape(acc)[-2:]
    k = block_shape(a)[-1]
    depth = 256 // a.dtype.primitive_bitwidth
    rows, columns = layout.instr_shape[-2:]
    for dimension, have, need in (("M", m, rows), ("N", n, columns), ("K", k, depth)):
        if have < need:
            raise LayoutError(
                f"mma_v2: the instruction is {rows} x {columns} x {depth} (M x N x K) for {a.dtype}; "
                f"{dimension} = {have} of {shape_text(block_shape(a))} times {shape_text(block_shape(b))} is {have} of "
                f"its {need}, {need - have} are left over",
                hint=f"make {dimension} a multiple of {need}",
            )
