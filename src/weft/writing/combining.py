"""Reductions and scans, with the functions that combine two elements."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from xdsl.ir import Block

from weft.ir import int_value
from weft.ir.gpu import naming

from . import kinds
from .expressions import Text
from .shapes import as_wanted
from .words import writes
from .writer import Names, Writer, shape_of_value

WHOLE = ("f32", "f64", "i32", "i64", "u32", "u64")
"""Kinds of which Gluon's reductions by name make no other kind first."""
BY_NAME = {
    "arith.addf": "sum",
    "arith.addi": "sum",
    "arith.maxnumf": "max",
    "arith.maxsi": "max",
    "arith.maxui": "max",
    "arith.minnumf": "min",
    "arith.minsi": "min",
    "arith.minui": "min",
    "arith.xori": "xor_sum",
}


def helper(w: Writer, body: Block, kinds: list[str], stem: str) -> str:
    """The name of a function with this body, which is written before the kernel."""
    names = Names(w.shared.reserved, w.shared.names)
    inner = Writer(body, w.shared, names)
    for value, kind in zip(body.args, kinds, strict=True):
        name = inner.name(value)
        inner.texts[value] = Text(name, kind)
    parameters = ", ".join(inner.texts[v].text for v in body.args)
    last = inner.block(body)
    texts = [inner.whole(t) for t in inner.take(*last.operands)]
    inner.flush()
    inner.statement(f"return {', '.join(t.text for t in texts)}")
    text = f"({parameters}):\n" + "\n".join(line for line in inner.lines if not line.lstrip().startswith("#"))
    known = w.shared.helpers.get(text)
    if known is None:
        known = w.shared.helpers[text] = w.shared.names.unused(stem)
    return known


def _name(body: Block, values: list[Text]) -> str | None:
    """A reduction that Gluon has a name for."""
    ops = list(body.ops)
    if len(values) != 1 or len(ops) != 2 or list(ops[0].operands) != list(body.args) or values[0].kind not in WHOLE:
        return None
    name = BY_NAME.get(ops[0].name)
    unsigned = ops[0].name.endswith("ui")
    if name in ("max", "min") and ops[0].name[-2:] in ("si", "ui") and unsigned != values[0].kind.startswith("u"):
        return None
    return name


@writes("tt.reduce")
def _reduce(w: Writer, op: Any) -> None:
    values = [w.whole(t) for t in w.take(*op.operands)]
    values = [values[0], *(w.in_layout(t, values[0].layout) for t in values[1:])]
    axis = int_value(op.properties["axis"])
    body = op.regions[0].blocks[0]
    name = _name(body, values)
    if name is not None:
        text = f"gl.{name}({values[0].text}, {axis})"
    else:
        function = helper(w, body, [t.kind for t in values] * 2, "combine")
        text = f"gl.reduce({_listed(values)}, {axis}, {function})"
    layout = None
    if shape_of_value(op.results[0]):
        assert values[0].layout is not None
        layout = naming.reduced(values[0].layout, axis)
    _give_all(w, op, values, text, layout)


def _listed(values: list[Text]) -> str:
    return values[0].text if len(values) == 1 else f"({', '.join(t.text for t in values)})"


def _give_all(w: Writer, op: Any, values: list[Text], text: str, layout: Any) -> None:
    """The results of an operation on several tiles."""
    if len(values) == 1:
        made = Text(text, values[0].kind, shape_of_value(op.results[0]), layout)
        w.give(op, as_wanted(w, op, made) if layout is not None else made)
        return
    results = [Text("", given.kind, shape_of_value(r), layout) for given, r in zip(values, op.results, strict=True)]
    w.several(op, text, results)


@writes("tt.scan")
def _scan(w: Writer, op: Any) -> None:
    values = [w.whole(t) for t in w.take(*op.operands)]
    values = [values[0], *(w.in_layout(t, values[0].layout) for t in values[1:])]
    axis = int_value(op.properties["axis"])
    function = helper(w, op.regions[0].blocks[0], [t.kind for t in values] * 2, "combine")
    reverse = ", reverse=True" if int_value(op.properties["reverse"]) else ""
    _give_all(w, op, values, f"gl.associative_scan({_listed(values)}, {axis}, {function}{reverse})", values[0].layout)


@writes("tt.map_elementwise")
def _map(w: Writer, op: Any) -> None:
    values = [w.whole(t) for t in w.take(*op.operands)]
    values = [values[0], *(w.in_layout(t, values[0].layout) for t in values[1:])]
    pack = int_value(op.properties["pack"])
    body = op.regions[0].blocks[0]
    function = helper(w, body, [t.kind for t in values for _ in range(pack)], "element")
    more = f", pack={pack}" if pack > 1 else ""
    text = f"gl.map_elementwise({function}, {', '.join(t.text for t in values)}{more})"
    given = [replace(values[0], kind=kinds.kind_of(r.type)) for r in op.results]
    _give_all(w, op, given, text, values[0].layout)
