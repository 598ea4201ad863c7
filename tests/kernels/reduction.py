"""Reductions, normalisations, scans, sorting: what combines the elements of a tile."""

from __future__ import annotations

import numpy as np
import triton
import triton.language as tl

from .case import BF16, Case, f64, integers, normal, uniform, zeros


@triton.jit
def softmax(x_ptr, out_ptr, x_stride, out_stride, n_cols, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    columns = tl.arange(0, BLOCK)
    mask = columns < n_cols
    x = tl.load(x_ptr + row * x_stride + columns, mask=mask, other=-float("inf"))
    x = x - tl.max(x, axis=0)
    numerator = tl.exp(x)
    tl.store(out_ptr + row * out_stride + columns, numerator / tl.sum(numerator, axis=0), mask=mask)


@triton.jit
def layer_norm_forward(
    x_ptr, weight_ptr, bias_ptr, out_ptr, mean_ptr, rstd_ptr, stride, n_cols, eps, BLOCK: tl.constexpr
):
    row = tl.program_id(0)
    x_ptr += row * stride
    out_ptr += row * stride
    total = tl.zeros([BLOCK], dtype=tl.float32)
    for start in range(0, n_cols, BLOCK):
        columns = start + tl.arange(0, BLOCK)
        total += tl.load(x_ptr + columns, mask=columns < n_cols, other=0.0).to(tl.float32)
    mean = tl.sum(total, axis=0) / n_cols
    squares = tl.zeros([BLOCK], dtype=tl.float32)
    for start in range(0, n_cols, BLOCK):
        columns = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + columns, mask=columns < n_cols, other=0.0).to(tl.float32)
        centred = tl.where(columns < n_cols, x - mean, 0.0)
        squares += centred * centred
    rstd = 1 / tl.sqrt(tl.sum(squares, axis=0) / n_cols + eps)
    tl.store(mean_ptr + row, mean)
    tl.store(rstd_ptr + row, rstd)
    for start in range(0, n_cols, BLOCK):
        columns = start + tl.arange(0, BLOCK)
        mask = columns < n_cols
        weight = tl.load(weight_ptr + columns, mask=mask)
        bias = tl.load(bias_ptr + columns, mask=mask)
        x = tl.load(x_ptr + columns, mask=mask, other=0.0).to(tl.float32)
        tl.store(out_ptr + columns, (x - mean) * rstd * weight + bias, mask=mask)


@triton.jit
def sum_both_axes(x_ptr, rows_ptr, columns_ptr, all_ptr, M: tl.constexpr, N: tl.constexpr):
    i = tl.arange(0, M)
    j = tl.arange(0, N)
    x = tl.load(x_ptr + i[:, None] * N + j[None, :])
    tl.store(rows_ptr + i, tl.sum(x, axis=1))
    tl.store(columns_ptr + j, tl.sum(x, axis=0))
    tl.store(all_ptr, tl.sum(x))


@triton.jit
def extremes(x_ptr, out_ptr, index_ptr, M: tl.constexpr, N: tl.constexpr):
    i = tl.arange(0, M)
    j = tl.arange(0, N)
    x = tl.load(x_ptr + i[:, None] * N + j[None, :])
    tl.store(out_ptr + i, tl.max(x, axis=1))
    tl.store(out_ptr + M + i, tl.min(x, 1))
    tl.store(index_ptr + i, tl.argmax(x, axis=1))
    tl.store(index_ptr + M + i, tl.argmin(x, axis=1))
    value, where = tl.max(x, axis=1, return_indices=True)
    tl.store(out_ptr + 2 * M + i, value)
    tl.store(index_ptr + 2 * M + i, where)


@triton.jit
def integer_reductions(x_ptr, out_ptr, N: tl.constexpr):
    x = tl.load(x_ptr + tl.arange(0, N))
    tl.store(out_ptr + 0, tl.sum(x, axis=0))
    tl.store(out_ptr + 1, tl.max(x, axis=0))
    tl.store(out_ptr + 2, tl.min(x, axis=0))
    tl.store(out_ptr + 3, tl.xor_sum(x, axis=0))
    tl.store(out_ptr + 4, tl.reduce_or(x, axis=0))


@triton.jit
def welford_combine(mean_a, m2_a, weight_a, mean_b, m2_b, weight_b):
    weight = weight_a + weight_b
    delta = mean_b - mean_a
    ratio = tl.where(weight == 0.0, 0.0, weight_b / weight)
    return mean_a + delta * ratio, m2_a + m2_b + delta * delta * weight_a * ratio, weight


@triton.jit
def welford(x_ptr, mean_ptr, variance_ptr, n_cols, M: tl.constexpr, N: tl.constexpr):
    i = tl.program_id(0) * M + tl.arange(0, M)
    j = tl.arange(0, N)
    mask = j[None, :] < n_cols
    x = tl.load(x_ptr + i[:, None] * n_cols + j[None, :], mask=mask & (i[:, None] >= 0), other=0.0)
    weight = tl.where(mask, 1.0, 0.0) + tl.zeros([M, N], tl.float32)
    mean, m2, weight = tl.reduce((x, tl.zeros_like(x), weight), 1, welford_combine)
    tl.store(mean_ptr + i, mean)
    tl.store(variance_ptr + i, m2 / weight)


@triton.jit
def multiply(a, b):
    return a * b


@triton.jit
def product(x_ptr, out_ptr, M: tl.constexpr, N: tl.constexpr):
    i = tl.arange(0, M)
    x = tl.load(x_ptr + i[:, None] * N + tl.arange(0, N)[None, :])
    tl.store(out_ptr + i[:, None], tl.reduce(x, 1, multiply, keep_dims=True))


@triton.jit
def running_sums(x_ptr, out_ptr, M: tl.constexpr, N: tl.constexpr):
    offsets = tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :]
    x = tl.load(x_ptr + offsets)
    tl.store(out_ptr + offsets, tl.cumsum(x, axis=1))
    tl.store(out_ptr + M * N + offsets, tl.cumsum(x, axis=0))
    tl.store(out_ptr + 2 * M * N + offsets, tl.cumsum(x, axis=1, reverse=True))
    tl.store(out_ptr + 3 * M * N + offsets, tl.cumprod(x, axis=1))


@triton.jit
def linear_step(decay_a, value_a, decay_b, value_b):
    return decay_a * decay_b, decay_b * value_a + value_b


@triton.jit
def linear_recurrence(decay_ptr, value_ptr, out_ptr, backward_ptr, M: tl.constexpr, N: tl.constexpr):
    """h[t] = decay[t] * h[t - 1] + value[t] along rows, the scan inside state space models."""
    offsets = tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :]
    decay = tl.load(decay_ptr + offsets)
    value = tl.load(value_ptr + offsets)
    _, forward = tl.associative_scan((decay, value), 1, linear_step)
    tl.store(out_ptr + offsets, forward)
    _, backward = tl.associative_scan((decay, value), 1, linear_step, reverse=True)
    tl.store(backward_ptr + offsets, backward)


def recurrence_reference(a):
    decay, value = f64(a["decay_ptr"]), f64(a["value_ptr"])
    forward, backward = np.zeros_like(value), np.zeros_like(value)
    h = 0.0
    for t in range(value.shape[1]):
        h = decay[:, t] * h + value[:, t]
        forward[:, t] = h
    h = 0.0
    for t in reversed(range(value.shape[1])):
        h = decay[:, t] * h + value[:, t]
        backward[:, t] = h
    return {"out_ptr": forward, "backward_ptr": backward}


@triton.jit
def rms_norm(x_ptr, weight_ptr, out_ptr, stride, n_cols, eps, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    columns = tl.arange(0, BLOCK)
    mask = columns < n_cols
    x = tl.load(x_ptr + row * stride + columns, mask=mask, other=0.0).to(tl.float32)
    scale = tl.rsqrt(tl.sum(x * x, axis=0) / n_cols + eps)
    weight = tl.load(weight_ptr + columns, mask=mask).to(tl.float32)
    tl.store(out_ptr + row * stride + columns, x * scale * weight, mask=mask)


def rms_reference(a):
    x = f64(a["x_ptr"])
    return {"out_ptr": x / np.sqrt((x * x).mean(1, keepdims=True) + a["eps"]) * f64(a["weight_ptr"])}


@triton.jit
def layer_norm_backward(
    dy_ptr, x_ptr, weight_ptr, mean_ptr, rstd_ptr, dx_ptr, dweight_ptr, dbias_ptr, n_cols, BLOCK: tl.constexpr
):
    row = tl.program_id(0)
    columns = tl.arange(0, BLOCK)
    mask = columns < n_cols
    offsets = row * n_cols + columns
    x = tl.load(x_ptr + offsets, mask=mask, other=0.0)
    dy = tl.load(dy_ptr + offsets, mask=mask, other=0.0)
    weight = tl.load(weight_ptr + columns, mask=mask, other=0.0)
    mean = tl.load(mean_ptr + row)
    rstd = tl.load(rstd_ptr + row)
    normal = tl.where(mask, (x - mean) * rstd, 0.0)
    weighted = tl.where(mask, weight * dy, 0.0)
    c1 = tl.sum(normal * weighted, axis=0) / n_cols
    c2 = tl.sum(weighted, axis=0) / n_cols
    tl.store(dx_ptr + offsets, (weighted - (normal * c1 + c2)) * rstd, mask=mask)
    tl.atomic_add(dweight_ptr + columns, dy * normal, mask=mask)
    tl.atomic_add(dbias_ptr + columns, dy, mask=mask)


def layer_norm_backward_inputs(rng, rows=9, columns=200):
    x = normal(rng, rows, columns)
    mean = x.astype(np.float64).mean(1)
    rstd = 1 / np.sqrt(x.astype(np.float64).var(1) + 1e-5)
    return {
        "dy_ptr": normal(rng, rows, columns),
        "x_ptr": x,
        "weight_ptr": normal(rng, columns),
        "mean_ptr": mean.astype(np.float32),
        "rstd_ptr": rstd.astype(np.float32),
        "dx_ptr": zeros(rows, columns),
        "dweight_ptr": zeros(columns),
        "dbias_ptr": zeros(columns),
        "n_cols": columns,
    }


def layer_norm_backward_reference(a):
    x, dy, weight = f64(a["x_ptr"]), f64(a["dy_ptr"]), f64(a["weight_ptr"])
    rstd = f64(a["rstd_ptr"])[:, None]
    xhat = (x - f64(a["mean_ptr"])[:, None]) * rstd
    weighted = weight * dy
    c1 = (xhat * weighted).mean(1, keepdims=True)
    c2 = weighted.mean(1, keepdims=True)
    return {"dx_ptr": (weighted - xhat * c1 - c2) * rstd, "dweight_ptr": (dy * xhat).sum(0), "dbias_ptr": dy.sum(0)}


@triton.jit
def cross_entropy(logits_ptr, labels_ptr, loss_ptr, grad_ptr, n_cols, ignore, smoothing, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    label = tl.load(labels_ptr + row)
    logits_ptr += row * n_cols
    grad_ptr += row * n_cols
    if label == ignore:
        for start in range(0, n_cols, BLOCK):
            columns = start + tl.arange(0, BLOCK)
            tl.store(grad_ptr + columns, 0.0, mask=columns < n_cols)
        tl.store(loss_ptr + row, 0.0)
        return
    top = float("-inf")
    total = 0.0
    sum_logits = 0.0
    for start in range(0, n_cols, BLOCK):
        columns = start + tl.arange(0, BLOCK)
        x = tl.load(logits_ptr + columns, mask=columns < n_cols, other=float("-inf"))
        sum_logits += tl.sum(tl.where(columns < n_cols, x, 0.0))
        block_top = tl.max(x)
        new_top = tl.maximum(top, block_top)
        total = total * tl.exp(top - new_top) + tl.sum(tl.exp(x - new_top))
        top = new_top
    log_sum = top + tl.log(total)
    at_label = tl.load(logits_ptr + label)
    share = smoothing / n_cols
    tl.store(loss_ptr + row, log_sum - (1.0 - smoothing) * at_label - share * sum_logits)
    for start in range(0, n_cols, BLOCK):
        columns = start + tl.arange(0, BLOCK)
        x = tl.load(logits_ptr + columns, mask=columns < n_cols, other=float("-inf"))
        grad = tl.exp(x - log_sum) - share
        grad = tl.where(columns == label, grad - (1.0 - smoothing), grad)
        tl.store(grad_ptr + columns, grad, mask=columns < n_cols)


def cross_entropy_reference(a):
    logits, labels = f64(a["logits_ptr"]), a["labels_ptr"]
    top = logits.max(1, keepdims=True)
    log_sum = (top + np.log(np.exp(logits - top).sum(1, keepdims=True)))[:, 0]
    smoothing, n = a["smoothing"], logits.shape[1]
    safe = np.where(labels == a["ignore"], 0, labels)
    loss = log_sum - (1 - smoothing) * logits[np.arange(len(labels)), safe] - smoothing / n * logits.sum(1)
    grad = np.exp(logits - log_sum[:, None]) - smoothing / n
    grad[np.arange(len(labels)), safe] -= 1 - smoothing
    keep = labels != a["ignore"]
    return {"loss_ptr": np.where(keep, loss, 0), "grad_ptr": np.where(keep[:, None], grad, 0)}


@triton.jit
def sort_rows(x_ptr, up_ptr, down_ptr, top_ptr, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    i = tl.arange(0, M)
    offsets = i[:, None] * N + tl.arange(0, N)[None, :]
    x = tl.load(x_ptr + offsets)
    tl.store(up_ptr + offsets, tl.sort(x))
    tl.store(down_ptr + offsets, tl.sort(x, descending=True))
    tl.store(top_ptr + i[:, None] * K + tl.arange(0, K)[None, :], tl.topk(x, K))


def sort_reference(a):
    up = np.sort(a["x_ptr"].astype(np.float64 if a["x_ptr"].dtype.kind not in "iu" else a["x_ptr"].dtype), axis=1)
    down = up[:, ::-1]
    return {"up_ptr": up, "down_ptr": down, "top_ptr": down[:, : a["top_ptr"].shape[1]]}


def sort_case(name, make, dtype, m, n, k):
    return Case(
        name,
        sort_rows,
        lambda rng: {
            "x_ptr": make(rng, m, n, dtype),
            "up_ptr": zeros(m, n, dtype=dtype),
            "down_ptr": zeros(m, n, dtype=dtype),
            "top_ptr": zeros(m, k, dtype=dtype),
        },
        sort_reference,
        constexprs={"M": m, "N": n, "K": k},
        rtol=0,
        atol=0,
    )


def extremes_reference(a):
    x = a["x_ptr"].astype(np.float64)
    return {
        "out_ptr": np.stack([x.max(1), x.min(1), x.max(1)]),
        "index_ptr": np.stack([x.argmax(1), x.argmin(1), x.argmax(1)]),
    }


def extremes_case(name, make, m, n):
    return Case(
        name,
        extremes,
        lambda rng: {
            "x_ptr": make(rng, m, n),
            "out_ptr": zeros(3, m, dtype=make(rng, 1, 1).dtype),
            "index_ptr": zeros(3, m, dtype=np.int32),
        },
        extremes_reference,
        constexprs={"M": m, "N": n},
        rtol=0,
        atol=0,
    )


def softmax_case(name, dtype, rows, columns, block, rtol):
    def reference(a):
        x = f64(a["x_ptr"])
        e = np.exp(x - x.max(1, keepdims=True))
        return {"out_ptr": e / e.sum(1, keepdims=True)}

    return Case(
        name,
        softmax,
        lambda rng: {
            "x_ptr": normal(rng, rows, columns, dtype=dtype, scale=4),
            "out_ptr": zeros(rows, columns, dtype=dtype),
            "x_stride": columns,
            "out_stride": columns,
            "n_cols": columns,
        },
        reference,
        grid=(rows,),
        constexprs={"BLOCK": block},
        rtol=rtol,
        atol=1e-7,
    )


def layer_norm_case(name, dtype, rows, columns, block, rtol):
    def inputs(rng):
        return {
            "x_ptr": normal(rng, rows, columns, dtype=dtype),
            "weight_ptr": normal(rng, columns, dtype=dtype),
            "bias_ptr": normal(rng, columns, dtype=dtype),
            "out_ptr": zeros(rows, columns, dtype=dtype),
            "mean_ptr": zeros(rows),
            "rstd_ptr": zeros(rows),
            "stride": columns,
            "n_cols": columns,
            "eps": 1e-5,
        }

    def reference(a):
        x = f64(a["x_ptr"])
        mean, rstd = x.mean(1, keepdims=True), 1 / np.sqrt(x.var(1, keepdims=True) + a["eps"])
        return {
            "out_ptr": (x - mean) * rstd * f64(a["weight_ptr"]) + f64(a["bias_ptr"]),
            "mean_ptr": mean[:, 0],
            "rstd_ptr": rstd[:, 0],
        }

    return Case(
        name, layer_norm_forward, inputs, reference, grid=(rows,), constexprs={"BLOCK": block}, rtol=rtol, atol=rtol
    )


def running_sums_case(name, make, dtype, m, n, **tolerance):
    def reference(a):
        x = a["x_ptr"].astype(np.float64) if dtype != np.int32 else a["x_ptr"].astype(np.int32)
        return {"out_ptr": np.stack([x.cumsum(1), x.cumsum(0), x[:, ::-1].cumsum(1)[:, ::-1], x.cumprod(1)])}

    return Case(
        name,
        running_sums,
        lambda rng: {"x_ptr": make(rng, m, n), "out_ptr": zeros(4, m, n, dtype=dtype)},
        reference,
        constexprs={"M": m, "N": n},
        **tolerance,
    )


def sums_case(name, make, dtype, m, n, **tolerance):
    return Case(
        name,
        sum_both_axes,
        lambda rng: {
            "x_ptr": make(rng, m, n),
            "rows_ptr": zeros(m, dtype=dtype),
            "columns_ptr": zeros(n, dtype=dtype),
            "all_ptr": zeros(1, dtype=dtype),
        },
        lambda a: {
            "rows_ptr": f64(a["x_ptr"]).sum(1),
            "columns_ptr": f64(a["x_ptr"]).sum(0),
            "all_ptr": f64(a["x_ptr"]).sum(keepdims=True).ravel(),
        },
        constexprs={"M": m, "N": n},
        **tolerance,
    )


CASES = [
    softmax_case("softmax", np.float32, 8, 200, 256, 1e-5),
    softmax_case("softmax_full", np.float32, 4, 128, 128, 1e-5),
    softmax_case("softmax_f64", np.float64, 4, 100, 128, 1e-13),
    layer_norm_case("layer_norm_forward", np.float32, 6, 300, 128, 1e-5),
    layer_norm_case("layer_norm_forward_f16", np.float16, 6, 300, 128, 5e-3),
    sums_case("sum_both_axes", lambda r, m, n: normal(r, m, n), np.float32, 32, 64, rtol=1e-5, atol=1e-5),
    sums_case("sum_both_axes_int8", lambda r, m, n: integers(r, -128, 128, m, n, dtype=np.int8), np.int32, 16, 128),
    sums_case("sum_both_axes_tiny", lambda r, m, n: normal(r, m, n), np.float32, 1, 2),
    sums_case(
        "sum_both_axes_tall",
        lambda r, m, n: normal(r, m, n, dtype=np.float64),
        np.float64,
        256,
        2,
        rtol=1e-12,
        atol=1e-12,
    ),
    extremes_case("extremes", lambda r, m, n: normal(r, m, n), 16, 64),
    extremes_case("extremes_ties", lambda r, m, n: integers(r, 0, 4, m, n).astype(np.float32), 8, 32),
    extremes_case("extremes_int32", lambda r, m, n: integers(r, -9, 9, m, n), 4, 128),
    Case(
        "integer_reductions",
        integer_reductions,
        lambda rng: {"x_ptr": integers(rng, -(2**20), 2**20, 512), "out_ptr": zeros(5, dtype=np.int32)},
        lambda a: {
            "out_ptr": np.array(
                [
                    a["x_ptr"].sum(),
                    a["x_ptr"].max(),
                    a["x_ptr"].min(),
                    np.bitwise_xor.reduce(a["x_ptr"]),
                    np.bitwise_or.reduce(a["x_ptr"]),
                ]
            )
        },
        constexprs={"N": 512},
    ),
    Case(
        "welford",
        welford,
        lambda rng: {
            "x_ptr": normal(rng, 8, 100) + np.float32(3),
            "mean_ptr": zeros(8),
            "variance_ptr": zeros(8),
            "n_cols": 100,
        },
        lambda a: {"mean_ptr": f64(a["x_ptr"]).mean(1), "variance_ptr": f64(a["x_ptr"]).var(1)},
        grid=(2,),
        constexprs={"M": 4, "N": 128},
    ),
    Case(
        "product",
        product,
        lambda rng: {"x_ptr": uniform(rng, 8, 32, low=0.5, high=1.6), "out_ptr": zeros(8, 1)},
        lambda a: {"out_ptr": f64(a["x_ptr"]).prod(1, keepdims=True)},
        constexprs={"M": 8, "N": 32},
    ),
    running_sums_case(
        "running_sums", lambda r, m, n: uniform(r, m, n, low=0.5, high=1.5), np.float32, 8, 64, rtol=2e-5
    ),
    running_sums_case("running_sums_int32", lambda r, m, n: integers(r, -3, 4, m, n), np.int32, 4, 16),
    Case(
        "linear_recurrence",
        linear_recurrence,
        lambda rng: {
            "decay_ptr": uniform(rng, 4, 64),
            "value_ptr": normal(rng, 4, 64),
            "out_ptr": zeros(4, 64),
            "backward_ptr": zeros(4, 64),
        },
        recurrence_reference,
        constexprs={"M": 4, "N": 64},
        atol=1e-5,
    ),
    Case(
        "rms_norm",
        rms_norm,
        lambda rng: {
            "x_ptr": normal(rng, 5, 300),
            "weight_ptr": normal(rng, 300),
            "out_ptr": zeros(5, 300),
            "stride": 300,
            "n_cols": 300,
            "eps": 1e-6,
        },
        rms_reference,
        grid=(5,),
        constexprs={"BLOCK": 512},
    ),
    Case(
        "rms_norm_bf16",
        rms_norm,
        lambda rng: {
            "x_ptr": normal(rng, 5, 256, dtype=BF16),
            "weight_ptr": normal(rng, 256, dtype=BF16),
            "out_ptr": zeros(5, 256, dtype=BF16),
            "stride": 256,
            "n_cols": 256,
            "eps": 1e-6,
        },
        rms_reference,
        grid=(5,),
        constexprs={"BLOCK": 256},
        rtol=1e-2,
        atol=1e-2,
    ),
    Case(
        "layer_norm_backward",
        layer_norm_backward,
        layer_norm_backward_inputs,
        layer_norm_backward_reference,
        grid=(9,),
        constexprs={"BLOCK": 256},
        rtol=1e-4,
        atol=1e-5,
    ),
    Case(
        "cross_entropy",
        cross_entropy,
        lambda rng: {
            "logits_ptr": normal(rng, 7, 500, scale=3),
            "labels_ptr": np.array([3, 0, 499, -100, 17, 250, 1], np.int64),
            "loss_ptr": zeros(7),
            "grad_ptr": zeros(7, 500),
            "n_cols": 500,
            "ignore": -100,
            "smoothing": 0.1,
        },
        cross_entropy_reference,
        grid=(7,),
        constexprs={"BLOCK": 128},
        atol=1e-5,
    ),
    sort_case("sort_rows", lambda r, m, n, t: normal(r, m, n, dtype=t), np.float32, 4, 64, 8),
    sort_case("sort_rows_int32", lambda r, m, n, t: integers(r, -20, 20, m, n, dtype=t), np.int32, 2, 128, 16),
    sort_case("sort_rows_f16", lambda r, m, n, t: normal(r, m, n, dtype=t), np.float16, 2, 16, 2),
]
