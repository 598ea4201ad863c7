"""The symbols of vendors' mathematical libraries, and what they are called here.

    symbol_to_name["__nv_expf"] == ("exp", "float")
    symbol_to_name["__ocml_exp_f64"] == ("exp", "double")

CUDA's are those of `ops/libdevice.txt`. AMD's regular ones end in `_f32` or `_f64`; the others are listed.
"""

from __future__ import annotations

from weft.ops.libdevice import overloads

from .registry import has

_ELEMENTS = {"f": "float", "d": "double", "i": "i32", "u": "i32", "l": "i64", "U": "i64"}
_OCML = """
acos acosh asin asinh atan atan2 atanh ceil copysign cos cosh erf erfc erfcx erfinv exp exp2 expm1 floor fma fmod hypot
ilogb isinf isnan j0 j1 ldexp lgamma log log10 log1p log2 nearbyint nextafter pow round rsqrt signbit sin sinh sqrt tan
tanh trunc y0 y1
"""
_OTHERS = {
    "__triton_hip_iabs": ("abs", "i32"),
    "__triton_hip_fabs": ("abs", "float"),
    "__triton_hip_llrint": ("llrint", "float"),
    "__triton_hip_fast_fdividef": ("fast_dividef", "float"),
    "__triton_hip_fast_expf": ("fast_expf", "float"),
    "__triton_hip_fast_tanhf": ("fast_tanhf", "float"),
    "__ocml_i0_f32": ("cyl_bessel_i0", "float"),
    "__ocml_i0_f64": ("cyl_bessel_i0", "double"),
    "__ocml_i1_f32": ("cyl_bessel_i1", "float"),
    "__ocml_i1_f64": ("cyl_bessel_i1", "double"),
    "__ocml_pown_f32": ("powi", "float"),
    "__ocml_pown_f64": ("powi", "double"),
}
"""A symbol that serves several types (`__triton_hip_*`) names one of them; `call` goes by the arguments."""


def _name_of(function: str, arguments: str) -> tuple[str, str]:
    """The name and element type of an overload: unsigned integers and powers by integers have names of their own."""
    elem = _ELEMENTS[next((a for a in arguments if a in "fd"), arguments[0])]
    if function == "pow" and arguments[1] == "i":
        return "powi", elem
    return (f"u{function}" if arguments[0] in "uU" and has(f"u{function}", elem) else function), elem


def all_symbols() -> dict[str, tuple[str, str]]:
    """Every symbol, CUDA's and AMD's, with the name and element type it stands for."""
    symbols = dict(_OTHERS)
    for function, entries in overloads().items():
        for arguments, _, symbol in entries:
            symbols.setdefault(symbol, _name_of(function, arguments))
    for name in _OCML.split():
        symbols[f"__ocml_{name}_f32"], symbols[f"__ocml_{name}_f64"] = (name, "float"), (name, "double")
    return {symbol: name for symbol, name in symbols.items() if has(*name)}
