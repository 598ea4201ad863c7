"""Matrix products: grouped ordering, masks, every operand type, batches, descriptors, block pointers, scales."""

from __future__ import annotations

import numpy as np
import triton
import triton.language as tl

from .case import BF16, E4M3, E5M2, Case, Descriptor, f64, integers, normal, zeros


@triton.jit
def matmul(
    a_ptr,
    b_ptr,
    c_ptr,
    M,
    N,
    K,
    stride_am,
    stride_ak,
    stride_bk,
    stride_bn,
    stride_cm,
    stride_cn,
    BLOCK_M: tl.constexpr,
    BLOCK_N: tl.constexpr,
    BLOCK_K: tl.constexpr,
    GROUP: tl.constexpr,
    ACTIVATION: tl.constexpr,
    PRECISION: tl.constexpr,
    ACC: tl.constexpr,
):
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
    for step in range(tl.cdiv(K, BLOCK_K)):
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


def matmul_case(
    name,
    dtype,
    out_dtype,
    m,
    n,
    k,
    *,
    block=(32, 32, 32),
    acc=tl.float32,
    activation="",
    precision="ieee",
    transpose_b=False,
    rtol=1e-4,
    make=None,
    group=2,
):
    def inputs(rng):
        draw = make or (lambda r, *shape: normal(r, *shape, dtype=dtype, scale=0.5))
        b = draw(rng, n, k).T if transpose_b else draw(rng, k, n)
        stored = b.T if transpose_b else b
        return {
            "a_ptr": draw(rng, m, k),
            "b_ptr": np.ascontiguousarray(stored),
            "c_ptr": zeros(m, n, dtype=out_dtype),
            "M": m,
            "N": n,
            "K": k,
            "stride_am": k,
            "stride_ak": 1,
            "stride_bk": 1 if transpose_b else n,
            "stride_bn": k if transpose_b else 1,
            "stride_cm": n,
            "stride_cn": 1,
        }

    def reference(a):
        left, right = f64(a["a_ptr"]), f64(a["b_ptr"].T if transpose_b else a["b_ptr"])
        c = left @ right
        return {"c_ptr": np.where(c >= 0, c, 0.01 * c) if activation else c}

    return Case(
        name,
        matmul,
        inputs,
        reference,
        grid=(-(-m // block[0]) * -(-n // block[1]),),
        constexprs={
            "BLOCK_M": block[0],
            "BLOCK_N": block[1],
            "BLOCK_K": block[2],
            "GROUP": group,
            "ACTIVATION": activation,
            "PRECISION": precision,
            "ACC": acc,
        },
        rtol=rtol,
        atol=rtol,
        tags=("dot",),
    )


@triton.jit
def batched_matmul(a_ptr, b_ptr, c_ptr, M, N, K, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr):
    batch = tl.program_id(2).to(tl.int64)
    m = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    n = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    a_ptr += batch * M * K
    b_ptr += batch * K * N
    acc = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    for start in tl.range(0, K, BLOCK_K, num_stages=2):
        k = start + tl.arange(0, BLOCK_K)
        a = tl.load(a_ptr + m[:, None] * K + k[None, :], mask=(m[:, None] < M) & (k[None, :] < K), other=0.0)
        b = tl.load(b_ptr + k[:, None] * N + n[None, :], mask=(k[:, None] < K) & (n[None, :] < N), other=0.0)
        acc += tl.dot(a, b, input_precision="ieee")
    tl.store(c_ptr + batch * M * N + m[:, None] * N + n[None, :], acc, mask=(m[:, None] < M) & (n[None, :] < N))


@triton.jit
def dot_3d(a_ptr, b_ptr, c_ptr, B: tl.constexpr, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    b = tl.arange(0, B)[:, None, None]
    m = tl.arange(0, M)
    n = tl.arange(0, N)
    k = tl.arange(0, K)
    left = tl.load(a_ptr + b * M * K + m[None, :, None] * K + k[None, None, :])
    right = tl.load(b_ptr + b * K * N + k[None, :, None] * N + n[None, None, :])
    tl.store(c_ptr + b * M * N + m[None, :, None] * N + n[None, None, :], tl.dot(left, right, input_precision="ieee"))


@triton.jit
def gram(a_ptr, c_ptr, M: tl.constexpr, K: tl.constexpr):
    """A tile times its own transpose, and the result used again as an operand."""
    a = tl.load(a_ptr + tl.arange(0, M)[:, None] * K + tl.arange(0, K)[None, :])
    g = tl.dot(a, tl.trans(a), input_precision="ieee")
    g = tl.dot(g, g, acc=g, input_precision="ieee")
    tl.store(c_ptr + tl.arange(0, M)[:, None] * M + tl.arange(0, M)[None, :], g)


@triton.jit
def block_pointer_matmul(
    a_ptr, b_ptr, c_ptr, M, N, K, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr
):
    m = tl.program_id(0) * BLOCK_M
    n = tl.program_id(1) * BLOCK_N
    a_block = tl.make_block_ptr(a_ptr, (M, K), (K, 1), (m, 0), (BLOCK_M, BLOCK_K), (1, 0))
    b_block = tl.make_block_ptr(b_ptr, (K, N), (N, 1), (0, n), (BLOCK_K, BLOCK_N), (1, 0))
    acc = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    for _ in range(0, K, BLOCK_K):
        a = tl.load(a_block, boundary_check=(0, 1), padding_option="zero")
        b = tl.load(b_block, boundary_check=(0, 1), padding_option="zero")
        acc = tl.dot(a, b, acc, input_precision="ieee")
        a_block = tl.advance(a_block, (0, BLOCK_K))
        b_block = tl.advance(b_block, (BLOCK_K, 0))
    c_block = tl.make_block_ptr(c_ptr, (M, N), (N, 1), (m, n), (BLOCK_M, BLOCK_N), (1, 0))
    tl.store(c_block, acc.to(c_ptr.dtype.element_ty), boundary_check=(0, 1))


@triton.jit
def descriptor_matmul(a_desc, b_desc, c_desc, K, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr):
    m = tl.program_id(0) * BLOCK_M
    n = tl.program_id(1) * BLOCK_N
    acc = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    for k in range(0, K, BLOCK_K):
        a = a_desc.load([m, k])
        b = b_desc.load([n, k])
        acc = tl.dot(a, b.T, acc, input_precision="ieee")
    c_desc.store([m, n], acc.to(c_desc.dtype))


@triton.jit
def device_descriptor_matmul(
    a_ptr, b_ptr, c_ptr, M, N, K, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr
):
    a_desc = tl.make_tensor_descriptor(a_ptr, [M, K], [K, 1], [BLOCK_M, BLOCK_K])
    b_desc = tl.make_tensor_descriptor(b_ptr, [K, N], [N, 1], [BLOCK_K, BLOCK_N])
    c_desc = tl.make_tensor_descriptor(c_ptr, [M, N], [N, 1], [BLOCK_M, BLOCK_N])
    m = tl.program_id(0) * BLOCK_M
    n = tl.program_id(1) * BLOCK_N
    acc = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    for k in range(0, K, BLOCK_K):
        acc = tl.dot(a_desc.load([m, k]), b_desc.load([k, n]), acc, input_precision="ieee")
    tl.store_tensor_descriptor(c_desc, [m, n], acc)


@triton.jit
def scaled_matmul(
    a_ptr,
    a_scale_ptr,
    b_ptr,
    b_scale_ptr,
    c_ptr,
    M: tl.constexpr,
    N: tl.constexpr,
    K: tl.constexpr,
    A_FORMAT: tl.constexpr,
    B_FORMAT: tl.constexpr,
):
    """Microscaling formats: 4-bit values lie two in a byte, one power-of-two scale serves 32 values along K."""
    A_PACK: tl.constexpr = 2 if A_FORMAT == "e2m1" else 1
    B_PACK: tl.constexpr = 2 if B_FORMAT == "e2m1" else 1
    m = tl.arange(0, M)
    n = tl.arange(0, N)
    ka = tl.arange(0, K // A_PACK)
    kb = tl.arange(0, K // B_PACK)
    a = tl.load(a_ptr + m[:, None] * (K // A_PACK) + ka[None, :])
    b = tl.load(b_ptr + kb[:, None] * N + n[None, :])
    scales = tl.arange(0, K // 32)
    a_scale = tl.load(a_scale_ptr + m[:, None] * (K // 32) + scales[None, :])
    b_scale = tl.load(b_scale_ptr + n[:, None] * (K // 32) + scales[None, :])
    c = tl.dot_scaled(a, a_scale, A_FORMAT, b, b_scale, B_FORMAT)
    tl.store(c_ptr + m[:, None] * N + n[None, :], c)


@triton.jit
def half_scaled_matmul(a_ptr, b_ptr, b_scale_ptr, c_ptr, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    """bf16 on the left without a scale, 4-bit weights on the right."""
    m = tl.arange(0, M)
    n = tl.arange(0, N)
    a = tl.load(a_ptr + m[:, None] * K + tl.arange(0, K)[None, :])
    b = tl.load(b_ptr + tl.arange(0, K // 2)[:, None] * N + n[None, :])
    b_scale = tl.load(b_scale_ptr + n[:, None] * (K // 32) + tl.arange(0, K // 32)[None, :])
    acc = tl.full([M, N], 1.0, tl.float32)
    c = tl.dot_scaled(a, None, "bf16", b, b_scale, "e2m1", acc)
    tl.store(c_ptr + m[:, None] * N + n[None, :], c)


E2M1 = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6, 0, -0.5, -1, -1.5, -2, -3, -4, -6])


def decode(array, kind, axis):
    """The values of a stored operand along K (`axis`): two 4-bit values in a byte, the low half first."""
    if kind != "e2m1":
        return f64(array)
    pair = np.stack([E2M1[array & 15], E2M1[array >> 4]], axis=axis + 1)
    shape = list(array.shape)
    shape[axis] *= 2
    return pair.reshape(shape)


def scaled_reference(a):
    kinds = a["kinds"]
    left = decode(a["a_ptr"], kinds[0], 1)
    right = decode(a["b_ptr"], kinds[1], 0)
    left = left * np.repeat(2.0 ** (a["a_scale_ptr"].astype(int) - 127), 32, axis=1)
    right = right * np.repeat(2.0 ** (a["b_scale_ptr"].astype(int) - 127), 32, axis=1).T
    return {"c_ptr": left @ right}


def scaled_operand(rng, kind, *shape, axis):
    if kind == "e2m1":
        packed = [size // 2 if i == axis else size for i, size in enumerate(shape)]
        return integers(rng, 0, 256, *packed, dtype=np.uint8)
    return normal(rng, *shape, dtype=E4M3 if kind == "e4m3" else E5M2)


def scaled_case(name, a_kind, b_kind, m=32, n=32, k=64):
    def inputs(rng):
        return {
            "a_ptr": scaled_operand(rng, a_kind, m, k, axis=1),
            "a_scale_ptr": integers(rng, 124, 131, m, k // 32, dtype=np.uint8),
            "b_ptr": scaled_operand(rng, b_kind, k, n, axis=0),
            "b_scale_ptr": integers(rng, 124, 131, n, k // 32, dtype=np.uint8),
            "c_ptr": zeros(m, n),
        }

    return Case(
        name,
        scaled_matmul,
        inputs,
        lambda a: scaled_reference({**a, "kinds": (a_kind, b_kind)}),
        constexprs={"M": m, "N": n, "K": k, "A_FORMAT": a_kind, "B_FORMAT": b_kind},
        rtol=1e-5,
        atol=1e-4,
        tags=("dot",),
    )


def half_scaled_reference(a):
    right = decode(a["b_ptr"], "e2m1", 0) * np.repeat(2.0 ** (a["b_scale_ptr"].astype(int) - 127), 32, axis=1).T
    return {"c_ptr": f64(a["a_ptr"]) @ right + 1}


def gram_reference(a):
    g = f64(a["a_ptr"]) @ f64(a["a_ptr"]).T
    return {"c_ptr": g @ g + g}


def plain_product(a):
    return {"c_ptr": f64(a["a_ptr"]) @ f64(a["b_ptr"])}


def plain_inputs(m, n, k, dtype=np.float32, out_dtype=np.float32):
    return lambda rng: {
        "a_ptr": normal(rng, m, k, dtype=dtype, scale=0.5),
        "b_ptr": normal(rng, k, n, dtype=dtype, scale=0.5),
        "c_ptr": zeros(m, n, dtype=out_dtype),
        "M": m,
        "N": n,
        "K": k,
    }


def descriptor_inputs(dtype, m, n, k, block):
    def inputs(rng):
        bm, bn, bk = block
        return {
            "a_desc": Descriptor(normal(rng, m, k, dtype=dtype, scale=0.5), (bm, bk)),
            "b_desc": Descriptor(normal(rng, n, k, dtype=dtype, scale=0.5), (bn, bk)),
            "c_desc": Descriptor(zeros(m, n, dtype=dtype), (bm, bn)),
            "K": k,
        }

    return inputs


def descriptor_reference(a):
    return {"c_desc": f64(a["a_desc"].array) @ f64(a["b_desc"].array).T}


def small_integers(rng, *shape):
    return integers(rng, -128, 128, *shape, dtype=np.int8)


CASES = [
    matmul_case("matmul_f32", np.float32, np.float32, 100, 70, 50),
    matmul_case("matmul_f32_transposed", np.float32, np.float32, 64, 64, 64, transpose_b=True, activation="leaky_relu"),
    matmul_case("matmul_f32_tf32", np.float32, np.float32, 64, 64, 64, precision="tf32", rtol=5e-3),
    matmul_case("matmul_f32_wide", np.float32, np.float32, 40, 300, 130, block=(64, 128, 32)),
    matmul_case("matmul_f16", np.float16, np.float16, 64, 96, 80, rtol=4e-3, activation="leaky_relu"),
    matmul_case("matmul_f16_acc_f16", np.float16, np.float16, 64, 64, 32, acc=tl.float16, rtol=2e-2),
    matmul_case("matmul_bf16", BF16, BF16, 64, 96, 80, rtol=2e-2),
    matmul_case("matmul_bf16_to_f32", BF16, np.float32, 64, 64, 128, rtol=1e-4, block=(64, 64, 64)),
    matmul_case("matmul_f64", np.float64, np.float64, 33, 47, 29, acc=tl.float64, rtol=1e-12, block=(16, 32, 16)),
    matmul_case("matmul_int8", np.int8, np.int32, 64, 64, 96, acc=tl.int32, make=small_integers),
    matmul_case("matmul_fp8_e4m3", E4M3, np.float32, 64, 64, 64, rtol=1e-4),
    matmul_case("matmul_fp8_e5m2", E5M2, np.float16, 32, 64, 64, rtol=4e-3),
    Case(
        "batched_matmul",
        batched_matmul,
        lambda rng: {
            "a_ptr": normal(rng, 3, 40, 50),
            "b_ptr": normal(rng, 3, 50, 60),
            "c_ptr": zeros(3, 40, 60),
            "M": 40,
            "N": 60,
            "K": 50,
        },
        plain_product,
        grid=(2, 2, 3),
        constexprs={"BLOCK_M": 32, "BLOCK_N": 32, "BLOCK_K": 16},
        rtol=1e-4,
        atol=1e-4,
        tags=("dot",),
    ),
    Case(
        "dot_3d",
        dot_3d,
        lambda rng: {"a_ptr": normal(rng, 4, 16, 32), "b_ptr": normal(rng, 4, 32, 16), "c_ptr": zeros(4, 16, 16)},
        plain_product,
        constexprs={"B": 4, "M": 16, "N": 16, "K": 32},
        rtol=1e-4,
        atol=1e-4,
        tags=("dot",),
    ),
    Case(
        "gram",
        gram,
        lambda rng: {"a_ptr": normal(rng, 32, 16, scale=0.3), "c_ptr": zeros(32, 32)},
        gram_reference,
        constexprs={"M": 32, "K": 16},
        rtol=1e-4,
        atol=1e-4,
        tags=("dot",),
    ),
    Case(
        "block_pointer_matmul",
        block_pointer_matmul,
        plain_inputs(50, 70, 40),
        plain_product,
        grid=(2, 3),
        constexprs={"BLOCK_M": 32, "BLOCK_N": 32, "BLOCK_K": 16},
        rtol=1e-4,
        atol=1e-4,
        tags=("dot",),
    ),
    Case(
        "block_pointer_matmul_f16",
        block_pointer_matmul,
        plain_inputs(64, 64, 64, np.float16, np.float16),
        plain_product,
        grid=(2, 2),
        constexprs={"BLOCK_M": 32, "BLOCK_N": 32, "BLOCK_K": 32},
        rtol=4e-3,
        atol=4e-3,
        tags=("dot",),
    ),
    Case(
        "descriptor_matmul",
        descriptor_matmul,
        descriptor_inputs(np.float16, 72, 56, 80, (32, 32, 16)),
        descriptor_reference,
        grid=(3, 2),
        constexprs={"BLOCK_M": 32, "BLOCK_N": 32, "BLOCK_K": 16},
        rtol=4e-3,
        atol=4e-3,
        tags=("dot", "descriptor"),
    ),
    Case(
        "descriptor_matmul_f32",
        descriptor_matmul,
        descriptor_inputs(np.float32, 64, 32, 64, (32, 32, 32)),
        descriptor_reference,
        grid=(2, 1),
        constexprs={"BLOCK_M": 32, "BLOCK_N": 32, "BLOCK_K": 32},
        rtol=1e-4,
        atol=1e-4,
        tags=("dot", "descriptor"),
    ),
    Case(
        "device_descriptor_matmul",
        device_descriptor_matmul,
        plain_inputs(52, 72, 40),
        plain_product,
        grid=(2, 3),
        constexprs={"BLOCK_M": 32, "BLOCK_N": 32, "BLOCK_K": 16},
        rtol=1e-4,
        atol=1e-4,
        tags=("dot", "descriptor"),
    ),
    scaled_case("scaled_matmul_e2m1", "e2m1", "e2m1"),
    scaled_case("scaled_matmul_e4m3", "e4m3", "e5m2"),
    scaled_case("scaled_matmul_mixed", "e5m2", "e2m1"),
    Case(
        "half_scaled_matmul",
        half_scaled_matmul,
        lambda rng: {
            "a_ptr": normal(rng, 16, 64, dtype=BF16),
            "b_ptr": integers(rng, 0, 256, 32, 32, dtype=np.uint8),
            "b_scale_ptr": integers(rng, 124, 130, 32, 2, dtype=np.uint8),
            "c_ptr": zeros(16, 32),
        },
        half_scaled_reference,
        constexprs={"M": 16, "N": 32, "K": 64},
        rtol=1e-4,
        atol=1e-4,
        tags=("dot",),
    ),
]
