"""Taking the multiples of pi/2 out of an argument, however large: x = n pi/2 + r with |r| <= pi/4.

Usual arguments: Cody and Waite's subtraction in three parts, made exact by fma. Large ones: Payne and Hanek (Muller,
Elementary Functions, chapter 11). With |x| = m 2^q, m an integer, only the bits of 2/pi around place q matter: those
far above give multiples of four quarter turns, those far below nothing. The product of m with 192 of these bits, of
which the top 128 are kept, leaves more than 60 good bits of r in the worst case for doubles, where 61 bits cancel.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from itertools import pairwise

from ..emit import Module
from ..values import DOUBLE, I64, PTR, VOID, Value
from . import dd
from .expr import X, fabs, fma, rarely, table, where

_FLOAT_PARTS = (1.5707962512969971, 7.549790126404332e-08, -1.7151245100058819e-15)
_DOUBLE_PARTS = (1.5707963267341256, 6.077100506303966e-11, 2.0222662487959506e-21)
FLOAT_LIMIT = 100000.0
_DOUBLE_LIMIT = 1000000.0
PI_HALF = (1.5707963267948966, 6.123233995736766e-17)
_TWO_OVER_PI = 0.6366197723675814
_LOW32 = 0xFFFFFFFF


def reduce_moderate(x: X) -> tuple[X, X]:
    """`reduce_float` of what is below FLOAT_LIMIT in size."""
    magic = 1.5 * 2.0**23
    shifted = fma(x, _TWO_OVER_PI, magic)
    n, r = shifted - magic, x
    for part in _FLOAT_PARTS:
        r = fma(n, -part, r)
    return shifted.bits(), r


def reduce_float(x: X) -> tuple[X, X]:
    """(n as i32, right in its low bits; r), to about half a unit in its last place, for every finite float."""
    n, r = reduce_moderate(x)
    size = fabs(x)

    def large() -> tuple[X, X]:
        quarter, high, _ = reduce_large(x.widen())
        return quarter.cast("trunc", "i32"), high.narrow()

    bits, r = rarely((size >= FLOAT_LIMIT) & (size < float("inf")), (n, r), large)
    return bits, r


def reduce_double(x: X) -> tuple[X, X, X]:
    """(n as i64, right in its low bits; r in two parts) for every finite double."""
    magic = 1.5 * 2.0**52
    shifted = fma(x, _TWO_OVER_PI, magic)
    n = shifted - magic
    first = fma(n, -_DOUBLE_PARTS[0], x)
    second = fma(n, -_DOUBLE_PARTS[1], first)
    lost = fma(n, -_DOUBLE_PARTS[1], first - second)
    high, low = dd.quick_two_sum(second, fma(n, -_DOUBLE_PARTS[2], lost))
    size = fabs(x)
    cond = (size >= _DOUBLE_LIMIT) & (size < float("inf"))
    bits, high, low = rarely(cond, (shifted.bits(), high, low), lambda: reduce_large(x))
    return bits, high, low


@lru_cache(maxsize=1)
def two_over_pi_words() -> tuple[int, ...]:
    """64 zero bits, then the binary digits of 2/pi, in signed 64-bit words; pi by Machin's formula in integers."""
    places = 1500

    def arctan_inverse(n: int) -> int:
        total = term = (1 << places) // n
        k, sign = 1, -1
        while term:
            term //= n * n
            k += 2
            total += sign * (term // k)
            sign = -sign
        return total

    pi = 4 * (4 * arctan_inverse(5) - arctan_inverse(239))
    count = 21
    digits = ((2 << (2 * places)) // pi) >> (places - 64 * (count - 1))
    words = [0] + [(digits >> (64 * (count - 2 - i))) & (2**64 - 1) for i in range(count - 1)]
    return tuple(w - 2**64 if w >> 63 else w for w in words)


def multiply_high(a: X, b: X) -> X:
    """The upper 64 bits of the unsigned product of two i64."""
    a_low, a_high, b_low, b_high = a & _LOW32, a.lshr(32), b & _LOW32, b.lshr(32)
    middle = a_low * b_high + (a_low * b_low).lshr(32)
    other = a_high * b_low + (middle & _LOW32)
    return a_high * b_high + middle.lshr(32) + other.lshr(32)


def reduce_large(x: X) -> tuple[X, X, X]:
    """(n as i64, r in two parts) for doubles of at least 2^16 in size (other lanes: anything).

    Rare, so it is kept small: the lanes go through memory to one scalar function that the whole module shares.
    """
    f, type = x.f, x.type
    whole = type.with_elem("i64")
    if _LARGE not in f.module.defined:
        _define_large(f.module)
    high, low, n = f.alloca(type), f.alloca(type), f.alloca(whole)
    f.store(x.v, high)
    f.do(f"call void @{_LARGE}({high}, {low}, {n}, i64 {max(type.lanes, 1)})")
    return X(f, f.load(whole, n)), X(f, f.load(type, high)), X(f, f.load(type, low))


_LARGE = "weft.reduce_large"


def _define_large(module: Module) -> None:
    """`void weft.reduce_large(ptr high, ptr low, ptr n, i64 count)`; high holds x when called."""
    f = module.function(
        _LARGE,
        VOID,
        [("high", PTR), ("low", PTR), ("n", PTR), ("count", I64)],
        "noinline optnone cold nounwind willreturn memory(read, argmem: readwrite)",
        "internal",
    )
    places, count = f.args[:3], f.args[3]
    with f.loop(f.const(I64, 0), count, f.const(I64, 1)) as i:
        at = [f.gep(DOUBLE, place, i) for place in places]
        x = X(f, f.load(DOUBLE, at[0]))

        def large() -> list[Value]:
            for value, place in zip(_payne_hanek(x), at):
                f.store(value.v, place)
            return []

        f.if_else((fabs(x) >= 65536.0).v, large)
    f.ret()


def _payne_hanek(x: X) -> tuple[X, X, X]:
    """(high, low, n) for a scalar double."""
    bits = x.bits()
    m = (bits & ((1 << 52) - 1)) | (1 << 52)
    # the window begins at the digit of weight 2 in 2^q (2/pi), q = exponent - 52; before the digits stand 64 zeros
    start = (bits.lshr(52) & 0x7FF) - (1075 - 62)
    last = start.const(1033)
    start = where(start < last, start, last)  # infinity and NaN stay within the table
    index, shift = start.lshr(6), start & 63
    words = [table("two_over_pi", "i64", two_over_pi_words(), index + i) for i in range(4)]
    if x.f.module.widest < 128:
        first, second = _by_halves(m, [funnel(a, b, shift) for a, b in pairwise(words)])
    else:
        window = [funnel(a, b, shift).cast("zext", "i128") for a, b in pairwise(words)]
        wide = m.cast("zext", "i128")
        middle = wide * window[1] + (wide * window[2]).lshr(64)
        total = ((wide * window[0]) << 64) + middle
        first, second = total.lshr(64).cast("trunc", "i64"), total.cast("trunc", "i64")
    # first: two bits of quarter turns, then the fraction, which goes on in second
    n = (first + (1 << 61)) >> 62
    fraction = first - (n << 62)
    parts = [
        (fraction >> 32).to_float("double") * 2.0**-30,
        (fraction & _LOW32).to_float("double") * 2.0**-62,
        second.lshr(32).to_float("double") * 2.0**-94,
        (second & _LOW32).to_float("double") * 2.0**-126,
    ]
    high, low = dd.quick_two_sum(parts[0], parts[1])
    turn = dd.quick_two_sum(high, low + (parts[2] + parts[3]))
    high, low = dd.mul(turn, dd.constant(x, PI_HALF))
    negative = bits >> 63
    sign = bits & -(1 << 63)
    return (high.bits() ^ sign).as_float(), (low.bits() ^ sign).as_float(), (n ^ negative) - negative


def _by_halves(m: X, window: Sequence[X]) -> tuple[X, X]:
    """The two upper words, without what is above them, of a number of 53 bits times one of three words."""
    high = [_high(m, word) for word in window[1:]]
    second = m * window[1] + high[1]
    return m * window[0] + high[0] + second.ult(high[1]).cast("zext", "i64"), second


def _high(m: X, word: X) -> X:
    """The upper word of a number of 53 bits times one of 64, by halves of 32 bits."""
    low, high = m & _LOW32, m.lshr(32)
    below, above = word & _LOW32, word.lshr(32)
    middle = low * above + (low * below).lshr(32)
    return high * above + middle.lshr(32) + (high * below + (middle & _LOW32)).lshr(32)


def funnel(a: X, b: X, shift: X) -> X:
    """The upper word of (a:b) shifted left."""
    return X(a.f, a.f.intrinsic("fshl", a.type, [a.v, b.v, shift.v]))
