"""Graphs more for benchmarks/inductor.py (`--more`), which the compiler was not tuned by: neighbours of its own.

python benchmarks/inductor.py --more --threads 1
"""

from __future__ import annotations

from collections.abc import Callable

import torch
import torch.nn.functional as F

from inductor_graphs import BF16, Work, rand

F16 = torch.float16
MORE: list[tuple[str, Callable[[], Work]]] = []


def graph(make: Callable[[], Work]) -> Callable[[], Work]:
    """Registers a graph under its name."""
    MORE.append((make.__name__, make))
    return make


@graph
def kl_div() -> Work:
    return (
        lambda x, y: F.kl_div(F.log_softmax(x, -1), F.softmax(y, -1), reduction="batchmean"),
        (rand(1024, 2000), rand(1024, 2000)),
        (),
    )


@graph
def mse_loss() -> Work:
    return F.mse_loss, (rand(1 << 20), rand(1 << 20)), ()


@graph
def l1_smooth_rows() -> Work:
    return lambda x, y: F.smooth_l1_loss(x, y, reduction="none").mean(1), (rand(2048, 512), rand(2048, 512)), ()


@graph
def rms_gradient() -> Work:
    x, w = rand(2048, 1024).requires_grad_(), rand(1024).requires_grad_()
    return lambda x, w: (x * torch.rsqrt(x.square().mean(-1, keepdim=True) + 1e-6) * w).square().mean(), (x, w), (x, w)


@graph
def mlp_bf16_act() -> Work:
    def work(a: torch.Tensor, b: torch.Tensor, c: torch.Tensor) -> torch.Tensor:
        return torch.tanh(F.gelu(a) + b) * torch.sigmoid(c)

    return work, (rand(1024, 2048, dtype=BF16), rand(2048, dtype=BF16), rand(1024, 2048, dtype=BF16)), ()


@graph
def avg_pool() -> Work:
    return lambda x: F.avg_pool2d(x, 3, 2, 1), (rand(8, 32, 112, 112),), ()


@graph
def global_pool() -> Work:
    return lambda x: F.relu(x).mean((2, 3)), (rand(32, 256, 28, 28),), ()


@graph
def cumsum_rows() -> Work:
    return lambda x: torch.cumsum(x * 2, 1) / 3, (rand(512, 4000),), ()


@graph
def cumsum_cols() -> Work:
    return lambda x: torch.cumsum(x, 0), (rand(512, 1024),), ()


@graph
def one_hot() -> Work:
    return lambda i: F.one_hot(i, 100).float() * 2, (torch.randint(0, 100, (8192,)),), ()


@graph
def index_add() -> Work:
    return (
        lambda x, i, y: x.index_add(0, i, y) + 1,
        (rand(4096, 128), torch.randint(0, 4096, (2048,)), rand(2048, 128)),
        (),
    )


@graph
def scatter_add() -> Work:
    return (
        lambda x, i, y: torch.scatter_add(x, 1, i, y * 2),
        (rand(1024, 512), torch.randint(0, 512, (1024, 512)), rand(1024, 512)),
        (),
    )


@graph
def embedding_gradient() -> Work:
    t = rand(5000, 256).requires_grad_()
    return lambda t, i: F.embedding(i, t).square().mean(), (t, torch.randint(0, 5000, (4096,))), (t,)


@graph
def batch_norm_gradient() -> Work:
    x, w, b = rand(16, 32, 32, 32).requires_grad_(), rand(32).requires_grad_(), rand(32).requires_grad_()
    return (
        lambda x, w, b: F.relu(F.batch_norm(x, None, None, w, b, training=True)).square().mean(),
        (x, w, b),
        (x, w, b),
    )


@graph
def logsumexp_cols() -> Work:
    return lambda x: torch.logsumexp(x, 0), (rand(1024, 1024),), ()


@graph
def int64_masks() -> Work:
    def work(x: torch.Tensor, n: torch.Tensor) -> torch.Tensor:
        i = torch.arange(x.shape[1])
        return torch.where(i[None, :] < n[:, None], x, torch.zeros(())).sum(1)

    return work, (rand(2048, 1024), torch.randint(0, 1024, (2048,))), ()


@graph
def dropout_add() -> Work:
    return (
        lambda x, y, m: x + y * m.to(torch.float32) / 0.9,
        (rand(2048, 1024), rand(2048, 1024), torch.rand(2048, 1024) > 0.1),
        (),
    )


@graph
def attention_bias() -> Work:
    def work(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
        s = q @ k.transpose(-1, -2) * 0.125 + bias
        return torch.softmax(s, -1) @ v

    return work, (rand(2, 8, 256, 64), rand(2, 8, 256, 64), rand(2, 8, 256, 64), rand(8, 256, 256)), ()


@graph
def softmax_bf16() -> Work:
    return lambda x: torch.softmax(x * 0.3, -1), (rand(4096, 512, dtype=BF16),), ()


@graph
def layer_norm_bf16() -> Work:
    return (
        lambda x, w, b: F.layer_norm(x, (1024,), w, b),
        (rand(2048, 1024, dtype=BF16), rand(1024, dtype=BF16), rand(1024, dtype=BF16)),
        (),
    )


@graph
def softmax_gradient() -> Work:
    x = rand(1024, 1024).requires_grad_()
    return lambda x, y: (torch.softmax(x, -1) * y).sum(), (x, rand(1024, 1024)), (x,)


@graph
def group_norm_gradient() -> Work:
    x, w, b = rand(8, 64, 32, 32).requires_grad_(), rand(64).requires_grad_(), rand(64).requires_grad_()
    return lambda x, w, b: F.group_norm(x, 8, w, b).square().mean(), (x, w, b), (x, w, b)


@graph
def fp16_gate() -> Work:
    return lambda x, y: F.silu(x) * y + x, (rand(2048, 2048, dtype=F16), rand(2048, 2048, dtype=F16)), ()


@graph
def cat_channels() -> Work:
    return lambda x, y: torch.cat((F.relu(x), torch.sigmoid(y)), 1), (rand(64, 4096), rand(64, 8192)), ()


@graph
def cosine_similarity() -> Work:
    return lambda x, y: F.cosine_similarity(x, y, dim=-1), (rand(4096, 256), rand(4096, 256)), ()


@graph
def max_rows_small() -> Work:
    return lambda x: x.max(1), (rand(16384, 64),), ()


@graph
def upsample() -> Work:
    return lambda x: F.interpolate(x, scale_factor=2.0, mode="bilinear"), (rand(2, 16, 64, 64),), ()


@graph
def permute_contig() -> Work:
    return lambda x: (x.permute(0, 2, 1, 3) * 2).contiguous(), (rand(4, 256, 8, 64),), ()


@graph
def instance_norm() -> Work:
    return F.instance_norm, (rand(8, 64, 56, 56),), ()


@graph
def sgd_bf16() -> Work:
    return (
        lambda p, g, m: (p - 0.1 * (0.9 * m + g), 0.9 * m + g),
        (rand(1 << 20, dtype=BF16), rand(1 << 20, dtype=BF16), rand(1 << 20, dtype=BF16)),
        (),
    )


@graph
def full_sum_bf16() -> Work:
    return lambda x: x.float().sum(), (rand(1 << 21, dtype=BF16),), ()


@graph
def mean_std_rows() -> Work:
    return lambda x: (x - x.mean(1, keepdim=True)) / (x.std(1, keepdim=True) + 1e-5), (rand(1024, 1500),), ()


@graph
def embedding_scaled() -> Work:
    return lambda t, i: F.embedding(i, t) * 2 + 1, (rand(5000, 256), torch.randint(0, 5000, (4096,))), ()


@graph
def rows_by_index() -> Work:
    return lambda x, i, y: x[i] + y, (rand(4096, 300), torch.randint(0, 4096, (2048,)), rand(2048, 300)), ()


@graph
def nll() -> Work:
    return F.nll_loss, (rand(4096, 100), torch.randint(0, 100, (4096,))), ()


@graph
def index_put() -> Work:
    return lambda x, i, y: x.index_put((i,), y), (rand(4096, 128), torch.randperm(4096)[:2048], rand(2048, 128)), ()


@graph
def bias_300() -> Work:
    return lambda x, b: torch.relu(x + b), (rand(2048, 300), rand(300)), ()


@graph
def bias_1000() -> Work:
    return lambda x, b: torch.relu(x + b), (rand(1024, 1000), rand(1000)), ()


@graph
def scale_rows_300() -> Work:
    return lambda x, b: torch.relu(x * b[:, None]), (rand(2048, 300), rand(2048)), ()


@graph
def nchw_bias_28() -> Work:
    return lambda x, b: torch.relu(x + b[None, :, None, None]), (rand(8, 64, 28, 28), rand(64)), ()


@graph
def nchw_bias_7() -> Work:
    return lambda x, b: torch.relu(x + b[None, :, None, None]), (rand(32, 512, 7, 7), rand(512)), ()


@graph
def slice_300() -> Work:
    return lambda x: x[:, 10:250] * 2, (rand(2048, 300),), ()
