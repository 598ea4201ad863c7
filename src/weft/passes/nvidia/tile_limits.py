"""The limits within which a mask lets elements of a tile be loaded or stored.

    (64 * %pid + 0..63)[:, None] < %M  &  (0..31)[None, :] < %K - 32 * %k
permits elements [i, j] with
    i + (64 pid - M) < 0   and   j + (32 k - K) < 0

A limit is its dimension and the sum in parentheses. A limit from below, `%row + i >= 0`, has `i + row >= 0`. A
comparison of scalars, `%z < %Z`, bounds the whole tile: such a limit has no dimension.
"""

from __future__ import annotations

from dataclasses import dataclass

from xdsl.dialects import arith
from xdsl.ir import Operation, SSAValue

from weft.ir import i1, int_value, ints_of, is_tensor, shape_of, splat_value, tt

from ..affine import NOTHING, ONE, Form, Forms, NotAffine, Sum, is_argument

LESS, AT_MOST, MORE, AT_LEAST = 2, 3, 4, 5
"""Comparisons of integers with a sign, by xDSL's numbers."""


@dataclass(frozen=True)
class Limit:
    """Elements i along a dimension with i + offset < 0; or from below, with i + offset >= 0. Without a dimension all
    elements, if offset < 0, or if offset >= 0."""

    dim: int | None
    offset: Sum
    below: bool = False


def limits_of(mask: SSAValue | None, forms: Forms, *, all_of_it: bool) -> list[Limit]:
    """The limits that a mask consists of. With `all_of_it`, NotAffine where it is more than limits."""
    if mask is None:
        return []
    found: list[Limit] = []
    todo = [(mask, tuple(range(len(shape_of(mask.type)))))]
    while todo:
        value, dims = todo.pop()
        op = value.owner
        if isinstance(op, arith.ConstantOp) and splat_value(op.value):
            continue
        if isinstance(op, arith.AndIOp):
            todo += [(x, dims) for x in op.operands]
        elif isinstance(op, tt.BroadcastOp) or (isinstance(op, Operation) and op.name == "ttg.convert_layout"):
            todo.append((op.operands[0], dims))
        elif isinstance(op, tt.ExpandDimsOp):
            axis = int_value(op.properties["axis"])
            todo.append((op.operands[0], tuple(d for i, d in enumerate(dims) if i != axis)))
        elif isinstance(op, tt.TransOp):
            order = ints_of(op.properties["order"])
            todo.append((op.operands[0], tuple(dims[order.index(i)] for i in range(len(order)))))
        elif isinstance(op, tt.SplatOp) and isinstance(op.operands[0].owner, arith.CmpiOp | arith.AndIOp):
            todo.append((op.operands[0], ()))
        elif isinstance(op, arith.CmpiOp):
            try:
                found.append(_compared(op, dims, forms))
            except NotAffine:
                if all_of_it:
                    raise
        elif all_of_it:
            if isinstance(op, tt.SplatOp) and op.operands[0].type == i1:
                raise NotAffine("are masked as a whole")
            raise NotAffine("are masked by conditions other than limits of rows and columns")
    return found


def _compared(op: arith.CmpiOp, dims: tuple[int, ...], forms: Forms) -> Limit:
    kind, (a, b) = int_value(op.predicate), op.operands
    if kind in (MORE, AT_LEAST):
        a, b, kind = b, a, {MORE: LESS, AT_LEAST: AT_MOST}[kind]
    if kind not in (LESS, AT_MOST):
        raise NotAffine("are masked by a comparison other than <, <=, > and >=")
    left, right = (forms.of(x) if is_tensor(x.type) else Form(forms.scalar(x), ()) for x in (a, b))
    more = ONE if kind == AT_MOST else NOTHING
    if left.is_uniform and right.is_uniform:
        return _of_all(left.offset - right.offset - more)
    if (at := left.counts_beyond(right)) is not None:  # left - right - more < 0
        return Limit(dims[at], left.offset - right.offset - more)
    if (at := right.counts_beyond(left)) is not None:  # right - left + more > 0
        return Limit(dims[at], right.offset - left.offset + more - ONE, below=True)
    raise NotAffine("are masked by conditions other than limits of rows and columns")


def _of_all(negative: Sum) -> Limit:
    """The limit that a sum is less than 0, where its scalars that are no arguments count up; or else count down."""
    moving = [n for m, n in negative.terms.items() if not all(map(is_argument, m))]
    if moving and all(n < 0 for n in moving):
        return Limit(None, negative * -1 - ONE, below=True)
    return Limit(None, negative)
