"""Descriptors whose sizes come from memory, as in products of which one launch has several."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import weft
import weft.language as tl


@weft.jit
def product(
    a: Any, b: Any, c: Any, sizes: Any, lda: Any, ldb: Any, ldc: Any,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
) -> None:  # fmt: skip
    m, n, k = tl.load(sizes), tl.load(sizes + 1), tl.load(sizes + 2)
    left = tl.make_tensor_descriptor(a, shape=[m, k], strides=[lda, 1], block_shape=[BM, BK])
    right = tl.make_tensor_descriptor(b, shape=[n, k], strides=[ldb, 1], block_shape=[BN, BK])
    out = tl.make_tensor_descriptor(c, shape=[m, n], strides=[ldc, 1], block_shape=[BM, BN])
    i, j = tl.program_id(0) * BM, tl.program_id(1) * BN
    acc = tl.zeros((BM, BN), tl.float32)
    for at in range(tl.cdiv(k, BK)):
        acc += tl.dot(left.load([i, at * BK]), right.load([j, at * BK]).T)
    out.store([i, j], acc.to(tl.float16))


def _compiled(m: int, n: int, k: int, target: str) -> Any:
    a, b, c = (weft.like((x, 128), "fp16") for x in (m, n, m))
    more = {"BM": 64, "BN": 64, "BK": 64, "num_warps": 4, "num_stages": 3}
    return product.warmup(a, b, c, weft.like((3,), "i32"), 128, 128, 128, **more, grid=(2, 2), target=target)


@pytest.mark.parametrize(("m", "n", "k", "target"), [(70, 70, 100, "sim:cuda:80"), (70, 61, 67, "sim:cuda:90")])
def test_is_right_whatever_the_sizes_are(m: int, n: int, k: int, target: str) -> None:
    rng = np.random.default_rng(m + k)
    a, b = (rng.standard_normal((128, 128)).astype(np.float16) for _ in range(2))  # what lies outside is no zero
    c = np.full((128, 128), 7, np.float16)
    more = {"BM": 64, "BN": 64, "BK": 64, "num_warps": 4, "num_stages": 3}
    sizes = np.array([m, n, k], np.int32)
    with weft.target(target):
        product[(2, 2)](a, b, c, sizes, 128, 128, 128, **more)
    expected = np.full_like(c, 7)
    right = a[:m, :k].astype(np.float32) @ b[:n, :k].T.astype(np.float32)
    expected[:m, :n] = right.astype(np.float16)
    np.testing.assert_allclose(c.astype(np.float32), expected.astype(np.float32), rtol=1e-2, atol=1e-2)


def test_rows_that_end_anywhere_are_copied_and_stored_by_16_bytes() -> None:
    """Threads of grouped products with descriptors copied and stored elements one by one: a quarter of the speed."""
    ptx = _compiled(128, 128, 128, "cuda:90").asm["ptx"]
    assert "cp.async.cg.shared.global" in ptx
    assert "st.global.v4.b32" in ptx
