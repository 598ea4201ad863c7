"""The mathematics of the CPU back end, vectorised: elementary and special functions as LLVM IR.

    vecmath.call(fn, "exp", [x])        # x a float or double, scalar or vector of any width

defines `weft.exp.v16f32` in the module once and calls it. The functions are described in Python on `X` (expr.py), one
file a family; docs/reference/math.md states the error of each and how it was measured. Every elementary function of
CUDA's libdevice is here under its generic name, and `symbol_to_name` translates libdevice's symbols.
"""

from . import (  # noqa: F401  (each registers its functions)
    bessel,
    directed,
    error_function,
    exponential,
    fast,
    gamma,
    integers,
    inverse_trig,
    logarithm,
    power,
    simple,
    trig,
)
from .registry import call, configure, define, definition, has, names
from .symbols import all_symbols

symbol_to_name: dict[str, tuple[str, str]] = all_symbols()
"""libdevice symbol -> (generic name, element type), for example `__nv_expf` -> ("exp", "float")."""

__all__ = ["call", "configure", "define", "definition", "has", "names", "symbol_to_name"]
