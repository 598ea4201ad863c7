"""Histograms: counters in shared memory, to which every lane adds for what it holds."""

from __future__ import annotations

from xdsl.ir import Operation

from weft.ir.lane import ELEMENT_BITS, Value
from weft.layouts import LinearLayout, f2

from .blocks import in_each_block
from .context import Context, lowering, tile_shape
from .convert import convert
from .shapes import settle
from .shared import load_tile, store_tile


@lowering("tt.histogram")
def _histogram(c: Context, op: Operation) -> None:
    """Values outside of the bins, and those masked off, do not count."""
    source, result = op.operands[0], op.results[0]
    source_layout, bins = c.layout(source), tile_shape(result)[0]
    layout = in_each_block(source_layout)
    operands = [
        c.whole(x) if layout == source_layout else convert(c, c.whole(x), source_layout, layout) for x in op.operands
    ]
    copies = f2.Echelon()
    kept = [1 << i for i, x in enumerate(layout.in_columns("register")) if copies.add(x)]
    registers = f2.span(kept)
    value = _as_number(c, c.build.rename(operands[0], registers))
    inside = c.build.op("arith.cmpi", [value, c.number(bins, value.elem)], "i1", predicate=6)
    mask = c.build.rename(operands[1], registers) if len(operands) > 1 else None
    active = c.all_of([inside, mask, *c.once(layout)])

    memory = LinearLayout.identity_1d(bins, "offset", "dim0")
    base = c.allocate(4 * bins, "histogram")
    counts = in_each_block(c.layout(result))
    zeros = c.build.rename(c.number(0), [0] * counts.in_dims["register"])
    store_tile(c, zeros, counts, memory, base, 4)
    offset = c.build.op("arith.muli", [_low(c, value), c.number(4)], "i32")
    ones = c.build.rename(c.number(1), [0] * value.count)
    # Nothing follows from the order of the additions; the barriers around them say who sees the sums.
    c.build.atomic("shared", "add", c.plus(offset, base), ones, active, order="relaxed", scope="cta")
    settle(c, result, load_tile(c, "i32", counts, memory, base, 4), counts)


def _as_number(c: Context, value: Value) -> Value:
    """At least 32 bits; what is negative stays outside of the bins."""
    return c.build.op("arith.extsi", [value], "i32") if ELEMENT_BITS[value.elem] < 32 else value


def _low(c: Context, value: Value) -> Value:
    return value if value.elem == "i32" else c.build.op("arith.trunci", [value], "i32")
