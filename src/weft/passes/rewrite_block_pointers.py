"""Replace block pointers by pointers to their elements, with masks.

    %bp = tt.make_tensor_ptr %base, [%m, %n], [%s, %c1], [%i, %j] {order = array<i32: 1, 0>} : <tensor<8x16xf32>>
    %v = tt.load %bp {boundaryCheck = array<i32: 0>, padding = 1 : i32} : !tt.ptr<tensor<8x16xf32>>
    %q = tt.advance %bp, [%c0, %c16] : <tensor<8x16xf32>>
becomes
    %rows = ... %i + 0, 1, ..., 7 ...          %cols = ... %j + 0, 1, ..., 15 ...
    %places = %base + %rows * %s + %cols * 1
    %v = tt.load %places, 0 <= %rows < %m, 0.0 : tensor<8x16x!tt.ptr<f32>>
    (%q is %bp with %j + 16)

Loops and branches carry the offsets (and base, shape and strides only where those change). `order` is a hint and is
not used. Without `padding` what lies outside is undefined; Weft reads it as zero.
"""

from __future__ import annotations

from collections.abc import Sequence

from xdsl.dialects import arith
from xdsl.dialects.builtin import TensorType
from xdsl.ir import Attribute, Operation, SSAValue

from weft.base import CompilationError
from weft.ir import Builder, find, i64, int_value, ints_of, is_float, ptr_of, shape_of, span_of, tt, walk

from .blocks_of_memory import indices_of, inside, places, widen
from .drop_unchanged import drop_unchanged
from .expand import Expander, Handler


def rewrite_block_pointers(root: Operation) -> bool:
    """Rewrite a function, or every function of a module. Gives whether there was anything to do."""
    functions = find(root, tt.FuncOp)
    for function in functions:
        for argument in function.entry.args if function.body.blocks else ():
            if argument.uses and _block_of(argument.type) is not None:
                raise CompilationError("a block pointer cannot be an argument of a kernel", span_of(function))
    if not any(_block_of(result.type) is not None for op in walk(root) for result in op.results):
        return False
    expander = Expander(_part_types, _HANDLERS, "block pointer")
    for function in functions:
        for region in function.regions:
            expander.run(region)
    drop_unchanged(root)
    return True


def _block_of(type: Attribute) -> TensorType[Attribute] | None:
    """The block that a type points to; None where it is no block pointer."""
    pointee = type.pointee if type.__class__ is tt.PtrType else None
    return pointee if isinstance(pointee, TensorType) else None


def _part_types(type: Attribute) -> Sequence[Attribute] | None:
    """A block pointer is its base, then shape, strides and offsets."""
    block = _block_of(type)
    if block is None:
        return None
    rank = block.get_num_dims()
    return (ptr_of(block.element_type, type.address_space.data), *(i64,) * (3 * rank))  # type: ignore


def _split(
    parts: Sequence[SSAValue],
) -> tuple[SSAValue, Sequence[SSAValue], Sequence[SSAValue], Sequence[SSAValue]]:
    rank = (len(parts) - 1) // 3
    return parts[0], parts[1 : 1 + rank], parts[1 + rank : 1 + 2 * rank], parts[1 + 2 * rank :]


def _make(expander: Expander, op: Operation, b: Builder) -> None:
    rank = (len(op.operands) - 1) // 3
    offsets = [widen(b, o) for o in op.operands[1 + 2 * rank :]]
    expander.define(op, [*op.operands[: 1 + 2 * rank], *offsets])


def _advance(expander: Expander, op: Operation, b: Builder) -> None:
    base, shape, strides, offsets = _split(expander.of(op.operands[0], op))
    moved = [b.binary(arith.AddiOp, o, widen(b, d)) for o, d in zip(offsets, op.operands[1:], strict=True)]
    expander.define(op, [base, *shape, *strides, *moved])


def _access(
    expander: Expander, op: tt.LoadOp | tt.StoreOp, b: Builder
) -> tuple[SSAValue, SSAValue | None, TensorType[Attribute]]:
    block = _block_of(op.operands[0].type)
    if block is None:
        raise ValueError("not a block pointer")
    extents = shape_of(block)
    base, shape, strides, offsets = _split(expander.of(op.operands[0], op))
    indices = indices_of(b, offsets, extents)
    axes = ints_of(op.properties.get("boundaryCheck"))
    return places(b, base, indices, strides, extents), inside(b, indices, shape, axes, extents), block


def _load(expander: Expander, op: Operation, b: Builder) -> None:
    if not isinstance(op, tt.LoadOp):
        raise ValueError("not a load")
    pointers, mask, block = _access(expander, op, b)
    other = None
    if mask is not None:
        padding = op.properties.get("padding")
        nan = padding is not None and int_value(padding) == tt.PaddingOption.PAD_NAN
        if nan and not is_float(block):
            raise CompilationError("padding with NaN needs a float element type", span_of(op))
        other = b.constant(float("nan") if nan else 0, block)
    hints: dict[str, Attribute] = {
        key: op.properties[key] for key in ("cache", "evict", "isVolatile") if key in op.properties
    }
    value = b.load(pointers, mask, other)
    loaded = value.owner
    if isinstance(loaded, Operation):
        loaded.properties.update(hints)
    value.name_hint = op.results[0].name_hint
    op.results[0].replace_all_uses_with(value)
    expander.drop(op)


def _store(expander: Expander, op: Operation, b: Builder) -> None:
    if not isinstance(op, tt.StoreOp):
        raise ValueError("not a store")
    pointers, mask, _ = _access(expander, op, b)
    hints: dict[str, Attribute] = {key: op.properties[key] for key in ("cache", "evict") if key in op.properties}
    b.store(pointers, op.operands[1], mask).properties.update(hints)
    expander.drop(op)


_HANDLERS: dict[type[Operation], Handler] = {
    tt.MakeTensorPtrOp: _make,
    tt.AdvanceOp: _advance,
    tt.LoadOp: _load,
    tt.StoreOp: _store,
}
