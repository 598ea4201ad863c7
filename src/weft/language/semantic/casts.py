"""Casts: which conversion for which pair of types.

A boolean target is `x != 0`. Integers are truncated, or extended by the sign of their source. Floats are rounded to
nearest (ties to even) unless told otherwise; float16 and bfloat16 meet in float32; fp8 types go through
`tt.fp_to_fp`. fp8e4b15 is kept as its bits in an `i8` and converted by integer operations, exactly as Triton's GPU
code does.
"""

from __future__ import annotations

from xdsl.dialects import arith

from weft import ir
from weft.ir import tt

from .. import dtypes as dt
from ..dtypes import block_type, dtype
from ..tensors import tensor
from .base import SemanticBase


class Casts(SemanticBase):
    """Changes of the element type."""

    def _str_to_rounding_mode(self, rounding_mode: str | None) -> tt.RoundingMode | None:
        if rounding_mode is None:
            return None
        modes = {"rtne": tt.RoundingMode.RTNE, "rtz": tt.RoundingMode.RTZ}
        if rounding_mode not in modes:
            raise ValueError(f"Invalid rounding mode: {rounding_mode}. Supported rounding modes are 'rtne' and 'rtz'.")
        return modes[rounding_mode]

    def _target(self, input: tensor, dst_ty: dtype) -> dtype:
        """The target type in the shape of the input."""
        if isinstance(input.type, block_type):
            return input.type.with_element_ty(dst_ty.scalar)
        return dst_ty

    def bitcast(self, input: tensor, dst_ty: dtype) -> tensor:
        """The same bits as another type of the same width."""
        target = self._target(input, dst_ty)
        if input.type == target:
            return input
        source, to = input.type.scalar, target.scalar
        if source.is_ptr() or to.is_ptr():
            return self.cast(input, target)
        if source.primitive_bitwidth != to.primitive_bitwidth:
            raise ValueError(
                f"Cannot bitcast data-type of size {source.primitive_bitwidth} to data-type of size "
                f"{to.primitive_bitwidth}"
            )
        if source.to_ir() == to.to_ir():
            return tensor(input.handle, target)
        return self._value(tt.BitcastOp, (input.handle,), target)

    def cast(self, input: tensor, dst_ty: dtype, fp_downcast_rounding: str | None = None) -> tensor:
        """The same value as another type, as far as that can hold it."""
        target = self._target(input, dst_ty)
        source, to = input.type.scalar, target.scalar
        if source == to:
            return input
        narrowing = source.is_floating() and to.is_floating() and to.primitive_bitwidth < source.primitive_bitwidth
        rounding = self._str_to_rounding_mode(fp_downcast_rounding)
        if rounding is not None and not narrowing:
            raise ValueError(
                "fp_downcast_rounding should be set only for truncating fp conversions. "
                f"Source scalar type is {source} and destination type is {to}"
            )
        if source.is_floating() and to.is_floating():
            return self._float_to_float(input, target, rounding, narrowing)
        if source.is_int() and to.is_int():
            return self._int_to_int(input, target)
        if source.is_standard_floating() and to.is_int():
            return self._float_to_int(input, target)
        if source.is_int() and to.is_standard_floating():
            op = arith.SIToFPOp if source.is_int_signed() else arith.UIToFPOp
            return self._value(op, (input.handle,), target)
        if source.is_ptr() and source.element_ty.is_block():  # type: ignore[attr-defined]
            raise TypeError(f"a block pointer cannot be cast, got {source}")
        if source.is_ptr() and to.is_int():
            if to.int_bitwidth == 64:
                return self._value(tt.PtrToIntOp, (input.handle,), target)
            if to.int_bitwidth == 1:
                return self._not_zero(self.cast(input, dt.int64))
        if source.is_int() and to.is_ptr():
            if source.int_bitwidth != 64:
                raise TypeError(f"only a 64-bit integer can be cast to a pointer, got {source}: cast to int64 first")
            return self._value(tt.IntToPtrOp, (input.handle,), target)
        if source.is_ptr() and to.is_ptr():
            if source.to_ir() == to.to_ir():
                return tensor(input.handle, target)
            return self._value(tt.BitcastOp, (input.handle,), target)
        hint = ""
        if source.is_fp8() or to.is_fp8():
            hint = ": go through float32"
        elif source.is_ptr() or to.is_ptr():
            hint = ": a pointer can be cast only to and from int64, or to int1"
        raise TypeError(f"cannot cast {input} to {to}{hint}")

    def _not_zero(self, value: tensor) -> tensor:
        """`value != 0`, true for NaN."""
        zero = self._constant(0, value.type)
        compare = self.builder.cmpf if value.type.scalar.is_floating() else self.builder.cmpi
        predicate = "une" if value.type.scalar.is_floating() else "ne"
        return tensor(compare(predicate, value.handle, zero.handle), self._bool_like(value))

    def _int_to_int(self, input: tensor, target: dtype) -> tensor:
        source, to = input.type.scalar, target.scalar
        if to.is_bool():
            return self._not_zero(input)
        if source.int_bitwidth == to.int_bitwidth:
            return tensor(input.handle, target)
        if source.int_bitwidth > to.int_bitwidth:
            return self._value(arith.TruncIOp, (input.handle,), target)
        op = arith.ExtSIOp if source.is_int_signed() else arith.ExtUIOp  # a boolean has no sign
        return self._value(op, (input.handle,), target)

    def _float_to_int(self, input: tensor, target: dtype) -> tensor:
        source = input.type.scalar
        if source.is_fp16() or source.is_bf16():
            input = self.cast(input, dt.float32)
        if target.scalar.is_bool():
            return self._not_zero(input)
        op = arith.FPToSIOp if target.scalar.is_int_signed() else arith.FPToUIOp
        return self._value(op, (input.handle,), target)

    def _float_to_float(
        self, input: tensor, target: dtype, rounding: tt.RoundingMode | None, narrowing: bool
    ) -> tensor:
        source, to = input.type.scalar, target.scalar
        if source.is_fp8e4b15() or to.is_fp8e4b15():
            return self._fp8e4b15(input, target)
        if source.is_fp8() or to.is_fp8() or (narrowing and rounding is tt.RoundingMode.RTZ):
            return self._fp_to_fp(input, target, rounding, narrowing)
        if source.primitive_bitwidth == 16 and not to.is_fp32():
            # The two 16-bit types, and float64 from them, go through float32.
            return self.cast(self.cast(input, dt.float32), to)
        if narrowing:
            return self._value(arith.TruncFOp, (input.handle,), target)
        return self._value(arith.ExtFOp, (input.handle,), target)

    def _fp_to_fp(self, input: tensor, target: dtype, rounding: tt.RoundingMode | None, narrowing: bool) -> tensor:
        if not narrowing:
            return self._value(tt.FpToFpOp, (input.handle,), target)
        mode = ir.enum_attr(rounding if rounding is not None else tt.RoundingMode.RTNE)
        return self._value(tt.FpToFpOp, (input.handle,), target, {"rounding": mode})

    # fp8e4b15: sign, 4 bits of exponent biased by 15, 3 of mantissa; neither infinity nor NaN. Shifted left by 7 its
    # magnitude is that of a float16, since both have the same bias.

    def _fp8e4b15(self, input: tensor, target: dtype) -> tensor:
        source, to = input.type.scalar, target.scalar
        if source.is_fp8e4b15():
            half = self._fp8e4b15_to_half(input)
            return half if to.is_fp16() else self.cast(half, to)
        if source.is_fp16():
            return self._half_to_fp8e4b15(input, target)
        if source.primitive_bitwidth > 16:
            # Towards zero, so that rounding twice cannot go up twice.
            return self._half_to_fp8e4b15(self.cast(input, dt.float16, "rtz"), target)
        return self.cast(self.cast(input, dt.float16), to)

    def _bits(self, value: tensor, type: dtype) -> tensor:
        """The bits of a tile as an integer type."""
        return self._value(tt.BitcastOp, (value.handle,), value.type.with_element_ty(type))

    def _fp8e4b15_to_half(self, input: tensor) -> tensor:
        short = input.type.with_element_ty(dt.int16)
        wide = self._value(arith.ExtUIOp, (input.handle,), short)
        magnitude = self._same(arith.AndIOp, wide, self._constant(0x7F, short))
        magnitude = self._same(arith.ShLIOp, magnitude, self._constant(7, short))
        sign = self._same(arith.AndIOp, wide, self._constant(0x80, short))
        sign = self._same(arith.ShLIOp, sign, self._constant(8, short))
        return self._bits(self._same(arith.OrIOp, magnitude, sign), dt.float16)

    def _half_to_fp8e4b15(self, input: tensor, target: dtype) -> tensor:
        short = input.type.with_element_ty(dt.int16)
        bits = self._bits(input, dt.int16)
        magnitude = self._same(arith.AndIOp, bits, self._constant(0x7FFF, short))
        # The largest value is 1.75; NaN and infinity become it.
        magnitude = self._same(arith.MinUIOp, magnitude, self._constant(0x3F00, short))
        magnitude = self._same(arith.AddiOp, magnitude, self._constant(0x40, short))
        magnitude = self._same(arith.ShRUIOp, magnitude, self._constant(7, short))
        sign = self._same(arith.ShRUIOp, bits, self._constant(8, short))
        sign = self._same(arith.AndIOp, sign, self._constant(0x80, short))
        byte = self._same(arith.OrIOp, magnitude, sign)
        return self._value(arith.TruncIOp, (byte.handle,), target)
