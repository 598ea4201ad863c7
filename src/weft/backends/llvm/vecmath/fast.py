"""libdevice's `fast_*` functions: allowed to be less exact, here mostly the usual functions, which are fast already.

Only `fast_powf` differs: 2^(y log2 x) in float, as CUDA's `__powf`, whose error grows with the exponent of the
result.
"""

from __future__ import annotations

from . import exponential, logarithm, simple, trig
from .coefficients import fitted
from .expr import X, fma, horner
from .registry import alias, define

for _module, _names in (
    (exponential, "exp exp10 tanh"),
    (logarithm, "log log2 log10"),
    (trig, "sin cos tan"),
    (simple, "div"),
):
    for _name in _names.split():
        alias("fast_dividef" if _name == "div" else f"fast_{_name}f", _name, "float")


@define("fast_powf", "float", "T T")
def fast_pow(x: X, y: X) -> X:
    """Negative bases give NaN."""
    e, m = logarithm.split_exponent(x)
    s = (m - 1.0) / (m + 1.0)
    base = logarithm.log_domain(x, fma(s, horner(s * s, fitted("log2.pow")[:4]), e))
    return exponential.exponential("exp2", y * base)
