"""The GPU's approximate instructions as functions, with the errors that `dialect.APPROXIMATE` states."""

from __future__ import annotations

from weft.backends.llvm.vecmath.expr import X


def approximate(name: str, *operands: X) -> X:
    """What the vendor of the module's GPU has for it."""
    f = operands[0].f
    assert f.module.approximation is not None, "a module that is for no GPU"
    return X(f, f.module.approximation(f, name, [x.v for x in operands]))


def ex2(x: X) -> X:
    """2^x; 0 where that is denormal."""
    return approximate("exp2", x)


def lg2(x: X) -> X:
    """The logarithm to base 2; its error near 1 is 2^-22, not that of the result."""
    return approximate("log2", x)


def rcp(x: X) -> X:
    """1/x."""
    return approximate("reciprocal", x)


def sqrt(x: X) -> X:
    """The square root."""
    return approximate("sqrt", x)


def rsqrt(x: X) -> X:
    """1 over the square root."""
    return approximate("rsqrt", x)
