"""triton.tools.mxfp, against the real one where it is installed."""

from __future__ import annotations

import importlib
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from weft.compat.shim.tools import mxfp  # noqa: E402


@pytest.fixture
def real() -> Any:
    pytest.importorskip("triton")
    module = importlib.import_module("triton.tools.mxfp")
    if "weft" in (module.__file__ or ""):
        pytest.skip("triton is Weft here")
    return module


def test_every_code_and_every_rounding(real: Any) -> None:
    values = torch.cat([torch.linspace(-8, 8, 2049), torch.tensor([0.0, -0.0, 100.0, -100.0, 1e-8, 5.0, 0.25, 0.75])])
    ours, theirs = mxfp.MXFP4Tensor(data=values), real.MXFP4Tensor(data=values)
    assert (ours.data == theirs.data).all()
    assert (ours.to(torch.float32) == theirs.to(torch.float32)).all()


@pytest.mark.parametrize("shape", [(4, 6), (3, 5), (2, 3, 8)])
def test_packing(real: Any, shape: tuple[int, ...]) -> None:
    tensor = mxfp.MXFP4Tensor(size=shape, device="cpu").random()
    other = real.MXFP4Tensor(size=shape, device="cpu")
    other.data = tensor.data
    for dim in range(len(shape)):
        packed = tensor.to_packed_tensor(dim)
        assert (packed == other.to_packed_tensor(dim)).all()
        assert (tensor.unpack_packed_tensor(packed, dim, shape) == tensor.data).all()
    for each in (tensor, other):
        with pytest.raises(AssertionError, match="not within the range"):
            each.to_packed_tensor(7)


def test_scales(real: Any) -> None:
    values = torch.tensor([1.0, 2.0, 3.0, 0.1, 1e-30, 1e30, 0.0, -1.0, float("nan"), float("inf")])
    ours, theirs = mxfp.MXScaleTensor(data=values), real.MXScaleTensor(data=values)
    assert ours.data.tolist()[:6] == theirs.data.tolist()[:6]
    assert ours.data.tolist()[6:9] == [255] * 3
    codes = mxfp.MXScaleTensor(size=(500,), device="cpu").random(low=0.25, high=8.0)
    assert codes.to(torch.float32).min() >= 0.25 and codes.to(torch.float32).max() <= 8
    everything = mxfp.MXScaleTensor(size=(256,), device="cpu")
    other = real.MXScaleTensor(size=(256,), device="cpu")
    everything.data = other.data = torch.arange(256, dtype=torch.uint8)
    torch.testing.assert_close(everything.to(torch.float32), other.to(torch.float32), equal_nan=True, rtol=0, atol=0)


def test_wrong_uses() -> None:
    with pytest.raises(ValueError, match="data or size"):
        mxfp.MXFP4Tensor()
    with pytest.raises(TypeError, match="floating point"):
        mxfp.MXScaleTensor(data=torch.ones(3, dtype=torch.int32))
