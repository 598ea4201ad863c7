"""Functions of libdevice that NumPy has nothing for: simulated, they give what the CPU gives."""

from __future__ import annotations

import numpy as np
import pytest

import weft
import weft.language as tl
from weft.language.extra import libdevice


@weft.jit
def rounded(X, Y, OUT, N: tl.constexpr):
    i = tl.arange(0, N)
    x, y = tl.load(X + i), tl.load(Y + i)
    tl.store(OUT + i, libdevice.add_ru(x, y))
    tl.store(OUT + N + i, libdevice.mul_rn(x, y))
    tl.store(OUT + 2 * N + i, libdevice.div_rz(x, y))
    tl.store(OUT + 3 * N + i, libdevice.fma_rd(x, y, x))
    tl.store(OUT + 4 * N + i, libdevice.float2int_ru(x).to(tl.float32))
    tl.store(OUT + 5 * N + i, libdevice.norm3d(x, y, x))


@weft.jit
def special(X, Y, OUT, N: tl.constexpr):
    i = tl.arange(0, N)
    x, y = tl.load(X + i), tl.load(Y + i)
    tl.store(OUT + i, libdevice.j0(x))
    tl.store(OUT + N + i, libdevice.y1(tl.abs(x)))
    tl.store(OUT + 2 * N + i, libdevice.cyl_bessel_i0(x))
    tl.store(OUT + 3 * N + i, libdevice.erfcx(x))
    tl.store(OUT + 4 * N + i, libdevice.erfinv(x / 8))
    tl.store(OUT + 5 * N + i, libdevice.hadd(x.to(tl.int32), y.to(tl.int32)).to(tl.float32))


@pytest.mark.parametrize("target", ["sim:cuda:80", "sim:cuda:90"])
@pytest.mark.parametrize("kernel", [rounded, special], ids=["rounded", "special"])
def test_as_on_the_cpu(kernel: weft.JITFunction, target: str) -> None:
    rng = np.random.default_rng(0)
    x, y = rng.uniform(-4, 4, (2, 64)).astype(np.float32)
    wanted, found = np.zeros((2, 6 * 64), np.float32)
    kernel[(1,)](x, y, wanted, N=64)
    kernel[(1,)](x, y, found, N=64, target=target)
    exact = slice(0, 5 * 64) if kernel is rounded else slice(5 * 64, None)
    np.testing.assert_array_equal(found[exact], wanted[exact])
    np.testing.assert_allclose(found, wanted, rtol=5e-7)
    assert np.isfinite(found).all()


def test_directions_differ() -> None:
    x, y, out = np.full(64, 1, np.float32), np.full(64, 1e-20, np.float32), np.zeros(6 * 64, np.float32)
    rounded[(1,)](x, y, out, N=64, target="sim:cuda:80")
    assert (out[:64] == np.nextafter(np.float32(1), np.float32(2))).all()
