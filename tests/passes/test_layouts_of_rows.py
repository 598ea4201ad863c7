"""What a column is computed in for want of better says nothing about the tile that it is spread over.

    state = state * exp(decay)[:, None]        # exp of 128 x 1: lanes along the 128, one element each

A layout of 128 x 1 for the state would have each of its 32 columns summed over all the lanes; each lane has 8 rows
of 4 columns instead.
"""

from __future__ import annotations

import re

import numpy as np

import weft
import weft.language as tl


@weft.jit
def decaying_sums(q, k, v, decay, out, steps, K: tl.constexpr, V: tl.constexpr):
    rows, columns = tl.arange(0, K), tl.arange(0, V)
    state = tl.zeros((K, V), tl.float32)
    for t in range(steps):
        state *= tl.exp(tl.load(decay + t * K + rows)[:, None])
        state += tl.load(k + t * K + rows)[:, None] * tl.load(v + t * V + columns)[None, :]
        tl.store(out + t * V + columns, tl.sum(state * tl.load(q + t * K + rows)[:, None], 0))


def test_a_column_does_not_lay_out_the_tile() -> None:
    f = weft.MockTensor("fp32")
    kernel = decaying_sums.warmup(f, f, f, f, f, 64, 128, 32, grid=(1,), target="cuda:90")
    text = str(kernel.asm["ttgir"])
    carried = re.search(r"scf\.for .*-> \((.*)\) : i32", text)
    assert carried and "tensor<128x32xf32, " in carried[1]
    name = re.search(r"tensor<128x32xf32, (#\w+)>", carried[1])
    assert name and f"{name[1]} = #ttg.blocked<{{sizePerThread = [1, 4], threadsPerWarp = [4, 8]" in text
    assert str(kernel.asm["ptx"]).count("shfl.sync") <= 16  # of the sums there were 160


def test_it_is_computed_so() -> None:
    rng = np.random.default_rng(1)
    steps, size, columns = 5, 64, 16
    q, k, decay = [rng.standard_normal((steps, size)).astype(np.float32) for _ in range(3)]
    v, out = rng.standard_normal((steps, columns)).astype(np.float32), np.zeros((steps, columns), np.float32)
    state = np.zeros((size, columns))
    expected = []
    for t in range(steps):
        state = state * np.exp(decay[t].astype(np.float64))[:, None] + np.outer(k[t], v[t])
        expected.append(q[t] @ state)
    with weft.target("sim:cuda:90"):
        decaying_sums[(1,)](q, k, v, decay, out, steps, size, columns)
    np.testing.assert_allclose(out, expected, rtol=1e-4, atol=1e-4)


@weft.jit
def masses(labels, weight, out, width, X: tl.constexpr, R: tl.constexpr):
    """As PyTorch's Inductor writes the gradient of a cross entropy: nothing in its first loop touches memory."""
    x = tl.program_id(0) * X + tl.arange(0, X)[:, None]
    label, w = tl.load(labels + x), tl.load(weight)
    sums = tl.full([X, R], 0, tl.float32)
    for start in tl.range(0, width, R):
        r = start + tl.arange(0, R)[None, :]
        found = tl.where(label == r, -1.0, 0.0) * w
        sums = tl.where(r < width, sums + found, sums)
    tl.store(out + x, tl.sum(sums, 1)[:, None])


def test_a_single_element_does_not_lay_out_a_row() -> None:
    """A layout of [1, 1], whose threads all have the element, would have each thread sum the whole row."""
    i, f = weft.MockTensor("i64"), weft.MockTensor("fp32")
    kernel = masses.warmup(i, f, f, 5000, X=1, R=2048, num_warps=16, grid=(1,), target="cuda:90")
    text = str(kernel.asm["ttgir"])
    name = re.search(r"tensor<1x2048xf32, (#\w+)>", text)
    assert name and f"{name[1]} = #ttg.blocked<{{sizePerThread = [1, 4], threadsPerWarp = [1, 32]" in text
    assert str(kernel.asm["ptx"]).count("add.f32") < 100  # where there were 2048


def test_the_row_is_summed_so() -> None:
    labels, weight = np.array([3, 999, 1500], np.int64), np.array([2.0], np.float32)
    out = np.zeros(3, np.float32)
    with weft.target("sim:cuda:90"):
        masses[(3,)](labels, weight, out, 1000, 1, 256, num_warps=2)
    assert out.tolist() == [-2.0, -2.0, 0.0]
