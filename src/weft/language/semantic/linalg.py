"""Matrix products: `dot` and `dot_scaled`.

A product has the type that its operands say: int8 makes int32, float32 and bfloat16 make float32, float64 stays,
float16 and fp8 make `out_dtype` (float32 or float16). A broken rule is told with the operands' types and shapes.
"""

from __future__ import annotations

from math import prod
from typing import Any

from weft import ir
from weft.base import hinted
from weft.ir import tt

from .. import dtypes as dt
from ..constants import shown
from ..dtypes import block_of, block_type, dtype
from ..tensors import tensor
from .base import block_shape, shape_text
from .shapes import Shapes

_PRECISIONS = {p.name.lower(): p for p in tt.InputPrecision}
_FORMATS = {
    "fp16": tt.ScaleDotElemType.FP16,
    "bf16": tt.ScaleDotElemType.BF16,
    "e4m3": tt.ScaleDotElemType.E4M3,
    "e5m2": tt.ScaleDotElemType.E5M2,
    "e2m1": tt.ScaleDotElemType.E2M1,
}
_FORMAT_TYPES = {"e4m3": dt.float8e4nv, "e5m2": dt.float8e5, "bf16": dt.bfloat16, "fp16": dt.float16}
_OPERANDS = (dt.int8, dt.uint8, dt.float16, dt.bfloat16, dt.float32, dt.float64)


def _both(lhs: tensor, rhs: tensor) -> str:
    """The two operands as messages show them."""
    return f"{lhs.dtype}{shape_text(block_shape(lhs))} and {rhs.dtype}{shape_text(block_shape(rhs))}"


class LinearAlgebra(Shapes):
    """Products of matrices, also batched and scaled."""

    def _str_to_dot_input_precision(self, input_precision: str | None) -> tt.InputPrecision:
        chosen = self.options.default_dot_input_precision if input_precision is None else input_precision
        allowed = self.options.allowed_dot_input_precisions
        if chosen.lower() not in allowed:
            raise ValueError(f"input_precision must be one of {allowed}. Got {chosen}")
        return _PRECISIONS[chosen.lower()]

    def _check_dot_operands(self, lhs: tensor, rhs: tensor) -> None:
        left, right = lhs.dtype, rhs.dtype
        if left.is_fp8() and right.is_fp8():
            return
        for name, side in (("lhs", left), ("rhs", right)):
            if side not in _OPERANDS:
                raise TypeError(f"Unsupported {name} dtype {side}: dot takes int8, fp16, bf16, fp32, fp64, or two fp8")
        if left != right:
            raise TypeError(f"Both operands must be same dtype. Got {left} and {right}")
        if left.is_int() and left != dt.int8:
            raise TypeError(f"only int8 supported! Got {left}")

    def _check_dot_shapes(self, lhs: tensor, rhs: tensor) -> None:
        left, right = block_shape(lhs), block_shape(rhs)
        if len(left) != len(right) or len(left) < 2:
            raise ValueError(f"input and other must have equal ranks >= 2: got {_both(lhs, rhs)}")
        if left[:-2] != right[:-2]:
            raise ValueError(f"input and other must have equal batch shapes: got {_both(lhs, rhs)}")
        if left[-1] != right[-2]:
            raise hinted(
                ValueError(
                    f"input and other must have equal reduction dimensions: got {_both(lhs, rhs)}, "
                    f"K = {left[-1]} and {right[-2]}"
                ),
                "[M, K] times [K, N]: tl.trans transposes an operand",
            )

    def dot(
        self,
        lhs: tensor,
        rhs: tensor,
        acc: tensor | None,
        input_precision: str | None,
        max_num_imprecise_acc: int | None,
        out_dtype: dtype,
    ) -> tensor:
        """The product of two matrices, or of two stacks of them, plus `acc`."""
        if not isinstance(lhs.type, block_type) or not isinstance(rhs.type, block_type):
            raise TypeError(f"dot needs two tensors of rank 2 or more, got {_both(lhs, rhs)}")
        self._check_dot_operands(lhs, rhs)
        self._check_dot_shapes(lhs, rhs)
        lhs, rhs = self._without_odd_fp8(lhs), self._without_odd_fp8(rhs)
        precision = self._str_to_dot_input_precision(input_precision)
        if out_dtype.is_bf16():
            raise ValueError(
                "out_dtype=bfloat16 is unsupported. "
                "Please use out_dtype=float32/float16 and cast with `.to(tl.bfloat16)`"
            )
        scalar = lhs.type.scalar
        if scalar.is_int():
            element = dt.int32
        elif scalar.is_fp32() or scalar.is_bf16():
            element = dt.float32
        else:
            element = dt.float64 if scalar.is_fp64() else out_dtype
        batch = block_shape(lhs)[:-2]
        m, k, n = (*block_shape(lhs)[-2:], block_shape(rhs)[-1])
        result = block_of(element, (*batch, m, n))
        if acc is not None:
            self._check_accumulator(acc, result)
        if max_num_imprecise_acc is None:
            both_fp8 = scalar.is_fp8() and rhs.dtype.is_fp8()
            max_num_imprecise_acc = self.options.max_num_imprecise_acc_default if both_fp8 else 0
        elif not isinstance(max_num_imprecise_acc, int):
            raise TypeError(f"max_num_imprecise_acc must be a constexpr integer, got {shown(max_num_imprecise_acc)}")
        elif scalar.is_fp8() and rhs.dtype.is_fp8() and max_num_imprecise_acc > k:
            raise ValueError(f"max_num_imprecise_acc ({max_num_imprecise_acc}) must be <= K ({k})")
        # The operation itself knows one dimension of batches at most.
        flat = (prod(batch),) if batch else ()
        if len(batch) > 1:
            lhs = self.reshape(lhs, (*flat, m, k), can_reorder=False)
            rhs = self.reshape(rhs, (*flat, k, n), can_reorder=False)
            acc = self.reshape(acc, (*flat, m, n), can_reorder=False) if acc is not None else None
        product_type = acc.type if acc is not None else block_of(element, (*flat, m, n))
        if acc is None:
            acc = self._constant(0, product_type)
        properties = {
            "inputPrecision": ir.enum_attr(precision),
            "maxNumImpreciseAcc": ir.i32_attr(max_num_imprecise_acc),
        }
        product = self._value(tt.DotOp, (lhs.handle, rhs.handle, acc.handle), product_type, properties)
        return self.reshape(product, result.shape, can_reorder=False) if len(batch) > 1 else product

    def _without_odd_fp8(self, value: tensor) -> tensor:
        """fp8e4b15, which is no type of the IR, goes into a product as float16; so does what the target names."""
        odd = value.dtype.is_fp8e4b15() or value.dtype.name in self.options.deprecated_fp8_dot_operand_dtypes
        return self.cast(value, dt.float16) if odd else value

    def _check_accumulator(self, acc: tensor, result: block_type) -> None:
        if block_shape(acc) != result.shape:
            raise ValueError(
                f"accumulator shape is incompatible: got {shape_text(block_shape(acc))}, "
                f"the product has {shape_text(result.shape)}"
            )
        if acc.type.scalar != result.element_ty:
            raise TypeError(
                f"the accumulator is {acc.type.scalar} but the product is {result.element_ty}: cast it, "
                f"or say out_dtype (which float16 and fp8 operands follow)"
            )

    # -- microscaling ------------------------------------------------------------------------------------------

    def _str_to_fp_type(self, float_format: str) -> tt.ScaleDotElemType:
        if float_format not in _FORMATS:
            raise ValueError(f"Invalid float format: {float_format}. Known formats are {', '.join(_FORMATS)}.")
        return _FORMATS[float_format]

    def _bitcast_to_fp_type(self, val: tensor, float_format: str) -> tensor:
        """An operand in the type of its format; bytes are taken as the bits of an fp8."""
        if float_format == "e2m1":
            if val.dtype not in (dt.uint8, dt.int8):
                raise TypeError(f"e2m1 format must be packed as uint8. Got {val.dtype}")
            return val
        wanted = _FORMAT_TYPES[float_format]
        if val.dtype == wanted:
            return val
        unsigned = {8: dt.uint8, 16: dt.uint16}[wanted.primitive_bitwidth]
        if val.dtype != unsigned:
            raise TypeError(f"Unexpected dtype for {float_format}. Got {val.dtype}: expected {wanted} or {unsigned}")
        return self._value(tt.BitcastOp, (val.handle,), val.type.with_element_ty(wanted))

    def verify_scaled_shape(self, M: int, N: int, K: int, lhs_scale: Any, rhs_scale: Any) -> None:
        """The scales must be M (or N) by K over 32; over 16 where they are fp8."""
        if lhs_scale is not None and rhs_scale is not None:
            left, other = (K // max(1, block_shape(scale)[-1]) for scale in (lhs_scale, rhs_scale))
            if left != other:
                raise hinted(
                    ValueError(f"Operands must have the same scale factor; (lhs: {left} vs rhs: {other})"),
                    f"K is {K}, the scales are {shape_text(block_shape(lhs_scale))} and "
                    f"{shape_text(block_shape(rhs_scale))}: one for 32 elements (uint8), or for 16 (fp8e4nv)",
                )
        for name, scale, rows in (("lhs_scale", lhs_scale, M), ("rhs_scale", rhs_scale, N)):
            if scale is None:
                continue
            factor = 16 if scale.dtype.is_fp8e4nv() else 32
            wanted = (rows, K // factor)
            if block_shape(scale)[-2:] != wanted or K % factor:
                raise ValueError(
                    f"{name} must be a tensor of shape {shape_text(wanted)}. "
                    f"Got {shape_text(block_shape(scale))} for K = {K}"
                )
            if scale.dtype not in (dt.uint8, dt.int8, dt.float8e4nv):
                raise TypeError(f"{name} must be uint8 (e8m0) or fp8e4nv, got {scale.dtype}")

    def dot_scaled(
        self,
        lhs: tensor,
        lhs_scale: Any,
        lhs_format: str,
        rhs: tensor,
        rhs_scale: Any,
        rhs_format: str,
        acc: tensor | None,
        fast_math: bool,
        lhs_k_pack: bool,
        rhs_k_pack: bool,
        out_dtype: dtype,
    ) -> tensor:
        """The product of two matrices whose rows of 32 elements have a scale each."""
        if not isinstance(lhs.type, block_type) or not isinstance(rhs.type, block_type):
            raise TypeError(f"dot_scaled needs two tensors of rank 2 or 3, got {_both(lhs, rhs)}")
        left, right = block_shape(lhs), block_shape(rhs)
        if len(left) != len(right) or len(left) not in (2, 3) or left[:-2] != right[:-2]:
            raise ValueError(f"dot_scaled needs equal ranks of 2 or 3 and equal batches: got {_both(lhs, rhs)}")
        if not out_dtype.is_fp32():
            raise ValueError(f"Only float32 is supported for out_dtype at the moment, got {out_dtype}")
        left_type, right_type = self._str_to_fp_type(lhs_format), self._str_to_fp_type(rhs_format)
        if not (lhs_k_pack or lhs_format == "e2m1") or not (rhs_k_pack or rhs_format == "e2m1"):
            raise ValueError("only mxfp4 inputs can be packed along a dimension different than K")
        lhs, rhs = self._bitcast_to_fp_type(lhs, lhs_format), self._bitcast_to_fp_type(rhs, rhs_format)
        packed_left, packed_right = (2 if f == "e2m1" else 1 for f in (lhs_format, rhs_format))
        m = left[-2] * (1 if lhs_k_pack else packed_left)
        k = left[-1] * (packed_left if lhs_k_pack else 1)
        n = right[-1] * (1 if rhs_k_pack else packed_right)
        k_right = right[-2] * (packed_right if rhs_k_pack else 1)
        if k != k_right:
            raise ValueError(
                "Reduction dimension should pack the same number of elements; "
                f"(lhs: {shape_text(left)} vs rhs: {shape_text(right)}, K = {k} and {k_right})"
            )
        self.verify_scaled_shape(m, n, k, lhs_scale, rhs_scale)
        result = block_of(out_dtype, (*left[:-2], m, n))
        if acc is None:
            acc = self._constant(0, result)
        else:
            self._check_accumulator(acc, result)
        handle = self.builder.dot_scaled(
            lhs.handle,
            rhs.handle,
            acc.handle,
            lhs_scale.handle if lhs_scale is not None else None,
            rhs_scale.handle if rhs_scale is not None else None,
            left_type,
            right_type,
            fast_math=fast_math,
            lhs_k_pack=lhs_k_pack,
            rhs_k_pack=rhs_k_pack,
        )
        return tensor(handle, result)
