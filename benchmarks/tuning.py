"""How long it takes to tune a kernel on the CPU: a product with 4-bit weights, 36 configurations, 18 different codes.

python benchmarks/tuning.py            # in an empty cache; --size 512 for M, N and K
"""

from __future__ import annotations

import argparse
import tempfile
import time
from itertools import product

import numpy as np

import weft
import weft.language as tl

CONFIGS = [
    weft.Config({"BLOCK_M": m, "BLOCK_N": n, "BLOCK_K": k}, num_warps=w)
    for m, n, k, w in product((16, 32, 64), (32, 64, 128), (32, 64), (4, 8))
]


@weft.autotune(CONFIGS, key=["m", "n", "k"])
@weft.jit
def int4_matmul(
    a, b, scales, c, m, n, k, GROUP: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr
):
    """c = a (m x k) times b (k x n), of which eight rows are packed in a word, with a scale for each group of rows."""
    rows = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    columns = tl.program_id(1) * BLOCK_N + tl.arange(0, BLOCK_N)
    inner = tl.arange(0, BLOCK_K)
    total = tl.zeros((BLOCK_M, BLOCK_N), tl.float32)
    for start in range(0, k, BLOCK_K):
        at = start + inner
        left = tl.load(a + rows[:, None] * k + at[None, :], mask=rows[:, None] < m, other=0.0)
        words = tl.load(b + (at // 8)[:, None] * n + columns[None, :])
        nibbles = (words >> ((at % 8) * 4)[:, None]) & 15
        scale = tl.load(scales + (at // GROUP)[:, None] * n + columns[None, :])
        total += tl.dot(left, (nibbles - 8).to(tl.float32) * scale)
    tl.store(c + rows[:, None] * n + columns[None, :], total, mask=rows[:, None] < m)


def main() -> None:
    """Tune once, check the product, and print where the time went."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--size", type=int, default=512)
    n = parser.parse_args().size
    rng = np.random.default_rng(0)
    a = rng.standard_normal((n, n), np.float32)
    quantised = rng.integers(0, 16, (n, n)).astype(np.int32)
    shifts = 4 * np.arange(8, dtype=np.int32)[None, :, None]
    packed = np.bitwise_or.reduce(quantised.reshape(n // 8, 8, n) << shifts, axis=1).astype(np.int32)
    scales = rng.uniform(0.5, 1.5, (n // 64, n)).astype(np.float32)
    c = np.zeros((n, n), np.float32)
    with tempfile.TemporaryDirectory() as folder:
        weft.knobs.cache.dir = folder
        begin = time.perf_counter()
        int4_matmul[lambda meta: (weft.cdiv(n, meta["BLOCK_M"]), n // meta["BLOCK_N"])](
            a, packed, scales, c, n, n, n, GROUP=64
        )
        seconds = time.perf_counter() - begin
    expected = a @ ((quantised - 8) * np.repeat(scales, 64, axis=0))
    assert np.abs(c - expected).max() < 1e-4 * np.abs(expected).max()
    print(f"{seconds:.1f} s for {len(CONFIGS)} configurations of {n} x {n} x {n}; best {int4_matmul.best_config}")


if __name__ == "__main__":
    main()
