"""Large tiles, long chains, deep nesting: what a kernel costs to compile, and that it compiles at all."""

from __future__ import annotations

import numpy as np

import weft
import weft.language as tl


@weft.jit
def turn_with_a_long_address(out, x, n, TERMS: tl.constexpr):
    i, j = tl.arange(0, 32)[:, None], tl.arange(0, 32)[None, :]
    place = i + j * 32
    for k in tl.static_range(TERMS):
        place = (place + n) * 1 + (i - i)
    tl.store(out + i * 32 + j, tl.load(x + place))


def test_a_transposed_load_whose_address_is_long() -> None:
    x, out = np.arange(1024 + 40, dtype=np.float32), np.zeros((32, 32), np.float32)
    turn_with_a_long_address[(1,)](out, x, 1, TERMS=40)
    np.testing.assert_array_equal(out, x[40:].reshape(32, 32).T)
