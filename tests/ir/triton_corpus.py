"""Kernels that reach every operation of Triton's tile IR, and what the real Triton makes of them.

    python tests/ir/triton_corpus.py OUT      # writes NAME.raw.ttir (before its passes) and NAME.ttir (after them)

Triton is needed to run this file and for nothing else.
"""

from __future__ import annotations

import pathlib
import re
import sys
from typing import Any

import triton
import triton.language as tl
from triton._C.libtriton import ir
from triton.backends.compiler import GPUTarget
from triton.language.extra import libdevice

KERNELS: dict[str, tuple[Any, dict[str, str], dict[str, Any]]] = {}
TARGET = GPUTarget("cuda", 90, 32)


def kernel(_constexprs: dict[str, Any] | None = None, **signature: str) -> Any:
    def register(fn: Any) -> Any:
        constexprs = _constexprs or {}
        full = {n: signature.get(n, "constexpr") for n in fn.__code__.co_varnames[: fn.__code__.co_argcount]}
        KERNELS[fn.__name__] = (triton.jit(fn), full, constexprs)
        return fn

    return register


@kernel({"BLOCK": 1024}, x="*fp32", y="*fp32", out="*fp32", n="i32")
def vector_add(x, y, out, n, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offs < n
    a = tl.load(x + offs, mask=mask, other=0.0, cache_modifier=".cg", eviction_policy="evict_last")
    b = tl.load(y + offs, mask=mask, volatile=True)
    tl.store(out + offs, a + b, mask=mask, cache_modifier=".wt", eviction_policy="evict_first")


@kernel({"BLOCK": 256}, x="*fp16", out="*fp16", n="i32", stride="i32")
def softmax(x, out, n, stride, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    offs = tl.arange(0, BLOCK)
    v = tl.load(x + row * stride + offs, mask=offs < n, other=-float("inf")).to(tl.float32)
    v = v - tl.max(v, axis=0)
    e = tl.exp(v)
    tl.store(out + row * stride + offs, (e / tl.sum(e, axis=0)).to(tl.float16), mask=offs < n)


@kernel(
    {"BM": 64, "BN": 64, "BK": 32},
    a="*fp16",
    b="*fp16",
    c="*fp32",
    M="i32",
    N="i32",
    K="i32",
    sa="i32",
    sb="i32",
    sc="i64",
)
def matmul(a, b, c, M, N, K, sa, sb, sc, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    pid = tl.program_id(0)
    num_m = tl.cdiv(M, BM)
    pm, pn = pid % num_m, pid // num_m
    rm = pm * BM + tl.arange(0, BM)
    rn = pn * BN + tl.arange(0, BN)
    rk = tl.arange(0, BK)
    rm = tl.max_contiguous(tl.multiple_of(rm % M, BM), BM)
    pa = a + rm[:, None] * sa + rk[None, :]
    pb = b + rk[:, None] * sb + rn[None, :]
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for k in tl.range(0, K, BK, num_stages=3, loop_unroll_factor=2, flatten=True):
        x = tl.load(pa, mask=rk[None, :] < K - k, other=0.0)
        y = tl.load(pb, mask=rk[:, None] < K - k, other=0.0)
        acc = tl.dot(x, y, acc)
        pa += BK
        pb += BK * sb
    pc = c + rm[:, None] * sc + rn[None, :]
    tl.store(pc, acc, mask=(rm[:, None] < M) & (rn[None, :] < N))


@kernel({"BM": 32, "BN": 32, "BK": 32}, a="*fp32", b="*fp32", c="*fp32", M="i32", N="i32", K="i32", sa="i32", sb="i32")
def block_pointers(a, b, c, M, N, K, sa, sb, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    pm, pn = tl.program_id(0), tl.program_id(1)
    pa = tl.make_block_ptr(a, (M, K), (sa, 1), (pm * BM, 0), (BM, BK), (1, 0))
    pb = tl.make_block_ptr(b, (K, N), (sb, 1), (0, pn * BN), (BK, BN), (1, 0))
    pc = tl.make_block_ptr(c, (M, N), (N, 1), (pm * BM, pn * BN), (BM, BN), (1, 0))
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for k in range(0, K, BK):
        x = tl.load(pa, boundary_check=(0, 1), padding_option="zero")
        y = tl.load(pb, boundary_check=(0,), padding_option="nan")
        acc += tl.dot(x, y, input_precision="ieee")
        pa = tl.advance(pa, (0, BK))
        pb = tl.advance(pb, (BK, 0))
    tl.store(pc, acc, boundary_check=(0, 1))


@kernel({"BM": 32, "BN": 32}, a="*fp16", d="tensordesc<fp16[32,32]>", o="*fp16", M="i32", N="i32")
def descriptors(a, d, o, M, N, BM: tl.constexpr, BN: tl.constexpr):
    da = tl.make_tensor_descriptor(a, [M, N], [N, 1], [BM, BN], padding_option="nan")
    do = tl.make_tensor_descriptor(o, [M, N], [N, 1], [BM, BN])
    x = da.load([tl.program_id(0) * BM, 0])
    y = d.load([0, tl.program_id(0) * BN])
    do.store([tl.program_id(0) * BM, 0], x + y)
    do.atomic_add([0, 0], x)


@kernel({}, d="tensordesc<fp32[1,64]>", i="*i32")
def descriptor_rows(d, i):
    rows = tl.load(i + tl.arange(0, 32))
    x = d.gather(rows, 8)
    d.scatter(x * 2, rows, 0)


@kernel({}, d="tensordesc<i32[8,32]>", e="tensordesc<u32[8,32]>", p="*u64", n="i32")
def descriptor_integers(d, e, p, n):
    x = d.load([n, 0])
    d.atomic_min([0, 0], x)
    d.atomic_or([0, 0], x)
    e.atomic_max([0, 0], e.load([0, n]))
    f = tl.make_tensor_descriptor(p, [n, n, n], [n * n, n, 1], [2, 4, 8])
    f.atomic_xor([0, 0, 0], f.load([0, 0, n]))
    for i in range(n):
        if i > 3:
            f = tl.make_tensor_descriptor(p + i, [n, n, n], [n * n, n, 1], [2, 4, 8])
        f.store([i, i, i], f.load([0, 0, i]))


@kernel({"BLOCK": 128}, p="*fp32", q="*i32", r="*u64", h="*fp16", n="i32")
def atomics(p, q, r, h, n, BLOCK: tl.constexpr):
    offs = tl.arange(0, BLOCK)
    m = offs < n
    v = offs.to(tl.float32)
    tl.atomic_add(p + offs, v, mask=m)
    tl.atomic_max(p + offs, v, mask=m, sem="relaxed", scope="cta")
    tl.atomic_min(q + offs, offs, sem="acquire", scope="sys")
    tl.atomic_max(r + offs, offs.to(tl.uint64), sem="release")
    tl.atomic_and(q + offs, offs)
    tl.atomic_or(q + offs, offs)
    tl.atomic_xor(q + offs, offs)
    tl.atomic_xchg(q, n)
    tl.atomic_add(h + offs, v.to(tl.float16))
    old = tl.atomic_cas(q, 0, n, sem="acq_rel")
    while tl.atomic_cas(q, 0, old) == 1:
        pass
    tl.atomic_cas(q + offs, offs, offs)
    tl.debug_barrier()


@kernel({"B": 64}, x="*i32", f="*fp32", out="*i32", n="i32")
def shapes(x, f, out, n, B: tl.constexpr):
    i = tl.arange(0, B)
    v = tl.load(x + i)
    w = tl.reshape(v, (8, 8))
    t = tl.trans(w)
    p = tl.permute(tl.reshape(v, (4, 4, 4)), (2, 0, 1))
    j = tl.join(v, v + 1)
    a, b = tl.split(j)
    k = tl.interleave(a, b)
    c = tl.cat(v, v, can_reorder=True)
    u = tl.view(c, (2, B))
    e = tl.broadcast_to(v[None, :, None], (2, B, 2))
    g = tl.gather(t, w % 8, 1)
    h = tl.histogram(v, 16)
    hm = tl.histogram(v, 32, mask=i < n)
    s = tl.sort(v, descending=True)
    fl = tl.flip(v, 0)
    one = tl.full((1,), 3, tl.int32).item()
    cs = tl.cumsum(v, 0)
    rs = tl.associative_scan(tl.load(f + i), 0, _combine, reverse=True)
    tl.store(out + i, v + tl.ravel(t) + tl.ravel(p) + s + fl + cs + one + rs.to(tl.int32))
    tl.store(out + tl.arange(0, 2 * B), k + tl.ravel(u))
    tl.store(out + tl.ravel(g), tl.ravel(g))
    tl.store(out + tl.arange(0, 16), h)
    tl.store(out + tl.arange(0, 32), hm)
    tl.store(out + e, e)


@triton.jit
def _combine(a, b):
    return tl.maximum(a, b, propagate_nan=tl.PropagateNan.ALL) * 0.5


@kernel({"B": 64}, x="*fp32", xi="*i32", out="*fp32", oi="*i32")
def reductions(x, xi, out, oi, B: tl.constexpr):
    o = tl.arange(0, B)
    v = tl.load(x + o[:, None] * B + o[None, :])
    m, i = tl.max(v, axis=1, return_indices=True)
    tl.store(out + o, m)
    tl.store(oi + o, i)
    tl.store(oi + o, tl.argmin(v, axis=0, tie_break_left=False))
    tl.store(out, tl.sum(v))
    tl.store(oi, tl.xor_sum(tl.load(xi + o), axis=0))
    tl.store(out + o[:, None], tl.min(v, axis=1, keep_dims=True))
    c, d = tl.associative_scan((v, v * 2), 1, _pair)
    tl.store(out + o[:, None] * B + o[None, :], c + d)


@triton.jit
def _pair(a, b, c, d):
    return a * c + b, b + d


@kernel({"B": 64}, x="*fp32", y="*fp64", z="*bf16", out="*fp32", n="i32")
def maths(x, y, z, out, n, B: tl.constexpr):
    o = tl.arange(0, B)
    v = tl.load(x + o)
    w = tl.load(y + o)
    r = tl.exp(v) + tl.exp2(v) + tl.log(v) + tl.log2(v) + tl.sin(v) + tl.cos(v) + tl.sqrt(v) + tl.rsqrt(v)
    r += tl.erf(v) + tl.floor(v) + tl.ceil(v) + tl.abs(v) + tl.sqrt_rn(v) + tl.div_rn(v, v) + tl.fma(v, v, v)
    r += tl.clamp(v, 0.0, 1.0) + tl.clamp(v, 0.0, 1.0, propagate_nan=tl.PropagateNan.ALL) + v % 3.0 + tl.fdiv(v, v)
    r += tl.minimum(v, 1.0) + tl.maximum(v, 1.0) + tl.sigmoid(v) + tl.umulhi(o, o)
    r += tl.maximum(v, 1.0, propagate_nan=tl.PropagateNan.ALL) + tl.minimum(v, 2.0, propagate_nan=tl.PropagateNan.ALL)
    r += libdevice.tanh(v) + libdevice.pow(v, 2.0) + libdevice.ffs(o) + w.to(tl.float32) + tl.load(z + o)
    q = o // n + o % n + (o << 2) + (o >> 1) + (o & 3) + (o | 3) + (o ^ 3) + ~o + tl.abs(o) - (-o)
    u = o.to(tl.uint32)
    q += (u // 3 + u % 3 + (u >> 1)).to(tl.int32) + tl.minimum(o, 3) + tl.maximum(u, 3).to(tl.int32)
    q += (o < 3) & (o <= 4) | (o > 5) | (o >= 6) | (o == 7) | (o != 8) | (u < 3) | (u <= 4) | (u > 5) | (u >= 6)
    q += (v < 3) & (v <= 4) | (v > 5) | (v >= 6) | (v == 7) | (v != 8)
    tl.store(out + o, tl.where(q > 0, r, -r))


@kernel({"B": 64}, x="*fp32", out="*fp32", h="*fp16", f8="*fp8e5", g8="*fp8e4nv", i="*i8", p="*i64", b="*i1")
def casts(x, out, h, f8, g8, i, p, b, B: tl.constexpr):
    o = tl.arange(0, B)
    v = tl.load(x + o)
    tl.store(h + o, v.to(tl.float16, fp_downcast_rounding="rtz"))
    tl.store(f8 + o, v.to(tl.float8e5))
    tl.store(g8 + o, v.to(tl.float8e4nv))
    w = tl.load(f8 + o).to(tl.float32) + tl.load(g8 + o).to(tl.float16) + tl.load(h + o).to(tl.bfloat16)
    tl.store(i + o, v.to(tl.int8))
    tl.store(i + o, v.to(tl.uint8).to(tl.int8, bitcast=True))
    w += tl.load(i + o).to(tl.uint8, bitcast=True).to(tl.float32) + v.to(tl.int32, bitcast=True)
    tl.store(p, x.to(tl.int64))
    q = tl.load(p).to(tl.pointer_type(tl.float32))
    tl.store(q + o, w + v.to(tl.float64).to(tl.float32))
    tl.store(b + o, v > 0)
    tl.store(out + o, tl.load(b + o).to(tl.float32) + (v + 1e-300).to(tl.float32))
    tl.store(out + o, v + float("nan") + float("inf"))


@kernel({"B": 64}, x="*fp32", out="*fp32", n="i32", m="i64", k="u32")
def control(x, out, n, m, k, B: tl.constexpr):
    o = tl.arange(0, B)
    if n < 0:
        return
    acc = tl.zeros((B,), tl.float32)
    cnt = 0
    for i in range(n):
        if i % 2 == 0:
            acc += tl.load(x + i * B + o)
            cnt += 1
        else:
            acc -= 1
    for i in range(m):
        acc += i
    for i in range(k, 0, -1):
        acc += i
    for i in tl.range(0, n, 2, disable_licm=True, disallow_acc_multi_buffer=True, warp_specialize=False):
        acc *= 2
    while cnt > 0:
        acc = acc * 0.5
        cnt -= 1
    j = n
    while tl.condition(j > 10, disable_licm=True):
        j //= 2
    tl.assume(j > 0)
    if (cnt == 0) and (n > 3):
        acc += 1
    acc = acc + _chosen(n, m)
    s = tl.sum(acc) if n > 2 else 0.0
    tl.store(out + o, acc + s + j)


@triton.jit(noinline=True)
def _chosen(a, b):
    if a > 3:
        return a + b
    else:
        return b


@triton.jit(noinline=True)
def _sideways(p, a):
    if a > 3:
        tl.store(p, a)
        return
    tl.store(p + 1, a)


@kernel({}, p="*i32", n="i32")
def calls(p, n):
    _sideways(p, n)
    _sideways(p + 2, n + 1)
    tl.store(p + 3, _chosen(n, n.to(tl.int64)).to(tl.int32))
    if n > 7:
        return
    tl.store(p, 3)


@kernel({"B": 16}, x="*fp32", out="*fp32")
def diagnostics(x, out, B: tl.constexpr):
    o = tl.arange(0, B)
    v = tl.load(x + o)
    tl.device_print("v", v, o, hex=True)
    tl.device_print("pid", tl.program_id(1), tl.num_programs(2))
    tl.device_print("nothing")
    tl.device_assert(v > 0, 'v must be > 0 "really"\n')
    tl.device_assert(tl.program_id(0) < 100, "few", mask=tl.program_id(0) > 3)
    y = tl.inline_asm_elementwise("add.f32 $0, $1, $2;", "=f,f,f", [v, v], dtype=tl.float32, is_pure=True, pack=1)
    a, b = tl.inline_asm_elementwise(
        "{ mov $0, $2; \n mov $1, $2; }", "=r,=r,r", [o], dtype=(tl.int32, tl.int32), is_pure=False, pack=1
    )
    z, w = tl.map_elementwise(_branchy, v, y)
    tl.store(out + o, y + a + b + z + w)


@triton.jit
def _branchy(a, b):
    if a > 0:
        return a, b
    else:
        return b, a


@kernel({"M": 64, "N": 64, "K": 64}, a="*u8", b="*fp8e4nv", sa="*u8", sb="*u8", c="*fp32", h="*bf16")
def scaled(a, b, sa, sb, c, h, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    m, n, k = tl.arange(0, M), tl.arange(0, N), tl.arange(0, K)
    ks = tl.arange(0, K // 32)
    xa = tl.load(a + m[:, None] * (K // 2) + tl.arange(0, K // 2)[None, :])
    xb = tl.load(b + k[:, None] * N + n[None, :])
    ya = tl.load(sa + m[:, None] * (K // 32) + ks[None, :])
    yb = tl.load(sb + n[:, None] * (K // 32) + ks[None, :])
    acc = tl.dot_scaled(xa, ya, "e2m1", xb, yb, "e4m3")
    acc = tl.dot_scaled(xa, ya, "e2m1", xb, None, "e4m3", acc, fast_math=True)
    xh = tl.load(h + m[:, None] * K + k[None, :])
    acc = tl.dot_scaled(xh, None, "bf16", xb, yb, "e4m3", acc)
    xp = tl.load(a + tl.arange(0, M // 2)[:, None] * K + k[None, :])
    acc = tl.dot_scaled(xp, ya, "e2m1", xb, yb, "e4m3", acc, lhs_k_pack=False)
    tl.store(c + m[:, None] * N + n[None, :], acc)


@kernel({"B": 32}, a="*i8", b="*i8", c="*i32", d="*fp8e5", e="*fp16", f="*fp64")
def dots(a, b, c, d, e, f, B: tl.constexpr):
    i, j = tl.arange(0, B)[:, None], tl.arange(0, B)[None, :]
    o = i * B + j
    tl.store(c + o, tl.dot(tl.load(a + o), tl.load(b + o)))
    tl.store(e + o, tl.dot(tl.load(d + o), tl.load(d + o), out_dtype=tl.float16, max_num_imprecise_acc=16))
    x = tl.load(e + o).to(tl.float32)
    tl.store(e + o, tl.dot(x, x, input_precision="tf32x3").to(tl.float16))
    tl.store(f + o, tl.dot(tl.load(f + o), tl.load(f + o)))
    y = tl.broadcast_to(x[None, :, :], (4, B, B))
    z = tl.sum(tl.dot(y, y, input_precision="bf16x3"), axis=0)
    tl.store(e + o, z.to(tl.float16))


@kernel({"B": 128}, out="*fp32", oi="*u32", seed="u64")
def random(out, oi, seed, B: tl.constexpr):
    o = tl.arange(0, B)
    tl.store(out + o, tl.rand(seed, o))
    tl.store(out + B + o, tl.randn(seed, o, n_rounds=7))
    a, b, c, d = tl.randint4x(seed, o)
    tl.store(oi + o, a + b + c + d)


@kernel({"B": 128}, x="*fp32", out="*fp32", n="i32")
def topk(x, out, n, B: tl.constexpr):
    o = tl.arange(0, B)
    v = tl.load(x + o, mask=o < n, other=0)
    t = tl.topk(v, 8)
    tl.store(out + tl.arange(0, 8), t)
    tl.store(out + o, tl.softmax(v))
    pid = tl.program_id(0)
    i, j = tl.swizzle2d(pid, pid, 4, 4, 2)
    tl.store(out + i, j)


def make(name: str) -> dict[str, str]:
    """The text of a kernel before and after Triton's passes."""
    fn, signature, constexprs = KERNELS[name]
    src = triton.compiler.ASTSource(fn, signature, {(list(signature).index(k),): v for k, v in constexprs.items()})
    backend = triton.compiler.make_backend(TARGET)
    options = backend.parse_options({"debug": name == "diagnostics"})
    context = ir.context()
    ir.load_dialects(context)
    backend.load_dialects(context)
    raw = src.make_ir(TARGET, options, backend.get_codegen_implementation(options), backend.get_module_map(), context)
    texts = {"raw": str(raw)}
    stages: dict[str, Any] = {}
    backend.add_stages(stages, options, src.language)
    texts["ttir"] = str(stages["ttir"](raw, {}))
    return texts


def main() -> None:
    out = pathlib.Path(sys.argv[1])
    out.mkdir(parents=True, exist_ok=True)
    for name in sys.argv[2:] or KERNELS:
        try:
            texts = make(name)
        except Exception as error:
            print(f"{name}: {str(error)[-600:]} {error.__cause__}")
            continue
        for stage, text in texts.items():
            ending = "ttir" if stage == "ttir" else f"{stage}.ttir"
            (out / f"{name}.{ending}").write_text(re.sub(r'"[^"\n]*/([\w.]+\.py)":', r'"\1":', text))


if __name__ == "__main__":
    main()
