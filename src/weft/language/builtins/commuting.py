"""With the option `debug`, a reduction asserts that its function commutes, on neighbours of the values at hand.

    tl.reduce(x, 0, f)        x = 1 2 3 4        f(1, 2) = f(2, 1)?  f(2, 3) = f(3, 2)?  f(3, 4) ...  f(4, 1) ...

Nothing is promised about the order in which a reduction combines elements, so a function that does not commute has
another result on another target. Integers must be equal. Floats may differ by a hundredth of their magnitude: functions
such as Welford's commute but for rounding. Tiles that have layouts (Gluon's) are not checked.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from weft import ir

from .. import dtypes as dt
from ..callable import JITCallable
from ..constants import unwrap
from ..dtypes import block_type
from ..tensors import block_shape, tensor

if TYPE_CHECKING:
    from ..semantic import TritonSemantic

__all__ = ["check_commutes"]

TEXT = "the function of this reduction does not commute: f(a, b) is not f(b, a), and no order is promised"
SHARE = 0.01
"""Of the magnitudes of what is combined and of the results: by how much floats may differ."""


def check_commutes(
    combine_fn: Any, inputs: Sequence[tensor], axis: int | None, apply: Any, semantic: TritonSemantic
) -> None:
    """Assert it, if that is wanted; `apply` computes the function of scalars on tiles."""
    if not semantic._checks_promises() or not isinstance(unwrap(combine_fn), JITCallable):
        return
    if not all(type(t.type) is block_type and _is_number(t.dtype) for t in inputs):
        return
    if axis is None:
        inputs, axis = [semantic._flat(t) for t in inputs], 0
    length = block_shape(inputs[0])[axis]
    if length == 1:
        return
    options = semantic.options
    semantic.options = replace(options, debug=False)  # what is checked inside of it is checked in the reduction
    try:
        after = semantic.and_(semantic.add(semantic.positions(inputs[0], axis), 1, False), length - 1)
        others = [semantic._along(t, after, axis) for t in inputs]
        left, right = apply([*inputs, *others]), apply([*others, *inputs])
        agree = None
        for first, second, x, y in zip(left, right, inputs, others, strict=True):
            same = _equal(first, second, x, y, semantic)
            agree = same if agree is None else semantic.and_(agree, same)
    finally:
        semantic.options = options
    semantic.device_assert(agree, TEXT, None)


def _is_number(kind: Any) -> bool:
    return bool(kind.is_int() or kind.is_standard_floating())


def _equal(first: tensor, second: tensor, x: tensor, y: tensor, semantic: TritonSemantic) -> tensor:
    """Whether two results are the same: equal, nearly equal floats, or both NaN."""
    equal = semantic.equal(first, second)
    if not first.dtype.is_floating():
        return equal
    wide = dt.float64 if first.dtype.is_fp64() else dt.float32
    both_nan = semantic.and_(semantic.not_equal(first, first), semantic.not_equal(second, second))
    size = None
    for value in (first, second, x, y):
        part = semantic._same(ir.math.AbsFOp, semantic.cast(value, wide))
        size = part if size is None else semantic.add(size, part, False)
    difference = semantic.sub(semantic.cast(first, wide), semantic.cast(second, wide), False)
    distance = semantic._same(ir.math.AbsFOp, difference)
    near = semantic.less_equal(distance, semantic.mul(size, SHARE, False))
    return semantic.or_(equal, semantic.or_(both_nan, near))
