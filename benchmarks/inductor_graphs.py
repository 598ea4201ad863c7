"""The graphs of benchmarks/inductor.py: what people give to `torch.compile`, with the arguments they are called with.

    >>> [name for name, _ in GRAPHS][:2]
    ['gelu_bias', 'sigmoid_gate']

A graph is a function that makes the work: what is compiled, its arguments, and the tensors whose gradients are wanted,
if any: then it gives a loss, and runs forwards and backwards.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import nn

BF16 = torch.bfloat16
Work = tuple[Callable[..., Any], tuple[Any, ...], Sequence[torch.Tensor]]
GRAPHS: list[tuple[str, Callable[[], Work]]] = []


def graph(make: Callable[[], Work]) -> Callable[[], Work]:
    """Registers a graph under its name."""
    GRAPHS.append((make.__name__, make))
    return make


def rand(*shape: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    """Normal numbers."""
    return torch.randn(*shape, dtype=dtype)


# -- pointwise --------------------------------------------------------------------------------------------------------


@graph
def gelu_bias() -> Work:
    return lambda x, b: F.gelu(x + b), (rand(2048, 1024), rand(1024)), ()


@graph
def sigmoid_gate() -> Work:
    return lambda x, y: torch.tanh(x) * torch.sigmoid(y) + x, (rand(1 << 20), rand(1 << 20)), ()


@graph
def swiglu_bf16() -> Work:
    return lambda g, u: F.silu(g) * u, (rand(2048, 2816, dtype=BF16), rand(2048, 2816, dtype=BF16)), ()


@graph
def gelu_tanh_bf16() -> Work:
    return lambda x: F.gelu(x, approximate="tanh"), (rand(1024, 3072, dtype=BF16),), ()


@graph
def rotary() -> Work:
    def work(x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
        a, b = x.chunk(2, dim=-1)
        return x * cos + torch.cat((-b, a), dim=-1) * sin

    return work, (rand(4, 8, 512, 64), rand(512, 64), rand(512, 64)), ()


@graph
def transposed_add() -> Work:
    return lambda x, y: (x.t() + y).contiguous(), (rand(1024, 1024), rand(1024, 1024)), ()


@graph
def where_int64() -> Work:
    def work(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return torch.where((x & 3) == 0, x * y + 7, y // 3)

    return work, (torch.randint(0, 1000, (1 << 19,)), torch.randint(0, 1000, (1 << 19,))), ()


@graph
def adam_step() -> Work:
    def work(p: torch.Tensor, g: torch.Tensor, m: torch.Tensor, v: torch.Tensor) -> Any:
        m = 0.9 * m + 0.1 * g
        v = 0.999 * v + 0.001 * g * g
        return p - 1e-3 * (m / 0.1) / ((v / 0.001).sqrt() + 1e-8), m, v

    return work, (rand(1 << 20), rand(1 << 20), rand(1 << 20), rand(1 << 20).abs()), ()


@graph
def max_pool() -> Work:
    return lambda x: F.relu(F.max_pool2d(x, 2)), (rand(8, 32, 128, 128),), ()


# -- reductions -------------------------------------------------------------------------------------------------------


@graph
def sum_rows() -> Work:
    return lambda x: (x * x).sum(1), (rand(4096, 1000),), ()


@graph
def sum_columns() -> Work:
    return lambda x: x.abs().sum(0), (rand(4096, 1000),), ()


@graph
def variance() -> Work:
    return lambda x: x.var(1), (rand(2048, 3000),), ()


@graph
def argmax_rows() -> Work:
    return lambda x: (x * 2).argmax(1), (rand(1024, 5000),), ()


@graph
def logsumexp_rows() -> Work:
    return lambda x: torch.logsumexp(x, 1), (rand(1024, 4096),), ()


@graph
def cumulative() -> Work:
    return lambda x: torch.cumsum(x + 1, 1), (rand(1024, 2048),), ()


# -- norms and softmax ------------------------------------------------------------------------------------------------


@graph
def layer_norm() -> Work:
    return lambda x, w, b: F.layer_norm(x, (1000,), w, b), (rand(4096, 1000), rand(1000), rand(1000)), ()


@graph
def layer_norm_gradient() -> Work:
    x, w, b = (rand(*shape).requires_grad_() for shape in ((2048, 768), (768,), (768,)))
    return lambda x, w, b: F.layer_norm(x, (768,), w, b).square().mean(), (x, w, b), (x, w, b)


@graph
def rms_norm_residual_bf16() -> Work:
    def work(x: torch.Tensor, r: torch.Tensor, w: torch.Tensor) -> Any:
        h = x + r
        wide = h.float()
        return (wide * torch.rsqrt(wide.square().mean(-1, keepdim=True) + 1e-6)).to(BF16) * w, h

    return work, (rand(2048, 2048, dtype=BF16), rand(2048, 2048, dtype=BF16), rand(2048, dtype=BF16)), ()


@graph
def group_norm() -> Work:
    return lambda x, w, b: F.silu(F.group_norm(x, 8, w, b)), (rand(8, 64, 64, 64), rand(64), rand(64)), ()


@graph
def batch_norm_relu() -> Work:
    def work(x: torch.Tensor, w: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        return F.relu(F.batch_norm(x, None, None, w, b, training=True))

    return work, (rand(16, 64, 56, 56), rand(64), rand(64)), ()


@graph
def softmax_gelu() -> Work:
    return lambda x, w: torch.softmax(F.gelu(x * w + 1), 1), (rand(2000, 3000), rand(3000)), ()


@graph
def masked_softmax() -> Work:
    def work(s: torch.Tensor) -> torch.Tensor:
        keep = torch.ones(512, 512, dtype=torch.bool).tril()
        return torch.softmax((s * 0.125).masked_fill(~keep, -math.inf), -1)

    return work, (rand(16, 512, 512),), ()


# -- losses -----------------------------------------------------------------------------------------------------------


@graph
def huber_loss() -> Work:
    return F.huber_loss, (rand(1 << 20), rand(1 << 20)), ()


@graph
def binary_cross_entropy() -> Work:
    return F.binary_cross_entropy_with_logits, (rand(1 << 19), torch.rand(1 << 19)), ()


@graph
def cross_entropy_gradient() -> Work:
    x = rand(512, 8000).requires_grad_()
    return F.cross_entropy, (x, torch.randint(0, 8000, (512,))), (x,)


# -- embeddings and indices -------------------------------------------------------------------------------------------


@graph
def embedding_norm() -> Work:
    def work(ids: torch.Tensor, table: torch.Tensor, place: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
        return F.layer_norm(table[ids] + place, (512,), w)

    return work, (torch.randint(0, 10000, (8, 256)), rand(10000, 512), rand(256, 512), rand(512)), ()


@graph
def gather_columns() -> Work:
    return lambda x, i: torch.gather(x, 1, i).sigmoid(), (rand(1024, 2048), torch.randint(0, 2048, (1024, 512))), ()


# -- networks ---------------------------------------------------------------------------------------------------------


@graph
def attention() -> Work:
    def work(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor) -> torch.Tensor:
        scores = q @ k.transpose(-1, -2) / 8 + torch.full((256, 256), -math.inf).triu(1)
        return torch.softmax(scores, -1) @ v

    return work, (rand(4, 8, 256, 64), rand(4, 8, 256, 64), rand(4, 8, 256, 64)), ()


@graph
def mlp_gradient() -> Work:
    net = nn.Sequential(nn.Linear(256, 1024), nn.GELU(), nn.Linear(1024, 1024), nn.SiLU(), nn.Linear(1024, 10))

    def work(x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return F.cross_entropy(net(x), y)

    return work, (rand(512, 256), torch.randint(0, 10, (512,))), list(net.parameters())


class Transformer(nn.Module):
    """A block of GPT."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.first, self.second = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        b, n, width = x.shape
        q, k, v = (t.view(b, n, self.heads, -1).transpose(1, 2) for t in self.qkv(self.first(x)).chunk(3, -1))
        scores = q @ k.transpose(-1, -2) / math.sqrt(width // self.heads)
        keep = torch.ones(n, n, dtype=torch.bool).tril()
        mixed = torch.softmax(scores.masked_fill(~keep, -math.inf), -1) @ v
        x = x + self.out(mixed.transpose(1, 2).reshape(b, n, width))
        return x + self.down(F.gelu(self.up(self.second(x))))


@graph
def transformer_gradient() -> Work:
    block = Transformer(256, 4)

    def work(x: torch.Tensor) -> torch.Tensor:
        return block(x).square().mean()

    return work, (rand(4, 256, 256),), list(block.parameters())
