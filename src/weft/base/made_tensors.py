"""Tensors that no argument of a kernel describes, but several together: a pointer, sizes and strides.

    load(a + rows[:, None] * stride + columns[None, :], (rows < M)[:, None] & (columns < K)[None, :])
accesses
    a tensor of M x K elements, rows `stride` apart, from `a` on

Whoever launches the kernel makes what the kernel wants of such a tensor, from the values of its parameters.

>>> from weft.base.made_tensors import MadeTensor
>>> made = MadeTensor(0, (), (((1, (2,)),), ((1, (3,)),)), (((1, (4,)),), ((1, ()),)), ((2, 1), (3, 1)))
>>> made.parts([4096, 0, 100, 64, 72])
(4096, 0, 100, 64, 72, 1)
>>> made.parts([4096, 0, 0, 64, 72])
Traceback (most recent call last):
ValueError: it is made of 0, where 1 is the least
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any, TypeAlias

Polynomial: TypeAlias = tuple[tuple[int, tuple[int, ...]], ...]
"""A sum of products: a factor, and the parameters that it is multiplied with, by number."""


@dataclass(frozen=True)
class MadeTensor:
    """Numbers of parameters count those that are no tensor maps. The outermost dimension is first, elements count."""

    base: int
    """The parameter where it begins."""
    further: Polynomial
    """By how many bytes it begins further on."""
    shape: tuple[Polynomial, ...]
    strides: tuple[Polynomial, ...]
    least: tuple[tuple[int, int], ...] = ()
    """What parameters are taken to be at least."""

    @property
    def numbers(self) -> tuple[int, ...]:
        """The parameters of which it is made, in order, each once."""
        sums = (self.further, *self.shape, *self.strides)
        limited = (number for number, _ in self.least)
        return tuple(sorted({self.base, *limited, *(n for total in sums for _, ns in total for n in ns)}))

    def parts(self, values: Sequence[int] | Mapping[int, int]) -> tuple[int, ...]:
        """The address, no padding, shape and strides, from the values of the kernel's parameters.

        ValueError where there is no such tensor.
        """

        def value(total: Polynomial) -> int:
            return sum(factor * prod(values[n] for n in numbers) for factor, numbers in total)

        for number, least in self.least:
            if values[number] < least:
                raise ValueError(f"it is made of {values[number]}, where {least} is the least")
        shape, strides = (tuple(map(value, part)) for part in (self.shape, self.strides))
        if min(shape) < 1 or min(strides) < 0:
            raise ValueError(f"it has no elements, or none behind each other: shape {shape}, strides {strides}")
        return (values[self.base] + value(self.further), 0, *shape, *strides)

    def plain(self) -> list[Any]:
        """What `of_plain` reads, of lists and numbers."""
        further, shape, strides = ([_listed(x) for x in part] for part in ((self.further,), self.shape, self.strides))
        return [self.base, *further, shape, strides, [list(pair) for pair in self.least]]

    @classmethod
    def of_plain(cls, data: Sequence[Any]) -> MadeTensor:
        """The tensor that lists of numbers say."""
        base, further, shape, strides, least = data
        sums = [tuple(map(_polynomial, part)) for part in ((further,), shape, strides)]
        return cls(base, sums[0][0], sums[1], sums[2], tuple((n, at) for n, at in least))


def _listed(total: Polynomial) -> list[Any]:
    return [[factor, list(numbers)] for factor, numbers in total]


def _polynomial(data: Sequence[Any]) -> Polynomial:
    return tuple((factor, tuple(numbers)) for factor, numbers in data)
