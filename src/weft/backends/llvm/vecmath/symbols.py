"""libdevice's symbols, CUDA's and AMD's, and what they are called here.

    symbol_to_name["__nv_expf"] == ("exp", "float")
    symbol_to_name["__ocml_exp_f64"] == ("exp", "double")

The regular ones follow their libraries' naming (`f` after a float function, `f32`/`f64`); the others are listed.
"""

from __future__ import annotations

from .registry import has

_SHARED = [
    "acos",
    "acosh",
    "asin",
    "asinh",
    "atan",
    "atan2",
    "atanh",
    "ceil",
    "copysign",
    "cos",
    "cosh",
    "erf",
    "erfc",
    "erfcx",
    "erfinv",
    "exp",
    "exp2",
    "expm1",
    "floor",
    "fma",
    "fmod",
    "hypot",
    "ilogb",
    "j0",
    "j1",
    "ldexp",
    "lgamma",
    "log",
    "log10",
    "log1p",
    "log2",
    "nearbyint",
    "nextafter",
    "pow",
    "round",
    "rsqrt",
    "sin",
    "sinh",
    "sqrt",
    "tan",
    "tanh",
    "trunc",
    "y0",
    "y1",
]
_CUDA = [
    "cbrt",
    "cospi",
    "cyl_bessel_i0",
    "cyl_bessel_i1",
    "erfcinv",
    "exp10",
    "fdim",
    "jn",
    "llrint",
    "llround",
    "logb",
    "norm3d",
    "norm4d",
    "normcdf",
    "normcdfinv",
    "powi",
    "rcbrt",
    "remainder",
    "rhypot",
    "rint",
    "rnorm3d",
    "rnorm4d",
    "scalbn",
    "sinpi",
    "tgamma",
    "yn",
]
"""What CUDA's library has beyond the shared ones, for float and double alike."""
_AMD = ["isinf", "isnan", "signbit"]
"""Regular in AMD's alone."""
_SIGNED = {"ll": "i64", "ull": "i64", "int": "i32", "uint": "i32"}

_OTHERS = {
    "__nv_fabsf": ("abs", "float"),
    "__nv_fabs": ("abs", "double"),
    "__nv_abs": ("abs", "i32"),
    "__nv_llabs": ("abs", "i64"),
    "__nv_clz": ("clz", "i32"),
    "__nv_clzll": ("clz", "i64"),
    "__nv_popc": ("popc", "i32"),
    "__nv_popcll": ("popc", "i64"),
    "__nv_ffs": ("ffs", "i32"),
    "__nv_ffsll": ("ffs", "i64"),
    "__nv_brev": ("brev", "i32"),
    "__nv_brevll": ("brev", "i64"),
    "__nv_byte_perm": ("byte_perm", "i32"),
    "__nv_mulhi": ("mulhi", "i32"),
    "__nv_umulhi": ("umulhi", "i32"),
    "__nv_mul64hi": ("mulhi", "i64"),
    "__nv_umul64hi": ("umulhi", "i64"),
    "__nv_mul24": ("mul24", "i32"),
    "__nv_umul24": ("umul24", "i32"),
    "__nv_sad": ("sad", "i32"),
    "__nv_usad": ("usad", "i32"),
    "__nv_hadd": ("hadd", "i32"),
    "__nv_uhadd": ("uhadd", "i32"),
    "__nv_rhadd": ("rhadd", "i32"),
    "__nv_urhadd": ("urhadd", "i32"),
    "__nv_saturatef": ("saturatef", "float"),
    "__nv_rcp64h": ("rcp64h", "double"),
    "__nv_frsqrt_rn": ("rsqrt_rn", "float"),
    "__nv_finitef": ("finitef", "float"),
    "__nv_isfinited": ("isfinited", "double"),
    "__nv_isnanf": ("isnan", "float"),
    "__nv_isnand": ("isnan", "double"),
    "__nv_isinff": ("isinf", "float"),
    "__nv_isinfd": ("isinf", "double"),
    "__nv_signbitf": ("signbit", "float"),
    "__nv_signbitd": ("signbit", "double"),
    "__nv_hiloint2double": ("hiloint2double", "i32"),
    "__nv_double2loint": ("double2loint", "double"),
    "__nv_double2hiint": ("double2hiint", "double"),
    "__nv_int_as_float": ("int_as_float", "i32"),
    "__nv_float_as_int": ("float_as_int", "float"),
    "__nv_uint_as_float": ("uint_as_float", "i32"),
    "__nv_float_as_uint": ("float_as_uint", "float"),
    "__nv_longlong_as_double": ("longlong_as_double", "i64"),
    "__nv_double_as_longlong": ("double_as_longlong", "double"),
    "__nv_fast_fdividef": ("fast_dividef", "float"),
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


def all_symbols() -> dict[str, tuple[str, str]]:
    """Every symbol, CUDA's and AMD's, with the name and element type it stands for."""
    symbols = dict(_OTHERS)
    for name in (*_SHARED, *_CUDA):
        symbols[f"__nv_{name}f"], symbols[f"__nv_{name}"] = (name, "float"), (name, "double")
    for name in (*_SHARED, *_AMD):
        symbols[f"__ocml_{name}_f32"], symbols[f"__ocml_{name}_f64"] = (name, "float"), (name, "double")
    symbols["__nv_powif"] = ("powi", "float")
    for name in ("sin", "cos", "tan", "log", "log2", "log10", "exp", "exp10", "pow"):
        symbols[f"__nv_fast_{name}f"] = (f"fast_{name}f", "float")
    for mode in ("rn", "rz", "rd", "ru"):
        symbols[f"__nv_fmaf_{mode}"], symbols[f"__nv_fma_{mode}"] = (f"fma_{mode}", "float"), (f"fma_{mode}", "double")
        for name in ("add", "sub", "mul", "div", "rcp", "sqrt"):
            symbols[f"__nv_f{name}_{mode}"] = (f"{name}_{mode}", "float")
            symbols[f"__nv_d{name}_{mode}"] = (f"{name}_{mode}", "double")
        symbols[f"__nv_double2float_{mode}"] = (f"double2float_{mode}", "double")
        for short, elem in _SIGNED.items():
            for kind in ("float", "double"):
                symbols[f"__nv_{kind}2{short}_{mode}"] = (f"{kind}2{short}_{mode}", kind)
                symbols[f"__nv_{short}2{kind}_{mode}"] = (f"{short}2{kind}_{mode}", elem)
    return {symbol: name for symbol, name in symbols.items() if has(*name)}
