"""Operations whose result may be undefined or wrong, and the condition for that; for `check_values`.

    %q = arith.divsi %x, %y         wrong where %y is 0; what is told is %x
    %s = arith.shli %x, %n          where %n is the width or more, as an unsigned number; %n
    %i = arith.fptosi %f            where %f is NaN or %i cannot hold it; %f, as bits of 64
    %g = tt.gather %x[%i]           where %i is not below the size of the axis; %i
    %t = tt.reduce(%x) add, and tt.scan; also multiplication
                                    where the exact result in 64 bits is another; that

Not doubtful: what is divided by, or shifted by, a known number that is right. Sums and products of unsigned integers,
which wrap on purpose (checks, hashes), and of 64 bits, as in Triton.
"""

from __future__ import annotations

from xdsl.dialects import arith
from xdsl.dialects.builtin import StringAttr
from xdsl.ir import Block, Operation, Region, SSAValue

from weft.ir import Builder, bit_width, element_of, f32, f64, i64, int_value, like, shape_of, span_of, tt
from weft.ir.findings import Source
from weft.ops import ELEMENTS
from weft.ops.row import Row
from weft.ops.table import ROWS

from .fold import constant_of
from .removal import remove

SIGNED = "tt.signed"
"""Of a reduction or scan that the language made: a sum or product of signed integers."""


def source_of(op: Operation, number: int) -> Source | None:
    """What may be wrong with the result of an operation; None if nothing can."""
    row = ROWS.get(op.name)
    if row is not None and row.wrong:
        return _of_row(op, row, number)
    if isinstance(op, tt.GatherOp):
        extent = shape_of(op.operands[0].type)[int_value(op.properties["axis"])]
        return Source(number, "gather", "int32", extent, span_of(op))
    if isinstance(op, tt.ReduceOp | tt.ScanOp):
        return _combination(op, number)
    return None


def _known(value: SSAValue) -> int | None:
    while isinstance(value.owner, tt.SplatOp | tt.BroadcastOp | tt.ExpandDimsOp):
        value = value.owner.operands[0]
    constant = constant_of(value)
    return None if constant is None else int(constant)


def _combination(op: Operation, number: int) -> Source | None:
    """A sum or product of signed integers of less than 64 bits, of which the language made this reduction or scan."""
    if len(op.operands) != 1 or bit_width(op.operands[0].type) >= 64:
        return None
    body = op.regions[0].blocks[0]
    last = body.last_op
    combining = last.operands[0].owner if last is not None else None
    if not isinstance(combining, arith.AddiOp | arith.MuliOp) or set(combining.operands) != set(body.args):
        return None
    span = span_of(op)
    asserted = [o for o in body.ops if isinstance(o, tt.AssertOp)]
    if len(asserted) == 1 and _is_of(asserted[0], body):
        span = span_of(asserted[0])
    elif asserted or SIGNED not in op.attributes:
        return None
    kind = "sum" if isinstance(combining, arith.AddiOp) else "product"
    return Source(number, kind, f"int{bit_width(op.operands[0].type)}", span=span)


def _is_of(assertion: tt.AssertOp, body: Block) -> bool:
    """Whether an assertion is that which the language adds to a sum or product of signed integers."""
    message = assertion.message
    of_language = isinstance(message, StringAttr) and " overflow detected for operation " in message.data
    return of_language and any(isinstance(op, arith.ExtSIOp) for op in body.ops)


def _of_row(op: Operation, row: Row, number: int) -> Source | None:
    width, sign = bit_width(op.results[0].type), "uint" if row.is_unsigned else "int"
    if row.wrong == "range":
        element = ELEMENTS[element_of(op.operands[0].type).name]
        kind = f"{element.language} to {sign}{width}"
        return None if element.is_small else Source(number, "to_int", kind, span=span_of(op))
    distance = _known(op.operands[1])
    if row.wrong == "divisor":
        kind = "remainder" if "rem" in op.name else "divide"
        return None if distance else Source(number, kind, f"{sign}{width}", span=span_of(op))
    within = distance is not None and 0 <= distance < width
    return None if within else Source(number, "shift", f"int{width}", width, span_of(op))


def doubt_of(b: Builder, op: Operation, source: Source) -> tuple[SSAValue, SSAValue]:
    """Where the result of an operation is wrong, and the number, of 64 bits, that is told of it."""
    if source.kind in ("divide", "remainder"):
        x, y = op.operands
        unsigned = source.type.startswith("u")
        return b.cmpi("eq", y, b.constant(0, y.type)), _wide(b, x, unsigned)
    if source.kind == "shift":
        n = op.operands[1]
        return b.cmpi("uge", n, b.constant(source.extent, n.type)), _wide(b, n, False)
    if source.kind == "gather":
        i = op.operands[1]
        return b.cmpi("uge", i, b.constant(source.extent, i.type)), _wide(b, i, False)
    if source.kind == "to_int":
        return _unfit(b, op)
    return _combined(b, op, source)


def _wide(b: Builder, x: SSAValue, unsigned: bool) -> SSAValue:
    if bit_width(x.type) == 64:
        return x
    return b.cast(arith.ExtUIOp if unsigned else arith.ExtSIOp, x, i64)


def _unfit(b: Builder, op: Operation) -> tuple[SSAValue, SSAValue]:
    """Where a float is not between the limits of an integer: floats that are not NaN, and what they are as f64."""
    x = op.operands[0]
    if bit_width(x.type) < 32:
        x = b.cast(arith.ExtFOp, x, f32)
    bits = bit_width(op.results[0].type)
    signed = isinstance(op, arith.FPToSIOp)
    high = float(2 ** (bits - 1) if signed else 2**bits)
    low = -high if signed else 0.0
    exact = bits < 24 or (bit_width(x.type) == 64 and bits < 53) or not signed  # is low - 1 a float?
    above = b.cmpf("ogt" if exact else "oge", x, b.constant(low - 1 if exact else low, x.type))
    fits = b.binary(arith.AndIOp, above, b.cmpf("olt", x, b.constant(high, x.type)))
    wide = b.cast(arith.ExtFOp, x, f64) if bit_width(x.type) < 64 else x
    told = b.create(tt.BitcastOp, (wide,), (like(wide.type, i64),)).results[0]
    return b.binary(arith.XOrIOp, fits, b.constant(1, fits.type)), told


def _combined(b: Builder, op: Operation, source: Source) -> tuple[SSAValue, SSAValue]:
    """Where a sum or product is another in 64 bits, and that.

    A product is held to the first numbers beyond the limits, on both sides: there it stays unless a factor is 0, and
    then it is 0.
    """
    for inside in list(op.regions[0].blocks[0].ops):
        if isinstance(inside, tt.AssertOp):  # of the language, which knows neither the place nor the exact result
            remove(inside)
    width = bit_width(op.operands[0].type)
    body = Block(arg_types=(i64, i64))
    inner = Builder.at_end(body, op.location)
    if source.kind == "sum":
        combined = inner.binary(arith.AddiOp, *body.args)
    else:
        beyond = (1 << width - 1) + 1
        combined = inner.binary(arith.MuliOp, *body.args)
        combined = inner.binary(arith.MinSIOp, combined, inner.constant(beyond, i64))
        combined = inner.binary(arith.MaxSIOp, combined, inner.constant(-beyond, i64))
    scan = isinstance(op, tt.ScanOp)
    inner.create(tt.ScanReturnOp if scan else tt.ReduceReturnOp, (combined,))
    wide = _wide(b, op.operands[0], False)
    exact = b.create(
        type(op), (wide,), (like(op.results[0].type, i64),), dict(op.properties), regions=(Region(body),)
    ).results[0]
    low, high = -(1 << width - 1), (1 << width - 1) - 1
    below = b.cmpi("slt", exact, b.constant(low, exact.type))
    return b.binary(arith.OrIOp, below, b.cmpi("sgt", exact, b.constant(high, exact.type))), exact
