"""Arrays of a case on the GPU, strides, offsets and element types kept; and back."""

from __future__ import annotations

from typing import Any

import numpy as np

import weft
from kernels.case import Descriptor
from kernels.running import element_strides
from weft.runtime import gpu_arrays as cuda
from weft.runtime.gluon import TensorDescriptor
from weft.targets.instruction import Array


class View:
    """An array of the host on the GPU: the whole memory that it is a view of is copied."""

    def __init__(self, array: Array) -> None:
        root = array
        while isinstance(root.base, np.ndarray):
            root = root.base
        self.host, self.root = array, root.ravel(order="K") if root.flags.forc else root
        self.memory = cuda.to_device(np.ascontiguousarray(self.root).view(np.uint8).reshape(-1))
        self.dtype, self.shape, self.device = array.dtype, array.shape, self.memory.device
        offset = array.__array_interface__["data"][0] - root.__array_interface__["data"][0]
        self.address = self.memory.address + offset

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        kind = cuda.typestr(self.dtype)
        data = (self.address, not self.host.flags.writeable)
        return {"shape": self.shape, "typestr": kind, "data": data, "version": 3, "strides": self.host.strides}

    def back(self) -> None:
        """Copy the memory back into the host's array."""
        self.root.reshape(-1).view(np.uint8)[...] = self.memory.numpy()


def launch(kernel: Any, grid: Any, *args: Any, **options: Any) -> None:
    """Launch a kernel on the GPU with arrays of the host, or descriptors of such, copied there and back."""
    views: list[View] = []

    def moved(value: Any) -> Any:
        if isinstance(value, np.ndarray):
            views.append(View(value))
            return views[-1]
        if isinstance(value, TensorDescriptor):
            base = moved(value.base)
            return TensorDescriptor(base, value.shape, value.strides, value.block_shape, value.layout, value.padding)
        return value

    kernel[grid](*map(moved, args), **options)
    for view in views:
        view.back()


def on_device(value: Any, views: list[View]) -> Any:
    """An argument of a case as it is launched on a GPU; arrays are noted, to be copied back."""
    if isinstance(value, np.ndarray):
        views.append(View(value))
        return views[-1]
    if isinstance(value, Descriptor):
        views.append(View(value.array))
        array = value.array
        block = list(value.block_shape)
        return weft.TensorDescriptor(views[-1], list(array.shape), element_strides(array), block, value.padding)
    if isinstance(value, tuple):
        return tuple(on_device(v, views) for v in value)
    return value
