"""Multiplying by powers of two, and the steps that every exponential begins with.

An exponential writes x = n log_b(2) + r and gives 2^n b^r. Its n is found by adding a large number whose last place
is 1 (so the sum is rounded to an integer), and that number is chosen so that the sum's low bits are n plus twice the
exponent's bias. Halving these bits gives two exponent fields whose powers of two multiply to 2^n: neither over- nor
underflows, and a denormal result is rounded once. With AVX-512 the same is one instruction.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..values import const_lanes
from .expr import BIAS, MANTISSA, X, fma
from .registry import has_wide_scale


def wide_scale(x: X) -> bool:
    """Can x be scaled by AVX-512's instruction?"""
    return has_wide_scale(x.f.module) and x.type.lanes * x.type.bits in (128, 256, 512, 1024, 2048, 4096)


def round_to_integer(x: X, factor: float, bias: int = 0) -> tuple[X, X]:
    """n = the integer nearest x*factor as a float, and bits whose lowest 9 (double: 12) are n + 2*bias.

    |x*factor| must be below 2^20.
    """
    magic = 1.5 * 2.0 ** MANTISSA[x.elem] + 2 * bias
    shifted = fma(x, factor, magic)
    return shifted - magic, shifted.bits()


def scale(p: X, n: X, bits: X) -> X:
    """p * 2^n, rounded once, for p near 1 and n, bits from `round_to_integer` with the bias of p's type."""
    if wide_scale(p):
        return scalef(p, n)
    mantissa = MANTISSA[p.elem]
    low = bits.lshr(1)
    high = bits - low
    return p * (low << mantissa).as_float() * (high << mantissa).as_float()


def scalef(p: X, n: X) -> X:
    """p * 2^floor(n) in one instruction (AVX-512), by pieces of a register."""
    f, type = p.f, p.type
    register = 512 // type.bits
    if type.lanes > register:
        from_halves = [scalef(*pair) for pair in zip(_halves(p), _halves(n))]
        return X(f, f.shuffle(from_halves[0].v, from_halves[1].v, range(type.lanes)))
    width = type.lanes * type.bits
    kind = "ps" if type.elem == "float" else "pd"
    name = f"llvm.x86.avx512.mask.scalef.{kind}.{width}"
    mask = "i16" if type.lanes == 16 else "i8"
    rounding = ", i32 4" if width == 512 else ""
    f.module.declarations.setdefault(
        name, f"declare {type} @{name}({type}, {type}, {type}, {mask}{rounding.removesuffix(' 4')})"
    )
    return X(f, f.emit(type, f"call {type} @{name}({p.v}, {n.v}, {type} zeroinitializer, {mask} -1{rounding})"))


def lookup16(index: X, values: Sequence[float]) -> X:
    """values[index mod 16] from a register (AVX-512 float; the number of lanes a multiple of 16)."""
    f, lanes = index.f, index.type.lanes
    if lanes > 16:
        low, high = (lookup16(half, values) for half in _halves(index))
        return X(f, f.shuffle(low.v, high.v, range(lanes)))
    type = index.type.with_elem("float")
    name = "llvm.x86.avx512.permvar.sf.512"
    f.module.declarations.setdefault(name, f"declare {type} @{name}({type}, {index.type})")
    return X(f, f.emit(type, f"call {type} @{name}({const_lanes(type, values)}, {index.v})"))


def exponent(x: X) -> X:
    """floor(log2 |x|) as a float: -inf for 0, inf for inf (AVX-512; floats in multiples of 16 lanes)."""
    return _unary512("getexp", "", x)


def mantissa(x: X) -> X:
    """m in [3/4, 3/2) with x = 2^e m; NaN for negative x, 1 for 0 and infinity (AVX-512; floats, as above)."""
    return _unary512("getmant", "i32 11, ", x)


def _unary512(name: str, extra: str, x: X) -> X:
    f, type = x.f, x.type
    if type.lanes > 16:
        low, high = (_unary512(name, extra, half) for half in _halves(x))
        return X(f, f.shuffle(low.v, high.v, range(type.lanes)))
    full = f"llvm.x86.avx512.mask.{name}.ps.512"
    f.module.declarations.setdefault(
        full, f"declare {type} @{full}({type}, {'i32, ' if extra else ''}{type}, i16, i32)"
    )
    return X(f, f.emit(type, f"call {type} @{full}({x.v}, {extra}{type} zeroinitializer, i16 -1, i32 4)"))


def _halves(x: X) -> tuple[X, X]:
    half = x.type.lanes // 2
    return X(x.f, x.f.shuffle(x.v, None, range(half))), X(x.f, x.f.shuffle(x.v, None, range(half, 2 * half)))


def power_of_two(n: X, elem: str) -> X:
    """2^n for an integer n (i32 for float, i64 for double) within the normal range."""
    return ((n + BIAS[elem]) << MANTISSA[elem]).as_float()
