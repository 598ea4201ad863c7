"""How a value looks across the lanes of a vector: the same everywhere, affine in the lane, or different in each.

Index arithmetic is most of a tile program and almost none of its cost, because code generation follows its form:

    Uniform   one scalar, the same in every lane                     pid * BLOCK
    Affine    base + sum(scale * constant[lane])                     pid * BLOCK + arange(0, BLOCK)
    Varying   an LLVM vector                                         exp(x)
    Split     one of these up to some lane, another after it         (pid * BLOCK + arange(0, BLOCK)) % 300
    Pointer   a scalar base and an offset that is one of the above   x_ptr + offsets

An address that is affine with step one is a plain vector load; uniform is one scalar load; anything else is a gather.
Addresses are taken not to wrap around their integer type inside one vector (see docs/reference/semantics.md). Numbers
that are data may: where an integer that is widened might have wrapped, the affine form carries how to compute it
exactly.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, TypeAlias

from weft.analysis import parts_first
from weft.backends.llvm.emit import Function
from weft.backends.llvm.values import Type, Value, const, const_lanes


class Uniform:
    """One scalar for all lanes."""

    __slots__ = ("value",)

    def __init__(self, value: Value) -> None:
        self.value = value


class Varying:
    """A vector: one value for each lane."""

    __slots__ = ("value",)

    def __init__(self, value: Value) -> None:
        self.value = value


class Exact(NamedTuple):
    """How a vector follows from those of other forms, which may have wrapped."""

    make: Callable[[list[Value], int], Value]
    """From their vectors, and the number of lanes."""
    parts: tuple[Form, ...]


class Affine:
    """base + sum(scale * lanes[k] for lane k), on integers; a scale of None is one.

    `exact` gives the vector where the form holds only if nothing wrapped: what is not an address asks for it.
    """

    __slots__ = ("base", "exact", "terms")

    def __init__(
        self,
        base: Value,
        terms: tuple[tuple[Value | None, tuple[int, ...]], ...],
        exact: Exact | None = None,
    ) -> None:
        self.base, self.terms, self.exact = base, terms, exact

    @property
    def constant_lanes(self) -> tuple[int, ...] | None:
        """The offset of each lane, where all are known numbers."""
        if len(self.terms) == 1 and self.terms[0][0] is None:
            return self.terms[0][1]
        return None


class Split:
    """One form in the first lanes, which are at least one, and another in the rest: a vector that goes on in the next
    row. `in_first` is the mask of the first; where it holds everywhere, the integers of `second` that are uniform are
    those of `first`.
    """

    __slots__ = ("first", "in_first", "second")

    def __init__(self, in_first: Value, first: Form, second: Form) -> None:
        self.in_first, self.first, self.second = in_first, first, second

    def map(self, change: Callable[[Form], Form]) -> Split:
        """The same lanes of other forms."""
        return Split(self.in_first, change(self.first), change(self.second))


class Pointer:
    """base (a scalar pointer) + offset elements of `size` bytes."""

    __slots__ = ("base", "elem", "offset")

    def __init__(self, base: Value, offset: Form, elem: Type) -> None:
        self.base, self.offset, self.elem = base, offset, elem


Form: TypeAlias = Uniform | Varying | Affine | Split | Pointer


def is_const(value: Value) -> bool:
    """Whether an operand is a literal."""
    return not value.name.startswith(("%", "@"))


def int_const(value: Value) -> int | None:
    """The number an integer operand is known to be."""
    name = value.name
    if name.startswith(("%", "@")) or value.type.is_float:
        return None
    if name == "true":
        return 1
    if name == "false" or name == "zeroinitializer":
        return 0
    try:
        return int(name)
    except ValueError:
        return None


def vector_of(f: Function, form: Form, lanes: int) -> Value:
    """The LLVM vector (or, with no lanes, the scalar) that a form stands for."""
    if isinstance(form, Varying):
        return form.value
    if isinstance(form, Uniform):
        return f.splat(form.value, lanes) if lanes else form.value
    if isinstance(form, Split):
        return f.select(form.in_first, vector_of(f, form.first, lanes), vector_of(f, form.second, lanes))
    if isinstance(form, Affine):
        if not lanes:
            return form.base
        if form.exact is not None:
            return _exactly(f, form, lanes)
        bits = form.base.type.bits
        total: Value | None = None if int_const(form.base) == 0 else f.splat(form.base, lanes)
        for scale, numbers in form.terms:
            term = const_lanes(form.base.type.with_lanes(lanes), [wrap(n, bits) for n in numbers])
            if scale is not None:
                term = f.mul(f.splat(scale, lanes), term)
            total = term if total is None else f.add(total, term)
        assert total is not None
        return total
    offset = form.offset
    if isinstance(offset, Affine):  # addresses are taken not to wrap
        offset = Affine(offset.base, offset.terms)
    return f.gep(form.elem, form.base, vector_of(f, offset, lanes))


def form_of(value: Value) -> Form:
    """The form of what is in a register."""
    return Varying(value) if value.type.lanes else Uniform(value)


def applied(f: Function, form: Form, lanes: int, change: Callable[[Value], Value]) -> Form:
    """What a function makes of a form: of the scalar, where it is the same in all lanes, else of the vector."""
    return form_of(change(form.value if isinstance(form, Uniform) else vector_of(f, form, lanes)))


def _exactly(f: Function, form: Form, lanes: int) -> Value:
    """The vector of a form that may have wrapped: each part is made once, however often it is used."""
    values: dict[Form, Value] = {}
    for part in parts_first(form, values, lambda x: x.exact.parts if isinstance(x, Affine) and x.exact else ()):
        if isinstance(part, Affine) and part.exact is not None:
            values[part] = part.exact.make([values[p] for p in part.exact.parts], lanes)
        else:
            values[part] = vector_of(f, part, lanes)
    return values[form]


def fold_add(f: Function, a: Value, b: Value) -> Value:
    """a + b on scalars, folding what is known."""
    x, y = int_const(a), int_const(b)
    if x == 0:
        return b
    if y == 0:
        return a
    if x is not None and y is not None:
        return const(a.type, wrap(x + y, a.type.bits))
    return f.add(a, b)


def fold_mul(f: Function, a: Value, b: Value) -> Value:
    """a * b on scalars, folding what is known."""
    x, y = int_const(a), int_const(b)
    if x is not None and y is not None:
        return const(a.type, wrap(x * y, a.type.bits))
    if x == 1 or y == 0:
        return b
    if y == 1 or x == 0:
        return a
    return f.mul(a, b)


def wrap(value: int, bits: int) -> int:
    """Two's complement of `bits` bits."""
    value &= (1 << bits) - 1
    return value - (1 << bits) if bits > 1 and value >> (bits - 1) else value


def add(f: Function, a: Form, b: Form, sign: int = 1) -> Form | None:
    """a + sign*b while both stay uniform or affine; None when a vector is needed."""
    if not isinstance(a, (Uniform, Affine)) or not isinstance(b, (Uniform, Affine)):
        return None
    base_a = a.value if isinstance(a, Uniform) else a.base
    base_b = b.value if isinstance(b, Uniform) else b.base
    if sign > 0:
        base = fold_add(f, base_a, base_b)
    else:
        y = int_const(base_b)
        base = (
            fold_add(f, base_a, const(base_b.type, wrap(-y, base_b.type.bits)))
            if y is not None
            else f.sub(base_a, base_b)
        )
    terms: list[tuple[Value | None, tuple[int, ...]]] = list(a.terms) if isinstance(a, Affine) else []
    if isinstance(b, Affine):
        for scale, numbers in b.terms:
            _merge(terms, scale, tuple(sign * n for n in numbers))
    terms = [t for t in terms if any(t[1])]
    if _may_wrap(a) or _may_wrap(b):
        if not terms:
            return None
        bin = f.add if sign > 0 else f.sub
        return Affine(base, tuple(terms), Exact(lambda operands, _: bin(*operands), (a, b)))
    return Affine(base, tuple(terms)) if terms else Uniform(base)


def _may_wrap(form: Form) -> bool:
    return isinstance(form, Affine) and form.exact is not None


def _merge(terms: list[tuple[Value | None, tuple[int, ...]]], scale: Value | None, numbers: tuple[int, ...]) -> None:
    for i, (other, have) in enumerate(terms):
        if (other is None and scale is None) or (other is not None and scale is not None and other.name == scale.name):
            terms[i] = (other, tuple(x + y for x, y in zip(have, numbers, strict=True)))
            return
    terms.append((scale, numbers))


def mul(f: Function, a: Form, b: Form) -> Form | None:
    """a * b where one is uniform and neither is a vector; None otherwise."""
    if isinstance(b, Affine):
        a, b = b, a
    if not isinstance(b, Uniform) or not isinstance(a, (Uniform, Affine)):
        return None
    if isinstance(a, Uniform):
        return Uniform(fold_mul(f, a.value, b.value))
    base = fold_mul(f, a.base, b.value)
    factor = int_const(b.value)
    terms: list[tuple[Value | None, tuple[int, ...]]] = []
    for scale, numbers in a.terms:
        if factor is not None:
            terms.append((scale, tuple(n * factor for n in numbers)))
        elif scale is None:
            terms.append((b.value, numbers))
        else:
            terms.append((f.mul(scale, b.value), numbers))
    terms = [t for t in terms if any(t[1])]
    if _may_wrap(a) and terms:
        return Affine(base, tuple(terms), Exact(lambda operands, _: f.mul(*operands), (a, b)))
    return Affine(base, tuple(terms)) if terms else Uniform(base)


def cast_int(f: Function, op: str, a: Form, to: Type) -> Form | None:
    """sext, zext or trunc of a uniform or affine value, lane numbers unchanged; None when a vector is needed."""
    if isinstance(a, Uniform):
        return Uniform(cast_scalar(f, op, a.value, to))
    if isinstance(a, Affine):
        terms = tuple((None if s is None else cast_scalar(f, op, s, to), n) for s, n in a.terms)
        exact: Exact | None = None
        if a.exact is not None or (op != "trunc" and not _fits(op, a)):
            if a.base.type.bits < 32:  # small enough to wrap in earnest
                return None
            exact = Exact(lambda operands, lanes: f.cast(op, operands[0], to.with_lanes(lanes)), (a,))
        return Affine(cast_scalar(f, op, a.base, to), terms, exact)
    return None


def _fits(op: str, a: Affine) -> bool:
    """Whether all lanes are known to lie in the range of the type, signed or not, that is widened from."""
    base, lanes = int_const(a.base), a.constant_lanes
    if base is None or lanes is None:
        return False
    bits = a.base.type.bits
    range_of = range(-1 << (bits - 1), 1 << (bits - 1)) if op == "sext" else range(1 << bits)
    return base + min(lanes) in range_of and base + max(lanes) in range_of


def cast_scalar(f: Function, op: str, value: Value, to: Type) -> Value:
    """sext, zext or trunc of a scalar, folded where it is known."""
    number = int_const(value)
    if number is not None and value.type.elem != "i1":
        if op == "zext":
            number &= (1 << value.type.bits) - 1
        return const(to, wrap(number, to.bits))
    return f.cast(op, value, to)
