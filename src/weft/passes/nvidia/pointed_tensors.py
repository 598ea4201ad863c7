"""Find the tensor of which a tile of pointers is a block, from the form of its addresses and its mask.

    tt.load %a + (64 pid + i) * stride + (32 k + j),    64 pid + i < M  and  32 k + j < K
is block [64 pid, 32 k] of
    a tensor from %a on, M x K elements, rows `stride` apart

so that the copy engine can load it: the launch makes a tensor map from the arguments a, M, K and stride
(base/made_tensors.py). Other summands of the addresses move the tensor's beginning, if they depend on arguments alone,
or are a dimension of their own: with `%a + z * stride_z`, the tile is block [z, 64 pid, 32 k] of a tensor of matrices,
`stride_z` apart. The conditions are:

* One dimension has step 1. The step of the other depends on arguments alone, and is known at compile time to be a
  multiple of the 16 bytes that the copy engine requires (from the divisors of the arguments).
* A mask bounds an index by a sum of arguments, its size: the copy engine writes 0 for what lies outside, as the mask
  does. If no mask bounds it, all elements exist, and the size is larger than any index.
* The block does not begin before the tensor: the bounds of integers (`analysis/bounds.py`) show that no coordinate is
  negative, not even the last one of a loop that counts down. They may assume that sizes are greater than 0, which the
  launch checks.
* A row that is taken modulo a size, or replaced by another from that size on, is the row itself wherever the product's
  result is stored (stored_elements.py).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import gcd

from xdsl.dialects import arith, scf
from xdsl.ir import BlockArgument, Operation, SSAValue

from weft import ir
from weft.analysis import AxisFacts, IntegerBounds
from weft.base import each_once
from weft.base.made_tensors import MadeTensor, Polynomial
from weft.ir import is_int, is_tensor, tt
from weft.ir.gpu.products import SharedProductOp
from weft.ir.types import TensorDescType
from weft.ops.bounds import Bounds, any_of
from weft.ops.table import ELEMENTWISE, PACKING

from ..affine import NOTHING, ONE, Form, Forms, NotAffine, Sum, is_argument
from ..fold import int_of
from ..pipeline_loads import is_zero
from .stored_elements import limits_of_result
from .tile_limits import Limit, limits_of

MOVES = ("ttg.convert_layout", "ttg.local_alloc")
"""What an operand goes through on its way to a product, beside transpositions."""
SUMS = ("arith.constant", "arith.addi", "arith.subi", "arith.muli", "arith.extsi")
"""What a form is a sum by."""
BYTES = 16
"""What strides and addresses are multiples of."""
UNBOUNDED = 1 << 31
"""A size that no index reaches."""
MOST_OUTER = 3
"""Dimensions of a tensor map beside rows and columns."""
MOST_FACTOR = 1 << 12
"""The largest factor in a column: larger ones are not steps between blocks, and may exceed 32 bits in all."""


@dataclass(frozen=True)
class PointedTensor:
    """A tensor and a block in it, rows and columns last. Columns are contiguous in memory; they are the tile's first
    dimension if it is `transposed`."""

    base: BlockArgument
    tensor: MadeTensor
    at: tuple[Sum, ...]
    transposed: bool
    apart: int
    """A power of two that divides the distance between rows in bytes."""


class WrappingForms(Forms):
    """Forms in which an index that is taken modulo a number, or is another where it is too large, is the index: where
    that may be wrong, `wrap_of` says. Numbers that are computed alike are one."""

    def __init__(self) -> None:
        super().__init__()
        self._alike: dict[tuple[object, ...], SSAValue] = {}

    def _found(self, value: SSAValue) -> Form:
        op = value.owner
        if is_tensor(value.type) and (wrap := self.wrap_of(value)) is not None:
            return self.of(wrap[0])
        is_computed = isinstance(op, Operation) and op.name.startswith("arith.") and op.name not in SUMS
        if is_computed and not is_tensor(value.type) and is_int(value.type) and int_of(value) is None:
            assert isinstance(op, Operation)
            made_of = (op.name, value.type, *op.properties.items(), *map(self.scalar, op.operands))
            return Form(Sum.scalar(self._alike.setdefault(made_of, value)), ())
        return super()._found(value)

    def wrap_of(self, value: SSAValue) -> tuple[SSAValue, Sum] | None:
        """The index and the number from which on something else is taken; None where an index is taken as it is."""
        op = value.owner
        if isinstance(op, arith.RemSIOp) and self._number(op.rhs).is_uniform:
            return op.lhs, self._number(op.rhs).offset
        if isinstance(op, arith.SelectOp) and is_tensor(op.cond.type):
            limits = limits_of(op.cond, self, all_of_it=True)
            begin = self.of(op.lhs).offset
            if len(limits) == 1 and not limits[0].below and limits[0].dim is not None:
                return op.lhs, begin - limits[0].offset
        return None


class Assuming(IntegerBounds):
    """Bounds where something is known of arguments, the least that each is, and where something is stored."""

    def __init__(self, least: Mapping[SSAValue, int], stored: Sequence[Limit], forms: Forms) -> None:
        super().__init__(wrapping=False)
        self.least, self.stored, self.forms = least, stored, forms
        self._asked: set[SSAValue] = set()

    def _argument(self, value: BlockArgument, depth: int) -> Bounds:
        if value in self.least:
            return Bounds(self.least[value], any_of(ir.bit_width(value.type)).high)
        return super()._argument(value, depth)

    def _result(self, value: SSAValue, depth: int) -> Bounds:
        bounds = super()._result(value, depth)
        is_sum = isinstance(value.owner, arith.AddiOp | arith.SubiOp)
        if bounds.low < 0 and is_sum and self.forms.scalar(value).is_positive(self):  # of what a loop carries
            bounds = Bounds(0, any_of(ir.bit_width(value.type)).high)
        if bounds.low > 0 or value in self._asked or not isinstance(value.owner, arith.SubiOp):
            return bounds
        self._asked.add(value)
        mark = len(self._trail)
        is_left = self._is_left(*value.owner.operands)
        while len(self._trail) > mark:  # what was concluded as long as it was not known
            self._bounds.pop(self._trail.pop(), None)
        self._asked.discard(value)
        return Bounds(1, max(1, bounds.high)) if is_left else bounds

    def _is_left(self, count: SSAValue, before: SSAValue) -> bool:
        """Whether numbers of blocks are left, as they are for the blocks that store something.

        `count - before` is more than 0 where count = a // c and a >= c * (before + 1). A store with the limit
        i + offset < 0 stores something only if -offset >= 1; and that is enough if a - c * (before + 1) is at least
        -offset - 1.

        With pid_m = first + r, r >= 0, and rows pid_m * B + i < M, that says of cdiv(M, B) - first:
        (M + B - 1) - B * (first + 1) - (M - pid_m * B - 1) = B * r.
        """
        op = count.owner
        if not isinstance(op, arith.DivSIOp):
            return False
        divisor = self.forms.scalar(op.rhs).known
        if divisor is None or divisor < 1:
            return False
        more = self.forms.scalar(op.lhs) - (self.forms.scalar(before) + ONE) * divisor
        return any((more + x.offset + ONE).is_positive(self) for x in self.stored if not x.below)


def pointed_tensor(op: tt.LoadOp, loop: scf.ForOp) -> PointedTensor:
    """The tensor of a load in a loop for its products. NotAffine if there is none."""
    volatile = op.properties.get("isVolatile")
    if volatile is not None and ir.int_value(volatile):
        raise NotAffine("are volatile")
    if op.other is not None and not is_zero(op.other):
        raise NotAffine("have another value than 0 where the mask is false")
    return _pointed(op, lambda forms: _stored(op, loop, forms))


def stored_tensor(op: tt.StoreOp | tt.AtomicRMWOp) -> PointedTensor:
    """That of a store, or of an atomic addition. NotAffine where there is none.

    The copy engine stores no block that begins before the tensor: where the mask may have elements before it, none of a
    block are behind its beginning then. And it stores whole runs of 16 bytes, of which rows must consist.
    """
    return _pointed(op, lambda forms: _Stored(tuple(limits_of(op.mask, forms, all_of_it=True)), (0, 1)))


def tensor_of_descriptor(base: BlockArgument) -> MadeTensor:
    """The tensor of a descriptor of rank 2 among the arguments, whose first part is `base`."""
    _, _, *sizes, stride, _ = (base.block.args[base.index + i] for i in range(6))
    shape, strides = (tuple(_polynomial(Sum.scalar(v)) for v in part) for part in (sizes, [stride]))
    return MadeTensor(_number(base), (), shape, (*strides, _polynomial(ONE)))


def _pointed(
    op: tt.LoadOp | tt.StoreOp | tt.AtomicRMWOp, stored_of: Callable[[WrappingForms], _Stored]
) -> PointedTensor:
    """The tensor of an access, of whose elements, or of what is made of them, some are stored."""
    stores = not isinstance(op, tt.LoadOp)
    if len(ir.shape_of(op.ptr.type)) != 2:
        raise NotAffine("do not have two dimensions")
    forms = WrappingForms()
    form = forms.of(op.ptr)
    base = form.base
    if not isinstance(base, BlockArgument) or not is_argument(base):
        raise NotAffine("do not begin at an argument of the kernel")
    column = next((d for d in (1, 0) if form.steps[d] == ONE and form.steps[1 - d] != ONE), None)
    if column is None:
        raise NotAffine("are not known to be consecutive along either dimension (is a stride 1?)")
    dims = (1 - column, column)
    pitch = form.steps[dims[0]]
    facts = AxisFacts()
    size = ir.bit_width(ir.pointee_of(ir.element_of(op.ptr.type))) // 8
    if not size:
        raise NotAffine("are of less than a byte")
    if not _of_arguments(pitch):
        raise NotAffine("have a stride that depends on more than arguments")
    apart = (pitch * size).divisor(facts)
    if apart % BYTES:
        raise NotAffine(f"have a stride that is not known to be a multiple of {BYTES} bytes")
    if facts.of(base).divisibility[0] % BYTES:
        raise NotAffine(f"begin at an address that is not known to be a multiple of {BYTES}")
    limits = limits_of(op.mask, forms, all_of_it=True)
    further, moving = form.offset.split(is_argument)
    further -= Sum.number(further.known_part)
    moving += Sum.number(form.offset.known_part)
    if (further * size).divisor(facts) % BYTES:
        raise NotAffine(f"begin at an address that is not known to be a multiple of {BYTES}")
    (rows, columns), shape, outer = _coordinates(moving, pitch, dims, limits)
    # Rows that are a number further on are rows of the same tensor if the mask counts them from its beginning.
    beyond = next((d for x in limits if x.below and x.dim == dims[0] and (d := (x.offset - rows).known)), 0)
    further -= pitch * beyond
    at = rows + Sum.number(beyond), columns
    shape[0] = shape[0] + Sum.number(beyond) if shape[0] is not None else None
    if any((x.stride * size).divisor(facts) % BYTES for x in outer):
        raise NotAffine(f"have a stride that is not known to be a multiple of {BYTES} bytes")
    if (at[1] * size).divisor(facts) % BYTES:
        raise NotAffine(f"begin at a column that is not known to be a multiple of {BYTES} bytes")
    if stores and shape[1] is not None and (shape[1] * size).divisor(facts) % BYTES:
        raise NotAffine(f"end in rows that are not known to be multiples of {BYTES} bytes")
    stored = stored_of(forms)  # behind the addresses: of numbers that are computed alike, theirs stand for all
    _unwrap(_wraps(op.ptr, forms), at, shape, dims, stored)
    known = [*(s for s in shape if s is not None), *(x.size for x in outer if x.size is not None)]
    ends = [*known, *(x.offset * -1 for x in stored.limits if not x.below)]
    sizes = {v for s in ends for m, n in s.terms.items() if n > 0 for v in m}
    blocks = [ir.shape_of(op.ptr.type)[dim] if stores else None for dim in dims]
    starts = [start for x in outer for start in x.starts] + _unmasked(at, dims, limits, blocks, facts)
    least = _assumed(starts, sizes, stored.limits, forms)
    whole = [Sum.number(UNBOUNDED) if s is None else s for s in (*(x.size for x in outer), *shape)]
    tensor = MadeTensor(
        _number(base),
        _polynomial(further * size),
        tuple(map(_polynomial, whole)),
        tuple(map(_polynomial, (*(x.stride for x in outer), pitch, ONE))),
        tuple(sorted((_number(v), n) for v, n in least.items())),
    )
    return PointedTensor(base, tensor, (*(x.at for x in outer), *at), column == 0, apart)


def _unwrap(
    wraps: Sequence[tuple[int, Sum, Sum]],
    at: Sequence[Sum],
    shape: list[Sum | None],
    dims: Sequence[int],
    stored: _Stored,
) -> None:
    """Give dimensions that are taken modulo a number this size. NotAffine where elements past the end matter."""
    for dim, offset, number in wraps:
        place = dims.index(dim)
        if at[place] != offset or not _of_arguments(number):
            raise NotAffine("are taken modulo something (%), so rows may not be consecutive")
        if not any(x.dim == along and x.offset == offset - number for x, along in _of_operand(stored, dim)):
            raise NotAffine("are taken modulo something (%), and results of those past the end may be stored")
        if shape[place] is None:
            shape[place] = number


def _unmasked(
    at: Sequence[Sum], dims: Sequence[int], limits: Sequence[Limit], blocks: Sequence[int | None], facts: AxisFacts
) -> list[Sum]:
    """The coordinates that no mask bounds from below. `blocks` has the extents of a store's block, whose coordinates
    the mask bounds only if they are multiples of them; None for a load."""
    starts = []
    for place, dim in enumerate(dims):
        below = [x.offset for x in limits if x.below and x.dim == dim]
        if any(x != at[place] for x in below):
            raise NotAffine("are masked from below by another index than from above")
        block = blocks[place]
        if not below or (block is not None and not at[place].begins_blocks(block, facts)):
            starts.append(at[place])
    return starts


# -- arguments --------------------------------------------------------------------------------------------------------


def _of_arguments(total: Sum) -> bool:
    return all(is_argument(v) for v in total.scalars)


def _number(value: SSAValue) -> int:
    """Which parameter an argument is, those that are tensor maps not counted."""
    assert isinstance(value, BlockArgument)
    return sum(not isinstance(a.type, TensorDescType) for a in value.block.args[: value.index])


def _polynomial(total: Sum) -> Polynomial:
    return tuple(sorted((n, tuple(sorted(map(_number, m)))) for m, n in total.terms.items()))


def _assumed(
    starts: Sequence[Sum], sizes: Iterable[SSAValue], stored: Sequence[Limit], forms: Forms
) -> dict[SSAValue, int]:
    """What arguments must at least be for coordinates not to be negative. NotAffine where nothing is enough.

    Sizes are more than 0, and what they and other numbers are divided by; the other arguments are not negative.
    """
    reached = _arguments_of(v for s in starts for v in s.scalars)
    more = {v for v in (*sizes, *reached[1]) if is_argument(v) and is_int(v.type)}
    for least in ({}, dict.fromkeys(more, 1), {**dict.fromkeys(reached[0], 0), **dict.fromkeys(more, 1)}):
        bounds = Assuming(least, stored, forms)
        if all(forms.least(s, bounds).is_positive(bounds) for s in starts):
            return least
    raise NotAffine("are not known to begin within the array")


def _arguments_of(values: Iterable[SSAValue]) -> tuple[set[SSAValue], set[SSAValue]]:
    """The integers among the arguments that values are made of; those among them by which something is divided."""
    found: tuple[set[SSAValue], set[SSAValue]] = set(), set()
    todo = [(v, False) for v in values]
    for value, divides in each_once(todo):
        op = value.owner
        if isinstance(op, Operation):
            is_division = isinstance(op, arith.DivSIOp | arith.RemSIOp)
            todo += [(x, divides or (is_division and i == 1)) for i, x in enumerate(op.operands)]
        elif isinstance(loop := op.parent_op(), scf.ForOp) and value is loop.body.block.args[0]:
            todo.append((loop.operands[0], divides))
        elif is_argument(value) and is_int(value.type):
            found[0].add(value)
            if divides:
                found[1].add(value)
    return found


# -- coordinates ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Outer:
    """A dimension beside rows and columns, of which a block has one place."""

    stride: Sum
    at: Sum
    size: Sum | None
    starts: tuple[Sum, ...]
    """What must not be negative: the place itself, where the mask does not say so of it."""


def _coordinates(
    offset: Sum, pitch: Sum, dims: tuple[int, int], limits: Sequence[Limit]
) -> tuple[tuple[Sum, Sum], list[Sum | None], list[_Outer]]:
    """Row and column of a block, the sizes that its mask says, and further dimensions."""
    those = [x for x in limits if x.dim is not None]
    upper = {x.dim: x.offset for x in those if not x.below}
    if len(upper) < sum(not x.below for x in those):
        raise NotAffine("are masked by two limits of one index")
    tried = [_divided(offset, pitch)]
    if dims[0] in upper:  # and the matrices that it is bounded in, where rows are a known number of elements apart
        row = _moving(upper[dims[0]])
        if (apart := pitch.known or 0) > 0:  # and a constant is whole rows and a column in a row
            row += Sum.number((offset - row * pitch).known_part // apart)
        tried.append((row, offset - row * pitch))
    if dims[1] in upper:  # the index that is bounded, where rows are a known number of elements apart
        column = _moving(upper[dims[1]])
        rows, rest = _divided(offset - column, pitch)
        tried.append((rows, rest + column))
    addressed = set(offset.scalars)
    for rows, rest in tried:
        if not addressed.issuperset(rows.scalars):  # what only the mask knows is a limit, no part of an index
            continue
        outer, columns = _by_strides(rest)
        shape = [at - upper[dim] if dim in upper else None for at, dim in zip((rows, columns), dims, strict=True)]
        if all(s is None or _of_arguments(s) for s in shape):
            if len(outer) > MOST_OUTER or any(abs(n) > MOST_FACTOR for m, n in columns.terms.items() if m):
                break
            return (rows, columns), shape, _sized(outer, [x for x in limits if x.dim is None])
    raise NotAffine("are masked by limits that are not those of an array, or run along too many dimensions")


def _moving(limit: Sum) -> Sum:
    """The part of a limit's offset that depends on no argument and is not constant."""
    moving = limit.split(lambda v: not is_argument(v))[0]
    return moving - Sum.number(moving.known_part)


def _sized(outer: Mapping[Sum, Sum], limits: Sequence[Limit]) -> list[_Outer]:
    """Further dimensions with what a mask says of all elements of a block."""
    found: list[_Outer] = []
    left = list(limits)
    for stride, at in outer.items():
        ends = [x for x in left if not x.below and _of_arguments(at - x.offset)]
        begins = [x for x in left if x.below and _of_arguments(x.offset - at)]
        left = [x for x in left if x not in (*ends, *begins)]
        if len(ends) > 1:
            raise NotAffine("are masked by two limits of one index")
        starts = tuple(x.offset for x in begins if x.offset != at) if begins else (at,)
        found.append(_Outer(stride, at, at - ends[0].offset if ends else None, starts))
    if left:
        raise NotAffine("are masked as a whole")
    return found


def _by_strides(rest: Sum) -> tuple[dict[Sum, Sum], Sum]:
    """What is multiplied by arguments: coordinates by strides; and the rest, an index along a row."""
    outer: dict[Sum, Sum] = {}
    columns = NOTHING
    for scalars, n in rest.terms.items():
        stride = tuple(v for v in scalars if is_argument(v))
        if stride:
            key = Sum({stride: 1})
            outer[key] = outer.get(key, NOTHING) + Sum({tuple(v for v in scalars if not is_argument(v)): n})
        else:
            columns += Sum({scalars: n})
    factors = {stride: gcd(*at.terms.values()) for stride, at in outer.items()}
    return {s * factors[s]: Sum({m: n // factors[s] for m, n in at.terms.items()}) for s, at in outer.items()}, columns


def _divided(offset: Sum, pitch: Sum) -> tuple[Sum, Sum]:
    """(rows, rest) of rows * pitch + rest."""
    if len(pitch.terms) != 1:
        raise NotAffine("have a stride that is a sum")
    ((scalars, factor),) = pitch.terms.items()
    rows, rest = offset, NOTHING
    for i, v in enumerate(scalars):
        rows, more = rows.split_by(v)
        for w in scalars[:i]:
            more = more * Sum.scalar(w)
        rest += more
    whole = {m: n // factor for m, n in rows.terms.items() if n % factor == 0}
    left = Sum({m: n for m, n in rows.terms.items() if n % factor})
    for v in scalars:
        left = left * Sum.scalar(v)
    return Sum(whole), rest + left


# -- what is taken modulo a size --------------------------------------------------------------------------------------


def _wraps(pointers: SSAValue, forms: WrappingForms) -> list[tuple[int, Sum, Sum]]:
    """What a tile of pointers takes modulo a number: the tile's dimension, what the index begins with, the number."""
    found: list[tuple[int, Sum, Sum]] = []
    rank = len(ir.shape_of(pointers.type))
    todo: list[tuple[SSAValue, tuple[int, ...]]] = [(pointers, tuple(range(rank)))]
    for value, dims in each_once(todo):
        if not is_tensor(value.type):
            continue
        op = value.owner
        if isinstance(value, BlockArgument):
            loop = value.block.parent_op()
            assert isinstance(loop, scf.ForOp) and loop.body.block.last_op is not None
            todo += [(loop.operands[2 + value.index], dims)]
            todo += [(loop.body.block.last_op.operands[value.index - 1], dims)]
            continue
        assert isinstance(op, Operation)
        if (wrap := forms.wrap_of(value)) is not None:
            index, number = forms.of(wrap[0]), wrap[1]
            moving = [d for d, step in zip(dims, index.steps, strict=True) if step != NOTHING]
            if len(moving) != 1 or [s for s in index.steps if s != NOTHING] != [ONE]:
                raise NotAffine("are taken modulo something (%), so rows may not be consecutive")
            found.append((moving[0], index.offset, number))
            todo.append((wrap[0], dims))
            continue
        if isinstance(op, tt.ExpandDimsOp):
            axis = ir.int_value(op.properties["axis"])
            dims = tuple(d for i, d in enumerate(dims) if i != axis)
        elif isinstance(op, tt.TransOp):
            order = ir.ints_of(op.properties["order"])
            dims = tuple(dims[order.index(i)] for i in range(len(order)))
        todo += [(x, dims) for x in op.operands]
    return found


@dataclass(frozen=True)
class _Stored:
    """The limits that hold of what is stored of all products of an operand; which dimension of a result follows the
    operand's first, and its second."""

    limits: tuple[Limit, ...]
    along: tuple[int | None, int | None]


def _stored(op: tt.LoadOp, loop: scf.ForOp, forms: Forms) -> _Stored:
    """Of the products whose operand is a loaded tile, or computed from it element by element. Nothing is known to be
    dropped of a tile that goes elsewhere too, or whose elements change places."""
    nothing = _Stored((), (None, None))
    found: set[tuple[tuple[Limit, ...], int | None, int | None]] = set()
    todo: list[tuple[SSAValue, bool]] = [(op.result, False)]
    for value, flipped in each_once(todo):
        for use in value.uses:
            user = use.operation
            if isinstance(user, SharedProductOp):
                along = (0, None) if use.index == 0 else (None, 1)
                limits = limits_of_result(user.d, loop, forms) or []
                found.add((tuple(limits), *(along[::-1] if flipped else along)))
            elif isinstance(user, tt.TransOp) or user.name == "ttg.memdesc_trans":
                todo.append((user.results[0], not flipped))
            elif user.name in MOVES or (user.name in ELEMENTWISE and user.name not in PACKING):
                todo.append((user.results[0], flipped))
            else:
                return nothing
    if len(found) != 1:
        return nothing
    ((of_all, first, second),) = found
    return _Stored(of_all, (first, second))


def _of_operand(stored: _Stored, dim: int) -> list[tuple[Limit, int]]:
    """The limits of a result, with the dimension of it that a dimension of the operand goes along; none without."""
    along = stored.along[dim]
    return [] if along is None else [(x, along) for x in stored.limits if not x.below]
