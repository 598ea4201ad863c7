"""Linear algebra over F2, the field of two elements: sums are xor, products are and.

A vector is a Python int, bit i its component i. A matrix is a sequence of vectors, its columns, so that the product
with a vector is the xor of the columns that the vector's bits select. Everything here is Gaussian elimination.

    >>> m = [0b01, 0b11]
    >>> multiply(m, 0b11)
    2
    >>> multiply(inverse(m), 2)
    3
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

Vector = int
Matrix = Sequence[Vector]


def bits(vector: Vector) -> list[int]:
    """The positions of the ones of a vector, lowest first.

    >>> bits(0b1010)
    [1, 3]
    """
    indices = []
    while vector:
        low = vector & -vector
        indices.append(low.bit_length() - 1)
        vector ^= low
    return indices


def identity(size: int) -> list[Vector]:
    """The unit vectors of a space of that dimension."""
    return [1 << i for i in range(size)]


def are_units(vectors: Matrix) -> bool:
    """Whether all are unit vectors or zero: then sets do what takes elimination otherwise."""
    mixed = 0
    for v in vectors:
        mixed |= v & v - 1
    return not mixed


def multiply(matrix: Matrix, vector: Vector) -> Vector:
    """Matrix times vector; bits of the vector beyond the number of columns count for nothing."""
    result = 0
    vector &= (1 << len(matrix)) - 1
    while vector:
        low = vector & -vector
        result ^= matrix[low.bit_length() - 1]
        vector ^= low
    return result


def product(a: Matrix, b: Matrix) -> list[Vector]:
    """The matrix a times b: first b is applied, then a."""
    return [multiply(a, column) for column in b]


class Echelon:
    """A basis of a subspace, built one vector at a time, that can tell how a vector is made of those given.

    Each row has a leading bit (its highest) that no row added later has as its own.
    """

    __slots__ = ("_rows", "count")

    def __init__(self, vectors: Iterable[Vector] = ()) -> None:
        self._rows: dict[int, tuple[Vector, Vector]] = {}  # leading bit -> (vector, which of those given make it)
        self.count = 0
        rows = self._rows
        unit = 1
        for vector in vectors:  # as `relation`, without a call for each: this is where planning spends its time
            used = unit
            unit <<= 1
            while vector:
                lead = vector.bit_length() - 1
                row = rows.get(lead)
                if row is None:
                    rows[lead] = vector, used
                    break
                vector ^= row[0]
                used ^= row[1]
        self.count = unit.bit_length() - 1

    def __len__(self) -> int:
        return len(self._rows)

    def reduce(self, vector: Vector) -> tuple[Vector, Vector]:
        """(what is left of a vector, the given vectors that were taken from it, as bits)."""
        used = 0
        rest, reduced = vector, 0
        rows = self._rows
        while rest:
            lead = rest.bit_length() - 1
            row = rows.get(lead)
            if row is None:
                reduced |= 1 << lead
                rest ^= 1 << lead
            else:
                rest ^= row[0]
                used ^= row[1]
        return reduced, used

    def __contains__(self, vector: Vector) -> bool:
        rows = self._rows
        while vector:
            row = rows.get(vector.bit_length() - 1)
            if row is None:
                return False
            vector ^= row[0]
        return True

    def relation(self, vector: Vector) -> Vector:
        """Give one more vector; 0 if independent of those before, else given vectors, with it, whose sum is 0."""
        rows, used = self._rows, 1 << self.count
        self.count += 1
        while vector:
            lead = vector.bit_length() - 1
            row = rows.get(lead)
            if row is None:
                rows[lead] = vector, used
                return 0
            vector ^= row[0]
            used ^= row[1]
        return used

    def add(self, vector: Vector) -> bool:
        """Give one more vector; whether it was independent of those before."""
        rows, used = self._rows, 1 << self.count  # not by `relation`: planning a conversion adds thousands of vectors
        self.count += 1
        while vector:
            lead = vector.bit_length() - 1
            row = rows.get(lead)
            if row is None:
                rows[lead] = vector, used
                return True
            vector ^= row[0]
            used ^= row[1]
        return False

    def extend(self, vectors: Iterable[Vector]) -> list[Vector]:
        """Give more vectors; those that were independent of the ones before."""
        return [v for v in vectors if self.add(v)]

    def coefficients(self, vector: Vector) -> Vector | None:
        """Which of the given vectors add up to this one, or None; those that depended on earlier ones are not used."""
        rows, used = self._rows, 0
        while vector:
            row = rows.get(vector.bit_length() - 1)
            if row is None:
                return None
            vector ^= row[0]
            used ^= row[1]
        return used


def _independent(matrix: Matrix) -> list[bool]:
    """For each column whether it is no sum of columns before it."""
    leads: dict[int, Vector] = {}
    flags = []
    for column in matrix:
        while column:
            lead = column.bit_length()
            row = leads.get(lead)
            if row is None:
                leads[lead] = column
                break
            column ^= row
        flags.append(column != 0)
    return flags


def rank(matrix: Matrix) -> int:
    """The dimension of the span of the columns."""
    return sum(_independent(matrix))


def dependent(matrix: Matrix) -> list[int]:
    """The indices of the columns that are a sum of columns before them.

    >>> dependent([1, 2, 3, 0, 4])
    [2, 3]
    """
    flags = _independent(matrix)
    return [] if all(flags) else [i for i, independent in enumerate(flags) if not independent]


def solve(matrix: Matrix, targets: Sequence[Vector]) -> list[Vector] | None:
    """A matrix x with matrix * x = targets, or None; its free components, those of dependent columns, are zero.

    >>> solve([1, 1, 2], [3, 0])
    [5, 0]
    """
    rows = Echelon(matrix)
    solutions = []
    for target in targets:
        x = rows.coefficients(target)
        if x is None:
            return None
        solutions.append(x)
    return solutions


def inverse(matrix: Matrix) -> list[Vector]:
    """The inverse of a square matrix of full rank; ValueError for any other."""
    result = solve(matrix, identity(len(matrix)))
    if result is None or any(column >> len(matrix) for column in matrix):
        raise ValueError("the matrix has no inverse")
    return result


def kernel(matrix: Matrix) -> list[Vector]:
    """A basis of the vectors that the matrix maps to zero, one for each dependent column.

    >>> kernel([1, 1, 2])
    [3]
    """
    rows = Echelon()
    return [relation for column in matrix if (relation := rows.relation(column))]


def span(vectors: Matrix) -> list[Vector]:
    """Every sum of some of the vectors; 2 to the power of their number, with repetitions if they are dependent.

    >>> span([1, 2])
    [0, 1, 2, 3]
    """
    sums = [0]
    for v in vectors:
        sums += [x ^ v for x in sums]
    return sums


def intersection(a: Matrix, b: Matrix) -> list[Vector]:
    """A basis of what the spans of two sets of vectors have in common (Zassenhaus: the kernel of both side by side).

    >>> intersection([0b001, 0b010], [0b011, 0b100])
    [3]
    """
    if not any(v & v - 1 for v in a) and not any(v & v - 1 for v in b):  # unit vectors span what they have in common
        theirs = set(b)
        return [v for v in dict.fromkeys(a) if v and v in theirs]
    first = [v for v, independent in zip(a, _independent(a), strict=True) if independent]
    low = (1 << len(first)) - 1
    rows = Echelon()
    basis = []
    for k in kernel([*first, *b]):
        common = multiply(first, k & low)
        if rows.add(common):
            basis.append(common)
    return basis


def complement(vectors: Matrix, size: int) -> list[Vector]:
    """Unit vectors that complete the span to the whole space of that dimension.

    >>> complement([0b011], 3)
    [1, 4]
    """
    if are_units(vectors):
        subspace = set(vectors)
        return [unit for unit in identity(size) if unit not in subspace]
    rows = Echelon(vectors)
    return [unit for unit in identity(size) if rows.add(unit)]


def common_complement(a: Matrix, b: Matrix, size: int) -> list[Vector]:
    """A basis of a largest subspace that meets the span of a, and that of b, in zero only.

    Its dimension is size - max(dim a, dim b). Zhou et al., Linear Layouts (arXiv 2505.23819v5), Lemma 9.5: beside a
    complement of both, take sums e + f that pair vectors of a outside of b with vectors of b outside of a.
    """
    if are_units(a) and are_units(b):
        alone = [[v for v in dict.fromkeys(x) if v and v not in y] for x, y in ((a, b), (b, a))]
        return [*[x ^ y for x, y in zip(*alone)], *complement([*a, *b], size)]
    common = intersection(a, b)
    rows = Echelon(common)
    only_a = [v for v in a if rows.add(v)]
    rows = Echelon(common)
    only_b = [v for v in b if rows.add(v)]
    paired = [x ^ y for x, y in zip(only_a, only_b)]
    return [*paired, *complement([*common, *only_a, *only_b], size)]
