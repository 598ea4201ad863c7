"""Operations that make tiles or rearrange them: coordinates, and renamed registers.

An operation on the shape moves no data between the layouts that `weft.layouts` infers. If the result should have
another layout, a conversion follows.
"""

from __future__ import annotations

from functools import partial

from xdsl.dialects.builtin import DenseIntOrFPElementsAttr, FloatAttr, IntegerAttr
from xdsl.ir import Attribute, Operation, SSAValue

from weft.ir import bit_width, element_of, int_value, ints_of, is_tensor, pointee_of
from weft.ir.lane import ELEMENT_BITS, Value
from weft.layouts import LinearLayout, f2, infer

from .context import Context, elem_of, lowering, tile_shape
from .convert import convert
from .grouping import group_of_users


def settle(c: Context, result: SSAValue, value: Value, natural: LinearLayout) -> None:
    """A result that has come out in some layout, brought to the one that it is to have."""
    if value.count == 1 and natural.in_dims["register"] != 1:
        c[result] = value  # one register for all of them: the same in every layout
        return
    wanted = c.layout(result)
    natural = natural.rename_outs(dict(zip(natural.out_dims, wanted.out_dims, strict=True)))
    c[result] = value if natural == wanted else convert(c, value, natural, wanted)


@lowering("arith.constant")
def _constant(c: Context, op: Operation) -> None:
    attr = op.properties["value"] if "value" in op.properties else op.attributes["value"]
    elem = elem_of(op.results[0].type)
    number: int | float
    if isinstance(attr, (IntegerAttr, FloatAttr)):
        number = attr.value.data
    else:
        assert isinstance(attr, DenseIntOrFPElementsAttr)
        number = attr.get_values()[0]
    c[op.results[0]] = c.build.constant(elem, number)


@lowering("tt.make_range")
def _make_range(c: Context, op: Operation) -> None:
    result = op.results[0]
    at = c.coordinates(c.layout(result), "dim0")
    start = int_value(op.properties["start"])
    c[result] = c.plus(at, c.number(start)) if start else at


@lowering("tt.splat", "tt.unsplat")
def _splat(c: Context, op: Operation) -> None:
    value = c[op.operands[0]]
    c[op.results[0]] = value if value.count == 1 else c.build.rename(value, [0])


@lowering("ttg.convert_layout")
def _convert(c: Context, op: Operation) -> None:
    source, result = op.operands[0], op.results[0]
    if c[source].count == 1:
        c[result] = c[source] if c.count(source.type) != 1 else _converted(c, source, result)
        return
    c[result] = _converted(c, source, result)


def _converted(c: Context, source: SSAValue, result: SSAValue) -> Value:
    return convert(c, c.whole(source), c.layout(source), c.layout(result), partial(group_of_users, c, result))


@lowering("tt.expand_dims")
def _expand_dims(c: Context, op: Operation) -> None:
    natural = infer.expand_dims_result(c.layout(op.operands[0]), int_value(op.properties["axis"]))
    settle(c, op.results[0], c[op.operands[0]], natural)


@lowering("tt.trans")
def _trans(c: Context, op: Operation) -> None:
    natural = infer.trans_result(c.layout(op.operands[0]), ints_of(op.properties["order"]))
    settle(c, op.results[0], c[op.operands[0]], natural)


@lowering("tt.reshape")
def _reshape(c: Context, op: Operation) -> None:
    """Where the order does not matter nothing has to move, if both layouts have copies in the same places."""
    source, result = op.operands[0], op.results[0]
    if "allow_reorder" in op.properties or "allow_reorder" in op.attributes:
        before, after = c.layout(source), c.layout(result)
        if before.in_dims == after.in_dims and not f2.kernel(before.columns) and not f2.kernel(after.columns):
            c[result] = c.whole(source)
            return
    natural = infer.reshape_result(c.layout(op.operands[0]), tile_shape(op.results[0]))
    settle(c, op.results[0], c[op.operands[0]], natural)


@lowering("tt.broadcast")
def _broadcast(c: Context, op: Operation) -> None:
    """The source in the layout that has a copy wherever the result has an element made of it, under other names."""
    source, result = op.operands[0], op.results[0]
    if c[source].count == 1 and c.count(source.type) != 1:
        c[result] = c[source]
        return
    wanted = c.layout(result)
    small = tile_shape(source)
    columns = {
        dim: [tuple(x if s != 1 else 0 for x, s in zip(basis, small, strict=True)) for basis in bases]
        for dim, bases in wanted.bases.items()
    }
    copies = LinearLayout.from_bases(columns, {f"dim{i}": s for i, s in enumerate(small)}, require_surjective=False)
    c[result] = convert(c, c.whole(source), c.layout(source), copies)


@lowering("tt.join")
def _join(c: Context, op: Operation) -> None:
    a, b = (c.whole(x) for x in op.operands)
    both = c.build.add("join", [a, b], [(a.elem, 2 * a.count)]).result
    order = [half * a.count + r for r in range(a.count) for half in (0, 1)]
    settle(c, op.results[0], c.build.rename(both, order), infer.join_result(c.layout(op.operands[0])))


@lowering("tt.cat")
def _cat(c: Context, op: Operation) -> None:
    """The elements of both, which need not keep their order: the registers of one, then those of the other."""
    a, b = (c.whole(x) for x in op.operands)
    layout = c.layout(op.operands[0])
    size = tile_shape(op.operands[0])[0]
    bases = {d: list(x) for d, x in layout.bases.items()}
    bases["register"].append((size,))
    natural = LinearLayout.from_bases(bases, {"dim0": 2 * size}, require_surjective=False)
    settle(c, op.results[0], c.build.add("join", [a, b], [(a.elem, 2 * a.count)]).result, natural)


@lowering("tt.split")
def _split(c: Context, op: Operation) -> None:
    layout = c.layout(op.operands[0])
    value = c.whole(op.operands[0])
    last = f"dim{len(tile_shape(op.operands[0])) - 1}"
    along = layout.sublayout(["register"], [last]).in_columns("register")
    at = next((i for i, x in enumerate(along) if x), None)
    if at is None:
        raise ValueError("the halves are not told apart by a register")
    for half, result in enumerate(op.results):
        kept = [r for r in range(value.count) if (r >> at & 1) == half]
        bases = {d: list(b) for d, b in layout.bases.items()}
        del bases["register"][at]
        out = {f"dim{i}": s for i, s in enumerate(tile_shape(op.operands[0])[:-1])}
        natural = LinearLayout.from_bases(
            {d: [b[:-1] for b in bs] for d, bs in bases.items()}, out, require_surjective=False
        )
        settle(c, result, c.build.rename(value, kept), natural)


@lowering("tt.get_program_id")
def _program_id(c: Context, op: Operation) -> None:
    c[op.results[0]] = c.build.add("program_id", (), [("i32", 1)], {"axis": _axis(op)}).result


@lowering("tt.get_num_programs")
def _num_programs(c: Context, op: Operation) -> None:
    c[op.results[0]] = c.build.add("num_programs", (), [("i32", 1)], {"axis": _axis(op)}).result


def _axis(op: Operation) -> int:
    return int_value(op.properties["axis"])


@lowering("tt.addptr")
def add_pointer(c: Context, op: Operation) -> None:
    """Pointers, moved by numbers of elements."""
    from_type = op.operands[0].type
    offset = c[op.operands[1]]
    if offset.elem != "i64":
        offset = c.build.op("arith.extsi", [offset], "i64")
    size = pointee_bytes(from_type)
    if size != 1:
        offset = c.build.op("arith.muli", [offset, c.number(size, "i64")], "i64")
    c[op.results[0]] = c.build.op("arith.addi", [c[op.operands[0]], offset], "i64")


def pointee_bytes(type: Attribute) -> int:
    """The size of what pointers point to."""
    return max(1, bit_width(pointee_of(element_of(type))) // 8)


@lowering("tt.bitcast", "tt.ptr_to_int", "tt.int_to_ptr")
def _bitcast(c: Context, op: Operation) -> None:
    value, elem = c[op.operands[0]], elem_of(op.results[0].type)
    c[op.results[0]] = value if value.elem == elem else c.build.op("arith.bitcast", [value], elem)


@lowering("tt.fp_to_fp")
def _fp_to_fp(c: Context, op: Operation) -> None:
    value, elem = c[op.operands[0]], elem_of(op.results[0].type)
    wider = ELEMENT_BITS[elem] > ELEMENT_BITS[value.elem]
    attrs = {}
    if "rounding" in op.properties and int_value(op.properties["rounding"]) == 0:
        attrs["roundingmode"] = "toward_zero"
    c[op.results[0]] = c.build.op("arith.extf" if wider else "arith.truncf", [value], elem, **attrs)


@lowering("tt.clampf")
def _clamp(c: Context, op: Operation) -> None:
    elem = elem_of(op.results[0].type)
    x, least, most = (c[x] for x in op.operands)
    clamped = c.build.op("arith.minnumf", [c.build.op("arith.maxnumf", [x, least], elem), most], elem)
    if "propagateNan" in op.properties and int_value(op.properties["propagateNan"]):
        clamped = c.build.select(c.build.op("arith.cmpf", [x, x], "i1", predicate="ord"), clamped, x)
    c[op.results[0]] = clamped


@lowering("arith.select")
def _select(c: Context, op: Operation) -> None:
    condition, a, b = (c[x] for x in op.operands)
    if is_tensor(op.results[0].type):
        most = max(condition.count, a.count, b.count)
        if most != c.count(op.results[0].type):
            most = 1
        condition, a, b = (
            x if x.count == most or x.count == 1 else c.build.rename(x, [0] * most) for x in (condition, a, b)
        )
    c[op.results[0]] = c.build.select(condition, a, b)
