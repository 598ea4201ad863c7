"""Types of values that are no tiles: descriptors of memory in a block, and tokens of asynchronous work.

    !ttg.memdesc<2x128x64xf16, #shared, #smem, mutable>      !ttg.memdesc<32x16xf32, #shared, #smem, mutable, 64x64>

A descriptor says where a tile lies in shared (or tensor) memory. Its layout is that of the last dimensions of what was
allocated: leading dimensions beyond the layout's own count buffers that follow each other, and the shape behind the
flags, where there is one, is that of the allocation of which this is a part.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from xdsl.ir import Attribute, Data, OpResult, ParametrizedAttribute, SSAValue, TypeAttribute
from xdsl.irdl import irdl_attr_definition

from weft.base import LayoutError
from weft.layouts import Layout, LinearLayout, PaddedSharedLayout, f2, with_gaps

from ..text import type_text
from ..types import AliasOf, Laid, bit_width
from .encoding import LayoutAttr, encoding_for

__all__ = [
    "SHARED_MEMORY",
    "TENSOR_MEMORY",
    "AsyncTokenType",
    "MemDesc",
    "MemDescType",
    "MemorySpaceAttr",
    "allocated_bytes",
    "async_token",
    "memdesc",
]

SHARED_MEMORY = "#ttg.shared_memory"
TENSOR_MEMORY = "#ttng.tensor_memory"


@irdl_attr_definition
class MemorySpaceAttr(Data[str]):
    """`#ttg.shared_memory` or `#ttng.tensor_memory`."""

    name = "ttg.memory_space"

    @classmethod
    def parse_parameter(cls, parser: object) -> str:
        """Not used: Weft reads its own text."""
        raise NotImplementedError

    def print_parameter(self, printer: object) -> None:
        """Write the text."""
        printer.print_string(self.data)  # type: ignore[attr-defined]


@dataclass(frozen=True)
class MemDesc:
    """What a descriptor's type says."""

    shape: tuple[int, ...]
    element: Attribute
    layout: LayoutAttr
    space: str = SHARED_MEMORY
    mutable: bool = False
    allocated: tuple[int, ...] = ()
    """The shape of the allocation that this is a part of."""


@irdl_attr_definition
class MemDescType(Data[MemDesc], TypeAttribute, Laid):
    """The type of a descriptor of a tile in memory."""

    name = "ttg.memdesc"

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the tile, or of the buffers of tiles."""
        return self.data.shape

    @property
    def element_type(self) -> Attribute:
        """The type of the elements."""
        return self.data.element

    @property
    def linear(self) -> LinearLayout:
        """The layout of one buffer of the allocation, from offset and block to coordinates."""
        linear = self.data.layout.linear
        if linear is None:
            raise ValueError(f"{self.text()} has no layout")
        return linear

    @property
    def gaps(self) -> tuple[tuple[int, int], ...]:
        """After every so many elements so many more are left out; the linear layout does not count them."""
        named = self.data.layout.named
        if not isinstance(named, PaddedSharedLayout):
            return ()
        return tuple((interval, padding) for interval, padding in named.interval_padding_pairs)

    @property
    def bytes(self) -> int:
        """What the tile, or the buffers of tiles, take in one block, with the gaps between but not behind elements."""
        return (with_gaps(self.elements - 1, self.gaps) + 1) * max(1, bit_width(self.element_type) // 8)

    @property
    def elements(self) -> int:
        """How many elements of the tile, or the buffers of tiles, one block of the cluster has."""
        linear = self.data.layout.linear
        split = f2.rank(linear.in_columns("block")) if linear is not None and linear.has_in("block") else 0
        return prod(self.shape) >> split

    def text(self, alias: AliasOf | None = None) -> str:
        d = self.data
        dims = "".join(f"{n}x" for n in d.shape)
        space = d.space if alias is None else alias(d.space, "smem" if d.space == SHARED_MEMORY else "tmem")
        shown = f"!ttg.memdesc<{dims}{type_text(d.element)}, {d.layout.text(alias)}, {space}"
        if d.mutable:
            shown += ", mutable"
        if d.allocated != d.shape:
            shown += f", {'x'.join(map(str, d.allocated))}"
        return shown + ">"

    def problem(self) -> str | None:
        if any(n < 1 for n in self.data.shape):
            return f"{self.text()}: every dimension is 1 or more"
        return None

    @classmethod
    def parse_parameter(cls, parser: object) -> MemDesc:
        """Not used: Weft reads its own text."""
        raise NotImplementedError

    def print_parameter(self, printer: object) -> None:
        """Write the text."""
        printer.print_string(self.text())  # type: ignore[attr-defined]


@irdl_attr_definition
class AsyncTokenType(ParametrizedAttribute, TypeAttribute, Laid):
    """The type of what an asynchronous operation yields, for those that wait for it: `!ttg.async.token`."""

    name = "ttg.async.token"

    def text(self, alias: AliasOf | None = None) -> str:
        return "!ttg.async.token"

    def problem(self) -> str | None:
        return None


async_token = AsyncTokenType()


VIEWS = frozenset(f"ttg.memdesc_{change}" for change in ("index", "reinterpret", "reshape", "subslice", "trans"))


def allocated_bytes(memory: SSAValue) -> int | None:
    """Bytes in one block of the allocation that a descriptor is of, or of a part of; None where it is not in sight."""
    while isinstance(memory, OpResult):
        if memory.op.name == "ttg.local_alloc":
            assert isinstance(memory.type, MemDescType)
            return memory.type.bytes
        if memory.op.name not in VIEWS:
            return None
        memory = memory.op.operands[0]
    return None


def memdesc(
    shape: Sequence[int],
    element: Attribute,
    layout: Layout,
    *,
    mutable: bool = True,
    space: str = SHARED_MEMORY,
    allocated: Sequence[int] | None = None,
) -> MemDescType:
    """The type of a descriptor of memory in a named layout. Raises LayoutError where shape and layout do not fit."""
    sizes = tuple(shape)
    whole = sizes if allocated is None else tuple(allocated)
    rank = layout.rank
    if not rank <= len(whole) <= rank + 1 or not rank <= len(sizes) <= rank + 1:
        raise LayoutError(f"a layout of {rank} dimensions for memory of shape {list(sizes)} of {list(whole)}")
    layout.to_linear(whole[-rank:])  # memory is not of a row alone, as a descriptor of rows is
    return MemDescType(MemDesc(sizes, element, encoding_for(layout, whole[-rank:]), space, mutable, whole))
