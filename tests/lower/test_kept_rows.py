"""Rows of large blocks: copied to shared memory, and read from there run by run by reductions and stores."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

import weft
import weft.language as tl
from weft.compiler import ASTSource, lane_program

TYPES = {"bf16": ml_dtypes.bfloat16, "f32": np.float32}


@weft.jit
def centred(x, w, out, n, B: tl.constexpr):
    """What is reduced looks at the mask, what is stored at the numbers of the elements."""
    row, i = tl.program_id(0) * n, tl.arange(0, B)
    value = tl.load(x + row + i, mask=i < n, other=0.0).to(tl.float32)
    apart = tl.where(i < n, value - tl.sum(value, 0) / n, 0.0)
    found = apart * tl.rsqrt(tl.sum(apart * apart, 0) / n + 1.0) * tl.load(w + i, mask=i < n, other=0.0)
    tl.store(out + row + i, (found + i % 3).to(out.dtype.element_ty), mask=i < n)


@weft.jit
def normalised(x, w, out, n, B: tl.constexpr):
    """All of it follows from memory and from numbers that are the same everywhere."""
    row, i = tl.program_id(0) * n, tl.arange(0, B)
    value = tl.load(x + row + i, mask=i < n, other=0.0).to(tl.float32)
    apart = tl.where(i < n, value - tl.sum(value, 0) / n, 0.0)
    found = apart * tl.rsqrt(tl.sum(apart * apart, 0) / n + 1.0) * tl.load(w + i, mask=i < n, other=0.0)
    tl.store(out + row + i, found.to(out.dtype.element_ty), mask=i < n)


@weft.jit
def shifted_sum(x, w, out, n, B: tl.constexpr):
    """What is beyond the row counts: B - n times f(other), which is not neutral."""
    row, i = tl.program_id(0) * n, tl.arange(0, B)
    value = tl.load(x + row + i, mask=i < n, other=3).to(tl.float32) + 1.0
    least = tl.min(value * value, 0)
    tl.store(out + row + i, (value + tl.sum(value, 0) + least).to(out.dtype.element_ty), mask=i < n)


@weft.jit
def stored_between(x, w, out, n, B: tl.constexpr):
    """Something is written before the row is wanted."""
    row, i = tl.program_id(0) * n, tl.arange(0, B)
    value = tl.load(x + row + i, mask=i < n, other=0.0).to(tl.float32)
    tl.store(x + row + i, tl.load(w + i, mask=i < n), mask=i < n)
    found = value + tl.sum(value, 0) + tl.max(value, 0)
    tl.store(out + row + i, found.to(out.dtype.element_ty), mask=i < n)


@weft.jit
def reduced(x, w, out, n, B: tl.constexpr):
    """Not stored."""
    row, i = tl.program_id(0) * n, tl.arange(0, B)
    value = tl.load(x + row + i, mask=i < n, other=0.0).to(tl.float32)
    found = tl.sum(value, 0) - tl.max(value, 0) + i % 3
    tl.store(out + row + i, found.to(out.dtype.element_ty), mask=i < n)


@weft.jit
def halved(x, w, out, n, B: tl.constexpr):
    """Reduced once."""
    row, i = tl.program_id(0) * n, tl.arange(0, B)
    value = tl.load(x + row + i, mask=i < n, other=0.0).to(tl.float32)
    tl.store(out + row + i, (value - tl.sum(value, 0) / 2).to(out.dtype.element_ty), mask=i < n)


def _centred(x: Any, w: Any, block: int) -> Any:
    apart = x - x.mean(1, keepdims=True)
    return apart / np.sqrt((apart**2).mean(1, keepdims=True) + 1.0) * w + np.arange(x.shape[1]) % 3


def _shifted(x: Any, w: Any, block: int) -> Any:
    value, beyond = x + 1, block - x.shape[1]
    least = np.minimum((value**2).min(1, keepdims=True), 16.0 if beyond else np.inf)
    return value + value.sum(1, keepdims=True) + 4.0 * beyond + least


EXPECTED = {
    centred: _centred,
    normalised: lambda x, w, block: _centred(x, w, block) - np.arange(x.shape[1]) % 3,
    shifted_sum: _shifted,
    reduced: lambda x, w, block: x.sum(1, keepdims=True) - x.max(1, keepdims=True) + np.arange(x.shape[1]) % 3,
    halved: lambda x, w, block: x - x.sum(1, keepdims=True) / 2,
}


def _run(
    kernel: Any, kind: str, n: int, warps: int, blocks: int, rows: int = 2, block: int = 0, weights: str = ""
) -> tuple[Any, Any, Any]:
    """(the compiled kernel, what it stores, what it should); nobody may write around it."""
    rng, block = np.random.default_rng(n), block or 1 << (n - 1).bit_length()
    x = rng.integers(-3, 4, (rows, n)).astype(TYPES[kind])
    w = rng.integers(-3, 4, n).astype(TYPES[weights or kind])
    memory = np.full(rows * n + 128, 77).astype(TYPES[kind])
    begin = -memory.ctypes.data // memory.itemsize % 64
    with weft.target("sim:cuda:90"):
        out = memory[begin : begin + rows * n]
        made = kernel[(rows,)](x, w, out, n, B=block, num_warps=warps, num_ctas=blocks)
    assert (memory[:begin] == 77).all()
    assert (memory[begin + rows * n :] == 77).all()
    expected = EXPECTED[kernel](x.astype(np.float64), w.astype(np.float64), block)
    return made, memory[begin : begin + rows * n].reshape(rows, n), expected.astype(TYPES[kind])


def _copies(made: Any) -> int:
    return made.asm["ptx"].count("cp.async.cg")


@pytest.mark.parametrize(
    ("kernel", "kind", "n", "warps", "blocks", "copies"),
    [
        (centred, "bf16", 4_001, 1, 2, 8),
        pytest.param(centred, "bf16", 20_003, 16, 1, 8, marks=pytest.mark.slow),
        (shifted_sum, "bf16", 3_001, 1, 2, 8),
        (halved, "bf16", 3_001, 1, 2, 0),
        pytest.param(centred, "bf16", 32_767, 16, 1, 8, marks=pytest.mark.slow),
        pytest.param(centred, "bf16", 50_257, 16, 1, 8, marks=pytest.mark.slow),
        pytest.param(centred, "bf16", 50_257, 4, 8, 8, marks=pytest.mark.slow),
        pytest.param(reduced, "bf16", 50_257, 16, 1, 13, marks=pytest.mark.slow),
        pytest.param(centred, "f32", 32_003, 16, 1, 8, marks=pytest.mark.slow),
        pytest.param(shifted_sum, "f32", 17_001, 16, 1, 8, marks=pytest.mark.slow),
    ],
)
def test_rows_wait_in_shared_memory(kernel: Any, kind: str, n: int, warps: int, blocks: int, copies: int) -> None:
    """As much of them as leaves room for other blocks, if they are reduced more than once."""
    made, found, expected = _run(kernel, kind, n, warps, blocks)
    assert _copies(made) == copies
    np.testing.assert_allclose(found.astype(float), expected.astype(float), rtol=1e-2 if kind == "bf16" else 1e-5)


@pytest.mark.parametrize(("kind", "n", "rows", "copies"), [("bf16", 4_001, 8, 8), ("f32", 1_502, 4, 8)])
def test_loops_at_every_distance(kind: str, n: int, rows: int, copies: int) -> None:
    """Beside weights, which begin at an aligned address, rows lie at each distance from vectors."""
    made, found, expected = _run(normalised, kind, n, 1, 2, rows=rows)
    assert _copies(made) == copies
    np.testing.assert_allclose(found.astype(float), expected.astype(float), rtol=1e-2 if kind == "bf16" else 1e-5)


@pytest.mark.parametrize(
    ("n", "kind", "weights"), [(5, "bf16", "bf16"), (2_051, "bf16", "f32"), (1_030, "f32", "bf16")]
)
def test_loops_end_where_rows_end(n: int, kind: str, weights: str) -> None:
    """What an iteration loads for the next one is of the row, however much of the tile is not."""
    _, found, expected = _run(normalised, kind, n, 1, 2, block=4096, weights=weights)
    np.testing.assert_allclose(found.astype(float), expected.astype(float), rtol=1e-2 if kind == "bf16" else 1e-5)


def test_code_does_not_grow_with_rows() -> None:
    """Twice as long a row is twice as many iterations of the same loops."""
    types = {**dict.fromkeys(("x", "w", "out"), "*bf16"), "n": "i32", "B": "constexpr"}
    facts = {(i,): [["tt.divisibility", 16]] for i in range(3)}
    stores = []
    for block in (16384, 32768):
        source = ASTSource(normalised, types, {"B": block}, facts)
        ops = list(lane_program(source, "sim:cuda:90", {"num_warps": 4, "num_ctas": 2}).body.walk())
        assert sum(op.name == "for" for op in ops) == 1 + 2 * 8  # the second sum; the store, at each distance of `w`
        stores.append(sum(op.name == "store" and op.attrs["space"] == "global" for op in ops))
    assert stores[0] == stores[1]


def test_what_is_written_meanwhile_is_not_read() -> None:
    """A row is not copied while others may write it."""
    rng, n = np.random.default_rng(0), 3_001
    x, w = (rng.integers(-3, 4, shape).astype(np.float16) for shape in ((2, n), (n,)))
    expected = x + x.sum(1, keepdims=True) + np.maximum(x.max(1, keepdims=True), 0)
    found = np.zeros_like(x)
    with weft.target("sim:cuda:90"):
        made = stored_between[(2,)](x, w, found, n, B=4096, num_warps=1, num_ctas=2)
    assert _copies(made) == 0
    np.testing.assert_allclose(found, expected)
    assert (x == w).all()
