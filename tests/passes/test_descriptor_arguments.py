"""Descriptors that are arguments: what is known of every descriptor makes copies wide, and lets them begin ahead."""

from __future__ import annotations

import numpy as np
import pytest

import weft
import weft.language as tl


@weft.jit
def product(a, b, c, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    m, n = tl.program_id(0) * BM, tl.program_id(1) * BN
    total = tl.zeros((BM, BN), tl.float32)
    for k in range(tl.cdiv(K, BK)):
        total = tl.dot(a.load([m, k * BK]), b.load([k * BK, n]), total)
    c.store([m, n], total.to(tl.float16))


def described(rows: int, columns: int, block: list[int], padding: str = "zero") -> tuple[np.ndarray, object]:
    """A tensor that lies in memory whose rows are longer, and its descriptor."""
    pitch = (columns + 7) // 8 * 8
    whole = np.random.default_rng(rows).integers(-2, 3, (rows, pitch)).astype(np.float16)
    return whole[:, :columns], weft.TensorDescriptor(whole, [rows, columns], [pitch, 1], block, padding)


@pytest.mark.parametrize("target", ["sim:cuda:80", "sim:cuda:90", "cpu"])
@pytest.mark.parametrize(("m", "n", "k"), [(128, 128, 96), (100, 72, 80), (77, 90, 45)])
def test_products_of_descriptors(m: int, n: int, k: int, target: str) -> None:
    """Whole blocks, rows that end within a block, rows that end within 16 bytes."""
    (a, da), (b, db), (c, dc) = described(m, k, [64, 32]), described(k, n, [32, 64]), described(m, n, [64, 64])
    c[:] = 0
    product[(2, 2)](da, db, dc, k, BM=64, BN=64, BK=32, target=target)
    np.testing.assert_array_equal(c, a.astype(np.float32) @ b.astype(np.float32))


@pytest.mark.parametrize(
    ("target", "copy", "written"),
    [
        ("cuda:80", "ttg.async_copy_global_to_local", "cp.async.cg.shared.global"),
        ("cuda:90", "ttng.async_tma_copy_global_to_local", "cp.async.bulk.tensor"),
    ],
    ids=["by threads", "by the copy engine"],
)
@pytest.mark.parametrize("n", [128, 72])
def test_blocks_are_copied_ahead(n: int, target: str, copy: str, written: str) -> None:
    (_, a), (_, b), (_, c) = described(128, 96, [64, 32]), described(96, n, [32, 64]), described(128, n, [64, 64])
    kernel = product.warmup(a, b, c, 96, BM=64, BN=64, BK=32, grid=(2, 2), target=target)
    loop = kernel.asm["ttgir"].partition("scf.for")[2].partition("scf.yield")[0]
    assert loop.count(copy) == 2 and "tt.load" not in loop
    ptx = kernel.asm["ptx"]
    assert written in ptx and "cp.async.ca" not in ptx
    assert "st.global.v4" in ptx and "st.global.b16" not in ptx


def test_what_is_known_is_part_of_the_key() -> None:
    """Rows that end within 16 bytes, and another padding, after launches without."""
    for columns, padding in ((64, "zero"), (60, "zero"), (60, "nan"), (64, "zero")):
        x, source = described(48, columns, [64, 64], padding)
        out = np.zeros((64, 64), np.float16)
        for target in ("cpu", "sim:cuda:90"):
            copied[(1,)](source, weft.TensorDescriptor.from_tensor(out, [64, 64]), target=target)
            outside = np.nan if padding == "nan" else 0.0
            wanted = np.full((64, 64), outside, np.float16)
            wanted[:48, :columns] = x
            np.testing.assert_array_equal(out, wanted)


@weft.jit
def copied(source, into):
    into.store([0, 0], source.load([0, 0]))
