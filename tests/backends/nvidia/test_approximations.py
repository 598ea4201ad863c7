"""Functions by approximate instructions: their errors where the instructions are as bad as PTX's manual lets them be.

They run on the processor of this machine, with functions in place of the instructions that are off by a known part of
their results.
"""

from __future__ import annotations

import numpy as np
import pytest

from vecmath.cases import CASES, reference, samples
from vecmath.jit import Compiled, bit_patterns, specials, ulps
from weft.backends.llvm.vecmath.expr import X, fabs, where
from weft.backends.llvm.vecmath.registry import invoke
from weft.backends.nvidia import approximations
from weft.backends.nvidia.approximations import APPROXIMATIONS

WRONG = {"ex2": 2.0**-22, "rcp": 2.0**-23}
"""By what part of the result an instruction may be off."""
STATED = {"exp": 5.0, "exp10": 5.0, "tanh": 3.0, "erf": 2.5, "log": 1.5, "log2": 1.5, "log10": 1.5, "log1p": 3.0}
"""Units in the last place: 2^-22 alone is four of them just below a power of two."""


def instruction(wrong: float):  # type: ignore[no-untyped-def]
    """A model of the instructions, for `approximations`."""

    def model(name: str, x: X) -> X:
        kind, wide = name.split(".")[0], x.widen()
        exact = invoke("exp2", wide) if kind == "ex2" else 1.0 / wide
        result = (exact * (1.0 + wrong * WRONG[kind])).narrow()
        return where(fabs(result) < 2.0**-126, 0.0, result)

    return model


@pytest.mark.parametrize("wrong", [-1.0, 0.0, 1.0])
@pytest.mark.parametrize("name", STATED)
def test_errors(name: str, wrong: float, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(approximations, "_instruction", instruction(wrong))
    function = Compiled(APPROXIMATIONS[name], "float", 0)
    (case,) = (c for c in CASES if c.name == name)
    for (x,) in (samples(case, "float", 20000), [bit_patterns("float", 20000)], [specials("float")]):
        wanted, got = reference(case, "float", [x]), function(x)
        error = ulps(got, wanted, "float")
        at = int(np.argmax(error))
        assert error[at] <= STATED[name], f"{name}({x[at]!r}) = {got[at]!r}, not {wanted[at]!r}: {error[at]} ulp"
        zero = (got == 0.0) & (wanted == 0.0)
        assert np.array_equal(np.signbit(got[zero]), np.signbit(wanted[zero]))
