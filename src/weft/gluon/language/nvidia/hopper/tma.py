"""`hopper.tma`: copies of blocks of tensors between global and shared memory, by one thread for all (TMA).

mbarrier.expect(bar, desc.block_type.nbytes)
tma.async_copy_global_to_shared(desc, [row, column], bar, memory)       # done when the barrier's phase is over
tma.async_copy_shared_to_global(desc, [row, column], memory)            # done after tma.store_wait(0)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from xdsl.ir import Operation

from weft import ir
from weft.base import LayoutError, hinted
from weft.ir import tt
from weft.ir.nvidia import ttng
from weft.language import dtypes as dt
from weft.language.constants import unwrap, unwrap_shape
from weft.language.dtypes import block_type, pointer_type
from weft.language.protocol import GIVEN, builtin, builtin_named
from weft.language.semantic import shape_text
from weft.language.tensors import tensor
from weft.layouts import NVMMASharedLayout

from ....descriptors import (
    tensor_descriptor,
    tensor_descriptor_im2col,
    tensor_descriptor_im2col_type,
    tensor_descriptor_type,
)
from ....memory import shared_memory_descriptor
from ....operands import known_number
from ....semantic import GluonSemantic
from ..barriers import listed

__all__ = [
    "async_atomic_add",
    "async_atomic_and",
    "async_atomic_max",
    "async_atomic_min",
    "async_atomic_or",
    "async_atomic_xor",
    "async_copy_global_to_shared",
    "async_copy_global_to_shared_im2col",
    "async_copy_shared_to_global",
    "async_load",
    "async_load_im2col",
    "async_store",
    "make_tensor_descriptor",
    "store_wait",
    "tensor_descriptor",
    "tensor_descriptor_im2col",
    "tensor_descriptor_im2col_type",
    "tensor_descriptor_type",
]


IMAGES = "async_copy_global_to_shared_im2col"


def _check(name: str, desc: Any, coord: Sequence[Any], memory: Any, *, of_parts: bool = False) -> None:
    """The memory must have the shape and layout of the descriptor's blocks, or be several such parts. As in Triton, it
    may lack leading dimensions of size one."""
    images = name == IMAGES
    if not isinstance(desc, tensor_descriptor) or images != isinstance(desc, tensor_descriptor_im2col):
        raise TypeError(f"{name} needs a tensor descriptor{' of images' * images}, got {desc}")
    if not isinstance(memory, shared_memory_descriptor):
        raise TypeError(f"{name} needs shared memory, got {memory}")
    rank = len(desc.shape.values) if images else len(desc.block_shape)
    if len(coord) != rank:
        raise ValueError(f"{name}: expected {rank} coordinates, one for each dimension, got {len(coord)}")
    alone = 0 if images else len(desc.block_shape) - len(memory.shape)
    """Leading dimensions of the block that the memory does not have."""
    shape, layout = list(desc.block_shape), desc.layout
    if alone > 0 and shape[:alone] == [1] * alone and isinstance(layout, NVMMASharedLayout):
        shape, cga = shape[alone:], [basis[alone:] for basis in layout.cga_layout]
        layout = replace(layout, rank=len(shape), cga_layout=cga)
    is_fit = list(memory.shape) == shape or of_parts  # how parts fit, the lowering knows
    if not is_fit or memory.dtype != desc.dtype:
        raise ValueError(
            f"{name}: the blocks of the descriptor are {desc.dtype}{shape_text(desc.block_shape)}, "
            f"the shared memory is {memory.dtype}{shape_text(memory.shape)}"
        )
    if memory.layout != layout and not of_parts:
        raise LayoutError(
            f"{name}: the blocks of the descriptor lie in {desc.layout!r}, the shared memory in {memory.layout!r}",
            hint="allocate it with layout=desc.layout",
        )


@builtin
def async_copy_global_to_shared(
    tensor_desc: Any,
    coord: Any,
    barrier: Any,
    result: Any,
    pred: Any = True,
    multicast: Any = False,
    _semantic: GluonSemantic = GIVEN,
) -> None:
    """Begin to copy the block at `coord` to shared memory; its bytes count at the mbarrier. Outside, the padding.

    With `multicast`, blocks of the cluster that hold the same part of it (0 in `cga_layout`) get it by one copy, which
    the first of them begins and which counts at the mbarrier of each; each announces its bytes. With "divided" each of
    them begins a part of it, so that all must come here. Weft's, not Triton's.
    """
    at = listed(coord)
    _check("async_copy_global_to_shared", tensor_desc, at, result)
    operands = [
        tensor_desc.handle,
        *_semantic._convert_to_ir_values(at, require_i64=False),
        barrier.handle,
        result.handle,
        _semantic.to_tensor(pred).handle,
    ]
    is_divided = unwrap(multicast) == "divided"
    properties = _several("async_copy_global_to_shared", True if is_divided else multicast)
    op = _semantic.builder.create(ttng.AsyncTMACopyGlobalToLocalOp, operands, (), properties)
    if is_divided:
        op.attributes[ttng.DIVIDED] = ir.unit_attr()


@builtin
def async_copy_shared_to_global(
    tensor_desc: Any, coord: Any, src: Any, *, each_warp: Any = False, _semantic: GluonSemantic = GIVEN
) -> None:
    """Begin to copy shared memory to the block at `coord`; what lies outside of the tensor is dropped.

    With `each_warp`, every warp begins the copies of its own parts of `src`, which it has written, and waits for no
    other: the descriptor is for such a part, and of W warps, warp w has parts w, w + W, ..., counted down the columns.
    A part that would begin before the tensor is dropped. Weft's, not Triton's.
    """
    _from_shared("async_copy_shared_to_global", None, tensor_desc, coord, src, each_warp, _semantic)


def _from_shared(
    name: str, combines: tt.DescriptorReduceKind | None, desc: Any, coord: Any, src: Any, each_warp: Any,
    semantic: GluonSemantic,
) -> None:  # fmt: skip
    """Begin to store shared memory to a block of a tensor, or to combine it with what is there."""
    at, alone = listed(coord), unwrap(each_warp)
    if not isinstance(alone, bool):
        raise TypeError(f"{name}: each_warp must be True or False when compiling, got {alone}")
    _check(name, desc, at, src, of_parts=alone)
    operands = [desc.handle, *semantic._convert_to_ir_values(at, require_i64=False), src.handle]
    op: Operation
    if combines is None:
        op = semantic.builder.create(ttng.AsyncTMACopyLocalToGlobalOp, operands)
    else:
        semantic.check_reducible(desc, combines)
        op = semantic.builder.create(ttng.AsyncTMAReduceOp, operands, (), {"kind": ir.enum_attr(combines)})
    if alone:
        op.attributes[ttng.EACH_WARP] = ir.unit_attr()


def _several(name: str, multicast: Any) -> dict[str, Any]:
    """The properties that say whether a load is for all blocks of the cluster that hold the same."""
    several = unwrap(multicast)
    if not isinstance(several, bool):
        raise TypeError(f"{name}: multicast must be True or False when compiling, got {several}")
    return {"multicast": ir.bool_attr(True)} if several else {}


@builtin
def async_copy_global_to_shared_im2col(
    tensor_desc: Any,
    coord: Any,
    offsets: Any,
    barrier: Any,
    result: Any,
    pred: Any = True,
    multicast: Any = False,
    _semantic: GluonSemantic = GIVEN,
) -> None:
    """Begin to copy pixels and channels of images, from the pixel and the channel at `coord` on, to shared memory.

    `coord` has a number for each dimension of the images (the last one is of channels), `offsets` one for each of the
    pixels' dimensions, 0 or more, which is added to all pixels: the place in a filter. Otherwise as async_load.
    """
    at, more = listed(coord), [unwrap(x) for x in listed(offsets)]
    _check(IMAGES, tensor_desc, at, result)
    if len(more) != len(at) - 2:
        raise ValueError(f"{IMAGES}: expected {len(at) - 2} offsets, one for each dimension of pixels, got {len(more)}")
    for number in more:
        if isinstance(number, int) and not 0 <= number < 1 << 16:
            raise ValueError(f"{IMAGES}: offsets are 0 to {(1 << 16) - 1}, got {number}")
    steps = [_semantic.cast(_semantic.to_tensor(x), dt.int16) for x in more]
    operands = [
        tensor_desc.handle,
        *_semantic._convert_to_ir_values(at, require_i64=False),
        *(x.handle for x in steps),
        barrier.handle,
        result.handle,
        _semantic.to_tensor(pred).handle,
    ]
    properties = _several(IMAGES, multicast)
    properties["operandSegmentSizes"] = ir.segments(1, len(at), len(more), 1, 1, 1)
    _semantic.builder.create(ttng.AsyncTMACopyImagesToLocalOp, operands, (), properties)


async_load = async_copy_global_to_shared
async_load_im2col = async_copy_global_to_shared_im2col
async_store = async_copy_shared_to_global


def _reduction(kind: tt.DescriptorReduceKind, meaning: str) -> Any:
    name = f"async_atomic_{kind.name.lower()}"

    def function(
        tensor_desc: Any, coord: Any, src: Any, *, each_warp: Any = False, _semantic: GluonSemantic = GIVEN
    ) -> None:
        _from_shared(name, kind, tensor_desc, coord, src, each_warp, _semantic)

    done = "Begin to combine shared memory into the block at `coord`, each element by an atomic step"
    rest = "Over after `store_wait`. `each_warp` is as in `async_store`."
    return builtin_named(name, f"{done}: {meaning}. {rest}", function)


async_atomic_add = _reduction(tt.DescriptorReduceKind.ADD, "the sum of the two")
async_atomic_min = _reduction(tt.DescriptorReduceKind.MIN, "the smaller of the two")
async_atomic_max = _reduction(tt.DescriptorReduceKind.MAX, "the greater of the two")
async_atomic_and = _reduction(tt.DescriptorReduceKind.AND, "the bits that both integers have")
async_atomic_or = _reduction(tt.DescriptorReduceKind.OR, "the bits that either integer has")
async_atomic_xor = _reduction(tt.DescriptorReduceKind.XOR, "the bits that one of the integers has")


@builtin
def store_wait(pendings: Any, read_only: Any = True, _semantic: GluonSemantic = GIVEN) -> None:
    """Wait until at most so many copies from shared memory still read it.

    With `read_only=False`, until at most so many have not written all of global memory, as whoever is told of it by a
    store, an atomic operation or the end of the kernel may want to read.
    """
    reading = unwrap(read_only)
    if not isinstance(reading, bool):
        raise TypeError(f"store_wait: read_only must be True or False when compiling, got {reading}")
    properties: dict[str, Any] = {"pendings": ir.i32_attr(known_number("pendings", pendings))}
    if not reading:
        properties["read_only"] = ir.bool_attr(False)
    _semantic.builder.create(ttng.AsyncTMAStoreWaitOp, (), (), properties)


@builtin
def make_tensor_descriptor(
    base: Any, shape: Any, strides: Any, block_shape: Any, layout: Any, padding_option: Any = "zero",
    _semantic: GluonSemantic = GIVEN,
) -> tensor_descriptor:  # fmt: skip
    """A descriptor made in the kernel: a pointer, sizes, strides in elements (the last is 1), the block and its layout.

    Strides but the last are multiples of 16 bytes, as is the address. 1 to 5 dimensions.
    """
    sizes, steps = listed(shape), listed(strides)
    block = unwrap_shape(block_shape)
    layout = unwrap(layout)
    _semantic._check_ranks(sizes, steps, block)
    if not isinstance(base.type, pointer_type):
        raise TypeError(f"make_tensor_descriptor needs a scalar pointer as its base, got {base.type}")
    if not isinstance(layout, NVMMASharedLayout):
        raise hinted(
            TypeError(f"Expected layout to be a NVMMASharedLayout, got {layout!r}"),
            "gl.NVMMASharedLayout.get_default_for(block_shape, dtype)",
        )
    element = base.type.element_ty
    _semantic._check_row(element, block[-1])
    if isinstance(steps[-1], tensor) or unwrap(steps[-1]) != 1:
        raise ValueError(f"Tensor descriptor last stride must be 1, known when compiling, but got {unwrap(steps[-1])}")
    lengths, moves, operands, properties = _semantic._descriptor_parts(base, sizes, steps, unwrap(padding_option))
    descriptor = tensor_descriptor(None, lengths, moves, block_type(element, block), layout)
    descriptor.handle = _semantic.builder.create(
        tt.MakeTensorDescriptorOp, operands, (descriptor.type.to_ir(),), properties
    ).result
    return descriptor
