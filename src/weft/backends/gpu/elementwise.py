"""Element-wise operations, register by register, as docs/reference/semantics.md has them.

Each entry of `SCALARS` gives the result for one register, its operands spelled out. Registers that repeat are computed
once; halves two at a time where they lie in words. What the entries do stands in `integers`, `floats`, `conversions`.
"""

from __future__ import annotations

from weft.backends.llvm.elementwise import library_function, meaning_of
from weft.backends.llvm.values import Value
from weft.base import registry
from weft.ir.lane import LaneOp

from .dialect import Scalar
from .emitter import Emitter, Part, Register, emitter, scalar

SCALARS: dict[str, Scalar[Emitter]] = {}


scalars = registry(SCALARS)
"""Registers how one register of an operation is computed."""


@emitter("*")
def elementwise(e: Emitter, op: LaneOp) -> None:
    """Emit an operation register by register: by the vendor's entry or that of `SCALARS`, or as all targets do."""
    function = e.dialect.scalars.get(op.name) or SCALARS.get(op.name) or shared(e, op)
    result = op.results[0]
    if op.name in PAIRED and _in_pairs(e, op):
        return
    columns = [e.names(v) for v in op.operands]
    count = result.count
    columns = [c if len(c) == count else c * count for c in columns]
    computed: dict[tuple[str, ...], Register] = {}
    out: list[Register] = []
    for row in zip(*columns, strict=True):
        register = computed.get(row)
        if register is None:
            register = computed[row] = function(e, op, list(row))
        out.append(register)
    e.env[result] = out


def shared(e: Emitter, op: LaneOp) -> Scalar[Emitter]:
    """An operation as it is for all targets (`backends/llvm/elementwise.py`)."""
    f, asked = e.f, e.asked(op)
    types = [scalar(e.llvm[elem]) for elem in asked.sources]
    if op.name.startswith("libdevice."):
        symbol = op.name.removeprefix("libdevice.")
        return lambda e, op, a: library_function(f, asked, symbol, list(map(Value, types, a))).name
    meaning = meaning_of(op.name)
    if meaning is None:
        raise e.fail(op, f"`{op.name}`")
    return lambda e, op, a: meaning(f, asked, list(map(Value, types, a))).name


# -- halves in pairs --------------------------------------------------------------------------------------------------

PAIRED = {
    "arith.addf": "fadd",
    "arith.subf": "fsub",
    "arith.mulf": "fmul",
    "arith.maxnumf": "maxnum",
    "arith.minnumf": "minnum",
    "arith.maximumf": "maximum",
    "arith.minimumf": "minimum",
    "math.fma": "fma",
}
"""Operations that are one instruction for two halves in a word."""


PLAIN = ("fadd", "fsub", "fmul")


def _as_fma(name: str, x: str, y: str) -> tuple[str, str, str]:
    """The operands of the fma that is exactly a sum, a difference, a product: for bf16, where there is no other."""
    one, minus, zero = (f"splat (bfloat 0xR{bits})" for bits in ("3F80", "BF80", "8000"))
    return {"fadd": (x, one, y), "fsub": (y, minus, x), "fmul": (x, y, zero)}[name]


def _in_pairs(e: Emitter, op: LaneOp) -> bool:
    """Compute halves two at a time, where operands lie in words already, or one that is a word's first; whether it was
    done."""
    result, name = op.results[0], PAIRED[op.name]
    if result.elem not in ("f16", "bf16") or e.llvm[result.elem][0] == "i":
        return False
    columns = [e.wide(v, result.count) for v in op.operands]
    if result.count == 1:
        columns = [_with_neighbour(column[0]) for column in columns]
    if any(len(column) % 2 for column in columns) or not any(
        _is_word(column[i : i + 2]) for column in columns for i in range(0, len(column), 2)
    ):
        return False
    type = e.llvm[result.elem]
    vector, out = f"<2 x {type}>", list[Register]()
    for i in range(0, len(columns[0]), 2):
        words = [e.word(column[i : i + 2], type) for column in columns]
        vectors = [e.pure(f"bitcast i32 {w} to {vector}") for w in words]
        if name in PLAIN and result.elem == "bf16" and not e.dialect.adds_bf16:
            pair = e.pure(e.call("llvm.fma.v2bf16", vector, [(vector, x) for x in _as_fma(name, *vectors)]))
        elif name in PLAIN:
            pair = e.pure(f"{name} {e.fast}{vector} {vectors[0]}, {vectors[1]}")
        else:
            text = e.call(f"llvm.{name}.v2{result.elem}", vector, [(vector, g) for g in vectors])
            pair = e.pure(text)
        out += e.parts(e.pure(f"bitcast {vector} {pair} to i32"), type, 2)
    e.env[result] = out[: result.count]
    return True


def _with_neighbour(register: Register) -> list[Register]:
    """The first half of a word, and the other one, whose result is nobody's: so nothing is taken out of words."""
    if isinstance(register, Part) and (register.index, register.count) == (0, 2):
        return [register, Part(register.word, 1, 2, register.type)]
    return [register]


def _is_word(pair: list[Register]) -> bool:
    a, b = pair
    return isinstance(a, Part) and isinstance(b, Part) and a.word == b.word and (a.index, b.index) == (0, 1)


@emitter("select")
def _select(e: Emitter, op: LaneOp) -> None:
    """A condition that is the same for a pair of halves chooses whole words."""
    result = op.results[0]
    conditions = e.names(op.operands[0])
    conditions = conditions if len(conditions) == result.count else conditions * result.count
    type = e.llvm[op.operands[1].elem]
    left, right = ([e.name(r) for r in e.wide(v, result.count)] for v in op.operands[1:])
    out: list[Register] = []
    for c, x, y in zip(conditions, left, right, strict=True):
        out.append(x if x == y else e.pure(f"select i1 {c}, {type} {x}, {type} {y}"))
    e.env[result] = out
