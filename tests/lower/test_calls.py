"""Library functions, printing and what is refused: the simulated GPU against the CPU on the same kernel."""

from __future__ import annotations

import numpy as np
import pytest

import weft
import weft.language as tl
import weft.sim
from weft.base import Unsupported
from weft.language.extra import libdevice


@weft.jit
def floats(x, y, out, n: tl.constexpr):
    i = tl.arange(0, n)
    a, b = tl.load(x + i), tl.load(y + i)
    tl.store(out + i, libdevice.tanh(a))
    tl.store(out + n + i, libdevice.pow(tl.abs(a), b))
    tl.store(out + 2 * n + i, libdevice.fmod(a, b))
    tl.store(out + 3 * n + i, libdevice.rint(a))
    tl.store(out + 4 * n + i, libdevice.tgamma(a))
    tl.store(out + 5 * n + i, libdevice.cospi(a))
    tl.store(out + 6 * n + i, libdevice.copysign(b, a))
    tl.store(out + 7 * n + i, libdevice.isnan(libdevice.sqrt(a)).to(tl.float32))
    tl.store(out + 8 * n + i, libdevice.ldexp(a, i))


@weft.jit
def integers(x, out, n: tl.constexpr):
    i = tl.arange(0, n)
    a = tl.load(x + i)
    tl.store(out + i, libdevice.clz(a))
    tl.store(out + n + i, libdevice.popc(a))
    tl.store(out + 2 * n + i, libdevice.ffs(a))
    tl.store(out + 3 * n + i, libdevice.brev(a))
    tl.store(out + 4 * n + i, libdevice.mulhi(a, a - 7))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_functions_of_floats(dtype: type) -> None:
    rng = np.random.default_rng(1)
    x, y = rng.uniform(-4, 4, 64).astype(dtype), rng.uniform(-4, 4, 64).astype(dtype)
    x[:4] = [0.0, -0.0, np.inf, 2.5]
    found, wanted = np.zeros((9, 64), dtype), np.zeros((9, 64), dtype)
    floats[(1,)](x, y, wanted, n=64)
    with weft.target("sim:cuda:80"):
        floats[(1,)](x, y, found, n=64)
    np.testing.assert_allclose(found, wanted, rtol=1e-5 if dtype is np.float32 else 1e-12, atol=1e-6)


def test_functions_of_integers() -> None:
    x = np.random.default_rng(2).integers(-(1 << 31), 1 << 31, 64).astype(np.int32)
    x[:3] = [0, 1, -1]
    found, wanted = np.zeros((5, 64), np.int32), np.zeros((5, 64), np.int32)
    integers[(1,)](x, wanted, n=64)
    with weft.target("sim:cuda:80"):
        integers[(1,)](x, found, n=64)
    assert np.array_equal(found, wanted)


@tl.core.extern
def nothing(value, _semantic=None):
    symbols = {(tl.float32,): ("__nv_nothing", tl.float32)}
    return tl.core.extern_elementwise("", "", [value], symbols, is_pure=True, _semantic=_semantic)


@weft.jit
def of_another_library(x, n: tl.constexpr):
    i = tl.arange(0, n)
    tl.store(x + i, nothing(tl.load(x + i)))


def test_a_function_that_is_not_there_is_named() -> None:
    with weft.target("sim:cuda:80"), pytest.raises(Unsupported, match="__nv_nothing"):
        of_another_library[(1,)](np.ones(32, np.float32), n=32)


@weft.jit
def prints(x, n: tl.constexpr):
    i = tl.arange(0, n)
    tl.device_print("value ", tl.load(x + i))


def test_print() -> None:
    with weft.target("sim:cuda:80"):
        prints[(1,)](np.arange(128, dtype=np.int32), n=128)
    lines = weft.sim.last_run().printed
    assert len(lines) == 128
    assert sum(line.endswith("value: 77") for line in lines) == 1


@weft.jit
def with_assembly(x, n: tl.constexpr):
    i = tl.arange(0, n)
    y = tl.inline_asm_elementwise("not.b32 $0, $1;", "=r,r", [tl.load(x + i)], dtype=tl.int32, is_pure=True, pack=1)
    tl.store(x + i, y)


def test_assembly() -> None:
    """What can be simulated of it: tests/sim/test_assembly.py."""
    x = np.arange(32, dtype=np.int32)
    with weft.target("sim:cuda:80"):
        with_assembly[(1,)](x, n=32)
    assert (x == ~np.arange(32)).all()
