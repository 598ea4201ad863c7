"""Matrix instructions that a launch asks for: `matrix_instr_nonkdim`, `kpack`; layouts are Triton 3.6.0's."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest

import weft
import weft.language as tl


@weft.jit
def product(a, b, c, K, BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr):
    m, n, k = tl.arange(0, BM), tl.arange(0, BN), tl.arange(0, BK)
    total = tl.zeros((BM, BN), tl.float32)
    for i in range(0, K, BK):
        total = tl.dot(tl.load(a + m[:, None] * K + i + k), tl.load(b + (i + k[:, None]) * BN + n), total)
    tl.store(c + m[:, None] * BN + n, total)


@weft.jit
def chained(a, b, c, N: tl.constexpr):
    i = tl.arange(0, N)
    at = i[:, None] * N + i
    x = tl.load(a + at)
    tl.store(c + at, tl.dot(tl.dot(x, tl.load(b + at)).to(tl.float16), x))


SQUARE = (64, 64, 64)
LAYOUTS = [
    ("gfx942", SQUARE, {}, "[32, 32, 8]", 4),
    ("gfx942", SQUARE, {"matrix_instr_nonkdim": 16}, "[16, 16, 16]", 4),
    ("gfx942", (32, 32, 64), {"matrix_instr_nonkdim": 32}, "[32, 32, 8]", 4),
    ("gfx942", SQUARE, {"matrix_instr_nonkdim": 0, "kpack": 1}, "[32, 32, 8]", 4),
    ("gfx942", SQUARE, {"kpack": 2}, "[32, 32, 8]", 8),
    ("gfx90a", (16, 64, 64), {"kpack": 2}, "[16, 16, 16]", 8),
    ("gfx942", SQUARE, {"kpack": 2, "matrix_instr_nonkdim": 16}, "[16, 16, 16]", 8),
    ("gfx950", SQUARE, {"matrix_instr_nonkdim": 16}, "[16, 16, 32]", 8),
    ("gfx950", SQUARE, {"kpack": 2}, "[32, 32, 16]", 8),
]


@pytest.mark.parametrize(("target", "sizes", "options", "shape", "width"), LAYOUTS)
def test_the_layout_is_that_of_triton(
    target: str, sizes: tuple[int, ...], options: dict[str, int], shape: str, width: int
) -> None:
    rng = np.random.default_rng(0)
    m, n, k = sizes
    a, b = rng.integers(-4, 5, (m, 2 * k)).astype("f2"), rng.integers(-4, 5, (2 * k, n)).astype("f2")
    c = np.zeros((m, n), "f4")
    with weft.target(f"sim:hip:{target}"):
        kernel = product[(1,)](a, b, c, 2 * k, *sizes, **options)
    text: Any = kernel.asm["ttgir"]
    assert set(re.findall(r"instrShape = (\[[^]]*\])", text)) == {shape}
    assert set(re.findall(r"kWidth = (\d+)", text)) == {str(width)}
    assert (c == a.astype("f4") @ b.astype("f4")).all()


@pytest.mark.parametrize(("target", "sizes", "options"), [
    ("gfx942", (16, 64, 64), {"matrix_instr_nonkdim": 32}),
    ("gfx942", SQUARE, {"matrix_instr_nonkdim": 4}),
    ("gfx942", (32, 32, 16), {"kpack": 2}),
    ("gfx1201", (32, 32, 32), {"matrix_instr_nonkdim": 32}),
])  # fmt: skip
def test_what_there_is_no_instruction_for_is_not_followed(
    target: str, sizes: tuple[int, ...], options: dict[str, int]
) -> None:
    m, n, k = sizes
    a, b, c = np.ones((m, k), "f2"), np.ones((k, n), "f2"), np.zeros((m, n), "f4")
    with weft.target(f"sim:hip:{target}"):
        asked, usual = (product[(1,)](a, b, c, k, *sizes, **o).asm["lane"] for o in (options, {}))
    assert asked == usual and (c == k).all()


def test_chained_products_keep_their_elements_in_a_row() -> None:
    """With kpack a result would not be the next operand as it is."""
    a, b = np.eye(64, dtype="f2"), np.ones((64, 64), "f2")
    c = np.zeros((64, 64), "f4")
    with weft.target("sim:hip:gfx942"):
        lane = chained[(1,)](a, b, c, 64, kpack=2).asm["ttgir"]
    assert "kWidth = 8" not in lane and (c == 1).all()
