"""Products of matrices."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from xdsl.dialects import scf
from xdsl.ir import BlockArgument, SSAValue

from weft.ir import int_value

from .expressions import Text
from .words import HOMES, OF_LAYOUTS, PRODUCTS, UNDER_WAY, writes
from .writer import Writer, shape_of_value


@writes("tt.dot")
def _dot(w: Writer, op: Any) -> None:
    a, b, acc = (w.whole(t) for t in w.take(*op.operands))
    value = op.results[0]
    function = PRODUCTS.get(type(acc.layout))
    several = OF_LAYOUTS.get(type(acc.layout))
    if several is not None:
        text = f"{several(acc.layout)}({a.text}, {b.text}, {acc.text})"
    elif function is not None:
        text = f"{w.module(function, HOMES[function])}({a.text}, {b.text}, {acc.text}{precision_of(op, a.kind)})"
    else:
        text = f"gl.dot_fma({a.text}, {b.text}, {acc.text})"
    w.give(op, Text(text, acc.kind, shape_of_value(value), acc.layout))


PRECISIONS = {0: "tf32", 1: "tf32x3", 2: "ieee"}


def precision_of(op: Any, kind: str) -> str:
    """How operands are rounded, which is asked of float32 alone; nothing where it is as without a word."""
    number = int_value(op.properties["inputPrecision"]) if "inputPrecision" in op.properties else 0
    return f', input_precision="{PRECISIONS[number]}"' if number and kind == "f32" else ""


def is_begun(value: SSAValue, seen: frozenset[SSAValue] = frozenset()) -> bool:
    """Whether a value is a product under way, or what a loop or a branch leaves is one."""
    if value in seen:
        return False
    seen = seen | {value}
    owner = value.owner
    if isinstance(value, BlockArgument):
        loop = value.block.parent_op()
        if not isinstance(loop, scf.ForOp) or value.index == 0:
            return False
        return is_begun(loop.results[value.index - 1], seen)
    if isinstance(owner, scf.ForOp):
        last = owner.regions[0].blocks[0].last_op
        assert last is not None
        return is_begun(last.operands[value.index], seen)  # type: ignore[attr-defined]
    if isinstance(owner, scf.IfOp):
        ends = [region.blocks[0].last_op for region in owner.regions if region.blocks]
        return any(is_begun(end.operands[value.index], seen) for end in ends if end)  # type: ignore[attr-defined]
    return owner.name in UNDER_WAY and "isAsync" in owner.properties  # type: ignore[union-attr]


def begun(w: Writer, text: Text) -> Text:
    """A value as a product that may be under way, as a loop carries it."""
    if text.begun:
        return text
    (function,) = set(UNDER_WAY.values())
    return replace(w.whole(text), text=f"{w.module(function, HOMES[function])}({w.whole(text).text})", begun=True)
