"""`AffineLayout`: a linear map xor a constant, which is what flips and slices of tiles are.

    >>> flip = AffineLayout.flip_1d(8, "lane", "dim0")          # lane i has element 7 - i
    >>> flip.apply(lane=2)
    {'dim0': 5}
    >>> upper = AffineLayout.slice_1d(4, 4, 8, "lane", "dim0")  # lane i has element 4 + i
    >>> upper.compose(flip.rename_ins({"lane": "dim0"})).apply(lane=1)
    {'dim0': 2}

Everything that LinearLayout does and that has a meaning for affine maps is here under the same name. A constant behaves
like the value on one more input bit that is always 1, so each operation is the one of LinearLayout with that bit added.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import wraps
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from weft.base import LayoutError

from .dims import exact_log2
from .linear import LinearLayout

__all__ = ["AffineLayout"]

T = TypeVar("T", int, "npt.NDArray[np.integer[Any]]")
R = TypeVar("R")
ONE = "(one)"
"""The input bit that is always 1."""


def _of_linear(method: Callable[..., R]) -> Callable[..., R]:
    """A method of LinearLayout that the constant does not change the answer of."""
    return wraps(method)(lambda self: method(self._linear))


def _of_ins(method: Callable[..., LinearLayout]) -> Callable[..., AffineLayout]:
    """A method of LinearLayout on inputs, which the value at 0 does not notice."""
    return wraps(method)(
        lambda self, *args, **named: AffineLayout(method(self._linear, *args, **named), self._constant)
    )


def _of_outs(method: Callable[..., LinearLayout]) -> Callable[..., AffineLayout]:
    """A method of LinearLayout on outputs."""
    return wraps(method)(lambda self, *args, **named: self._outs(lambda h: method(h, *args, **named)))


class AffineLayout:
    """x -> linear(x) xor constant; immutable and hashable. A linear layout is the one whose constant is 0.

    >>> from weft.layouts import AffineLayout, LinearLayout
    >>> AffineLayout(LinearLayout.identity_1d(4, "lane", "x"), {"x": 2}).apply(lane=1)
    {'x': 3}
    """

    __slots__ = ("_constant", "_linear")

    _linear: LinearLayout
    _constant: tuple[int, ...]

    def __init__(self, linear: LinearLayout, constant: Mapping[str, int] | Sequence[int] | None = None) -> None:
        sizes = linear.out_dims
        if isinstance(constant, Mapping):
            unknown = set(constant) - set(sizes)
            if unknown:
                raise LayoutError(
                    f"the constant names {', '.join(sorted(unknown))}, the outputs are {', '.join(sizes)}"
                )
            values = [constant.get(name, 0) for name in sizes]
        else:
            values = [0] * len(sizes) if constant is None else list(constant)
        if len(values) != len(sizes):
            raise LayoutError(f"the constant has {len(values)} coordinates, expected {len(sizes)}: {', '.join(sizes)}")
        for value, (name, size) in zip(values, sizes.items(), strict=True):
            if not 0 <= value < size:
                raise LayoutError(f"the constant's coordinate {value} of {name} is outside of 0 .. {size - 1}")
        self._linear, self._constant = linear, tuple(int(v) for v in values)

    # -- making -------------------------------------------------------------------------------------------------------

    @staticmethod
    def flip_1d(size: int, in_dim: str, out_dim: str) -> AffineLayout:
        """x -> size - 1 - x."""
        return AffineLayout(LinearLayout.identity_1d(size, in_dim, out_dim), [size - 1])

    @staticmethod
    def slice_1d(start: int, size: int, out_size: int, in_dim: str, out_dim: str) -> AffineLayout:
        """x -> start + x for x below `size`, within `out_size`; `start` must be a multiple of `size`."""
        exact_log2(size, in_dim)
        if start % size:
            raise LayoutError(
                f"slice_1d: start {start} is not a multiple of the size {size}, so the slice is not affine over F2",
                hint="slice larger tiles at multiples of their size and take a slice of that",
            )
        wide = LinearLayout.identity_1d(size, in_dim, out_dim).resize_out(out_dim, out_size)
        return AffineLayout(wide, [start])

    # -- what it is ---------------------------------------------------------------------------------------------------

    @property
    def linear(self) -> LinearLayout:
        """The linear part."""
        return self._linear

    @property
    def constant(self) -> dict[str, int]:
        """The value at 0."""
        return dict(zip(self._linear.out_dims, self._constant, strict=True))

    @property
    def is_linear(self) -> bool:
        """Whether the constant is 0."""
        return not any(self._constant)

    @property
    def in_dims(self) -> dict[str, int]:
        """The input dimensions and their sizes."""
        return self._linear.in_dims

    @property
    def out_dims(self) -> dict[str, int]:
        """The output dimensions and their sizes."""
        return self._linear.out_dims

    is_surjective = _of_linear(LinearLayout.is_surjective)
    is_injective = _of_linear(LinearLayout.is_injective)
    is_invertible = _of_linear(LinearLayout.is_invertible)
    free_variable_masks = _of_linear(LinearLayout.free_variable_masks)

    def apply(self, point: Mapping[str, T] | None = None, /, **dims: T) -> dict[str, T]:
        """The output for an input: an int, or an array of ints, for each input dimension."""
        coordinates: dict[str, Any] = self._linear.apply(point, **dims)
        return {name: value ^ c for (name, value), c in zip(coordinates.items(), self._constant, strict=True)}

    __call__ = apply

    def table(self) -> npt.NDArray[np.int64]:
        """The flattened output of every flattened input, in order."""
        return self._linear.table() ^ self._homogeneous().in_columns(ONE)[0]

    # -- the constant as an input -------------------------------------------------------------------------------------

    def _homogeneous(self) -> LinearLayout:
        """The linear map with one more input bit, whose value is the constant."""
        one = LinearLayout.from_bases({ONE: [self._constant]}, self._linear.out_dims, require_surjective=False)
        return self._linear.concat_ins(one)

    @staticmethod
    def _of(homogeneous: LinearLayout) -> AffineLayout:
        ins = [name for name in homogeneous.in_dims if name != ONE]
        return AffineLayout(homogeneous.sublayout(ins, homogeneous.out_dims), homogeneous.basis(ONE, 0))

    def _outs(self, operation: Callable[[LinearLayout], LinearLayout]) -> AffineLayout:
        """An operation on outputs."""
        return AffineLayout._of(operation(self._homogeneous()))

    # -- putting together and inverting -------------------------------------------------------------------------------

    def __mul__(self, outer: AffineLayout | LinearLayout) -> AffineLayout:
        """The direct sum: this layout repeated over the inputs and outputs of another."""
        if not isinstance(outer, (AffineLayout, LinearLayout)):
            return NotImplemented
        other = _affine(outer)
        linear = self._linear * other._linear
        inner = self._linear.out_dims
        shifted = {name: value * inner.get(name, 1) for name, value in other.constant.items()}
        mine = self.constant
        return AffineLayout(linear, {n: mine.get(n, 0) + shifted.get(n, 0) for n in linear.out_dims})

    def __rmul__(self, inner: LinearLayout) -> AffineLayout:
        return _affine(inner) * self

    def concat_outs(self, other: AffineLayout | LinearLayout) -> AffineLayout:
        """The outputs of both, which have to have different names, of the same inputs."""
        right = _affine(other)
        return AffineLayout(self._linear.concat_outs(right._linear), (*self._constant, *right._constant))

    def compose(self, outer: AffineLayout | LinearLayout) -> AffineLayout:
        """x -> outer(self(x))."""
        after = _affine(outer)
        composed = self._outs(lambda h: h.compose(after._linear))
        return AffineLayout(composed._linear, [a ^ b for a, b in zip(composed._constant, after._constant, strict=True)])

    def invert(self) -> AffineLayout:
        """The inverse of a bijection; LayoutError for others."""
        return self._inverted(self._linear.invert())

    def pseudoinvert(self) -> AffineLayout:
        """A right inverse of a surjective layout; where there are copies, that with the free bits of LinearLayout's."""
        return self._inverted(self._linear.pseudoinvert())

    def _inverted(self, inverse: LinearLayout) -> AffineLayout:
        """y -> inverse(y xor constant)."""
        return AffineLayout(inverse, inverse.apply(self.constant))

    def invert_and_compose(self, outer: AffineLayout | LinearLayout, prefer: Sequence[str] = ()) -> AffineLayout:
        """A layout C with self(x) = outer(C(x)); see LinearLayout.invert_and_compose."""
        after = _affine(outer)
        if set(after.out_dims) != set(self.out_dims):
            self._linear.invert_and_compose(after._linear, prefer)  # says what does not match
        theirs = after.constant
        difference = {name: value ^ theirs[name] for name, value in self.constant.items()}
        for name, value in difference.items():
            if value >= self.out_dims[name]:
                raise LayoutError(
                    f"invert_and_compose: the outer layout is xored with {theirs[name]} along {name}, which has size "
                    f"{self.out_dims[name]} in this one"
                )
        shifted = AffineLayout(self._linear, difference)
        return shifted._outs(lambda h: h.invert_and_compose(after._linear, prefer))

    # -- taking apart -------------------------------------------------------------------------------------------------

    def divide_left(self, divisor: AffineLayout | LinearLayout) -> AffineLayout | None:
        """The layout C with self = divisor * C, or None."""
        inner = _affine(divisor)
        quotient = self._linear.divide_left(inner._linear)
        if quotient is None:
            return None
        low = inner.out_dims
        rest = AffineLayout(quotient, {n: v // low.get(n, 1) for n, v in self.constant.items()})
        return rest if {n: v % low.get(n, 1) for n, v in self.constant.items() if n in low} == inner.constant else None

    def divide_right(self, divisor: AffineLayout | LinearLayout) -> AffineLayout | None:
        """The layout C with self = C * divisor, or None."""
        outer = _affine(divisor)
        quotient = self._linear.divide_right(outer._linear)
        if quotient is None:
            return None
        low = quotient.out_dims
        rest = AffineLayout(quotient, {n: v % low[n] for n, v in self.constant.items()})
        high = {n: v // low[n] for n, v in self.constant.items()}
        return rest if {n: v for n, v in high.items() if n in outer.out_dims} == outer.constant else None

    def sublayout(self, ins: Iterable[str], outs: Iterable[str]) -> AffineLayout:
        """The map from some inputs, the others being 0, to some outputs, the others being dropped."""
        wanted = [*ins]
        return self._outs(lambda h: h.sublayout([*wanted, ONE], outs))

    def fix(self, **values: int) -> AffineLayout:
        """The map from the other inputs, these being fixed at a value: one warp's part of a layout, say.

        >>> layout = LinearLayout.identity_1d(4, "lane", "dim0") * LinearLayout.identity_1d(4, "warp", "dim0")
        >>> AffineLayout(layout).fix(warp=3).apply(lane=1)
        {'dim0': 13}
        """
        for name, value in values.items():
            size = 1 << self._linear.in_log(name)
            if not 0 <= value < size:
                raise LayoutError(f"fix: the value {value} of {name} is outside of 0 .. {size - 1}")
        kept = [name for name in self.in_dims if name not in values]
        at = self.apply({name: values.get(name, 0) for name in self.in_dims})
        return AffineLayout(self._linear.sublayout(kept, self.out_dims), at)

    # -- rearranging dimensions ---------------------------------------------------------------------------------------

    transpose_ins = _of_ins(LinearLayout.transpose_ins)
    reshape_ins = _of_ins(LinearLayout.reshape_ins)
    flatten_ins = _of_ins(LinearLayout.flatten_ins)
    unsqueeze_in = _of_ins(LinearLayout.unsqueeze_in)
    resize_in = _of_ins(LinearLayout.resize_in)
    rename_ins = _of_ins(LinearLayout.rename_ins)
    remove_zero_bases = _of_ins(LinearLayout.remove_zero_bases)
    transpose_outs = _of_outs(LinearLayout.transpose_outs)
    reshape_outs = _of_outs(LinearLayout.reshape_outs)
    flatten_outs = _of_outs(LinearLayout.flatten_outs)
    unsqueeze_out = _of_outs(LinearLayout.unsqueeze_out)
    resize_out = _of_outs(LinearLayout.resize_out)
    rename_outs = _of_outs(LinearLayout.rename_outs)

    # -- comparing and printing ---------------------------------------------------------------------------------------

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, AffineLayout):
            return NotImplemented
        return self._constant == other._constant and self._linear == other._linear

    def __hash__(self) -> int:
        return hash((self._linear, self._constant))

    def __repr__(self) -> str:
        """An expression that makes the layout."""
        return f"AffineLayout({self._linear!r}, {self.constant!r})"

    def __str__(self) -> str:
        if self.is_linear:
            return str(self._linear)
        return f"{self._linear}\nxor ({', '.join(map(str, self._constant))})"

    def __reduce__(self) -> tuple[Any, ...]:
        return AffineLayout, (self._linear, self._constant)


def _affine(layout: AffineLayout | LinearLayout) -> AffineLayout:
    return layout if isinstance(layout, AffineLayout) else AffineLayout(layout)
