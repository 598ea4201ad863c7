"""Graphs as others would choose them, written before anything was tuned by them (`benchmarks/inductor.py --wide`).

python benchmarks/inductor.py --wide --only swin
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F
from torch import nn

from inductor_graphs import BF16, Work, rand

NEIGHBOURS: list[tuple[str, Callable[[], Work]]] = []


def graph(make: Callable[[], Work]) -> Callable[[], Work]:
    """Registers a graph under its name."""
    NEIGHBOURS.append((make.__name__, make))
    return make


def leaf(*shape: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    """Normal numbers whose gradient is wanted."""
    return rand(*shape, dtype=dtype).requires_grad_()


@graph
def llama_block() -> Work:

    class Block(nn.Module):
        def __init__(self, d: Any, h: Any, f: Any) -> None:
            super().__init__()
            self.h = h
            self.n1, self.n2 = (nn.RMSNorm(d), nn.RMSNorm(d))
            self.q, self.k, self.v, self.o = (nn.Linear(d, d, bias=False) for _ in range(4))
            self.g, self.u, self.d = (
                nn.Linear(d, f, bias=False),
                nn.Linear(d, f, bias=False),
                nn.Linear(f, d, bias=False),
            )

        def rope(self, x: Any, c: Any, n: Any) -> Any:
            a, b = x.chunk(2, -1)
            return torch.cat((a * c - b * n, b * c + a * n), -1)

        def forward(self, x: Any, c: Any, n: Any) -> Any:
            B, T, D = x.shape
            y = self.n1(x)
            q, k, v = (w(y).view(B, T, self.h, D // self.h).transpose(1, 2) for w in (self.q, self.k, self.v))
            q, k = (self.rope(q, c, n), self.rope(k, c, n))
            a = q @ k.transpose(-2, -1) * (D // self.h) ** (-0.5) + torch.full((T, T), -math.inf).triu(1)
            x = x + self.o((a.softmax(-1) @ v).transpose(1, 2).reshape(B, T, D))
            y = self.n2(x)
            return x + self.d(F.silu(self.g(y)) * self.u(y))

    b = Block(256, 4, 688).requires_grad_(False)
    return (b, (rand(2, 128, 256), rand(128, 32), rand(128, 32)), ())


@graph
def llama_norm_rope() -> Work:

    def work(x: Any, w: Any, c: Any, s: Any) -> Any:
        y = x.float()
        y = (y * torch.rsqrt(y.square().mean(-1, keepdim=True) + 1e-05)).to(BF16) * w
        y = y.view(2, 300, 8, 64).transpose(1, 2)
        a, b = y.chunk(2, -1)
        return torch.cat((a * c - b * s, b * c + a * s), -1)

    return (
        work,
        (rand(2, 300, 512, dtype=BF16), rand(512, dtype=BF16), rand(300, 32, dtype=BF16), rand(300, 32, dtype=BF16)),
        (),
    )


@graph
def vit_patches() -> Work:

    def work(x: Any, p: Any, c: Any) -> Any:
        B, C, H, W = x.shape
        y = x.reshape(B, C, H // 16, 16, W // 16, 16).permute(0, 2, 4, 3, 5, 1).reshape(B, H // 16 * (W // 16), 768)
        return torch.cat((c.expand(B, 1, 768), y), 1) + p

    return (work, (rand(4, 3, 224, 224), rand(197, 768), rand(1, 1, 768)), ())


@graph
def vit_patches_chw() -> Work:

    def work(x: Any) -> Any:
        B, C, H, W = x.shape
        return x.reshape(B, C, H // 16, 16, W // 16, 16).permute(0, 2, 4, 1, 3, 5).reshape(B, -1, 768) * 2

    return (work, (rand(4, 3, 224, 224),), ())


@graph
def swin_windows() -> Work:

    def work(x: Any) -> Any:
        B, H, W, C = x.shape
        x = torch.roll(x, (-3, -3), (1, 2))
        return x.view(B, H // 7, 7, W // 7, 7, C).permute(0, 1, 3, 2, 4, 5).reshape(-1, 49, C) * 0.5

    return (work, (rand(4, 56, 56, 96),), ())


@graph
def swin_reverse() -> Work:

    def work(x: Any, r: Any) -> Any:
        x = x.view(4, 8, 8, 7, 7, 96).permute(0, 1, 3, 2, 4, 5).reshape(4, 56, 56, 96)
        return torch.roll(x, (3, 3), (1, 2)) + r

    return (work, (rand(256, 49, 96), rand(4, 56, 56, 96)), ())


@graph
def patch_merging() -> Work:

    def work(x: Any, w: Any, b: Any) -> Any:
        y = torch.cat((x[:, 0::2, 0::2], x[:, 1::2, 0::2], x[:, 0::2, 1::2], x[:, 1::2, 1::2]), -1)
        return F.layer_norm(y, (384,), w, b)

    return (work, (rand(4, 56, 56, 96), rand(384), rand(384)), ())


@graph
def convnext_pointwise() -> Work:

    def work(x: Any, w: Any, b: Any, g: Any) -> Any:
        y = F.layer_norm(x.permute(0, 2, 3, 1), (96,), w, b)
        return x + (g * F.gelu(y)).permute(0, 3, 1, 2)

    return (work, (rand(4, 96, 28, 28), rand(96), rand(96), rand(96)), ())


@graph
def ce_ignore() -> Work:
    x = leaf(777, 1000)
    y = torch.randint(0, 1000, (777,))
    y[::5] = -100
    return (lambda x, y: F.cross_entropy(x, y, ignore_index=-100, label_smoothing=0.1), (x, y), (x,))


@graph
def ce_weighted() -> Work:
    return (F.cross_entropy, (rand(4097, 37), torch.randint(0, 37, (4097,)), torch.rand(37)), ())


@graph
def ce_2d() -> Work:
    return (F.cross_entropy, (rand(4, 21, 65, 65), torch.randint(0, 21, (4, 65, 65))), ())


@graph
def multi_margin() -> Work:
    return (F.multi_margin_loss, (rand(500, 37), torch.randint(0, 37, (500,))), ())


@graph
def focal_softmax() -> Work:
    x = leaf(1000, 91)

    def work(x: Any, y: Any) -> Any:
        lp = x.log_softmax(-1).gather(1, y[:, None])[:, 0]
        return (-((1 - lp.exp()) ** 2) * lp).mean()

    return (work, (x, torch.randint(0, 91, (1000,))), (x,))


@graph
def contrastive() -> Work:

    def work(a: Any, b: Any) -> Any:
        a, b = (F.normalize(a, dim=-1), F.normalize(b, dim=-1))
        scores = a @ b.t() / 0.07
        t = torch.arange(a.shape[0])
        return F.cross_entropy(scores, t) + F.cross_entropy(scores.t(), t)

    return (work, (rand(256, 128), rand(256, 128)), ())


@graph
def adamw_foreach() -> Work:
    ps = [rand(*s) for s in ((777, 100), (100,), (300, 301), (64, 3, 7, 7), (1000,))]
    gs, ms, vs = ([torch.rand_like(p) for p in ps] for _ in range(3))

    def work(ps: Any, gs: Any, ms: Any, vs: Any) -> Any:
        ms2 = torch._foreach_lerp(ms, gs, 0.1)
        vs2 = torch._foreach_mul(vs, 0.999)
        vs2 = torch._foreach_addcmul(vs2, gs, gs, 0.001)
        d = torch._foreach_add(torch._foreach_sqrt(vs2), 1e-08)
        ps2 = torch._foreach_addcdiv(torch._foreach_mul(ps, 1 - 1e-05), ms2, d, -0.001)
        return (*ps2, *ms2, *vs2)

    return (work, (ps, gs, ms, vs), ())


@graph
def sgd_foreach() -> Work:
    ps = [rand(*s) for s in ((500, 500), (500,), (1000, 500), (1000,), (10, 1000), (10,))]
    gs = [rand(*p.shape) for p in ps]
    return (lambda ps, gs: tuple(torch._foreach_add(ps, gs, alpha=-0.1)), (ps, gs), ())


@graph
def clip_grad_norm() -> Work:
    gs = [rand(*s) for s in ((500, 500), (500,), (1000, 500), (1000,))]

    def work(gs: Any) -> Any:
        n = torch.stack([g.square().sum() for g in gs]).sum().sqrt()
        c = (1.0 / (n + 1e-06)).clamp(max=1)
        return tuple(g * c for g in gs)

    return (work, (gs,), ())


@graph
def lion_bf16() -> Work:

    def work(p: Any, g: Any, m: Any) -> Any:
        u = (0.9 * m + 0.1 * g).sign()
        return (p * (1 - 0.0001) - 0.0001 * u, 0.99 * m + 0.01 * g)

    return (work, (rand(500, 1001, dtype=BF16), rand(500, 1001, dtype=BF16), rand(500, 1001, dtype=BF16)), ())


@graph
def instance_norm_gradient() -> Work:
    x = leaf(4, 16, 33, 33)
    return (lambda x: F.instance_norm(x).tanh().sum(), (x,), (x,))


@graph
def batch_norm_eval() -> Work:
    return (
        lambda x, m, v, w, b: F.relu6(F.batch_norm(x, m, v, w, b)),
        (rand(8, 50, 27, 27), rand(50), torch.rand(50), rand(50), rand(50)),
        (),
    )


@graph
def softmax_dim1() -> Work:
    return (lambda x: torch.softmax(x, 1), (rand(8, 21, 65, 65),), ())


@graph
def softmin_tiny_rows() -> Work:
    return (lambda x: F.softmin(x, -1), (rand(20000, 10),), ())


@graph
def logcumsumexp() -> Work:
    return (lambda x: torch.logcumsumexp(x, 1), (rand(300, 1000),), ())


@graph
def cumsum_int() -> Work:
    return (lambda x: torch.cumsum(x, 0), (torch.randint(0, 10, (100003,)),), ())


@graph
def argmin_rows() -> Work:
    return (lambda x: x.argmin(-1), (rand(3000, 257),), ())


@graph
def any_all() -> Work:
    return (lambda x: ((x > 3).any(-1), (x > -4).all(-1)), (rand(1000, 1003),), ())


@graph
def accuracy() -> Work:
    return (lambda x, y: (x.argmax(-1) == y).float().mean(), (rand(1000, 100), torch.randint(0, 100, (1000,))), ())


@graph
def one_hot_scatter() -> Work:
    return (lambda i: torch.zeros(3000, 37).scatter(1, i[:, None], 1.0), (torch.randint(0, 37, (3000,)),), ())


@graph
def embedding_add_position() -> Work:
    return (
        lambda t, p, i: F.embedding(i, t) + p,
        (rand(50257, 192), rand(100, 192), torch.randint(0, 50257, (16, 100))),
        (),
    )


@graph
def scatter_add_segments() -> Work:
    return (lambda x, i: torch.zeros(500, 64).index_add(0, i, x), (rand(5000, 64), torch.randint(0, 500, (5000,))), ())


@graph
def index_put_accumulate() -> Work:
    return (
        lambda x, i, v: x.index_put((i,), v, accumulate=True),
        (rand(1000, 100), torch.randint(0, 1000, (700,)), rand(700, 100)),
        (),
    )


@graph
def gather_last() -> Work:
    return (lambda x, i: x.gather(-1, i), (rand(1000, 100), torch.randint(0, 100, (1000, 7))), ())


@graph
def index_select_cols() -> Work:
    return (lambda x, i: x.index_select(1, i), (rand(500, 1000), torch.randint(0, 1000, (333,))), ())


@graph
def tril_triu() -> Work:
    return (lambda x: torch.tril(x) + torch.triu(x, 1).t(), (rand(777, 777),), ())


@graph
def flip_image() -> Work:
    return (lambda x: torch.flip(x, (-1,)) * 0.5 + 1, (rand(8, 3, 113, 113),), ())


@graph
def interp_bilinear() -> Work:
    return (lambda x: F.interpolate(x, size=(97, 101), mode="bilinear", align_corners=False), (rand(2, 8, 57, 63),), ())


@graph
def interp_bilinear_gradient() -> Work:
    x = leaf(2, 8, 32, 32)
    return (lambda x: F.interpolate(x, scale_factor=2, mode="bilinear").square().sum(), (x,), (x,))


@graph
def grid_sample() -> Work:
    return (
        lambda x, g: F.grid_sample(x, g, align_corners=False),
        (rand(2, 3, 64, 64), torch.rand(2, 50, 50, 2) * 2 - 1),
        (),
    )


@graph
def adaptive_avg() -> Work:
    return (lambda x: F.adaptive_avg_pool2d(x, (7, 7)), (rand(8, 64, 28, 28),), ())


@graph
def int8_quant_per_tensor() -> Work:

    def work(x: Any) -> Any:
        s = x.abs().max() / 127
        return ((x / s).round().clamp(-128, 127).to(torch.int8), s)

    return (work, (rand(700, 999),), ())


@graph
def dequant_add() -> Work:
    return (
        lambda a, b, s, z: (a.float() - z[:, None]) * s[:, None] + b,
        (torch.randint(-128, 127, (1000, 700), dtype=torch.int8), rand(1000, 700), torch.rand(1000), rand(1000)),
        (),
    )


@graph
def int4_unpack() -> Work:

    def work(q: Any, s: Any) -> Any:
        lo = (q & 15).to(torch.int8) - 8
        hi = (q >> 4).to(torch.int8) - 8
        return torch.stack((lo, hi), -1).flatten(1).float() * s

    return (work, (torch.randint(0, 256, (1000, 500), dtype=torch.uint8), rand(1000, 1)), ())


@graph
def image_normalise() -> Work:
    return (
        lambda x, m, s: ((x.permute(0, 3, 1, 2).float() / 255 - m[:, None, None]) / s[:, None, None]).contiguous(),
        (torch.randint(0, 256, (4, 224, 224, 3), dtype=torch.uint8), rand(3), torch.rand(3) + 0.5),
        (),
    )


@graph
def mixed_bf16_f32() -> Work:
    return (lambda x, w, b: (x.float() * w + b).to(BF16), (rand(1000, 777, dtype=BF16), rand(777), rand(777)), ())


@graph
def std_cols() -> Work:
    return (lambda x: x.std(0), (rand(1000, 333),), ())


@graph
def var_all() -> Work:
    return (lambda x: x.var(), (rand(300, 1001),), ())


@graph
def norms_l1_l2_inf() -> Work:
    return (lambda x: (x.norm(1, -1), x.norm(2, -1), x.abs().amax(-1)), (rand(1000, 500),), ())


@graph
def cdist_l1() -> Work:
    return (lambda a, b: (a[:, None] - b[None]).abs().sum(-1), (rand(200, 33), rand(300, 33)), ())


@graph
def pairwise_iou() -> Work:

    def work(a: Any, b: Any) -> Any:
        lt = torch.maximum(a[:, None, :2], b[None, :, :2])
        rb = torch.minimum(a[:, None, 2:], b[None, :, 2:])
        wh = (rb - lt).clamp(min=0)
        i = wh[..., 0] * wh[..., 1]
        first = (a[:, 2] - a[:, 0]) * (a[:, 3] - a[:, 1])
        second = (b[:, 2] - b[:, 0]) * (b[:, 3] - b[:, 1])
        return i / (first[:, None] + second[None] - i + 1e-06)

    return (work, (torch.rand(500, 4), torch.rand(300, 4)), ())


@graph
def where_chain() -> Work:

    def work(x: Any) -> Any:
        return torch.where(x < -2, -1.0, torch.where(x < 0, x * 0.5, torch.where(x < 2, x * x, x.sqrt())))

    return (work, (rand(1000, 1000),), ())


@graph
def mish_softplus() -> Work:
    return (lambda x: F.mish(x) + F.softplus(x), (rand(500, 1000),), ())


@graph
def int_division() -> Work:
    return (
        lambda a, b: (a // b, a % b),
        (torch.randint(-1000, 1000, (100003,), dtype=torch.int32), torch.randint(1, 100, (100003,), dtype=torch.int32)),
        (),
    )


@graph
def lgamma_rows() -> Work:
    return (torch.lgamma, (torch.rand(300, 333) * 10 + 0.1,), ())


@graph
def atan2_hypot() -> Work:
    return (lambda x, y: (torch.atan2(y, x), torch.hypot(x, y)), (rand(300, 333), rand(300, 333)), ())


@graph
def inverse_trig() -> Work:
    return (lambda x: x.asin() + x.acos() + x.atan() + x.asinh() + x.atanh(), (torch.rand(300, 333) * 1.9 - 0.95,), ())


@graph
def power() -> Work:
    return (lambda x, y: x.abs().pow(y) + x.pow(3) + x.abs().pow(1.7), (rand(300, 1000), rand(300, 1000)), ())


@graph
def transpose_copy_bf16() -> Work:
    return (lambda x: x.t().contiguous() + 1, (rand(1000, 777, dtype=BF16),), ())


@graph
def split_heads() -> Work:
    return (
        lambda x: [t.view(4, 100, 12, 64).transpose(1, 2).contiguous() * 1.5 for t in x.split(768, -1)],
        (rand(4, 100, 2304),),
        (),
    )


@graph
def merge_heads_bf16() -> Work:
    return (lambda x: x.transpose(1, 2).reshape(4, 100, 768) + 1, (rand(4, 12, 100, 64, dtype=BF16),), ())


@graph
def permute_3d_odd() -> Work:
    return (lambda x: (x.permute(2, 0, 1) + 1).contiguous(), (rand(37, 53, 71),), ())


@graph
def cat_many() -> Work:
    return (lambda *t: torch.cat(t, -1).relu(), tuple(rand(1000, k) for k in (7, 13, 64, 100, 33)), ())


@graph
def stack_last3() -> Work:
    return (lambda a, b, c: torch.stack((a, b, c), -1), (rand(100, 1000), rand(100, 1000), rand(100, 1000)), ())


@graph
def pad_replicate() -> Work:
    return (lambda x: F.pad(x, (2, 2, 2, 2), mode="replicate"), (rand(4, 16, 57, 61),), ())


@graph
def unfold_im2col() -> Work:
    return (lambda x: F.unfold(x, 3, padding=1), (rand(2, 16, 32, 32),), ())


@graph
def mean_over_time_masked() -> Work:

    def work(x: Any, n: Any) -> Any:
        m = torch.arange(x.shape[1])[None, :] < n[:, None]
        return (x * m[..., None]).sum(1) / n[:, None]

    return (work, (rand(16, 100, 256), torch.randint(1, 100, (16,))), ())


@graph
def attention_pool() -> Work:

    def work(x: Any, w: Any) -> Any:
        a = torch.softmax((x * w).sum(-1), -1)
        return (a[..., None] * x).sum(1)

    return (work, (rand(32, 100, 200), rand(200)), ())


@graph
def sum_mid() -> Work:
    return (lambda x: x.sum(1), (rand(64, 50, 300),), ())


@graph
def prod_rows() -> Work:
    return (lambda x: x.prod(-1), (torch.rand(1000, 100) + 0.5,), ())


@graph
def moe_router() -> Work:

    def work(x: Any) -> Any:
        p = x.softmax(-1)
        v, i = p.topk(2, -1)
        return (v / v.sum(-1, keepdim=True), i, F.one_hot(i, 8).sum((0, 1)), p.mean(0))

    return (work, (rand(2000, 8),), ())


@graph
def relative_bias() -> Work:
    return (
        lambda s, t, i: s + t[i].permute(2, 0, 1),
        (rand(16, 6, 49, 49), rand(169, 6), torch.randint(0, 169, (49, 49))),
        (),
    )


@graph
def complex_mul_pairs() -> Work:

    def work(a: Any, b: Any) -> Any:
        return torch.stack(
            (a[..., 0] * b[..., 0] - a[..., 1] * b[..., 1], a[..., 0] * b[..., 1] + a[..., 1] * b[..., 0]), -1
        )

    return (work, (rand(300, 333, 2), rand(300, 333, 2)), ())
