"""Functions by approximate instructions: their errors where the instructions are as bad as PTX's manual lets them be.

They run on the processor of this machine, with functions in place of the instructions that are off by a known part of
their results.
"""

from __future__ import annotations

import numpy as np
import pytest

from vecmath.cases import CASES, reference, samples
from vecmath.jit import Compiled, bit_patterns, specials, ulps
from weft.backends.gpu import approximate_instructions
from weft.backends.gpu.approximations import APPROXIMATIONS
from weft.backends.llvm.vecmath import definition
from weft.backends.llvm.vecmath.expr import X, fabs, sqrt, where
from weft.backends.llvm.vecmath.registry import invoke
from weft.backends.nvidia import emit

from .assembling import kinds
from .test_elementwise import program

WRONG = {"exp2": 2.0**-22, "reciprocal": 2.0**-23, "sqrt": 2.0**-23, "rsqrt": 2.0**-22.9}
"""By what part of the result an instruction may be off."""
EXACT = {
    "exp2": lambda x: invoke("exp2", x),
    "reciprocal": lambda x: 1.0 / x,
    "sqrt": sqrt,
    "rsqrt": lambda x: 1.0 / sqrt(x),
}
STATED = {"exp": 5.0, "exp10": 5.0, "tanh": 3.0, "erf": 2.5, "log": 1.5, "log2": 1.5, "log10": 1.5, "log1p": 1.5}
STATED |= {"sin": 2.0, "cos": 2.0, "tan": 3.5, "asin": 2.5, "acos": 3.0, "atan": 2.5, "atan2": 2.5, "pow": 3.5}
STATED |= {"rsqrt": 3.0}
"""Units in the last place: 2^-22 alone is four of them just below a power of two."""


def instruction(wrong: float):  # type: ignore[no-untyped-def]
    """A model of the instructions, for `approximate_instructions`."""

    def model(name: str, x: X) -> X:
        result = (EXACT[name](x.widen()) * (1.0 + wrong * WRONG[name])).narrow()
        return where(fabs(result) < 2.0**-126, 0.0, result)

    return model


@pytest.mark.parametrize("wrong", [-1.0, 0.0, 1.0])
@pytest.mark.parametrize("name", STATED)
@pytest.mark.thinned(3)
def test_errors(name: str, wrong: float, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(approximate_instructions, "approximate", instruction(wrong))
    function = Compiled(APPROXIMATIONS[name], "float", 0)
    (case,) = (c for c in CASES if c.name == name)
    count = len(case.ranges)
    patterns = [bit_patterns("float", 20000, seed) for seed in range(count)]
    ends = [a.ravel() for a in np.meshgrid(*[specials("float")] * count)]
    for x in (samples(case, "float", 20000), patterns, ends):
        wanted, got = reference(case, "float", x), function(*x)
        error = ulps(got, wanted, "float")
        at = int(np.argmax(error))
        assert error[at] <= STATED[name], (
            f"{name}({[a[at] for a in x]}) = {got[at]!r}, not {wanted[at]!r}: {error[at]} ulp"
        )
        zero = (got == 0.0) & (wanted == 0.0)
        assert np.array_equal(np.signbit(got[zero]), np.signbit(wanted[zero]))


@pytest.mark.parametrize("name", ["sin", "cos", "tan", "asin", "acos", "atan", "atan2", "pow", "rsqrt"])
def test_few_registers(name: str) -> None:
    """No call, memory of the lane or slow division; doubles only where arguments are large.

    A call alone had the kernels of sin and pow take so many registers that a multiprocessor held fewer warps.
    """
    count = len(definition(name, "float").args)
    ptx = emit(program(f"math.{name}{'f' if name == 'pow' else ''}", ["f32"] * count, "f32", "cuda:90")).code
    found = kinds(ptx)
    assert not any(k.startswith(("call", "div.", "sqrt.rn", "ld.local", "st.local")) for k in found)
    assert ".local" not in ptx
    doubles = [k for k in found if "f64" in k]
    assert len(doubles) == (3 if name in ("sin", "cos", "tan") else 0)
