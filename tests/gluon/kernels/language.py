"""The operations of the language on tiles with layouts: arithmetic, shapes, reductions, control flow."""

from triton.experimental import gluon
from triton.experimental.gluon import language as gl
from triton.language.core import _aggregate as aggregate

from gluon.sources import Sources

SOURCES = source = Sources()

LINE = gl.BlockedLayout([2], [32], [4], [0])
TILE = gl.BlockedLayout([1, 4], [4, 8], [4, 1], [1, 0])


@source(x="*fp32", y="*fp32", z="*i32", constexprs={"layout": LINE})
@gluon.jit
def elementwise(x, y, z, layout: gl.constexpr):
    i = gl.arange(0, 256, layout=layout)
    a = gl.load(x + i)
    b = gl.load(y + i)
    c = gl.load(z + i)
    d = gl.exp(a) + gl.log2(gl.abs(b)) * gl.sqrt(a) - gl.sin(b) / gl.cos(a)
    d = gl.fma(d, a, b) + gl.maximum(a, b) - gl.minimum(a, 2.0) + gl.erf(a) + gl.rsqrt(b) + gl.floor(a) + gl.ceil(b)
    d = gl.where(a > b, d, -d) + gl.fdiv(a, b) + gl.div_rn(a, b) + gl.sqrt_rn(a) + gl.exp2(a) + gl.log(b)
    e = (c << 3) | (c >> 2) & (c ^ 5)
    e = gl.where((c % 7 == 3) & (c // 5 != 2), e, ~e) + gl.umulhi(c, 12345)
    gl.store(y + i, d + e.to(gl.float32))
    gl.store(z + i, gl.add(e, gl.mul(c, gl.sub(c, 1))))


@source(x="*fp16", y="*bf16", z="*i32", constexprs={"layout": LINE})
@gluon.jit
def casts(x, y, z, layout: gl.constexpr):
    i = gl.arange(0, 256, layout=layout)
    a = gl.load(x + i)
    gl.store(y + i, a.to(gl.bfloat16))
    f = a.to(gl.float32)
    gl.store(z + i, f.to(gl.int32, bitcast=True) + f.to(gl.int32) + gl.cast(a, gl.int1).to(gl.int32))
    small = f.to(gl.float8e5)
    gl.store(y + i, small.to(gl.bfloat16) + i.to(gl.float32).to(gl.bfloat16))


@source(x="*fp32", n="i32", constexprs={"layout": TILE})
@gluon.jit
def filled(x, n, layout: gl.constexpr):
    zero = gl.zeros([32, 64], gl.float32, layout)
    seven = gl.full([32, 64], 7, gl.float32, layout)
    scalar = gl.full([32, 64], n, gl.int32, layout)
    like = gl.zeros_like(scalar) + gl.full_like(scalar, 3)
    half = gl.zeros_like(zero, dtype=gl.float16) + gl.full_like(zero, n, dtype=gl.float16)
    total = zero + seven + scalar.to(gl.float32) + like.to(gl.float32) + half.to(gl.float32)
    i = gl.arange(0, 32, gl.SliceLayout(1, layout))
    j = gl.arange(0, 64, gl.SliceLayout(0, layout))
    gl.store(x + i[:, None] * 64 + j[None, :], total)


@source(x="*fp32", y="*fp32", z="*i32", constexprs={"layout": TILE})
@gluon.jit
def reductions(x, y, z, layout: gl.constexpr):
    i = gl.arange(0, 32, gl.SliceLayout(1, layout))
    j = gl.arange(0, 64, gl.SliceLayout(0, layout))
    value = gl.load(x + i[:, None] * 64 + j[None, :])
    rows = gl.sum(value, axis=1)
    columns = gl.max(value, axis=0)
    least = gl.min(gl.min(value, 1), 0)
    gl.store(y + i, rows + least)
    gl.store(y + j, columns)
    number = value.to(gl.int32)
    gl.store(z + i, gl.xor_sum(number, 1) + gl.reduce_or(number, 1) + gl.sum(number, 1))


@gluon.jit
def _greater(a, i, b, j):
    first = a > b
    return gl.where(first, a, b), gl.where(first, i, j)


@source(x="*fp32", y="*fp32", z="*i32", constexprs={"layout": TILE})
@gluon.jit
def reduce_pairs(x, y, z, layout: gl.constexpr):
    i = gl.arange(0, 32, gl.SliceLayout(1, layout))
    j = gl.arange(0, 64, gl.SliceLayout(0, layout))
    value = gl.load(x + i[:, None] * 64 + j[None, :])
    places, _ = gl.broadcast(j[None, :], value)
    top, at = gl.reduce((value, places), 1, _greater)
    gl.store(y + i, top)
    gl.store(z + i, at)


@gluon.jit
def _decay(a, x, b, y):
    return a * b, x * b + y


@source(x="*fp32", y="*fp32", constexprs={"layout": LINE})
@gluon.jit
def scans(x, y, layout: gl.constexpr):
    i = gl.arange(0, 256, layout)
    value = gl.load(x + i)
    _, running = gl.associative_scan((value * 0.5, value), 0, _decay)
    _, backward = gl.associative_scan((value * 0.5, value), 0, _decay, reverse=True)
    gl.store(y + i, running + backward)


@source(x="*fp32", y="*fp32")
@gluon.jit
def joined_and_split(x, y):
    line: gl.constexpr = gl.BlockedLayout([2], [32], [4], [0])
    pair: gl.constexpr = gl.BlockedLayout([2, 2], [32, 1], [4, 1], [1, 0])
    i = gl.arange(0, 256, layout=line)
    a = gl.load(x + i)
    b = gl.load(x + 256 + i)
    both = gl.join(a, b)
    low, high = gl.split(both)
    low = gl.convert_layout(low, line)
    flat = gl.convert_layout(both, pair).reshape([512])
    gl.store(y + i, low * gl.convert_layout(high, line) + gl.sum(flat, 0))


@source(x="*fp32", y="*fp32")
@gluon.jit
def turned(x, y):
    cube: gl.constexpr = gl.BlockedLayout([1, 1, 4], [2, 4, 4], [4, 1, 1], [2, 1, 0])
    i = gl.arange(0, 8, gl.SliceLayout(1, gl.SliceLayout(2, cube)))
    j = gl.arange(0, 16, gl.SliceLayout(0, gl.SliceLayout(2, cube)))
    k = gl.arange(0, 16, gl.SliceLayout(0, gl.SliceLayout(1, cube)))
    at = i[:, None][:, :, None] * 256 + j[None, :][:, :, None] * 16 + k[None, :][:, None, :]
    value = gl.load(x + at)
    moved = gl.permute(value, [1, 2, 0])
    again = moved.permute([2, 0, 1])
    flat = gl.ravel(again)
    total = gl.sum(flat, 0) + gl.sum(gl.reshape(moved, [64, 32]), 0).sum(0)
    gl.store(y + at, gl.convert_layout(again, cube) + total)


@source(x="*fp32", index="*i32", y="*fp32", constexprs={"layout": TILE})
@gluon.jit
def gathers(x, index, y, layout: gl.constexpr):
    i = gl.arange(0, 32, gl.SliceLayout(1, layout))
    j = gl.arange(0, 64, gl.SliceLayout(0, layout))
    at = i[:, None] * 64 + j[None, :]
    picked = gl.gather(gl.load(x + at), gl.load(index + at), axis=1)
    again = gl.gather(picked, gl.load(index + at) % 32, axis=0)
    gl.store(y + at, picked + again)


@source(x="*i32", counts="*i32", n="i32")
@gluon.jit
def histograms(x, counts, n):
    line: gl.constexpr = gl.BlockedLayout([1], [32], [4], [0])
    bins: gl.constexpr = gl.BlockedLayout([1], [32], [4], [0])
    i = gl.arange(0, 512, line)
    found = gl.histogram(gl.load(x + i), 128, mask=i < n, layout=bins)
    gl.store(counts + gl.arange(0, 128, bins), found)


@source(x="*i32", f="*fp32", old="*i32", n="i32", constexprs={"layout": LINE})
@gluon.jit
def atomics(x, f, old, n, layout: gl.constexpr):
    i = gl.arange(0, 256, layout)
    value = gl.load(old + i)
    gl.atomic_add(x + i, value)
    gl.atomic_max(x + i, value, mask=i < n)
    gl.atomic_min(x + i, value, sem="relaxed")
    gl.atomic_and(x + i, value, sem="acquire", scope="cta")
    gl.atomic_or(x + i, value, sem="release", scope="sys")
    gl.atomic_xor(x + i, value)
    gl.atomic_add(f + i, value.to(gl.float32))
    got = gl.atomic_xchg(x + i, value, mask=i > 3)
    swapped = gl.atomic_cas(x + i, value, got)
    gl.store(old + i, got + swapped)
    gl.atomic_add(x, 1)


@gluon.jit
def _three(a):
    return a * 3


@source(x="*fp32", y="*fp32", n="i32", constexprs={"layout": LINE, "UNROLL": 3})
@gluon.jit
def control_flow(x, y, n, layout: gl.constexpr, UNROLL: gl.constexpr):
    i = gl.arange(0, 256, layout)
    acc = gl.zeros([256], gl.float32, layout)
    for k in range(n):
        acc += gl.load(x + i + k * 256)
    for k in gl.static_range(UNROLL):
        acc = _three(acc) + k
    if n > 5:
        acc = acc + 1
    else:
        acc = acc - gl.load(x + i)
    steps = 0
    while steps < n:
        acc *= 0.5
        steps += 2
    gl.store(y + i, acc if UNROLL > 2 else acc * 2)


@aggregate
class Reader:
    base: gl.tensor
    offsets: gl.tensor
    stride: gl.constexpr

    @gluon.constexpr_function
    def __init__(self, base, offsets, stride):
        self.base = base
        self.offsets = offsets
        self.stride = gl.constexpr(stride)

    @gluon.jit
    def read(self, k):
        return gl.load(self.base + self.offsets + k * self.stride)

    @gluon.jit
    def moved(self, by):
        return Reader(self.base, self.offsets + by, self.stride)


@source(x="*fp32", y="*fp32", n="i32", constexprs={"layout": LINE})
@gluon.jit
def aggregates(x, y, n, layout: gl.constexpr):
    reader = Reader(x, gl.arange(0, 256, layout), 256)
    acc = gl.full([256], 0.0, gl.float32, layout)
    for k in range(n):
        acc += reader.read(k)
        reader = reader.moved(16)
    gl.store(y + gl.arange(0, 256, layout), acc)


@source(x="*fp32", n="i32", constexprs={"layout": LINE})
@gluon.jit
def hints_and_prints(x, n, layout: gl.constexpr):
    gl.static_print("num warps", gl.num_warps())
    gl.static_assert(gl.num_warps() == 4 and gl.num_ctas() == 1)
    i = gl.max_contiguous(gl.multiple_of(gl.program_id(0) * 256 + gl.arange(0, 256, layout), [256]), [256])
    i = gl.max_constancy(i * 1, [1])
    gl.assume(n > 0)
    value = gl.load(x + i, i < n)
    gl.device_print("value", value)
    gl.device_assert(value > 0, "positive")
    gl.store(x + i, value * gl.num_programs(0))


@source(x="*i32", y="*i32", constexprs={"layout": LINE})
@gluon.jit
def assembly(x, y, layout: gl.constexpr):
    i = gl.arange(0, 256, layout)
    value = gl.inline_asm_elementwise("shl.b32 $0, $1, 3;", "=r,r", [gl.load(x + i)], gl.int32, is_pure=True, pack=1)
    gl.store(y + i, value)


@gluon.jit
def _clamped(a, b):
    if a > b:
        return b
    return a


@source(x="*i32", y="*i32", constexprs={"layout": LINE})
@gluon.jit
def mapped(x, y, layout: gl.constexpr):
    i = gl.arange(0, 256, layout)
    gl.store(y + i, gl.map_elementwise(_clamped, gl.load(x + i), i))


@source(x="*fp32", constexprs={"layout": TILE})
@gluon.jit
def linear_names(x, layout: gl.constexpr):
    linear: gl.constexpr = gl.to_linear_layout(layout, [32, 64])
    i = gl.arange(0, 32, gl.SliceLayout(1, linear))
    j = gl.arange(0, 64, gl.SliceLayout(0, linear))
    value = gl.load(x + i[:, None] * 64 + j[None, :])
    value = gl.convert_layout(value, layout, assert_trivial=True)
    i = gl.arange(0, 32, gl.SliceLayout(1, layout))
    j = gl.arange(0, 64, gl.SliceLayout(0, layout))
    gl.store(x + i[:, None] * 64 + j[None, :], value)


@source(x="*fp32", y="*fp32", n="i32", constexprs={"layout": LINE})
@gluon.jit
def tuples(x, y, n, layout: gl.constexpr):
    pointers = (x, y)
    i = gl.arange(0, 256, layout)
    a, b = gl.load(pointers[0] + i), gl.load(pointers[1] + i)
    for _ in range(n):
        a, b = b, a + b
    gl.store(pointers[1] + i, a)


@source(x="*fp32", y="*fp32", constexprs={"layout": LINE})
@gluon.jit
def device_library(x, y, layout: gl.constexpr):
    i = gl.arange(0, 256, layout)
    value = gl.load(x + i)
    gl.store(y + i, gl.extra.libdevice.tanh(value) + gl.extra.libdevice.pow(value, value))
