"""How much of a product is asked for: the rows and columns that somebody reads, and the part of K that is not padding.

Blocks seldom divide the sizes of matrices, and the masks of a kernel know where these end:

    a = tl.load(a_ptr + ..., mask=(m[:, None] < M) & (k[None, :] < K), other=0.0)
    b = tl.load(b_ptr + ..., mask=(k[:, None] < K) & (n[None, :] < N), other=0.0)
    acc = tl.dot(a, b, acc)
    ...
    tl.store(c_ptr + ..., acc, mask=(m[:, None] < M) & (n[None, :] < N))

From K on both operands are zeros, which add nothing. Rows from M on and columns from N on are not stored, and nothing
else reads `acc`, so that they need not be computed. What is zero in one operand alone is multiplied: the other may be
infinite there. The ends are numbers that are known when the product is begun, and `blocks` goes as far as they say.

An operand whose mask ends it nowhere else is read where the kernel loads it from, as nothing beyond is looked at: A if
the rows of its mask end where those of the stores do, and its columns where the rows of B do; B if its rows end where
the columns of A do, since its own columns are loaded under masks.
"""

from __future__ import annotations

from typing import NamedTuple

from weft.backends.cpu.coords import row_major
from weft.backends.cpu.mask_bounds import Bounds, bounds_of, end_of, ends_of_readers, keys_of, last_end
from weft.backends.cpu.program import Op, Value
from weft.backends.cpu.schedule import Scheduler
from weft.backends.llvm.values import Value as Reg

WIDENING = ("arith.extf", "arith.truncf", "tt.fp_to_fp")  # of zero make zero


class ProductEnds(NamedTuple):
    """How many rows, columns and elements of K are multiplied (i64); None where it is all that there are."""

    rows: Reg | None = None
    columns: Reg | None = None
    depth: Reg | None = None
    left_lies: bool = False
    """Whether A, though loaded under a mask, is all there in these rows and this depth."""
    right_lies: bool = False
    """Whether B is all there in this depth, before `right_columns`."""
    right_columns: Reg | None = None
    """Where the columns of a B that lies there end; behind that are zeros."""


def product_ends(s: Scheduler, op: Op) -> ProductEnds:
    """The ends of a product of two matrices that begins now."""
    a, b, _ = op.args
    if len(a.shape) != 2:
        return ProductEnds()
    (m, k), n = a.shape, b.shape[1]
    rows, columns = (ends_of_readers(s, op.result, axis) for axis in (0, 1))
    left, right = _of_zeros(s, a), _of_zeros(s, b)
    depth = None
    if left is not None and right is not None and left.axes[1] and right.axes[0]:
        depth = last_end(s, [left.axes[1], right.axes[0]], k)
    left_lies = (
        left is not None
        and _is_all(s, a, left)
        and (not left.axes[0] or (bool(rows) and all(keys_of(left.axes[0]) <= keys_of(end) for end in rows)))
        and keys_of(left.axes[1]) <= keys_of(right.axes[0] if right is not None else ())
    )
    right_lies = (
        right is not None
        and _is_all(s, b, right)
        and keys_of(right.axes[0]) <= keys_of(left.axes[1] if left is not None else ())
    )
    across = end_of(s, right.axes[1], n) if right is not None and right_lies and right.axes[1] else None
    return ProductEnds(last_end(s, rows, m), last_end(s, columns, n), depth, left_lies, right_lies, across)


def _of_zeros(s: Scheduler, value: Value) -> Bounds | None:
    """From where on an operand is zero along either axis, as its mask says."""
    while value.op is not None and value.op.name in WIDENING and value not in s.env:
        value = value.op.args[0]
    load = value.op
    if load is None or load.name != "tt.load" or len(load.args) < 3 or not is_zero(load.args[2]):
        return None
    return bounds_of(s, load.args[1])


def _is_all(s: Scheduler, value: Value, bounds: Bounds) -> bool:
    """Whether a load under these bounds is what lies in memory before them.

    Indices that addresses are made of are taken not to wrap around.
    """
    load = value.op
    if load is None or load.name != "tt.load" or not bounds.complete:
        return False
    addresses = s.analysis().walk([(load.args[0], row_major(value.shape))])
    return all(not b.orders or (b.low, b.low_at) in addresses for axis in bounds.axes for b in axis)


def is_zero(value: Value) -> bool:
    """Whether a tile is known to be all zeros."""
    while value.op is not None and value.op.name in ("tt.splat", "tt.broadcast"):
        value = value.op.args[0]
    return value.op is not None and value.op.name == "arith.constant" and value.op.attrs["value"] == 0
