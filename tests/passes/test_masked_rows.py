"""Rows as Inductor reads them: a mask for the number of the row, one for its columns, and more programs than rows."""

from __future__ import annotations

from typing import Any

import numpy as np

import weft
import weft.language as tl

ROWS, COLUMNS = 3, 600


@weft.jit
def sums_of_rows(x, out, rows, BLOCK: tl.constexpr, COLUMNS: tl.constexpr):
    row = tl.program_id(0) + tl.arange(0, 1)[:, None]
    there = row < rows
    total = tl.full([1, BLOCK], 0.0, tl.float32)
    for first in tl.range(0, COLUMNS, BLOCK):
        column = first + tl.arange(0, BLOCK)[None, :]
        mask = column < COLUMNS
        value = tl.load(x + row * COLUMNS + column, mask & there, other=0.0)
        total = tl.where(mask & there, total + value * value, total)
    tl.store(out + row, tl.sum(total, 1)[:, None], there)


def test_sums_of_rows_and_programs_without_one() -> None:
    """No access of the loop is masked, and nothing is stored for rows that do not exist."""
    x = np.random.default_rng(0).standard_normal((ROWS, COLUMNS)).astype(np.float32)
    out = np.full(ROWS + 2, -1.0, np.float32)
    args: tuple[Any, ...] = (x, out, ROWS, 64, COLUMNS)
    text = sums_of_rows.warmup(*args, grid=(ROWS + 2,), target="cuda:90").asm["ttgir"]
    loop = text[text.index("scf.for") : text.index("scf.yield")]
    assert "arith.cmpi" not in loop
    assert "arith.select" not in loop
    with weft.target("sim:cuda:90"):
        sums_of_rows[(ROWS + 2,)](*args)
    np.testing.assert_allclose(out[:ROWS], (x.astype(np.float64) ** 2).sum(1), rtol=1e-5)
    assert (out[ROWS:] == -1).all()
