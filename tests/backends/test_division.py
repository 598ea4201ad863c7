"""Every way to divide integers is defined for every divisor, zero included, and ends no process."""

from __future__ import annotations

import numpy as np
import pytest

import weft

TTIR = """
tt.func public @divide(%x: !tt.ptr<i32>, %y: !tt.ptr<i32>, %z: !tt.ptr<i32>) {{
  %i = tt.make_range {{end = 64 : i32, start = 0 : i32}} : tensor<64xi32>
  %xs = tt.splat %x : !tt.ptr<i32> -> tensor<64x!tt.ptr<i32>>
  %xp = tt.addptr %xs, %i : tensor<64x!tt.ptr<i32>>, tensor<64xi32>
  %ys = tt.splat %y : !tt.ptr<i32> -> tensor<64x!tt.ptr<i32>>
  %yp = tt.addptr %ys, %i : tensor<64x!tt.ptr<i32>>, tensor<64xi32>
  %zs = tt.splat %z : !tt.ptr<i32> -> tensor<64x!tt.ptr<i32>>
  %zp = tt.addptr %zs, %i : tensor<64x!tt.ptr<i32>>, tensor<64xi32>
  %a = tt.load %xp : tensor<64x!tt.ptr<i32>>
  %b = tt.load %yp : tensor<64x!tt.ptr<i32>>
  %c = arith.{name} %a, %b : tensor<64xi32>
  tt.store %zp, %c : tensor<64x!tt.ptr<i32>>
  tt.return
}}
"""
NUMBERS = [0, 1, -1, 2, -7, 7, -(1 << 31), (1 << 31) - 1]


def wanted(name: str, x: int, y: int) -> int:
    """What docs/reference/semantics.md says, before wrapping."""
    if name.endswith("ui"):
        x, y = x % (1 << 32), y % (1 << 32)
    if y == 0:
        return x if name.startswith("rem") else 0
    toward_zero = abs(x) // abs(y) * (1 if (x < 0) == (y < 0) else -1)
    if name.startswith("rem"):
        return x - toward_zero * y
    return {"div": toward_zero, "flo": x // y, "cei": -(-x // y)}[name[:3]]


@pytest.mark.parametrize("name", ["divsi", "divui", "remsi", "remui", "floordivsi", "ceildivsi", "ceildivui"])
def test_every_divisor(name: str) -> None:
    x = np.repeat(np.array(NUMBERS, np.int32), 8)
    y = np.tile(np.array(NUMBERS, np.int32), 8)
    z = np.zeros(64, np.int32)
    weft.compile(TTIR.format(name=name))[(1,)](x, y, z)
    expected = [wanted(name, int(a), int(b)) % (1 << 32) for a, b in zip(x, y, strict=True)]
    assert (z.astype(np.int64) % (1 << 32)).tolist() == expected
