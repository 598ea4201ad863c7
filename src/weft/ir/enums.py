"""Triton's enumerations, by the names and numbers that its IR has.

They are known without xDSL, because the language has some of them in its signatures.
"""

from enum import IntEnum

__all__ = [
    "CacheModifier",
    "EvictionPolicy",
    "PaddingOption",
    "MemSemantic",
    "MemSyncScope",
    "RMWOp",
    "DescriptorReduceKind",
    "ProgramDim",
    "RoundingMode",
    "PropagateNan",
    "InputPrecision",
    "ScaleDotElemType",
]


class CacheModifier(IntEnum):
    """Where a load or store may be cached; only a hint here."""

    NONE, CA, CG, WB, CS, WT, CV = range(1, 8)


class EvictionPolicy(IntEnum):
    """How soon a cache line may go; only a hint here."""

    NORMAL, EVICT_FIRST, EVICT_LAST = range(1, 4)


class PaddingOption(IntEnum):
    """What a load through a block pointer or descriptor yields outside the tensor."""

    PAD_ZERO, PAD_NAN = range(1, 3)


class MemSemantic(IntEnum):
    """The memory order of an atomic operation."""

    RELAXED, ACQUIRE, RELEASE, ACQUIRE_RELEASE = range(1, 5)


class MemSyncScope(IntEnum):
    """The threads that an atomic operation is ordered for."""

    GPU, CTA, SYSTEM = range(1, 4)


class RMWOp(IntEnum):
    """What `tt.atomic_rmw` does to memory. `XCHG` is written `exch`."""

    AND, OR, XOR, ADD, FADD, MAX, MIN, UMAX, UMIN, XCHG = range(1, 11)


class DescriptorReduceKind(IntEnum):
    """What `tt.descriptor_reduce` does to memory."""

    ADD, MIN, MAX, INC, DEC, AND, OR, XOR = range(1, 9)


class ProgramDim(IntEnum):
    """An axis of the grid."""

    X, Y, Z = range(3)


class RoundingMode(IntEnum):
    """How `tt.fp_to_fp` rounds: towards zero, or to nearest with ties to even."""

    RTZ, RTNE = range(2)


class PropagateNan(IntEnum):
    """Whether `minimum`, `maximum` and `clamp` return NaN if an operand is NaN.

    >>> nan = float("nan")
    >>> evaluate("tl.maximum(x, 1.0, propagate_nan=tl.PropagateNan.ALL)", x=[nan, 2.0])
    array([nan,  2.], dtype=float32)
    >>> evaluate("tl.maximum(x, 1.0)", x=[nan, 2.0])
    array([1., 2.], dtype=float32)
    """

    NONE = 0
    ALL = 0xFFFF


class InputPrecision(IntEnum):
    """How `tt.dot` treats float32 operands; on the CPU all but the bf16 kinds are exact float32."""

    TF32, TF32x3, IEEE, BF16x3, BF16x6 = range(5)


class ScaleDotElemType(IntEnum):
    """The format of an operand of `tt.dot_scaled`."""

    E4M3, E5M2, E2M3, E3M2, E2M1, BF16, FP16 = range(7)
