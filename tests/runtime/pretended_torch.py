"""A tensor of PyTorch on a pretended GPU: both vendors' tests launch kernels with it where there is no PyTorch."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np


class Tensor:
    """As far as launches look at it; the quickest way in is for its class alone."""

    is_cuda, is_cpu, is_nested, layout = True, False, False, "strided"

    def __init__(self, address: int = 1 << 40, dtype: Any = np.float32, size: int = 64, device: int = 0) -> None:
        self.dtype, self.device = np.dtype(dtype), SimpleNamespace(type="cuda", index=device)
        self.address, self.size, self.storage = address, size, 0

    def data_ptr(self) -> int:
        return self.address

    def get_device(self) -> int:
        return int(self.device.index)

    def is_neg(self) -> bool:
        return False

    def numel(self) -> int:
        return self.size

    def untyped_storage(self) -> Any:
        return SimpleNamespace(nbytes=lambda: self.storage or self.size * self.dtype.itemsize)

    def element_size(self) -> int:
        return self.dtype.itemsize

    def is_contiguous(self) -> bool:
        return True


Tensor.__module__ = "torch"
