"""`LinearMap`: what a layout is. Its dimensions, its bases, its values, and how it is printed.

Inside, the coordinates of a basis are one int, the first output dimension lowest; the bases of all input dimensions are
the columns of one matrix, the first input dimension first. `LinearLayout` (linear.py) adds what is done with layouts.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Self, TypeVar

import numpy as np
import numpy.typing as npt

from weft.base import LayoutError

from . import f2
from .dims import Dims, names_of, total_of

T = TypeVar("T", int, "npt.NDArray[np.integer[Any]]")


def _at(dims: Dims, dim: str, side: str) -> tuple[int, int]:
    """Where the bits of a dimension begin, and how many they are."""
    at = 0
    for name, log in dims:
        if name == dim:
            return at, log
        at += log
    raise LayoutError(f"the layout has no {side} dimension {dim!r}; it has {names_of(dims)}")


class LinearMap:
    """A linear map over F2 from named input dimensions to named output dimensions; immutable and hashable."""

    __slots__ = ("_bases", "_columns", "_hash", "_ins", "_outs", "_rank")

    _ins: Dims
    _outs: Dims
    _columns: tuple[int, ...]
    _hash: int
    _rank: int | None
    _bases: dict[str, tuple[tuple[int, ...], ...]] | None

    def _set(self, ins: Dims, outs: Dims, columns: tuple[int, ...]) -> None:
        self._ins, self._outs, self._columns = ins, outs, columns
        self._hash = hash((ins, outs, columns))
        self._rank = self._bases = None

    @classmethod
    def _make(cls, ins: Iterable[tuple[str, int]], outs: Iterable[tuple[str, int]], columns: Iterable[int]) -> Self:
        layout = cls.__new__(cls)
        layout._set(tuple(ins), tuple(outs), tuple(columns))
        return layout

    # -- what it is ---------------------------------------------------------------------------------------------------

    @property
    def in_dims(self) -> dict[str, int]:
        """The input dimensions and their sizes."""
        return {name: 1 << log for name, log in self._ins}

    @property
    def out_dims(self) -> dict[str, int]:
        """The output dimensions and their sizes."""
        return {name: 1 << log for name, log in self._outs}

    @property
    def total_in_log(self) -> int:
        """The number of input bits."""
        return len(self._columns)

    @property
    def total_out_log(self) -> int:
        """The number of output bits."""
        return total_of(self._outs)

    @property
    def columns(self) -> tuple[int, ...]:
        """The bases, coordinates flattened (the first output dimension lowest), in order of the input bits."""
        return self._columns

    def in_log(self, dim: str) -> int:
        """The binary logarithm of the size of an input dimension."""
        return self._in_at(dim)[1]

    def out_log(self, dim: str) -> int:
        """The binary logarithm of the size of an output dimension."""
        return self._out_at(dim)[1]

    def has_in(self, dim: str) -> bool:
        """Whether there is such an input dimension."""
        return any(name == dim for name, _ in self._ins)

    def has_out(self, dim: str) -> bool:
        """Whether there is such an output dimension."""
        return any(name == dim for name, _ in self._outs)

    @property
    def bases(self) -> dict[str, tuple[tuple[int, ...], ...]]:
        """Each input dimension's bases as coordinates, least significant bit first."""
        if self._bases is None:
            by_dim, at = {}, 0
            for name, log in self._ins:
                by_dim[name] = tuple([self._coordinates(c) for c in self._columns[at : at + log]])
                at += log
            self._bases = by_dim
        return {**self._bases}

    def basis(self, dim: str, index: int) -> tuple[int, ...]:
        """The value on 2 ** index of an input dimension, as coordinates."""
        start, log = self._in_at(dim)
        if not isinstance(index, (int, np.integer)) or not 0 <= index < log:
            raise LayoutError(f"{dim} has {log} bases, there is no basis {index!r}")
        return self._coordinates(self._columns[start + index])

    def in_columns(self, dim: str) -> tuple[int, ...]:
        """The flattened bases of one input dimension."""
        start, log = self._in_at(dim)
        return self._columns[start : start + log]

    def matrix(self) -> npt.NDArray[np.uint8]:
        """The matrix of zeros and ones: a row for each output bit, a column for each input bit, the lowest first."""
        rows = range(self.total_out_log)
        return np.array([[c >> r & 1 for c in self._columns] for r in rows], np.uint8).reshape(
            len(rows), len(self._columns)
        )

    @property
    def rank(self) -> int:
        """The number of output bits that can be set independently."""
        if self._rank is None:
            self._rank = f2.rank(self._columns)
        return self._rank

    def is_surjective(self) -> bool:
        """Whether every output is reached."""
        return self.rank == self.total_out_log

    def is_injective(self) -> bool:
        """Whether no two inputs give the same output."""
        return self.rank == self.total_in_log

    def is_invertible(self) -> bool:
        """Whether it is a bijection."""
        return self.is_surjective() and self.is_injective()

    def free_variable_masks(self) -> dict[str, int]:
        """For each input dimension the bits that hold copies: those whose basis is a sum of bases before it.

        >>> from weft.layouts import LinearLayout
        >>> copies = LinearLayout.identity_1d(2, "lane", "dim0") * LinearLayout.zeros_1d(2, "lane", "dim0")
        >>> copies.free_variable_masks()
        {'lane': 2}
        """
        free = set(f2.dependent(self._columns))
        masks, at = {}, 0
        for name, log in self._ins:
            masks[name] = sum(1 << i for i in range(log) if at + i in free)
            at += log
        return masks

    # -- evaluating ---------------------------------------------------------------------------------------------------

    def apply(self, point: Mapping[str, T] | None = None, /, **dims: T) -> dict[str, T]:
        """The output for an input: an int, or an array of ints, for each input dimension.

        LayoutError where a dimension is missing, unknown, or an index is outside of it.
        """
        if point is not None and not isinstance(point, Mapping):
            raise LayoutError(f"apply needs an index for each of {names_of(self._ins)}, by name; got {point!r}")
        point_of: dict[str, Any] = {**(point or {}), **dims}
        self._check_dims(point_of, self._ins, "input")
        result: Any = 0
        at = 0
        for name, log in self._ins:
            value = point_of[name]
            if not isinstance(value, (int, np.integer, np.ndarray)):
                value = np.asarray(value)
            if isinstance(value, np.ndarray) and value.size and value.dtype.kind not in "iu":
                raise LayoutError(
                    f"an index of {name} is no integer but {value.dtype}; legal are 0 .. {(1 << log) - 1}"
                )
            if np.any(np.asarray(value) < 0) or np.any(np.asarray(value) >> log):
                raise LayoutError(f"an index of {name} is outside of 0 .. {(1 << log) - 1}")
            for i in range(log):
                column = self._columns[at + i]
                if column:
                    result = result ^ (value >> i & 1) * column
            if isinstance(value, np.ndarray) and not isinstance(result, np.ndarray):
                result = np.full(value.shape, result, np.int64)
            at += log
        return self._unflatten_out(result)

    __call__ = apply

    def table(self) -> npt.NDArray[np.int64]:
        """The flattened output of every flattened input, in order: an array of 2 ** total_in_log."""
        values = np.zeros(1, np.int64)
        for column in self._columns:
            values = np.concatenate([values, values ^ column])
        return values

    def _unflatten_out(self, flat: Any) -> dict[str, Any]:
        coordinates = {}
        for name, log in self._outs:
            coordinates[name] = flat & (1 << log) - 1
            flat = flat >> log
        return coordinates

    def _coordinates(self, column: int) -> tuple[int, ...]:
        coordinates = []
        for _, log in self._outs:
            coordinates.append(column & (1 << log) - 1)
            column >>= log
        return tuple(coordinates)

    # -- comparing and printing ---------------------------------------------------------------------------------------

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, LinearMap):
            return NotImplemented
        return (
            self._hash == other._hash
            and self._columns == other._columns
            and self._ins == other._ins
            and self._outs == other._outs
        )

    def __hash__(self) -> int:
        return self._hash

    def __str__(self) -> str:
        """The text that Triton prints."""
        if not self._ins and not self._outs:
            return "\n(empty layout)"
        lines = []
        for name, bases in self.bases.items():
            if not bases:
                lines.append(f" - {name} is a size 1 dimension")
            for i, basis in enumerate(bases):
                start = " - " if i == 0 else "   "
                lines.append(f"{start}{name}={1 << i} -> ({', '.join(map(str, basis))})")
        sizes = ", ".join(f"{n} (size {1 << log})" for n, log in self._outs)
        return "\n" + "\n".join([*lines, f"where out dims are: [{sizes}]"])

    def __repr__(self) -> str:
        """An expression that makes the layout."""
        bases = ", ".join(f"{n!r}: {list(b)!r}" for n, b in self.bases.items())
        tail = "" if self.is_surjective() else ", require_surjective=False"
        return f"LinearLayout({{{bases}}}, {self.out_dims!r}{tail})"

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self)._make, (self._ins, self._outs, self._columns)

    # -- checking -----------------------------------------------------------------------------------------------------

    def _in_at(self, dim: str) -> tuple[int, int]:
        """(index of the first column, number of columns) of an input dimension."""
        return _at(self._ins, dim, "input")

    def _out_at(self, dim: str) -> tuple[int, int]:
        """(lowest bit, number of bits) of an output dimension."""
        return _at(self._outs, dim, "output")

    def _missing(self) -> str:
        """Where a layout that is not surjective does not reach, in words."""
        unreached = f2.complement(self._columns, self.total_out_log)
        shown = []
        for vector in unreached:
            point = {n: v for n, v in self._unflatten_out(vector).items() if v}
            shown += [f"{n} = {v}" for n, v in point.items()]
        return "nothing maps to " + ", ".join(shown)

    @staticmethod
    def _check_dims(names: Mapping[str, Any], dims: Dims, side: str) -> None:
        if set(names) != {n for n, _ in dims}:
            raise LayoutError(f"the {side} dimensions are {names_of(dims)}, got ({', '.join(names)})")
