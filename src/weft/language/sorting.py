"""Sorting networks, and reversal.

A sort is bitonic. Elements are turned into integer keys whose order is theirs (a float's bits, with the magnitude of
negative ones inverted), so that a compare-exchange is one minimum and one maximum, and no element is ever lost, NaN
included: positive NaN sorts after infinity, negative NaN before minus infinity, -0.0 before 0.0.

Instead of sorting blocks alternately up and down, the keys of the blocks that go down are inverted, which reverses
their order; two neighbouring phases' inversions are done at once. A stage on n elements then is

    [groups, 2, distance] --minimum, maximum along the middle axis--> two of [groups, distance] --join, trans--> again

that is, two reductions, and three renamings of elements.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from weft import ir
from weft.base import CompileTimeAssertionFailure

from . import dtypes as dt
from .constants import CONSTEXPR_0, known_axis, known_flag, unwrap
from .dtypes import block_of, dtype
from .protocol import GIVEN, standard_function
from .tensors import block_shape, member, shape_text, tensor

if TYPE_CHECKING:
    from .semantic import TritonSemantic


class _Network:
    """Keys of shape [rows, length] on their way through a sorting network."""

    def __init__(self, x: tensor, semantic: Any) -> None:
        self.s = semantic
        self.type: dtype = x.dtype
        shape = block_shape(x)
        self.outer = shape[:-1]
        self.length = shape[-1]
        self.rows = x.numel.value // self.length
        keys = semantic.reshape(x, (self.rows, self.length), can_reorder=False)
        width = self.type.primitive_bitwidth
        self.unsigned = self.type.is_int_unsigned()
        self.key_type = dt.get_int_dtype(width, signed=not self.unsigned)
        self.least: Any = ir.arith.MinUIOp if self.unsigned else ir.arith.MinSIOp
        self.most: Any = ir.arith.MaxUIOp if self.unsigned else ir.arith.MaxSIOp
        if self.type.is_floating():
            keys = self._ordered(self._bits(keys, self.key_type))
        self.keys: tensor = keys

    def _bits(self, value: tensor, type: dtype) -> tensor:
        """The same bits as another type (fp8e4b15 is an integer in the IR already)."""
        target = block_of(type, block_shape(value))
        if value.type.to_ir() == target.to_ir():
            return tensor(value.handle, target)
        return self.s.bitcast(value, target)  # type: ignore[no-any-return]

    def _ordered(self, bits: tensor) -> tensor:
        """A float's bits as an integer of the same order, and back again (it is its own inverse)."""
        width = self.key_type.int_bitwidth
        sign = self.s._same(ir.arith.ShRSIOp, bits, self.s._constant(width - 1, bits.type))
        mask = self.s._same(ir.arith.AndIOp, sign, self.s._constant(2 ** (width - 1) - 1, bits.type))
        return self.s._same(ir.arith.XOrIOp, bits, mask)  # type: ignore[no-any-return]

    def flip_runs(self, *phases: int) -> None:
        """Invert the keys where an odd number of these bits of the position are set."""
        bits = [p for p in phases if (1 << p) < self.length]
        if not bits:
            return
        place = self.s.arange(0, self.length)
        mask = self._at(place, bits[0])
        for bit in bits[1:]:
            mask = self.s._same(ir.arith.XOrIOp, mask, self._at(place, bit))
        width = self.key_type.int_bitwidth
        mask = self.s.cast(mask, dt.get_int_dtype(width, signed=True)) if width > 1 else self.s.cast(mask, dt.int1)
        keys = self._shaped(self.rows, self.length)
        mask = self.s._broadcast(tensor(mask.handle, block_of(self.key_type, (self.length,))), block_shape(keys))
        self.keys = self.s._same(ir.arith.XOrIOp, keys, mask)

    def flip_all(self) -> None:
        """Invert all keys, which reverses their order."""
        self.keys = self.s._same(ir.arith.XOrIOp, self.keys, self.s._constant(-1, self.keys.type))

    def _at(self, place: tensor, bit: int) -> tensor:
        """-1 where a bit of the position is set, else 0."""
        up = self.s._same(ir.arith.ShLIOp, place, self.s._constant(31 - bit, place.type))
        return self.s._same(ir.arith.ShRSIOp, up, self.s._constant(31, up.type))  # type: ignore[no-any-return]

    def _shaped(self, *shape: int) -> tensor:
        """The keys in a shape."""
        if block_shape(self.keys) == shape:
            return self.keys
        return self.s.reshape(self.keys, shape, can_reorder=False)  # type: ignore[no-any-return]

    def _pairs(self, distance: int) -> tensor:
        """The keys as [groups, 2, distance]: those whose positions differ by a distance lie along the middle axis."""
        return self._shaped(self.rows * self.length // (2 * distance), 2, distance)

    def merge(self, length: int) -> None:
        """Sort every run of `length` keys, each bitonic, upwards."""
        distance = length // 2
        self.s.unroll(f"sorting unrolls {length.bit_length() - 1} steps", length.bit_length() - 1, "sort in a loop")
        while distance:
            pairs = self._pairs(distance)
            both = [self.s.reduce_with(op, pairs, 1) for op in (self.least, self.most)]
            self.keys = self.s.permute(self.s.join(*both), (0, 2, 1))
            distance //= 2

    def sort_runs(self, phases: int) -> None:
        """Sort runs of 2 ** phases keys: upwards, and every other one (if there is more than one) downwards."""
        for phase in range(1, phases + 1):
            self.flip_runs(*((phase,) if phase == 1 else (phase - 1, phase)))
            self.merge(2**phase)
        if phases:
            self.flip_runs(phases)

    def keep_smallest(self, phases: int) -> None:
        """From sorted runs of 2 ** phases keys, the one run of the smallest keys, upwards."""
        count = 2**phases
        while self.length > count:
            # One run goes up, its neighbour down: the minima are the smaller half of both, and bitonic.
            self.keys = self.s.reduce_with(self.least, self._pairs(count), 1)
            self.length //= 2
            if phases:
                self.flip_runs(phases)
                self.merge(count)
                self.flip_runs(phases)

    def result(self) -> tensor:
        """The elements again, in the order of the keys."""
        keys = self._ordered(self.keys) if self.type.is_floating() else self.keys
        keys = self._bits(keys, self.type)
        return self.s.reshape(keys, (*self.outer, self.length), can_reorder=False)  # type: ignore[no-any-return]


def _last_axis(x: tensor, dim: Any) -> None:
    """Sorting is along the last axis only."""
    rank = len(block_shape(x))
    if rank == 0:
        raise ValueError(f"sorting needs a tensor, got the scalar {x}")
    axis = unwrap(dim)
    if axis is not None and known_axis(axis) not in (rank - 1, -1):
        raise CompileTimeAssertionFailure(
            f"only minor dimension is currently supported: got dim = {axis} for shape {shape_text(block_shape(x))}"
        )
    if x.dtype.is_ptr():
        raise TypeError(f"cannot sort {x.dtype}")


def _wrong_count(count: Any, length: int) -> str:
    """What a number of elements to keep must be and is not, if anything."""
    if not isinstance(count, int) or isinstance(count, bool):
        return "be an int"
    if count < 1:
        return "be greater than 0"
    if count & (count - 1):
        return "be a power of two"
    return "not exceed the size of the selected dimension" if count > length else ""


@standard_function
def sort_impl(
    x: tensor, k: Any = None, dim: Any = None, descending: Any = CONSTEXPR_0, _semantic: TritonSemantic = GIVEN
) -> tensor:
    """Sort along the last axis, or keep only its `k` largest (smallest, unless `descending`) sorted."""
    _last_axis(x, dim)
    count, down = unwrap(k), known_flag(descending, "descending")
    length = block_shape(x)[-1]
    count = length if count is None else count
    wrong = _wrong_count(count, length)
    if wrong:
        hint = f"k is a power of two between 1 and {length}, got {count}"
        raise CompileTimeAssertionFailure(f"topk: k must {wrong}", hint=hint)
    network = _Network(x, _semantic)
    phases = count.bit_length() - 1
    if down:
        network.flip_all()
    network.sort_runs(phases)
    network.keep_smallest(phases)
    if down:
        network.flip_all()
    return network.result()


@member
@standard_function
def sort(x: tensor, dim: Any = None, descending: Any = CONSTEXPR_0, _semantic: TritonSemantic = GIVEN) -> tensor:
    """Sort along the last axis (the only one `dim` may name), upwards or with `descending` downwards.

    >>> evaluate("tl.sort(x)", x=[3, 1, 2, 0])
    array([0, 1, 2, 3], dtype=int32)
    >>> evaluate("tl.sort(x, descending=True)", x=[3, 1, 2, 0])
    array([3, 2, 1, 0], dtype=int32)
    """
    return sort_impl(x, dim=dim, descending=descending, _semantic=_semantic)


@standard_function
def topk(x: tensor, k: Any, dim: Any = None, descending: Any = True, _semantic: TritonSemantic = GIVEN) -> tensor:
    """The `k` largest elements along the last axis, largest first, or the smallest ones, smallest first.

    `k` is a power of two.

    >>> evaluate("tl.topk(x, 2)", x=[3, 1, 7, 0])
    array([7, 3], dtype=int32)
    """
    return sort_impl(x, k=k, dim=dim, descending=known_flag(descending, "descending"), _semantic=_semantic)


@standard_function
def bitonic_merge(
    x: tensor, dim: Any = None, descending: Any = CONSTEXPR_0, _semantic: TritonSemantic = GIVEN
) -> tensor:
    """Sort along the last axis a sequence that rises and then falls, or falls and then rises.

    >>> evaluate("tl.bitonic_merge(x)", x=[1, 4, 3, 2])
    array([1, 2, 3, 4], dtype=int32)
    """
    _last_axis(x, dim)
    network = _Network(x, _semantic)
    down = known_flag(descending, "descending")
    if down:
        network.flip_all()
    network.merge(network.length)
    if down:
        network.flip_all()
    return network.result()


@member
@standard_function
def flip(x: tensor, dim: Any = None, _semantic: TritonSemantic = GIVEN) -> tensor:
    """The elements along an axis, the last one if none is given, in reverse order.

    >>> evaluate("tl.flip(x)", x=[1, 2, 3, 4])
    array([4, 3, 2, 1], dtype=int32)
    """
    shape = block_shape(x)
    axis = -1 if unwrap(dim) is None else unwrap(dim)
    if not -len(shape) <= axis < len(shape):
        raise CompileTimeAssertionFailure(f"flip: dim {axis} is outside the {len(shape)} dimensions of the tensor")
    axis = axis if axis >= 0 else axis + len(shape)
    place = _semantic.arange(0, shape[axis])
    place = _semantic.sub(shape[axis] - 1, place, False)
    for other in range(len(shape)):
        if other != axis:
            place = _semantic.expand_dims(place, other)
    return _semantic.gather(x, _semantic.broadcast_impl_shape(place, shape), axis)
