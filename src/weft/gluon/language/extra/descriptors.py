"""`gl.extra.descriptors`: tensor descriptors as kernels of the Triton language are given them. Weft's own.

    base, pads_nan, rows, columns, stride, _ = descriptors.parts(x)        # x: weft.TensorDescriptor of the host
    blocks = descriptors.bulk(x, [64, 128], shared)                         # as the functions of hopper.tma take one

So a Gluon kernel can be launched with the arguments of one in the Triton language. The functions are for descriptors
that are parameters of the kernel.
"""

from __future__ import annotations

from typing import Any

from weft.ir.gpu.described import DescriptorBlocksOp, DescriptorPartsOp
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

__all__ = ["bulk", "parts"]


def _check(name: str, descriptor: Any) -> None:
    if not isinstance(descriptor, plain_descriptor):
        raise TypeError(f"{name}: expected a parameter that a weft.TensorDescriptor is given for, got {descriptor}")


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
    if not isinstance(laid, NVMMASharedLayout):
        raise TypeError(f"bulk: expected an NVMMASharedLayout, got {described(laid)}")
    blocks = tensor_descriptor(None, (), (), block_type(descriptor.dtype, block), laid)
    type = blocks.type.to_ir()
    blocks.handle = _semantic.builder.create(DescriptorBlocksOp, (descriptor.handle,), (type,)).result
    return blocks
