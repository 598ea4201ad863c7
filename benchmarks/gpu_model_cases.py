"""The launches of `gpu_wider.py` that models make in training and serving; see gpu_wider_cases.py."""

# mypy: ignore-errors
from __future__ import annotations

from collections.abc import Iterator

import torch

from gpu_wider_cases import Case, layer_norm_gradient, softmax_backward


def layers() -> Iterator[Case]:
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


def training() -> Iterator[Case]:
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
    more = {"BLOCK": columns, "num_warps": 8}
    yield (
        "layer norm backward, bf16",
        "layer_norm_backward",
        (rows,),
        (x, w, grad, out, columns, 1e-5),
        more,
        out,
        lambda: layer_norm_gradient(x, w, grad),
        1e-2,
    )
    y = torch.softmax(torch.randn(rows, columns, device="cuda"), -1)
    yield softmax_backward("softmax backward, f32", y, more)
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


def exact() -> Iterator[Case]:
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


def paged() -> Iterator[Case]:
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


def persistent() -> Iterator[Case]:
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


def windowed() -> Iterator[Case]:
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


def serving() -> Iterator[Case]:
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
