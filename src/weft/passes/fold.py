"""Fold single operations on constants, zeros and ones.

    %y = arith.addi %x, %c0        ->  %x
    %y = arith.muli %c3, %c4       ->  12
    %y = arith.cmpi sge, %pid, %c0 ->  true            (program ids are not negative)
    %m = arith.cmpi slt, %i, %n    ->  true            (%i a range of 1024 elements, %n 1024: no mask is left)
    %y = tt.broadcast (tt.splat %s)  ->  tt.splat %s   of the larger shape
    %y = arith.addf %acc, (tt.dot %a, %b, %zero)  ->  tt.dot %a, %b, %acc

A rule looks at one operation, whose operands have been folded before, and gives the value that takes its place, or
nothing. Integers wrap to their width; a division by zero is left alone. Floats are folded only where no rounding,
sign of zero or NaN could tell the difference.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable

from xdsl.dialects import arith
from xdsl.ir import Attribute, Block, Operation, SSAValue

from weft import ir
from weft.analysis import IntegerBounds
from weft.ops.bounds import Bounds
from weft.ops.casts import COMPARISONS, INTEGER_PREDICATES
from weft.ops.integers import is_wrong
from weft.ops.row import Row
from weft.ops.table import ROWS

from .blocks_of_memory import OFFSET_CHECK

Rule = Callable[["Folder", Operation], "SSAValue | None"]
HINTS = frozenset(("tt.divisibility", "tt.contiguity", "tt.constancy"))
"""Attributes by which a kernel says what is not seen of a value."""


def constant_of(value: SSAValue) -> int | float | None:
    """The number that a value is known to be (for a tile: every element of it), or None."""
    owner = value.owner
    return ir.splat_value(owner.properties["value"]) if type(owner) is arith.ConstantOp else None


def int_of(value: SSAValue) -> int | None:
    """The integer that a value is known to be, signed; a true `i1` is -1."""
    constant = constant_of(value)
    return int(constant) if isinstance(constant, int) else None


def _wrap(value: int, type: Attribute) -> int:
    width = ir.bit_width(type)
    value &= (1 << width) - 1
    return value - (1 << width) if value >> (width - 1) else value


def _unsigned(value: int, type: Attribute) -> int:
    return value & ((1 << ir.bit_width(type)) - 1)


class Folder:
    """The rules, and where the constants that they make go."""

    def __init__(self, fuse: bool = True) -> None:
        self.fuse = fuse
        """Whether a floating-point product and a sum may be rounded together (`enable_fp_fusion`)."""
        self.bounds = IntegerBounds()
        self.offset_bounds = IntegerBounds(wrapping=False)

    def fold(self, op: Operation) -> SSAValue | None:
        """The value that can take the place of the only result of `op`, or None."""
        rule = _RULES.get(op.name)
        folded = None if rule is None else rule(self, op)
        if op.attributes and folded in op.operands and not HINTS.isdisjoint(op.attributes):
            return None  # the hint would be lost
        return folded

    def constant(self, op: Operation, value: int | float) -> SSAValue:
        """A constant of the type of `op`'s result."""
        return ir.Builder.before(op).constant(value, op.results[0].type)


# -- integers ------------------------------------------------------------------------------------------------------


def _of_row(row: Row) -> Rule:
    """What two integers come to, and what one known number or two equal operands do."""
    facts = {}
    for number, fact in ((0, row.zero), (1, row.one), (-1, row.ones)):
        behind, _, before = fact.partition("|")
        facts[number] = (behind, before)

    def pick(folder: Folder, op: Operation, choice: str, other: SSAValue) -> SSAValue | None:
        return other if choice == "x" else folder.constant(op, int(choice)) if choice else None

    def rule(folder: Folder, op: Operation) -> SSAValue | None:
        x, y = op.operands
        if not ir.is_int(x.type):
            return None
        a, b, bits = int_of(x), int_of(y), ir.bit_width(x.type)
        if a is not None and b is not None:
            if row.is_unsigned:
                a, b = _unsigned(a, x.type), _unsigned(b, x.type)
            if row.of_integers is None or is_wrong(row, a, b, bits):
                return None
            return folder.constant(op, _wrap(row.of_integers(a, b, bits), x.type))
        folded = None
        for constant, side, other in ((b, 0, x), (a, 1, y)):
            if constant in facts:
                folded = folded or pick(folder, op, facts[constant][side], other)
            if constant == -1 and bits == 1:
                folded = folded or pick(folder, op, facts[1][side], other)
        return pick(folder, op, row.same, x) if folded is None and x is y else folded

    return rule


_REFLEXIVE = (0, 3, 5, 7, 9)


def _cmpi(folder: Folder, op: Operation) -> SSAValue | None:
    x, y = op.operands
    predicate = ir.int_value(op.properties["predicate"])
    if x is y:
        return folder.constant(op, int(predicate in _REFLEXIVE))
    bounds = folder.offset_bounds if OFFSET_CHECK in op.attributes else folder.bounds
    outcome = decided(INTEGER_PREDICATES[predicate], bounds.of(x), bounds.of(y), ir.bit_width(x.type))
    return None if outcome is None else folder.constant(op, int(outcome))


def decided(predicate: str, a: Bounds, b: Bounds, bits: int) -> bool | None:
    """What a comparison says of all integers between two bounds; None where it depends on which they are.

    >>> decided("slt", Bounds(0, 1023), Bounds.exact(1024), 32)
    True
    >>> decided("slt", Bounds(0, 1024), Bounds.exact(1024), 32)
    """
    if predicate.startswith("u"):
        a, b = a.unsigned(bits), b.unsigned(bits)
    if predicate in ("eq", "ne") and a.low <= b.high and b.low <= a.high:
        return predicate == "eq" if a.low == a.high == b.low == b.high else None
    corners = {bool(COMPARISONS[predicate](x, y)) for x in (a.low, a.high) for y in (b.low, b.high)}
    return corners.pop() if len(corners) == 1 else None


def _widened(signed: bool) -> Rule:
    def rule(folder: Folder, op: Operation) -> SSAValue | None:
        x = op.operands[0]
        value = int_of(x)
        if value is None:
            return None
        return folder.constant(op, value if signed else _unsigned(value, x.type))

    return rule


def _trunci(folder: Folder, op: Operation) -> SSAValue | None:
    x = op.operands[0]
    value = int_of(x)
    if value is not None:
        return folder.constant(op, _wrap(value, op.results[0].type))
    inner = x.owner
    if isinstance(inner, arith.ExtSIOp | arith.ExtUIOp) and inner.operands[0].type == op.results[0].type:
        return inner.operands[0]
    return None


def _truncf(folder: Folder, op: Operation) -> SSAValue | None:
    """A float that was widened, as it was."""
    inner = op.operands[0].owner
    widened = isinstance(inner, arith.ExtFOp) and inner.operands[0].type == op.results[0].type
    return inner.operands[0] if isinstance(inner, Operation) and widened else None


def _converted(folder: Folder, op: Operation) -> SSAValue | None:
    """Zero, which all floats hold."""
    number = constant_of(op.operands[0])
    return folder.constant(op, 0.0) if number == 0 and math.copysign(1, number) > 0 else None


def _number(folder: Folder, op: Operation) -> SSAValue | None:
    """An integer as a float: folded where the float holds it exactly."""
    value = int_of(op.operands[0])
    if value is None or not ir.is_float(op.results[0].type):
        return None
    if isinstance(op, arith.UIToFPOp):
        value = _unsigned(value, op.operands[0].type)
    exact = {16: 1 << 8, 32: 1 << 24, 64: 1 << 53}.get(ir.bit_width(op.results[0].type), 0)
    return folder.constant(op, float(value)) if abs(value) <= exact else None


# -- choices, floats, pointers -------------------------------------------------------------------------------------


def _select(folder: Folder, op: Operation) -> SSAValue | None:
    condition, x, y = op.operands
    if x is y:
        return x
    constant = constant_of(condition)
    return None if constant is None else (x if constant else y)


def _same_type(folder: Folder, op: Operation) -> SSAValue | None:
    x = op.operands[0]
    return x if x.type == op.results[0].type else None


def _bitcast(folder: Folder, op: Operation) -> SSAValue | None:
    """The float whose bits a known integer has, if it is an ordinary number."""
    value, element = int_of(op.operands[0]), ir.element_of(op.results[0].type)
    if value is None or element not in (ir.f16, ir.bf16, ir.f32):
        return _same_type(folder, op)
    bits = _unsigned(value, op.operands[0].type) << (16 if element == ir.bf16 else 0)
    size, form = (2, "<e") if element == ir.f16 else (4, "<f")
    (number,) = struct.unpack(form, bits.to_bytes(size, "little"))
    return folder.constant(op, number) if number and math.isfinite(number) else None


def _into_dot(folder: Folder, op: Operation) -> SSAValue | None:
    """A product that began at zero and is added to something may as well begin there.

    Of integers always. Of floats only with `enable_fp_fusion`: each partial sum is then rounded at the size of what it
    begins with, where the text says one rounding at the end (32 products of 1 and 2^24 are 2^24 + 32, or 2^24).
    """
    x, y = op.operands
    if not folder.fuse and ir.is_float(op.results[0].type):
        return None
    for product, start in ((x, y), (y, x)):
        dot = product.owner
        if not isinstance(dot, ir.tt.DotOp | ir.tt.DotScaledOp):
            continue
        if product.has_one_use() and constant_of(dot.operands[2]) == 0:
            operands = (*dot.operands[:2], start, *dot.operands[3:])
            return ir.Builder.before(op).create(type(dot), operands, (product.type,), dot.properties).results[0]
    return None


def _addi(folder: Folder, op: Operation) -> SSAValue | None:
    folded = _ADDED(folder, op)
    return folded if folded is not None else _into_dot(folder, op)


_ADDED = _of_row(ROWS["arith.addi"])


def _exactly(folder: Folder, op: Operation) -> SSAValue | None:
    """The sum, difference or product of two numbers of float32 that needs no rounding and is not zero."""
    a, b = (constant_of(x) for x in op.operands)
    if not (isinstance(a, float) and isinstance(b, float)) or ir.element_of(op.results[0].type) != ir.f32:
        return None
    if isinstance(op, arith.MulfOp):
        exact = number = a * b  # 24 bits times 24, of 53
    else:
        b = -b if isinstance(op, arith.SubfOp) else b
        number = a + b
        exact = number if number - a == b and number - b == a else math.nan
    if not number or abs(exact) >= 2.0**128 or _rounded(exact) != exact:
        return None
    return folder.constant(op, number)


def _rounded(number: float) -> float:
    """As a float32; NaN for what is none."""
    return struct.unpack("<f", struct.pack("<f", number))[0] if math.isfinite(number) else math.nan


def _addf(folder: Folder, op: Operation) -> SSAValue | None:
    folded = _exactly(folder, op)
    return folded if folded is not None else _into_dot(folder, op)


def _mulf(folder: Folder, op: Operation) -> SSAValue | None:
    folded = _exactly(folder, op)
    return folded if folded is not None else _times_one(folder, op)


def _times_one(folder: Folder, op: Operation) -> SSAValue | None:
    x, y = op.operands
    if constant_of(y) == 1.0:
        return x
    return y if constant_of(x) == 1.0 and not isinstance(op, arith.DivfOp) else None


def _addptr(folder: Folder, op: Operation) -> SSAValue | None:
    return op.operands[0] if int_of(op.operands[1]) == 0 else None


# -- shapes --------------------------------------------------------------------------------------------------------


def _reshaped(folder: Folder, op: Operation) -> SSAValue | None:
    """A constant or a splat stays one in any shape; a tile of the shape asked for is what it was."""
    x = op.operands[0]
    while x.type != op.results[0].type:
        owner = x.owner
        if not _keeps_order(op) or isinstance(owner, Block) or not _keeps_order(owner):
            return _uniform(folder, op)
        x = owner.operands[0]
    return x


def _keeps_order(op: Operation) -> bool:
    """Whether an operation gives a tile another shape, and leaves its elements in their order."""
    return isinstance(op, ir.tt.ReshapeOp | ir.tt.ExpandDimsOp) and "allow_reorder" not in op.properties


def _uniform(folder: Folder, op: Operation) -> SSAValue | None:
    """The result as a constant or a splat, where the operand is one."""
    x = op.operands[0]
    result = op.results[0].type
    owner = x.owner
    if isinstance(owner, Block):
        return None
    if type(owner) is ir.tt.SplatOp:
        return ir.Builder.before(op).create(ir.tt.SplatOp, (owner.operands[0],), (result,)).result  # with its layout
    if type(owner) is arith.ConstantOp and (ir.is_int(result) or ir.is_float(result)):
        value = constant_of(x)
        return None if value is None else folder.constant(op, value)
    return None


def _splat(folder: Folder, op: Operation) -> SSAValue | None:
    value = constant_of(op.operands[0])
    if value is None or value != value:  # the bits of a NaN are kept
        return None
    return folder.constant(op, value)


def _unsplat(folder: Folder, op: Operation) -> SSAValue | None:
    x = op.operands[0]
    owner = x.owner
    if type(owner) is ir.tt.SplatOp:
        return owner.operands[0]
    value = constant_of(x)
    return None if value is None or value != value else folder.constant(op, value)


def _make_range(folder: Folder, op: Operation) -> SSAValue | None:
    if ir.numel_of(op.results[0].type) != 1:
        return None
    return folder.constant(op, ir.int_value(op.properties["start"]))


def _trans(folder: Folder, op: Operation) -> SSAValue | None:
    order = op.properties["order"].get_values()  # type: ignore[attr-defined]
    if tuple(order) == tuple(range(len(order))):
        return op.operands[0]
    return _uniform(folder, op)  # a square tile is not what it was, though its type is


def _join(folder: Folder, op: Operation) -> SSAValue | None:
    """A tile joined with itself is that tile spread: who moves it moves the smaller one."""
    x, y = op.operands
    result = op.results[0].type
    if x is not y or result != ir.tensor_of(
        ir.shape_of(result), ir.element_of(result)
    ):  # its layout says where it lies
        return None
    build = ir.Builder.before(op)
    return build.broadcast(build.expand_dims(x, len(ir.shape_of(x.type))), ir.shape_of(result))


_OF_CLASSES: dict[type[Operation], Rule] = {
    arith.AddiOp: _addi,
    arith.AddfOp: _addf,
    arith.SubfOp: _exactly,
    arith.CmpiOp: _cmpi,
    arith.SelectOp: _select,
    arith.ExtSIOp: _widened(signed=True),
    arith.ExtUIOp: _widened(signed=False),
    arith.IndexCastOp: _widened(signed=True),
    arith.TruncIOp: _trunci,
    arith.TruncFOp: _truncf,
    arith.SIToFPOp: _number,
    arith.UIToFPOp: _number,
    arith.BitcastOp: _bitcast,
    arith.MulfOp: _mulf,
    arith.DivfOp: _times_one,
    ir.tt.BitcastOp: _bitcast,
    ir.tt.FpToFpOp: _converted,
    ir.tt.AddPtrOp: _addptr,
    ir.tt.SplatOp: _splat,
    ir.tt.UnsplatOp: _unsplat,
    ir.tt.BroadcastOp: _reshaped,
    ir.tt.ExpandDimsOp: _reshaped,
    ir.tt.ReshapeOp: _reshaped,
    ir.tt.JoinOp: _join,
    ir.tt.TransOp: _trans,
    ir.tt.MakeRangeOp: _make_range,
}
_RULES: dict[str, Rule] = {
    **{name: _of_row(row) for name, row in ROWS.items() if row.of_integers is not None},
    **{op.name: rule for op, rule in _OF_CLASSES.items()},
}
