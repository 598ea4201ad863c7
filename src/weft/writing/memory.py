"""Global memory."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from xdsl.ir import Operation

from weft.ir import int_value

from . import kinds
from .expressions import ATOM, Text
from .words import no_word, writes
from .writer import Writer, shape_of_value

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
    segments = [int(x) for x in op.properties["operandSegmentSizes"].get_values()]
    pointer, *rest = accessed(w, *w.take(*op.operands))
    text = f"gl.load({pointer.text}"
    if segments[1]:
        text += f", mask={rest.pop(0).text}"
    if segments[2]:
        text += f", other={rest.pop(0).text}"
    value = op.results[0]
    kind = pointer.kind[1:]
    w.give(op, Text(f"{text}{hints(op)})", kind, shape_of_value(value), pointer.layout))


@writes("tt.store")
def _store(w: Writer, op: Any) -> None:
    pointer, value, *rest = accessed(w, *w.take(*op.operands))
    mask = f", mask={rest[0].text}" if rest else ""
    w.effect(op, f"gl.store({pointer.text}, {value.text}{mask}{hints(op)})")


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
    shown = "" if mask is None or mask.number is True else f", mask={mask.text}"
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


@writes("gpu.barrier", "ttg.local_barrier")
def _barrier(w: Writer, op: Any) -> None:
    w.effect(op, "gl.thread_barrier()")

