"""Hints that are looked at: with the option `debug`, what a hint promises is asserted at its line.

    tl.max_contiguous(x, 4)     x = 0 1 2 3  8 9 10 11  5 6 8 9
                                                            ^ the first of its group is 5, so that 7 is promised here

`multiple_of` promises something of the first of each run of contiguous elements, so that tl.multiple_of(x, 16) is true
of 32 33 34 ..., and every other element is left alone. A run may go along any axis: of the pointers to a block of rows,
tl.multiple_of(pointers, [16, 16]) promises that each row begins at a multiple of 16, as common code means it. Pointers
are counted in bytes, as Triton counts them; on a CPU from where their arrays begin (the pass `place_hints`).
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import arith
from xdsl.ir import Operation

from weft import ir
from weft.ir import tt

from .. import dtypes as dt
from ..tensors import tensor
from .arithmetic import Arithmetic
from .base import block_shape


class HintChecks(Arithmetic):
    """Assertions that hints hold."""

    def check_hint(self, name: str, x: tensor, values: Sequence[int]) -> None:
        """Assert what a hint promises of integers or pointers; of other things it says nothing."""
        scalar, step = x.type.scalar, 1
        if isinstance(scalar, dt.pointer_type):
            step = max(1, scalar.element_ty.primitive_bitwidth // 8)
            x = self._address(x, x.type.with_element_ty(dt.int64))
        elif not scalar.is_int() or scalar.is_int1():
            return
        elif scalar.int_bitwidth == 64:  # it may be an address too
            pointer = dt.pointer_type(dt.int8)
            x = self._address(self._value(tt.IntToPtrOp, (x.handle,), x.type.with_element_ty(pointer)), x.type)
        shape = block_shape(x)
        for axis, value in enumerate(values):
            if value == 1 or (not shape and name != "multiple_of"):
                continue
            if name == "multiple_of":
                promised = self._nearest_multiple(x, value, step)
            else:
                promised = self._first_of_group(x, axis, value, step if name == "max_contiguous" else 0)
            along = f" along axis {axis}" if len(shape) > 1 else ""
            counted = (
                " of addresses, counted from where their array begins" if isinstance(scalar, dt.pointer_type) else ""
            )
            text = f"the hint {name}({value}){along} is false{counted}"
            self.device_assert(self.equal(x, promised), text, None)

    def _address(self, pointer: tensor, kind: dt.dtype) -> tensor:
        """The addresses of pointers, marked for `place_hints`."""
        address = self._value(tt.PtrToIntOp, (pointer.handle,), kind)
        address.handle.owner.attributes["tt.from_array"] = ir.unit_attr()
        return address

    def _nearest_multiple(self, x: tensor, value: int, step: int) -> tensor:
        """`x`, but where a run of contiguous elements begins the multiple of `value` next to it towards zero."""
        divisor = self._constant(value, x.type)
        multiple = self.sub(x, self._same(self._remainder(x), x, divisor), sanitize_overflow=False)
        promised = multiple
        for axis in range(len(block_shape(x))):
            place = self.positions(x, axis)
            zero, one = self._constant(0, place.type), self._constant(1, place.type)
            begins = self.equal(place, zero)
            before = self._along(x, self.where(begins, zero, self.sub(place, one, False)), axis)
            follows = self.equal(x, self.add(before, self._constant(step, x.type), False))
            promised = self.where(self.or_(begins, self.not_(follows)), promised, x)
        return promised

    def _first_of_group(self, x: tensor, axis: int, value: int, step: int) -> tensor:
        """The first of each `value` elements, and `step` more for each place after it."""
        place = self.positions(x, axis)
        within = self._same(arith.RemUIOp, place, self._constant(value, place.type))
        first = self._along(x, self.sub(place, within, False), axis)
        if not step:
            return first
        moved = self.mul(self.cast(within, x.type.scalar), self._constant(step, x.type), False)
        return self.add(first, moved, False)

    @staticmethod
    def _remainder(x: tensor) -> type[Operation]:
        return arith.RemSIOp if x.type.scalar.is_int_signed() else arith.RemUIOp

    def _along(self, x: tensor, index: tensor, axis: int) -> tensor:
        """Elements of a tile at other indices along an axis."""
        return self._value(tt.GatherOp, (x.handle, index.handle), x.type, {"axis": ir.i32_attr(axis)})
