"""Operations on each element, and constants."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from xdsl.ir import Operation, SSAValue

from weft.ir import int_value

from . import kinds
from .expressions import AND, ATOM, COMPARED, OR, PRODUCT, SHIFT, SUM, UNARY, XOR, Text
from .words import TL, no_word, writes
from .writer import Writer, layout_of, shape_of_value

ANY, SIGNED, UNSIGNED = None, False, True

BINARY: dict[str, tuple[str, int, bool | None]] = {
    "arith.addi": ("+", SUM, ANY),
    "arith.subi": ("-", SUM, ANY),
    "arith.muli": ("*", PRODUCT, ANY),
    "arith.divsi": ("//", PRODUCT, SIGNED),
    "arith.divui": ("//", PRODUCT, UNSIGNED),
    "arith.remsi": ("%", PRODUCT, SIGNED),
    "arith.remui": ("%", PRODUCT, UNSIGNED),
    "arith.andi": ("&", AND, ANY),
    "arith.ori": ("|", OR, ANY),
    "arith.xori": ("^", XOR, ANY),
    "arith.shli": ("<<", SHIFT, ANY),
    "arith.shrsi": (">>", SHIFT, SIGNED),
    "arith.shrui": (">>", SHIFT, UNSIGNED),
    "arith.addf": ("+", SUM, ANY),
    "arith.subf": ("-", SUM, ANY),
    "arith.mulf": ("*", PRODUCT, ANY),
    "arith.divf": ("/", PRODUCT, ANY),
    "arith.remf": ("%", PRODUCT, ANY),
}
"""Operators: the text, how tightly it binds, whether integers have a sign."""

CALLS: dict[str, tuple[str, bool | None]] = {
    "arith.maxsi": ("maximum", SIGNED),
    "arith.maxui": ("maximum", UNSIGNED),
    "arith.minsi": ("minimum", SIGNED),
    "arith.minui": ("minimum", UNSIGNED),
    "arith.maxnumf": ("maximum", ANY),
    "arith.minnumf": ("minimum", ANY),
    "tt.mulhiui": ("umulhi", UNSIGNED),
    "tt.precise_divf": ("div_rn", ANY),
}
FUNCTIONS = {
    "math.exp": "exp",
    "math.exp2": "exp2",
    "math.log": "log",
    "math.log2": "log2",
    "math.sin": "sin",
    "math.cos": "cos",
    "math.sqrt": "sqrt",
    "math.rsqrt": "rsqrt",
    "math.erf": "erf",
    "math.floor": "floor",
    "math.ceil": "ceil",
    "math.absf": "abs",
    "math.absi": "abs",
    "tt.precise_sqrt": "sqrt_rn",
}
COMPARISONS = ("==", "!=", "<", "<=", ">", ">=", "<", "<=", ">", ">=")
"""By the number of a predicate of arith.cmpi."""
FLOAT_COMPARISONS = {1: "==", 2: ">", 3: ">=", 4: "<", 5: "<=", 13: "!="}
"""By the number of a predicate of arith.cmpf."""


def meet(w: Writer, op: Operation, values: list[Text], sign: bool | None = ANY) -> list[Text]:
    """Operands as Gluon's operators and functions take them: one layout, one kind, at least one of them no number."""
    kind = next((t.kind for t in values if t.number is None), values[0].kind)
    if kinds.is_integer(kind) and kind != "i1":
        if sign is not ANY:
            kind = kinds.with_sign(kind, unsigned=sign)
        else:
            signs = [t.kind.startswith("u") for t in values if t.number is None and t.kind != "i1"]
            kind = kinds.with_sign(kind, unsigned=bool(signs) and all(signs))
    met = [w.in_kind(t, kind) if kinds.is_integer(t.kind) else t for t in in_one_layout(w, op, values)]
    if all(t.number is not None for t in met):
        met[0] = w.whole(met[0]) if met[0].shape else as_tensor(met[0])
    return met


def in_one_layout(w: Writer, op: Operation, values: list[Text]) -> list[Text]:
    """Tiles that meet, with one name for their layout: where smaller ones are spread, the name that the IR has."""
    layout = next((t.layout for t in values if t.shape and t.number is None and t.inner is None), None)
    if layout is None or any(t.inner for t in values):
        layout = layout_of(op.results[0]) or layout
    return [w.in_layout(t, layout) if t.shape else t for t in values]


def signed_again(w: Writer, given: list[Text], text: Text) -> Text:
    """What was computed without signs of numbers that have signs, as one of them."""
    if text.kind.startswith("u") and any(t.number is None and t.kind.startswith("i") for t in given):
        return w.in_kind(text, kinds.with_sign(text.kind, unsigned=False))
    return text


def as_tensor(text: Text) -> Text:
    """A number as a scalar of the kernel's run."""
    if text.number is None:
        return text
    kind = kinds.name_of(text.kind)
    made = f"gl.to_tensor({text.text})" if text.kind == "i32" else f"gl.full([], {text.text}, {kind})"
    return replace(text, text=made, binds=ATOM, number=None)


def result(w: Writer, op: Operation, values: list[Text], text: str, kind: str | None = None, binds: int = ATOM) -> Text:
    """The text of a result that lies as its operands do."""
    value = op.results[0]
    first = next((t for t in values if t.layout is not None and t.number is None), None)
    layout = first.layout if first is not None else layout_of(value)
    return Text(text, kind or values[0].kind, shape_of_value(value), layout, binds)


@writes(*BINARY)
def _binary(w: Writer, op: Any) -> None:
    sign, binds, signs = BINARY[op.name]
    given = w.take(*op.operands)
    left, right = spread_together(w, op, meet(w, op, given, signs))
    if op.name == "arith.divf" and left.kind in ("f16", "bf16"):
        raise no_word(op, f"of {left.kind}", "divide in float32, and convert the quotient")
    if op.name == "arith.xori" and (right.number is True or right.number == -1) and left.number is None:
        w.give(op, result(w, op, [left], f"~{left.within(UNARY)}", binds=UNARY))
        return
    text = f"{left.within(binds)} {sign} {right.within(binds - 1)}"
    w.give(op, signed_again(w, given, result(w, op, [left, right], text, _kind(left, right), binds)))


def spread_together(w: Writer, op: Operation, values: list[Text]) -> list[Text]:
    """Operands of which Gluon makes tiles of one shape; where it would not, they are made that before."""
    shape = shape_of_value(op.operands[0])
    if not shape:
        return values
    inner = [t.inner if t.inner is not None else t.shape for t in values if t.number is None]
    full = tuple(max((s[d] for s in inner if len(s) == len(shape)), default=0) for d in range(len(shape)))
    if full == shape:
        return values
    values = list(values)
    for i, t in enumerate(values):
        if t.number is None:
            values[i] = w.whole(t)
            break
    else:
        values[0] = w.whole(values[0])
    return values


def _kind(*values: Text) -> str:
    for t in values:
        if t.number is None and t.kind.startswith("u"):
            return t.kind
    return next((t.kind for t in values if t.number is None), values[0].kind)


@writes("tt.addptr")
def _addptr(w: Writer, op: Any) -> None:
    pointer, offset = w.take(*op.operands)
    pointer, offset = in_one_layout(w, op, [pointer, offset])
    if offset.number is not None and offset.kind not in ("i32",):
        offset = w.whole(offset)
    pointer, offset = spread_together(w, op, [pointer, offset])
    text = f"{pointer.within(SUM)} + {offset.within(PRODUCT)}"
    w.give(op, result(w, op, [pointer, offset], text, pointer.kind, SUM))


@writes(*CALLS)
def _call(w: Writer, op: Any) -> None:
    name, signs = CALLS[op.name]
    given = w.take(*op.operands)
    values = spread_together(w, op, [_exact(w, t) for t in meet(w, op, given, signs)])
    text = f"gl.{name}({', '.join(t.text for t in values)})"
    w.give(op, signed_again(w, given, result(w, op, values, text, _kind(*values))))


@writes("arith.maximumf", "arith.minimumf")
def _extremum(w: Writer, op: Any) -> None:
    values = spread_together(w, op, [_exact(w, t) for t in meet(w, op, w.take(*op.operands))])
    name = "maximum" if op.name == "arith.maximumf" else "minimum"
    both = ", ".join(t.text for t in values)
    w.module("tl", TL)
    w.give(op, result(w, op, values, f"gl.{name}({both}, propagate_nan=tl.PropagateNan.ALL)", _kind(*values)))


@writes(*FUNCTIONS)
def _function(w: Writer, op: Any) -> None:
    (value,) = w.take(*op.operands)
    value = w.whole(value)
    w.give(op, result(w, op, [value], f"gl.{FUNCTIONS[op.name]}({value.text})"))


@writes("math.fma")
def _fma(w: Writer, op: Any) -> None:
    values = [w.whole(t) for t in w.take(*op.operands)]
    w.give(op, result(w, op, values, f"gl.fma({', '.join(t.text for t in values)})"))


@writes("arith.negf")
def _neg(w: Writer, op: Any) -> None:
    (value,) = w.take(*op.operands)
    value = w.whole(value)
    w.give(op, result(w, op, [value], f"-{value.within(UNARY)}", binds=UNARY))


@writes("arith.cmpi")
def _cmpi(w: Writer, op: Any) -> None:
    number = int_value(op.properties["predicate"])
    signs = ANY if number < 2 else number > 5
    _compared(w, op, COMPARISONS[number], signs)


@writes("arith.cmpf")
def _cmpf(w: Writer, op: Any) -> None:
    number = int_value(op.properties["predicate"])
    if number not in FLOAT_COMPARISONS:
        raise no_word(op, f"with predicate {number}", "compare with the other sign, and turn the result around with ~")
    _compared(w, op, FLOAT_COMPARISONS[number], ANY)


def _compared(w: Writer, op: Any, sign: str, signs: bool | None) -> None:
    values = [_exact(w, t) for t in meet(w, op, w.take(*op.operands), signs)]
    left, right = spread_together(w, op, values)
    text = f"{left.within(OR)} {sign} {right.within(OR)}"
    w.give(op, result(w, op, [left, right], text, "i1", COMPARED))


def _exact(w: Writer, text: Text) -> Text:
    """A number in a comparison, which Gluon takes as an int32 or a float32: of other kinds it is said."""
    return text if text.number is None or text.kind in ("i1", "i32", "u32", "f32") else w.whole(text)


@writes("arith.select")
def _select(w: Writer, op: Any) -> None:
    condition, *values = w.take(*op.operands)
    a, b = values
    if a.number is not None and b.number is not None:
        a = as_tensor(a) if not a.shape else w.whole(a)
    a, b = meet(w, op, [a, b]) if a.shape or b.shape else (a, b)
    if kinds.is_integer(a.kind):
        kind = _kind(a, b)
        a, b = w.in_kind(a, kind), w.in_kind(b, kind)
    condition, a, b = in_one_layout(w, op, [condition, a, b])
    a, b = spread_together(w, op, [a, b]) if not condition.shape or condition.spread else (a, b)
    text = f"gl.where({condition.text}, {a.text}, {b.text})"
    w.give(op, result(w, op, [a, b, condition], text, _kind(a, b)))


CASTS = {
    "arith.extsi": SIGNED,
    "arith.extui": UNSIGNED,
    "arith.trunci": ANY,
    "arith.sitofp": SIGNED,
    "arith.uitofp": UNSIGNED,
    "arith.fptosi": SIGNED,
    "arith.fptoui": UNSIGNED,
    "arith.extf": ANY,
    "arith.truncf": ANY,
    "tt.fp_to_fp": ANY,
    "tt.ptr_to_int": SIGNED,
    "tt.int_to_ptr": ANY,
    "tt.bitcast": ANY,
    "arith.bitcast": ANY,
}


@writes(*CASTS)
def _cast(w: Writer, op: Any) -> None:
    (value,) = w.take(*op.operands)
    signs = CASTS[op.name]
    value = w.whole(value)
    if value.number is not None:
        value = as_tensor(value)
    kind = kinds.kind_of(op.results[0].type)
    if op.name in ("arith.extsi", "arith.sitofp", "arith.extui", "arith.uitofp"):
        if value.kind == "i1" and signs is SIGNED:
            raise no_word(op, "of a bool that is to become -1")
        value = w.in_kind(value, kinds.with_sign(value.kind, unsigned=bool(signs)))
    elif op.name == "arith.fptoui":
        kind = kinds.with_sign(kind, unsigned=True)
    elif op.name == "arith.trunci":
        if kind == "i1":
            raise no_word(op, "to a bool")
        kind = kinds.with_sign(kind, unsigned=value.kind.startswith("u"))
    more = ""
    if op.name.endswith("bitcast"):
        more = ", bitcast=True"
    elif op.name == "tt.fp_to_fp" and "rounding" in op.properties:
        mode = int_value(op.properties["rounding"])
        if kinds.bits_of(kind) < kinds.bits_of(value.kind):
            more = f', fp_downcast_rounding="{("rtz", "rtne")[mode]}"'
    text = f"{value.within(ATOM)}.to({kinds.name_of(kind)}{more})"
    w.give(op, result(w, op, [value], text, kind))


@writes("arith.constant")
def _constant(w: Writer, op: Any) -> None:
    """Written where it is used; the beginning of what a loop carries, where it stands."""
    value: SSAValue = op.results[0]
    if w.variables.is_shared(value):
        w.flush()
        w.comment(op)
        w.assign(value, w.number(value))


@writes("tt.clampf")
def _clamp(w: Writer, op: Any) -> None:
    values = [w.whole(t) for t in w.take(*op.operands)]
    nan = "ALL" if int_value(op.properties["propagateNan"]) else "NONE"
    w.module("tl", TL)
    text = f"tl.clamp({', '.join(t.text for t in values)}, propagate_nan=tl.PropagateNan.{nan})"
    w.give(op, result(w, op, values, text))
