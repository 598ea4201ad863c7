"""The graphs of benchmarks/gpu_inductor.py: what people give to `torch.compile` on a GPU, in sizes that fill one.

A graph is a function that makes the work, as in inductor_graphs.py: what is compiled, its arguments, and the tensors
whose gradients are wanted, if any. Tensors are made on PyTorch's default device.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import nn

from inductor_graphs import BF16, Work, rand

GRAPHS: list[tuple[str, Callable[[], Work]]] = []


def graph(make: Callable[[], Work]) -> Callable[[], Work]:
    """Registers a graph under its name."""
    GRAPHS.append((make.__name__, make))
    return make


def leaf(*shape: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    """Normal numbers whose gradient is wanted."""
    return rand(*shape, dtype=dtype).requires_grad_()


# -- norms ------------------------------------------------------------------------------------------------------------


@graph
def layer_norm_of_sum_bf16() -> Work:
    return (
        lambda x, r, w, b: F.layer_norm(x + r, (4096,), w, b),
        (rand(8192, 4096, dtype=BF16), rand(8192, 4096, dtype=BF16), rand(4096, dtype=BF16), rand(4096, dtype=BF16)),
        (),
    )


@graph
def layer_norm_f32() -> Work:
    return lambda x, w, b: F.layer_norm(x, (1000,), w, b), (rand(16384, 1000), rand(1000), rand(1000)), ()


@graph
def layer_norm_gradients_bf16() -> Work:
    x, w, b = leaf(8192, 2048, dtype=BF16), leaf(2048, dtype=BF16), leaf(2048, dtype=BF16)
    return lambda x, w, b: F.layer_norm(x, (2048,), w, b).float().square().mean(), (x, w, b), (x, w, b)


def _rms(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
    x32 = x.float()
    return (x32 * torch.rsqrt(x32.square().mean(-1, keepdim=True) + 1e-6)).to(x.dtype) * w


@graph
def rms_norm_residual_bf16() -> Work:
    def work(x: torch.Tensor, r: torch.Tensor, w: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        s = x + r
        return _rms(s, w), s

    return work, (rand(8192, 4096, dtype=BF16), rand(8192, 4096, dtype=BF16), rand(4096, dtype=BF16)), ()


@graph
def rms_norm_wide_f32() -> Work:
    return _rms, (rand(2048, 11008), rand(11008)), ()


@graph
def rms_norm_odd_bf16() -> Work:
    return _rms, (rand(8192, 4097, dtype=BF16), rand(4097, dtype=BF16)), ()


@graph
def rms_norm_gradients_f32() -> Work:
    x, w = leaf(8192, 2048), leaf(2048)
    return lambda x, w: _rms(x, w).square().mean(), (x, w), (x, w)


@graph
def group_norm_silu_bf16() -> Work:
    return (
        lambda x, w, b: F.silu(F.group_norm(x, 32, w, b)),
        (rand(16, 320, 64, 64, dtype=BF16), rand(320, dtype=BF16), rand(320, dtype=BF16)),
        (),
    )


@graph
def batch_norm_training_f32() -> Work:
    return lambda x: F.relu(F.batch_norm(x, None, None, training=True)), (rand(64, 64, 56, 56),), ()


# -- softmax and losses -----------------------------------------------------------------------------------------------


@graph
def softmax_masked_bf16() -> Work:
    mask = rand(1, 1, 1024, 1024) > 0
    return (
        lambda x, m: torch.softmax(x.masked_fill(m, -1e9).float(), -1).to(BF16),
        (rand(4, 16, 1024, 1024, dtype=BF16), mask),
        (),
    )


@graph
def softmax_odd_f32() -> Work:
    return lambda x: torch.softmax(x, -1), (rand(4096, 4097),), ()


@graph
def log_softmax_vocabulary_bf16() -> Work:
    return lambda x: F.log_softmax(x.float(), -1), (rand(1024, 50257, dtype=BF16),), ()


@graph
def cross_entropy_f32() -> Work:
    return F.cross_entropy, (rand(16384, 4000), torch.randint(0, 4000, (16384,))), ()


@graph
def cross_entropy_gradients_bf16() -> Work:
    x = leaf(2048, 50257, dtype=BF16)
    return lambda x, t: F.cross_entropy(x.float(), t), (x, torch.randint(0, 50257, (2048,))), (x,)


@graph
def smoothed_cross_entropy_gradients_f32() -> Work:
    x = leaf(8192, 1000)
    return lambda x, t: F.cross_entropy(x, t, label_smoothing=0.1), (x, torch.randint(0, 1000, (8192,))), (x,)


@graph
def kl_divergence_bf16() -> Work:
    def work(p: torch.Tensor, q: torch.Tensor) -> torch.Tensor:
        return F.kl_div(F.log_softmax(p.float(), -1), F.log_softmax(q.float(), -1), log_target=True, reduction="sum")

    return work, (rand(2048, 32000, dtype=BF16), rand(2048, 32000, dtype=BF16)), ()


@graph
def huber_loss_f32() -> Work:
    return lambda a, b: F.huber_loss(a, b), (rand(1 << 25), rand(1 << 25)), ()  # noqa: PLW0108


@graph
def binary_cross_entropy_gradients_f32() -> Work:
    x = leaf(8192, 4096)
    return lambda x, t: F.binary_cross_entropy_with_logits(x, t), (x, torch.rand(8192, 4096)), (x,)  # noqa: PLW0108


@graph
def cosine_similarity_bf16() -> Work:
    return (
        lambda a, b: F.cosine_similarity(a.float(), b.float(), -1),
        (rand(16384, 1536, dtype=BF16), rand(16384, 1536, dtype=BF16)),
        (),
    )


# -- variances, sums, searches ----------------------------------------------------------------------------------------


@graph
def variance_with_argmax_f32() -> Work:
    return lambda x: (x.var(-1), x.argmax(-1)), (rand(32768, 1777),), ()


@graph
def standardized_columns_f32() -> Work:
    return lambda x: (x - x.mean(0)) / x.std(0), (rand(16384, 2048),), ()


@graph
def sums_of_both_axes_bf16() -> Work:
    return lambda x: (x.float().sum(0), x.float().sum(1)), (rand(16384, 4096, dtype=BF16),), ()


@graph
def norm_of_everything_f32() -> Work:
    return lambda x: torch.linalg.vector_norm(x), (rand(1 << 26),), ()  # noqa: PLW0108


@graph
def largest_and_least_f32() -> Work:
    return lambda x: (x.amax(-1), x.amin(-1), x.abs().amax(0)), (rand(8192, 5000),), ()


@graph
def cumulative_sum_f32() -> Work:
    return lambda x: torch.cumsum(x * 0.5, -1), (rand(4096, 8192),), ()


@graph
def quantized_rows_bf16() -> Work:
    def work(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        scale = x.abs().amax(-1, keepdim=True).float() / 127
        return torch.clamp(torch.round(x.float() / scale), -127, 127).to(torch.int8), scale

    return work, (rand(16384, 4096, dtype=BF16),), ()


@graph
def fp8_rows_bf16() -> Work:
    def work(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        scale = x.abs().amax(-1, keepdim=True).float() / 448
        return (x.float() / scale).to(torch.float8_e4m3fn), scale

    return work, (rand(16384, 4096, dtype=BF16),), ()


# -- embeddings, rotary, gates ----------------------------------------------------------------------------------------


@graph
def embedding_positions_norm_bf16() -> Work:
    tokens = torch.randint(0, 50257, (16, 1024))
    table, places, w = rand(50257, 1024, dtype=BF16), rand(1024, 1024, dtype=BF16), rand(1024, dtype=BF16)
    return lambda t, e, p, w: F.layer_norm(F.embedding(t, e) + p, (1024,), w), (tokens, table, places, w), ()


@graph
def embedding_gradients_f32() -> Work:
    table = leaf(50257, 768)
    return lambda t, e: F.embedding(t, e).square().mean(), (torch.randint(0, 50257, (16, 1024)), table), (table,)


@graph
def rotary_bf16() -> Work:
    def work(q: torch.Tensor, k: torch.Tensor, c: torch.Tensor, s: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        def turned(x: torch.Tensor) -> torch.Tensor:
            a, b = x.chunk(2, -1)
            return x * c + torch.cat((-b, a), -1) * s

        return turned(q), turned(k)

    shape = (4, 32, 2048, 128)
    return work, (rand(*shape, dtype=BF16), rand(*shape, dtype=BF16), rand(2048, 128), rand(2048, 128)), ()


@graph
def swiglu_bf16() -> Work:
    return lambda g, u: F.silu(g) * u, (rand(8192, 11008, dtype=BF16), rand(8192, 11008, dtype=BF16)), ()


@graph
def geglu_halves_gradients_bf16() -> Work:
    x = leaf(8192, 8192, dtype=BF16)

    def work(x: torch.Tensor) -> torch.Tensor:
        a, b = x.chunk(2, -1)
        return (F.gelu(a) * b).float().mean()

    return work, (x,), (x,)


@graph
def gelu_bias_dropout_f32() -> Work:
    return lambda x, b: F.dropout(F.gelu(x + b), 0.0) * 2 + x, (rand(8192, 5120), rand(5120)), ()


@graph
def adam_step_f32() -> Work:
    def work(p: torch.Tensor, g: torch.Tensor, m: torch.Tensor, v: torch.Tensor) -> tuple[torch.Tensor, ...]:
        m = 0.9 * m + 0.1 * g
        v = 0.999 * v + 0.001 * g * g
        return p - 1e-3 * m / (v.sqrt() + 1e-8), m, v

    n = 1 << 25
    return work, (rand(n), rand(n), rand(n), rand(n).abs()), ()


@graph
def transposed_add_f32() -> Work:
    return lambda x, y: (x.t() + y).contiguous(), (rand(8191, 4097), rand(4097, 8191)), ()


# -- images and whole layers ------------------------------------------------------------------------------------------


@graph
def max_pooling_f32() -> Work:
    return lambda x: F.max_pool2d(F.relu(x), 3, 2, 1), (rand(64, 64, 112, 112),), ()


@graph
def average_pooling_upsampled_bf16() -> Work:
    return (
        lambda x: F.interpolate(F.avg_pool2d(x, 2), scale_factor=2, mode="nearest") + x,
        (rand(32, 128, 96, 96, dtype=BF16),),
        (),
    )


@graph
def bilinear_f32() -> Work:
    return (
        lambda x: F.interpolate(x, size=(225, 225), mode="bilinear", align_corners=False),
        (rand(16, 64, 112, 112),),
        (),
    )


class _Layer(nn.Module):
    """A layer of a transformer: attention and a gate, with norms before either."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.before, self.between = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 8 * width // 2), nn.Linear(2 * width, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        batch, length, width = x.shape
        q, k, v = self.qkv(self.before(x)).view(batch, length, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        scores = q @ k.transpose(-1, -2) / math.sqrt(width // self.heads)
        x = x + self.out((torch.softmax(scores, -1) @ v).transpose(1, 2).reshape(batch, length, width))
        a, b = self.up(self.between(x)).chunk(2, -1)
        return x + self.down(F.silu(a) * b)


@graph
def transformer_layer_gradients_bf16() -> Work:
    layer = _Layer(1024, 16).to(BF16)
    x = leaf(8, 1024, 1024, dtype=BF16)
    return lambda x: layer(x).float().square().mean(), (x,), (x, *layer.parameters())


@graph
def convolution_net_gradients_f32() -> Work:
    net = nn.Sequential(
        nn.Conv2d(3, 64, 3, 2, 1, bias=False), nn.BatchNorm2d(64), nn.ReLU(),
        nn.Conv2d(64, 128, 3, 2, 1, bias=False), nn.BatchNorm2d(128), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(128, 256, 3, 1, 1, bias=False), nn.GroupNorm(32, 256), nn.GELU(), nn.AdaptiveAvgPool2d(1),
        nn.Flatten(), nn.Linear(256, 1000),
    )  # fmt: skip
    x, t = rand(64, 3, 224, 224), torch.randint(0, 1000, (64,))
    return lambda x, t: F.cross_entropy(net(x), t), (x, t), tuple(net.parameters())
