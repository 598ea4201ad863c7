"""Every float: the error of functions of one argument over all 2^32 bit patterns (`make math-exhaustive`, some hours).

NaNs are left out but for one. A reference in doubles (NumPy, SciPy) is precise enough to judge floats.
"""

from __future__ import annotations

import numpy as np
import pytest
import scipy.special as special

from vecmath.cases import BY_NAME
from vecmath.jit import compiled

REFERENCES = {
    "exp": np.exp,
    "exp2": np.exp2,
    "expm1": np.expm1,
    "log": np.log,
    "log2": np.log2,
    "log10": np.log10,
    "log1p": np.log1p,
    "sin": np.sin,
    "cos": np.cos,
    "tan": np.tan,
    "asin": np.arcsin,
    "acos": np.arccos,
    "atan": np.arctan,
    "sinh": np.sinh,
    "cosh": np.cosh,
    "tanh": np.tanh,
    "asinh": np.arcsinh,
    "acosh": np.arccosh,
    "atanh": np.arctanh,
    "cbrt": np.cbrt,
    "sqrt": np.sqrt,
    "rsqrt": lambda x: 1 / np.sqrt(x),
    "erf": special.erf,
    "erfc": special.erfc,
    "exp10": lambda x: np.power(10.0, x),
}
CHUNK = 1 << 22


def worst_of_all(name: str, stride: int = 1) -> tuple[float, np.float32]:
    """The greatest error in ulp over every `stride`-th pattern, and where."""
    function, reference = compiled(name, "float"), REFERENCES[name]
    worst, place = 0.0, np.float32(0)
    with np.errstate(all="ignore"):
        for sign in (0, 1 << 31):
            for start in range(0, 0x7F800002, CHUNK * stride):
                bits = np.arange(start, min(0x7F800002, start + CHUNK * stride), stride, dtype=np.uint32) | np.uint32(
                    sign
                )
                x = bits.view(np.float32)
                got, wanted = function(x), reference(x.astype(np.float64))
                rounded = wanted.astype(np.float32)
                unit = np.ldexp(1.0, np.frexp(np.maximum(np.abs(wanted), 2.0**-126))[1] - 24)
                error = np.abs(got.astype(np.float64) - wanted) / unit
                error[(got == rounded) | (np.isnan(got) & np.isnan(rounded))] = 0
                error = np.where(np.isnan(error), np.inf, error)
                at = int(error.argmax())
                if error[at] > worst:
                    worst, place = float(error[at]), x[at]
    return worst, place


@pytest.mark.slow
@pytest.mark.parametrize("name", REFERENCES)
def test_every_float(name: str) -> None:
    error, x = worst_of_all(name)
    print(f"{name}: {error:.3f} ulp at {x!r}")
    assert error <= BY_NAME[name].stated[0], f"{name}({x!r}): {error} ulp"


@pytest.mark.parametrize("name", ["exp", "log", "erf", "tanh", "sin"])
def test_some_of_every_exponent(name: str) -> None:
    error, x = worst_of_all(name, stride=4099)
    assert error <= BY_NAME[name].stated[0], f"{name}({x!r}): {error} ulp"
