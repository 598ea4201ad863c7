"""The kernels of `amd_counts.py` that are in no other file here; `sides.jit` and `sides.tl` are Weft's or Triton's."""

# mypy: ignore-errors
from sides import jit, tl


@jit
def product(
    a, b, c, M, N, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, COLUMNS: tl.constexpr, ACC: tl.constexpr
):  # fmt: skip
    """c = a @ b; with COLUMNS b lies column by column."""
    m = tl.program_id(0) * BM + tl.arange(0, BM)
    n = tl.program_id(1) * BN + tl.arange(0, BN)
    k = tl.arange(0, BK)
    left = a + m[:, None] * K + k[None, :]
    right = b + k[:, None] + n[None, :] * K if COLUMNS else b + k[:, None] * N + n[None, :]
    acc = tl.zeros((BM, BN), dtype=ACC)
    for _ in range(0, K, BK):
        acc = tl.dot(tl.load(left), tl.load(right), acc, out_dtype=ACC)
        left += BK
        right += BK if COLUMNS else BK * N
    tl.store(c + m[:, None] * N + n[None, :], acc.to(c.dtype.element_ty))


@jit
def picked(x, index, out, N: tl.constexpr):
    """Each row's elements in an order that another row says."""
    row = tl.program_id(0) * N
    i = tl.arange(0, N)
    tl.store(out + row + i, tl.gather(tl.load(x + row + i), tl.load(index + row + i), 0))


@jit
def row_sums(x, out, n, M: tl.constexpr, N: tl.constexpr):
    """out[i] = sum of x[i, :]."""
    rows = tl.program_id(0) * M + tl.arange(0, M)
    tl.store(out + rows, tl.sum(tl.load(x + rows[:, None] * n + tl.arange(0, N)[None, :]), axis=1))
