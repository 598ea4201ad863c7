"""Annotated kernels and launches with options, as users write them: both type checkers accept the file."""

from __future__ import annotations

import numpy as np
import weft
import weft.language as tl

LOG2E: tl.constexpr = tl.constexpr(1.44269504)
WIDTH = tl.constexpr(64)


@weft.jit
def relu(x: tl.tensor) -> tl.tensor:
    return tl.maximum(x, 0.0)


@weft.jit
def add(x: tl.pointer, y: tl.pointer, out: tl.pointer, n: tl.Scalar, BLOCK: tl.constexpr) -> None:
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    m = i < n
    a = tl.load(x + i, mask=m)
    b = tl.load(y + i, mask=m, other=0.0)
    tl.store(out + i, relu(a) + b, mask=m)


@weft.jit
def softmax(out: tl.pointer, x: tl.pointer, stride: tl.Scalar, cols: tl.int32, BLOCK: tl.constexpr) -> None:
    row = tl.program_id(0)
    i = tl.arange(0, BLOCK)
    v = tl.load(x + row * stride + i, mask=i < cols, other=-float("inf")).to(tl.float32)
    e = tl.exp(v - tl.max(v, axis=0))
    s = e / tl.sum(e, axis=0)
    tl.store(out + row * stride + i, s.to(out.dtype.element_ty), mask=i < cols)


@weft.jit
def matmul(
    a_ptr: tl.pointer,
    b_ptr: tl.pointer,
    c_ptr: tl.pointer,
    bias: tl.pointer | None,
    M: tl.Scalar,
    N: tl.Scalar,
    K: tl.Scalar,
    sam: tl.Scalar,
    sak: tl.Scalar,
    sbk: tl.Scalar,
    sbn: tl.Scalar,
    BM: tl.constexpr,
    BN: tl.constexpr,
    BK: tl.constexpr,
    ACT: tl.constexpr = "",
) -> None:
    pid = tl.program_id(axis=0)
    grid_n = tl.cdiv(N, BN)
    pm = pid // grid_n
    pn = pid % grid_n
    rm = pm * BM + tl.arange(0, BM)
    rn = pn * BN + tl.arange(0, BN)
    rk = tl.arange(0, BK)
    a = a_ptr + rm[:, None] * sam + rk[None, :] * sak
    b = b_ptr + rk[:, None] * sbk + rn[None, :] * sbn
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for k in range(0, tl.cdiv(K, BK)):
        x = tl.load(a, mask=rk[None, :] < K - k * BK, other=0.0)
        y = tl.load(b, mask=rk[:, None] < K - k * BK, other=0.0)
        acc = tl.dot(x, y, acc)
        a += BK * sak
        b += BK * sbk
    for j in tl.static_range(2):
        acc += j
    if bias is not None:
        acc += tl.load(bias + rn)[None, :]
    if ACT == "relu":
        acc = relu(acc)
    half: tl.constexpr = BM // 2
    tl.static_assert(half > 1, "too small")
    off = rm.to(tl.int64)[:, None] * N + rn[None, :]
    n64 = N.to(tl.int64)
    while n64 > 0:
        n64 -= 1
    tl.store(c_ptr + off, acc.to(tl.float16), mask=(rm[:, None] < M) & (rn[None, :] < N))


@weft.autotune([weft.Config({"BLOCK": 64}, num_warps=4), weft.Config({"BLOCK": 128})], key=["n"])
@weft.heuristics({"EVEN": lambda args: args["n"] % args["BLOCK"] == 0})
@weft.jit
def scale(x: tl.pointer, n: tl.Scalar, f: tl.Scalar, BLOCK: tl.constexpr, EVEN: tl.constexpr) -> None:
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    if EVEN:
        tl.store(x + i, tl.load(x + i) * f)
    else:
        tl.store(x + i, tl.load(x + i, mask=i < n) * f, mask=i < n)


@weft.jit(do_not_specialize=["n"])
def reduce_all(x: tl.pointer, out: tl.pointer, n: tl.Scalar, B: tl.constexpr) -> None:
    i = tl.arange(0, B)
    v = tl.load(x + i, mask=i < n, other=0)
    tl.atomic_add(out, tl.sum(v))
    w = tl.reshape(v, (B // 2, 2))
    m, k = tl.max(w, axis=1, return_indices=True)
    tl.store(out + k, m)
    c = tl.cumsum(v, 0)
    s = tl.sort(v)
    g = tl.where(v > 0, tl.sqrt(tl.abs(v)), tl.math.exp2(v))
    tl.device_print("x", c + s + g)
    p, q = tl.split(w)
    tl.store(x + i, tl.interleave(p, q))


def main() -> None:
    n = 1000
    x = np.ones(n, np.float32)
    y, out = np.ones_like(x), np.empty_like(x)
    add[(weft.cdiv(n, 64),)](x, y, out, n, BLOCK=64)
    add[(weft.cdiv(n, 64),)](x, y, out, n, BLOCK=64, num_warps=8, num_stages=2)
    add[(weft.cdiv(n, 64),)](x, y, out, n, 64, num_warps=8)
    add[lambda meta: (weft.cdiv(n, meta["BLOCK"]),)](x, y, out, n=n, BLOCK=64, target="sim:cuda:80")
    print(weft.sim.last_run()["global_load_bytes"])
    compiled = add.warmup(x, y, out, n, BLOCK=64, grid=(1,), num_warps=4)
    print(compiled.asm["ttir"], compiled.metadata.num_warps)
    add.warmup(tl.float32, tl.float32, tl.float32, n, BLOCK=64, grid=(1,))
    scale[lambda meta: (weft.cdiv(n, meta["BLOCK"]),)](x, n, 3.0)
    scale[(16,)](x, n, f=2.0)
    reduce_all[(1, 1)](x, out, n, B=1024)
    matmul[lambda META: (weft.cdiv(n, META["BM"]), 1)](x, y, out, None, 8, 8, 8, 1, 1, 1, 1, BM=16, BN=16, BK=16, ACT="relu", num_warps=4, num_stages=3)
    source = weft.ASTSource(add, {"x": "*fp32", "y": "*fp32", "out": "*fp32", "n": "i32"}, {"BLOCK": 64})
    kernel = weft.compile(source, target="cuda:90")
    print(kernel.asm["ptx"], kernel.metadata.shared, kernel.n_regs, kernel.hash, kernel.name)
    with weft.target("sim:cuda:90"):
        add[16, 1, 1](x, y, out, n, BLOCK=64)
    print(add.explain(x, y, out, n, BLOCK=64, grid=(16,), target="cuda:90"))
