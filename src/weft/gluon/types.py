"""Types that have layouts: tiles in registers, descriptors of shared memory.

>>> from weft.language.dtypes import float32
>>> from weft.layouts import BlockedLayout
>>> tile = distributed_type(float32, [128], BlockedLayout([1], [32], [4], [0]))
>>> tile.layout
BlockedLayout([1], [32], [4], [0])

Two types are equal where element type, shape and named layout are. Two layouts that are one map under different names
are different here, as in Triton; `convert_layout(x, layout, assert_trivial=True)` goes from one to the other for free.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from math import prod
from typing import Any

from weft.base import LayoutError, hinted
from weft.ir.gpu import laid_tensor, memdesc
from weft.language.constants import unwrap, unwrap_shape
from weft.language.dtypes import block_type, check_shape, dtype
from weft.language.protocol import base_type
from weft.layouts import AutoLayout, CoalescedLayout, DistributedLayout, Layout, SharedLayout


def unresolved(layout: Layout) -> bool:
    """Is this a layout that is to be chosen by the compiler yet?"""
    return isinstance(layout, AutoLayout | CoalescedLayout)


def mangled(layout: Layout) -> str:
    """A layout as part of a name."""
    return layout.mangle()


class distributed_type(block_type):
    """A tile in registers: an element type, a static shape and a layout. Raises LayoutError where ranks differ.

    >>> tile = gl.distributed_type(gl.float32, [128], gl.BlockedLayout([4], [32], [1], [0]))
    >>> tile.shape, tile.layout
    ((128,), BlockedLayout([4], [32], [1], [0]))
    """

    def __init__(self, element_ty: dtype, shape: Any, layout: Any) -> None:
        super().__init__(unwrap(element_ty), shape)
        self._set_layout(unwrap(layout))

    def _set_layout(self, layout: Any) -> None:
        if not isinstance(layout, DistributedLayout):
            raise hinted(
                TypeError(f"the layout of a tensor must be a layout of registers, got {described(layout)}"),
                "BlockedLayout, SliceLayout, DistributedLinearLayout, DotOperandLayout, NVMMADistributedLayout, "
                "AutoLayout or CoalescedLayout",
            )
        if not unresolved(layout) and layout.rank != len(self.shape):
            raise LayoutError(
                f"tensor shape and layout rank mismatch: the shape {list(self.shape)} has rank {len(self.shape)}, "
                f"the layout has rank {layout.rank}: {layout!r}",
                hint=_of_rank(layout, len(self.shape)),
            )
        self.layout: DistributedLayout = layout

    @property
    def name(self) -> str:  # type: ignore[override]
        """The text of the type."""
        if self._name is None:
            self._name = f"<{[str(s) for s in self.shape]}, {self.element_ty}, {self.layout!r}>"
        return self._name

    def to_ir(self, builder: Any = None) -> Any:
        if self._ir is None:
            self._ir = laid_tensor(self.shape, self.element_ty.to_ir(builder), self.layout)
        return self._ir

    def with_element_ty(self, scalar_ty: dtype) -> distributed_type:
        return tile_type(scalar_ty, self.shape, self.layout)

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        return (
            isinstance(other, distributed_type)
            and self.element_ty == other.element_ty
            and self.shape == other.shape
            and self.layout == other.layout
        )

    def __hash__(self) -> int:
        return hash((self.element_ty, self.shape, self.layout))

    def mangle(self) -> str:
        return f"{self.element_ty.mangle()}S{'_'.join(map(str, self.shape))}SL{mangled(self.layout)}L"


def _of_rank(layout: Layout, rank: int) -> str | None:
    """What to do about a layout of another rank."""
    if layout.rank == rank + 1:
        return f"for a row or a column of a tile of rank {layout.rank}: SliceLayout(dim, {layout!r})"
    return None


@lru_cache(maxsize=4096)
def tile_type(element_ty: dtype, shape: tuple[int, ...], layout: DistributedLayout) -> distributed_type:
    """The type of a tile, made once for each element type, shape and layout."""
    check_shape(shape)
    return distributed_type(element_ty, shape, layout)


def layout_of(type: base_type) -> DistributedLayout | None:
    """The layout of a type of tiles; None for a scalar."""
    return type.layout if isinstance(type, distributed_type) else None


def described(value: Any) -> str:
    """A value that is no layout, as messages show it."""
    if isinstance(value, SharedLayout):
        return f"the shared-memory layout {value!r}"
    return "nothing" if value is None else f"{value!r}"


def blocks_of(layout: SharedLayout, shape: Sequence[int]) -> int:
    """Among how many blocks of a cluster a layout divides a tile; dimensions before its own count buffers."""
    bases = layout.to_linear(list(shape[len(shape) - layout.rank :])).bases.get("block", ())
    return 1 << sum(any(basis) for basis in bases)


class shared_memory_descriptor_type(base_type):
    """A tile in shared memory: element type, shape, layout, and the shape of the allocation that it is a part of.

    >>> layout = gl.NVMMASharedLayout(128, 16)
    >>> gl.shared_memory_descriptor_type(gl.float16, [64, 64], layout, [2, 64, 64]).nbytes      # one of two buffers
    8192
    """

    def __init__(self, element_ty: Any, shape: Any, layout: Any, alloc_shape: Any) -> None:
        self.element_ty: dtype = unwrap(element_ty)
        self.shape: list[int] = unwrap_shape(shape)
        self.layout: SharedLayout = unwrap(layout)
        self.alloc_shape: list[int] = unwrap_shape(alloc_shape)
        if not isinstance(self.layout, SharedLayout):
            shown = f"the register layout {layout!r}" if isinstance(self.layout, DistributedLayout) else repr(layout)
            raise hinted(
                TypeError(f"the layout of shared memory must be a layout of shared memory, got {shown}"),
                "SwizzledSharedLayout, NVMMASharedLayout, PaddedSharedLayout or SharedLinearLayout",
            )
        self._ir: Any = None

    def to_ir(self, builder: Any = None) -> Any:
        """The type in the IR."""
        if self._ir is None:
            self._ir = memdesc(
                self.shape, self.element_ty.to_ir(builder), self.layout, mutable=True, allocated=self.alloc_shape
            )
        return self._ir

    @property
    def nbytes(self) -> int:
        """Bytes of the elements, gaps of a padded layout not counted."""
        return prod(self.shape) * self.element_ty.primitive_bitwidth // 8

    @property
    def nbytes_per_cta(self) -> int:
        """Bytes of the elements that one block of the cluster has, gaps of a padded layout not counted."""
        return self.nbytes // blocks_of(self.layout, self.shape)

    def _unflatten_ir(self, handles: list[Any], cursor: int) -> tuple[Any, int]:
        return _descriptor_class[0](handles[cursor], *self.parts()), cursor + 1

    def _flatten_ir_types(self, builder: Any, out: list[Any]) -> None:
        out.append(self.to_ir(builder))

    def parts(self) -> tuple[dtype, Sequence[int], SharedLayout, Sequence[int]]:
        """What a descriptor is made of: element type, shape, layout, shape of the allocation."""
        return self.element_ty, self.shape, self.layout, self.alloc_shape

    def __str__(self) -> str:
        return f"shared_memory_descriptor<{self.element_ty}, {self.shape}, {self.layout!r}, {self.alloc_shape}>"

    def __eq__(self, other: object) -> bool:
        return type(self) is type(other) and self.parts() == other.parts()

    def __hash__(self) -> int:
        return hash((self.element_ty, tuple(self.shape), self.layout, tuple(self.alloc_shape)))

    def mangle(self) -> str:
        shape, allocated = ("_".join(map(str, s)) for s in (self.shape, self.alloc_shape))
        return f"MD{self.element_ty.mangle()}S{shape}SL{mangled(self.layout)}LAS{allocated}ASMD"


_descriptor_class: list[Any] = []
"""The class `shared_memory_descriptor`, put here by its module: a type must be able to make its values."""
