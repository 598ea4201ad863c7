"""CUDA's library of mathematics: one line for each function, one entry for each tuple of argument types.

    exp f>f:expf d>d:exp        # exp(float32) -> float32 is `__nv_expf`, exp(float64) -> float64 is `__nv_exp`
    add_r* dd>d:dadd_r*         # add_rn, add_rz, add_rd and add_ru: to nearest, to zero, down, up

Letters are types: f and d are float32 and float64, i and l int32 and int64, u and U uint32 and uint64. The language
reads this for what users call (`tl.extra.libdevice`), the back ends for what a symbol means.

>>> overloads()["add_rd"]
[('dd', 'd', '__nv_dadd_rd'), ('ff', 'f', '__nv_fadd_rd')]
"""

from __future__ import annotations

from functools import lru_cache

BOOLEAN = frozenset(("isnan", "isinf", "finitef", "isfinited"))
"""Functions whose int32 result becomes a boolean."""

_OVERLOADS = """
clz i>i:clz l>i:clzll
popc i>i:popc l>i:popcll
byte_perm iii>i:byte_perm
mulhi ii>i:mulhi uu>u:umulhi ll>l:mul64hi UU>U:umul64hi
mul24 ii>i:mul24 uu>u:umul24
brev i>i:brev l>l:brevll
sad iiu>i:sad uuu>u:usad
abs i>i:abs l>l:llabs f>f:fabsf d>d:fabs
floor f>f:floorf d>d:floor
rcp64h d>d:rcp64h
rsqrt f>f:rsqrtf d>d:rsqrt
ceil d>d:ceil f>f:ceilf
trunc d>d:trunc f>f:truncf
exp2 f>f:exp2f d>d:exp2
saturatef f>f:saturatef
fma_r* fff>f:fmaf_r* ddd>d:fma_r*
fast_dividef ff>f:fast_fdividef
div_r* ff>f:fdiv_r* dd>d:ddiv_r*
rcp_r* f>f:frcp_r* d>d:drcp_r*
sqrt_r* f>f:fsqrt_r* d>d:dsqrt_r*
sqrt f>f:sqrtf d>d:sqrt
add_r* dd>d:dadd_r* ff>f:fadd_r*
mul_r* dd>d:dmul_r* ff>f:fmul_r*
double2float_r* d>f:double2float_r*
double2int_r* d>i:double2int_r*
double2uint_r* d>i:double2uint_r*
int2double_rn i>d:int2double_rn
uint2double_rn u>d:uint2double_rn
float2int_r* f>i:float2int_r*
float2uint_r* f>i:float2uint_r*
int2float_r* i>f:int2float_r*
uint2float_r* u>f:uint2float_r*
hiloint2double ii>d:hiloint2double
double2loint d>i:double2loint
double2hiint d>i:double2hiint
float2ll_r* f>l:float2ll_r*
float2ull_r* f>l:float2ull_r*
double2ll_r* d>l:double2ll_r*
double2ull_r* d>l:double2ull_r*
ll2float_r* l>f:ll2float_r*
ull2float_r* U>f:ull2float_r*
ll2double_r* l>d:ll2double_r*
ull2double_r* U>d:ull2double_r*
int_as_float i>f:int_as_float
float_as_int f>i:float_as_int
uint_as_float u>f:uint_as_float
float_as_uint f>i:float_as_uint
longlong_as_double l>d:longlong_as_double
double_as_longlong d>l:double_as_longlong
fast_sinf f>f:fast_sinf
fast_cosf f>f:fast_cosf
fast_log2f f>f:fast_log2f
fast_logf f>f:fast_logf
fast_expf f>f:fast_expf
fast_tanf f>f:fast_tanf
fast_exp10f f>f:fast_exp10f
fast_log10f f>f:fast_log10f
fast_powf ff>f:fast_powf
hadd ii>i:hadd uu>u:uhadd
rhadd ii>i:rhadd uu>u:urhadd
sub_r* ff>f:fsub_r* dd>d:dsub_r*
rsqrt_rn f>f:frsqrt_rn
ffs i>i:ffs l>i:ffsll
rint f>f:rintf d>d:rint
llrint f>l:llrintf d>l:llrint
nearbyint f>f:nearbyintf d>d:nearbyint
isnan f>i:isnanf d>i:isnand
signbit f>i:signbitf d>i:signbitd
copysign ff>f:copysignf dd>d:copysign
finitef f>i:finitef
isinf f>i:isinff d>i:isinfd
nextafter ff>f:nextafterf dd>d:nextafter
sin f>f:sinf d>d:sin
cos f>f:cosf d>d:cos
sinpi f>f:sinpif d>d:sinpi
cospi f>f:cospif d>d:cospi
tan f>f:tanf d>d:tan
log2 f>f:log2f d>d:log2
exp f>f:expf d>d:exp
exp10 f>f:exp10f d>d:exp10
cosh f>f:coshf d>d:cosh
sinh f>f:sinhf d>d:sinh
tanh f>f:tanhf d>d:tanh
atan2 ff>f:atan2f dd>d:atan2
atan f>f:atanf d>d:atan
asin f>f:asinf d>d:asin
acos f>f:acosf d>d:acos
log f>f:logf d>d:log
log10 f>f:log10f d>d:log10
log1p f>f:log1pf d>d:log1p
acosh f>f:acoshf d>d:acosh
asinh f>f:asinhf d>d:asinh
atanh f>f:atanhf d>d:atanh
expm1 f>f:expm1f d>d:expm1
hypot ff>f:hypotf dd>d:hypot
rhypot ff>f:rhypotf dd>d:rhypot
norm3d fff>f:norm3df ddd>d:norm3d
rnorm3d fff>f:rnorm3df ddd>d:rnorm3d
norm4d ffff>f:norm4df dddd>d:norm4d
rnorm4d ffff>f:rnorm4df dddd>d:rnorm4d
cbrt f>f:cbrtf d>d:cbrt
rcbrt f>f:rcbrtf d>d:rcbrt
j0 f>f:j0f d>d:j0
j1 f>f:j1f d>d:j1
y0 f>f:y0f d>d:y0
y1 f>f:y1f d>d:y1
yn if>f:ynf id>d:yn
jn if>f:jnf id>d:jn
cyl_bessel_i0 f>f:cyl_bessel_i0f d>d:cyl_bessel_i0
cyl_bessel_i1 f>f:cyl_bessel_i1f d>d:cyl_bessel_i1
erf f>f:erff d>d:erf
erfinv f>f:erfinvf d>d:erfinv
erfc f>f:erfcf d>d:erfc
erfcx f>f:erfcxf d>d:erfcx
erfcinv f>f:erfcinvf d>d:erfcinv
normcdfinv f>f:normcdfinvf d>d:normcdfinv
normcdf f>f:normcdff d>d:normcdf
lgamma f>f:lgammaf d>d:lgamma
ldexp fi>f:ldexpf di>d:ldexp
scalbn fi>f:scalbnf di>d:scalbn
fmod ff>f:fmodf dd>d:fmod
remainder ff>f:remainderf dd>d:remainder
fma fff>f:fmaf ddd>d:fma
pow fi>f:powif di>d:powi ff>f:powf dd>d:pow
tgamma f>f:tgammaf d>d:tgamma
round f>f:roundf d>d:round
llround f>l:llroundf d>l:llround
fdim ff>f:fdimf dd>d:fdim
ilogb f>i:ilogbf d>i:ilogb
logb f>f:logbf d>d:logb
isfinited d>i:isfinited
fast_tanhf f>f:tanhf
"""


@lru_cache(maxsize=1)
def overloads() -> dict[str, list[tuple[str, str, str]]]:
    """The overloads of each function: letters of the arguments and of the result, and the symbol."""
    table: dict[str, list[tuple[str, str, str]]] = {}
    for line in _OVERLOADS.split("\n")[1:-1]:
        for text in [line.replace("*", mode) for mode in "nzdu"] if "*" in line else [line]:
            name, *entries = text.split()
            pairs = (entry.split(":") for entry in entries)
            table[name] = [(*types.split(">"), f"__nv_{symbol}") for types, symbol in pairs]  # type: ignore[misc]
    return table
