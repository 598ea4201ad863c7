"""`gl.amd.gfx1250.tdm`: copies of blocks of tensors by the tensor data mover, which moves them past the registers.

    desc = tdm.make_tensor_descriptor(pointer, [M, N], [N, 1], [64, 64], gl.SwizzledSharedLayout(1, 1, 1, [1, 0]))
    memory = gl.allocate_shared_memory(desc.dtype, desc.block_shape, desc.layout)
    tdm.async_load(desc, [row, column], memory)
    tdm.async_wait(0)

What of a block is outside of the tensor becomes 0, and is not stored. Each warp copies its part of the block, and waits
for its own copies, which end in their order.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from weft import ir
from weft.base import LayoutError, Unsupported
from weft.ir.amd import tdm as ops
from weft.language.constants import unwrap, unwrap_shape
from weft.language.dtypes import block_type, pointer_type
from weft.language.protocol import GIVEN, base_type, builtin
from weft.language.semantic import shape_text
from weft.language.tensors import tensor
from weft.language.tuples import tuple as _tuple
from weft.layouts import PaddedSharedLayout, SharedLayout, SwizzledSharedLayout

from ...descriptors import block_descriptor
from ...memory import shared_memory_descriptor
from ...operands import known_number
from ...semantic import GluonSemantic
from ...types import mangled
from .given import pointer_of, register
from .mbarriers import barrier_handle
from .processors import check_processor

TARGET = "hip:gfx1250"


class tensor_descriptor_type(base_type):
    """The block that is moved, its layout in shared memory, the types of what describes the tensor."""

    def __init__(self, block_type: block_type, base_type: Any, shape_type: Any, strides_type: Any, layout: Any) -> None:
        self.block_type, self.base_type, self.layout = block_type, base_type, layout
        self.shape_type, self.strides_type = shape_type, strides_type

    def _unflatten_ir(self, handles: list[Any], cursor: int) -> tuple[Any, int]:
        base, cursor = self.base_type._unflatten_ir(handles, cursor)
        shape, cursor = self.shape_type._unflatten_ir(handles, cursor)
        strides, cursor = self.strides_type._unflatten_ir(handles, cursor)
        return tensor_descriptor(base, shape.values, strides.values, self.block_type, self.layout), cursor

    def _flatten_ir_types(self, builder: Any, out: list[Any]) -> None:
        for part in (self.base_type, self.shape_type, self.strides_type):
            part._flatten_ir_types(builder, out)

    def _parts(self) -> tuple[Any, ...]:
        return self.block_type, self.base_type, self.shape_type, self.strides_type, self.layout

    def __str__(self) -> str:
        return f"tensor_descriptor<{self.block_type}, {self.layout!r}>"

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and self._parts() == other._parts()

    def __hash__(self) -> int:
        return hash((self.block_type, self.layout))

    def mangle(self) -> str:
        return f"TD{self.block_type.mangle()}_{mangled(self.layout)}TD"


register(tensor_descriptor_type)


class tensor_descriptor(block_descriptor):
    """A tensor in global memory, of which copies move a block at a time."""

    def __init__(
        self, base: Any, shape: Sequence[Any], strides: Sequence[Any], block_type: block_type, layout: Any
    ) -> None:
        self.base, self.shape, self.strides = base, _tuple(list(shape)), _tuple(list(strides))
        shape_type, strides_type = self.shape.type, self.strides.type
        self.type: tensor_descriptor_type = tensor_descriptor_type(
            block_type, base.type, shape_type, strides_type, layout
        )

    def _flatten_ir(self, handles: list[Any]) -> None:
        for part in (self.base, self.shape, self.strides):
            part._flatten_ir(handles)

    @property
    def layout(self) -> SharedLayout:
        """Where a block lies in shared memory."""
        layout: SharedLayout = self.type.layout
        return layout


@builtin
def make_tensor_descriptor(
    base: Any, shape: Any, strides: Any, block_shape: Any, layout: Any, _semantic: GluonSemantic = GIVEN
) -> tensor_descriptor:
    """A descriptor: a pointer, sizes, strides in elements (the last is 1), the block and its layout; 1 to 5 dimensions.

    The layout is a PaddedSharedLayout, or a SwizzledSharedLayout with a max_phase of 1, row by row.
    """
    check_processor("tdm.make_tensor_descriptor", TARGET, _semantic)
    sizes, steps, block, layout = _listed(shape), _listed(strides), unwrap_shape(block_shape), unwrap(layout)
    if not 1 <= len(sizes) <= 5 or not len(sizes) == len(steps) == len(block):
        raise ValueError(
            f"make_tensor_descriptor: expected 1 to 5 dimensions, and as many strides and sizes of a block, got "
            f"{len(sizes)} sizes, {len(steps)} strides and {len(block)} sizes of a block"
        )
    if not isinstance(getattr(base, "type", None), pointer_type):
        raise TypeError(f"make_tensor_descriptor needs a scalar pointer as its base, got {getattr(base, 'type', base)}")
    if not isinstance(layout, PaddedSharedLayout | SwizzledSharedLayout):
        raise LayoutError(
            f"make_tensor_descriptor: the layout must be a PaddedSharedLayout or a SwizzledSharedLayout, got {layout!r}"
        )
    if isinstance(layout, SwizzledSharedLayout) and layout.max_phase != 1:
        raise LayoutError(f"make_tensor_descriptor: a swizzled layout must have a max_phase of 1, got {layout!r}")
    if isinstance(steps[-1], tensor) or unwrap(steps[-1]) != 1:
        raise ValueError(f"make_tensor_descriptor: the last stride must be 1, known when compiling, got {steps[-1]}")
    lengths, moves, _, _ = _semantic._descriptor_parts(base, sizes, steps, "zero")
    return tensor_descriptor(base, lengths, moves, block_type(base.type.element_ty, block), layout)


def _listed(value: Any) -> list[Any]:
    return list(unwrap(value))


def _parts(name: str, desc: Any, offsets: Any, memory: Any, semantic: GluonSemantic) -> tuple[list[Any], int]:
    """The operands of a copy up to the offsets, and how many dimensions there are."""
    check_processor(f"tdm.{name}", TARGET, semantic)
    at = _listed(offsets)
    if not isinstance(desc, tensor_descriptor):
        raise TypeError(f"{name} needs a tensor descriptor of tdm.make_tensor_descriptor, got {desc}")
    if not isinstance(memory, shared_memory_descriptor):
        raise TypeError(f"{name} needs shared memory, got {memory}")
    rank = len(desc.block_shape)
    if len(at) != rank:
        raise ValueError(f"{name}: expected {rank} offsets, one for each dimension, got {len(at)}")
    if list(memory.shape) != list(desc.block_shape) or memory.dtype != desc.dtype:
        raise ValueError(
            f"{name}: the blocks of the descriptor are {desc.dtype}{shape_text(desc.block_shape)}, the shared memory "
            f"is {memory.dtype}{shape_text(memory.shape)}"
        )
    if memory.layout != desc.layout:
        raise LayoutError(
            f"{name}: the blocks of the descriptor lie in {desc.layout!r}, the shared memory in {memory.layout!r}",
            hint="allocate it with layout=desc.layout",
        )
    handles = [pointer_of(desc.base, semantic)]
    for part in (desc.shape, desc.strides):
        part._flatten_ir(handles)
    return [*handles, *semantic._convert_to_ir_values(at, require_i64=False)], rank


@builtin
def async_load(
    src: Any, offsets: Any, dest: Any, pred: Any = True, mbarrier: Any = None, _semantic: GluonSemantic = GIVEN
) -> None:
    """Begin to copy the block at `offsets` to shared memory, where `pred` holds.

    Each warp that has a part of it arrives at the `mbarrier` when that, and what it began to copy before, is there.
    """
    operands, rank = _parts("async_load", src, offsets, dest, _semantic)
    operands += [_semantic.to_tensor(pred).handle, dest.handle]
    barrier = () if unwrap(mbarrier) is None else (barrier_handle("tdm.async_load", mbarrier, _semantic),)
    operands += barrier
    properties = {"operandSegmentSizes": ir.segments(1, rank, rank, rank, 1, 1, len(barrier))}
    _semantic.builder.create(ops.TensorLoadOp, operands, (), properties)


@builtin
def async_store(dest: Any, offsets: Any, src: Any, _semantic: GluonSemantic = GIVEN) -> None:
    """Begin to copy shared memory to the block at `offsets`."""
    operands, rank = _parts("async_store", dest, offsets, src, _semantic)
    if isinstance(dest.layout, PaddedSharedLayout):
        raise Unsupported(
            "tdm.async_store out of a PaddedSharedLayout, as tensor_store_from_lds skips no gaps,",
            str(_semantic.target),
            hint="store from memory in a SwizzledSharedLayout(1, 1, 1, order)",
        )
    properties = {"operandSegmentSizes": ir.segments(1, rank, rank, rank, 1)}
    _semantic.builder.create(ops.TensorStoreOp, [*operands, src.handle], (), properties)


@builtin
def async_wait(num_outstanding: Any = 0, _semantic: GluonSemantic = GIVEN) -> None:
    """Wait until at most so many copies of the own warp are under way, loads and stores counted together."""
    check_processor("tdm.async_wait", TARGET, _semantic)
    count = known_number("num_outstanding", num_outstanding)
    _semantic.builder.create(ops.TensorWaitOp, (), (), {"num": ir.i32_attr(count)})
