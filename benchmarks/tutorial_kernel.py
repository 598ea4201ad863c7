"""The product of docs/tutorial_explain.md, step by step; tutorial_times.py measures what is predicted there."""

# mypy: ignore-errors
from sides import jit, tl


@jit
def product(
    a, b, c, M, N, K, bk, bn, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr, PRECISION: tl.constexpr
):  # fmt: skip
    """c = a @ b; the strides of b say along which dimension it lies."""
    m = tl.program_id(0) * BM + tl.arange(0, BM)
    n = tl.program_id(1) * BN + tl.arange(0, BN)
    k = tl.arange(0, BK)
    total = tl.zeros((BM, BN), tl.float32)
    for start in range(0, K, BK):
        x = tl.load(a + m[:, None] * K + (start + k)[None, :])
        y = tl.load(b + (start + k)[:, None] * bk + n[None, :] * bn)
        total = tl.dot(x, y, total, input_precision=PRECISION)
    tl.store(c + m[:, None] * N + n[None, :], total.to(c.dtype.element_ty))


SIZE = 4096
LARGE = {"BM": 128, "BN": 128, "BK": 32}
STEPS = (
    ("as it was written", "fp32", (SIZE, 1), {"BM": 32, "BN": 32, "BK": 32, "PRECISION": "ieee"}),
    ("tf32", "fp32", (SIZE, 1), {"BM": 32, "BN": 32, "BK": 32, "PRECISION": "tf32"}),
    ("larger blocks", "fp32", (SIZE, 1), {**LARGE, "PRECISION": "tf32"}),
    ("b transposed", "fp32", (1, SIZE), {**LARGE, "PRECISION": "tf32"}),
    ("operands in f16", "fp16", (SIZE, 1), {"BM": 128, "BN": 128, "BK": 64, "PRECISION": "tf32"}),
    ("8 warps", "fp16", (SIZE, 1), {"BM": 128, "BN": 256, "BK": 64, "PRECISION": "tf32", "num_warps": 8}),
)
"""What is changed, the type of all arrays, the strides of b, and the configuration."""
