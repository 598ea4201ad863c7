"""Arithmetic, bits and comparisons: which operation for which types.

Signed and unsigned integers are told apart here, by the operation; a wrong mix of types is refused here. With the
options `debug` and `sanitize_overflow`, sums, differences and products of narrow integers are checked when they run.
"""

from __future__ import annotations

from typing import Any

from xdsl.dialects import arith
from xdsl.ir import Operation

from weft import ir
from weft.base import hinted
from weft.ir import tt

from .. import dtypes as dt
from ..constants import constexpr, shown
from ..dtypes import pointer_type
from ..tensors import tensor
from .base import IncompatibleTypeErrorImpl, SemanticBase, block_shape


class Arithmetic(SemanticBase):
    """Operators on tensors."""

    # -- sums and products -------------------------------------------------------------------------------------

    def _int_or_float(self, lhs: tensor, rhs: tensor, for_int: type[Operation], for_float: type[Operation]) -> tensor:
        scalar = lhs.type.scalar
        if scalar.is_floating():
            return self._same(for_float, lhs, rhs)
        if scalar.is_int():
            return self._same(for_int, lhs, rhs)
        raise TypeError(f"unexpected type {scalar}")

    def add(self, input: Any, other: Any, sanitize_overflow: bool) -> tensor:
        """`x + y`; a pointer moves by elements."""
        input, other = self.binary_op_type_checking_impl(input, other, True, True)
        if input.type.scalar.is_ptr() and other.type.scalar.is_ptr():
            raise TypeError("cannot add pointers together")
        if other.type.scalar.is_ptr():
            input, other = other, input
        pointer = input.type.scalar
        if isinstance(pointer, pointer_type):
            if pointer.element_ty.is_block():
                raise TypeError("a block pointer is moved with tl.advance(pointer, offsets), not by adding to it")
            return self._same(tt.AddPtrOp, input, self._offset(other))
        if sanitize_overflow:
            self.binary_op_sanitize_overflow_impl(input, other, self.add)
        return self._int_or_float(input, other, arith.AddiOp, arith.AddfOp)

    def _offset(self, value: tensor) -> tensor:
        """An integer as an offset of a pointer: unsigned ones must not be taken as negative."""
        scalar = value.type.scalar
        if scalar.is_int_unsigned() and scalar.int_bitwidth < 64:
            return self._value(arith.ExtUIOp, (value.handle,), value.type.with_element_ty(dt.int64))
        return value

    def sub(self, input: Any, other: Any, sanitize_overflow: bool) -> tensor:
        """`x - y`; a pointer moves back by elements."""
        input, other = self.binary_op_type_checking_impl(input, other, True, False)
        if input.type.scalar.is_ptr():
            return self.add(input, self.minus(other), sanitize_overflow=False)
        if sanitize_overflow:
            self.binary_op_sanitize_overflow_impl(input, other, self.sub)
        return self._int_or_float(input, other, arith.SubiOp, arith.SubfOp)

    def mul(self, input: Any, other: Any, sanitize_overflow: bool) -> tensor:
        """`x * y`."""
        input, other = self.binary_op_type_checking_impl(input, other)
        if sanitize_overflow:
            self.binary_op_sanitize_overflow_impl(input, other, self.mul)
        return self._int_or_float(input, other, arith.MuliOp, arith.MulfOp)

    def binary_op_sanitize_overflow_impl(self, lhs: tensor, rhs: tensor, binary_op: Any) -> None:
        """In debugging, assert that an integer operation of fewer than 64 bits does not wrap."""
        if not (self.options.debug and self.options.sanitize_overflow):
            return
        scalar = lhs.type.scalar
        if not scalar.is_int() or scalar.int_bitwidth >= 64:
            return
        wide_lhs, wide_rhs = self.cast(lhs, dt.int64), self.cast(rhs, dt.int64)
        wide = binary_op(wide_lhs, wide_rhs, False)
        limits = [self._constant(v, wide.type) for v in (scalar.get_int_max_value(), scalar.get_int_min_value())]
        fits = self.and_(self.less_equal(wide, limits[0]), self.greater_equal(wide, limits[1]))
        message = f"int{scalar.int_bitwidth} overflow detected for operation {binary_op.__name__}"
        self.device_assert(fits, message, None)

    def truediv(self, input: Any, other: Any) -> tensor:
        """`x / y`, always in a float type; integers are taken as float32."""
        input, other = self.binary_op_type_checking_impl(input, other, False, False, True, True)
        if input.type.scalar.is_int():  # both have one type by now
            input, other = self.cast(input, dt.float32), self.cast(other, dt.float32)
        return self._same(arith.DivfOp, input, other)

    def floordiv(self, input: Any, other: Any) -> tensor:
        """`x // y` of integers, rounded towards zero as in C."""
        input, other = self.binary_op_type_checking_impl(input, other, False, False, True, True)
        left, right = input.type.scalar, other.type.scalar
        if left.is_int() and right.is_int():
            common = self.integer_promote_impl(left, right)
            input, other = self.cast(input, common), self.cast(other, common)
            return self._same(arith.DivSIOp if common.is_int_signed() else arith.DivUIOp, input, other)
        hint = "round the quotient: tl.floor(x / y)" if left.is_floating() or right.is_floating() else "divide integers"
        raise hinted(TypeError(f"`//` takes integers, got {left} and {right}"), hint)

    def fdiv(self, input: Any, other: Any, ieee_rounding: bool) -> tensor:
        """The quotient of two floats."""
        input, other = self.to_tensor(input), self.to_tensor(other)
        if not input.type.scalar.is_floating() or not other.type.scalar.is_floating():
            raise TypeError("both operands of fdiv must have floating scalar type")
        if input.type.scalar != other.type.scalar:
            raise TypeError(
                f"both operands of fdiv must have the same type, got {input.type.scalar} and {other.type.scalar}"
            )
        input, other = self.binary_op_type_checking_impl(input, other, False, False, False, True)
        return self._same(arith.DivfOp, input, other)

    def mod(self, input: Any, other: Any) -> tensor:
        """`x % y`: the remainder with the sign of the dividend, as in C."""
        input, other = self.binary_op_type_checking_impl(input, other, False, False, True, True)
        left, right = input.type.scalar, other.type.scalar
        if left.is_floating():
            return self._same(ir.operation("arith.remf"), input, other)
        if left.is_int():
            if left.int_signedness != right.int_signedness:
                raise TypeError(f"Cannot mod {left} by {right} because they have different signedness")
            return self._same(arith.RemSIOp if left.is_int_signed() else arith.RemUIOp, input, other)
        raise TypeError(f"`%` takes numbers, got {left} and {right}")

    def plus(self, input: tensor) -> tensor:
        """`+x`."""
        return input

    def minus(self, input: tensor) -> tensor:
        """`-x`: of a float the other sign, also of a zero and of a NaN; of an integer `0 - x`."""
        if input.type.scalar.is_ptr():
            raise ValueError(f"wrong type argument to unary minus ({input.type.scalar!r})")
        if input.type.scalar.is_floating():
            return self._same(arith.NegfOp, input)
        return self.sub(self._constant(0, input.type), input, True)

    # -- extrema -----------------------------------------------------------------------------------------------

    def _extremum(self, x: tensor, y: tensor, propagate_nan: Any, name: str) -> tensor:
        x, y = self.binary_op_type_checking_impl(x, y)
        scalar = x.type.scalar
        ops = _EXTREMA[name]
        if scalar.is_floating():
            keep = _nan_mode(propagate_nan)
            return self._same(ops["propagate" if keep is tt.PropagateNan.ALL else "number"], x, y)
        if scalar.is_int():
            return self._same(ops["signed" if scalar.is_int_signed() else "unsigned"], x, y)
        raise TypeError(f"Unexpected dtype {scalar}")

    def minimum(self, x: tensor, y: tensor, propagate_nan: Any) -> tensor:
        """The smaller of two values; see `PropagateNan` for NaN."""
        return self._extremum(x, y, propagate_nan, "min")

    def maximum(self, x: tensor, y: tensor, propagate_nan: Any) -> tensor:
        """The larger of two values; see `PropagateNan` for NaN."""
        return self._extremum(x, y, propagate_nan, "max")

    def clamp(self, x: tensor, min: tensor, max: tensor, propagate_nan: Any) -> tensor:
        """A float held between two bounds."""
        min, max = self.binary_op_type_checking_impl(min, max)
        x, min = self.binary_op_type_checking_impl(x, min)
        x, max = self.binary_op_type_checking_impl(x, max)
        scalar = x.type.scalar
        if not scalar.is_floating():
            raise TypeError(f"Unexpected dtype {scalar}. Only floating point clamp is supported")
        nan = {"propagateNan": ir.enum_attr(_nan_mode(propagate_nan))}
        return self._value(tt.ClampFOp, (x.handle, min.handle, max.handle), x.type, nan)

    # -- bits --------------------------------------------------------------------------------------------------

    def bitwise_op_type_checking_impl(self, input: Any, other: Any) -> tuple[tensor, tensor]:
        """Both operands as integers of one type and shape."""
        input, other = self.binary_op_type_checking_impl(input, other)
        left, right = input.type.scalar, other.type.scalar
        if not left.is_int() or not right.is_int():
            raise IncompatibleTypeErrorImpl(left, right)
        return input, other

    def and_(self, input: Any, other: Any) -> tensor:
        """`x & y`."""
        return self._same(arith.AndIOp, *self.bitwise_op_type_checking_impl(input, other))

    def or_(self, input: Any, other: Any) -> tensor:
        """`x | y`."""
        return self._same(arith.OrIOp, *self.bitwise_op_type_checking_impl(input, other))

    def xor_(self, input: Any, other: Any) -> tensor:
        """`x ^ y`."""
        return self._same(arith.XOrIOp, *self.bitwise_op_type_checking_impl(input, other))

    def shl(self, input: Any, other: Any) -> tensor:
        """`x << y`."""
        return self._same(arith.ShLIOp, *self.bitwise_op_type_checking_impl(input, other))

    def lshr(self, input: Any, other: Any) -> tensor:
        """`x >> y` with zeros shifted in."""
        return self._same(arith.ShRUIOp, *self.bitwise_op_type_checking_impl(input, other))

    def ashr(self, input: Any, other: Any) -> tensor:
        """`x >> y` with the sign shifted in."""
        return self._same(arith.ShRSIOp, *self.bitwise_op_type_checking_impl(input, other))

    def invert(self, input: tensor) -> tensor:
        """`~x`."""
        scalar = input.type.scalar
        if scalar.is_ptr() or scalar.is_floating():
            raise ValueError(f"wrong type argument to unary invert ({scalar!r})")
        return self._same(arith.XOrIOp, input, self._constant(-1, input.type))

    def _as_bool(self, value: tensor, operator: str) -> tensor:
        scalar = value.type.scalar
        if scalar.is_int1():
            return value
        if scalar.is_ptr():
            return self.cast(value, dt.int1)
        raise hinted(ValueError(f"`{operator}` takes values of int1, got {scalar}"), "compare with something: x != 0")

    def logical_and(self, input: tensor, other: tensor) -> tensor:
        """`x and y` of one-bit tensors."""
        return self.and_(self._as_bool(input, "and"), self._as_bool(other, "and"))

    def logical_or(self, input: tensor, other: tensor) -> tensor:
        """`x or y` of one-bit tensors."""
        return self.or_(self._as_bool(input, "or"), self._as_bool(other, "or"))

    def not_(self, input: tensor) -> tensor:
        """`not x` of a one-bit tensor."""
        return self.invert(self._as_bool(input, "not"))

    # -- comparisons -------------------------------------------------------------------------------------------

    def _compare(self, input: Any, other: Any, for_float: str, signed: str, unsigned: str) -> tensor:
        input, other = self.binary_op_type_checking_impl(input, other)
        scalar = input.type.scalar
        if scalar.is_floating():
            handle = self.builder.cmpf(for_float, input.handle, other.handle)
        elif scalar.is_int():
            predicate = signed if scalar.is_int_signed() else unsigned
            handle = self.builder.cmpi(predicate, input.handle, other.handle)
        else:
            raise TypeError(f"unexpected type {scalar}")
        return tensor(handle, self._bool_like(input))

    def greater_than(self, input: Any, other: Any) -> tensor:
        """`x > y`; false where either is NaN."""
        return self._compare(input, other, "ogt", "sgt", "ugt")

    def greater_equal(self, input: Any, other: Any) -> tensor:
        """`x >= y`; false where either is NaN."""
        return self._compare(input, other, "oge", "sge", "uge")

    def less_than(self, input: Any, other: Any) -> tensor:
        """`x < y`; false where either is NaN."""
        return self._compare(input, other, "olt", "slt", "ult")

    def less_equal(self, input: Any, other: Any) -> tensor:
        """`x <= y`; false where either is NaN."""
        return self._compare(input, other, "ole", "sle", "ule")

    def equal(self, input: Any, other: Any) -> tensor:
        """`x == y`; false where either is NaN."""
        return self._compare(input, other, "oeq", "eq", "eq")

    def not_equal(self, input: Any, other: Any) -> tensor:
        """`x != y`; true where either is NaN."""
        return self._compare(input, other, "une", "ne", "ne")

    # -- choice ------------------------------------------------------------------------------------------------

    def where(self, condition: tensor, x: Any, y: Any) -> tensor:
        """`x` where the condition holds, else `y`; both are always computed."""
        if not condition.type.scalar.is_int1():
            self.warn(
                "tl.where with a non-boolean condition is deprecated and will error out in a future triton release. "
                f"Got {condition.type.scalar}"
            )
        condition = self.cast(condition, dt.int1)
        x, y = self.binary_op_type_checking_impl(x, y, True, True, shape=block_shape(condition))
        if x.type.scalar != y.type.scalar:  # a pointer and a number
            raise IncompatibleTypeErrorImpl(x.type, y.type)
        if block_shape(condition):
            condition, x = self.broadcast_impl_value(condition, x)
            x, y = self.broadcast_impl_value(x, y)
        else:
            condition, _ = self.broadcast_impl_value(condition, x)
        return tensor(self.builder.select(condition.handle, x.handle, y.handle), x.type)

    # Implemented by other parts of the semantic.

    def bitcast(self, input: tensor, dst_ty: dt.dtype) -> tensor:
        """See `casts`."""
        raise NotImplementedError

    def device_assert(self, cond: Any, msg: str, mask: Any) -> None:
        """See `diagnostics`."""
        raise NotImplementedError


_EXTREMA: dict[str, dict[str, type[Operation]]] = {
    "min": {
        "number": arith.MinnumfOp,
        "propagate": arith.MinimumfOp,
        "signed": arith.MinSIOp,
        "unsigned": arith.MinUIOp,
    },
    "max": {
        "number": arith.MaxnumfOp,
        "propagate": arith.MaximumfOp,
        "signed": arith.MaxSIOp,
        "unsigned": arith.MaxUIOp,
    },
}


def _nan_mode(mode: Any) -> tt.PropagateNan:
    mode = mode.value if isinstance(mode, constexpr) else mode
    if isinstance(mode, tt.PropagateNan):
        return mode
    raise ValueError(f"propagate_nan must be PropagateNan.NONE or PropagateNan.ALL, got {shown(mode)}")
