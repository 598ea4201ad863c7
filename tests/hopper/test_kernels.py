"""Kernels that the real Triton compiled for Hopper, in the simulator: every legal timing gives what NumPy gives."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import weft
from weft.sim import Options

from .running import DATA, DTYPES, EVERY, Described, aligned, integers, simulate

every = pytest.mark.parametrize("options", EVERY, ids=lambda o: f"{o.copies}-{o.order}")
ends = pytest.mark.parametrize("options", EVERY[:3], ids=lambda o: f"{o.copies}-{o.order}")


def exact(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """The product, in numbers that hold it."""
    return a.astype(np.float64) @ b.astype(np.float64)


MATMULS: list[tuple[str, str, tuple[int, int, int], bool, str]] = [
    ("matmul_f16_64x64x64_nn", "f16", (64, 64, 64), False, "f32"),
    ("matmul_f16_64x64x64_nt", "f16", (64, 64, 64), True, "f32"),
    ("matmul_bf16_128x128x64_nt_w8", "bf16", (128, 128, 64), True, "bf16"),
    ("matmul_bf16_128x256x32_nn", "bf16", (128, 256, 32), False, "f32"),
    ("matmul_f16_64x16x128_nt", "f16", (64, 16, 128), True, "f32"),
    ("matmul_f16_f16_64x32x32_nn", "f16", (64, 32, 32), False, "f16"),
    ("matmul_tf32_64x64x32_nt", "f32", (64, 64, 32), True, "f32"),
    ("matmul_fp8_128x64x128_nt", "fp8", (128, 64, 128), True, "f32"),
    ("matmul_fp8e5_64x64x64_nt", "fp8e5", (64, 64, 64), True, "f32"),
    ("matmul_i8_64x64x128_nt", "i8", (64, 64, 128), True, "i32"),
]


@ends
@pytest.mark.parametrize("case", MATMULS, ids=lambda c: c[0])
@pytest.mark.thinned(3)
def test_pipelined_matmul(case: tuple[str, str, tuple[int, int, int], bool, str], options: Options) -> None:
    """Tiles that stick out of the matrices, and a depth that is no multiple of the block's."""
    name, kind, (bm, bn, bk), trans, out = case
    vector = 16 // np.dtype(DTYPES[kind]).itemsize
    m, n, k = bm + 24, bn + vector, 4 * bk - bk // 2
    a = integers(0, (m, k), DTYPES[kind], -2, 3)
    b = integers(1, (n, k) if trans else (k, n), DTYPES[kind], -2, 3)
    wide = -(-n * np.dtype(DTYPES[out]).itemsize // 16) * 16 // np.dtype(DTYPES[out]).itemsize
    c = aligned((m, wide), DTYPES[out])
    values = {
        "a": Described(a, (bm, bk)),
        "b": Described(b, (bn, bk) if trans else (bk, bn)),
        "c": Described(c, (bm, bn), shape=(m, n)),
        "K": k,
    }
    simulate(name, (2, 2), values, options)
    np.testing.assert_array_equal(c[:, :n].astype(np.float64), exact(a, b.T if trans else b).astype(DTYPES[out]))
    assert not c[:, n:].any()


@every
@pytest.mark.parametrize("name,factor", [("matmul_a_from_registers", 2), ("two_products_under_way", 1)])
def test_variants_of_the_product(name: str, factor: int, options: Options) -> None:
    a, b, c = integers(0, (128, 192), np.float16), integers(1, (64, 192), np.float16), aligned((128, 64), np.float32)
    tile = (64, 64)
    values = {"a": Described(a, tile), "b": Described(b, tile), "c": Described(c, tile), "K": 192}
    simulate(name, (2, 1), values, options)
    np.testing.assert_array_equal(c, factor * exact(a, b.T))


@every
@pytest.mark.parametrize("programs", [1, 3])
def test_partitions_multiply(programs: int, options: Options) -> None:
    a, b, c = integers(0, (128, 160), np.float16), integers(1, (192, 160), np.float16), aligned((128, 192), np.float16)
    tile = (64, 64)
    values: dict[str, Any] = {name: Described(x, tile) for name, x in (("a", a), ("b", b), ("c", c))}
    simulate("specialized_matmul", programs, {**values, "tiles": 6, "tiles_n": 3, "K": 160}, options)
    np.testing.assert_array_equal(c.astype(np.float64), exact(a, b.T))


@every
def test_partitions_in_a_loop(options: Options) -> None:
    z = aligned((128,), np.int32)
    simulate("results_of_partitions", 1, {"z": z, "n": 3}, options)
    x = np.arange(128)
    np.testing.assert_array_equal(z, sum((x + 1 + 2000 * x + i + 7) * (i + 8) for i in range(3)))


@every
@pytest.mark.parametrize("name", ["triton_matmul_of_descriptors", "triton_specialized"])
def test_descriptors(name: str, options: Options) -> None:
    a, b, c = integers(0, (96, 264), np.float16), integers(1, (72, 264), np.float16), aligned((96, 72), np.float16)
    tile = (64, 64)
    values = {"a": Described(a, tile), "b": Described(b, tile), "c": Described(c, tile), "K": 264}
    simulate(name, (2, 2), values, options)
    np.testing.assert_array_equal(c.astype(np.float64), exact(a, b.T))


@ends
def test_descriptors_of_other_types(options: Options) -> None:
    bf16, fp8 = DTYPES["bf16"], DTYPES["fp8"]
    a, b, c = integers(0, (128, 256), bf16, -1, 2), integers(1, (128, 256), bf16, -1, 2), aligned((128, 128), bf16)
    values = {"a": Described(a, (128, 64)), "b": Described(b, (128, 64)), "c": Described(c, (128, 128)), "K": 256}
    simulate("triton_matmul_of_descriptors_bf16_w8", (1, 1), values, options)
    np.testing.assert_array_equal(c.astype(np.float64), exact(a, b.T))
    a, b, f = integers(2, (64, 512), fp8), integers(3, (64, 512), fp8), aligned((64, 64), np.float32)
    values = {"a": Described(a, (64, 128)), "b": Described(b, (64, 128)), "c": Described(f, (64, 64)), "K": 512}
    simulate("triton_matmul_of_descriptors_fp8", (1, 1), values, options)
    np.testing.assert_array_equal(f, exact(a, b.T))


@every
def test_descriptors_made_by_the_kernel(options: Options) -> None:
    m, n, k = 128, 72, 200
    a, b, c = integers(0, (m, k), np.float16), integers(1, (k, n), np.float16), aligned((m, n), np.float16)
    simulate("triton_matmul_of_made_descriptors", 3, {"a": a, "b": b, "c": c, "M": m, "N": n, "K": k}, options)
    np.testing.assert_array_equal(c.astype(np.float64), exact(a, b))


@every
def test_copies_ahead_without_fences(options: Options) -> None:
    """Triton writes no fence between `cp.async` and wgmma; there must be one."""
    a, b, c = integers(0, (128, 256), np.float16), integers(1, (256, 64), np.float16), aligned((128, 64), np.float32)
    path = DATA / "hopper" / "triton_matmul_copied_ahead.ttgir"
    assert "async_copy" in path.read_text() and "fence_async" not in path.read_text()
    with weft.sim.options(copies=options.copies, order=options.order, seed=options.seed):
        weft.compile(str(path), target="sim:cuda:90")[(2, 1)](a, b, c)
    np.testing.assert_array_equal(c, exact(a, b))


@every
def test_pointers(options: Options) -> None:
    m, n, k = 128, 64, 256
    a, b, c = integers(0, (m, k), np.float16), integers(1, (k, n), np.float16), aligned((m, n), np.float32)
    simulate("triton_matmul_of_pointers", (2, 1), {"a": a, "b": b, "c": c, "M": m, "N": n, "K": k}, options)
    np.testing.assert_array_equal(c, exact(a, b))


@ends
def test_attention(options: Options) -> None:
    rng = np.random.default_rng(0)
    q, k, v, o = (aligned((n, 64), np.float16) for n in (128, 192, 192, 128))
    for x in (q, k, v):
        x[...] = rng.standard_normal(x.shape)
    tile = (64, 64)
    values: dict[str, Any] = {name: Described(x, tile) for name, x in (("q", q), ("k", k), ("v", v), ("o", o))}
    simulate("triton_attention", 2, {**values, "N": 192, "scale": 0.125}, options)
    s = exact(q, k.T) * 0.125
    p = np.exp2(s - s.max(axis=1, keepdims=True))
    want = p @ v.astype(np.float64) / p.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(o.astype(np.float64), want, atol=2e-3)


@every
def test_reductions(options: Options) -> None:
    x = integers(0, (80, 32), np.float32)
    sums, least = aligned((16, 32), np.float32), aligned((16, 32), np.int32)
    sums[...] = 1
    tile = (16, 32)
    simulate(
        "triton_reduced", 5, {"x": Described(x, tile), "s": Described(sums, tile), "l": Described(least, tile)}, options
    )
    np.testing.assert_array_equal(sums, 1 + x.reshape(5, 16, 32).sum(axis=0))
    np.testing.assert_array_equal(least, np.minimum(0, x.reshape(5, 16, 32).min(axis=0)))


@every
@pytest.mark.parametrize("padding", ["zero", "nan"])
def test_three_dimensions(padding: str, options: Options) -> None:
    x, y = integers(0, (5, 20, 36), np.float32), aligned((5, 20, 36), np.float32)
    block = (2, 8, 16)
    values = {"x": Described(x, block, padding), "y": Described(y, block)}
    simulate("triton_moved", (3, 3, 3), values, options)
    want = np.full((5, 20, 36), np.nan if padding == "nan" else 0, np.float32)
    want[:, 3:] = x[:, :-3]
    tiles = np.arange(20) // 8 * 8 - 3  # each tile's window begins three rows before it, and has eight rows
    want = np.where((tiles + np.arange(20) % 8 >= 0)[None, :, None], want, want[0, 0, 0])
    np.testing.assert_array_equal(y, want + 1)
