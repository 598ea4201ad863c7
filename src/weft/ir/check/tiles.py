"""Rules of the operations that make tiles, move their elements, or compute on whole tiles."""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects.builtin import StringAttr
from xdsl.ir import Attribute, Operation

from .. import tt, types
from ..attrs import int_value, ints_of
from ..debugging import CheckOp
from .rules import dims, fail, need_int, need_same, need_same_shape, need_tile, need_truth, rule, show


@rule(tt.MakeRangeOp)
def _make_range(op: Operation) -> None:
    start, end = int_value(op.properties["start"]), int_value(op.properties["end"])
    shape = need_tile(op, op.results[0])
    if types.element_of(op.results[0].type) != types.i32 or len(shape) != 1:
        fail(op, f"yields a one-dimensional tile of i32, not {show(op.results[0])}")
    if end - start != shape[0]:
        fail(
            op,
            f"from {start} to {end} are {end - start} integers, not {shape[0]}",
            f"let end be {start + shape[0]} : i32",
        )


@rule(tt.GetProgramIdOp, tt.GetNumProgramsOp)
def _program(op: Operation) -> None:
    if int_value(op.properties["axis"]) not in (0, 1, 2):
        fail(op, f"the grid has the axes 0, 1 and 2, not {int_value(op.properties['axis'])}")
    if op.results[0].type != types.i32:
        fail(op, f"yields i32, not {show(op.results[0])}")


def _elements(op: Operation) -> None:
    x, y = op.operands[0], op.results[0]
    if types.element_of(x.type) != types.element_of(y.type):
        fail(op, f"the elements of {show(x)} and {show(y)} differ in type")


@rule(tt.SplatOp)
def _splat(op: Operation) -> None:
    need_tile(op, op.results[0])
    if types.is_tensor(op.operands[0].type):
        fail(op, f"expected a scalar, got {show(op.operands[0])}", "tt.broadcast repeats a tile")
    _elements(op)


@rule(tt.UnsplatOp)
def _unsplat(op: Operation) -> None:
    need_tile(op, op.operands[0])
    if types.numel_of(op.operands[0].type) != 1:
        fail(op, f"expected a tile of one element, got {show(op.operands[0])}")
    if op.results[0].type != types.element_of(op.operands[0].type):
        fail(op, f"yields {show(types.element_of(op.operands[0].type))}, not {show(op.results[0])}")


@rule(tt.ExpandDimsOp)
def _expand_dims(op: Operation) -> None:
    shape = list(need_tile(op, op.operands[0]))
    axis = int_value(op.properties["axis"])
    if not 0 <= axis <= len(shape):
        fail(
            op,
            f"axis {axis} is not between 0 and {len(shape)}",
            f"the new dimension goes before dimension `axis`; {len(shape)} puts it last",
        )
    shape.insert(axis, 1)
    need_tile(op, op.results[0])
    if types.shape_of(op.results[0].type) != tuple(shape):
        fail(
            op,
            f"{show(op.operands[0])} with a dimension at {axis} has the shape {dims(shape)}, not {show(op.results[0])}",
        )
    _elements(op)


@rule(tt.BroadcastOp)
def _broadcast(op: Operation) -> None:
    old, new = need_tile(op, op.operands[0]), need_tile(op, op.results[0])
    _elements(op)
    if len(old) != len(new) or any(a not in (1, b) for a, b in zip(old, new, strict=False)):
        fail(op, f"{dims(old)} cannot be broadcast to {dims(new)}: only dimensions of size 1 can grow")


@rule(tt.ReshapeOp)
def _reshape(op: Operation) -> None:
    need_tile(op, op.operands[0])
    need_tile(op, op.results[0])
    _elements(op)
    if types.numel_of(op.operands[0].type) != types.numel_of(op.results[0].type):
        numbers = f"{types.numel_of(op.operands[0].type)} and {types.numel_of(op.results[0].type)}"
        fail(
            op,
            f"{show(op.operands[0])} and {show(op.results[0])} differ in the number of elements",
            f"the products of the sizes, {numbers}, must be equal; tt.broadcast repeats elements",
        )


@rule(tt.TransOp)
def _trans(op: Operation) -> None:
    shape = need_tile(op, op.operands[0])
    order = ints_of(op.properties["order"])
    if sorted(order) != list(range(len(shape))):
        fail(
            op,
            f"the order {dims(order)} is not a permutation of the {len(shape)} dimensions",
            f"array<i32: {', '.join(str(i) for i in reversed(range(len(shape))))}> reverses them all",
        )
    _elements(op)
    wanted = tuple(shape[i] for i in order)
    if types.shape_of(op.results[0].type) != wanted:
        fail(op, f"{dims(shape)} in the order {dims(order)} is {dims(wanted)}, not {show(op.results[0])}")


@rule(tt.CatOp)
def _cat(op: Operation) -> None:
    x, y = op.operands
    need_same(op, "operands", x, y)
    shape = need_tile(op, x)
    result = need_tile(op, op.results[0])
    _elements(op)
    if len(shape) != len(result) or shape[1:] != result[1:] or 2 * shape[0] != result[0]:
        fail(op, f"two {show(x)} end to end are not {show(op.results[0])}")


def _is_tile(type: Attribute, shape: Sequence[int], element: Attribute) -> bool:
    """A tile of this shape and element type, in whatever layout."""
    return types.is_tensor(type) and types.shape_of(type) == tuple(shape) and types.element_of(type) == element


@rule(tt.JoinOp)
def _join(op: Operation) -> None:
    x, y = op.operands
    need_same(op, "operands", x, y)
    shape = need_tile(op, x)
    if not _is_tile(op.results[0].type, (*shape, 2), types.element_of(x.type)):
        fail(op, f"two {show(x)} side by side have the shape {dims((*shape, 2))}, not {show(op.results[0])}")


@rule(tt.SplitOp)
def _split(op: Operation) -> None:
    shape = need_tile(op, op.operands[0])
    if not shape or shape[-1] != 2:
        fail(op, f"the last dimension must be 2, got {show(op.operands[0])}")
    half = types.tensor_of(shape[:-1], types.element_of(op.operands[0].type))
    for result in op.results:
        if not _is_tile(result.type, shape[:-1], types.element_of(op.operands[0].type)):
            fail(op, f"the halves of {show(op.operands[0])} are {show(half)}, not {show(result)}")


# -- products ------------------------------------------------------------------------------------------------------


def _product_shape(op: Operation, a: Sequence[int], b: Sequence[int], c: Sequence[int]) -> None:
    if not len(a) == len(b) == len(c) or len(a) not in (2, 3):
        fail(op, f"expected tiles of 2 or 3 dimensions, got {dims(a)}, {dims(b)} and {dims(c)}")
    if a[-1] != b[-2]:
        fail(op, f"{dims(a)} times {dims(b)}: the inner dimensions {a[-1]} and {b[-2]} differ")
    wanted = [*a[:-1], b[-1]]
    if list(a[:-2]) != list(b[:-2]) or list(c) != wanted:
        fail(op, f"{dims(a)} times {dims(b)} has the shape {dims(wanted)}, the accumulator {dims(c)}")


@rule(tt.DotOp)
def _dot(op: Operation) -> None:
    a, b, c = op.operands
    need_same(op, "accumulator and result", c, op.results[0])
    _product_shape(op, need_tile(op, a), need_tile(op, b), need_tile(op, c))
    x, y, z = types.element_of(a.type), types.element_of(b.type), types.element_of(c.type)
    if types.is_int(x) and types.is_int(y):
        good = x == y == types.i8 and z == types.i32
    elif types.is_float(x) and types.is_float(y):
        small = types.bit_width(x) == 8 and types.bit_width(y) == 8
        good = (small or x == y) and (z == types.f64 if x == types.f64 else z in (types.f32, types.f16, x))
    else:
        good = False
    if not good:
        fail(op, f"cannot multiply {show(a)} by {show(b)} into {show(c)}")


@rule(tt.DotScaledOp)
def _dot_scaled(op: tt.DotScaledOp) -> None:
    need_same(op, "accumulator and result", op.c, op.d)
    kinds = [int_value(op.properties[n]) for n in ("a_elem_type", "b_elem_type")]
    for kind in kinds:
        if kind not in tt.ScaleDotElemType._value2member_map_:
            fail(op, f"{kind} is not a format of a scaled operand")
    shapes = []
    sides = zip((op.a, op.b), kinds, ("lhs_k_pack", "rhs_k_pack"), (-1, -2), strict=True)
    for value, kind, pack, inner in sides:
        shape = list(need_tile(op, value))
        if len(shape) not in (2, 3):
            fail(op, f"expected tiles of 2 or 3 dimensions, got {show(value)}")
        if kind == tt.ScaleDotElemType.E2M1:
            if types.element_of(value.type) != types.i8:
                fail(op, f"e2m1 is packed in pairs in i8, got {show(value)}")
            packed = op.properties.get(pack)
            along_k = packed is None or bool(int_value(packed))
            outer = -2 if inner == -1 else -1
            shape[inner if along_k else outer] *= 2
        shapes.append(shape)
    _product_shape(op, shapes[0], shapes[1], need_tile(op, op.c))
    if types.element_of(op.c.type) != types.f32:
        fail(op, f"the accumulator of a scaled product is f32, got {show(op.c)}")
    for scale, shape, outer in ((op.a_scale, shapes[0], -2), (op.b_scale, shapes[1], -1)):
        if scale is not None:
            _scale(op, scale.type, shape[:-2], shape[outer], shapes[0][-1])


def _scale(op: Operation, type: Attribute, batch: Sequence[int], rows: int, k: int) -> None:
    shape = types.shape_of(type)
    blocks = shape[-1] if shape else 0
    if types.bit_width(type) != 8:
        fail(op, f"a scale is i8 or an fp8, got {show(type)}")
    if tuple(shape[:-1]) != (*batch, rows) or blocks == 0 or k % blocks or k // blocks not in (16, 32):
        fail(
            op, f"the scale of {rows} rows of {k} must have the shape {dims([*batch, rows, k // 32])}, got {show(type)}"
        )


# -- functions on elements -----------------------------------------------------------------------------------------


def _combine(op: Operation, repeat: int, results: Sequence[Attribute], end: type[Operation]) -> None:
    """The region of a reduction or scan: `repeat` arguments for each source, one value returned for each."""
    blocks = list(op.regions[0].blocks)
    if len(blocks) != 1:
        fail(op, f"the function has {len(blocks)} blocks, it must have one")
    elements = [types.element_of(v.type) for v in op.operands]
    if [a.type for a in blocks[0].args] != elements * repeat:
        taken = ", ".join(show(a) for a in blocks[0].args)
        fail(op, f"the function takes {', '.join(show(t) for t in elements * repeat)}, not {taken or 'nothing'}")
    last = blocks[0].last_op
    if not isinstance(last, end) or [v.type for v in last.operands] != list(results):
        fail(op, f"the function must end in {end.name} of {', '.join(show(t) for t in results)}")


def _sources(op: Operation) -> int:
    if not op.operands:
        fail(op, "there is nothing to combine")
    for value in op.operands:
        need_tile(op, value)
    need_same_shape(op, *op.operands)
    axis = int_value(op.properties["axis"])
    rank = len(types.shape_of(op.operands[0].type))
    if not 0 <= axis < rank:
        last = f"from 0 to {rank - 1}" if rank > 1 else "0"
        fail(op, f"axis {axis} is not one of the {rank} dimensions of {show(op.operands[0])}", f"it is {last} here")
    if len(op.results) != len(op.operands):
        fail(op, f"{len(op.operands)} sources, but {len(op.results)} results")
    return axis


@rule(tt.ReduceOp)
def _reduce(op: Operation) -> None:
    axis = _sources(op)
    for value, result in zip(op.operands, op.results, strict=True):
        shape = list(types.shape_of(value.type))
        del shape[axis]
        element = types.element_of(value.type)
        wanted = types.tensor_of(shape, element) if shape else element
        if not (_is_tile(result.type, shape, element) if shape else result.type == element):
            fail(op, f"{show(value)} along axis {axis} comes to {show(wanted)}, not {show(result)}")
    _combine(op, 2, [types.element_of(v.type) for v in op.operands], tt.ReduceReturnOp)


@rule(tt.ScanOp)
def _scan(op: Operation) -> None:
    _sources(op)
    for value, result in zip(op.operands, op.results, strict=True):
        need_same(op, "a source and its result", value, result)
    _combine(op, 2, [types.element_of(v.type) for v in op.operands], tt.ScanReturnOp)


@rule(tt.MapElementwiseOp)
def _map(op: Operation) -> None:
    pack = int_value(op.properties["pack"])
    if pack < 1 or pack & (pack - 1):
        fail(op, f"pack must be a power of 2, got {pack}")
    if not op.operands:
        fail(op, "there is nothing to map")
    for value in (*op.operands, *op.results):
        need_tile(op, value)
    need_same_shape(op, *op.operands, *op.results)
    first = op.regions[0].blocks.first
    taken = [types.element_of(v.type) for v in op.operands for _ in range(pack)]
    if first is None or [a.type for a in first.args] != taken:
        fail(op, f"the function takes {', '.join(show(t) for t in taken)}")
    wanted = [types.element_of(v.type) for v in op.results for _ in range(pack)]
    for block in op.regions[0].blocks:
        last = block.last_op
        if isinstance(last, tt.MapElementwiseReturnOp) and [v.type for v in last.operands] != wanted:
            fail(op, f"the function returns {', '.join(show(t) for t in wanted)}")


@rule(tt.ExternElementwiseOp)
def _extern(op: Operation) -> None:
    for name in ("libname", "libpath", "symbol"):
        if not isinstance(op.properties[name], StringAttr):
            fail(op, f"'{name}' must be a string")
    need_same_shape(op, op.results[0], *op.operands)


@rule(tt.ElementwiseInlineAsmOp)
def _asm(op: Operation) -> None:
    if not op.results:
        fail(op, "inline assembly without a result")
    need_same_shape(op, *op.results, *op.operands)


@rule(tt.HistogramOp)
def _histogram(op: tt.HistogramOp) -> None:
    if len(need_tile(op, op.src)) != 1 or len(need_tile(op, op.result)) != 1:
        fail(op, f"counts a tile of one dimension into one, got {show(op.src)} and {show(op.result)}")
    need_int(op, op.src)
    need_int(op, op.result)
    if op.mask is not None:
        need_truth(op, op.mask)
        need_same_shape(op, op.src, op.mask)


@rule(tt.GatherOp)
def _gather(op: tt.GatherOp) -> None:
    source, indices = need_tile(op, op.src), need_tile(op, op.indices)
    need_int(op, op.indices)
    axis = int_value(op.properties["axis"])
    if not 0 <= axis < len(source) or len(source) != len(indices):
        fail(op, f"cannot pick from {show(op.src)} by {show(op.indices)} along axis {axis}")
    for i, (a, b) in enumerate(zip(indices, source, strict=True)):
        if i != axis and a > b:
            fail(op, f"the indices {dims(indices)} reach outside of {dims(source)} in dimension {i}")
    if op.result.type != types.like(op.indices.type, types.element_of(op.src.type)):
        fail(op, f"yields {show(types.like(op.indices.type, types.element_of(op.src.type)))}, not {show(op.result)}")


@rule(tt.PrintOp)
def _print(op: Operation) -> None:
    signs = ints_of(op.properties["isSigned"])
    if len(signs) != len(op.operands):
        fail(op, f"{len(op.operands)} values, but the signs of {len(signs)}")


@rule(tt.AssertOp)
def _assert(op: Operation) -> None:
    if types.element_of(op.operands[0].type) != types.i1 and not types.is_int(op.operands[0].type):
        fail(op, f"expected i1, got {show(op.operands[0])}")


@rule(CheckOp)
def _check(op: Operation) -> None:
    condition, *values = op.operands
    need_truth(op, condition)
    if len(values) > 2:
        fail(op, f"at most two values can be reported, got {len(values)}")
    for value in values:
        if (
            types.shape_of(value.type) != types.shape_of(condition.type) or types.element_of(value.type) != types.i64
        ):  # layouts may differ
            fail(op, f"the values are of type {show(types.like(condition.type, types.i64))}, got {show(value)}")
