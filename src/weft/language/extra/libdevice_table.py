"""The overloads of libdevice: one line for each function, one entry for each tuple of argument types.

    exp f>f:expf d>d:exp        # exp(float32) -> float32 is `__nv_expf`, exp(float64) -> float64 is `__nv_exp`

Letters are types: f and d are float32 and float64, i and l int32 and int64, u and U uint32 and uint64.
"""

from __future__ import annotations

__all__ = ["BOOLEAN", "OVERLOADS"]

BOOLEAN = frozenset(("isnan", "isinf", "finitef", "isfinited"))
"""Functions whose int32 result is turned into a boolean."""

OVERLOADS = """
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
fma_rn fff>f:fmaf_rn ddd>d:fma_rn
fma_rz fff>f:fmaf_rz ddd>d:fma_rz
fma_rd fff>f:fmaf_rd ddd>d:fma_rd
fma_ru fff>f:fmaf_ru ddd>d:fma_ru
fast_dividef ff>f:fast_fdividef
div_rn ff>f:fdiv_rn dd>d:ddiv_rn
div_rz ff>f:fdiv_rz dd>d:ddiv_rz
div_rd ff>f:fdiv_rd dd>d:ddiv_rd
div_ru ff>f:fdiv_ru dd>d:ddiv_ru
rcp_rn f>f:frcp_rn d>d:drcp_rn
rcp_rz f>f:frcp_rz d>d:drcp_rz
rcp_rd f>f:frcp_rd d>d:drcp_rd
rcp_ru f>f:frcp_ru d>d:drcp_ru
sqrt_rn f>f:fsqrt_rn d>d:dsqrt_rn
sqrt_rz f>f:fsqrt_rz d>d:dsqrt_rz
sqrt_rd f>f:fsqrt_rd d>d:dsqrt_rd
sqrt_ru f>f:fsqrt_ru d>d:dsqrt_ru
sqrt f>f:sqrtf d>d:sqrt
add_rn dd>d:dadd_rn ff>f:fadd_rn
add_rz dd>d:dadd_rz ff>f:fadd_rz
add_rd dd>d:dadd_rd ff>f:fadd_rd
add_ru dd>d:dadd_ru ff>f:fadd_ru
mul_rn dd>d:dmul_rn ff>f:fmul_rn
mul_rz dd>d:dmul_rz ff>f:fmul_rz
mul_rd dd>d:dmul_rd ff>f:fmul_rd
mul_ru dd>d:dmul_ru ff>f:fmul_ru
double2float_rn d>f:double2float_rn
double2float_rz d>f:double2float_rz
double2float_rd d>f:double2float_rd
double2float_ru d>f:double2float_ru
double2int_rn d>i:double2int_rn
double2int_rz d>i:double2int_rz
double2int_rd d>i:double2int_rd
double2int_ru d>i:double2int_ru
double2uint_rn d>i:double2uint_rn
double2uint_rz d>i:double2uint_rz
double2uint_rd d>i:double2uint_rd
double2uint_ru d>i:double2uint_ru
int2double_rn i>d:int2double_rn
uint2double_rn u>d:uint2double_rn
float2int_rn f>i:float2int_rn
float2int_rz f>i:float2int_rz
float2int_rd f>i:float2int_rd
float2int_ru f>i:float2int_ru
float2uint_rn f>i:float2uint_rn
float2uint_rz f>i:float2uint_rz
float2uint_rd f>i:float2uint_rd
float2uint_ru f>i:float2uint_ru
int2float_rn i>f:int2float_rn
int2float_rz i>f:int2float_rz
int2float_rd i>f:int2float_rd
int2float_ru i>f:int2float_ru
uint2float_rn u>f:uint2float_rn
uint2float_rz u>f:uint2float_rz
uint2float_rd u>f:uint2float_rd
uint2float_ru u>f:uint2float_ru
hiloint2double ii>d:hiloint2double
double2loint d>i:double2loint
double2hiint d>i:double2hiint
float2ll_rn f>l:float2ll_rn
float2ll_rz f>l:float2ll_rz
float2ll_rd f>l:float2ll_rd
float2ll_ru f>l:float2ll_ru
float2ull_rn f>l:float2ull_rn
float2ull_rz f>l:float2ull_rz
float2ull_rd f>l:float2ull_rd
float2ull_ru f>l:float2ull_ru
double2ll_rn d>l:double2ll_rn
double2ll_rz d>l:double2ll_rz
double2ll_rd d>l:double2ll_rd
double2ll_ru d>l:double2ll_ru
double2ull_rn d>l:double2ull_rn
double2ull_rz d>l:double2ull_rz
double2ull_rd d>l:double2ull_rd
double2ull_ru d>l:double2ull_ru
ll2float_rn l>f:ll2float_rn
ll2float_rz l>f:ll2float_rz
ll2float_rd l>f:ll2float_rd
ll2float_ru l>f:ll2float_ru
ull2float_rn U>f:ull2float_rn
ull2float_rz U>f:ull2float_rz
ull2float_rd U>f:ull2float_rd
ull2float_ru U>f:ull2float_ru
ll2double_rn l>d:ll2double_rn
ll2double_rz l>d:ll2double_rz
ll2double_rd l>d:ll2double_rd
ll2double_ru l>d:ll2double_ru
ull2double_rn U>d:ull2double_rn
ull2double_rz U>d:ull2double_rz
ull2double_rd U>d:ull2double_rd
ull2double_ru U>d:ull2double_ru
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
sub_rn ff>f:fsub_rn dd>d:dsub_rn
sub_rz ff>f:fsub_rz dd>d:dsub_rz
sub_rd ff>f:fsub_rd dd>d:dsub_rd
sub_ru ff>f:fsub_ru dd>d:dsub_ru
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
