"""The `encoding` of a tile's type: a LinearLayout, and the name it was written with.

    tensor<64x64xf16, #ttg.blocked<{sizePerThread = [1, 8], ...}>>

In the text a named layout (`#blocked`) stands beside tiles of many shapes. In a type it is what it means for the shape
of that type: a map from register, lane, warp and block to coordinates; for memory, from offset and block. Two types are
equal where these maps are, however they were written; the name is kept only for the text, and passes do not ask for it.

>>> from weft.ir.types import f16
>>> from weft.layouts import BlockedLayout, DistributedLinearLayout
>>> blocked = laid_tensor((2, 2), f16, BlockedLayout([1, 1], [2, 2], [1, 1], [1, 0]))
>>> linear = laid_tensor((2, 2), f16, DistributedLinearLayout([], [[0, 1], [1, 0]], [], [], [2, 2]))
>>> blocked == linear, layout_of(blocked) == layout_of(linear)
(True, True)

Layouts that a front end has not resolved yet (AutoLayout, CoalescedLayout) have no map. A padded layout in shared
memory is a map followed by gaps; its gaps count in comparisons.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from math import prod

from xdsl.dialects.builtin import TensorType
from xdsl.ir import Attribute, Data
from xdsl.irdl import irdl_attr_definition

from weft import layouts
from weft.base import LayoutError

from ..types import AliasOf, Encoding
from .names import layout_text

__all__ = [
    "LayoutAttr",
    "NamedLayoutAttr",
    "Placement",
    "encoding_for",
    "encoding_of",
    "laid_tensor",
    "layout_of",
    "linear_encoding",
    "name_of",
    "told_layout",
]


class Placement:
    """Where the elements of a tile of one shape lie; compared by what it means, not by how it was named."""

    __slots__ = ("_tensors", "key", "linear", "named", "shape")

    def __init__(self, named: layouts.Layout, linear: layouts.LinearLayout | None, shape: tuple[int, ...]):
        self.named = named
        """What it is called in the text."""
        self.linear = linear
        """The map; None for a layout that is not resolved."""
        self.shape = shape
        """The shape of the tile."""
        gaps = named.interval_padding_pairs if isinstance(named, layouts.PaddedSharedLayout) else ()
        self.key = (linear if linear is not None else named, gaps)
        self._tensors: dict[Attribute, TensorType[Attribute]] = {}

    def __eq__(self, other: object) -> bool:
        return self is other or (isinstance(other, Placement) and self.key == other.key and self.shape == other.shape)

    def __hash__(self) -> int:
        return hash(self.shape)

    def __repr__(self) -> str:
        return f"Placement({self.named!r}, {list(self.shape)})"

    def tensor(self, element: Attribute, encoding: LayoutAttr) -> TensorType[Attribute]:
        """The type of the tile with elements of this type."""
        type = self._tensors.get(element)
        if type is None:
            type = self._tensors[element] = TensorType(element, self.shape, encoding)
        return type


@irdl_attr_definition
class LayoutAttr(Data[Placement], Encoding):
    """The encoding of a type: a layout for its shape."""

    name = "ttg.layout"

    @property
    def linear(self) -> layouts.LinearLayout | None:
        """The map from places to coordinates; None for a layout that is not resolved."""
        return self.data.linear

    @property
    def named(self) -> layouts.Layout:
        """What the layout is called in the text."""
        return self.data.named

    def tensor(self, element: Attribute) -> TensorType[Attribute]:
        return self.data.tensor(element, self)

    def text(self, alias: AliasOf | None = None) -> str:
        return layout_text(self.data.named, alias)

    @classmethod
    def parse_parameter(cls, parser: object) -> Placement:
        """Not used: Weft reads its own text."""
        raise NotImplementedError

    def print_parameter(self, printer: object) -> None:
        """Write the layout's text."""
        printer.print_string(layout_text(self.data.named))  # type: ignore[attr-defined]


@irdl_attr_definition
class NamedLayoutAttr(Data[layouts.Layout], Encoding):
    """A named layout before it meets a shape, as `#blocked = ...` defines it."""

    name = "ttg.named_layout"

    def text(self, alias: AliasOf | None = None) -> str:
        return layout_text(self.data, alias)

    def tensor(self, element: Attribute) -> TensorType[Attribute]:
        raise ValueError("a layout without a shape has no tile")

    @classmethod
    def parse_parameter(cls, parser: object) -> layouts.Layout:
        """Not used: Weft reads its own text."""
        raise NotImplementedError

    def print_parameter(self, printer: object) -> None:
        """Write the layout's text."""
        printer.print_string(layout_text(self.data))  # type: ignore[attr-defined]


# -- making --------------------------------------------------------------------------------------------------------


def _is_row(named: layouts.Layout, shape: tuple[int, ...]) -> bool:
    """Is this a row of a swizzled layout? A descriptor may be of rows, which copies gather; memory holds 8 or more."""
    return isinstance(named, layouts.NVMMASharedLayout) and named.swizzle_byte_width > 0 and prod(shape[:-1]) == 1


@lru_cache(maxsize=4096)
def encoding_for(named: layouts.Layout, shape: tuple[int, ...]) -> LayoutAttr:
    """A named layout for a tile of this shape. Raises LayoutError where the two do not fit."""
    unresolved = isinstance(named, layouts.AutoLayout | layouts.CoalescedLayout) or _is_row(named, shape)
    linear = None if unresolved else named.to_linear(shape)
    return LayoutAttr(Placement(named, linear, shape))


def linear_encoding(linear: layouts.LinearLayout) -> LayoutAttr:
    """A LinearLayout as an encoding; its outputs dim0, dim1, ... give the shape.

    In the text it is `#ttg.linear`, or `#ttg.shared_linear` for a layout of memory. Raises LayoutError for a layout
    that has neither form: one with a basis that moves in two dimensions, in registers, or with elements in no place.
    """
    return _linear_encoding(linear, tuple(linear.out_dims.values()))


@lru_cache(maxsize=4096)
def _linear_encoding(linear: layouts.LinearLayout, shape: tuple[int, ...]) -> LayoutAttr:
    bases = linear.bases
    named: layouts.Layout
    if "offset" in bases:
        named = layouts.SharedLinearLayout(bases["offset"], bases.get("block", ()))
    else:
        parts = [bases.get(dim, ()) for dim in ("register", "lane", "warp", "block")]
        named = layouts.DistributedLinearLayout(parts[0], parts[1], parts[2], parts[3], shape)
    return LayoutAttr(Placement(named, named.to_linear(shape), shape))


def laid_tensor(
    shape: Sequence[int], element: Attribute, layout: layouts.Layout | layouts.LinearLayout
) -> TensorType[Attribute]:
    """The type of a tile in a layout, named or linear."""
    if isinstance(layout, layouts.LinearLayout):
        if tuple(layout.out_dims.values()) != tuple(shape):
            raise LayoutError(
                f"a layout of a tile of shape {list(layout.out_dims.values())} for one of shape {list(shape)}"
            )
        return linear_encoding(layout).tensor(element)
    return encoding_for(layout, tuple(shape)).tensor(element)


@lru_cache(maxsize=4096)
def told_layout(layout: layouts.Layout | layouts.LinearLayout) -> str:
    """A layout as remarks tell it: as the text of layout IR has it, or by its bases where that has no form for it."""
    if not isinstance(layout, layouts.LinearLayout):
        return layout_text(layout)
    try:
        return linear_encoding(layout).text()
    except LayoutError:
        return str(dict(layout.bases))


# -- asking --------------------------------------------------------------------------------------------------------


def encoding_of(type: Attribute) -> LayoutAttr | None:
    """The encoding of a tile's type; None for a scalar, and for a tile without one."""
    encoding = type.encoding if isinstance(type, TensorType) else None
    return encoding if isinstance(encoding, LayoutAttr) else None


def layout_of(type: Attribute) -> layouts.LinearLayout:
    """The layout of a tile's type. Raises ValueError where it has none."""
    encoding = encoding_of(type)
    if encoding is None or encoding.linear is None:
        raise ValueError(f"{type} has no layout")
    return encoding.linear


def name_of(type: Attribute) -> layouts.Layout | None:
    """What the layout of a tile's type is called in the text; for messages and for printing only."""
    encoding = encoding_of(type)
    return None if encoding is None else encoding.named
