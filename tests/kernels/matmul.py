"""Matrix products: grouped ordering, masks, every operand type, batches, descriptors, block pointers, scales."""

from __future__ import annotations

import numpy as np
import triton
import triton.language as tl

from .case import BF16, Case, f64, integers, normal, zeros


@triton.jit
def matmul(a_ptr, b_ptr, c_ptr, M, N, K, stride_am, stride_ak, stride_bk, stride_bn, stride_cm, stride_cn,
           BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr, GROUP: tl.constexpr, ACTIVATION: tl.constexpr,
           PRECISION: tl.constexpr, ACC: tl.constexpr):
    pid = tl.program_id(0)
    blocks_m = tl.cdiv(M, BLOCK_M)
    blocks_n = tl.cdiv(N, BLOCK_N)
    group = pid // (GROUP * blocks_n)
    first = group * GROUP
    rows = min(blocks_m - first, GROUP)
    pid_m = first + (pid % (GROUP * blocks_n)) % rows
    pid_n = (pid % (GROUP * blocks_n)) // rows
    m = (pid_m * BLOCK_M + tl.arange(0, BLOCK_M)) % M
    n = (pid_n * BLOCK_N + tl.arange(0, BLOCK_N)) % N
    k = tl.arange(0, BLOCK_K)
    a_ptrs = a_ptr + m[:, None] * stride_am + k[None, :] * stride_ak
    b_ptrs = b_ptr + k[:, None] * stride_bk + n[None, :] * stride_bn
    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=ACC)
    for step in range(0, tl.cdiv(K, BLOCK_K)):
        a = tl.load(a_ptrs, mask=k[None, :] < K - step * BLOCK_K, other=0.0)
        b = tl.load(b_ptrs, mask=k[:, None] < K - step * BLOCK_K, other=0.0)
        acc = tl.dot(a, b, acc, input_precision=PRECISION, out_dtype=ACC)
        a_ptrs += BLOCK_K * stride_ak
        b_ptrs += BLOCK_K * stride_bk
    if ACTIVATION == "leaky_relu":
        acc = tl.where(acc >= 0, acc, 0.01 * acc)
    c = acc.to(c_ptr.dtype.element_ty)
    m = pid_m * BLOCK_M + tl.arange(0, BLOCK_M)
    n = pid_n * BLOCK_N + tl.arange(0, BLOCK_N)
    tl.store(c_ptr + stride_cm * m[:, None] + stride_cn * n[None, :], c, mask=(m[:, None] < M) & (n[None, :] < N))


def matmul_case(name, dtype, out_dtype, m, n, k, *, block=(32, 32, 32), acc=tl.float32, activation="", precision="ieee",
                transpose_b=False, rtol=1e-4, make=None, group=2):
    def inputs(rng):
        draw = make or (lambda r, *shape: normal(r, *shape, dtype=dtype, scale=0.5))
        b = draw(rng, n, k).T if transpose_b else draw(rng, k, n)
        stored = b.T if transpose_b else b
        return {
            "a_ptr": draw(rng, m, k), "b_ptr": np.ascontiguousarray(stored), "c_ptr": zeros(m, n, dtype=out_dtype),
            "M": m, "N": n, "K": k, "stride_am": k, "stride_ak": 1, "stride_bk": 1 if transpose_b else n,
            "stride_bn": k if transpose_b else 1, "stride_cm": n, "stride_cn": 1,
        }

    def reference(a):
        left, right = f64(a["a_ptr"]), f64(a["b_ptr"].T if transpose_b else a["b_ptr"])
        c = left @ right
        return {"c_ptr": np.where(c >= 0, c, 0.01 * c) if activation else c}

    return Case(
        name, matmul, inputs, reference, grid=(-(-m // block[0]) * -(-n // block[1]),),
        constexprs={"BLOCK_M": block[0], "BLOCK_N": block[1], "BLOCK_K": block[2], "GROUP": group, "ACTIVATION": activation,
                    "PRECISION": precision, "ACC": acc},
        rtol=rtol, atol=rtol, tags=("dot",),
    )


CASES = [
    matmul_case("matmul_f32", np.float32, np.float32, 100, 70, 50),
    matmul_case("matmul_f16", np.float16, np.float16, 64, 96, 80, rtol=4e-3, activation="leaky_relu"),
]
