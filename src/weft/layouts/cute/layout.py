"""What CuTe's layouts are: functions from coordinates to offsets, of integers or arrays of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from weft.base import LayoutError

from ..affine import AffineLayout
from ..linear import LinearLayout
from .affine import affine_of

__all__ = ["CuteComposed", "CuteLayout", "CuteSwizzle"]

Nested: TypeAlias = int | tuple["Nested", ...]


@dataclass(frozen=True)
class CuteSwizzle:
    """Swizzle<bits, base, shift>: `bits` bits of an offset, `shift` above `base`, are xored to those at `base`.

    >>> CuteSwizzle(2, 0, 3)(0b11001)
    26
    """

    bits: int
    base: int
    shift: int

    def __post_init__(self) -> None:
        if self.bits < 0 or self.base < 0:
            raise LayoutError(f"{self}: the number of bits and the base must be 0 or more")
        if abs(self.shift) < self.bits:
            raise LayoutError(
                f"{self}: the shift must be {self.bits} or more in absolute value, as the bits that are xored must not "
                "be among those that they are xored to"
            )

    def __call__(self, offset: Any) -> Any:
        mask = (1 << self.bits) - 1
        if self.shift >= 0:
            return offset ^ (offset >> self.shift & mask << self.base)
        return offset ^ (offset & mask << self.base) << -self.shift

    def of_elements(self, bits: int) -> CuteSwizzle:
        """The swizzle of offsets that count elements of so many bits, where this one is of offsets in bytes.

        What CuTe prints with a `smem_ptr[16b]` is a swizzle of addresses.

        >>> str(CuteSwizzle(3, 4, 3).of_elements(16))
        'Swizzle<3,3,3>'
        """
        if bits < 1 or bits & (bits - 1):
            raise LayoutError(f"{self}: elements of {bits} bits; only powers of two are offsets of a linear layout")
        base = self.base + 3 - (bits.bit_length() - 1)
        if base < 0 and self.bits:
            raise LayoutError(
                f"{self}: of addresses it moves bytes within an element of {bits} bits, "
                "which no layout of elements does"
            )
        return CuteSwizzle(self.bits, max(base, 0), self.shift)

    def __str__(self) -> str:
        return f"Swizzle<{self.bits},{self.base},{self.shift}>"


class _Function:
    """What is common to plain and composed layouts."""

    def modes(self) -> list[list[tuple[int, int]]]:
        """The (size, stride) pairs of each outer mode."""
        raise NotImplementedError

    def at(self, index: Any) -> Any:
        """The offset of a flat index, the first mode the fastest; an int, or an array of them."""
        raise NotImplementedError

    def __call__(self, *coordinates: Any) -> Any:
        """The offset of a coordinate: one number for each outer mode, or one for all, the first mode the fastest."""
        groups = self.modes()
        if len(coordinates) == 1:
            return self.at(coordinates[0])
        if len(groups) != len(coordinates):
            raise LayoutError(f"{self}: {len(coordinates)} coordinates for {len(groups)} modes")
        index, size = 0, 1
        for value, group in zip(coordinates, groups, strict=True):
            index = index + value * size
            for count, _ in group:
                size *= count
        return self.at(index)

    def to_linear(self, in_dims: Sequence[str] | None = None, out_dim: str = "offset") -> LinearLayout:
        """The layout as a linear map from dim0, dim1, ... (or `in_dims`), one for each outer mode, to the offset.

        LayoutError, with the reason, where it is not linear over F2.
        """
        affine = self.to_affine(in_dims, out_dim)
        if not affine.is_linear:
            raise LayoutError(
                f"{self}: the layout has the offset {self.at(0)} at 0, so that it is affine, not linear",
                hint="CuteLayout.to_affine gives an AffineLayout",
            )
        return affine.linear

    def to_affine(self, in_dims: Sequence[str] | None = None, out_dim: str = "offset") -> AffineLayout:
        """The same for a layout with an offset, which becomes the constant of an affine map."""
        groups = self.modes()
        names = [f"dim{i}" for i in range(len(groups))] if in_dims is None else list(in_dims)
        if len(names) != len(groups):
            raise LayoutError(f"{self}: {len(names)} names for {len(groups)} modes")
        return affine_of(self, names, out_dim)


@dataclass(frozen=True)
class CuteLayout(_Function):
    """swizzle(offset + shape:stride); shape and stride are nested alike.

    >>> layout = CuteLayout((8, 64), (64, 1), CuteSwizzle(3, 3, 3))
    >>> str(layout), layout(1, 0)
    ('Swizzle<3,3,3> o 0 o (8,64):(64,1)', 72)
    """

    shape: Nested
    stride: Nested
    swizzle: CuteSwizzle | None = None
    offset: int = 0

    def __post_init__(self) -> None:
        for size, _ in self.leaves():
            if size < 1:
                raise LayoutError(f"{self}: a mode of size {size}; sizes are 1 or more")

    @staticmethod
    def column_major(shape: Nested) -> CuteLayout:
        """The compact layout of a shape, the first mode the fastest: what CuTe means where no stride is given.

        >>> str(CuteLayout.column_major((4, (2, 8))))
        '(4,(2,8)):(1,(4,8))'
        """
        step = 1

        def strides(part: Nested) -> Nested:
            nonlocal step
            if isinstance(part, tuple):
                return tuple(strides(inner) for inner in part)
            stride, step = step, step * part
            return stride

        return CuteLayout(shape, strides(shape))

    def leaves(self) -> list[tuple[int, int]]:
        """(size, stride) of every mode, nested ones taken apart, in order."""
        return list(_leaves(self.shape, self.stride))

    def modes(self) -> list[list[tuple[int, int]]]:
        if isinstance(self.shape, int) or isinstance(self.stride, int):
            return [self.leaves()]
        return [list(_leaves(s, d)) for s, d in zip(self.shape, self.stride, strict=True)]

    def at(self, index: Any) -> Any:
        total: Any = self.offset
        leaves = self.leaves()
        for size, stride in leaves[:-1]:
            total = total + index % size * stride
            index = index // size
        total = total + index * leaves[-1][1]  # beyond its size the last mode goes on
        return self.swizzle(total) if self.swizzle else total

    def __str__(self) -> str:
        plain = f"{nested_text(self.shape)}:{nested_text(self.stride)}"
        if self.swizzle is None and not self.offset:
            return plain
        return f"{self.swizzle or CuteSwizzle(0, 0, 0)} o {self.offset} o {plain}"


@dataclass(frozen=True)
class CuteComposed(_Function):
    """outer(offset + inner(coordinate)), where neither is simply a swizzle of a Shape:Stride.

    >>> composed = CuteComposed(CuteLayout((4, 8), (8, 1)), 0, CuteLayout((8, 4), (4, 1)))
    >>> str(composed), composed(1, 0), composed(0, 1)
    ('((4,8):(8,1)) o 0 o ((8,4):(4,1))', 1, 8)
    """

    outer: CuteSwizzle | CuteLayout | CuteComposed
    offset: int
    inner: CuteLayout | CuteComposed

    def modes(self) -> list[list[tuple[int, int]]]:
        return self.inner.modes()

    def at(self, index: Any) -> Any:
        inner = self.inner.at(index) + self.offset
        return self.outer(inner) if isinstance(self.outer, CuteSwizzle) else self.outer.at(inner)

    def __str__(self) -> str:
        outer = str(self.outer) if isinstance(self.outer, CuteSwizzle) else f"({self.outer})"
        return f"{outer} o {self.offset} o ({self.inner})"


def composed(
    outer: CuteSwizzle | CuteLayout | CuteComposed, offset: int, inner: CuteLayout | CuteComposed
) -> CuteLayout | CuteComposed:
    """outer o offset o inner, as a CuteLayout where that is one."""
    if isinstance(outer, CuteSwizzle):
        if isinstance(inner, CuteLayout) and inner.swizzle is None:
            return CuteLayout(inner.shape, inner.stride, outer if outer.bits else None, inner.offset + offset)
        if not outer.bits and not offset:
            return inner
    return CuteComposed(outer, offset, inner)


def _leaves(shape: Nested, stride: Nested) -> Iterator[tuple[int, int]]:
    if isinstance(shape, int) and isinstance(stride, int):
        yield shape, stride
    elif isinstance(shape, tuple) and isinstance(stride, tuple) and len(shape) == len(stride) and shape:
        for s, d in zip(shape, stride, strict=True):
            yield from _leaves(s, d)
    else:
        raise LayoutError(f"the shape {nested_text(shape)} and the stride {nested_text(stride)} are not nested alike")


def nested_text(value: Nested) -> str:
    """(8,(4,2))."""
    if isinstance(value, int):
        return str(value)
    return "(" + ",".join(map(nested_text, value)) + ")"
