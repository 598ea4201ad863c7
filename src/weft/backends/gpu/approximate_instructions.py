"""The GPU's approximate instructions as functions: errors as PTX's manual states them, denormals taken for zero."""

from __future__ import annotations

from weft.backends.llvm.vecmath.expr import X

__all__ = ["ex2", "instruction", "lg2", "rcp", "rsqrt", "sqrt"]


def instruction(name: str, x: X) -> X:
    """LLVM's intrinsic `llvm.nvvm.<name>`."""
    return X(x.f, x.f.intrinsic(f"nvvm.{name}", x.type, [x.v], suffix=""))


def ex2(x: X) -> X:
    """2^x, off by up to 2^-22 of the result; 0 where that is denormal."""
    return instruction("ex2.approx.ftz.f", x)


def lg2(x: X) -> X:
    """The logarithm to base 2; its error near 1 is 2^-22, not that of the result."""
    return instruction("lg2.approx.ftz.f", x)


def rcp(x: X) -> X:
    """1/x, off by up to 2^-23 of the result."""
    return instruction("rcp.approx.ftz.f", x)


def sqrt(x: X) -> X:
    """The square root, off by up to 2^-23 of the result."""
    return instruction("sqrt.approx.ftz.f", x)


def rsqrt(x: X) -> X:
    """1 over the square root, off by up to 2^-22.9 of the result."""
    return instruction("rsqrt.approx.ftz.f", x)
