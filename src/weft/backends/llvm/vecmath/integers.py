"""The integer functions of libdevice: bit counting and moving, high products, averages, distances.

Names beginning with u take their operands as unsigned (`umulhi`, `uhadd`, ...).
"""

from __future__ import annotations

from .expr import X, intrinsic, where
from .reduction import multiply_high
from .registry import define


def _count(name: str, x: X, *flags: str) -> X:
    suffix = f"v{x.type.lanes}{x.elem}" if x.type.lanes else x.elem
    full = f"llvm.{name}.{suffix}"
    x.f.module.declarations.setdefault(full, f"declare {x.type} @{full}({x.type}{', i1 immarg' * len(flags)})")
    y = X(x.f, x.f.emit(x.type, f"call {x.type} @{full}({', '.join([str(x.v), *flags])})"))
    return y.cast("trunc", "i32") if x.elem == "i64" else y


define("clz", "i32 i64", result="i32")(lambda x: _count("ctlz", x, "i1 false"))
define("popc", "i32 i64", result="i32")(lambda x: _count("ctpop", x))
# The place of the lowest set bit, counted from 1; 0 if there is none.
define("ffs", "i32 i64", result="i32")(lambda x: where(x == 0, 0, _count("cttz", x, "i1 false") + 1))
define("brev", "i32 i64")(lambda x: intrinsic("bitreverse", x))


@define("byte_perm", "i32", "i32 i32 i32")
def byte_perm(x: X, y: X, selector: X) -> X:
    """Each of the selector's lowest four digits (of 4 bits, the top one ignored) names a byte of (y:x)."""
    both = (y.cast("zext", "i64") << 32) | x.cast("zext", "i64")
    chosen = selector.cast("zext", "i64")
    result = both.const(0)
    for i in range(4):
        place = (chosen.lshr(4 * i) & 7) << 3
        result = result | ((both.lshr(place) & 0xFF) << (8 * i))
    return result.cast("trunc", "i32")


@define("mulhi", "i32", "i32 i32")
def mulhi(x: X, y: X) -> X:
    return (x.cast("sext", "i64") * y.cast("sext", "i64")).lshr(32).cast("trunc", "i32")


@define("umulhi", "i32", "i32 i32")
def umulhi(x: X, y: X) -> X:
    return (x.cast("zext", "i64") * y.cast("zext", "i64")).lshr(32).cast("trunc", "i32")


define("umulhi", "i64", "i64 i64")(multiply_high)
# The unsigned high product less what the sign bits added to it.
define("mulhi", "i64", "i64 i64")(lambda x, y: multiply_high(x, y) - ((x >> 63) & y) - ((y >> 63) & x))
define("mul24", "i32", "i32 i32")(lambda x, y: ((x << 8) >> 8) * ((y << 8) >> 8))
define("umul24", "i32", "i32 i32")(lambda x, y: (x & 0xFFFFFF) * (y & 0xFFFFFF))
# |x - y| + z, the difference taken as unsigned.
define("sad", "i32", "i32 i32 i32")(lambda x, y, z: where(x < y, y - x, x - y) + z)
define("usad", "i32", "i32 i32 i32")(lambda x, y, z: where(x.ult(y), y - x, x - y) + z)
# (x + y) >> 1 without overflow: what they share, and half of where they differ.
define("hadd", "i32", "i32 i32")(lambda x, y: (x & y) + ((x ^ y) >> 1))
define("uhadd", "i32", "i32 i32")(lambda x, y: (x & y) + (x ^ y).lshr(1))
define("rhadd", "i32", "i32 i32")(lambda x, y: (x | y) - ((x ^ y) >> 1))  # (x + y + 1) >> 1 without overflow
define("urhadd", "i32", "i32 i32")(lambda x, y: (x | y) - (x ^ y).lshr(1))
