"""`gl.extra.descriptors`: tensor descriptors as kernels of the Triton language are given them. Weft's own.

    base, pads_nan, rows, columns, stride, _ = descriptors.parts(x)        # x: weft.TensorDescriptor of the host
    blocks = descriptors.bulk(x, [64, 128], shared)                         # as the functions of hopper.tma take one

    blocks = descriptors.made(a, [m, k], [stride, 1], [64, 128], shared)    # a: an array; m, k, stride: numbers

So a Gluon kernel can be launched with the arguments of one in the Triton language, and has tensor maps that the launch
makes. The functions are for parameters of the kernel, and sums and products of them.
"""

from __future__ import annotations

from typing import Any

from weft import ir
from weft.ir.gpu.described import DescriptorBlocksOp, DescriptorMadeOp, DescriptorPartsOp
from weft.language import dtypes as dt
from weft.language.constants import unwrap, unwrap_shape
from weft.language.descriptors import tensor_descriptor as plain_descriptor
from weft.language.dtypes import block_type, pointer_type
from weft.language.protocol import GIVEN, builtin
from weft.language.semantic import shape_text
from weft.language.tensors import tensor
from weft.language.tuples import tuple as _tuple
from weft.layouts import NVMMASharedLayout

from ...descriptors import tensor_descriptor
from ...semantic import GluonSemantic
from ...types import described

__all__ = ["bulk", "made", "parts"]


def _check(name: str, descriptor: Any) -> None:
    if not isinstance(descriptor, plain_descriptor):
        raise TypeError(f"{name}: expected a parameter that a weft.TensorDescriptor is given for, got {descriptor}")


def _listed(values: Any) -> list[Any]:
    values = unwrap(values)
    return list(getattr(values, "values", values))


@builtin
def parts(descriptor: Any, _semantic: GluonSemantic = GIVEN) -> Any:
    """The address of the first element, 1 if what lies outside reads as NaN and else 0, extents and strides (int64)."""
    _check("parts", descriptor)
    pointer = pointer_type(descriptor.dtype)
    types = [pointer, *[dt.int64] * (1 + 2 * len(descriptor.block_shape))]
    op = _semantic.builder.create(DescriptorPartsOp, (descriptor.handle,), [t.to_ir() for t in types])
    return _tuple([tensor(result, type) for result, type in zip(op.parts, types, strict=True)])


@builtin
def bulk(descriptor: Any, block_shape: Any, layout: Any, _semantic: GluonSemantic = GIVEN) -> tensor_descriptor:
    """The same tensor, of which bulk copies move blocks of this shape, that lie in this layout in shared memory.

    It has no shape and no strides of its own: `parts` has them.
    """
    _check("bulk", descriptor)
    block, laid = unwrap_shape(block_shape), unwrap(layout)
    if len(block) != len(descriptor.block_shape):
        rank = len(descriptor.block_shape)
        raise ValueError(f"bulk: the tensor has {rank} dimensions, the block is {shape_text(block)}")
    blocks = _blocks("bulk", descriptor.dtype, block, laid)
    blocks.handle = _semantic.builder.create(
        DescriptorBlocksOp, (descriptor.handle,), (blocks.type.to_ir(),)
    ).result  # fmt: skip
    return blocks


def _blocks(name: str, element: Any, block: Any, layout: Any) -> tensor_descriptor:
    if not isinstance(layout, NVMMASharedLayout):
        raise TypeError(f"{name}: expected an NVMMASharedLayout, got {described(layout)}")
    return tensor_descriptor(None, (), (), block_type(element, block), layout)


def _wide(semantic: GluonSemantic, value: Any) -> Any:
    """A number as 64 bits. Constants become 64 bits directly, because one of 2^31 would otherwise be unsigned first."""
    number = unwrap(value)
    if isinstance(number, int):
        return semantic.builder.constant(number, dt.int64.to_ir())
    return semantic.cast(semantic.to_tensor(value), dt.int64).handle


@builtin
def made(
    base: Any, shape: Any, strides: Any, block_shape: Any, layout: Any, further: Any = 0, least: Any = (),
    _semantic: GluonSemantic = GIVEN,
) -> tensor_descriptor:  # fmt: skip
    """A tensor that begins `further` bytes behind `base`, for copies of blocks; the launch makes its tensor map.

    Extents and strides, in elements, are of parameters and constants; `least` are pairs of a parameter and what it is
    at least. As for `bulk`, the result has no shape.
    """
    if not isinstance(base, tensor) or not isinstance(base.type, pointer_type):
        raise TypeError(f"made: expected a pointer, got {base}")
    sizes, steps, pairs = _listed(shape), _listed(strides), [_listed(pair) for pair in _listed(least)]
    block = unwrap_shape(block_shape)
    if not len(sizes) == len(steps) == len(block):
        raise ValueError(f"made: {len(sizes)} extents, {len(steps)} strides and a block of {shape_text(block)}")
    blocks = _blocks("made", base.type.element_ty, block, unwrap(layout))
    sums = [_wide(_semantic, x) for x in (further, *sizes, *steps)]
    limited = [_semantic.to_tensor(parameter).handle for parameter, _ in pairs]
    properties = {
        "least": ir.i32_array([int(unwrap(number)) for _, number in pairs]),
        "operandSegmentSizes": ir.segments(1, len(sums), len(limited)),
    }
    operands, type = (base.handle, *sums, *limited), blocks.type.to_ir()
    blocks.handle = _semantic.builder.create(DescriptorMadeOp, operands, (type,), properties).result
    return blocks
