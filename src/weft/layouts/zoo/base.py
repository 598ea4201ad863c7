"""What all named layouts have in common.

A named layout is a value: a frozen dataclass with the fields of Gluon's class of the same name, checked when it is
made. Its lists are kept as tuples, so that it can be hashed, which equal lists. It stands for one LinearLayout for
every shape of a tile, which `to_linear` makes.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, ClassVar, NoReturn

from weft.base import LayoutError

from .. import text
from ..arguments import with_names
from ..linear import LinearLayout
from . import checks

__all__ = ["AutoLayout", "CoalescedLayout", "DistributedLayout", "Layout", "SharedLayout"]


class _Values(tuple[Any, ...]):
    """A tuple that equals a list of the same, as the fields of Gluon's layouts are lists; what is in it too."""

    __slots__ = ()
    __hash__ = tuple.__hash__

    def __eq__(self, other: object) -> bool:
        return tuple.__eq__(self, tuple(other) if isinstance(other, list) else other)

    def __ne__(self, other: object) -> bool:
        return not self == other


def _kept(value: Any) -> Any:
    """A field's value as it is kept."""
    return _Values(map(_kept, value)) if isinstance(value, tuple) else value


def _as_lists(value: Any) -> str:
    """The text of a value, tuples written as lists."""
    if isinstance(value, tuple):
        return "[" + ", ".join(map(_as_lists, value)) + "]"
    return repr(value)


@lru_cache(maxsize=4096)
def _linear(layout: Layout, shape: tuple[int, ...]) -> LinearLayout:
    return layout._linear(shape)


class Layout:
    """A named layout: `to_linear(shape)` is the map it stands for.

    >>> from weft.layouts import BlockedLayout, Layout
    >>> isinstance(BlockedLayout([1], [32], [4], [0]), Layout)
    True
    """

    never_changes: ClassVar[bool] = True
    """Launches find the key of a constant that is a layout once (language/keys.py)."""

    @property
    def rank(self) -> int:
        """The number of dimensions of the tiles it is for."""
        raise NotImplementedError

    def to_linear(self, shape: Sequence[int], dims: Sequence[str] | None = None) -> LinearLayout:
        """The layout of a tile of this shape, from places to dim0, dim1, ..., or to the names `dims`.

        LayoutError where the shape does not fit the layout.

        >>> from weft.layouts import BlockedLayout
        >>> BlockedLayout([1, 2], [2, 1], [1, 1], [1, 0]).to_linear([2, 2], ["M", "N"]).apply(
        ...     register=1, lane=1, warp=0, block=0
        ... )
        {'M': 1, 'N': 1}
        """
        linear = _linear(self, checks.shape_of(self._name, shape, self.rank))
        return linear if dims is None else with_names(linear, dims)

    def _linear(self, shape: tuple[int, ...]) -> LinearLayout:
        raise NotImplementedError

    def format_tensor_view(self, shape: Sequence[int]) -> str:
        """A tile of this shape in nested brackets, with what holds each element; of shared memory, by offsets."""
        return text.tensor_view(self._shown(shape))

    def format_hardware_view(self, shape: Sequence[int]) -> str:
        """Each place, and the element of a tile of this shape that it has."""
        return text.hardware_view(self._shown(shape))

    def _shown(self, shape: Sequence[int]) -> LinearLayout:
        """The layout that is written out; LayoutError where the layout cannot be."""
        return self.to_linear([getattr(size, "value", size) for size in shape])

    @property
    def _name(self) -> str:
        return type(self).__name__

    def mangle(self) -> str:
        """A text of letters, digits and underscores that says which layout it is, as part of a name."""
        return "".join(c if c.isalnum() else "_" for c in repr(self))

    def _defaults(self) -> dict[str, Any]:
        """What fields have that were not given, where that is not the dataclass's default."""
        return {}

    def _set(self, **fields: Any) -> None:
        """Set fields of a frozen dataclass, while it is being made."""
        for name, value in fields.items():
            object.__setattr__(self, name, _kept(value))

    def __repr__(self) -> str:
        """An expression that makes the layout; fields with a default are named, and left out where they have it."""
        shown = []
        for field in dataclasses.fields(self):  # type: ignore[arg-type]
            value = getattr(self, field.name)
            if field.default is dataclasses.MISSING:
                shown.append(_as_lists(value))
            elif value not in (field.default, self._defaults().get(field.name)):
                shown.append(f"{field.name}={_as_lists(value)}")
        return f"{self._name}({', '.join(shown)})"


class DistributedLayout(Layout):
    """Where a tile is in registers: from (register, lane, warp, block) to coordinates.

    >>> from weft.layouts import BlockedLayout, DistributedLayout
    >>> isinstance(BlockedLayout([1], [32], [4], [0]), DistributedLayout)
    True
    """

    warp_threads: ClassVar[int] = 0
    """How many threads a warp has, where that follows from the class: a result of one vendor's matrix instructions."""

    def operand(self, index: int, k_width: int, shape: tuple[int, ...]) -> LinearLayout:
        """The layout of operand 0 or 1 of a product whose result has this layout (see DotOperandLayout)."""
        raise LayoutError(
            f"DotOperandLayout: no product has a result with the layout {self!r}",
            hint="the parent is a BlockedLayout, NVMMADistributedLayout, AMDMFMALayout, AMDWMMALayout or "
            "IntelDPASLayout",
        )

    def check_operand(self, index: int, k_width: int) -> None:
        """LayoutError where this layout's products have no such operand in registers, or no such `k_width`."""
        self.operand(index, k_width, (1,) * self.rank)


class SharedLayout(Layout):
    """Where a tile is in shared memory: from (offset, block) to coordinates; offsets count elements.

    >>> from weft.layouts import SharedLayout, SwizzledSharedLayout
    >>> isinstance(SwizzledSharedLayout(1, 1, 1, [0]), SharedLayout)
    True
    """


class _Placeholder(DistributedLayout):
    """A layout that is to be chosen yet."""

    @property
    def rank(self) -> int:
        self._unresolved()

    def to_linear(self, shape: Sequence[int], dims: Sequence[str] | None = None) -> LinearLayout:
        self._unresolved()

    def check_operand(self, index: int, k_width: int) -> None:
        self._unresolved()

    def _shown(self, shape: Sequence[int]) -> LinearLayout:
        raise LayoutError(f"{self._name} cannot be visualized: it is resolved by the compiler")

    def _unresolved(self) -> NoReturn:
        raise LayoutError(
            f"{self._name} is a placeholder and has no linear layout until it is resolved",
            hint="inside a kernel the compiler replaces it from the layouts around it; elsewhere name a layout",
        )


@dataclasses.dataclass(frozen=True, repr=False)
class AutoLayout(_Placeholder):
    """A layout that the compiler is to infer from the uses of the tile.

    >>> from weft.layouts import AutoLayout
    >>> AutoLayout() == AutoLayout()
    True
    """


@dataclasses.dataclass(frozen=True, repr=False)
class CoalescedLayout(_Placeholder):
    """A blocked layout that the compiler is to choose so that an access to global memory is coalesced.

    >>> from weft.layouts import CoalescedLayout
    >>> CoalescedLayout() == CoalescedLayout()
    True
    """
