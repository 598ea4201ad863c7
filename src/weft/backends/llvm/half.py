"""Half precision where the processor has no instruction to convert it.

Conversions are written on integers, for vectors as for scalars. For operations on halves that remain,
LLVM calls `__extendhfsf2` and `__truncsfhf2` of a compiler's library, which a Python process need not
hold. So the module brings them along:

    define weak_odr hidden float @__extendhfsf2(half %x) { ... }
"""

from __future__ import annotations

from .emit import Function, Module
from .values import FLOAT, HALF, Value, const

_LINKAGE = "weak_odr hidden"


def define_conversions(module: Module) -> None:
    """Define the two functions that LLVM calls."""
    extend = module.function("__extendhfsf2", FLOAT, [("x", HALF)], "nounwind", _LINKAGE)
    extend.ret(to_single(extend, extend.args[0]))
    trunc = module.function("__truncsfhf2", HALF, [("x", FLOAT)], "nounwind", _LINKAGE)
    trunc.ret(from_single(trunc, trunc.args[0]))


def to_single(f: Function, x: Value) -> Value:
    """Halves as floats."""
    i32, floats = x.type.with_elem("i32"), x.type.with_elem("float")
    bits = f.cast("zext", f.bitcast(x, x.type.with_elem("i16")), i32)
    sign = f.shl(f.and_(bits, const(i32, 0x8000)), const(i32, 16))
    magnitude = f.shl(f.and_(bits, const(i32, 0x7FFF)), const(i32, 13))
    # As a float its exponent is too small by 127 - 15, which a multiplication repairs, also of denormals.
    finite = f.bitcast(f.fmul(f.bitcast(magnitude, floats), const(floats, 2.0**112)), i32)
    top = const(i32, 0x7C00 << 13)
    special = f.or_(magnitude, const(i32, 0x7F800000))
    quiet = f.select(f.icmp("ugt", magnitude, top), f.or_(special, const(i32, 0x00400000)), special)
    return f.bitcast(f.or_(f.select(f.icmp("uge", magnitude, top), quiet, finite), sign), floats)


def from_single(f: Function, x: Value) -> Value:
    """Floats as halves, to nearest."""
    i32, floats = x.type.with_elem("i32"), x.type
    bits = f.bitcast(x, i32)
    sign = f.and_(f.lshr(bits, const(i32, 16)), const(i32, 0x8000))
    magnitude = f.and_(bits, const(i32, 0x7FFFFFFF))
    odd = f.and_(f.lshr(magnitude, const(i32, 13)), const(i32, 1))
    rounded = f.add(magnitude, f.add(odd, const(i32, 0xFFF)))
    normal = f.sub(f.lshr(rounded, const(i32, 13)), const(i32, 112 << 10))
    # The last place of one half is that of a denormal result: the addition rounds.
    half = const(floats, 0.5)
    denormal = f.sub(f.bitcast(f.fadd(f.bitcast(magnitude, floats), half), i32), f.bitcast(half, i32))
    result = f.select(f.icmp("ult", magnitude, const(i32, 0x38800000)), denormal, normal)  # below 2^-14
    result = f.select(f.icmp("uge", magnitude, const(i32, 0x47800000)), const(i32, 0x7C00), result)  # from 2^16 on
    payload = f.and_(f.lshr(magnitude, const(i32, 13)), const(i32, 0x3FF))
    nan = f.or_(payload, const(i32, 0x7E00))
    result = f.select(f.icmp("ugt", magnitude, const(i32, 0x7F800000)), nan, result)
    return f.bitcast(f.cast("trunc", f.or_(result, sign), x.type.with_elem("i16")), x.type.with_elem("half"))
