"""Conversions between floating-point formats, exact in rounding and special values.

Half to and from single are instructions, or integer arithmetic where there are none (half.py). bfloat16 is the upper
half of a single: widening is a shift, narrowing adds the rounding increment to the bits. The fp8 kinds go through
single precision: widening by integer arithmetic with denormals by one multiplication, narrowing by rounding the bits
at the right place, saturating to the largest finite number as `cvt.rn.satfinite` does, NaN to NaN.

The formats (exponent bits, mantissa bits, bias): e5m2 (5, 2, 15) is IEEE-like, with infinities; e4m3fn (4, 3, 7) has no
infinity and one NaN pattern a sign; the `fnuz` kinds (e4m3 bias 8, e5m2 bias 16) have one NaN, 0x80, and no negative
zero.
"""

from __future__ import annotations

from dataclasses import dataclass

from weft.backends.llvm import half
from weft.backends.llvm.emit import Function
from weft.backends.llvm.values import Type, Value, const, mangle
from weft.ops import ELEMENTS


@dataclass(frozen=True)
class SmallFloat:
    """An 8-bit format: exponent bits, mantissa bits, bias, and how infinity and NaN are written."""

    exponent: int
    mantissa: int
    bias: int
    kind: str  # "ieee", "fn" or "fnuz"

    @property
    def largest(self) -> int:
        """Bits of the largest finite number."""
        if self.kind == "ieee":
            return ((1 << self.exponent) - 1 << self.mantissa) - 1
        return 0x7E if self.kind == "fn" else 0x7F

    @property
    def nan(self) -> int:
        """Bits of NaN."""
        return 0x80 if self.kind == "fnuz" else 0x7F


SMALL = {e.name: SmallFloat(e.exponent, e.mantissa, e.bias, e.specials) for e in ELEMENTS.values() if e.is_small}


def convert_float(f: Function, v: Value, source: str, target: str, toward_zero: bool = False) -> Value:
    """`v`, of element `source` ("f32", "bf16", "f8E5M2", ...), as `target`; to nearest even unless `toward_zero`."""
    if source == target:
        return v
    if f.bf16 == "bfloat" and not toward_zero and source not in SMALL and target not in SMALL:
        return _by_instructions(f, v, source, target)
    if source in SMALL:
        return convert_float(f, _widen_small(f, v, SMALL[source]), "f32", target, toward_zero)
    if v.type.elem == "bfloat":
        return convert_float(f, f.cast("fpext", v, v.type.with_elem("float")), "f32", target, toward_zero)
    if source == "bf16":
        wide = f.shl(f.cast("zext", v, v.type.with_elem("i32")), const(v.type.with_elem("i32"), 16))
        return convert_float(f, f.bitcast(wide, v.type.with_elem("float")), "f32", target, toward_zero)
    if source == "f16":
        if target == "f64" and f.module.converts_half:
            return f.cast("fpext", v, v.type.with_elem("double"))
        return convert_float(f, _from_half(f, v), "f32", target, toward_zero)
    if source == "f64":
        if target == "f32" and not toward_zero:
            return f.cast("fptrunc", v, v.type.with_elem("float"))
        # Rounding to odd keeps what a second rounding to nearest needs to know.
        return convert_float(f, _double_to_float(f, v, odd=not toward_zero), "f32", target, toward_zero)
    if target == "f64":
        return f.cast("fpext", v, v.type.with_elem("double"))
    if target == "f16":
        return _single_to_half_rtz(f, v) if toward_zero else _to_half(f, v)
    if target == "bf16":
        return _single_to_bfloat(f, v, toward_zero)
    return _narrow_small(f, v, SMALL[target], toward_zero)


def _by_instructions(f: Function, v: Value, source: str, target: str) -> Value:
    """Where LLVM converts a bfloat too: one instruction, or two by way of f32 between the halves."""
    a, b = ELEMENTS[source], ELEMENTS[target]
    if a.bits == b.bits:
        return convert_float(f, convert_float(f, v, source, "f32"), "f32", target)
    return f.cast("fpext" if a.bits < b.bits else "fptrunc", v, v.type.with_elem(b.llvm))


def _from_half(f: Function, v: Value) -> Value:
    return f.cast("fpext", v, v.type.with_elem("float")) if f.module.converts_half else half.to_single(f, v)


def _to_half(f: Function, v: Value) -> Value:
    return f.cast("fptrunc", v, v.type.with_elem("half")) if f.module.converts_half else half.from_single(f, v)


def _int(type: Type) -> Type:
    return type.with_elem(f"i{type.bits}")


def _single_to_bfloat(f: Function, v: Value, toward_zero: bool) -> Value:
    ints = v.type.with_elem("i32")
    bits = f.bitcast(v, ints)
    upper = f.lshr(bits, const(ints, 16))
    nan = f.fcmp("uno", v, v)
    if toward_zero:
        rounded = upper
    else:
        odd = f.and_(upper, const(ints, 1))
        rounded = f.lshr(f.add(bits, f.add(odd, const(ints, 0x7FFF))), const(ints, 16))
    quiet = f.or_(upper, const(ints, 0x40))
    return f.cast("trunc", f.select(nan, quiet, rounded), v.type.with_elem("i16"))


def _step_toward_zero(f: Function, v: Value, back: Value, narrow: Value) -> Value:
    """`narrow`'s bits, one less in magnitude where widening it back (`back`) exceeds |v|."""
    ints = _int(narrow.type)
    too_big = f.fcmp("ogt", f.intrinsic("fabs", v.type, [back]), f.intrinsic("fabs", v.type, [v]))
    return f.sub(f.bitcast(narrow, ints), f.cast("zext", too_big, ints))


def _single_to_half_rtz(f: Function, v: Value) -> Value:
    narrow = _to_half(f, v)
    return f.bitcast(_step_toward_zero(f, v, _from_half(f, narrow), narrow), narrow.type)


def _double_to_float(f: Function, v: Value, odd: bool) -> Value:
    single = f.cast("fptrunc", v, v.type.with_elem("float"))
    back = f.cast("fpext", single, v.type)
    bits = _step_toward_zero(f, v, back, single)
    if odd:
        truncated = f.cast("fpext", f.bitcast(bits, single.type), v.type)
        inexact = f.fcmp("one", truncated, v)
        bits = f.or_(bits, f.cast("zext", inexact, bits.type))
    return f.bitcast(bits, single.type)


def _widen_small(f: Function, v: Value, kind: SmallFloat) -> Value:
    ints = v.type.with_elem("i32")
    floats = v.type.with_elem("float")
    bits = f.cast("zext", v, ints)
    sign = f.shl(f.and_(bits, const(ints, 0x80)), const(ints, 24))
    magnitude = f.and_(bits, const(ints, 0x7F))
    # As a single with the exponent too small by 127 - bias, which one multiplication by a power of two repairs,
    # denormals included.
    shifted = f.bitcast(f.shl(magnitude, const(ints, 23 - kind.mantissa)), floats)
    scaled = f.bitcast(f.bin("fmul", shifted, const(floats, 2.0 ** (127 - kind.bias))), ints)
    infinity, nan = const(ints, 0x7F800000), const(ints, 0x7FC00000)
    if kind.kind == "ieee":
        top = (1 << kind.exponent) - 1 << kind.mantissa
        scaled = f.select(f.icmp("eq", magnitude, const(ints, top)), infinity, scaled)
        scaled = f.select(f.icmp("ugt", magnitude, const(ints, top)), nan, scaled)
    elif kind.kind == "fn":
        scaled = f.select(f.icmp("eq", magnitude, const(ints, 0x7F)), nan, scaled)
    result = f.or_(scaled, sign)
    if kind.kind == "fnuz":
        result = f.select(f.icmp("eq", bits, const(ints, 0x80)), nan, result)
    return f.bitcast(result, floats)


def _narrow_small(f: Function, v: Value, kind: SmallFloat, toward_zero: bool) -> Value:
    ints, floats = v.type.with_elem("i32"), v.type
    bits = f.bitcast(v, ints)
    sign = f.and_(f.lshr(bits, const(ints, 24)), const(ints, 0x80))
    magnitude = f.and_(bits, const(ints, 0x7FFFFFFF))
    shift = 23 - kind.mantissa
    # Normal results: round the single's bits at `shift`, then move the bias.
    if toward_zero:
        rounded = magnitude
    else:
        odd = f.and_(f.lshr(magnitude, const(ints, shift)), const(ints, 1))
        rounded = f.add(magnitude, f.add(odd, const(ints, (1 << (shift - 1)) - 1)))
    normal = f.sub(f.lshr(rounded, const(ints, shift)), const(ints, (127 - kind.bias) << kind.mantissa))
    # Denormal results: adding 2^k aligns the last place with the single's, and the addition rounds.
    magic = 2.0 ** (23 - kind.mantissa + 1 - kind.bias)
    absolute = f.bitcast(magnitude, floats)
    if toward_zero:
        units = f.bin("fmul", absolute, const(floats, 2.0 ** (kind.mantissa + kind.bias - 1)))
        capped = f.select(f.fcmp("olt", units, const(floats, 256.0)), units, const(floats, 0.0))
        denormal = f.cast("fptosi", capped, ints)
    else:
        denormal = f.sub(
            f.bitcast(f.bin("fadd", absolute, const(floats, magic)), ints), f.bitcast(const(floats, magic), ints)
        )
    smallest_normal = const(floats, 2.0 ** (1 - kind.bias))
    result = f.select(f.fcmp("olt", absolute, smallest_normal), denormal, normal)
    result = f.intrinsic("smin", ints, [result, const(ints, kind.largest)])
    if kind.kind == "fnuz":
        sign = f.select(f.icmp("eq", result, const(ints, 0)), const(ints, 0), sign)
    result = f.or_(result, sign)
    nan = f.fcmp("uno", v, v)
    result = f.select(nan, const(ints, kind.nan), result)
    return f.cast("trunc", result, v.type.with_elem("i8"))


def to_integer(f: Function, x: Value, to: Type, *, signed: bool) -> Value:
    """A float as an integer, towards zero: what does not fit becomes the nearest that does, NaN becomes 0.

    LLVM has an operation for that, which x86-64 does lane by lane. Vectors are brought into range first, and then
    converted by one instruction.
    """
    if not x.type.lanes:
        return f.call(f"llvm.fpto{'s' if signed else 'u'}i.sat.{mangle(to)}.{mangle(x.type)}", to, [x])
    least, most = (-(1 << to.bits - 1), (1 << to.bits - 1) - 1) if signed else (0, (1 << to.bits) - 1)
    significand = 24 if x.type.elem == "float" else 53
    dropped = max(0, most.bit_length() - significand)
    highest = const(x.type, float(most >> dropped << dropped))  # a float
    inside = f.select(f.fcmp("olt", x, highest), x, highest)
    lowest = const(x.type, float(least))
    inside = f.select(f.fcmp("ogt", inside, lowest), inside, lowest)
    if to.bits < 32:
        number = f.cast("trunc", f.cast("fptosi", inside, to.with_elem("i32")), to)
    else:
        number = f.cast("fptosi" if signed else "fptoui", inside, to)
    if dropped:
        beyond = f.fcmp("oge", x, const(x.type, float(most + 1)))
        number = f.select(beyond, const(to, most if signed else -1), number)
    return f.select(f.fcmp("uno", x, x), const(to, 0), number)
