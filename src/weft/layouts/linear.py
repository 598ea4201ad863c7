"""`LinearLayout`: a map between spaces with named dimensions that is linear over F2.

Every dimension has a size that is a power of two, so an index is a vector of bits, and a layout is known when its
values on the powers of two are: L(x ^ y) = L(x) ^ L(y). Those values are its bases. A distributed layout maps
(register, lane, warp, block) to the coordinates of a tile, a shared layout maps (offset, block) to them.

    >>> layout = LinearLayout.from_bases(
    ...     {"register": [(0, 1)], "lane": [(0, 2), (1, 0)]}, {"dim0": 2, "dim1": 4}
    ... )
    >>> layout.apply(register=1, lane=2)
    {'dim0': 1, 'dim1': 1}

Inside, the coordinates of a basis are one int, the first output dimension lowest; the bases of all input dimensions are
the columns of one matrix, the first input dimension first. Operations are those of f2 on that matrix.

Names and meaning follow Triton's class of the same name; the mathematics is in Zhou et al., Linear Layouts: Robust Code
Generation of Efficient Tensor Computation Using F2 (arXiv 2505.23819), section 4.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from weft.base import LayoutError

from . import f2

__all__ = ["LinearLayout"]

Dims = tuple[tuple[str, int], ...]
"""Names with the binary logarithm of their sizes."""
Bases = Mapping[str, Sequence[Sequence[int]]]
T = TypeVar("T", int, "npt.NDArray[np.integer[Any]]")


def log2_exact(size: int, what: str) -> int:
    """The binary logarithm of a size; LayoutError unless it is a power of two."""
    if isinstance(size, bool) or not isinstance(size, (int, np.integer)) or size < 1 or size & (size - 1):
        raise LayoutError(f"the size of {what} must be a power of two, got {size!r}")
    return int(size).bit_length() - 1


def _names(dims: Dims) -> str:
    return "(" + ", ".join(name for name, _ in dims) + ")"


def _sizes(dims: Dims) -> str:
    return ", ".join(f"{name} of size {1 << log}" for name, log in dims) or "no dimension"


def _total(dims: Dims) -> int:
    return sum(log for _, log in dims)


def _merged_order(first: Sequence[str], second: Sequence[str], side: str) -> list[str]:
    """Both lists in one that keeps the order of each."""
    shared = [n for n in first if n in second]
    if shared != [n for n in second if n in first]:
        raise LayoutError(
            f"the {side} dimensions {', '.join(first)} and {', '.join(second)} are in conflicting orders",
            hint=f"transpose_{'ins' if side == 'input' else 'outs'} gives one of the layouts the order of the other",
        )
    result: list[str] = []
    rest = list(second)
    for name in first:
        if name in rest:
            while rest[0] != name:
                result.append(rest.pop(0))
            rest.pop(0)
        result.append(name)
    return result + rest


class LinearLayout:
    """A linear map over F2 from named input dimensions to named output dimensions; immutable and hashable.

    Make one with `from_bases`, `identity_1d`, `strided_1d`, `zeros_1d` or `empty`, or from others by the operations
    below. The order of dimensions, the first being the fastest, matters to `reshape_*`, `flatten_*` and `==` only.
    """

    __slots__ = ("_columns", "_hash", "_ins", "_outs", "_rank")

    _ins: Dims
    _outs: Dims
    _columns: tuple[int, ...]
    _hash: int
    _rank: int | None

    def __init__(self) -> None:
        self._set((), (), ())

    def _set(self, ins: Dims, outs: Dims, columns: tuple[int, ...]) -> None:
        self._ins, self._outs, self._columns = ins, outs, columns
        self._hash = hash((ins, outs, columns))
        self._rank = None

    @classmethod
    def _make(
        cls, ins: Iterable[tuple[str, int]], outs: Iterable[tuple[str, int]], columns: Iterable[int]
    ) -> LinearLayout:
        layout = cls.__new__(cls)
        layout._set(tuple(ins), tuple(outs), tuple(columns))
        return layout

    # -- making -------------------------------------------------------------------------------------------------------

    @classmethod
    def empty(cls) -> LinearLayout:
        """The layout without dimensions, the unit of `*`."""
        return cls._make((), (), ())

    @classmethod
    def identity_1d(cls, size: int, in_dim: str, out_dim: str) -> LinearLayout:
        """L(x) = x for x below `size`.

        >>> LinearLayout.identity_1d(4, "lane", "dim0").bases
        {'lane': ((1,), (2,))}
        """
        return cls.strided_1d(size, 1, in_dim, out_dim)

    @classmethod
    def strided_1d(cls, size: int, stride: int, in_dim: str, out_dim: str) -> LinearLayout:
        """L(x) = stride * x for x below `size`; both are powers of two. Outputs below the stride are not hit."""
        log, shift = log2_exact(size, in_dim), log2_exact(stride, f"the stride of {out_dim}")
        if not log:
            return cls.zeros_1d(size, in_dim, out_dim)
        return cls._make([(in_dim, log)], [(out_dim, log + shift)], (1 << shift + i for i in range(log)))

    @classmethod
    def zeros_1d(cls, size: int, in_dim: str, out_dim: str, out_size: int = 1) -> LinearLayout:
        """L(x) = 0 for x below `size`: all inputs hold the same element."""
        log = log2_exact(size, in_dim)
        return cls._make([(in_dim, log)], [(out_dim, log2_exact(out_size, out_dim))], (0,) * log)

    @classmethod
    def from_bases(
        cls,
        bases: Bases | Sequence[tuple[str, Sequence[Sequence[int]]]],
        out_dims: Mapping[str, int] | Sequence[str] | Sequence[tuple[str, int]],
        require_surjective: bool = True,
    ) -> LinearLayout:
        """A layout by its values on powers of two.

        `bases` maps each input dimension to its bases, least significant bit first; each is a coordinate for every
        output dimension. `out_dims` maps output dimensions to sizes; given names alone, the sizes are the least that
        hold the bases. LayoutError if a basis does not fit, or if `require_surjective` and some output is not reached.
        """
        pairs = list(bases.items()) if isinstance(bases, Mapping) else [(n, b) for n, b in bases]
        names = list(out_dims)
        sizes: list[tuple[str, int]] = []
        if isinstance(out_dims, Mapping):
            sizes = [(n, log2_exact(s, f"the output dimension {n}")) for n, s in out_dims.items()]
        elif names and not isinstance(names[0], str):
            sizes = [(str(n), log2_exact(int(s), f"the output dimension {n}")) for n, s in names]
        else:
            for at, name in enumerate(names):
                largest = max((int(b[at]) for _, bs in pairs for b in bs if at < len(b)), default=0)
                sizes.append((str(name), max(largest, 0).bit_length()))
            require_surjective = True
        for what, found in (("input", [n for n, _ in pairs]), ("output", [n for n, _ in sizes])):
            if len(set(found)) != len(found):
                raise LayoutError(f"an {what} dimension is named twice: {', '.join(found)}")
        columns = [cls._column(name, i, basis, sizes) for name, bs in pairs for i, basis in enumerate(bs)]
        layout = cls._make(((n, len(bs)) for n, bs in pairs), sizes, columns)
        if require_surjective and not layout.is_surjective():
            raise LayoutError(
                f"the layout does not reach all of its output: {layout._missing()}",
                hint="add the missing bases, make the output smaller, or pass require_surjective=False",
            )
        return layout

    @staticmethod
    def _column(name: str, index: int, basis: Sequence[int], outs: Sequence[tuple[str, int]]) -> int:
        """The coordinates of one basis in one int."""
        if len(basis) != len(outs):
            raise LayoutError(
                f"basis {1 << index} of {name} has {len(basis)} coordinates {tuple(basis)}, expected one for each of "
                f"the {len(outs)} output dimensions ({', '.join(n for n, _ in outs)})"
            )
        column, shift = 0, 0
        for value, (out, log) in zip(basis, outs, strict=True):
            if not 0 <= value < 1 << log:
                raise LayoutError(
                    f"basis {1 << index} of {name} is {tuple(basis)}: its coordinate {value} of {out} is outside of "
                    f"0 .. {(1 << log) - 1}"
                )
            column |= int(value) << shift
            shift += log
        return column

    def _missing(self) -> str:
        """Where a layout that is not surjective does not reach, in words."""
        unreached = f2.complement(self._columns, self.total_out_log)
        shown = []
        for vector in unreached:
            point = {n: v for n, v in self._unflatten_out(vector).items() if v}
            shown += [f"{n} = {v}" for n, v in point.items()]
        return "nothing maps to " + ", ".join(shown)

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
        return _total(self._outs)

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
        found, at = {}, 0
        for name, log in self._ins:
            found[name] = tuple(self._coordinates(c) for c in self._columns[at : at + log])
            at += log
        return found

    def basis(self, dim: str, index: int) -> tuple[int, ...]:
        """The value on 2 ** index of an input dimension, as coordinates."""
        start, log = self._in_at(dim)
        if not 0 <= index < log:
            raise LayoutError(f"{dim} has {log} bases, there is no basis {index}")
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

    def num_consecutive(self) -> int:
        """The largest n such that inputs 0 .. n-1 of the first dimension give outputs 0 .. n-1 of the first dimension.

        More: n consecutive inputs from a multiple of n on give consecutive outputs. Triton's getNumConsecutiveInOut.
        """
        if not self._ins or not self._outs:
            return 1
        log, width = self._ins[0][1], self._outs[0][1]
        count = 0
        while count < min(log, width) and self._columns[count] == 1 << count:
            count += 1
        low = (1 << width) - 1
        others = 0
        for column in self._columns[count:]:
            others |= column & low
        while count and others & ((1 << count) - 1):  # another basis must not touch the run's bits
            count -= 1
        return 1 << count

    # -- evaluating ---------------------------------------------------------------------------------------------------

    def apply(self, point: Mapping[str, T] | None = None, /, **dims: T) -> dict[str, T]:
        """The output for an input: an int, or an array of ints, for each input dimension.

        LayoutError where a dimension is missing, unknown, or an index is outside of it.
        """
        given: dict[str, Any] = {**(point or {}), **dims}
        self._check_dims(given, self._ins, "input")
        result: Any = 0
        at = 0
        for name, log in self._ins:
            value = given[name]
            if not isinstance(value, (int, np.integer, np.ndarray)):
                value = np.asarray(value)
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
        found = np.zeros(1, np.int64)
        for column in self._columns:
            found = np.concatenate([found, found ^ column])
        return found

    def _unflatten_out(self, flat: Any) -> dict[str, Any]:
        found = {}
        for name, log in self._outs:
            found[name] = flat & (1 << log) - 1
            flat = flat >> log
        return found

    def _coordinates(self, column: int) -> tuple[int, ...]:
        return tuple(self._unflatten_out(column).values())

    # -- putting together ---------------------------------------------------------------------------------------------

    def __mul__(self, outer: LinearLayout) -> LinearLayout:
        """The direct sum: this layout repeated over the inputs and outputs of another.

        In dimensions that both have, this layout's bits are the low ones. Dimensions come in an order that agrees with
        both layouts'; LayoutError where there is none.

        >>> (LinearLayout.identity_1d(2, "register", "dim0") * LinearLayout.identity_1d(4, "lane", "dim0")).bases
        {'register': ((1,),), 'lane': ((2,), (4,))}
        """
        if not isinstance(outer, LinearLayout):
            return NotImplemented
        ins = _merged_order([n for n, _ in self._ins], [n for n, _ in outer._ins], "input")
        outs = _merged_order([n for n, _ in self._outs], [n for n, _ in outer._outs], "output")
        mine, theirs = dict(self._outs), dict(outer._outs)
        out_dims = [(n, mine.get(n, 0) + theirs.get(n, 0)) for n in outs]
        starts, at = {}, 0
        for name, log in out_dims:
            starts[name] = at
            at += log
        place_mine = {n: starts[n] for n in mine}
        place_theirs = {n: starts[n] + mine.get(n, 0) for n in theirs}
        columns: list[int] = []
        in_dims = []
        for name in ins:
            count = 0
            for layout, place in ((self, place_mine), (outer, place_theirs)):
                if layout.has_in(name):
                    own = layout.in_columns(name)
                    columns += (layout._placed(c, place) for c in own)
                    count += len(own)
            in_dims.append((name, count))
        return LinearLayout._make(in_dims, out_dims, columns)

    def _placed(self, column: int, place: Mapping[str, int]) -> int:
        """A column with each output dimension moved to another position."""
        moved = 0
        for name, log in self._outs:
            moved |= (column & (1 << log) - 1) << place[name]
            column >>= log
        return moved

    def concat_ins(self, other: LinearLayout) -> LinearLayout:
        """The inputs of both, which have to have different names; the outputs must be the same."""
        if other._outs != self._outs:
            raise LayoutError(f"concat_ins needs equal outputs, got {_sizes(self._outs)} and {_sizes(other._outs)}")
        self._check_disjoint(self._ins, other._ins, "input")
        return LinearLayout._make(self._ins + other._ins, self._outs, self._columns + other._columns)

    def concat_outs(self, other: LinearLayout) -> LinearLayout:
        """The outputs of both, which have to have different names, of the same inputs."""
        if other._ins != self._ins:
            raise LayoutError(f"concat_outs needs equal inputs, got {_sizes(self._ins)} and {_sizes(other._ins)}")
        self._check_disjoint(self._outs, other._outs, "output")
        shift = self.total_out_log
        columns = (a | b << shift for a, b in zip(self._columns, other._columns, strict=True))
        return LinearLayout._make(self._ins, self._outs + other._outs, columns)

    def compose(self, outer: LinearLayout) -> LinearLayout:
        """x -> outer(self(x)). The outputs of this layout are the inputs of the other, in any order, and not larger."""
        source = self._matched_to(outer, "compose")
        return LinearLayout._make(self._ins, outer._outs, f2.product(outer._columns, source))

    def _matched_to(self, outer: LinearLayout, operation: str) -> list[int]:
        """The columns as inputs of another layout."""
        starts, at = {}, 0
        for name, log in outer._ins:
            starts[name] = (at, log)
            at += log
        if {n for n, _ in self._outs} != set(starts):
            raise LayoutError(
                f"{operation}: the outputs {_names(self._outs)} of one layout are not the inputs {_names(outer._ins)} "
                "of the other"
            )
        for name, log in self._outs:
            if log > starts[name][1]:
                raise LayoutError(
                    f"{operation}: {name} has size {1 << log} as an output and only {1 << starts[name][1]} as an input"
                )
        if self._outs == outer._ins:
            return list(self._columns)
        return [self._placed(c, {n: s for n, (s, _) in starts.items()}) for c in self._columns]

    # -- inverting ----------------------------------------------------------------------------------------------------

    def invert(self) -> LinearLayout:
        """The inverse of a bijection; LayoutError for others, which `pseudoinvert` takes if they are surjective."""
        if not self.is_invertible():
            reason = (
                f"it is not surjective: {self._missing()}"
                if not self.is_surjective()
                else "it is not injective: the bits "
                + ", ".join(f"{m:#x} of {n}" for n, m in self.free_variable_masks().items() if m)
                + " hold copies"
            )
            raise LayoutError(f"the layout has no inverse, {reason}", hint="pseudoinvert() chooses one source of each")
        return LinearLayout._make(self._outs, self._ins, f2.inverse(self._columns))

    def pseudoinvert(self) -> LinearLayout:
        """A right inverse B, self(B(y)) = y, of a surjective layout: where there are copies, the one at free bits 0."""
        found = f2.solve(self._columns, f2.identity(self.total_out_log))
        if found is None:
            raise LayoutError(f"only surjective layouts have a right inverse; {self._missing()}")
        return LinearLayout._make(self._outs, self._ins, found)

    def invert_and_compose(self, outer: LinearLayout, prefer: Sequence[str] = ()) -> LinearLayout:
        """A layout C with self(x) = outer(C(x)): where in `outer` each thing of this layout is found.

        If `outer` holds copies there is a choice. Without preference it is Triton's: free bits are zero. With
        `prefer=("block", "warp", "lane")`, say, of all sources the one in the same block is chosen, of those the one in
        the same warp, then in the same lane, and then the one with the fewest ones; the textbook choice makes
        conversions cross warps that could stay within one.
        """
        targets = self._as_outputs_of(outer)
        found = f2.solve(outer._columns, targets)
        if found is None:
            raise LayoutError(
                "invert_and_compose: the outer layout does not reach everything that this one does",
                hint=f"{outer._missing()} in the outer layout" if not outer.is_surjective() else None,
            )
        if prefer:
            found = self._nearest(found, outer, prefer)
        return LinearLayout._make(self._ins, outer._ins, found)

    def _as_outputs_of(self, outer: LinearLayout) -> list[int]:
        if {n for n, _ in self._outs} != {n for n, _ in outer._outs}:
            raise LayoutError(
                f"invert_and_compose: the outputs {_names(self._outs)} and {_names(outer._outs)} are not the same"
            )
        starts, at = {}, 0
        for name, log in outer._outs:
            starts[name] = at
            at += log
            if self.out_log(name) > log:
                raise LayoutError(
                    f"invert_and_compose: {name} has size {1 << self.out_log(name)}, and only {1 << log} in the outer "
                    "layout"
                )
        return [self._placed(c, starts) for c in self._columns]

    def _nearest(self, found: list[int], outer: LinearLayout, prefer: Sequence[str]) -> list[int]:
        """Of each solution plus the kernel of `outer`, the member that stays where its input is as far as it can."""
        copies = f2.kernel(outer._columns)
        if not copies:
            return found
        preferred = [d for d in prefer if outer.has_in(d)]
        order = [*preferred, *(n for n, _ in outer._ins if n not in preferred)]
        # Input bits in another order, what matters most the highest: reducing by an echelon clears that first.
        starts, at = {}, 0
        for name in reversed(order):
            starts[name] = at
            at += outer.in_log(name)

        def ranked(vector: int) -> int:
            moved = 0
            for name, log in outer._ins:
                moved |= (vector & (1 << log) - 1) << starts[name]
                vector >>= log
            return moved

        rows = f2.Echelon(ranked(k) for k in copies)
        loose_bits = starts[preferred[-1]] if preferred else outer.total_in_log
        loose = f2.span([k for k in copies if not ranked(k) >> loose_bits][:6])
        result = []
        for solution, home in zip(found, self._homes(outer, preferred), strict=True):
            _, used = rows.reduce(ranked(solution ^ home))
            near = solution ^ f2.multiply(copies, used)
            result.append(min((near ^ k for k in loose), key=int.bit_count) if len(loose) > 1 else near)
        return result

    def _homes(self, outer: LinearLayout, dims: Sequence[str]) -> list[int]:
        """For each input bit the same bit as an input of `outer`, if it is of these dimensions; 0 for others."""
        starts, at = {}, 0
        for name, log in outer._ins:
            starts[name] = (at, log)
            at += log
        homes: list[int] = []
        for name, log in self._ins:
            start, size = starts.get(name, (0, 0)) if name in dims else (0, 0)
            homes += [1 << start + i if i < size else 0 for i in range(log)]
        return homes

    # -- taking apart -------------------------------------------------------------------------------------------------

    def divide_left(self, divisor: LinearLayout) -> LinearLayout | None:
        """The layout C with self = divisor * C, or None. C has all dimensions of this layout.

        This is how an instruction is chosen: if its tile divides the layout, C says where the tiles are.
        """
        return self._divide(divisor, left=True)

    def divide_right(self, divisor: LinearLayout) -> LinearLayout | None:
        """The layout C with self = C * divisor, or None. C has all dimensions of this layout."""
        return self._divide(divisor, left=False)

    def _divide(self, divisor: LinearLayout, left: bool) -> LinearLayout | None:
        small_ins, small_outs = dict(divisor._ins), dict(divisor._outs)
        mine_in, mine_out = dict(self._ins), dict(self._outs)
        if any(log > mine_in.get(n, -1) for n, log in divisor._ins):
            return None
        if any(log > mine_out.get(n, -1) for n, log in divisor._outs):
            return None
        own = {n: log - small_outs.get(n, 0) for n, log in self._outs}  # bits of the quotient in each output
        columns, at = [], 0
        for name, log in self._ins:
            count = small_ins.get(name, 0)
            here = self._columns[at : at + log]
            at += log
            cut, rest = (here[:count], here[count:]) if left else (here[log - count :], here[: log - count])
            theirs = divisor.in_columns(name) if count else ()
            for column, wanted in zip(cut, theirs, strict=True):
                if self._split(column, own, left) != (self._spread(divisor, wanted), 0):
                    return None
            for column in rest:
                tile, outside = self._split(column, own, left)
                if tile:
                    return None
                columns.append(outside)
        ins = ((n, log - small_ins.get(n, 0)) for n, log in self._ins)
        return LinearLayout._make(ins, own.items(), columns)

    def _split(self, column: int, own: Mapping[str, int], left: bool) -> tuple[int, int]:
        """A column's coordinates within a divisor and within the quotient, both flattened in this layout's order."""
        tile = outside = tile_at = outside_at = 0
        for name, log in self._outs:
            value = column & (1 << log) - 1
            column >>= log
            mine = own[name]
            inner = log - mine if left else mine
            low, high = value & (1 << inner) - 1, value >> inner
            a, b = (low, high) if left else (high, low)
            tile |= a << tile_at
            outside |= b << outside_at
            tile_at += log - mine
            outside_at += mine
        return tile, outside

    def _spread(self, divisor: LinearLayout, column: int) -> int:
        """A column of the divisor, flattened in this layout's order of dimensions."""
        coordinates = divisor._unflatten_out(column)
        flat = at = 0
        for name, _ in self._outs:
            if name in coordinates:
                flat |= coordinates[name] << at
                at += divisor.out_log(name)
        return flat

    def is_trivial_over(self, dims: Iterable[str]) -> bool:
        """Whether it is the identity on these dimensions, inputs and outputs, and does not mix them with others."""
        names = list(dims)
        for name in names:
            if not self.has_in(name) or not self.has_out(name) or self.in_log(name) != self.out_log(name):
                return False
        starts, at = {}, 0
        for name, log in self._outs:
            starts[name] = (at, log)
            at += log
        own = 0
        for name in names:
            start, log = starts[name]
            own |= ((1 << log) - 1) << start
        at = 0
        for name, log in self._ins:
            for i in range(log):
                column = self._columns[at + i]
                if column & own if name not in names else column != 1 << starts[name][0] + i:
                    return False
            at += log
        return True

    def quotient(self, dims: Iterable[str]) -> LinearLayout | None:
        """The layout without dimensions over which it is trivial, or None where it is not."""
        names = list(dims)
        if not self.is_trivial_over(names):
            return None
        return self.sublayout([n for n, _ in self._ins if n not in names], [n for n, _ in self._outs if n not in names])

    def sublayout(self, ins: Iterable[str], outs: Iterable[str]) -> LinearLayout:
        """The map from some inputs, the others being 0, to some outputs, the others being dropped."""
        wanted_ins, wanted_outs = set(ins), set(outs)
        for name in wanted_ins:
            self._in_at(name)
        for name in wanted_outs:
            self._out_at(name)
        kept = [(n, log) for n, log in self._outs if n in wanted_outs]
        columns: list[int] = []
        for name, _ in self._ins:
            if name in wanted_ins:
                columns += (self._restricted(c, wanted_outs) for c in self.in_columns(name))
        return LinearLayout._make(((n, log) for n, log in self._ins if n in wanted_ins), kept, columns)

    def _restricted(self, column: int, outs: set[str]) -> int:
        flat = at = 0
        for name, log in self._outs:
            if name in outs:
                flat |= (column & (1 << log) - 1) << at
                at += log
            column >>= log
        return flat

    def sublayout_is_zero(self, ins: Iterable[str], outs: Iterable[str]) -> bool:
        """Whether those inputs have no influence on those outputs."""
        return not any(self.sublayout(ins, outs)._columns)

    # -- rearranging dimensions ---------------------------------------------------------------------------------------

    def transpose_ins(self, order: Sequence[str]) -> LinearLayout:
        """The same map with its input dimensions in another order."""
        self._check_same_names(order, self._ins, "input")
        columns = [c for name in order for c in self.in_columns(name)]
        return LinearLayout._make(((n, self.in_log(n)) for n in order), self._outs, columns)

    def transpose_outs(self, order: Sequence[str]) -> LinearLayout:
        """The same map with its output dimensions in another order."""
        self._check_same_names(order, self._outs, "output")
        if list(order) == [n for n, _ in self._outs]:
            return self
        outs = [(n, self.out_log(n)) for n in order]
        starts, at = {}, 0
        for name, log in outs:
            starts[name] = at
            at += log
        return LinearLayout._make(self._ins, outs, (self._placed(c, starts) for c in self._columns))

    def reshape_ins(self, dims: Mapping[str, int]) -> LinearLayout:
        """The same map with the flattened input cut into other dimensions, the first the fastest."""
        ins = [(n, log2_exact(s, f"the input dimension {n}")) for n, s in dims.items()]
        if _total(tuple(ins)) != self.total_in_log:
            raise LayoutError(f"reshape_ins: {_sizes(self._ins)} have not as many elements as {_sizes(tuple(ins))}")
        return LinearLayout._make(ins, self._outs, self._columns)

    def reshape_outs(self, dims: Mapping[str, int]) -> LinearLayout:
        """The same map with the flattened output cut into other dimensions, the first the fastest."""
        outs = [(n, log2_exact(s, f"the output dimension {n}")) for n, s in dims.items()]
        if _total(tuple(outs)) != self.total_out_log:
            raise LayoutError(f"reshape_outs: {_sizes(self._outs)} have not as many elements as {_sizes(tuple(outs))}")
        return LinearLayout._make(self._ins, outs, self._columns)

    def flatten_ins(self) -> LinearLayout:
        """One input dimension, with the name of the first."""
        if not self._ins:
            return self
        return LinearLayout._make([(self._ins[0][0], self.total_in_log)], self._outs, self._columns)

    def flatten_outs(self) -> LinearLayout:
        """One output dimension, with the name of the first."""
        if not self._outs:
            return self
        return LinearLayout._make(self._ins, [(self._outs[0][0], self.total_out_log)], self._columns)

    def unsqueeze_in(self, dim: str) -> LinearLayout:
        """Without an input dimension of size 1."""
        if self.in_log(dim):
            raise LayoutError(f"unsqueeze_in: {dim} has size {1 << self.in_log(dim)}, not 1")
        return LinearLayout._make((d for d in self._ins if d[0] != dim), self._outs, self._columns)

    def unsqueeze_out(self, dim: str) -> LinearLayout:
        """Without an output dimension of size 1."""
        if self.out_log(dim):
            raise LayoutError(f"unsqueeze_out: {dim} has size {1 << self.out_log(dim)}, not 1")
        return LinearLayout._make(self._ins, (d for d in self._outs if d[0] != dim), self._columns)

    def resize_in(self, dim: str, size: int) -> LinearLayout:
        """An input dimension cut to a smaller size, or made larger by bits that change nothing."""
        log = log2_exact(size, dim)
        start, old = self._in_at(dim)
        own = self._columns[start : start + min(old, log)] + (0,) * (log - old)
        ins = ((n, log if n == dim else o) for n, o in self._ins)
        return LinearLayout._make(ins, self._outs, self._columns[:start] + own + self._columns[start + old :])

    def resize_out(self, dim: str, size: int) -> LinearLayout:
        """An output dimension made larger, or smaller where no basis needs the upper part; LayoutError otherwise."""
        log = log2_exact(size, dim)
        outs = tuple((n, log if n == dim else o) for n, o in self._outs)
        self._out_at(dim)
        columns = []
        for column in self._columns:
            coordinates = self._unflatten_out(column)
            if coordinates[dim] >> log:
                raise LayoutError(
                    f"resize_out: a basis of the layout has {dim} = {coordinates[dim]}, beyond {size - 1}"
                )
            flat = at = 0
            for name, width in outs:
                flat |= coordinates[name] << at
                at += width
            columns.append(flat)
        return LinearLayout._make(self._ins, outs, columns)

    def rename_ins(self, names: Mapping[str, str]) -> LinearLayout:
        """The same map with other names of input dimensions; those not mentioned stay."""
        return LinearLayout._make(((names.get(n, n), log) for n, log in self._ins), self._outs, self._columns)

    def rename_outs(self, names: Mapping[str, str]) -> LinearLayout:
        """The same map with other names of output dimensions; those not mentioned stay."""
        return LinearLayout._make(self._ins, ((names.get(n, n), log) for n, log in self._outs), self._columns)

    def remove_zero_bases(self, dim: str) -> LinearLayout:
        """Without the bits of an input dimension whose basis is zero: only one of several copies is kept."""
        start, log = self._in_at(dim)
        own = tuple(c for c in self._columns[start : start + log] if c)
        ins = ((n, len(own) if n == dim else o) for n, o in self._ins)
        return LinearLayout._make(ins, self._outs, self._columns[:start] + own + self._columns[start + log :])

    # -- comparing and printing ---------------------------------------------------------------------------------------

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, LinearLayout):
            return NotImplemented
        return (
            self._hash == other._hash
            and self._columns == other._columns
            and self._ins == other._ins
            and self._outs == other._outs
        )

    def __hash__(self) -> int:
        return self._hash

    def equal_ignoring_out_sizes(self, other: LinearLayout) -> bool:
        """Whether the bases are the same; an output may be larger in one than in the other."""
        return [n for n, _ in self._outs] == [n for n, _ in other._outs] and self.bases == other.bases

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
        return f"LinearLayout.from_bases({{{bases}}}, {self.out_dims!r}{tail})"

    def __reduce__(self) -> tuple[Any, ...]:
        return LinearLayout._make, (self._ins, self._outs, self._columns)

    # -- checking -----------------------------------------------------------------------------------------------------

    def _in_at(self, dim: str) -> tuple[int, int]:
        """(index of the first column, number of columns) of an input dimension."""
        at = 0
        for name, log in self._ins:
            if name == dim:
                return at, log
            at += log
        raise LayoutError(f"the layout has no input dimension {dim!r}; it has {_names(self._ins)}")

    def _out_at(self, dim: str) -> tuple[int, int]:
        """(lowest bit, number of bits) of an output dimension."""
        at = 0
        for name, log in self._outs:
            if name == dim:
                return at, log
            at += log
        raise LayoutError(f"the layout has no output dimension {dim!r}; it has {_names(self._outs)}")

    @staticmethod
    def _check_dims(given: Mapping[str, Any], dims: Dims, side: str) -> None:
        if set(given) != {n for n, _ in dims}:
            raise LayoutError(f"the {side} dimensions are {_names(dims)}, got ({', '.join(given)})")

    @staticmethod
    def _check_same_names(order: Sequence[str], dims: Dims, side: str) -> None:
        if sorted(order) != sorted(n for n, _ in dims):
            raise LayoutError(f"({', '.join(order)}) is not a permutation of the {side} dimensions {_names(dims)}")

    @staticmethod
    def _check_disjoint(a: Dims, b: Dims, side: str) -> None:
        twice = {n for n, _ in a} & {n for n, _ in b}
        if twice:
            raise LayoutError(f"both layouts have the {side} dimension {', '.join(sorted(twice))}")
