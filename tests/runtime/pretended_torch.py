"""A tensor of PyTorch on a pretended GPU: both vendors' tests launch kernels with it where there is no PyTorch."""

from __future__ import annotations

import ctypes
from types import SimpleNamespace
from typing import Any

import numpy as np


class Tensor:
    """As far as launches look at it; the quickest way in is for its class alone."""

    is_cuda, is_cpu, is_nested, layout = True, False, False, "strided"

    def __init__(self, address: int = 1 << 40, dtype: Any = np.float32, size: int = 64, device: int = 0) -> None:
        self.dtype, self.device = np.dtype(dtype), SimpleNamespace(type="cuda", index=device)
        self.address, self.size, self.storage, self.is_negative = address, size, 0, False
        self.sizes, self.strides = (ctypes.c_int64 * 1)(size), (ctypes.c_int64 * 1)(1)

    def data_ptr(self) -> int:
        return self.address

    def get_device(self) -> int:
        return int(self.device.index)

    def is_neg(self) -> bool:
        return self.is_negative

    def numel(self) -> int:
        return self.size

    def untyped_storage(self) -> Any:
        return SimpleNamespace(nbytes=lambda: self.storage or self.size * self.dtype.itemsize)

    def element_size(self) -> int:
        return self.dtype.itemsize

    def is_contiguous(self) -> bool:
        return True


Tensor.__module__ = "torch"


@ctypes.PYFUNCTYPE(ctypes.c_int32, ctypes.py_object, ctypes.c_void_p)
def _describe(tensor: Tensor, told: int) -> int:
    """Write a DLTensor; -1 for a tensor that has no memory of its own, where PyTorch raises."""
    try:
        address = tensor.data_ptr()
    except RuntimeError:
        return -1
    if tensor.is_nested:
        return -1
    words, cuda, codes = (ctypes.c_int64 * 6).from_address(told), 2, {"i": 0, "u": 1, "f": 2, "b": 6}
    element = codes[tensor.dtype.kind] | 8 * tensor.dtype.itemsize << 8 | 1 << 16
    sizes, strides = map(ctypes.addressof, (tensor.sizes, tensor.strides))
    words[:] = [address, cuda | tensor.get_device() << 32, 1 | element << 32, sizes, strides, 0]
    return 0


_major, _minor = 1, 3
_TABLE = (ctypes.c_void_p * 7)(_major | _minor << 32, *[None] * 4, ctypes.cast(_describe, ctypes.c_void_p), None)
_NAME = ctypes.create_string_buffer(b"dlpack_exchange_api")
_capsule = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_void_p)
Tensor.__dlpack_c_exchange_api__ = _capsule(("PyCapsule_New", ctypes.pythonapi))(  # type: ignore[attr-defined]
    ctypes.addressof(_TABLE), ctypes.addressof(_NAME), None
)
