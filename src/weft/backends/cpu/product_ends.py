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

from collections.abc import Sequence
from typing import NamedTuple

from weft.backends.cpu.coords import row_major
from weft.backends.cpu.mask_bounds import Bound, Bounds, Key, bounds_of, end_of, is_settled
from weft.backends.cpu.program import Op, Value
from weft.backends.cpu.schedule import Scheduler
from weft.backends.llvm.values import Value as Reg

MOST_READERS = 24
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
    rows, columns = (_of_readers(s, op.result, axis) for axis in (0, 1))
    left, right = _of_zeros(s, a), _of_zeros(s, b)
    depth = None
    if left is not None and right is not None and left.axes[1] and right.axes[0]:
        depth = _greatest(s, [left.axes[1], right.axes[0]], k)
    left_lies = (
        left is not None
        and _is_all(s, a, left)
        and (not left.axes[0] or (bool(rows) and all(_keys(left.axes[0]) <= _keys(end) for end in rows)))
        and _keys(left.axes[1]) <= _keys(right.axes[0] if right is not None else ())
    )
    right_lies = (
        right is not None
        and _is_all(s, b, right)
        and _keys(right.axes[0]) <= _keys(left.axes[1] if left is not None else ())
    )
    across = end_of(s, right.axes[1], n) if right is not None and right_lies and right.axes[1] else None
    return ProductEnds(_greatest(s, rows, m), _greatest(s, columns, n), depth, left_lies, right_lies, across)


def _keys(bounds: Sequence[Bound]) -> set[Key]:
    return {bound.key for bound in bounds}


def _greatest(s: Scheduler, ends: Sequence[Sequence[Bound]], size: int) -> Reg | None:
    """The last of some ends, each of which is the first of some bounds."""
    if not ends:
        return None
    different = {frozenset(_keys(bounds)): bounds for bounds in ends}
    greatest, *others = (end_of(s, bounds, size) for bounds in different.values())
    for end in others:
        greatest = s.f.select(s.f.icmp("ult", greatest, end), end, greatest)
    return greatest


def _of_zeros(s: Scheduler, value: Value) -> Bounds | None:
    """From where on an operand is zero along either axis, as its mask says."""
    while value.op is not None and value.op.name in WIDENING and value not in s.env:
        value = value.op.args[0]
    load = value.op
    if load is None or load.name != "tt.load" or len(load.args) < 3 or not _is_zero(load.args[2]):
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


def _is_zero(value: Value) -> bool:
    while value.op is not None and value.op.name in ("tt.splat", "tt.broadcast"):
        value = value.op.args[0]
    return value.op is not None and value.op.name == "arith.constant" and value.op.attrs["value"] == 0


def _of_readers(s: Scheduler, value: Value, axis: int) -> list[list[Bound]]:
    """Where those that read a tile, directly or element by element, stop along an axis: at the masks of stores that are
    the same throughout a program. Nothing if one of them does not.
    """
    ends: list[list[Bound]] = []
    todo, seen = [value], {value}
    while todo:
        current = todo.pop()
        if current.elem[0] not in "fb" or len(seen) > MOST_READERS:  # what is not written may be any number
            return []
        following: list[Value] = []
        for user in current.users:
            if user.name == "tt.store" and user.args[1] is current and len(user.args) > 2:
                bounds = [bound for bound in bounds_of(s, user.args[2]).axes[axis] if is_settled(s, bound)]
                if not bounds:
                    return []
                ends.append(bounds)
            elif user.name == "scf.yield" and user.block.parent is not None and user.block.parent.name == "scf.for":
                loop = user.block.parent
                carried = list(zip(user.args, loop.results, user.block.args[1:], strict=True))
                following += [v for arg, *more in carried if arg is current for v in more]
            elif user.name == "scf.for":
                inits = user.args[len(user.args) - len(user.results) :]
                carried = list(zip(inits, user.results, user.regions[0][0].args[1:], strict=True))
                following += [v for arg, *more in carried if arg is current for v in more]
            elif user.name == "tt.dot" and current is user.args[2] and current not in user.args[:2]:
                following.append(user.result)
            elif user.name.startswith(("arith.", "math.")) and len(user.results) == 1 and not user.regions:
                if user.result.shape != value.shape:
                    return []
                following.append(user.result)
            else:
                return []
        todo += [v for v in following if v not in seen]
        seen.update(following)
    return ends
