"""Operations that make tiles, or rearrange them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from xdsl.ir import Operation

from weft.ir import int_value, ints_of
from weft.ir.gpu import naming
from weft.layouts import DistributedLayout, SliceLayout

from . import kinds
from .arithmetic import BINARY, CALLS, result
from .expressions import ATOM, Text
from .words import writes
from .writer import Writer, layout_of, shape_of_value


@writes("tt.get_program_id")
def _program_id(w: Writer, op: Any) -> None:
    w.give(op, Text(f"gl.program_id({int_value(op.properties['axis'])})", "i32"))


@writes("tt.get_num_programs")
def _num_programs(w: Writer, op: Any) -> None:
    w.give(op, Text(f"gl.num_programs({int_value(op.properties['axis'])})", "i32"))


@writes("tt.make_range")
def _make_range(w: Writer, op: Any) -> None:
    start, end = int_value(op.properties["start"]), int_value(op.properties["end"])
    value = op.results[0]
    text = f"gl.arange({start}, {end}, {w.layout(value)})"
    w.give(op, Text(text, "i32", shape_of_value(value), layout_of(value)))


@writes("tt.splat")
def _splat(w: Writer, op: Any) -> None:
    w.spread(op.results[0], op.operands[0])


@writes("tt.unsplat")
def _unsplat(w: Writer, op: Any) -> None:
    (source,) = w.take(op.operands[0])
    source = w.whole(source)
    w.give(op, Text(f"{source.within(ATOM)}.item()", source.kind))


@writes("tt.broadcast")
def _broadcast(w: Writer, op: Any) -> None:
    """Where the next operation spreads it, nothing is written."""
    value = op.results[0]
    user = next(iter(value.uses)).operation if value.has_one_use() else None
    if user is not None and _is_next(op, user) and user.name in SPREADING and not value.name_hint:
        w.spread(value, op.operands[0])
        return
    (source,) = w.take(op.operands[0])
    source = w.whole(source)
    wanted = layout_of(value)
    assert wanted is not None and source.layout is not None
    if wanted.to_linear(source.shape) == source.layout.to_linear(source.shape):
        source = w.in_layout(source, wanted)
    else:  # it has copies that the result does not have in their place
        made = f"gl.convert_layout({source.text}, {w.shared.layouts.text(wanted)})"
        source = replace(source, text=made, layout=wanted, binds=ATOM)
    text = f"{source.within(ATOM)}.broadcast_to({list(shape_of_value(value))})"
    w.give(op, replace(result(w, op, [source], text), layout=source.layout))


SPREADING = ("tt.addptr", "arith.select", "arith.cmpi", "arith.cmpf", *BINARY, *CALLS)
"""Operations that spread their operands to one shape."""


def _is_next(op: Operation, user: Operation) -> bool:
    """Whether nothing is computed between an operation and another."""
    at = op.next_op
    while at is not None and at is not user and at.name in ("tt.splat", "tt.broadcast", "arith.constant"):
        at = at.next_op
    return at is user


@writes("tt.expand_dims")
def _expand_dims(w: Writer, op: Any) -> None:
    (source,) = w.take(*op.operands)
    axis = int_value(op.properties["axis"])
    value = op.results[0]
    wanted = layout_of(value)
    assert wanted is not None
    source = w.whole(source)
    shape = shape_of_value(value)
    assert source.layout is not None
    if SliceLayout(axis, wanted).to_linear(source.shape) == source.layout.to_linear(source.shape):
        source = w.in_layout(source, SliceLayout(axis, wanted))
    sliced = source.layout
    if not (isinstance(sliced, SliceLayout) and sliced.dim == axis):
        assert sliced is not None
        layout = naming.reshaped(sliced, source.shape, shape)
        text = Text(f"gl.reshape({source.text}, {list(shape)})", source.kind, shape, layout)
        w.give(op, as_wanted(w, op, text))
        return
    index = ", ".join("None" if d == axis else ":" for d in range(len(shape_of_value(value))))
    text = Text(f"{source.within(ATOM)}[{index}]", source.kind, shape_of_value(value), sliced.parent)
    w.give(op, as_wanted(w, op, text))


def as_wanted(w: Writer, op: Operation, text: Text, value: Any = None) -> Text:
    """A tile in the layout that the result has: converted, where the operation gives another one."""
    value = op.results[0] if value is None else value
    wanted = layout_of(value)
    assert wanted is not None and text.layout is not None
    shape = shape_of_value(value)
    if text.layout == wanted or text.layout.to_linear(shape) == wanted.to_linear(shape):
        return text
    made = f"gl.convert_layout({text.text}, {w.shared.layouts.text(wanted)})"
    return replace(text, text=made, layout=wanted, binds=ATOM)


@writes("tt.trans")
def _trans(w: Writer, op: Any) -> None:
    (source,) = w.take(*op.operands)
    source = w.whole(source)
    order = [int(d) for d in ints_of(op.properties["order"])]
    assert source.layout is not None
    layout = naming.transposed(source.layout, source.shape, order)
    text = Text(f"gl.permute({source.text}, {order})", source.kind, shape_of_value(op.results[0]), layout)
    w.give(op, as_wanted(w, op, text))


@writes("tt.reshape")
def _reshape(w: Writer, op: Any) -> None:
    (source,) = w.take(*op.operands)
    source = w.whole(source)
    value = op.results[0]
    shape = shape_of_value(value)
    assert source.layout is not None
    layout = naming.reshaped(source.layout, source.shape, shape)
    text = Text(f"gl.reshape({source.text}, {list(shape)})", source.kind, shape, layout)
    w.give(op, as_wanted(w, op, text))


@writes("tt.join")
def _join(w: Writer, op: Any) -> None:
    a, b = (w.whole(t) for t in w.take(*op.operands))
    b = w.in_layout(b, a.layout)
    assert a.layout is not None
    layout = naming.joined(a.layout, a.shape)
    text = Text(f"gl.join({a.text}, {b.text})", a.kind, shape_of_value(op.results[0]), layout)
    w.give(op, as_wanted(w, op, text))


@writes("tt.split")
def _split(w: Writer, op: Any) -> None:
    (source,) = w.take(*op.operands)
    source = w.whole(source)
    assert source.layout is not None
    layout: DistributedLayout = naming.split(source.layout, source.shape)
    w.flush()
    w.comment(op)
    names = [w.name(r) for r in op.results]
    w.statement(f"{', '.join(names)} = gl.split({source.text})")
    for value, name in zip(op.results, names, strict=True):
        text = Text(name, source.kind, shape_of_value(value), layout)
        wanted = as_wanted(w, op, text, value)
        if wanted is not text:
            w.statement(f"{name} = {wanted.text}")
        w.texts[value] = wanted.named(name)


@writes("ttg.convert_layout")
def _convert(w: Writer, op: Any) -> None:
    (source,) = w.take(*op.operands)
    source = w.whole(source)
    value = op.results[0]
    text = Text(
        f"gl.convert_layout({source.text}, {w.layout(value)})", source.kind, shape_of_value(value), layout_of(value)
    )
    w.give(op, text)


@writes("tt.gather")
def _gather(w: Writer, op: Any) -> None:
    source, index = (w.whole(t) for t in w.take(*op.operands))
    axis = int_value(op.properties["axis"])
    text = f"gl.gather({source.text}, {index.text}, {axis})"
    w.give(op, Text(text, source.kind, shape_of_value(op.results[0]), index.layout))


@writes("tt.histogram")
def _histogram(w: Writer, op: Any) -> None:
    values = [w.whole(t) for t in w.take(*op.operands)]
    value = op.results[0]
    mask = f", {values[1].text}" if len(values) > 1 else ""
    text = f"gl.histogram({values[0].text}, {shape_of_value(value)[0]}{mask}, layout={w.layout(value)})"
    w.give(op, Text(text, "i32", shape_of_value(value), layout_of(value)))


@writes("ttg.fp4_to_fp")
def _fp4(w: Writer, op: Any) -> None:
    (source,) = w.take(*op.operands)
    source = w.whole(source)
    axis, value = int_value(op.properties["axis"]), op.results[0]
    kind = kinds.kind_of(value.type)
    assert source.layout is not None
    layout = naming.unpacked(source.layout, source.shape, axis)
    text = f"gl.fp4_to_fp({source.text}, {kinds.name_of(kind)}, {axis})"
    w.give(op, as_wanted(w, op, Text(text, kind, shape_of_value(value), layout)))
