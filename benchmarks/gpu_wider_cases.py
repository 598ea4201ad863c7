"""The launches of `gpu_wider.py` that are of no model: attention, products, rows, elements, gathers, odd sizes.

The kernels are loaded once for each side. A function is a part of the table; it makes the arrays of a launch when it is
asked for it.
"""

# mypy: ignore-errors
from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import torch
import triton
import triton.language
from triton.language.extra import libdevice

import weft
import weft.language
from gpu_sides import load_side

FILES = ("gpu_wider_kernels", "gpu_more_kernels", "gpu_product_kernels", "gpu_serving_kernels")
OURS = [
    load_side("weft", file, jit=weft.jit, tl=weft.language, libdevice=weft.language.extra.libdevice) for file in FILES
]
THEIRS = [load_side("triton", file, jit=triton.jit, tl=triton.language, libdevice=libdevice) for file in FILES]
Case = tuple[str, str, Any, tuple[Any, ...], dict[str, Any], torch.Tensor, Callable[[], torch.Tensor], float]
"""Name, kernel, grid, arguments, options, the output, what it should be, and the error that is allowed."""


def layer_norm_gradient(x: torch.Tensor, w: torch.Tensor, grad: torch.Tensor) -> torch.Tensor:
    """The gradient of x, in f32."""
    leaf = x.float().requires_grad_()
    torch.nn.functional.layer_norm(leaf, w.shape, w.float(), None, 1e-5).backward(grad.float())
    return leaf.grad


def attention() -> Iterator[Case]:
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


def products() -> Iterator[Case]:
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


def quantized() -> Iterator[Case]:
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


def rows() -> Iterator[Case]:
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


def elements() -> Iterator[Case]:
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


def looked_up() -> Iterator[Case]:
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


def chains() -> Iterator[Case]:
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


def softmax_backward(name: str, y: torch.Tensor, more: dict[str, Any]) -> Case:
    """The gradient of a softmax over rows, from its result."""
    g, out = torch.randn_like(y), torch.empty_like(y)
    args = (y, g, out, y.shape[1])
    return name, "softmax_backward", (len(y),), args, more, out, lambda: y * (g - (y * g).sum(-1, keepdim=True)), 1e-4


def odd() -> Iterator[Case]:
    """Every kernel above that has rows and masks, with rows that begin at any address."""
    rows, columns, more = 16384, 4097, {"BLOCK": 8192, "num_warps": 8}
    x, grad = (torch.randn(rows, columns, device="cuda").bfloat16() for _ in range(2))
    w, out = torch.randn(columns, device="cuda").bfloat16(), torch.empty_like(x)
    yield (
        "rms norm bf16, rows of 4097", "rms_norm", (rows,), (x, w, out, columns, 1e-6), more, out,
        lambda: torch.nn.functional.rms_norm(x.float(), (columns,), w.float(), 1e-6), 1e-2,
    )  # fmt: skip
    args, name = (x, w, grad, out, columns, 1e-5), "layer norm backward, bf16, rows of 4097"
    yield name, "layer_norm_backward", (rows,), args, more, out, lambda: layer_norm_gradient(x, w, grad), 1e-2
    y = torch.softmax(torch.randn(rows, columns, device="cuda"), -1)
    yield softmax_backward("softmax backward, f32, rows of 4097", y, more)
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
