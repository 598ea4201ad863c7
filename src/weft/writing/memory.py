"""Global memory."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from xdsl.ir import Operation, SSAValue

from weft.ir import int_value

from . import kinds
from .expressions import ATOM, Text
from .words import no_word, writes
from .writer import Writer, layout_of, shape_of_value

CACHES = {2: ".ca", 3: ".cg", 4: ".wb", 5: ".cs", 6: ".wt", 7: ".cv"}
EVICTIONS = {2: "evict_first", 3: "evict_last"}


def hints(op: Operation) -> str:
    """What is asked of the caches, as arguments."""
    text = ""
    for prop, name, words in (("cache", "cache_modifier", CACHES), ("evict", "eviction_policy", EVICTIONS)):
        number = int_value(op.properties[prop]) if prop in op.properties else 0
        if number in words:
            text += f', {name}="{words[number]}"'
    if "isVolatile" in op.properties and int_value(op.properties["isVolatile"]):
        text += ", volatile=True"
    return text


def accessed(w: Writer, pointer: Text, *others: Text) -> list[Text]:
    """Pointers, and what belongs to each of them, in one layout."""
    pointer = w.whole(pointer)
    return [pointer, *(w.in_layout(t, pointer.layout) if t.shape else t for t in others)]


@writes("tt.load")
def _load(w: Writer, op: Any) -> None:
    sizes = [int(x) for x in op.properties["operandSegmentSizes"].get_values()]
    pointer, *rest = op.operands
    texts, sign = masked(w, [pointer], rest)
    pointers, *more = accessed(w, *texts)
    arguments = [pointers.text]
    if sizes[1]:
        arguments.append(sign + more.pop(0).text)
    if sizes[2]:
        arguments.append((sign and "other=") + more.pop(0).text)
    kind = pointers.kind[1:]
    text = f"gl.load({', '.join(arguments)}{hints(op)})"
    w.give(op, Text(text, kind, shape_of_value(op.results[0]), pointers.layout))


def masked(w: Writer, positional: list[SSAValue], rest: list[SSAValue]) -> tuple[list[Text], str]:
    """The texts of operands, the mask and what follows it last; and how the mask is written, `mask=` or by its place.

    Gluon computes arguments that have a name before the others. So the mask has one, unless it is computed after them.
    """
    if not rest or any(w.comes_first(value, other) for value in positional for other in rest):
        return w.take(*positional, *rest), ""
    texts = w.take(*rest, *positional)
    return [*texts[len(rest) :], *texts[: len(rest)]], "mask="


@writes("tt.store")
def _store(w: Writer, op: Any) -> None:
    pointer, value, *rest = op.operands
    texts, sign = masked(w, [pointer, value], rest)
    pointers, stored, *masks = accessed(w, *texts)
    mask = f", {sign}{masks[0].text}" if masks else ""
    w.effect(op, f"gl.store({pointers.text}, {stored.text}{mask}{hints(op)})")


ATOMICS = {1: "and", 2: "or", 3: "xor", 4: "add", 5: "add", 6: "max", 7: "min", 8: "max", 9: "min", 10: "xchg"}
ORDERS = {1: "relaxed", 2: "acquire", 3: "release", 4: "acq_rel"}
SCOPES = {1: "gpu", 2: "cta", 3: "sys"}


def _ordered(op: Operation) -> str:
    order, scope = ORDERS[int_value(op.properties["sem"])], SCOPES[int_value(op.properties["scope"])]
    text = f', sem="{order}"' if order != "acq_rel" else ""
    return text + (f', scope="{scope}"' if scope != "gpu" else "")


@writes("tt.atomic_rmw")
def _atomic(w: Writer, op: Any) -> None:
    pointer, value, *rest = accessed(w, *w.take(*op.operands))
    number = int_value(op.properties["atomic_rmw_op"])
    if number in (6, 7, 8, 9) and value.kind[0] in "iu":
        kind = kinds.with_sign(value.kind, unsigned=number > 7)
        value = w.in_kind(value, kind)
        if pointer.kind != f"*{kind}":
            made = f"{pointer.within(ATOM)}.to({kinds.name_of('*' + kind)}, bitcast=True)"
            pointer = replace(pointer, text=made, kind=f"*{kind}", binds=ATOM)
    if number in (6, 7, 8, 9) and pointer.kind[1] == "f":
        raise no_word(op, "of floating-point numbers by their bits")
    mask = rest[0] if rest else None
    shown = "" if mask is None or mask.number is True else f", {mask.text}"
    text = f"gl.atomic_{ATOMICS[number]}({pointer.text}, {value.text}{shown}{_ordered(op)})"
    result = op.results[0]
    w.give(op, Text(text, pointer.kind[1:], shape_of_value(result), pointer.layout))


@writes("tt.atomic_cas")
def _cas(w: Writer, op: Any) -> None:
    pointer, compared, value = accessed(w, *w.take(*op.operands))
    text = f"gl.atomic_cas({pointer.text}, {compared.text}, {value.text}{_ordered(op)})"
    result = op.results[0]
    w.give(op, Text(text, pointer.kind[1:], shape_of_value(result), pointer.layout))


@writes("llvm.intr.assume")
def _assume(w: Writer, op: Any) -> None:
    (condition,) = w.take(*op.operands)
    w.effect(op, f"gl.assume({condition.text})")


@writes("weft.end_unless")
def _end_unless(w: Writer, op: Any) -> None:
    (condition,) = w.take(*op.operands)
    w.effect(op, f"gl.extra.programs.end_unless({condition.text})")


@writes("gpu.barrier", "ttg.local_barrier")
def _barrier(w: Writer, op: Any) -> None:
    w.effect(op, "gl.thread_barrier()")


ROWS = "gl.extra.rows"


@writes("weft.load_row")
def _load_row(w: Writer, op: Any) -> None:
    row, shift, end, other = w.take(*op.operands)
    value = op.results[0]
    run, size = int_value(op.properties["run"]), shape_of_value(value)[0]
    aligned = ", aligned=True" if "aligned" in op.properties else ""
    at = f"{row.text}, {shift.text}, {end.text}, {other.text}, {size}, {run}, {w.layout(value)}"
    text = f"{ROWS}.load_row({at}{aligned}{hints(op)})"
    w.give(op, Text(text, row.kind[1:], shape_of_value(value), layout_of(value)))


@writes("weft.store_row")
def _store_row(w: Writer, op: Any) -> None:
    row, shift, end, value = w.take(*op.operands)
    value = w.whole(value)
    run = int_value(op.properties["run"])
    at = f"{row.text}, {shift.text}, {end.text}, {value.text}, {run}"
    w.effect(op, f"{ROWS}.store_row({at}{hints(op)})")
