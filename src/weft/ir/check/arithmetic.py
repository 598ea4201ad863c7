"""Rules of `arith`, `math` and the operations of `tt` that work element by element."""

from __future__ import annotations

from xdsl.dialects import arith, math
from xdsl.dialects.builtin import DenseIntOrFPElementsAttr, FloatAttr, IndexType, IntegerAttr, TensorType
from xdsl.ir import Operation

from weft.ops.row import FLOATS, INTEGERS, Kind
from weft.ops.table import ROWS

from .. import tt
from ..elementwise import CLASSES
from ..extra import AssumeOp, EndUnlessOp
from ..types import bit_width, element_of, i1, i64, is_pointer, is_tensor, like, numel_of, shape_of
from .rules import Rule, fail, need_float, need_int, need_same, need_same_shape, need_truth, rule, show


def _of(*kinds: Kind) -> list[type[Operation]]:
    return [op for name, op in CLASSES.items() if ROWS[name].kind in kinds]


@rule(*_of(INTEGERS), math.IPowIOp)
def _ints(op: Operation) -> None:
    need_same(op, "operands and result", *op.operands, *op.results)
    need_int(op, op.operands[0])


@rule(*_of(FLOATS))
def _floats(op: Operation) -> None:
    need_same(op, "operands and result", *op.operands, *op.results)
    need_float(op, op.operands[0])


@rule(math.FPowIOp)
def _powi(op: Operation) -> None:
    need_same(op, "base and result", op.operands[0], op.results[0])
    need_float(op, op.operands[0])
    need_int(op, op.operands[1])
    need_same_shape(op, *op.operands)


@rule(arith.MulSIExtendedOp, arith.MulUIExtendedOp)
def _extended(op: Operation) -> None:
    need_same(op, "operands and results", *op.operands, *op.results)
    need_int(op, op.operands[0])


@rule(arith.CmpiOp, arith.CmpfOp)
def _compare(op: Operation) -> None:
    x, y = op.operands
    need_same(op, "operands", x, y)
    (need_int if isinstance(op, arith.CmpiOp) else need_float)(op, x)
    if op.results[0].type != like(x.type, i1):
        fail(op, f"comparing {show(x)} yields {show(like(x.type, i1))}, not {show(op.results[0])}")
    names = arith.CMPI_COMPARISON_OPERATIONS if isinstance(op, arith.CmpiOp) else arith.CMPF_COMPARISON_OPERATIONS
    predicate = op.properties["predicate"]
    if not isinstance(predicate, IntegerAttr) or not 0 <= predicate.value.data < len(names):
        numbered = ", ".join(f"{i} {name}" for i, name in enumerate(names))
        fail(op, f"{predicate} is not a comparison", f"the numbers of the comparisons are {numbered}")


@rule(arith.SelectOp)
def _select(op: Operation) -> None:
    condition, x, y = op.operands
    need_same(op, "both values and the result", x, y, op.results[0])
    need_truth(op, condition)
    if is_tensor(condition.type) and shape_of(condition.type) != shape_of(x.type):
        fail(op, f"the condition {show(condition)} does not have the shape of {show(x)}")


@rule(arith.ConstantOp)
def _constant(op: Operation) -> None:
    value = op.properties["value"]
    result = op.results[0].type
    if not isinstance(value, IntegerAttr | FloatAttr | DenseIntOrFPElementsAttr):
        fail(op, f"a constant is a number or dense<...>, not {value.name}")
    if value.get_type() != result:
        fail(op, f"a value of type {show(value.get_type())} for a result of type {show(result)}")
    if isinstance(value, DenseIntOrFPElementsAttr):
        size, stored = value.type.element_type.compile_time_size, len(value.data.data)
        if stored not in (size, size * numel_of(result)):
            fail(op, f"{stored} bytes for {show(result)}")


# -- casts ---------------------------------------------------------------------------------------------------------


def _cast(op: Operation, source: str, target: str, order: int = 0) -> None:
    """`order`: 1 where the result must be wider, -1 where it must be narrower."""
    x, y = op.operands[0], op.results[0]
    need_same_shape(op, x, y)
    for value, kind in ((x, source), (y, target)):
        (need_int if kind == "int" else need_float)(op, value)
    if order and (bit_width(y.type) - bit_width(x.type)) * order <= 0:
        fail(op, f"the result must be {'wider' if order > 0 else 'narrower'}, got {show(x)} to {show(y)}")


def _cast_rule(kind: Kind) -> Rule:
    return lambda op: _cast(op, kind.source, kind.result, {"wider": 1, "narrower": -1}.get(kind.how, 0))


for _kind in {ROWS[name].kind for name in CLASSES} - {INTEGERS, FLOATS}:
    if _kind.how in ("wider", "narrower") or {_kind.source, _kind.result} == {"int", "float"}:
        rule(*_of(_kind))(_cast_rule(_kind))


@rule(arith.IndexCastOp)
def _index(op: Operation) -> None:
    _cast(op, "int", "int")
    x, y = op.operands[0], op.results[0]
    if isinstance(element_of(x.type), IndexType) == isinstance(element_of(y.type), IndexType):
        fail(op, f"casts between index and an integer, got {show(x)} to {show(y)}")


@rule(tt.FpToFpOp)
def _fp_to_fp(op: Operation) -> None:
    _cast(op, "float", "float")
    x, y = op.operands[0], op.results[0]
    narrower = bit_width(y.type) < bit_width(x.type)
    if narrower and "rounding" not in op.properties:
        fail(op, f"from {show(x)} to the narrower {show(y)} a rounding is needed", "add `rounding = rtne`")
    if not narrower and "rounding" in op.properties:
        fail(op, f"from {show(x)} to {show(y)} nothing is rounded")


@rule(arith.BitcastOp, tt.BitcastOp)
def _bitcast(op: Operation) -> None:
    x, y = op.operands[0], op.results[0]
    need_same_shape(op, x, y)
    if is_pointer(x.type) != is_pointer(y.type):
        fail(op, f"cannot cast {show(x)} to {show(y)}", "tt.ptr_to_int and tt.int_to_ptr do")
    if not is_pointer(x.type) and bit_width(x.type) != bit_width(y.type):
        fail(op, f"{show(x)} and {show(y)} differ in width")


# -- pointers ------------------------------------------------------------------------------------------------------


@rule(tt.AddPtrOp)
def _addptr(op: Operation) -> None:
    pointer, offset = op.operands
    need_same(op, "pointer and result", pointer, op.results[0])
    element = element_of(pointer.type)
    if not isinstance(element, tt.PtrType) or isinstance(element.pointee, TensorType):
        fail(op, f"expected pointers, got {show(pointer)}")
    need_int(op, offset)
    need_same_shape(op, pointer, offset)


@rule(tt.IntToPtrOp)
def _int_to_ptr(op: Operation) -> None:
    need_same_shape(op, op.operands[0], op.results[0])
    if element_of(op.operands[0].type) != i64 or not is_pointer(op.results[0].type):
        fail(op, f"casts i64 to a pointer, got {show(op.operands[0])} to {show(op.results[0])}")


@rule(tt.PtrToIntOp)
def _ptr_to_int(op: Operation) -> None:
    need_same_shape(op, op.operands[0], op.results[0])
    if element_of(op.results[0].type) != i64 or not is_pointer(op.operands[0].type):
        fail(op, f"casts a pointer to i64, got {show(op.operands[0])} to {show(op.results[0])}")


@rule(AssumeOp, EndUnlessOp)
def _assume(op: Operation) -> None:
    if op.operands[0].type != i1:
        fail(op, f"expected i1, got {show(op.operands[0])}")
