"""Products of 8-bit and 4-bit floats: fp8 operands, and `dot_scaled` on microscaling data.

fp8 (e4m3: 4 bits of exponent, 3 of mantissa) arrays come from `ml_dtypes`; `tl.dot` multiplies them exactly and sums in
float32.

Microscaling goes further: 32 neighbours along K share one power-of-two scale, stored as its exponent plus 127 in one
byte, and the values can then be as small as 4 bits (e2m1: 0, 0.5, 1, 1.5, 2, 3, 4, 6 and their negatives), two in a
byte, the first in the low half. `tl.dot_scaled` takes values, scales and the format's name for each side.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

import weft
import weft.language as tl
from common import E4M3, Array, Work, main, normal

E2M1 = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6, 0, -0.5, -1, -1.5, -2, -3, -4, -6])


@weft.jit
def fp8_kernel(a_ptr, b_ptr, c_ptr, N, K, BLOCK: tl.constexpr):
    m = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    n = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    acc = tl.zeros((BLOCK, BLOCK), tl.float32)
    for start in range(0, K, BLOCK):
        k = start + tl.arange(0, BLOCK)
        a = tl.load(a_ptr + m[:, None] * K + k[None, :])
        b = tl.load(b_ptr + k[:, None] * N + n[None, :])
        acc = tl.dot(a, b, acc)
    tl.store(c_ptr + m[:, None] * N + n[None, :], acc)


@weft.jit
def mxfp4_kernel(a_ptr, a_scale_ptr, b_ptr, b_scale_ptr, c_ptr, N, K, BLOCK: tl.constexpr):
    m = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    n = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    acc = tl.zeros((BLOCK, BLOCK), tl.float32)
    for start in range(0, K, BLOCK):
        packed = start // 2 + tl.arange(0, BLOCK // 2)
        scales = start // 32 + tl.arange(0, BLOCK // 32)
        a = tl.load(a_ptr + m[:, None] * (K // 2) + packed[None, :])
        b = tl.load(b_ptr + packed[:, None] * N + n[None, :])
        a_scale = tl.load(a_scale_ptr + m[:, None] * (K // 32) + scales[None, :])
        b_scale = tl.load(b_scale_ptr + n[:, None] * (K // 32) + scales[None, :])
        acc = tl.dot_scaled(a, a_scale, "e2m1", b, b_scale, "e2m1", acc)
    tl.store(c_ptr + m[:, None] * N + n[None, :], acc)


def fp8_matmul(a: Array, b: Array, c: Array) -> None:
    """c = a @ b for e4m3 operands whose sides are multiples of 64."""
    M, N = c.shape
    fp8_kernel[(M // 64, N // 64)](a, b, c, N, a.shape[1], BLOCK=64)


def mxfp4_matmul(a: Array, a_scale: Array, b: Array, b_scale: Array, c: Array) -> None:
    """c = (a * scale of a) @ (b * scale of b) for packed 4-bit operands."""
    M, N = c.shape
    mxfp4_kernel[(M // 64, N // 64)](a, a_scale, b, b_scale, c, N, 2 * a.shape[1], BLOCK=64)


def unpack(packed: Array, axis: int) -> Array:
    """4-bit values as float64, along K."""
    halves = np.stack([E2M1[packed & 15], E2M1[packed >> 4]], axis=axis + 1)
    return halves.reshape([2 * size if i == axis else size for i, size in enumerate(packed.shape)])


def works() -> Iterator[Work]:
    """512 cubed in both."""
    size = 512
    a8, b8 = normal(size, size, dtype=E4M3), normal(size, size, dtype=E4M3, seed=1)
    c8 = np.zeros((size, size), np.float32)
    yield Work(
        f"{size}x{size}x{size} fp8 e4m3",
        lambda: fp8_matmul(a8, b8, c8),
        lambda: c8,
        lambda: a8.astype(np.float64) @ b8.astype(np.float64),
        tolerance=1e-4,
        numpy=lambda: a8.astype(np.float32) @ b8.astype(np.float32),
        flops=2 * size**3,
    )

    rng = np.random.default_rng(0)
    a, b = rng.integers(0, 256, (size, size // 2), np.uint8), rng.integers(0, 256, (size // 2, size), np.uint8)
    a_scale, b_scale = (rng.integers(124, 130, (size, size // 32), np.uint8) for _ in range(2))
    c = np.zeros((size, size), np.float32)

    def expand(scale: Array) -> Array:
        return np.repeat(2.0 ** (scale.astype(int) - 127), 32, axis=1)

    def plain() -> Array:
        result: Array = (unpack(a, 1) * expand(a_scale)) @ (unpack(b, 0) * expand(b_scale).T)
        return result

    yield Work(
        f"{size}x{size}x{size} mxfp4",
        lambda: mxfp4_matmul(a, a_scale, b, b_scale, c),
        lambda: c,
        plain,
        tolerance=1e-4,
        numpy=plain,
        flops=2 * size**3,
    )


if __name__ == "__main__":
    main(__file__, works)
