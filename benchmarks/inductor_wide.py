"""Graphs that nothing was tuned by, at odd sizes and in narrow types (`benchmarks/inductor.py --wide`).

python benchmarks/inductor.py --wide --only lstm
"""

from __future__ import annotations

from collections.abc import Callable

import torch
import torch.nn.functional as F

from inductor_graphs import BF16, Work, rand

WIDE: list[tuple[str, Callable[[], Work]]] = []


def graph(make: Callable[[], Work]) -> Callable[[], Work]:
    """Registers a graph under its name."""
    WIDE.append((make.__name__, make))
    return make


def leaf(*shape: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    """Normal numbers whose gradient is wanted."""
    return rand(*shape, dtype=dtype).requires_grad_()


@graph
def pixel_shuffle() -> Work:
    return lambda x: F.relu(F.pixel_shuffle(x, 2)), (rand(4, 64, 56, 56),), ()


@graph
def avg_pool_odd() -> Work:
    return lambda x: F.avg_pool2d(x, 2), (rand(8, 31, 113, 113),), ()


@graph
def nearest() -> Work:
    return lambda x: F.interpolate(x, scale_factor=2.0, mode="nearest") * 0.5, (rand(4, 32, 57, 57),), ()


@graph
def pad_reflect() -> Work:
    return lambda x: F.pad(x, (3, 3, 3, 3), mode="reflect") + 1, (rand(4, 32, 65, 65),), ()


@graph
def cumprod_rows() -> Work:
    return lambda x: torch.cumprod(x, 1), (torch.rand(777, 1000) + 0.5,), ()


@graph
def cummax_rows() -> Work:
    return lambda x: torch.cummax(x, 1)[0], (rand(777, 1000),), ()


@graph
def logit() -> Work:
    return lambda x: torch.logit(x, 1e-6), (torch.rand(1000, 1000),), ()


@graph
def topk_softmax() -> Work:
    def work(x: torch.Tensor) -> torch.Tensor:
        v, i = torch.topk(x, 4, -1)
        return torch.zeros_like(x).scatter(-1, i, torch.softmax(v, -1))

    return work, (rand(4097, 64),), ()


@graph
def sort_diff() -> Work:
    return lambda x: torch.sort(x * 2, -1)[0].diff(dim=-1), (rand(1000, 257),), ()


@graph
def dropout_mask() -> Work:
    return lambda x: F.dropout(x, 0.1, training=True).square().mean() * 0 + x.sum(), (rand(1000, 1000),), ()


@graph
def label_smoothing() -> Work:
    x = leaf(512, 5025)
    y = torch.randint(0, 5025, (512,))
    return lambda x, y: F.cross_entropy(x, y, label_smoothing=0.1), (x, y), (x,)


@graph
def large_vocabulary() -> Work:
    x = leaf(37, 50257)
    return F.cross_entropy, (x, torch.randint(0, 50257, (37,))), (x,)


@graph
def triplet() -> Work:
    return F.triplet_margin_loss, (rand(4097, 100), rand(4097, 100), rand(4097, 100)), ()


@graph
def cosine_embedding() -> Work:
    y = (torch.randint(0, 2, (4097,)) * 2 - 1).float()
    return F.cosine_embedding_loss, (rand(4097, 100), rand(4097, 100), y), ()


@graph
def kl_logs() -> Work:
    return (
        lambda x, y: F.kl_div(x.log_softmax(-1), y.log_softmax(-1), log_target=True, reduction="sum"),
        (rand(500, 1000), rand(500, 1000)),
        (),
    )


@graph
def lstm_cell() -> Work:
    def work(gates: torch.Tensor, c: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        i, f, g, o = gates.chunk(4, 1)
        c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
        return torch.sigmoid(o) * torch.tanh(c), c

    return work, (rand(256, 4000), rand(256, 1000)), ()


@graph
def gru_cell() -> Work:
    def work(x: torch.Tensor, h: torch.Tensor, state: torch.Tensor) -> torch.Tensor:
        xr, xz, xn = x.chunk(3, 1)
        hr, hz, hn = h.chunk(3, 1)
        n = torch.tanh(xn + torch.sigmoid(xr + hr) * hn)
        z = torch.sigmoid(xz + hz)
        return n + z * (state - n)

    return work, (rand(256, 3000), rand(256, 3000), rand(256, 1000)), ()


@graph
def lstm_cell_gradient() -> Work:
    gates, c = leaf(128, 2000), leaf(128, 500)

    def work(gates: torch.Tensor, c: torch.Tensor) -> torch.Tensor:
        i, f, g, o = gates.chunk(4, 1)
        c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
        return (torch.sigmoid(o) * torch.tanh(c)).sum()

    return work, (gates, c), (gates, c)


@graph
def alibi() -> Work:
    def work(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, slopes: torch.Tensor) -> torch.Tensor:
        n = q.shape[-2]
        i = torch.arange(n)
        distance = (i[None, :] - i[:, None]).float()
        s = q @ k.transpose(-1, -2) * 0.125 + slopes[:, None, None] * distance
        s = s.masked_fill(i[None, :] > i[:, None], float("-inf"))
        return torch.softmax(s, -1) @ v

    return work, (rand(2, 8, 250, 64), rand(2, 8, 250, 64), rand(2, 8, 250, 64), torch.rand(8)), ()


@graph
def sliding_window() -> Work:
    def work(s: torch.Tensor) -> torch.Tensor:
        i = torch.arange(s.shape[-1])
        d = i[:, None] - i[None, :]
        return torch.softmax(torch.where((d >= 0) & (d < 64), s, float("-inf")), -1)

    return work, (rand(8, 500, 500),), ()


@graph
def weight_norm() -> Work:
    return lambda v, g: v * (g / v.norm(dim=1, keepdim=True)), (rand(1000, 1000), rand(1000, 1)), ()


@graph
def instance_norm_odd() -> Work:
    return lambda x: F.leaky_relu(F.instance_norm(x), 0.2), (rand(4, 33, 57, 57),), ()


@graph
def ema() -> Work:
    return lambda a, b: a.lerp(b, 0.01), (rand(1000, 1003), rand(1000, 1003)), ()


@graph
def sgd_in_place() -> Work:
    def work(p: torch.Tensor, g: torch.Tensor, m: torch.Tensor) -> None:
        m.mul_(0.9).add_(g + 1e-4 * p)
        p.sub_(1e-6 * m)

    def run(p: torch.Tensor, g: torch.Tensor, m: torch.Tensor) -> tuple[()]:
        work(p, g, m)
        return ()

    return run, (rand(1000003), rand(1000003), rand(1000003)), ()


@graph
def roll_rows() -> Work:
    return lambda x: torch.roll(x, 17, 1) - x, (rand(1000, 1000),), ()


@graph
def flip_rows() -> Work:
    return lambda x: torch.flip(x, (1,)) * 0.5 + x, (rand(1000, 1000),), ()


@graph
def stack_interleave() -> Work:
    return lambda x, y: torch.stack((x * 2, y + 1), -1).flatten(1), (rand(1000, 500), rand(1000, 500)), ()


@graph
def cat_odd() -> Work:
    return (
        lambda x, y, z: torch.cat((x, y * 2, torch.relu(z)), 1),
        (rand(777, 100), rand(777, 333), rand(777, 1000)),
        (),
    )


@graph
def split_gate() -> Work:
    def work(x: torch.Tensor) -> torch.Tensor:
        a, b = x.split((1000, 1000), 1)
        return F.gelu(a) * b

    return work, (rand(500, 2000, dtype=BF16),), ()


@graph
def boolean_masks() -> Work:
    return (
        lambda x, m, n: torch.where(m & ~n | (x > 1), x, -x).sum(1),
        (
            rand(1000, 1000),
            torch.rand(1000, 1000) > 0.5,
            torch.rand(1000, 1000) > 0.5,
        ),
        (),
    )


@graph
def quantize() -> Work:
    def work(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        scale = x.abs().amax(-1, keepdim=True) / 127
        return torch.clamp(torch.round(x / scale), -128, 127).to(torch.int8), scale

    return work, (rand(1000, 1000),), ()


@graph
def dequantize() -> Work:
    return (
        lambda q, s: (q.float() * s).to(BF16),
        (torch.randint(-128, 128, (1000, 4097), dtype=torch.int8), rand(1000, 1)),
        (),
    )


@graph
def fp8_round_trip() -> Work:
    return lambda x: x.to(torch.float8_e4m3fn).float() * 2, (rand(1000, 1000),), ()


@graph
def fp8_e5m2_scale() -> Work:
    return lambda x, s: (x.float() * s).to(torch.float8_e5m2), (rand(1000, 1000, dtype=BF16), rand(1000, 1)), ()


@graph
def rope_interleaved() -> Work:
    def work(x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
        a, b = x[..., 0::2], x[..., 1::2]
        return torch.stack((a * cos - b * sin, a * sin + b * cos), -1).flatten(-2)

    return work, (rand(2, 8, 500, 64, dtype=BF16), rand(500, 32, dtype=BF16), rand(500, 32, dtype=BF16)), ()


@graph
def rope_computed() -> Work:
    def work(x: torch.Tensor, freq: torch.Tensor) -> torch.Tensor:
        angle = torch.arange(x.shape[1])[:, None].float() * freq
        a, b = x.chunk(2, -1)
        c, s = angle.cos(), angle.sin()
        return torch.cat((a * c - b * s, b * c + a * s), -1)

    return work, (rand(16, 500, 80), torch.rand(40)), ()


@graph
def var_mean_axes() -> Work:
    return lambda x: torch.var_mean(x, (0, 2, 3)), (rand(16, 33, 30, 30),), ()


@graph
def outer_product() -> Work:
    return lambda a, b: torch.outer(a, b) + 1, (rand(1000), rand(1003)), ()


@graph
def einsum_weights() -> Work:
    return lambda x, w: torch.einsum("bnd,nd->bn", x, w), (rand(100, 100, 100), rand(100, 100)), ()


@graph
def embedding_bag() -> Work:
    return lambda t, i: F.embedding(i, t).mean(1), (rand(5000, 100), torch.randint(0, 5000, (500, 20))), ()


@graph
def one_hot_sum() -> Work:
    return lambda i, w: (F.one_hot(i, 50).float() * w).sum(-1), (torch.randint(0, 50, (4097,)), rand(50)), ()


@graph
def group_norm_odd_gradient() -> Work:
    x, w, b = leaf(4, 36, 25, 25), leaf(36), leaf(36)
    return lambda x, w, b: F.silu(F.group_norm(x, 6, w, b)).sum(), (x, w, b), (x, w, b)


@graph
def batch_norm_odd_gradient() -> Work:
    x, w, b = leaf(8, 50, 25, 25), leaf(50), leaf(50)
    return lambda x, w, b: F.gelu(F.batch_norm(x, None, None, w, b, training=True)).sum(), (x, w, b), (x, w, b)


@graph
def softmax_gradient_bf16() -> Work:
    x = leaf(500, 1000, dtype=BF16)
    return lambda x, y: (torch.softmax(x, -1) * y).sum(), (x, rand(500, 1000, dtype=BF16)), (x,)


@graph
def layer_norm_gradient_bf16() -> Work:
    x, w, b = leaf(500, 1000, dtype=BF16), leaf(1000, dtype=BF16), leaf(1000, dtype=BF16)
    return lambda x, w, b: (F.layer_norm(x, (1000,), w, b) * 0.1).square().mean(), (x, w, b), (x, w, b)


@graph
def layer_norm_4097() -> Work:
    return lambda x, w: F.layer_norm(x, (4097,), w), (rand(300, 4097), rand(4097)), ()


@graph
def softmax_50257() -> Work:
    return lambda x: torch.softmax(x / 0.7, -1), (rand(20, 50257),), ()


@graph
def softmax_50257_bf16() -> Work:
    return lambda x: torch.softmax(x / 0.7, -1), (rand(20, 50257, dtype=BF16),), ()


@graph
def argmax_50257() -> Work:
    return lambda x: x.argmax(-1), (rand(37, 50257),), ()


@graph
def log_softmax_gather() -> Work:
    return lambda x, i: x.log_softmax(-1).gather(-1, i[:, None]), (rand(37, 50257), torch.randint(0, 50257, (37,))), ()


@graph
def focal_loss() -> Work:
    def work(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        p = torch.sigmoid(x)
        ce = F.binary_cross_entropy_with_logits(x, y, reduction="none")
        pt = p * y + (1 - p) * (1 - y)
        return (ce * (1 - pt) ** 2).mean()

    return work, (rand(1000, 80), torch.randint(0, 2, (1000, 80)).float()), ()


@graph
def tril_mask() -> Work:
    return lambda x: torch.tril(x, -1) * 2, (rand(1000, 1000),), ()


@graph
def cdist_small() -> Work:
    return lambda a, b: (a[:, None] - b[None]).square().sum(-1).sqrt(), (rand(300, 20), rand(500, 20)), ()


@graph
def masked_mean() -> Work:
    def work(x: torch.Tensor, m: torch.Tensor) -> torch.Tensor:
        w = m[..., None].float()
        return (x * w).sum(1) / w.sum(1).clamp(min=1)

    return work, (rand(32, 100, 300), torch.rand(32, 100) > 0.3), ()


@graph
def adamw_bf16() -> Work:
    def work(p: torch.Tensor, g: torch.Tensor, m: torch.Tensor, v: torch.Tensor) -> tuple[torch.Tensor, ...]:
        g32 = g.float()
        m = m * 0.9 + g32 * 0.1
        v = v * 0.999 + g32 * g32 * 0.001
        return (p.float() * 0.99 - 0.001 * m / (v.sqrt() + 1e-8)).to(BF16), m, v

    return work, (rand(500003, dtype=BF16), rand(500003, dtype=BF16), rand(500003), torch.rand(500003)), ()


@graph
def prelu_channels() -> Work:
    return F.prelu, (rand(8, 33, 57, 57), rand(33)), ()


@graph
def glu_f16() -> Work:
    return lambda x: F.glu(x, -1), (rand(1000, 2000, dtype=torch.float16),), ()


@graph
def channel_shuffle() -> Work:
    return lambda x: F.relu(x.view(4, 3, 20, 30, 30).transpose(1, 2).reshape(4, 60, 30, 30)), (rand(4, 60, 30, 30),), ()


@graph
def squeeze_excite() -> Work:
    return (
        lambda x, s: x * torch.sigmoid(s)[:, :, None, None] + x.mean((2, 3), keepdim=True),
        (
            rand(8, 64, 27, 27),
            rand(8, 64),
        ),
        (),
    )


@graph
def histogram_bucketize() -> Work:
    return torch.bucketize, (rand(100003), torch.linspace(-3, 3, 65)), ()


@graph
def nan_to_num() -> Work:
    return lambda x: torch.nan_to_num(x.log()).clamp(-5, 5), (rand(1000, 1000),), ()


@graph
def max_pool_gradient() -> Work:
    x = leaf(4, 16, 57, 57)
    return lambda x: F.max_pool2d(x, 3, 2, 1).square().sum(), (x,), (x,)


@graph
def int32_hash() -> Work:
    def work(x: torch.Tensor) -> torch.Tensor:
        x = (x ^ (x >> 16)) * 0x45D9F3B
        return (x ^ (x >> 16)) % 1000

    return work, (torch.randint(0, 1 << 30, (500003,), dtype=torch.int32),), ()


@graph
def double_norm() -> Work:
    return lambda x: x / x.norm(dim=-1, keepdim=True), (torch.randn(1000, 500, dtype=torch.float64),), ()
