"""Instructions that ptxas makes of an operation on an element, on Hopper, and the units that do them.

Found by compiling a kernel with each operation and one without it for sm_90a, and counting the difference (ptxas 12.8,
2026-11-27): `exp` is a multiplication, ex2 and one more multiplication. Rates of units are those of the CUDA
programming guide: 32 lanes of a scheduler multiply and add floats in a cycle, 16 compare, choose, shift and add
integers, 4 compute special functions and convert numbers.
"""

from __future__ import annotations

from weft.explain.costs import Work
from weft.ir.lane import ELEMENT_BITS, LaneOp

__all__ = ["work"]

CHOICES = frozenset(("select", "arith.cmpf", "arith.cmpi", "arith.maxnumf", "arith.minnumf", "arith.maximumf"))
CHOICES |= {"arith.minimumf", "arith.maxsi", "arith.minsi", "arith.maxui", "arith.minui", "permute", "ballot"}
"""What the narrower unit does; shifts, sums and logic of integers as well."""
FLOATS: dict[str, tuple[float, float]] = {
    "math.fma": (1, 0),
    "math.absf": (0.25, 0),
    "math.floor": (1, 1),
    "math.ceil": (1, 1),
    "math.exp": (3, 1),
    "math.exp2": (1, 1),
    "math.log": (25, 0),
    "math.log2": (26, 0),
    "math.sin": (30, 0),
    "math.cos": (30, 0),
    "math.sqrt": (1, 1),
    "math.rsqrt": (1, 1),
    "math.erf": (20, 1),
    "math.powf": (99, 2),
    "libdevice.__nv_tanhf": (14.3, 2),
    "libdevice.__nv_log1pf": (24, 0),
    "libdevice.__nv_expf": (5, 1),
    "libdevice.__nv_powf": (99, 2),
}
"""Instructions, and those of them that are special functions, of f32. Ways that are hardly taken are left out: a sine
of more than 1e5, a quotient of denormal numbers."""
PRECISE: dict[str, tuple[float, float]] = {"arith.divf": (14, 1), "math.sqrt": (10, 1)}
LIBRARY = (25.0, 1.0)
"""Of a function of the library that is not in the table."""
OF_INTEGERS = {
    "arith.divsi": (31, 3), "arith.divui": (26, 3), "arith.remsi": (28, 3), "arith.remui": (24, 3),
    "arith.mulhui": (1, 0), "arith.mulhsi": (1, 0),
}  # fmt: skip
OF_32, OF_64, GLUE, SELECTED = 0.25, 0.05, 0.4, 0.5
"""The part of sums, products and shifts of integers, of what joins and widens numbers, and of choices that is left when
LLVM and ptxas have folded addresses into accesses, and several operations into one: from the instructions of kernels
without loops (f)."""
BOTH = ("tiny", "huge")
QUOTIENTS = ((2, 1), (6, 1), (8, 1))
"""Of a quotient that is scaled for so many kinds of divisors, and their number is told by `scaled`."""
UNIFORM_DIVISOR = ((1, 0), (2, 0), (2, 0))
"""The same where all registers share a divisor: its reciprocal is taken once."""


def work(op: LaneOp) -> Work:
    """What an operation takes for each element."""
    result = op.results[0].elem if op.results else op.operands[0].elem
    source = op.operands[0].elem if op.operands else result
    name, bits = op.name, ELEMENT_BITS.get(result, 32)
    if name.startswith(("math.", "libdevice.")) or name in ("arith.divf", "arith.remf"):
        if name == "arith.divf" and not op.attrs.get("precise"):
            slots, special = _quotient(op)
        else:
            slots, special = (PRECISE if op.attrs.get("precise") else FLOATS).get(name) or FLOATS.get(name, LIBRARY)
        if result == "f64":
            return Work(max(1.0, slots * 2))
        if slots <= 1:
            return Work(slots * (0.5 if bits == 16 else 1.0), special)
        return Work(slots, special, max(0.0, slots - special) * 0.25)
    if name in ("arith.truncf", "arith.extf", "arith.sitofp", "arith.uitofp", "arith.fptosi", "arith.fptoui"):
        return _converted(name, source, result)
    if name in OF_INTEGERS:
        slots, special = OF_INTEGERS[name]
        return Work(slots * (1 if bits <= 32 else 2), special, slots * 0.7)
    if name in ("pack", "unpack", "arith.bitcast", "arith.trunci", "arith.extui", "arith.extsi"):
        return Work(GLUE, 0, GLUE)
    if result.startswith(("f", "bf")) and name not in CHOICES:
        return Work(0.5 if bits == 16 else 1.0)
    if name in CHOICES:
        slots = SELECTED if name == "select" or (bits == 16 and result.startswith(("f", "bf"))) else 1.0
        return Work(slots, 0, slots)
    left = OF_64 if bits == 64 else OF_32
    return Work(left, 0, left)


def _quotient(op: LaneOp) -> tuple[float, float]:
    """Instructions of a quotient, by what it has to do for its divisor."""
    is_shared = op.operands[1].count == 1 < op.results[0].count
    return (UNIFORM_DIVISOR if is_shared else QUOTIENTS)[len(op.attrs.get("scaled", BOTH))]


def _converted(name: str, source: str, result: str) -> Work:
    """A conversion of numbers: two to 16 bits at a time, or to 8; integers of 8 bits and f64 by a slow unit."""
    if "f64" in (source, result):
        return Work(1, 1)
    if name == "arith.truncf":
        return Work(0.5, 0.25 if ELEMENT_BITS.get(result, 32) <= 16 else 0)
    if name == "arith.extf":
        return Work(1.0, 0, 0.5)
    if name in ("arith.fptosi", "arith.fptoui"):
        return Work(1.0 if ELEMENT_BITS.get(result, 32) >= 32 else 2.5, 1)
    bits = ELEMENT_BITS.get(source, 32)
    if bits == 64:
        return Work(1, 1)
    return Work(1.0 if bits == 32 else 1.75, 0 if bits == 32 else 1, 0.5)
