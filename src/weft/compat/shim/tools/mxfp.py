"""triton.tools.mxfp: microscaling formats as PyTorch tensors, for tests of `tl.dot_scaled`.

a = MXFP4Tensor(size=(128, 64)).random()      # e2m1 elements, one for each byte of a.data
packed = a.to_packed_tensor(dim=1)            # two for each byte, the first in the low half
scale = MXScaleTensor(size=(128, 2)).random(high=32.0)
"""

from __future__ import annotations

import itertools
import math
from typing import Any

_VALUES = (0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0)
"""The magnitudes of e2m1, by their code."""

_SCALE_BIAS = 127
_SCALE_NAN = 255


def _torch() -> Any:
    import torch

    return torch


class _Coded:
    """Numbers by their codes in bytes: those of `data`, or codes to come, of a size."""

    def __init__(self, data: Any = None, size: Any = None, device: Any = None) -> None:
        if data is None and size is None:
            raise ValueError("Either parameter data or size must be provided")
        self.device = device if data is None else data.device
        self.size = size
        self.data: Any = None if data is None else self._from_float(data)

    @staticmethod
    def _from_float(values: Any) -> Any:
        raise NotImplementedError


class MXFP4Tensor(_Coded):
    """A tensor of 4-bit floats (one sign, two exponent, one mantissa bit), a code in each byte of `data`."""

    def random(self) -> MXFP4Tensor:
        """Any of the 16 codes, equally likely."""
        torch = _torch()
        self.data = torch.randint(0, 16, self.size, dtype=torch.uint8, device=self.device)
        return self

    def to(self, dtype: Any) -> Any:
        """The values, as float32."""
        torch = _torch()
        if dtype != torch.float32:
            raise ValueError("Currently only float32 is supported for f4e2m1 to float conversion")
        table = torch.tensor([*_VALUES, *(-v for v in _VALUES)], dtype=torch.float32, device=self.data.device)
        return table[self.data.long()]

    @staticmethod
    def _from_float(values: Any) -> Any:
        """The nearest code, to an even one where two are equally near; 6 in magnitude is the most."""
        torch = _torch()
        values = values.float()
        magnitude = values.abs()
        code = torch.zeros_like(magnitude, dtype=torch.uint8)
        for i, (below, above) in enumerate(itertools.pairwise(_VALUES)):
            middle = (below + above) / 2
            # At the middle the even code is taken: the one above where i is odd.
            beyond = magnitude >= middle if i % 2 else magnitude > middle
            code += beyond.to(torch.uint8)
        return code | (torch.signbit(values).to(torch.uint8) << 3)

    def to_packed_tensor(self, dim: int) -> Any:
        """Two codes in each byte, neighbours along `dim`; padded with a zero where their number is odd."""
        torch = _torch()
        data = self.data
        if not 0 <= dim < data.ndim:
            raise AssertionError("The dimension to pack along is not within the range of tensor dimensions")
        if data.shape[dim] % 2:
            pad = list(data.shape)
            pad[dim] = 1
            data = torch.cat([data, torch.zeros(pad, dtype=data.dtype, device=data.device)], dim)
        low, high = (
            data.narrow(dim, 0, data.shape[dim]).index_select(
                dim, torch.arange(k, data.shape[dim], 2, device=data.device)
            )
            for k in (0, 1)
        )
        return (high << 4) | low

    @staticmethod
    def unpack_packed_tensor(packed_tensor: Any, dim: int, original_shape: Any) -> Any:
        """The codes of a packed tensor, one for each byte."""
        torch = _torch()
        both = torch.stack([packed_tensor & 15, packed_tensor >> 4], dim + 1)
        flat = both.flatten(dim, dim + 1)
        return flat.narrow(dim, 0, original_shape[dim]).contiguous()


class MXScaleTensor(_Coded):
    """A tensor of scales, powers of two: e8m0, the exponent plus 127 in a byte; 255 is NaN."""

    def random(self, low: float | None = None, high: float | None = None) -> MXScaleTensor:
        """Scales between two bounds, each exponent equally likely."""
        torch = _torch()
        lowest = 0 if low is None else max(0, int(math.log2(low)) + _SCALE_BIAS)
        highest = 254 if high is None else min(254, int(math.log2(high)) + _SCALE_BIAS)
        if lowest > highest:
            raise ValueError(f"the lower bound {low} must not exceed the upper bound {high}")
        self.data = torch.randint(lowest, highest + 1, self.size, dtype=torch.uint8, device=self.device)
        return self

    def to(self, dtype: Any) -> Any:
        """The values, as float32."""
        torch = _torch()
        if dtype != torch.float32:
            raise ValueError("Currently only float32 is supported for f8e8m0 to float conversion")
        exponent = self.data.to(torch.int32) - _SCALE_BIAS
        value = torch.ldexp(torch.ones_like(exponent, dtype=torch.float32), exponent)
        return torch.where(self.data == _SCALE_NAN, torch.full_like(value, float("nan")), value)

    @staticmethod
    def _from_float(values: Any) -> Any:
        """The power of two at or below each value; NaN for what is not positive."""
        if not values.is_floating_point():
            raise TypeError(f"MXScaleTensor is made of a floating point tensor, got {values.dtype}")
        torch = _torch()
        wide = values.double()
        _, exponent = torch.frexp(wide)
        code = torch.clamp(exponent.to(torch.int32) - 1 + _SCALE_BIAS, 0, 254).to(torch.uint8)
        usable = (wide > 0) & torch.isfinite(wide)
        return torch.where(usable, code, torch.full_like(code, _SCALE_NAN))
