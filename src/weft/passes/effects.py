"""Which operations may be dropped when unused, and which may be shared when equal."""

from __future__ import annotations

from functools import cache

from xdsl.dialects import arith, scf
from xdsl.ir import Operation
from xdsl.traits import NoMemoryEffect

from weft.ir import splat_value, tt

_LACKING = (arith.ExtSIOp, arith.RemUIOp)
"""Pure operations that xDSL does not say are."""

_HOLDERS = (tt.ReduceOp, tt.ScanOp, tt.MapElementwiseOp, scf.ForOp, scf.IfOp)
"""Operations whose effects are those of what they hold (`scf.while` may also not end)."""


@cache
def _pure_class(cls: type[Operation]) -> bool:
    return (cls.has_trait(NoMemoryEffect) or cls in _LACKING) and not cls.name.endswith("return")


def shareable(op: Operation) -> bool:
    """Do two of these with equal operands and properties have equal results, with no effect?"""
    if _pure_class(type(op)):
        return bool(op.results) and not op.regions
    if isinstance(op, tt.ExternElementwiseOp | tt.ElementwiseInlineAsmOp):
        return bool(splat_value(op.properties["pure"]))
    return False


def droppable(op: Operation) -> bool:
    """May this be dropped if nobody uses its results? What it holds must have been asked before."""
    if _pure_class(type(op)):
        return bool(op.results)
    if isinstance(op, tt.LoadOp):
        volatile = op.properties.get("isVolatile")
        return volatile is None or not splat_value(volatile)
    if isinstance(op, tt.DescriptorLoadOp | tt.DescriptorGatherOp):
        return True
    if isinstance(op, tt.ExternElementwiseOp | tt.ElementwiseInlineAsmOp):
        return bool(splat_value(op.properties["pure"]))
    if isinstance(op, _HOLDERS):
        return all(_quiet(inner) for region in op.regions for block in region.blocks for inner in block.ops)
    return False


def _quiet(op: Operation) -> bool:
    return droppable(op) or (op is getattr(op.parent, "last_op", None) and not op.successors)
