"""Histograms: counters in shared memory, to which every lane adds for what it holds."""

from __future__ import annotations

from xdsl.ir import Operation

from weft.ir.lane import ELEMENT_BITS, Value
from weft.layouts import LinearLayout, f2

from .context import Context, lowering, tile_shape
from .shared import load_tile, store_tile


@lowering("tt.histogram")
def _histogram(c: Context, op: Operation) -> None:
    """Values outside of the bins, and those masked off, do not count."""
    source, result = op.operands[0], op.results[0]
    layout, bins = c.layout(source), tile_shape(result)[0]
    copies = f2.Echelon()
    kept = [1 << i for i, x in enumerate(layout.in_columns("register")) if copies.add(x)]
    registers = f2.span(kept)
    value = _as_number(c, c.build.rename(c.whole(source), registers))
    inside = c.build.op("arith.cmpi", [value, c.number(bins, value.elem)], "i1", predicate=6)
    mask = c.build.rename(c.whole(op.operands[1]), registers) if len(op.operands) > 1 else None
    active = c.all_of([inside, mask, *c.once(layout)])

    memory = LinearLayout.identity_1d(bins, "offset", "dim0")
    base = c.allocate(4 * bins, "histogram")
    zeros = c.build.rename(c.number(0), [0] * c.count(result.type))
    store_tile(c, zeros, c.layout(result), memory, base, 4)
    offset = c.build.op("arith.muli", [_low(c, value), c.number(4)], "i32")
    c.build.atomic("shared", "add", c.plus(offset, base), c.build.rename(c.number(1), [0] * value.count), active)
    c[result] = load_tile(c, "i32", c.layout(result), memory, base, 4)


def _as_number(c: Context, value: Value) -> Value:
    """At least 32 bits; what is negative stays outside of the bins."""
    return c.build.op("arith.extsi", [value], "i32") if ELEMENT_BITS[value.elem] < 32 else value


def _low(c: Context, value: Value) -> Value:
    return value if value.elem == "i32" else c.build.op("arith.trunci", [value], "i32")
