"""What is neither arithmetic nor memory: prints and assertions, assembly, functions of a library."""

from __future__ import annotations

from functools import cache
from typing import Any

from weft.ir import int_value, ints_of
from weft.ops.libdevice import overloads

from . import kinds
from .expressions import Text
from .words import no_word, writes
from .writer import Writer, shape_of_value


def _string(attribute: Any) -> str:
    return str(attribute.data)


@writes("tt.print")
def _print(w: Writer, op: Any) -> None:
    texts = [w.whole(t) for t in w.take(*op.operands)]
    signs = [bool(v) for v in ints_of(op.properties["isSigned"])]
    shown = []
    for text, signed in zip(texts, signs, strict=True):
        is_number = kinds.is_integer(text.kind) and text.kind != "i1"
        shown.append(w.in_kind(text, kinds.with_sign(text.kind, unsigned=not signed)) if is_number else text)
    more = ", hex=True" if int_value(op.properties["hex"]) else ""
    prefix = _string(op.properties["prefix"])
    w.effect(op, f"gl.device_print({', '.join([repr(prefix), *(t.text for t in shown)])}{more})")


@writes("tt.assert")
def _assert(w: Writer, op: Any) -> None:
    (condition,) = w.take(*op.operands)
    w.effect(op, f"gl.device_assert({w.whole(condition).text}, {_string(op.properties['message'])!r})")


@writes("tt.elementwise_inline_asm")
def _assembly(w: Writer, op: Any) -> None:
    texts = [w.whole(t) for t in w.take(*op.operands)]
    texts = [texts[0], *(w.in_layout(t, texts[0].layout) for t in texts[1:])] if texts else []
    results = [kinds.kind_of(r.type) for r in op.results]
    named = ", ".join(map(kinds.name_of, results))
    is_pure, pack = bool(int_value(op.properties["pure"])), int_value(op.properties["packed_element"])
    assembly, constraints = _string(op.properties["asm_string"]), _string(op.properties["constraints"])
    given = f"[{', '.join(t.text for t in texts)}]"
    dtype = named if len(results) == 1 else f"({named})"
    text = f"gl.inline_asm_elementwise({assembly!r}, {constraints!r}, {given}, {dtype}, {is_pure}, {pack})"
    layout = texts[0].layout if texts else None
    if len(results) == 1:
        w.give(op, Text(text, results[0], shape_of_value(op.results[0]), layout), effect=not is_pure)
        return
    w.several(op, text, [Text("", k, shape_of_value(r), layout) for k, r in zip(results, op.results, strict=True)])


@cache
def _names() -> dict[str, tuple[str, str, str]]:
    """Functions of the library by the symbols that they are linked by: name, kinds of the arguments, of the result."""
    return {
        symbol: (name, "".join(arguments), result)
        for name, table in overloads().items()
        for arguments, result, symbol in table
    }


LETTERS = {"f": "f32", "d": "f64", "i": "i32", "l": "i64", "u": "u32", "U": "u64"}


@writes("tt.extern_elementwise")
def _library(w: Writer, op: Any) -> None:
    symbol = _string(op.properties["symbol"])
    found = _names().get(symbol)
    if found is None:
        raise no_word(op, f"of `{symbol}`", "call a function of libdevice")
    name, arguments, result = found
    texts = [w.whole(t) for t in w.take(*op.operands)]
    texts = [w.in_kind(t, LETTERS[a]) if kinds.is_integer(t.kind) else t for t, a in zip(texts, arguments, strict=True)]
    layout = next((t.layout for t in texts if t.shape), None)
    texts = [w.in_layout(t, layout) if t.shape else t for t in texts]
    text = f"{w.module('libdevice', 'gluon.language.extra')}.{name}({', '.join(t.text for t in texts)})"
    w.give(op, Text(text, LETTERS[result], shape_of_value(op.results[0]), layout))
