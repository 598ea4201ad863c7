"""Writing a function on vectors as Python expressions.

An `X` is an LLVM value together with the function it is computed in; the operators of Python append the instruction
that fits the element type, numbers become constants of the other operand's type, and nothing is ever contracted or
reordered:

    def gain(x: X) -> X:
        y = fma(x, x, 1.0)                      # fused, because it is written so
        return where(y > 3.0, x * 0.5, sqrt(y))

Floats compare as C does (a NaN makes everything false except `!=`). Integers are signed where it matters (`<`, `>>`,
`to_float`); the unsigned forms are methods: `ult`, `lshr`, `to_float_unsigned`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache

from ..emit import Function, Module
from ..values import Type, Value, const, const_lanes, mangle, vec

Number = int | float
MANTISSA = {"float": 23, "double": 52}
BIAS = {"float": 127, "double": 1023}
INT_OF = {"float": "i32", "double": "i64", "i32": "i32", "i64": "i64"}
FLOAT_OF = {"i32": "float", "i64": "double"}

Operator = Callable[["X", "X | Number"], "X"]


def _operator(of_floats: str, of_integers: str) -> Operator:
    """The method for an instruction of LLVM on two values."""

    def operator(self: X, other: X | Number) -> X:
        type = self.v.type
        operand = other.v if isinstance(other, X) else const(type, other)
        op = of_floats if type.is_float else of_integers
        return X(self.f, self.f.emit(type, f"{op} {type.text} {self.v.name}, {operand.name}"))

    return operator


def _reflected(operator: Operator) -> Operator:
    """The method for what stands on the right of an operator, with a number on the left."""
    return lambda self, other: operator(self.const(other), self)


def _comparison(of_floats: str, of_integers: str) -> Operator:
    """The method for a comparison, by the predicates of LLVM."""

    def comparison(self: X, other: X | Number) -> X:
        operand = self.const(other).v
        if self.v.type.is_float:
            return X(self.f, self.f.fcmp(of_floats, self.v, operand))
        return X(self.f, self.f.icmp(of_integers, self.v, operand))

    return comparison


class X:
    """A value in a function under construction, with Python's operators."""

    __slots__ = ("f", "v")
    __hash__ = None  # type: ignore[assignment]  # == builds a comparison

    def __init__(self, f: Function, v: Value) -> None:
        self.f, self.v = f, v

    # -- what it is -------------------------------------------------------------------------------------------------

    @property
    def type(self) -> Type:
        """Its LLVM type."""
        return self.v.type

    @property
    def elem(self) -> str:
        """The element of its type."""
        return self.v.type.elem

    @property
    def is_float(self) -> bool:
        """Whether it is a float."""
        return self.v.type.is_float

    def const(self, value: Number | X) -> X:
        """`value` as a constant of this type (an X passes unchanged)."""
        if isinstance(value, X):
            return value
        return X(self.f, const(self.v.type, value))

    def const_of(self, elem: str, value: Number) -> X:
        """A constant of another element type in as many lanes."""
        return X(self.f, const(self.v.type.with_elem(elem), value))

    # -- arithmetic -------------------------------------------------------------------------------------------------

    __add__ = __radd__ = _operator("fadd", "add")
    __sub__ = _operator("fsub", "sub")
    __rsub__ = _reflected(__sub__)
    __mul__ = __rmul__ = _operator("fmul", "mul")
    __truediv__ = _operator("fdiv", "sdiv")
    __rtruediv__ = _reflected(__truediv__)
    __and__ = _operator("and", "and")
    __or__ = _operator("or", "or")
    __xor__ = _operator("xor", "xor")
    __lshift__ = _operator("shl", "shl")
    __rshift__ = _operator("ashr", "ashr")
    lshr = _operator("lshr", "lshr")
    """Shift right filling with zeros."""

    def __neg__(self) -> X:
        if self.v.type.is_float:
            return X(self.f, self.f.fneg(self.v))
        return self.const(0) - self

    def __invert__(self) -> X:
        return self ^ (1 if self.elem == "i1" else -1)

    # -- comparisons ------------------------------------------------------------------------------------------------

    __lt__ = _comparison("olt", "slt")
    __le__ = _comparison("ole", "sle")
    __gt__ = _comparison("ogt", "sgt")
    __ge__ = _comparison("oge", "sge")
    __eq__ = _comparison("oeq", "eq")  # type: ignore[assignment]
    __ne__ = _comparison("une", "ne")  # type: ignore[assignment]

    def ult(self, other: Number | X) -> X:
        """Unsigned less-than of integers."""
        return X(self.f, self.f.icmp("ult", self.v, self.const(other).v))

    def unordered(self, other: Number | X) -> X:
        """Is this or the other a NaN?"""
        return X(self.f, self.f.fcmp("uno", self.v, self.const(other).v))

    def isnan(self) -> X:
        """Where it is NaN."""
        return self.unordered(self)

    # -- changing the type ------------------------------------------------------------------------------------------

    def cast(self, op: str, elem: str) -> X:
        """An LLVM cast to another element."""
        return X(self.f, self.f.cast(op, self.v, self.v.type.with_elem(elem)))

    def bits(self) -> X:
        """The bits of a float as an integer of the same width."""
        return self.cast("bitcast", INT_OF[self.elem])

    def as_float(self) -> X:
        """Integer bits as a float of the same width."""
        return self.cast("bitcast", FLOAT_OF[self.elem])

    def to_float(self, elem: str) -> X:
        """A signed integer as a float."""
        return self.cast("sitofp", elem)

    def to_float_unsigned(self, elem: str) -> X:
        """An unsigned integer as a float."""
        return self.cast("uitofp", elem)

    def to_int(self, elem: str) -> X:
        """Truncate to an integer; the value must be known to fit."""
        return self.cast("fptosi", elem)

    def widen(self) -> X:
        """float -> double."""
        return self.cast("fpext", "double")

    def narrow(self) -> X:
        """double -> float, to nearest."""
        return self.cast("fptrunc", "float")


def intrinsic(name: str, x: X, *others: X | Number) -> X:
    """`llvm.<name>` overloaded on the type of x, which is also the result's type."""
    return X(x.f, x.f.intrinsic(name, x.v.type, [x.v, *(x.const(o).v for o in others)]))


def fma(a: X, b: X | Number, c: X | Number) -> X:
    """a*b + c with one rounding, as good as: where that is no instruction, floats are multiplied and added as doubles.

    The product is exact then, and so is the result if a float holds it; else it may be off by 2**-29 of its last bit
    beyond half of that. LLVM would call a function for each lane.
    """
    if a.elem != "float" or a.f.module.fuses:
        return fused(a, b, c)
    return (a.widen() * a.const(b).widen() + a.const(c).widen()).narrow()


def fused(a: X, b: X | Number, c: X | Number) -> X:
    """a*b + c with one rounding."""
    return X(a.f, a.f.intrinsic("fma", a.v.type, [a.v, a.const(b).v, a.const(c).v]))


def where(cond: X, a: X | Number, b: X | Number) -> X:
    """a in lanes where cond holds, else b; at least one of a and b is an X."""
    if not isinstance(a, X):
        assert isinstance(b, X)
        a = b.const(a)
    elif not isinstance(b, X):
        b = a.const(b)
    return X(cond.f, cond.f.select(cond.v, a.v, b.v))


def fabs(x: X) -> X:
    """The magnitude."""
    return intrinsic("fabs", x)


def copysign(x: X, sign: X | Number) -> X:
    """The magnitude of one with the sign of the other."""
    return intrinsic("copysign", x, sign)


def sqrt(x: X) -> X:
    """The square root, rounded once."""
    return intrinsic("sqrt", x)


def rint(x: X) -> X:
    """To the nearest integer, halves to even."""
    return intrinsic("nearbyint", x)  # the processor is always left rounding to nearest


def trunc(x: X) -> X:
    """Rounded toward zero."""
    return intrinsic("trunc", x)


def floor(x: X) -> X:
    """Rounded down."""
    return intrinsic("floor", x)


def ceil(x: X) -> X:
    """Rounded up."""
    return intrinsic("ceil", x)


def at_most(x: X, bound: X | Number) -> X:
    """The smaller of x and bound; a NaN in x stays (one instruction on x86)."""
    b = x.const(bound)
    return where(b < x, b, x)


def at_least(x: X, bound: X | Number) -> X:
    """The larger of x and bound; a NaN in x stays (one instruction on x86)."""
    b = x.const(bound)
    return where(b > x, b, x)


def flip_sign(x: X, sign: X) -> X:
    """x with its sign flipped where `sign` (integer bits or a float) has its top bit set."""
    mask = -(1 << (x.type.bits - 1))
    bits = sign.bits() if sign.is_float else sign
    return (x.bits() ^ (bits & mask)).as_float()


def horner(x: X, coefficients: Sequence[Number | X]) -> X:
    """c[0] + c[1] x + c[2] x^2 + ..., innermost first, all fused."""
    total = x.const(coefficients[-1])
    for c in reversed(coefficients[:-1]):
        total = fma(total, x, c)
    return total


def estrin(x: X, coefficients: Sequence[Number | X]) -> X:
    """The same value by Estrin's scheme: a shorter chain of dependent operations, one multiplication more for each
    halving.
    """
    terms = [x.const(c) for c in coefficients]
    power = x
    while len(terms) > 1:
        paired = [fma(terms[i + 1], power, terms[i]) for i in range(0, len(terms) - 1, 2)]
        if len(terms) % 2:
            paired.append(terms[-1])
        terms = paired
        if len(terms) > 1:
            power = power * power
    return terms[0]


def any_lane(cond: X) -> Value:
    """An i1: does cond hold in some lane?"""
    if not cond.type.lanes:
        return cond.v
    return cond.f.intrinsic("vector.reduce.or", vec("i1", 0), [cond.v], suffix=f"v{cond.type.lanes}i1")


def rarely(cond: X, usual: X | Sequence[X], path: Callable[[], X | Sequence[X]]) -> list[X]:
    """`usual`, except that if cond holds in any lane `path` is run and its values taken in those lanes."""
    f = cond.f
    values = [usual] if isinstance(usual, X) else list(usual)
    before = f.block
    slow, done = f.new_label("rare"), f.new_label("usual")
    f.do(f'br i1 {any_lane(cond).name}, label %{slow}, label %{done}, !prof !{{!"branch_weights", i32 1, i32 1000}}')
    f.start(slow)
    result = path()
    others = [result] if isinstance(result, X) else list(result)
    merged = [where(cond, o, u) for o, u in zip(others, values, strict=True)]
    end = f.block
    f.br(done)
    f.start(done)
    return [X(f, f.phi(u.type, [(u.v, before), (m.v, end)])) for u, m in zip(values, merged, strict=True)]


def while_any(
    state: Sequence[X], cond: Callable[[Sequence[X]], X], step: Callable[[Sequence[X]], Sequence[X]]
) -> list[X]:
    """Repeat `step` on the lanes where cond holds, until it holds in none."""
    f = state[0].f
    before, head, body, done = f.block, f.new_label("again"), f.new_label("step"), f.new_label("end")
    f.br(head)
    f.start(head)
    carried = [X(f, f.reserve(s.type)) for s in state]
    mark = len(f.lines)
    active = cond(carried)
    f.cond_br(any_lane(active), body, done)
    head_end = f.block
    assert head_end == head, "the condition of a loop has no branches"
    f.start(body)
    following = [where(active, n, c) for n, c in zip(step(carried), carried, strict=True)]
    end = f.block
    f.br(head)
    f.lines[mark:mark] = [
        f"  {c.v.name} = phi {c.type} [ {s.v.name}, %{before} ], [ {n.v.name}, %{end} ]"
        for c, s, n in zip(carried, state, following, strict=True)
    ]
    f.start(done)
    return carried


def table(name: str, elem: str, values: Sequence[Number], index: X) -> X:
    """values[index] in each lane, from the constant array `name` of the module (i32 or i64 indices, in range)."""
    f, count, one = index.f, index.type.lanes, vec(elem, 0)
    address = _constant_array(f.module, f"weft.table.{name}", elem, values)
    places = f.gep(one, address, index.v)
    if not count:
        return X(f, f.load(one, places))
    result, mask = vec(elem, count), vec("i1", count)
    intrinsic_name = f"llvm.masked.gather.{mangle(result)}.{mangle(places.type)}"
    f.module.declarations.setdefault(
        intrinsic_name, f"declare {result} @{intrinsic_name}({places.type}, {mask}, {result})"
    )
    aligned = f"{places.type} align {result.bits // 8} {places.name}"
    return X(f, f.emit(result, f"call {result} @{intrinsic_name}({aligned}, {const(mask, 1)}, {result} poison)"))


def _constant_array(module: Module, name: str, elem: str, values: Sequence[Number]) -> Value:
    """The address of a private constant array, written when it is first needed."""
    if name not in module.defined:
        module.defined.add(name)
        module.globals.append(_array_text(name, elem, tuple(values)))
    return Value(vec("ptr", 0), f"@{name}")


@lru_cache(maxsize=64)
def _array_text(name: str, elem: str, values: tuple[Number, ...]) -> str:
    body = const_lanes(vec(elem, len(values)), values).name[1:-1]
    return f"@{name} = private unnamed_addr constant [{len(values)} x {elem}] [{body}], align 64"
