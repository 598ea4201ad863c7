"""Kernels of every day beside Triton on an NVIDIA GPU: same source, same configuration, in turns, in one process.

    python benchmarks/gpu_wider.py [--only WORD]

Nothing here was chosen for being fast: it is where to look for what to do next. Prints one line a kernel, and the
geometric mean; what either side cannot compile is said, and what falls short of its goal (goals.py).
"""

# mypy: ignore-errors
from __future__ import annotations

import argparse
import contextlib
import statistics
import sys
from collections.abc import Callable, Iterator
from typing import Any

import torch
import triton
import triton.language
from triton.language.extra import libdevice

import weft
import weft.language
from goals import Line, short_of
from gpu_facts import machine
from gpu_sides import alternating, check, load_side

FILES = ("gpu_wider_kernels", "gpu_more_kernels", "gpu_product_kernels", "gpu_serving_kernels")
OURS = [
    load_side("weft", file, jit=weft.jit, tl=weft.language, libdevice=weft.language.extra.libdevice) for file in FILES
]
THEIRS = [load_side("triton", file, jit=triton.jit, tl=triton.language, libdevice=libdevice) for file in FILES]
Case = tuple[str, str, Any, tuple[Any, ...], dict[str, Any], torch.Tensor, Callable[[], torch.Tensor], float]


def _attention() -> Iterator[Case]:
    for dtype, head, causal, bm, bn, warps, stages in (
        (torch.float16, 64, False, 128, 64, 4, 3),
        (torch.float16, 64, True, 128, 64, 4, 3),
        (torch.bfloat16, 128, False, 128, 64, 8, 2),
        (torch.bfloat16, 128, True, 128, 128, 8, 2),
    ):
        z, n = 32, 4096
        q, k, v = (torch.randn(z, n, head, device="cuda", dtype=dtype) for _ in range(3))
        out = torch.empty_like(q)
        args = (q, k, v, out, head**-0.5 * 1.4426950408889634, n)
        more = {"HEAD": head, "BM": bm, "BN": bn, "CAUSAL": causal, "num_warps": warps, "num_stages": stages}
        name = f"attention {str(dtype)[6:]} d{head}{' causal' if causal else ''} {bm}x{bn} w{warps}"

        def expected(q=q, k=k, v=v, causal=causal) -> torch.Tensor:
            return torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=causal)

        yield name, "attention", (n // bm, z), args, more, out, expected, 2e-2


def _products() -> Iterator[Case]:
    size = 4096
    for dtype, bm, bn, bk, warps, stages in (
        (torch.float16, 128, 128, 64, 4, 3),
        (torch.float16, 128, 256, 64, 8, 3),
        (torch.float16, 64, 64, 32, 4, 4),
        (torch.bfloat16, 128, 128, 32, 4, 4),
        (torch.float32, 128, 128, 32, 8, 3),
        (torch.float8_e4m3fn, 128, 128, 128, 8, 3),
        (torch.int8, 128, 128, 64, 8, 3),
    ):
        if dtype == torch.int8:
            a, b = (torch.randint(-8, 8, (size, size), device="cuda", dtype=dtype) for _ in range(2))
        else:
            a, b = (torch.randn(size, size, device="cuda").to(dtype) for _ in range(2))
        kind = torch.int32 if dtype == torch.int8 else torch.float32 if dtype == torch.float32 else torch.float16
        c = torch.empty(size, size, device="cuda", dtype=kind)
        acc = "int32" if dtype == torch.int8 else "float32"
        more = {"BM": bm, "BN": bn, "BK": bk, "GROUP": 8, "ACC": acc, "num_warps": warps, "num_stages": stages}

        def expected(a=a, b=b) -> torch.Tensor:
            found = a.float() @ b.float()
            return torch.where(found >= 0, found, found * 2)

        grid = (triton.cdiv(size, bm) * triton.cdiv(size, bn),)
        name = f"matmul {str(dtype)[6:]} {bm}x{bn}x{bk} w{warps}"
        yield name, "matmul", grid, (a, b, c, size, size, size), more, c, expected, 3e-2
    a, b = (torch.randn(size, size, device="cuda").half() for _ in range(2))
    c = torch.empty_like(a)
    more = {"BM": 128, "BN": 128, "BK": 64, "num_warps": 8}
    args = (a, b, c, size, size, size)
    yield "matmul by descriptors 128x128x64", "matmul_described", (1024,), args, more, c, lambda: a @ b.T, 1e-2


def _quantized() -> Iterator[Case]:
    size = 4096
    x = torch.randn(size, size, device="cuda").half()
    c = torch.empty_like(x)
    w = torch.randint(-127, 128, (size, size), device="cuda", dtype=torch.int8)
    scale = torch.rand(size, device="cuda") / 100
    for bm, bn, bk, warps, stages in ((128, 128, 64, 8, 3), (64, 128, 64, 4, 4)):
        more = {"BM": bm, "BN": bn, "BK": bk, "num_warps": warps, "num_stages": stages}
        grid = (size // bm * (size // bn),)
        name = f"matmul f16 by int8 weights {bm}x{bn}x{bk} w{warps}"

        def scaled() -> torch.Tensor:
            return x.float() @ (w.float() * scale)

        yield name, "matmul_bytes", grid, (x, w, scale, c, size, size, size), more, c, scaled, 1e-2
    group = 64
    packed = torch.randint(-(1 << 31), 1 << 31, (size // 8, size), device="cuda", dtype=torch.int32)
    by = (torch.rand(size // group, size, device="cuda") / 10).half()
    base = torch.randint(0, 16, (size // group, size), device="cuda").half()

    def grouped() -> torch.Tensor:
        shifts = torch.arange(0, 32, 4, device="cuda")[None, :, None]
        weights = (packed[:, None, :] >> shifts & 15).reshape(size, size).half()
        found = (weights.view(-1, group, size) - base[:, None, :]) * by[:, None, :]
        return x.float() @ found.view(size, size).float()

    more = {"BM": 128, "BN": 128, "BK": group, "num_warps": 8, "num_stages": 3}
    args = (x, packed, by, base, c, size, size, size)
    yield "matmul f16 by 4-bit weights 128x128x64 w8", "matmul_nibbles", (1024,), args, more, c, grouped, 1e-2


def _rows() -> Iterator[Case]:
    rows, columns = 16384, 4096
    x = torch.randn(rows, columns, device="cuda", dtype=torch.bfloat16)
    w, out = torch.randn(columns, device="cuda", dtype=torch.bfloat16), torch.empty_like(x)
    yield (
        "rms norm bf16, rows of 4096", "rms_norm", (rows,), (x, w, out, columns, 1e-6),
        {"BLOCK": 4096, "num_warps": 8}, out, lambda: torch.nn.functional.rms_norm(x, (columns,), w, 1e-6), 1e-2,
    )  # fmt: skip
    long, longer = torch.randn(4096, 32768, device="cuda", dtype=torch.bfloat16), torch.randn(2, 32768, device="cuda")
    normed = torch.empty_like(long)
    yield (
        "layer norm in three passes, bf16", "layer_norm_in_passes", (4096,),
        (long, longer[0], longer[1], normed, 32768, 1e-5), {"BLOCK": 2048, "num_warps": 8}, normed,
        lambda: torch.nn.functional.layer_norm(long.float(), (32768,), longer[0], longer[1], 1e-5), 1e-2,
    )  # fmt: skip
    logits = torch.randn(4096, 32000, device="cuda", dtype=torch.bfloat16)
    label = torch.randint(0, 32000, (4096,), device="cuda")
    loss = torch.empty(4096, device="cuda")
    yield (
        "cross entropy bf16, 32000 classes", "cross_entropy", (4096,), (logits, label, loss, 32000),
        {"BLOCK": 4096, "num_warps": 8}, loss,
        lambda: torch.nn.functional.cross_entropy(logits.float(), label, reduction="none"), 1e-3,
    )  # fmt: skip
    y = torch.randn(rows, columns, device="cuda")
    sums = torch.empty(columns, device="cuda")
    yield (
        "column sums f32", "column_sums", (columns // 32,), (y, sums, rows, columns), {"BM": 64, "BN": 32}, sums,
        lambda: y.sum(0), 1e-3,
    )  # fmt: skip
    z, total = y[:, :1024].contiguous(), torch.empty(rows, 1024, device="cuda")
    yield (
        "cumsum f32, rows of 1024", "cumsum", (rows,), (z, total, 1024), {"BLOCK": 1024}, total,
        lambda: z.cumsum(1), 1e-4,
    )  # fmt: skip
    yield (
        "sort f32, rows of 1024", "sorted_rows", (rows,), (z, total, 1024), {"BLOCK": 1024}, total,
        lambda: z.sort(1)[0], 0.0,
    )  # fmt: skip
    index = torch.randint(0, rows, (65536,), device="cuda")
    found = torch.empty(65536, columns, device="cuda", dtype=torch.bfloat16)
    yield (
        "rows of a table, bf16", "gathered", (65536,), (x, index, found, columns), {"BLOCK": 4096}, found,
        lambda: x[index], 0.0,
    )  # fmt: skip


def _elements() -> Iterator[Case]:
    n = 128 << 20
    x = torch.randn(n, device="cuda", dtype=torch.bfloat16)
    out = torch.empty_like(x)
    grid = (triton.cdiv(n, 1024),)
    yield (
        "gelu bf16", "gelu", grid, (x, out, n), {"BLOCK": 1024}, out, lambda: torch.nn.functional.gelu(x), 1e-2,
    )  # fmt: skip
    y = torch.randn(n // 2, device="cuda")
    kept = torch.empty_like(y)

    def dropped() -> torch.Tensor:
        THEIRS[0].dropout[(n // 2048,)](y, kept, n // 2, 0.3, 7, BLOCK=1024)
        return kept.clone()

    yield "dropout f32", "dropout", (n // 2048,), (y, kept, n // 2, 0.3, 7), {"BLOCK": 1024}, kept, dropped, 0.0
    tokens, heads, half = 16384, 32, 64
    q = torch.randn(tokens, heads, 2 * half, device="cuda", dtype=torch.bfloat16)
    angle = torch.randn(4096, half, device="cuda")
    cos, sin, turned = angle.cos(), angle.sin(), torch.empty_like(q)

    def rotated() -> torch.Tensor:
        a, b = q.float().view(4, 4096, heads, 2, half).unbind(3)
        c, s = cos[None, :, None], sin[None, :, None]
        return torch.stack((a * c - b * s, b * c + a * s), 3).view_as(q)

    yield (
        "rotary bf16", "rotary", (tokens,), (q, cos, sin, turned, 4096, heads), {"HALF": half, "num_warps": 1},
        turned, rotated, 1e-2,
    )  # fmt: skip
    numbers = torch.randint(0, 256, (1 << 24,), device="cuda", dtype=torch.int32)
    bins = torch.zeros(256, device="cuda", dtype=torch.int32)
    yield (
        "histogram, 256 bins", "histogram", ((1 << 24) // 4096,), (numbers, bins, 1 << 24),
        {"BLOCK": 4096, "BINS": 256}, bins, lambda: torch.bincount(numbers, minlength=256), 0.0,
    )  # fmt: skip


def _layers() -> Iterator[Case]:
    size = 4096
    x, w = (torch.randn(size, size, device="cuda").half() for _ in range(2))
    bias, out = torch.randn(size, device="cuda").half(), torch.empty_like(x)
    more = {"BM": 128, "BN": 128, "BK": 64, "GROUP": 8, "RELU": True, "num_warps": 8, "num_stages": 3}
    for name, left, right in (("x w", x, w), ("x w^T", x, w.T), ("x^T w", x.T, w)):

        def product(left=left, right=right) -> torch.Tensor:
            return torch.relu(left @ right + bias)

        args = (left, right, bias, out, size, size, size, *left.stride(), *right.stride())
        yield f"layer {name}, f16", "linear", (1024,), args, more, out, product, 1e-2
    short = torch.randn(16, size, device="cuda").half()
    few = torch.empty(16, size, device="cuda").half()
    args = (short, w.T, bias, few, 16, size, size, *short.stride(), *w.T.stride())
    more = {"BM": 16, "BN": 64, "BK": 128, "GROUP": 1, "RELU": False, "num_warps": 4, "num_stages": 4}
    yield "layer of 16 rows, f16", "linear", (64,), args, more, few, lambda: short @ w.T + bias, 1e-2
    tall, vector = torch.randn(16384, size, device="cuda").half(), torch.randn(size, device="cuda").half()
    line = torch.empty(16384, device="cuda").half()
    more = {"BM": 16, "BK": 512, "num_warps": 4}
    yield (
        "matrix times vector, f16",
        "matvec",
        (1024,),
        (tall, vector, line, 16384, size),
        more,
        line,
        lambda: tall @ vector,
        1e-2,
    )
    tokens, kinds, k, n = 4096, 8, 2048, 4096
    x, w = torch.randn(tokens, k, device="cuda").half(), torch.randn(kinds, k, n, device="cuda").half()
    order = torch.randperm(tokens, device="cuda").to(torch.int32)
    expert = (torch.arange(tokens // 128, device="cuda") * kinds // (tokens // 128)).to(torch.int32)
    out = torch.empty(tokens, n, device="cuda").half()

    def by_expert() -> torch.Tensor:
        found = torch.empty_like(out)
        parts = order.long().view(kinds, -1)
        for e in range(kinds):
            found[parts[e]] = x[parts[e]] @ w[e]
        return found

    more = {"BM": 128, "BN": 128, "BK": 64, "num_warps": 8, "num_stages": 3}
    yield (
        "experts, f16",
        "experts",
        (tokens // 128, n // 128),
        (x, w, out, order, expert, n, k),
        more,
        out,
        by_expert,
        1e-2,
    )
    heads, n, head = 264, 4096, 128
    q = torch.randn(heads, 16, head, device="cuda").bfloat16()
    k, v = (torch.randn(heads, n, head, device="cuda").bfloat16() for _ in range(2))
    out = torch.empty_like(q)
    more = {"HEAD": head, "GROUP": 16, "BN": 64, "num_warps": 4, "num_stages": 3}
    scale = 1.4426950408889634 / head**0.5
    yield (
        "decoding, bf16", "decode", (heads,), (q, k, v, out, n, scale), more, out,
        lambda: torch.nn.functional.scaled_dot_product_attention(q, k, v), 2e-2,
    )  # fmt: skip
    images, side, c, f = 32, 56, 128, 128
    x, w = torch.randn(images, side, side, c, device="cuda").half(), torch.randn(3, 3, c, f, device="cuda").half()
    out = torch.empty(images, side, side, f, device="cuda").half()

    def convolved() -> torch.Tensor:
        found = torch.nn.functional.conv2d(x.permute(0, 3, 1, 2), w.permute(3, 2, 0, 1), padding=1)
        return found.permute(0, 2, 3, 1)

    more = {"C": c, "F": f, "BM": 128, "BN": 128, "BK": 64, "num_warps": 8, "num_stages": 3}
    grid = (images * side * side // 128, 1)
    yield "convolution 3x3, f16", "convolution", grid, (x, w, out, side, side), more, out, convolved, 1e-2
    a, b = (torch.randn(size, size, device="cuda").to(torch.float8_e4m3fn) for _ in range(2))
    sa, sb = torch.rand(size, 32, device="cuda"), torch.rand(32, 32, device="cuda")
    out = torch.empty(size, size, device="cuda").bfloat16()

    def scaled() -> torch.Tensor:
        left = a.float() * sa.repeat_interleave(128, 1)
        return left @ (b.float() * sb.repeat_interleave(128, 0).repeat_interleave(128, 1)).T

    more = {"BM": 128, "BN": 128, "BK": 128, "num_warps": 8, "num_stages": 3}
    yield (
        "matmul fp8 with scales of blocks",
        "scaled_blocks",
        (1024,),
        (a, b, sa, sb, out, size, size, size),
        more,
        out,
        scaled,
        2e-2,
    )


def _training() -> Iterator[Case]:
    z, n, head = 16, 2048, 64
    q, k, v, grad = (torch.randn(z, n, head, device="cuda").bfloat16() for _ in range(4))
    scores = q.float() @ k.float().transpose(1, 2) / head**0.5
    p = torch.softmax(scores, -1)
    lse = torch.logsumexp(scores, -1) * 1.4426950408889634
    delta = ((p @ v.float()) * grad.float()).sum(-1)
    both = torch.empty(2, z, n, head, device="cuda").bfloat16()

    def gradients() -> torch.Tensor:
        ds = p * (grad.float() @ v.float().transpose(1, 2) - delta[..., None])
        return torch.stack([ds.transpose(1, 2) @ q.float(), p.transpose(1, 2) @ grad.float()])

    more = {"HEAD": head, "BM": 64, "BN": 128, "num_warps": 8, "num_stages": 2}
    args = (q, k, v, grad, lse, delta, both[0], both[1], 1.4426950408889634 / head**0.5, n)
    yield "attention backward, bf16", "attention_backward", (n // 128, z), args, more, both, gradients, 2e-2
    rows, columns = 16384, 4096
    x, grad = (torch.randn(rows, columns, device="cuda").bfloat16() for _ in range(2))
    w, out = torch.randn(columns, device="cuda").bfloat16(), torch.empty_like(x)

    def norm_gradient() -> torch.Tensor:
        leaf = x.float().requires_grad_()
        torch.nn.functional.layer_norm(leaf, (columns,), w.float(), None, 1e-5).backward(grad.float())
        return leaf.grad

    more = {"BLOCK": columns, "num_warps": 8}
    yield (
        "layer norm backward, bf16",
        "layer_norm_backward",
        (rows,),
        (x, w, grad, out, columns, 1e-5),
        more,
        out,
        norm_gradient,
        1e-2,
    )
    y, g = torch.softmax(torch.randn(rows, columns, device="cuda"), -1), torch.randn(rows, columns, device="cuda")
    out = torch.empty_like(y)
    yield (
        "softmax backward, f32", "softmax_backward", (rows,), (y, g, out, columns), more, out,
        lambda: y * (g - (y * g).sum(-1, keepdim=True)), 1e-4,
    )  # fmt: skip
    half = torch.empty(rows, columns // 2, device="cuda").bfloat16()

    def gated() -> torch.Tensor:
        a, b = x.float().chunk(2, -1)
        return torch.nn.functional.silu(a) * b

    yield "swiglu bf16", "swiglu", (rows, 2), (x, half, columns // 2), {"BLOCK": 1024}, half, gated, 1e-2
    index = torch.randint(0, 1000, (rows,), device="cuda")
    table, rows_of = torch.empty(1000, 1024, device="cuda"), torch.randn(rows, 1024, device="cuda")
    yield (
        "gradient of a table, f32", "add_rows", (rows,), (index, rows_of, table, 1024), {"BLOCK": 1024}, table,
        lambda: torch.zeros_like(table).index_add_(0, index, rows_of), 1e-4,
    )  # fmt: skip
    a, b = torch.rand(rows, 1024, device="cuda"), torch.randn(rows, 1024, device="cuda")
    out = torch.empty_like(a)

    def recurrence() -> torch.Tensor:
        found, h = torch.empty_like(a), torch.zeros(rows, device="cuda")
        for i in range(1024):
            h = a[:, i] * h + b[:, i]
            found[:, i] = h
        return found

    yield "linear recurrence, f32", "linear_scan", (rows,), (a, b, out, 1024), {"BLOCK": 1024}, out, recurrence, 1e-4
    top, place = torch.empty(rows, device="cuda"), torch.empty(rows, device="cuda", dtype=torch.int32)
    yield "greatest of a row, f32", "best", (rows,), (y, top, place, columns), more, top, lambda: y.max(-1).values, 0.0


def _looked_up() -> Iterator[Case]:
    rows, columns = 16384, 2048
    x, out = (torch.randn(rows, n, device="cuda").bfloat16() for n in (2 * columns, columns))

    def gated() -> torch.Tensor:
        a, b = x.float().chunk(2, -1)
        return torch.nn.functional.gelu(a, approximate="tanh") * b

    yield "geglu by tanh, bf16", "geglu_tanh", (rows, 2), (x, out, columns), {"BLOCK": 1024}, out, gated, 1e-2
    long = torch.empty_like(x)
    n = x.numel()
    yield (
        "softplus bf16", "softplus", (n // 1024,), (x, long, n), {"BLOCK": 1024}, long,
        lambda: torch.nn.functional.softplus(x.float()), 1e-2,
    )  # fmt: skip
    heads, half = 32, 64
    cos, sin = torch.ones(rows, half, device="cuda"), torch.zeros(rows, half, device="cuda")
    q = torch.randn(rows, heads, 2, half, device="cuda")
    same = q.clone()  # angles of 0: it is run many times in place
    yield (
        "rotary embedding in place, f32", "rotate_in_place", (rows,), (q, cos, sin, heads, half), {"BLOCK": 1024}, q,
        lambda: same, 1e-6,
    )  # fmt: skip
    n, classes = 1 << 20, 64
    x, weight = torch.randn(n, classes, device="cuda"), torch.rand(classes, device="cuda")
    target = torch.randint(0, classes, (n,), device="cuda", dtype=torch.int32)
    sums = torch.empty(n // 4096, device="cuda")

    def picked() -> torch.Tensor:
        each = -x.gather(1, target.long()[:, None])[:, 0] * weight[target.long()] * (target != 3)
        return each.view(-1, 4096).sum(1)

    yield (
        "loss of what is looked up, f32", "picked_loss", (n // 4096,), (x, target, weight, sums, n, classes, 3),
        {"BLOCK": 4096, "num_warps": 8}, sums, picked, 1e-3,
    )  # fmt: skip


def _exact() -> Iterator[Case]:
    a, b = (torch.randn(2048, 2048, device="cuda") for _ in range(2))
    c = torch.empty_like(a)
    for bm, bn, bk, warps in ((64, 64, 32, 4), (128, 128, 32, 8)):
        more = {"BM": bm, "BN": bn, "BK": bk, "num_warps": warps, "num_stages": 3}
        grid = (2048 // bm * (2048 // bn),)
        name = f"matmul f32 in full precision {bm}x{bn}x{bk} w{warps}"
        yield name, "exact_matmul", grid, (a, b, c, 2048, 2048, 2048), more, c, lambda: a @ b, 1e-4
    q, k, v = (torch.randn(16, 2048, 64, device="cuda") for _ in range(3))
    out = torch.empty_like(q)
    args = (q, k, v, out, 64**-0.5 * 1.4426950408889634, 2048)
    for bm, bn, warps in ((64, 32, 4), (64, 64, 4), (128, 64, 8)):
        more = {"HEAD": 64, "BM": bm, "BN": bn, "num_warps": warps, "num_stages": 3}
        name = f"attention f32 in full precision {bm}x{bn} w{warps}"
        yield (
            name, "exact_attention", (2048 // bm, 16), args, more, out,
            lambda: torch.nn.functional.scaled_dot_product_attention(q.double(), k.double(), v.double()).float(), 1e-4,
        )  # fmt: skip


def _paged() -> Iterator[Case]:
    sequences, heads, group, head, length = 64, 8, 16, 128, 4000
    for page in (16, 64):
        pages = -(-length // page)
        q = torch.randn(sequences, heads, group, head, device="cuda").half()
        keys, values = (torch.randn(sequences * pages, heads, page, head, device="cuda").half() for _ in range(2))
        table = torch.randperm(sequences * pages, device="cuda").to(torch.int32).view(sequences, pages)
        lengths, out = torch.full((sequences,), length, device="cuda", dtype=torch.int32), torch.empty_like(q)

        def attended(q=q, keys=keys, values=values, table=table) -> torch.Tensor:
            k, v = (x[table.long()].transpose(1, 2).flatten(2, 3)[:, :, :length] for x in (keys, values))
            return torch.nn.functional.scaled_dot_product_attention(q, k, v)

        args = (q, keys, values, table, lengths, out, 1.4426950408889634 / head**0.5, heads, pages)
        more = {"HEAD": head, "PAGE": page, "GROUP": group, "num_warps": 4, "num_stages": 3}
        yield f"decoding by pages of {page}, f16", "paged", (sequences, heads), args, more, out, attended, 2e-2


def _chains() -> Iterator[Case]:
    z, n, d, c = 264, 4096, 64, 64
    q, k, v = (torch.randn(z, n, d, device="cuda").bfloat16() / 8 for _ in range(3))
    out = torch.empty_like(q)

    def attended() -> torch.Tensor:
        found = torch.empty(z, n, d, device="cuda")
        for i in range(0, z, 8):
            scores = q[i : i + 8].float() @ k[i : i + 8].float().transpose(1, 2)
            found[i : i + 8] = scores.tril() @ v[i : i + 8].float()
        return found

    more = {"D": d, "C": c, "num_warps": 4, "num_stages": 2}
    yield "linear attention, bf16", "linear_attention", (z,), (q, k, v, out, n), more, out, attended, 3e-2
    rows, hidden, d = 32768, 4096, 128
    x = torch.randn(rows, d, device="cuda").half()
    w, u = (torch.randn(hidden, d, device="cuda").half() / 16 for _ in range(2))
    out = torch.empty_like(x)
    more = {"D": d, "BM": 128, "BK": 64, "num_warps": 8, "num_stages": 2}
    yield (
        "two layers in one, f16", "two_layers", (rows // 128,), (x, w, u, out, hidden), more, out,
        lambda: torch.relu(x @ w.T) @ u, 2e-2,
    )  # fmt: skip
    groups, m, n, k = 64, 128, 2048, 2048
    a, b = torch.randn(groups, m, k, device="cuda").half(), torch.randn(groups, k, n, device="cuda").half()
    places = [[a[i].data_ptr(), b[i].data_ptr()] for i in range(groups)]
    table, out = torch.tensor(places, device="cuda"), torch.empty(groups, m, n, device="cuda").half()
    more = {"BM": 128, "BN": 128, "BK": 32, "num_warps": 4, "num_stages": 3}
    yield (
        "products by a table of addresses, f16", "grouped", (groups, n // 128), (table, out, n, k), more, out,
        lambda: a @ b, 1e-2,
    )  # fmt: skip


def _persistent() -> Iterator[Case]:
    size = 4096
    for k in (4096, 512):
        a, b = torch.randn(size, k, device="cuda").half(), torch.randn(k, size, device="cuda").half()
        c = torch.empty(size, size, device="cuda").half()
        more = {"BM": 128, "BN": 256, "BK": 64, "BLOCKS": 132, "num_warps": 8, "num_stages": 3}
        args = (a, b, c, size, size, k)
        yield f"persistent matmul f16, K {k}", "persistent", (132,), args, more, c, lambda a=a, b=b: a @ b, 1e-2
        args = (a, b.T.contiguous(), c, size, size, k)
        name = f"persistent matmul by descriptors, K {k}"
        yield name, "persistent_described", (132,), args, more, c, lambda a=a, b=b: a @ b, 1e-2
    a, b = torch.randn(16, 8192, device="cuda").half(), torch.randn(8192, size, device="cuda").half()
    c = torch.empty(16, size, device="cuda")
    more = {"BM": 16, "BN": 64, "BK": 128, "SPLIT": 8, "num_warps": 4, "num_stages": 4}
    args = (a, b, c, size, 8192)
    grid = (size // 64, 8)
    yield "16 rows, sums in 8 parts, f16", "split_product", grid, args, more, c, lambda: 1.0 * (a @ b), 2e-2
    for side in (32, 64):
        x, y = (torch.randn(8192, side, side, device="cuda") for _ in range(2))
        out = torch.empty_like(x)
        more = {"SIDE": side, "num_warps": 4}
        name = f"8,192 products of {side}x{side}, tf32"
        yield name, "small_products", (8192,), (x, y, out), more, out, lambda x=x, y=y: x @ y, 2e-2


def _windowed() -> Iterator[Case]:
    z, n, d, window = 16, 4096, 128, 1024
    q, k, v = (torch.randn(z, n, d, device="cuda").bfloat16() for _ in range(3))
    out = torch.empty_like(q)

    def capped() -> torch.Tensor:
        i = torch.arange(n, device="cuda")
        seen = (i[:, None] >= i) & (i[:, None] - i < window)
        found = torch.empty(z, n, d, device="cuda")
        for h in range(z):
            scores = 30 * torch.tanh(q[h].float() @ k[h].float().T * d**-0.5 / 30)
            found[h] = scores.masked_fill(~seen, -torch.inf).softmax(-1) @ v[h].float()
        return found

    more = {"HEAD": d, "BM": 128, "BN": 64, "num_warps": 8, "num_stages": 3}
    args = (q, k, v, out, d**-0.5, 30.0, n, window)
    yield "attention, window and cap, bf16", "capped_attention", (n // 128, z), args, more, out, capped, 2e-2
    bias = torch.randn(n, device="cuda")
    out = torch.empty_like(q)
    args = (q, k, v, bias, out, d**-0.5 * 1.4426950408889634, n)

    def biased() -> torch.Tensor:
        mask = (bias * 0.6931471805599453).to(q.dtype)
        return torch.nn.functional.scaled_dot_product_attention(q, k, v, mask.expand(n, n))

    yield "attention with a bias, bf16", "biased_attention", (n // 128, z), args, more, out, biased, 3e-2
    rows, parts = 32768, 16
    some, logs = torch.randn(rows, parts, d, device="cuda"), torch.randn(rows, parts, device="cuda")
    out = torch.empty(rows, d, device="cuda").bfloat16()
    yield (
        "parts of attention together", "combine_parts", (rows,), (some, logs, out),
        {"PARTS": parts, "HEAD": d, "num_warps": 4}, out, lambda: (some * logs.softmax(-1)[..., None]).sum(1), 2e-2,
    )  # fmt: skip


def _serving() -> Iterator[Case]:
    images, groups, channels, pixels = 64, 8, 16, 64 * 64
    x = torch.randn(images, groups * channels, 64, 64, device="cuda").half()
    weight, bias = torch.rand(groups * channels, device="cuda"), torch.rand(groups * channels, device="cuda")
    out = torch.empty_like(x)
    args = (x, weight, bias, out, channels * pixels, channels, 1e-5)
    yield (
        "group norm f16", "group_norm", (images * groups,), args, {"BLOCK": 2048, "num_warps": 8}, out,
        lambda: torch.nn.functional.group_norm(x.float(), groups, weight, bias), 1e-2,
    )  # fmt: skip
    batch, length, channels = 8, 4096, 2048
    x = torch.randn(batch, length, channels, device="cuda").bfloat16()
    taps, out = torch.randn(channels, 4, device="cuda"), torch.empty_like(x)

    def convolved() -> torch.Tensor:
        padded = torch.nn.functional.pad(x.float().transpose(1, 2), (3, 0))
        found = torch.nn.functional.conv1d(padded, taps[:, None], groups=channels)
        return torch.nn.functional.silu(found).transpose(1, 2)

    more = {"WIDTH": 4, "BLOCK": 32, "CHANNELS": 128, "num_warps": 4}
    grid = (length // 32, channels // 128, batch)
    yield (
        "convolution along time, bf16",
        "causal_taps",
        grid,
        (x, taps, out, length, channels),
        more,
        out,
        convolved,
        2e-2,
    )
    rows, columns = 16384, 4096
    x = torch.randn(rows, columns, device="cuda").bfloat16()
    small, scales = (
        torch.empty(rows, columns, device="cuda", dtype=torch.float8_e4m3fn),
        torch.empty(rows, columns // 128, device="cuda"),
    )
    args = (x, small, scales, columns)
    yield (
        "bf16 to fp8 by groups of 128", "to_fp8", (rows, columns // 2048), args, {"GROUPS": 16, "SIZE": 128}, scales,
        lambda: x.float().view(rows, -1, 128).abs().amax(-1) / 448, 1e-3,
    )  # fmt: skip
    key, value = (torch.randn(rows, 1024, device="cuda").half() for _ in range(2))
    keys, values = (torch.empty(rows, 1024, device="cuda").half() for _ in range(2))
    slots = torch.randperm(rows, device="cuda")

    def placed() -> torch.Tensor:
        found = torch.empty_like(values)
        found[slots] = value
        return found

    args = (key, value, keys, values, slots)
    yield "keys and values into pages, f16", "into_pages", (rows,), args, {"SIZE": 1024}, values, placed, 0.0
    logits, losses = torch.randn(4096, 50304, device="cuda").bfloat16(), torch.empty(4096, device="cuda")
    target = torch.randint(0, 50304, (4096,), device="cuda")
    yield (
        "cross entropy block by block, bf16", "online_loss", (4096,), (logits, target, losses, 50304),
        {"BLOCK": 4096, "num_warps": 8}, losses,
        lambda: torch.nn.functional.cross_entropy(logits.float(), target, reduction="none"), 1e-3,
    )  # fmt: skip
    x, best = torch.randn(rows, 1024, device="cuda"), torch.empty(rows, 8, device="cuda")
    yield (
        "8 greatest of 1,024, f32", "highest", (rows,), (x, best, 1024), {"COUNT": 8, "BLOCK": 1024, "num_warps": 4},
        best, lambda: x.topk(8).values, 0.0,
    )  # fmt: skip
    x = torch.randn(1 << 18, 64, device="cuda") / 8
    out = torch.empty_like(x)
    yield (
        "decays of chunks, f32", "decays", (1 << 12,), (x, out, 1 << 18), {"CHUNK": 64, "HEADS": 64, "num_warps": 4},
        out, lambda: (-x.abs()).view(-1, 64, 64).cumsum(1).exp().view_as(x), 1e-3,
    )  # fmt: skip


def _odd() -> Iterator[Case]:
    """Every kernel above that has rows and masks, with rows that begin at any address."""
    rows, columns, more = 16384, 4097, {"BLOCK": 8192, "num_warps": 8}
    x, grad = (torch.randn(rows, columns, device="cuda").bfloat16() for _ in range(2))
    w, out = torch.randn(columns, device="cuda").bfloat16(), torch.empty_like(x)
    yield (
        "rms norm bf16, rows of 4097", "rms_norm", (rows,), (x, w, out, columns, 1e-6), more, out,
        lambda: torch.nn.functional.rms_norm(x.float(), (columns,), w.float(), 1e-6), 1e-2,
    )  # fmt: skip

    def norm_gradient() -> torch.Tensor:
        leaf = x.float().requires_grad_()
        torch.nn.functional.layer_norm(leaf, (columns,), w.float(), None, 1e-5).backward(grad.float())
        return leaf.grad

    args, name = (x, w, grad, out, columns, 1e-5), "layer norm backward, bf16, rows of 4097"
    yield name, "layer_norm_backward", (rows,), args, more, out, norm_gradient, 1e-2
    y, g = torch.softmax(torch.randn(rows, columns, device="cuda"), -1), torch.randn(rows, columns, device="cuda")
    product = torch.empty_like(y)
    yield (
        "softmax backward, f32, rows of 4097", "softmax_backward", (rows,), (y, g, product, columns), more, product,
        lambda: y * (g - (y * g).sum(-1, keepdim=True)), 1e-4,
    )  # fmt: skip
    top, place = torch.empty(rows, device="cuda"), torch.empty(rows, device="cuda", dtype=torch.int32)
    args = (y, top, place, columns)
    yield "greatest of a row of 4097, f32", "best", (rows,), args, more, top, lambda: y.max(-1).values, 0.0
    index = torch.randint(0, rows, (65536,), device="cuda")
    found = torch.empty(65536, columns, device="cuda", dtype=torch.bfloat16)
    yield (
        "rows of 4097 of a table, bf16", "gathered", (65536,), (x, index, found, columns), more, found,
        lambda: x[index], 0.0,
    )  # fmt: skip
    both, half = (torch.randn(rows, n, device="cuda").bfloat16() for n in (2 * 2049, 2049))

    def gated() -> torch.Tensor:
        a, b = both.float().chunk(2, -1)
        return torch.nn.functional.silu(a) * b

    yield "swiglu bf16, rows of 2049", "swiglu", (rows, 3), (both, half, 2049), {"BLOCK": 1024}, half, gated, 1e-2
    rows, columns = 4096, 32003
    long, wide = torch.randn(rows, columns, device="cuda").bfloat16(), torch.randn(2, columns, device="cuda")
    normed, label = torch.empty_like(long), torch.randint(0, columns, (rows,), device="cuda")
    yield (
        "layer norm in three passes, bf16, rows of 32003", "layer_norm_in_passes", (rows,),
        (long, wide[0], wide[1], normed, columns, 1e-5), {"BLOCK": 2048, "num_warps": 8}, normed,
        lambda: torch.nn.functional.layer_norm(long.float(), (columns,), wide[0], wide[1], 1e-5), 1e-2,
    )  # fmt: skip
    loss = torch.empty(rows, device="cuda")

    def entropy() -> torch.Tensor:
        return torch.nn.functional.cross_entropy(long.float(), label, reduction="none")

    more, args = {"BLOCK": 4096, "num_warps": 8}, (long, label, loss, columns)
    yield "cross entropy bf16, 32003 classes", "cross_entropy", (rows,), args, more, loss, entropy, 1e-3
    yield "cross entropy block by block, 32003 classes", "online_loss", (rows,), args, more, loss, entropy, 1e-3
    images, groups, channels, pixels = 64, 8, 16, 57 * 57
    image = torch.randn(images, groups * channels, 57, 57, device="cuda").half()
    weight, bias = torch.rand(groups * channels, device="cuda"), torch.rand(groups * channels, device="cuda")
    result, args = torch.empty_like(image), (channels * pixels, channels, 1e-5)
    yield (
        "group norm f16, images of 57x57", "group_norm", (images * groups,), (image, weight, bias, result, *args),
        {"BLOCK": 2048, "num_warps": 8}, result,
        lambda: torch.nn.functional.group_norm(image.float(), groups, weight, bias), 1e-2,
    )  # fmt: skip


GROUPS = (
    _attention, _products, _exact, _quantized, _layers, _paged, _chains, _rows, _elements, _training, _looked_up,
    _persistent, _windowed, _serving, _odd,
)  # fmt: skip

IN_PLACE = ("rotate_in_place",)
"""Kernels whose output is what they read too, so that it is not set to zero before the result is checked."""


def _launches(case: Case) -> list[Callable[[], Any]]:
    """What launches a kernel, of each side."""
    _name, kernel, grid, args, more, *_ = case
    calls = []
    for side, tl in ((OURS, weft.language), (THEIRS, triton.language)):
        given = {k: getattr(tl, v) if k == "ACC" else v for k, v in more.items()}
        launch = next(getattr(file, kernel) for file in side if hasattr(file, kernel))[grid]
        calls.append(lambda launch=launch, given=given: launch(*args, **given))
    return calls


def _line(case: Case) -> Line:
    """The line of a kernel, or what is wrong."""
    name, kernel, *_, out, expected, tolerance = case
    try:
        wanted, calls = expected(), _launches(case)
        start = out.clone() if kernel in IN_PLACE else torch.zeros_like(out)
        for call in calls:
            out.copy_(start)
            call()
            check(out, wanted, tolerance)
        ours, theirs = alternating(*calls)
    except Exception as error:
        torch.cuda.synchronize()  # raises if nothing more can be measured in this process
        return Line(name, error=f"{type(error).__name__}: {' '.join(str(error).split())[:150]}")
    return Line(name, {"Weft": 1 / ours, "Triton": 1 / theirs}, "launches/s")


def _cases(part: str) -> Iterator[Case]:
    """The kernels of a part, and memory for what they ask for as they run."""
    triton.set_allocator(lambda size, alignment, stream: torch.empty(size, device="cuda", dtype=torch.int8))
    yield from PARTS[part]()


PARTS = {group.__name__[1:]: group for group in GROUPS}


def parts() -> list[str]:
    """The parts of the table."""
    return list(PARTS)


def prepare(part: str) -> None:
    """Compile the kernels of a part."""
    for case in _cases(part):
        for call in _launches(case):
            with contextlib.suppress(Exception):  # which is told when it is measured
                call()


def measure(part: str) -> Iterator[Line]:
    """The lines of a part."""
    yield from map(_line, _cases(part))


def main() -> int:
    """Print the table; 1 where a line falls short."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", default="", help="kernels whose name contains this")
    options = parser.parse_args()
    facts = machine("torch", "triton")
    print(facts, flush=True)
    ratios, falls_short = [], False
    for case in (case for part in PARTS for case in _cases(part) if options.only in case[0]):
        line = _line(case)
        missed = short_of("wider", line, facts["gpu"])
        falls_short |= bool(missed)
        print(line.shown() + missed, flush=True)
        ratios += [] if line.error else [line.part_of("Triton")]
    if ratios:
        print(f"geometric mean of {len(ratios)}: {statistics.geometric_mean(ratios):.2f}")
    return int(falls_short)


if __name__ == "__main__":
    sys.exit(main())
