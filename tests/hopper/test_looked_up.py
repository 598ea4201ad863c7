"""Descriptors of matrices whose addresses and sizes are in memory, as in grouped products."""

from __future__ import annotations

import numpy as np

import weft
import weft.language as tl


@weft.jit
def looked_up(table, sizes, c):  # type: ignore[no-untyped-def]
    """c = a b^T of 64 rows and columns each."""
    k = tl.load(sizes)
    a = tl.load(table).to(tl.pointer_type(tl.float16))
    b = tl.load(table + 1).to(tl.pointer_type(tl.float16))
    left = tl.make_tensor_descriptor(a, shape=[64, k], strides=[k, 1], block_shape=[64, 64])
    right = tl.make_tensor_descriptor(b, shape=[64, k], strides=[k, 1], block_shape=[64, 64])
    acc = tl.zeros((64, 64), tl.float32)
    for at in range(0, k, 64):
        acc = tl.dot(left.load([0, at]), right.load([0, at]).T, acc)
    i = tl.arange(0, 64)
    tl.store(c + i[:, None] * 64 + i[None, :], acc)


def test_what_a_descriptor_requires_is_known_of_addresses_in_memory() -> None:
    """Was loaded element by element: nothing said that addresses and strides are multiples of 16 bytes."""
    args = np.zeros(2, np.int64), np.zeros(1, np.int32), np.zeros((64, 64), np.float32)
    made = looked_up.warmup(*args, grid=(1,), target="cuda:90", num_stages=3)
    assert made.remarks.of("pipelined") and not made.remarks.of("not pipelined")


def test_a_tensor_in_memory_is_multiplied() -> None:
    a, b = (np.random.default_rng(seed).standard_normal((64, 192)).astype(np.float16) for seed in range(2))
    c = np.zeros((64, 64), np.float32)
    looked_up[1,](np.array([a.ctypes.data, b.ctypes.data]), np.array([192], np.int32), c)
    np.testing.assert_allclose(c, a.astype(np.float32) @ b.astype(np.float32).T, atol=1e-2)
