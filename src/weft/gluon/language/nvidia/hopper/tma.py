"""`hopper.tma`: copies of blocks of tensors between global and shared memory, by one thread for all (TMA).

mbarrier.expect(bar, desc.block_type.nbytes)
tma.async_copy_global_to_shared(desc, [row, column], bar, memory)       # done when the barrier's phase is over
tma.async_copy_shared_to_global(desc, [row, column], memory)            # done after tma.store_wait(0)
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from weft import ir
from weft.base import LayoutError, hinted
from weft.ir import tt
from weft.ir.gpu import ttng
from weft.language import dtypes as dt
from weft.language.constants import unwrap, unwrap_shape
from weft.language.dtypes import block_type, pointer_type
from weft.language.protocol import builtin
from weft.language.semantic import shape_text
from weft.language.tensors import tensor
from weft.layouts import NVMMASharedLayout

from ....descriptors import tensor_descriptor, tensor_descriptor_type
from ....elsewhere import only_on
from ....memory import shared_memory_descriptor
from ....semantic import GluonSemantic
from ...barriers import known_number, listed

__all__ = [
    "async_copy_global_to_shared",
    "async_copy_shared_to_global",
    "async_load",
    "async_store",
    "make_tensor_descriptor",
    "store_wait",
    "tensor_descriptor",
    "tensor_descriptor_type",
]

Semantic = GluonSemantic | None

_LATER = "later versions of Triton than 3.6"
_IM2COL = "async_copy_global_to_shared_im2col"
_ATOMICS = [f"async_atomic_{name}" for name in ("add", "and", "max", "min", "or", "xor")]
_MISSING = {
    **only_on("tma", [_IM2COL], _LATER, {_IM2COL: "copy the pixels of each place of the filter as a block of its own"}),
    **only_on("tma", _ATOMICS, _LATER, dict.fromkeys(_ATOMICS, "gl.atomic_add and its like take pointers")),
}
async_copy_global_to_shared_im2col = async_load_im2col = _MISSING[_IM2COL]
async_atomic_add, async_atomic_and = _MISSING["async_atomic_add"], _MISSING["async_atomic_and"]
async_atomic_max, async_atomic_min = _MISSING["async_atomic_max"], _MISSING["async_atomic_min"]
async_atomic_or, async_atomic_xor = _MISSING["async_atomic_or"], _MISSING["async_atomic_xor"]


def _check(name: str, desc: Any, coord: Sequence[Any], memory: Any) -> None:
    """The memory must be what the descriptor's blocks are copied to."""
    if not isinstance(desc, tensor_descriptor):
        raise TypeError(f"{name} needs a tensor descriptor, got {desc}")
    if not isinstance(memory, shared_memory_descriptor):
        raise TypeError(f"{name} needs shared memory, got {memory}")
    rank = len(desc.block_shape)
    if len(coord) != rank:
        raise ValueError(f"{name}: expected {rank} coordinates, one for each dimension, got {len(coord)}")
    if list(memory.shape) != list(desc.block_shape) or memory.dtype != desc.dtype:
        raise ValueError(
            f"{name}: the blocks of the descriptor are {desc.dtype}{shape_text(desc.block_shape)}, "
            f"the shared memory is {memory.dtype}{shape_text(memory.shape)}"
        )
    if memory.layout != desc.layout:
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
    _semantic: Semantic = None,
) -> None:
    """Begin to copy the block at `coord` to shared memory; its bytes count at the mbarrier. Outside, the padding.

    With `multicast`, blocks of the cluster that hold the same part of it (0 in `cga_layout`) get it by one copy, which
    the first of them begins and which counts at the mbarrier of each; each announces its bytes. Weft's, not Triton's.
    """
    assert _semantic is not None
    several = unwrap(multicast)
    if not isinstance(several, bool):
        raise TypeError(f"async_copy_global_to_shared: multicast must be True or False when compiling, got {several}")
    at = listed(coord)
    _check("async_copy_global_to_shared", tensor_desc, at, result)
    operands = [
        tensor_desc.handle,
        *_semantic._convert_to_ir_values(at, require_i64=False),
        barrier.handle,
        result.handle,
        _semantic.to_tensor(pred).handle,
    ]
    properties = {"multicast": ir.bool_attr(True)} if several else {}
    _semantic.builder.create(ttng.AsyncTMACopyGlobalToLocalOp, operands, (), properties)


@builtin
def async_copy_shared_to_global(tensor_desc: Any, coord: Any, src: Any, _semantic: Semantic = None) -> None:
    """Begin to copy shared memory to the block at `coord`; what lies outside of the tensor is dropped."""
    assert _semantic is not None
    at = listed(coord)
    _check("async_copy_shared_to_global", tensor_desc, at, src)
    operands = [tensor_desc.handle, *_semantic._convert_to_ir_values(at, require_i64=False), src.handle]
    _semantic.builder.create(ttng.AsyncTMACopyLocalToGlobalOp, operands)


async_load = async_copy_global_to_shared
async_store = async_copy_shared_to_global


@builtin
def store_wait(pendings: Any, read_only: Any = True, _semantic: Semantic = None) -> None:
    """Wait until at most so many copies from shared memory still read it.

    With `read_only=False`, until at most so many have not written all of global memory, as whoever is told of it by a
    store, an atomic operation or the end of the kernel may want to read.
    """
    assert _semantic is not None
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
    _semantic: Semantic = None,
) -> tensor_descriptor:  # fmt: skip
    """A descriptor made in the kernel: a pointer, sizes, strides in elements (the last is 1), the block and its layout.

    Strides but the last are multiples of 16 bytes, as is the address. 1 to 5 dimensions.
    """
    assert _semantic is not None
    sizes, steps = listed(shape), listed(strides)
    block = unwrap_shape(block_shape)
    layout = unwrap(layout)
    rank = len(sizes)
    if not 1 <= rank <= 5:
        raise ValueError(f"Expected 1 <= ndim <= 5 but got {rank} dimensions")
    if len(steps) != rank:
        raise ValueError(f"Expected {rank} strides but got {len(steps)}")
    if len(block) != rank:
        raise ValueError(f"Expected block_shape to have {rank} dimensions but got {len(block)}")
    if not isinstance(base.type, pointer_type):
        raise TypeError(f"make_tensor_descriptor needs a scalar pointer as its base, got {base.type}")
    if not isinstance(layout, NVMMASharedLayout):
        raise hinted(
            TypeError(f"Expected layout to be a NVMMASharedLayout, got {layout!r}"),
            "gl.NVMMASharedLayout.get_default_for(block_shape, dtype)",
        )
    element = base.type.element_ty
    width = element.primitive_bitwidth // 8
    if block[-1] * width < 16:
        raise ValueError(
            "Descriptor block shape must have at least 16 bytes in the last dimension, but got "
            f"{block[-1]} * {width} = {block[-1] * width} bytes"
        )
    if isinstance(steps[-1], tensor) or unwrap(steps[-1]) != 1:
        raise ValueError(f"Tensor descriptor last stride must be 1, known when compiling, but got {unwrap(steps[-1])}")
    padding = _semantic._str_to_padding_option(unwrap(padding_option))
    if element.is_int() and padding == tt.PaddingOption.PAD_NAN:
        raise ValueError("Padding option `nan` is not supported for integer blocks")
    lengths = [_semantic.make_scalar(unwrap(s), dt.int32) for s in sizes]
    moves = [_semantic.make_scalar(unwrap(s), dt.int64) for s in steps]
    made = tensor_descriptor(None, lengths, moves, block_type(element, block), layout)
    properties = {} if padding in (None, tt.PaddingOption.PAD_ZERO) else {"padding": ir.enum_attr(padding)}
    operands = [base.handle, *(v.handle for v in lengths), *(v.handle for v in moves)]
    made.handle = _semantic.builder.create(tt.MakeTensorDescriptorOp, operands, (made.type.to_ir(),), properties).result
    return made
