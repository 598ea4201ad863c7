"""What folding makes of tiles that have layouts already keeps them."""

from __future__ import annotations

import numpy as np
import pytest

import weft
import weft.language as tl


@weft.jit
def unchanged(x, out, more, n, M: tl.constexpr):
    tile = tl.broadcast_to(tl.load(x), [M, M])
    same = tile + 0
    for _ in range(n):
        same = tile
    i = tl.arange(0, M)
    at = i[:, None] * M + i[None, :]
    tl.store(out + at, tile * 5)
    tl.store(more + at[:, :, None], same[:, :, None])


@pytest.mark.parametrize("num_ctas", [1, 4])
def test_a_number_that_is_spread_and_reshaped(num_ctas: int) -> None:
    """That the loop leaves it as it is comes out when the tiles have layouts."""
    x, out, more = np.array([7], np.int8), np.zeros(4, np.int8), np.zeros(4, np.int8)
    unchanged[(1,)](x, out, more, 2, M=2, target="sim:cuda:90", num_ctas=num_ctas, num_warps=8)
    assert out.tolist() == [35] * 4 and more.tolist() == [7] * 4
