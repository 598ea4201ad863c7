"""Elementwise kernels: masks, scalars, types, comparisons, integer arithmetic, casts, math functions."""

from __future__ import annotations

import numpy as np
import triton
import triton.language as tl
from scipy import special

from .case import BF16, E4M3, E5M2, Case, f64, filled, integers, normal, uniform, zeros


@triton.jit
def vector_add(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask)
    y = tl.load(y_ptr + offsets, mask=mask)
    tl.store(out_ptr + offsets, x + y, mask=mask)


@triton.jit
def copy(src_ptr, dst_ptr, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(dst_ptr + offsets, tl.load(src_ptr + offsets))


@triton.jit
def axpy(a, x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask, other=0.0)
    y = tl.load(y_ptr + offsets, mask=mask, other=0.0)
    tl.store(y_ptr + offsets, a * x + y, mask=mask)


@triton.jit
def gelu(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask)
    y = 0.5 * x * (1.0 + tl.math.erf(x * 0.7071067811865476))
    tl.store(out_ptr + offsets, y, mask=mask)


@triton.jit
def compare_select(x_ptr, y_ptr, out_ptr, count_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask, other=0)
    y = tl.load(y_ptr + offsets, mask=mask, other=0)
    chosen = tl.where((x > y) & (x != 3) | (y == 0), x, -y)
    tl.store(out_ptr + offsets, chosen, mask=mask)
    flags = (x < y).to(tl.int32) + (x <= y) * 2 + (x >= y) * 4 + ((x == y) ^ (x > 0)) * 8
    tl.store(count_ptr + offsets, flags, mask=mask)


@triton.jit
def integer_ops(x_ptr, y_ptr, out_ptr, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offsets)
    y = tl.load(y_ptr + offsets)
    tl.store(out_ptr + 0 * BLOCK + offsets, x // y)
    tl.store(out_ptr + 1 * BLOCK + offsets, x % y)
    tl.store(out_ptr + 2 * BLOCK + offsets, x * y - (x & y))
    tl.store(out_ptr + 3 * BLOCK + offsets, (x | y) ^ (~x))
    tl.store(out_ptr + 4 * BLOCK + offsets, x << 3)
    tl.store(out_ptr + 5 * BLOCK + offsets, x >> 2)
    tl.store(out_ptr + 6 * BLOCK + offsets, tl.minimum(x, y))
    tl.store(out_ptr + 7 * BLOCK + offsets, tl.maximum(x, y) + tl.abs(x))


@triton.jit
def cast_through(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask)
    tl.store(out_ptr + offsets, x.to(out_ptr.dtype.element_ty), mask=mask)


@triton.jit
def bit_tricks(x_ptr, out_ptr, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    bits = tl.load(x_ptr + offsets).to(tl.int32, bitcast=True)
    halved = (bits - (1 << 23)).to(tl.float32, bitcast=True)
    tl.store(out_ptr + offsets, halved)


@triton.jit
def math_functions(x_ptr, out_ptr, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offsets)
    tl.store(out_ptr + 0 * BLOCK + offsets, tl.exp(x))
    tl.store(out_ptr + 1 * BLOCK + offsets, tl.exp2(x))
    tl.store(out_ptr + 2 * BLOCK + offsets, tl.log(x))
    tl.store(out_ptr + 3 * BLOCK + offsets, tl.log2(x))
    tl.store(out_ptr + 4 * BLOCK + offsets, tl.sin(x))
    tl.store(out_ptr + 5 * BLOCK + offsets, tl.cos(x))
    tl.store(out_ptr + 6 * BLOCK + offsets, tl.sqrt(x))
    tl.store(out_ptr + 7 * BLOCK + offsets, tl.rsqrt(x))
    tl.store(out_ptr + 8 * BLOCK + offsets, tl.erf(x))
    tl.store(out_ptr + 9 * BLOCK + offsets, tl.floor(x * 3))
    tl.store(out_ptr + 10 * BLOCK + offsets, tl.ceil(x * 3))
    tl.store(out_ptr + 11 * BLOCK + offsets, tl.fma(x, x, x))
    tl.store(out_ptr + 12 * BLOCK + offsets, tl.sigmoid(x))
    tl.store(out_ptr + 13 * BLOCK + offsets, tl.abs(-x) + tl.clamp(x, 0.5, 2.0))


def math_reference(a):
    x = f64(a["x_ptr"])
    third = (a["x_ptr"] * np.float32(3)).astype(np.float64)
    rows = [np.exp(x), np.exp2(x), np.log(x), np.log2(x), np.sin(x), np.cos(x), np.sqrt(x), 1 / np.sqrt(x)]
    rows += [special.erf(x), np.floor(third), np.ceil(third), x * x + x, special.expit(x), x + np.clip(x, 0.5, 2.0)]
    return {"out_ptr": np.stack(rows)}


@triton.jit
def swish_chain(x_ptr, gate_ptr, out_ptr, scale, n, BLOCK: tl.constexpr):
    """A chain as found in gated feed-forward layers, computed in float32 and stored in the input's type."""
    offsets = tl.program_id(0).to(tl.int64) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask, other=0.0).to(tl.float32)
    gate = tl.load(gate_ptr + offsets, mask=mask, other=0.0).to(tl.float32)
    y = x * tl.sigmoid(x) * gate * scale
    tl.store(out_ptr + offsets, y.to(out_ptr.dtype.element_ty), mask=mask)


def swish_reference(a):
    x, gate = f64(a["x_ptr"]), f64(a["gate_ptr"])
    return {"out_ptr": x * special.expit(x) * gate * a["scale"]}


def truncating_divide(x, y):
    """C's division and remainder, which the language has for tensors (Python's floor only for constants)."""
    quotient = np.trunc(f64(x) / f64(y)).astype(np.int64)
    return quotient, x - quotient * y


def integer_reference(a):
    x, y = a["x_ptr"].astype(np.int64), a["y_ptr"].astype(np.int64)
    quotient, remainder = truncating_divide(x, y)
    rows = [quotient, remainder, x * y - (x & y), (x | y) ^ ~x, x << 3, x >> 2]
    rows += [np.minimum(x, y), np.maximum(x, y) + np.abs(x)]
    return {"out_ptr": np.stack(rows)}


def compare_reference(a):
    x, y = a["x_ptr"], a["y_ptr"]
    flags = (x < y) + (x <= y) * 2 + (x >= y) * 4 + ((x == y) ^ (x > 0)) * 8
    return {"out_ptr": np.where((x > y) & (x != 3) | (y == 0), x, -y), "count_ptr": flags}


def nonzero(rng, *shape):
    values = integers(rng, -50, 50, *shape)
    values[values == 0] = 7
    return values


def vector_add_case(name, dtype, n, block, **kwargs):
    return Case(
        name,
        vector_add,
        lambda rng: {
            "x_ptr": normal(rng, n, dtype=dtype),
            "y_ptr": normal(rng, n, dtype=dtype),
            "out_ptr": filled(n + 8, value=7, dtype=dtype),
            "n": n,
        },
        lambda a: {"out_ptr": np.concatenate([f64(a["x_ptr"]) + f64(a["y_ptr"]), np.full(8, 7.0)])},
        grid=(-(-n // block),),
        constexprs={"BLOCK": block},
        **kwargs,
    )


def cast_case(source, target, *, low=-100.0, high=100.0, n=300):
    source, target = np.dtype(source), np.dtype(target)

    def inputs(rng):
        values = uniform(rng, n, low=low, high=high, dtype=np.float64)
        return {"x_ptr": values.astype(source), "out_ptr": zeros(n, dtype=target), "n": n}

    def reference(a):
        x = a["x_ptr"]
        if target == np.bool_:
            return {"out_ptr": x.astype(np.float64) != 0}
        # ml_dtypes rounds once from float32, which holds every source value used here exactly.
        wide = x.astype(np.float32) if source.kind not in "iu" or target.kind not in "iu" else x
        return {"out_ptr": wide.astype(target)}

    return Case(
        f"cast_{source.name}_to_{target.name}",
        cast_through,
        inputs,
        reference,
        grid=(3,),
        constexprs={"BLOCK": 128},
        rtol=0,
        atol=0,
    )


CASES = [
    vector_add_case("vector_add", np.float32, 1000, 256),
    vector_add_case("vector_add_f16", np.float16, 1000, 256, rtol=1e-3, atol=1e-3),
    vector_add_case("vector_add_bf16", BF16, 777, 128, rtol=1e-2, atol=1e-2),
    vector_add_case("vector_add_f64", np.float64, 1000, 256, rtol=1e-15, atol=0),
    vector_add_case("vector_add_one_element", np.float32, 3, 1),
    vector_add_case("vector_add_two_elements", np.float32, 7, 2),
    vector_add_case("vector_add_four_elements", np.float32, 9, 4),
    vector_add_case("vector_add_large_tile", np.float32, 70000, 65536),
    Case(
        "copy",
        copy,
        lambda rng: {"src_ptr": normal(rng, 1024), "dst_ptr": zeros(1024)},
        lambda a: {"dst_ptr": a["src_ptr"]},
        grid=(4,),
        constexprs={"BLOCK": 256},
    ),
    Case(
        "copy_int64",
        copy,
        lambda rng: {
            "src_ptr": integers(rng, -(2**62), 2**62, 512, dtype=np.int64),
            "dst_ptr": zeros(512, dtype=np.int64),
        },
        lambda a: {"dst_ptr": a["src_ptr"]},
        grid=(4,),
        constexprs={"BLOCK": 128},
    ),
    Case(
        "copy_bool",
        copy,
        lambda rng: {"src_ptr": integers(rng, 0, 2, 512).astype(bool), "dst_ptr": zeros(512, dtype=np.bool_)},
        lambda a: {"dst_ptr": a["src_ptr"]},
        grid=(4,),
        constexprs={"BLOCK": 128},
    ),
    Case(
        "axpy",
        axpy,
        lambda rng: {"a": 2.5, "x_ptr": normal(rng, 1000), "y_ptr": normal(rng, 1000), "n": 1000},
        lambda a: {"y_ptr": a["a"] * f64(a["x_ptr"]) + f64(a["y_ptr"])},
        grid=(4,),
        constexprs={"BLOCK": 256},
    ),
    Case(
        "gelu",
        gelu,
        lambda rng: {"x_ptr": normal(rng, 1000, scale=3), "out_ptr": zeros(1000), "n": 1000},
        lambda a: {"out_ptr": 0.5 * f64(a["x_ptr"]) * (1 + special.erf(f64(a["x_ptr"]) / np.sqrt(2)))},
        grid=(4,),
        constexprs={"BLOCK": 256},
    ),
    Case(
        "compare_select",
        compare_select,
        lambda rng: {
            "x_ptr": integers(rng, -5, 6, 500),
            "y_ptr": integers(rng, -5, 6, 500),
            "out_ptr": zeros(500, dtype=np.int32),
            "count_ptr": zeros(500, dtype=np.int32),
            "n": 500,
        },
        compare_reference,
        grid=(4,),
        constexprs={"BLOCK": 128},
    ),
    Case(
        "integer_ops",
        integer_ops,
        lambda rng: {
            "x_ptr": integers(rng, -1000, 1000, 256),
            "y_ptr": nonzero(rng, 256),
            "out_ptr": zeros(8, 256, dtype=np.int32),
        },
        integer_reference,
        constexprs={"BLOCK": 256},
    ),
    Case(
        "integer_ops_int64",
        integer_ops,
        lambda rng: {
            "x_ptr": integers(rng, -(2**40), 2**40, 64, dtype=np.int64),
            "y_ptr": nonzero(rng, 64).astype(np.int64),
            "out_ptr": zeros(8, 64, dtype=np.int64),
        },
        integer_reference,
        constexprs={"BLOCK": 64},
    ),
    Case(
        "integer_ops_uint32",
        integer_ops,
        lambda rng: {
            "x_ptr": integers(rng, 0, 2**16, 64, dtype=np.uint32),
            "y_ptr": integers(rng, 1, 99, 64, dtype=np.uint32),
            "out_ptr": zeros(8, 64, dtype=np.uint32),
        },
        integer_reference,
        constexprs={"BLOCK": 64},
    ),
    Case(
        "bit_tricks",
        bit_tricks,
        lambda rng: {"x_ptr": normal(rng, 128), "out_ptr": zeros(128)},
        lambda a: {"out_ptr": f64(a["x_ptr"]) / 2},
        constexprs={"BLOCK": 128},
        rtol=0,
        atol=0,
    ),
    Case(
        "math_functions",
        math_functions,
        lambda rng: {"x_ptr": uniform(rng, 256, low=0.01, high=20.0), "out_ptr": zeros(14, 256)},
        math_reference,
        constexprs={"BLOCK": 256},
        rtol=2e-6,
        atol=2e-7,
    ),
    Case(
        "math_functions_f64",
        math_functions,
        lambda rng: {
            "x_ptr": uniform(rng, 64, low=0.01, high=20.0, dtype=np.float64),
            "out_ptr": zeros(14, 64, dtype=np.float64),
        },
        lambda a: {
            "out_ptr": np.stack(
                [
                    *math_reference(a)["out_ptr"][:9],
                    np.floor(a["x_ptr"] * 3),
                    np.ceil(a["x_ptr"] * 3),
                    *math_reference(a)["out_ptr"][11:],
                ]
            )
        },
        constexprs={"BLOCK": 64},
        rtol=1e-13,
        atol=1e-14,
    ),
    *(
        Case(
            f"swish_chain_{dtype.name}",
            swish_chain,
            lambda rng, dtype=dtype: {
                "x_ptr": normal(rng, 1000, dtype=dtype),
                "gate_ptr": normal(rng, 1000, dtype=dtype),
                "out_ptr": zeros(1000, dtype=dtype),
                "scale": 0.5,
                "n": 1000,
            },
            swish_reference,
            grid=(2,),
            constexprs={"BLOCK": 512},
            rtol=tolerance,
            atol=tolerance,
        )
        for dtype, tolerance in ((np.dtype(np.float32), 1e-5), (np.dtype(np.float16), 2e-3), (BF16, 1e-2))
    ),
    cast_case(np.float32, np.int32),
    cast_case(np.float32, np.uint8, low=0, high=255),
    cast_case(np.float32, np.float16),
    cast_case(np.float32, BF16),
    cast_case(np.float32, E4M3),
    cast_case(np.float32, E5M2),
    cast_case(E4M3, np.float32),
    cast_case(E5M2, np.float16),
    cast_case(E4M3, BF16),
    cast_case(np.float16, np.float32),
    cast_case(np.float16, np.int8),
    cast_case(BF16, np.float16),
    cast_case(BF16, np.int64),
    cast_case(np.int32, np.float32, low=-1e9, high=1e9),
    cast_case(np.int32, np.int8, low=-1000, high=1000),
    cast_case(np.int8, np.int64),
    cast_case(np.uint8, np.int32, low=0, high=255),
    cast_case(np.int64, np.float16),
    cast_case(np.uint32, np.float32, low=0, high=4e9),
    cast_case(np.int16, np.bool_, low=-2, high=2),
    cast_case(np.bool_, np.float32, low=-0.5, high=1.5),
    cast_case(np.float64, np.float32),
]
