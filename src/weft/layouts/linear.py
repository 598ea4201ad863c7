"""`LinearLayout`: a map between spaces with named dimensions that is linear over F2.

Idea
----
The size of every dimension is a power of two, so an index is a vector of bits. A layout is linear if L(x ^ y) is L(x)
^ L(y) for all x and y. It is then known from its values on 1, 2, 4, ..., its *bases*: n of them stand for a table of 2
** n entries. A distributed layout maps (register, lane, warp, block) to the coordinates of a tile, a shared layout
maps (offset, block) to them.

Example
-------
A 4x4 tile in shared memory. Its offsets have four bits, so four bases say everything. Offset 1 is one column to the
right, offset 2 two columns; offset 4 is a row down *and* a column to the right, offset 8 two of both:

    >>> memory = LinearLayout.from_bases({"offset": [(0, 1), (0, 2), (1, 1), (2, 2)]}, {"row": 4, "col": 4})
    >>> memory.apply(offset=6)    # offset 4 is at (1, 1), offset 2 at (0, 2): their xor
    {'row': 1, 'col': 3}

All offsets, at the places of their elements:

             col 0  1  2  3
    row 0        0  1  2  3
    row 1        5  4  7  6
    row 2       10 11  8  9
    row 3       15 14 13 12

Column 0 has offsets 0, 5, 10 and 15: with four banks, one in each. That is a swizzle, and there is nothing more to it.

Now four lanes hold a row each, in four registers, and want to know at which offsets. `threads` maps a place to an
element, `memory` maps an offset to an element; the question is `memory` inverse after `threads`, which is linear
again:

    >>> threads = LinearLayout.identity_1d(4, "register", "col") * LinearLayout.identity_1d(4, "lane", "row")
    >>> threads.invert_and_compose(memory).bases
    {'register': ((1,), (2,)), 'lane': ((5,), (10,))}

A lane computes its part once, (lane & 1) * 5 ^ (lane >> 1) * 10, and register r of it is r away, by xor. Could a lane
store two registers at once? That instruction takes register 1 to offset 1 and must be free to add any even offset to
it; lane 1 has 5, which is odd. It cannot, because its tile does not divide the layout:

    >>> pair = LinearLayout.identity_1d(2, "register", "offset")
    >>> threads.invert_and_compose(memory).divide_left(pair) is None
    True

Which operation answers which question
--------------------------------------
    a * b                       a large layout made of small ones: the direct sum, side by side in each dimension
    a @ b, b.compose(a)         one map after the other: b, then a
    invert_and_compose          where a thing of one layout is in another: every conversion, every address
    divide_left                 is the layout made of tiles of an instruction, and where are they
    sublayout, is_trivial_over  what depends on what
    pseudoinvert                one place of each element, where there are several

Invariants
----------
* A layout is immutable, hashed, and canonical: two that have the same dimensions in the same order and the same values
  are equal, however they were made. Nonsense (a size that is no power of two, a basis that does not fit) is refused
  when it is made, with the value and the bound.
* A distributed layout is surjective: every element has a place. It need not be injective: an input bit whose basis is
  zero, or a sum of others, holds copies. A layout of memory is bijective.
* The order of dimensions, the first being the fastest, matters to `reshape_*`, `flatten_*` and `==` only.

Why not shapes and strides
--------------------------
Strides add, and sums carry: the swizzle above is no sum of strides, the inverse of a map by strides often is none, and
to know whether two of them agree they are compared element by element. Maps over F2 are closed under all operations
above, and each of them is Gaussian elimination on a matrix of about twenty columns (f2.py), columns being Python
integers. The price is that all sizes are powers of two; rows that are padded in memory are a linear layout and one
affine step (affine.py).

Why from places to elements, and not the other way round? A map has one value for each input, and an element may have
many places: copies are representable in this direction only.

Where to read on, and where it is from
--------------------------------------
map.py holds what a layout is and how it is evaluated and printed; here is what is done with layouts. given.py checks
what a layout is made of, division.py has quotients, sources.py the choice among copies, `zoo/` the named layouts,
`plan/` what is decided by all this.

Names and meaning follow Triton's class of the same name; the mathematics is in Zhou et al., Linear Layouts: Robust
Code Generation of Efficient Tensor Computation Using F2 (arXiv 2505.23819), section 4: definitions 4.1 to 4.5 are the
operations, theorems 4.9 and 4.13 say that every distributed layout and every memory layout of Triton is linear.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from weft.base import LayoutError

from . import f2
from .dims import Dims, exact_log2, merged_order, names_of, placed, sizes_of, starts_of, total_of
from .division import quotient_of
from .given import Bases, OutDims, dims_and_columns
from .map import LinearMap
from .sources import nearest

__all__ = ["LinearLayout"]


class LinearLayout(LinearMap):
    """A linear map over F2 from named input dimensions to named output dimensions; immutable and hashable.

    Make one of bases and sizes, as below, with `identity_1d`, `strided_1d`, `zeros_1d` or `empty`, or from others by
    the operations below. The order of dimensions, the first being the fastest, matters to `reshape_*`, `flatten_*` and
    `==` only.

    >>> from weft.layouts import LinearLayout
    >>> layout = LinearLayout({"lane": [[0, 1], [1, 0]]}, {"row": 2, "column": 2})
    >>> layout.apply(lane=3)
    {'row': 1, 'column': 1}
    """

    __slots__ = ()

    # -- making -------------------------------------------------------------------------------------------------------

    def __init__(
        self,
        bases: Bases = (),
        out_dims: OutDims = (),
        require_surjective: bool = True,
    ) -> None:
        """What `from_bases` makes of the same arguments; without arguments, the layout without dimensions.

        >>> LinearLayout({"lane": [[0, 1], [1, 0]]}, {"row": 2, "column": 2}).apply(lane=3)
        {'row': 1, 'column': 1}
        """
        layout = type(self).from_bases(bases, out_dims, require_surjective)
        self._set(layout._ins, layout._outs, layout._columns)

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
        log, shift = exact_log2(size, in_dim), exact_log2(stride, f"the stride of {out_dim}")
        if not log:
            return cls.zeros_1d(size, in_dim, out_dim)
        return cls._make([(in_dim, log)], [(out_dim, log + shift)], (1 << shift + i for i in range(log)))

    @classmethod
    def zeros_1d(cls, size: int, in_dim: str, out_dim: str, outDimSize: int = 1) -> LinearLayout:
        """L(x) = 0 for x below `size`: all inputs hold the same element, of `outDimSize` (Triton's name) that exist."""
        log = exact_log2(size, in_dim)
        return cls._make([(in_dim, log)], [(out_dim, exact_log2(outDimSize, out_dim))], (0,) * log)

    @classmethod
    def from_bases(
        cls,
        bases: Bases,
        out_dims: OutDims,
        require_surjective: bool = True,
    ) -> LinearLayout:
        """A layout by its values on powers of two.

        `bases` maps each input dimension to its bases, least significant bit first; each is a coordinate for every
        output dimension. `out_dims` maps output dimensions to sizes; given names alone, the sizes are the least that
        hold the bases. LayoutError if a basis does not fit, or if `require_surjective` and some output is not reached.
        """
        layout = cls._make(*dims_and_columns(bases, out_dims))
        if require_surjective and not layout.is_surjective():
            raise LayoutError(
                f"the layout does not reach all of its output: {layout._missing()}",
                hint="add the missing bases; "
                "LinearLayout.from_bases takes them as they are with require_surjective=False",
            )
        return layout

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
        ins = merged_order([n for n, _ in self._ins], [n for n, _ in outer._ins], "input")
        outs = merged_order([n for n, _ in self._outs], [n for n, _ in outer._outs], "output")
        mine, theirs = dict(self._outs), dict(outer._outs)
        out_dims = [(n, mine.get(n, 0) + theirs.get(n, 0)) for n in outs]
        starts = starts_of(out_dims)
        place_mine = {n: starts[n] for n in mine}
        place_theirs = {n: starts[n] + mine.get(n, 0) for n in theirs}
        columns: list[int] = []
        in_dims = []
        for name in ins:
            count = 0
            for layout, place in ((self, place_mine), (outer, place_theirs)):
                if layout.has_in(name):
                    bases = layout.in_columns(name)
                    columns += (placed(c, layout._outs, place) for c in bases)
                    count += len(bases)
            in_dims.append((name, count))
        return LinearLayout._make(in_dims, out_dims, columns)

    def __matmul__(self, inner: LinearLayout) -> LinearLayout:
        """`outer @ inner`: x -> outer(inner(x)), the product of the matrices, as `inner.compose(outer)`.

        >>> memory = LinearLayout({"offset": [[0, 1], [1, 0]]}, {"row": 2, "column": 2})
        >>> lanes = LinearLayout({"lane": [[1, 0], [0, 1]]}, {"row": 2, "column": 2})
        >>> (memory.invert() @ lanes).bases
        {'lane': ((2,), (1,))}
        """
        return inner.compose(self) if isinstance(inner, LinearLayout) else NotImplemented

    def concat_ins(self, other: LinearLayout) -> LinearLayout:
        """The inputs of both, which have to have different names; the outputs must be the same."""
        self._check_layout(other, "concat_ins")
        if other._outs != self._outs:
            raise LayoutError(f"concat_ins needs equal outputs, got {sizes_of(self._outs)} and {sizes_of(other._outs)}")
        self._check_disjoint(self._ins, other._ins, "input")
        return LinearLayout._make(self._ins + other._ins, self._outs, self._columns + other._columns)

    def concat_outs(self, other: LinearLayout) -> LinearLayout:
        """The outputs of both, which have to have different names, of the same inputs."""
        self._check_layout(other, "concat_outs")
        if other._ins != self._ins:
            raise LayoutError(f"concat_outs needs equal inputs, got {sizes_of(self._ins)} and {sizes_of(other._ins)}")
        self._check_disjoint(self._outs, other._outs, "output")
        shift = self.total_out_log
        columns = (a | b << shift for a, b in zip(self._columns, other._columns, strict=True))
        return LinearLayout._make(self._ins, self._outs + other._outs, columns)

    def compose(self, outer: LinearLayout) -> LinearLayout:
        """x -> outer(self(x)). The outputs of this layout are the inputs of the other, in any order, and not larger."""
        self._check_layout(outer, "compose")
        source = self._matched_to(outer, "compose")
        return LinearLayout._make(self._ins, outer._outs, f2.product(outer._columns, source))

    def _matched_to(self, outer: LinearLayout, operation: str) -> list[int]:
        """The columns as inputs of another layout."""
        sizes = dict(outer._ins)
        if {n for n, _ in self._outs} != set(sizes):
            raise LayoutError(
                f"{operation}: the outputs {names_of(self._outs)} of one layout are not the inputs "
                f"{names_of(outer._ins)} of the other"
            )
        for name, log in self._outs:
            if log > sizes[name]:
                raise LayoutError(
                    f"{operation}: {name} has size {1 << log} as an output and only {1 << sizes[name]} as an input"
                )
        if self._outs == outer._ins:
            return list(self._columns)
        starts = starts_of(outer._ins)
        return [placed(c, self._outs, starts) for c in self._columns]

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
        columns = f2.solve(self._columns, f2.identity(self.total_out_log))
        if columns is None:
            raise LayoutError(f"only surjective layouts have a right inverse; {self._missing()}")
        return LinearLayout._make(self._outs, self._ins, columns)

    def invert_and_compose(self, outer: LinearLayout, prefer: Sequence[str] = ()) -> LinearLayout:
        """A layout C with self(x) = outer(C(x)): where in `outer` each thing of this layout is found.

        If `outer` holds copies there is a choice. Without preference it is Triton's: free bits are zero. With
        `prefer=("block", "warp", "lane")`, say, of all sources the one in the same block is chosen, of those the one in
        the same warp, then in the same lane, and then the one with the fewest ones; the textbook choice makes
        conversions cross warps that could stay within one.
        """
        self._check_layout(outer, "invert_and_compose")
        targets = self._as_outputs_of(outer)
        sources = f2.solve(outer._columns, targets)
        if sources is None:
            raise LayoutError(
                "invert_and_compose: the outer layout does not reach everything that this one does",
                hint=f"{outer._missing()} in the outer layout" if not outer.is_surjective() else None,
            )
        if prefer:
            sources = nearest(sources, self, outer, prefer)
        return LinearLayout._make(self._ins, outer._ins, sources)

    def _as_outputs_of(self, outer: LinearLayout) -> list[int]:
        if {n for n, _ in self._outs} != {n for n, _ in outer._outs}:
            raise LayoutError(
                f"invert_and_compose: the outputs {names_of(self._outs)} and {names_of(outer._outs)} are not the same"
            )
        sizes = dict(self._outs)
        for name, log in outer._outs:
            if sizes[name] > log:
                raise LayoutError(
                    f"invert_and_compose: {name} has size {1 << sizes[name]}, and only {1 << log} in the outer layout"
                )
        if self._outs == outer._outs:
            return list(self._columns)
        starts = starts_of(outer._outs)
        return [placed(c, self._outs, starts) for c in self._columns]

    # -- taking apart -------------------------------------------------------------------------------------------------

    def divide_left(self, divisor: LinearLayout) -> LinearLayout | None:
        """The layout C with self = divisor * C, or None. C has all dimensions of this layout.

        This is how an instruction is chosen: if its tile divides the layout, C says where the tiles are.
        """
        self._check_layout(divisor, "divide_left")
        quotient = quotient_of(self, divisor, left=True)
        return None if quotient is None else LinearLayout._make(*quotient)

    def divide_right(self, divisor: LinearLayout) -> LinearLayout | None:
        """The layout C with self = C * divisor, or None. C has all dimensions of this layout."""
        self._check_layout(divisor, "divide_right")
        quotient = quotient_of(self, divisor, left=False)
        return None if quotient is None else LinearLayout._make(*quotient)

    def is_trivial_over(self, dims: Iterable[str]) -> bool:
        """Whether it is the identity on these dimensions, inputs and outputs, and does not mix them with others."""
        names = set(dims)
        ins, outs = dict(self._ins), dict(self._outs)
        for name in names:
            if name not in ins and name not in outs:
                self._in_at(name)
            if ins.get(name) != outs.get(name):
                return False
        starts = starts_of(self._outs)
        bits = sum([(1 << outs[name]) - 1 << starts[name] for name in names])
        at = 0
        for name, log in self._ins:
            columns = self._columns[at : at + log]
            if name in names:
                start = starts[name]
                if columns != tuple([1 << i for i in range(start, start + log)]):
                    return False
            elif any(column & bits for column in columns):
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

    def get_matrix_view(self) -> list[list[int]]:
        """The matrix over F2: a row for each bit of the outputs, a column for each bit of the inputs, in their order.

        >>> LinearLayout.strided_1d(4, 2, "lane", "dim0").get_matrix_view()
        [[0, 0], [1, 0], [0, 1]]
        """
        starts = starts_of(self._outs)
        bits = [starts[name] + bit for name, log in self._outs for bit in range(log)]
        return [[column >> bit & 1 for column in self._columns] for bit in bits]

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
        starts = starts_of(outs)
        return LinearLayout._make(self._ins, outs, (placed(c, self._outs, starts) for c in self._columns))

    def reshape_ins(self, dims: Mapping[str, int]) -> LinearLayout:
        """The same map with the flattened input cut into other dimensions, the first the fastest."""
        self._check_mapping(dims, "reshape_ins", "sizes")
        ins = [(n, exact_log2(s, f"the input dimension {n}")) for n, s in dims.items()]
        if total_of(tuple(ins)) != self.total_in_log:
            raise LayoutError(f"reshape_ins: {sizes_of(self._ins)} have not as many elements as {sizes_of(tuple(ins))}")
        return LinearLayout._make(ins, self._outs, self._columns)

    def reshape_outs(self, dims: Mapping[str, int]) -> LinearLayout:
        """The same map with the flattened output cut into other dimensions, the first the fastest."""
        self._check_mapping(dims, "reshape_outs", "sizes")
        outs = [(n, exact_log2(s, f"the output dimension {n}")) for n, s in dims.items()]
        if total_of(tuple(outs)) != self.total_out_log:
            raise LayoutError(
                f"reshape_outs: {sizes_of(self._outs)} have not as many elements as {sizes_of(tuple(outs))}"
            )
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
        log = exact_log2(size, dim)
        start, old = self._in_at(dim)
        columns = self._columns[start : start + min(old, log)] + (0,) * (log - old)
        ins = ((n, log if n == dim else o) for n, o in self._ins)
        return LinearLayout._make(ins, self._outs, self._columns[:start] + columns + self._columns[start + old :])

    def resize_out(self, dim: str, size: int) -> LinearLayout:
        """An output dimension made larger, or smaller where no basis needs the upper part; LayoutError otherwise."""
        log = exact_log2(size, dim)
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
        """The same map with other names of input dimensions; those not mentioned stay, unknown ones do nothing."""
        return LinearLayout._make(self._renamed(names, self._ins, "input"), self._outs, self._columns)

    def rename_outs(self, names: Mapping[str, str]) -> LinearLayout:
        """The same map with other names of output dimensions; those not mentioned stay, unknown ones do nothing."""
        return LinearLayout._make(self._ins, self._renamed(names, self._outs, "output"), self._columns)

    def remove_zero_bases(self, dim: str) -> LinearLayout:
        """Without the bits of an input dimension whose basis is zero: only one of several copies is kept."""
        start, log = self._in_at(dim)
        columns = tuple(c for c in self._columns[start : start + log] if c)
        ins = ((n, len(columns) if n == dim else o) for n, o in self._ins)
        return LinearLayout._make(ins, self._outs, self._columns[:start] + columns + self._columns[start + log :])

    # -- checking -----------------------------------------------------------------------------------------------------

    @staticmethod
    def _check_same_names(order: Sequence[str], dims: Dims, side: str) -> None:
        if not isinstance(order, (list, tuple)) or not all(isinstance(n, str) for n in order):
            raise LayoutError(f"the order must be a list of the {side} dimensions {names_of(dims)}, got {order!r}")
        if sorted(order) != sorted(n for n, _ in dims):
            raise LayoutError(f"({', '.join(order)}) is not a permutation of the {side} dimensions {names_of(dims)}")

    @staticmethod
    def _renamed(names: Mapping[str, str], dims: Dims, side: str) -> Dims:
        LinearLayout._check_mapping(names, f"a renaming of {side} dimensions", "names")
        renamed = tuple((names.get(n, n), log) for n, log in dims)
        if len({n for n, _ in renamed}) != len(renamed):
            raise LayoutError(f"an {side} dimension is named twice: {', '.join(n for n, _ in renamed)}")
        return renamed

    @staticmethod
    def _check_layout(other: object, operation: str) -> None:
        if not isinstance(other, LinearLayout):
            raise LayoutError(f"{operation} needs a LinearLayout, got {other!r}")

    @staticmethod
    def _check_mapping(mapping: object, operation: str, to: str) -> None:
        if not isinstance(mapping, Mapping) or not all(isinstance(name, str) for name in mapping):
            raise LayoutError(f"{operation} needs a mapping of names to {to}, got {mapping!r}")

    @staticmethod
    def _check_disjoint(a: Dims, b: Dims, side: str) -> None:
        twice = {n for n, _ in a} & {n for n, _ in b}
        if twice:
            raise LayoutError(f"both layouts have the {side} dimension {', '.join(sorted(twice))}")
