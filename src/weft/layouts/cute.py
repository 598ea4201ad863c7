"""CuTe layouts, `Shape:Stride` with nested modes and `Swizzle<B,M,S>`, read and written as linear layouts.

A CuTe layout is a function from coordinates to an offset: it adds up coordinate times stride over all modes, the first
mode of a nested one being the fastest. Such a sum is linear over F2 exactly when no addition carries, that is when no
two of its bits have a bit of the offset in common; a swizzle is always linear.

    >>> from_cute("(8,(4,2)):(4,(1,32))").bases
    {'dim0': ((4,), (8,), (16,)), 'dim1': ((1,), (2,), (32,))}
    >>> to_cute(from_cute("Swizzle<2,0,3> o 0 o (8,8):(8,1)"))
    'Swizzle<2,0,3> o 0 o (8,8):(8,1)'

Layouts here go from coordinates to offsets. A SharedLayout goes the other way: `to_linear(shape).invert()` is what
`to_cute` takes, and `from_cute(...).invert()` what a shared layout stands for.

C. Cecka, CuTe Layout Representation and Algebra, arXiv 2603.02298; NVIDIA, CUTLASS, cute/swizzle.hpp (definition).
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from typing import TypeAlias

from weft.base import LayoutError

from . import f2
from .affine import AffineLayout
from .linear import LinearLayout

__all__ = ["CuteLayout", "CuteSwizzle", "from_cute", "to_cute"]

Nested: TypeAlias = int | tuple["Nested", ...]
TOKEN = re.compile(r"\s*(?:_?(\d+)|(Swizzle|Sw|[():,o<>-]))")


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

    def __call__(self, offset: int) -> int:
        mask = (1 << self.bits) - 1
        if self.shift >= 0:
            return offset ^ (offset >> self.shift & mask << self.base)
        return offset ^ (offset & mask << self.base) << -self.shift

    def __str__(self) -> str:
        return f"Swizzle<{self.bits},{self.base},{self.shift}>"


@dataclass(frozen=True)
class CuteLayout:
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
    def parse(text: str) -> CuteLayout:
        """The layout of a text as CuTe prints it; static integers may be written `_8`. LayoutError with the place."""
        return _Parser(text).layout()

    def leaves(self) -> list[tuple[int, int]]:
        """(size, stride) of every mode, nested ones taken apart, in order."""
        return list(_leaves(self.shape, self.stride))

    def modes(self) -> list[list[tuple[int, int]]]:
        """The (size, stride) pairs of each outer mode."""
        if isinstance(self.shape, int) or isinstance(self.stride, int):
            return [self.leaves()]
        return [list(_leaves(s, d)) for s, d in zip(self.shape, self.stride, strict=True)]

    def __call__(self, *coordinates: int) -> int:
        """The offset of a coordinate: one number for each outer mode, or one for all, the first mode the fastest."""
        groups = self.modes() if len(coordinates) != 1 else [self.leaves()]
        if len(groups) != len(coordinates):
            raise LayoutError(f"{self}: {len(coordinates)} coordinates for {len(groups)} modes")
        total = self.offset
        for index, group in zip(coordinates, groups, strict=True):
            for size, stride in group[:-1]:
                total += index % size * stride
                index //= size
            total += index * group[-1][1]
        return self.swizzle(total) if self.swizzle else total

    def to_linear(self, in_dims: Sequence[str] | None = None, out_dim: str = "offset") -> LinearLayout:
        """The layout as a linear map from dim0, dim1, ... (or `in_dims`), one for each outer mode, to the offset.

        LayoutError, with the reason, where it is not linear over F2.
        """
        affine = self.to_affine(in_dims, out_dim)
        if not affine.is_linear:
            raise LayoutError(
                f"{self}: the layout has the offset {self.offset}, so that it is affine, not linear",
                hint="CuteLayout.to_affine gives an AffineLayout",
            )
        return affine.linear

    def to_affine(self, in_dims: Sequence[str] | None = None, out_dim: str = "offset") -> AffineLayout:
        """The same for a layout with an offset, which becomes the constant of an affine map."""
        groups = self.modes()
        names = [f"dim{i}" for i in range(len(groups))] if in_dims is None else list(in_dims)
        if len(names) != len(groups):
            raise LayoutError(f"{self}: {len(names)} names for {len(groups)} modes")
        bases = {name: [v for leaf in group for v in self._bits(*leaf)] for name, group in zip(names, groups)}
        self._check_carries(bases)
        apply = self.swizzle or (lambda value: value)
        swizzled = {name: [apply(v) for v in columns] for name, columns in bases.items()}
        constant = apply(self.offset)
        reached = constant
        for columns in swizzled.values():
            for value in columns:
                reached |= value
        linear = LinearLayout.from_bases(
            {name: [(v,) for v in columns] for name, columns in swizzled.items()},
            {out_dim: 1 << reached.bit_length()},
            require_surjective=False,
        )
        return AffineLayout(linear, [constant])

    def _bits(self, size: int, stride: int) -> list[int]:
        """The offsets that the bits of one mode add."""
        if size & (size - 1):
            raise LayoutError(f"{self}: the mode {size}:{stride} has a size that is no power of two")
        if stride < 0:
            raise LayoutError(f"{self}: the mode {size}:{stride} has a negative stride")
        return [stride << i for i in range(size.bit_length() - 1)]

    def _check_carries(self, bases: dict[str, list[int]]) -> None:
        """LayoutError where a sum is no xor: two bits of coordinates, or the offset, have a bit in common."""
        taken: list[tuple[str, int]] = [("the offset", self.offset)] if self.offset else []
        for name, columns in bases.items():
            for i, value in enumerate(columns):
                for other, before in taken:
                    if before & value:
                        raise LayoutError(
                            f"{self}: {name} = {1 << i} adds {value} and {other} adds {before} to the offset; the sum "
                            f"carries, {before} + {value} = {before + value}, which no xor does ({before ^ value})",
                            hint="only layouts in which every bit of the offset comes from one bit of a coordinate are "
                            "linear over F2; padding and overlapping strides are not",
                        )
                taken.append((f"{name} = {1 << i}", value))

    @staticmethod
    def from_linear(layout: LinearLayout) -> CuteLayout:
        """The shortest CuTe layout that is this map: an outer mode for each input dimension.

        Several output dimensions are one offset, the first the fastest. LayoutError, with the reason, where no
        Shape:Stride with a Swizzle is the map.
        """
        groups = [list(layout.in_columns(name)) for name in layout.in_dims]
        if not groups:
            raise LayoutError("to_cute: the layout has no input dimension, and a CuTe layout has a mode at least")
        columns = [c for group in groups for c in group]
        swizzle = None if _overlap(columns) is None else _find_swizzle(columns)
        if swizzle is not None:
            groups = [[swizzle(c) for c in group] for group in groups]
        elif (clash := _overlap(columns)) is not None:
            places = [f"{name} = {1 << i}" for name, log in layout.in_dims.items() for i in range(log.bit_length() - 1)]
            first, second = clash
            raise LayoutError(
                f"to_cute: {places[first]} moves the offset by {columns[first]} and {places[second]} by "
                f"{columns[second]}, which have bits in common, so that the layout is no Shape:Stride; and no "
                "Swizzle<B,M,S> takes all such bits away"
            )
        modes = [_mode(group) for group in groups]
        shapes, strides = [m[0] for m in modes], [m[1] for m in modes]
        if len(modes) == 1:
            return CuteLayout(shapes[0], strides[0], swizzle)
        return CuteLayout(tuple(shapes), tuple(strides), swizzle)

    def __str__(self) -> str:
        plain = f"{_text(self.shape)}:{_text(self.stride)}"
        if self.swizzle is None and not self.offset:
            return plain
        return f"{self.swizzle or CuteSwizzle(0, 0, 0)} o {self.offset} o {plain}"


def from_cute(text: str, in_dims: Sequence[str] | None = None, out_dim: str = "offset") -> LinearLayout:
    """The linear layout of a CuTe layout's text, from dim0, dim1, ... (or `in_dims`) to the offset.

    >>> from_cute("(4,8):(8,1)", ["row", "column"]).apply(row=2, column=3)
    {'offset': 19}
    >>> from_cute("(4,8):(9,1)")
    Traceback (most recent call last):
    ...
    weft.base.errors.LayoutError: error: (4,8):(9,1): dim1 = 1 adds 1 and dim0 = 1 adds 9 to the offset; ...
    """
    return CuteLayout.parse(text).to_linear(in_dims, out_dim)


def to_cute(layout: LinearLayout) -> str:
    """The text of the CuTe layout that is this map; LayoutError, with the reason, where there is none.

    >>> to_cute(LinearLayout.from_bases({"lane": [(4,), (8,)], "register": [(1,), (2,)]}, {"offset": 16}))
    '(4,4):(4,1)'
    """
    return str(CuteLayout.from_linear(layout))


# -- nested modes ------------------------------------------------------------------------------------------------------


def _leaves(shape: Nested, stride: Nested) -> Iterator[tuple[int, int]]:
    if isinstance(shape, int) and isinstance(stride, int):
        yield shape, stride
    elif isinstance(shape, tuple) and isinstance(stride, tuple) and len(shape) == len(stride) and shape:
        for s, d in zip(shape, stride, strict=True):
            yield from _leaves(s, d)
    else:
        raise LayoutError(f"the shape {_text(shape)} and the stride {_text(stride)} are not nested alike")


def _text(value: Nested) -> str:
    if isinstance(value, int):
        return str(value)
    return "(" + ",".join(map(_text, value)) + ")"


def _mode(values: Sequence[int]) -> tuple[Nested, Nested]:
    """The mode whose bits add these offsets: runs that double become one size, zeros a stride of 0."""
    runs: list[tuple[int, int]] = []
    for value in values:
        size, stride = runs[-1] if runs else (1, 0)
        if runs and value == stride * size:
            runs[-1] = size * 2, stride
        else:
            runs.append((2, value))
    if not runs:
        return 1, 0
    if len(runs) == 1:
        return runs[0]
    return tuple(size for size, _ in runs), tuple(stride for _, stride in runs)


# -- finding a swizzle -------------------------------------------------------------------------------------------------


def _overlap(columns: Sequence[int]) -> tuple[int, int] | None:
    """Two of the offsets that have a bit in common."""
    owner: dict[int, int] = {}
    for i, column in enumerate(columns):
        for bit in f2.bits(column):
            if bit in owner:
                return owner[bit], i
            owner[bit] = i
    return None


def _find_swizzle(columns: Sequence[int]) -> CuteSwizzle | None:
    """A swizzle of few bits after which no two offsets have a bit in common; it is its own inverse."""
    total = 0
    for column in columns:
        total |= column
    width = total.bit_length()
    for bits in range(1, width):
        for base, shift in product(range(width - bits + 1), range(bits, width)):
            for signed in (shift, -shift):
                if base + bits + shift <= width:
                    swizzle = CuteSwizzle(bits, base, signed)
                    if _overlap([swizzle(c) for c in columns]) is None:
                        return swizzle
    return None


# -- reading -----------------------------------------------------------------------------------------------------------


class _Parser:
    """[Swizzle<B,M,S> o] [offset o] Shape:Stride"""

    def __init__(self, text: str) -> None:
        self.text = text
        self.tokens: list[tuple[str, int]] = []
        at = 0
        while text[at:].strip():
            match = TOKEN.match(text, at)
            if match is None:
                at += len(text[at:]) - len(text[at:].lstrip())
                raise self.error(at, "a number, a parenthesis, a comma, a colon, `o` or `Swizzle`")
            self.tokens.append((match.group(1) or match.group(2), match.start(match.lastindex or 0)))
            at = match.end()
        self.next = 0

    def error(self, at: int, expected: str) -> LayoutError:
        rest = f"got {self.text[at : at + 8]!r}" if self.text[at:].strip() else "it ends there"
        return LayoutError(f"the CuTe layout {self.text!r}, at {at}: expected {expected}, {rest}")

    @property
    def token(self) -> str:
        return self.tokens[self.next][0] if self.next < len(self.tokens) else ""

    @property
    def at(self) -> int:
        return self.tokens[self.next][1] if self.next < len(self.tokens) else len(self.text)

    def take(self, expected: str) -> None:
        if self.token != expected:
            raise self.error(self.at, f"{expected!r}")
        self.next += 1

    def number(self) -> int:
        negative = self.token == "-"
        if negative:
            self.next += 1
        if not self.token.isdigit():
            raise self.error(self.at, "a number")
        value = int(self.token)
        self.next += 1
        return -value if negative else value

    def nested(self) -> Nested:
        if self.token != "(":
            return self.number()
        self.take("(")
        parts = [self.nested()]
        while self.token == ",":
            self.take(",")
            if self.token == ")":
                break
            parts.append(self.nested())
        self.take(")")
        return tuple(parts)

    def swizzle(self) -> CuteSwizzle:
        self.next += 1
        self.take("<")
        bits = self.number()
        self.take(",")
        base = self.number()
        self.take(",")
        shift = self.number()
        self.take(">")
        return CuteSwizzle(bits, base, shift)

    def layout(self) -> CuteLayout:
        swizzle, offset = None, 0
        if self.token in ("Swizzle", "Sw"):
            swizzle = self.swizzle()
            self.take("o")
        shape = self.nested()
        if self.token == "o" and isinstance(shape, int):
            self.take("o")
            offset, shape = shape, self.nested()
        self.take(":")
        stride = self.nested()
        if self.token:
            raise self.error(self.at, "the end")
        return CuteLayout(shape, stride, None if swizzle is not None and not swizzle.bits else swizzle, offset)
