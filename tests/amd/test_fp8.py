"""Every number of both fp8 formats of each processor through its matrix instructions, simulated, against ml_dtypes:
FNUZ on gfx942, where the emulator takes them for the other ones, and OCP on gfx950 and from gfx12 on."""

from __future__ import annotations

import re
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import weft
import weft.language as tl

FNUZ = ml_dtypes.float8_e4m3fnuz, ml_dtypes.float8_e5m2fnuz
OCP = ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e5m2
DEPTH = 64
"""Elements along k that gfx1250 takes at least."""
FORMATS = {"gfx942": FNUZ, "gfx950": OCP, "gfx1201": OCP, "gfx1250": OCP}


@weft.jit
def _product(a, b, c, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):  # type: ignore[no-untyped-def]
    i, j, k = tl.arange(0, M), tl.arange(0, N), tl.arange(0, K)
    x = tl.load(a + i[:, None] * K + k[None, :])
    y = tl.load(b + k[:, None] * N + j[None, :])
    tl.store(c + i[:, None] * N + j[None, :], tl.dot(x, y))


def _all_numbers(kind: Any) -> np.ndarray:
    """A row for each code, which is at one place of it, among zeros."""
    rows = np.zeros((256, DEPTH), np.uint8)
    rows[np.arange(256), np.arange(256) % DEPTH] = np.arange(256)
    return rows.view(kind)


@pytest.mark.parametrize("target", FORMATS)
@pytest.mark.parametrize("mixed", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_every_number(target: str, mixed: bool) -> None:
    for left, right in (FORMATS[target][:: -1 if mixed else 1], FORMATS[target][:: 1 if mixed else -1]):
        kinds = (left, right) if mixed else (left, left)
        a, one = _all_numbers(kinds[0]), np.eye(DEPTH).astype(kinds[1])
        c = np.zeros((256, DEPTH), np.float32)
        with weft.target(f"sim:hip:{target}"):
            made = _product[(1,)](a, one, c, 256, DEPTH, DEPTH)
        with np.errstate(invalid="ignore"):
            want = (a.astype(np.float64) @ one.astype(np.float64)).astype(np.float32)
        np.testing.assert_array_equal(c, want)
        assert np.isnan(want).any(), "NaN is among them"
        assert re.search(r"isa=\w+\.f32\.\w+\.(fp8|bf8|f8f6f4)", made.asm["lane"]), "no product of wider elements"
