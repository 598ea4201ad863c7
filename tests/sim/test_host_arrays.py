"""Arrays of PyTorch that NumPy has no type or no way for, as arguments of simulated launches."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

import weft
import weft.language as tl
from weft.base import LaunchTypeError

TARGET = "sim:cuda:80"


@weft.jit
def double(X, Z, STRIDE: tl.constexpr, N: tl.constexpr):
    i = tl.arange(0, N)
    tl.store(Z + i * STRIDE, tl.load(X + i).to(tl.float32) * 2)


@pytest.mark.parametrize("name", ["bfloat16", "float8_e5m2", "float8_e4m3fn", "float16"])
def test_small_floats(name: str) -> None:
    torch = pytest.importorskip("torch")
    target = "sim:cuda:90" if name == "float8_e4m3fn" else TARGET
    x = torch.arange(16, dtype=torch.float32).to(getattr(torch, name))
    z = torch.zeros(32).to(getattr(torch, name))
    double[(1,)](x, z[::2], STRIDE=2, N=16, target=target)
    assert z.float().tolist() == [v for i in range(16) for v in (float((x[i].float() * 2).to(z.dtype)), 0.0)]


def test_a_tensor_with_a_gradient() -> None:
    torch = pytest.importorskip("torch")
    x, z = torch.ones(16, requires_grad=True), torch.zeros(16)
    double[(1,)](x, z, STRIDE=1, N=16, target=TARGET)
    assert z.tolist() == [2.0] * 16


def test_a_tensor_seen_as_another_type() -> None:
    torch = pytest.importorskip("torch")
    x = weft.reinterpret(torch.full((16,), 0x3C, dtype=torch.int8), tl.float8e5)
    z = torch.zeros(16)
    double[(1,)](x, z, STRIDE=1, N=16, target=TARGET)
    assert z.tolist() == [2.0] * 16


def test_an_array_that_says_only_its_address_is_refused() -> None:
    x = np.ones(16, np.float32)
    only = SimpleNamespace(data_ptr=lambda: x.ctypes.data, dtype="float32")
    with pytest.raises(LaunchTypeError, match="`?X`? does not say how large it is"):
        double[(1,)](only, x, STRIDE=1, N=16, target=TARGET)
