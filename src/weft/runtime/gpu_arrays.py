"""Arrays in a GPU's memory for those who have only NumPy, and what else a script needs to use a GPU.

    x = weft.cuda.to_device(np.arange(1024, dtype=np.float32))
    out = weft.cuda.empty_like(x)
    kernel[(1,)](x, out, 1024, BLOCK=1024)      # runs on the GPU, because its arrays are there
    out.numpy()                                  # waits, and copies back

Whoever has PyTorch or CuPy needs nothing of this: their arrays are taken as they are.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import ml_dtypes  # noqa: F401  (its element types get names)
import numpy as np

from weft.base import LaunchError, LaunchTypeError
from weft.compiler.backends import Driver

from .arrays import array_facts, dtype_name
from .device import devices
from .streams import own_stream, stream
from .views import dtype_of, numpy_view

__all__ = [
    "DeviceArray",
    "device_count",
    "empty",
    "empty_like",
    "is_available",
    "stream",
    "synchronize",
    "to_device",
    "zeros",
]


def typestr(dtype: np.dtype[Any]) -> str:
    """The name of an element type in the array interface; of one that it has no letter for, that of its bits.

    >>> typestr(np.dtype(np.float32)), typestr(np.dtype("bfloat16"))
    ('<f4', '<u2')
    """
    try:
        named = np.dtype(dtype.str) == dtype
    except TypeError:
        named = False
    return dtype.str if named else np.dtype(f"u{dtype.itemsize}").str


def _shape(shape: Any) -> tuple[int, ...]:
    """A number or several, as the sizes of an array."""
    try:
        sizes = (operator.index(shape),) if hasattr(shape, "__index__") else tuple(map(operator.index, shape))
    except TypeError:
        raise LaunchTypeError(f"the shape of an array on a GPU is an integer or several, got {shape!r}") from None
    if any(n < 0 for n in sizes):
        raise LaunchError(f"the shape {sizes} of an array on a GPU has a negative size")
    return sizes


def _dtype(dtype: Any) -> np.dtype[Any]:
    """An element type of NumPy, ml_dtypes, PyTorch or the language, as NumPy's; LaunchTypeError for other ones."""
    try:
        element: np.dtype[Any] = np.dtype(dtype)
    except TypeError:
        return dtype_of(dtype_name(dtype))
    dtype_name(element)
    return element


class DeviceArray:
    """A dense array in a GPU's memory, given back when nothing refers to it any more.

    `shape`, `dtype`, `strides` (bytes), `size` and `nbytes` are as in NumPy; `device` is the number of its GPU. A copy,
    a pickled one too, has memory of its own; `numpy.asarray(x)` is `x.numpy()`.
    """

    driver: Driver
    """That of its GPU's vendor."""

    def __new__(cls, *args: Any, **kwargs: Any) -> DeviceArray:
        """Arrays of a vendor have a class of their own, because launches are kept by the classes of their arguments."""
        driver: Any = devices.driver()
        return object.__new__(array_of(driver) if cls is DeviceArray else cls)

    def __init__(self, shape: int | Sequence[int], dtype: Any, device: int | None = None) -> None:
        self.shape = _shape(shape)
        self.dtype = _dtype(dtype)
        self.size = math.prod(self.shape)
        self.nbytes = self.size * self.dtype.itemsize
        self._gpu = self.driver.current_device() if device is None else self.driver.device(device)
        self.device = self._gpu.index
        self.address = 0
        self.address = self.driver.allocate(self.nbytes, self._gpu)

    @property
    def strides(self) -> tuple[int, ...]:
        """The bytes between neighbours in each dimension."""
        steps = [self.dtype.itemsize]
        for n in self.shape[:0:-1]:
            steps.append(steps[-1] * n)
        return tuple(reversed(steps))[-len(self.shape) :] if self.shape else ()

    def ptr_range(self) -> int:
        """The bytes of its memory."""
        return self.nbytes

    @property
    def ndim(self) -> int:
        """How many dimensions it has."""
        return len(self.shape)

    def stride(self, dim: int | None = None) -> Any:
        """Strides in elements, or one of them, as in PyTorch."""
        steps = tuple(s // self.dtype.itemsize for s in self.strides)
        return steps if dim is None else steps[dim]

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        kind = typestr(self.dtype)
        return {"shape": self.shape, "typestr": kind, "data": (self.address, False), "version": 3, "strides": None}

    def numpy(self) -> np.ndarray[Any, Any]:
        """A copy in host memory; waits for the kernels that write it."""
        host = np.empty(self.shape, self.dtype)
        if self.nbytes:
            self._gpu.synchronize()
            self.driver.to_host(host.ctypes.data, self.address, self.nbytes, self._gpu)
        return host

    def copy_from(self, array: Any) -> DeviceArray:
        """Take the elements of an array of the host with the same shape and type; gives itself."""
        host = _on_the_host(array)
        if host.shape != self.shape or host.dtype != self.dtype:
            raise LaunchTypeError(
                f"a {host.dtype} array of shape {host.shape} cannot fill a {self.dtype} one of shape {self.shape}"
            )
        if self.nbytes:
            self._gpu.synchronize()
            self.driver.to_device(self.address, host.ctypes.data, self.nbytes, self._gpu)
        return self

    def zero_(self) -> DeviceArray:
        """Fill it with zeros, in the order of Weft's own stream; gives itself."""
        self.driver.fill(self.address, self.nbytes, self._gpu, own_stream())
        return self

    def copy_(self, other: DeviceArray) -> DeviceArray:
        """Take the elements of another array of the same GPU, shape and type, in stream order; gives itself."""
        if not isinstance(other, DeviceArray):
            raise LaunchTypeError(
                f"a {type(other).__name__} cannot be copied into {self!r}", hint="x.copy_from takes arrays of the host"
            )
        same = type(other) is type(self) and other.device == self.device
        if not same or (other.shape, other.dtype) != (self.shape, self.dtype):
            raise LaunchTypeError(f"{other!r} cannot be copied into {self!r}")
        self.driver.copy(self.address, other.address, self.nbytes, self._gpu, own_stream())
        return self

    def clone(self) -> DeviceArray:
        """A copy on the same GPU."""
        return type(self)(self.shape, self.dtype, self.device).copy_(self)

    def __copy__(self) -> DeviceArray:
        return self.clone()

    def __deepcopy__(self, memo: Any) -> DeviceArray:
        return self.clone()

    def __reduce__(self) -> tuple[Any, ...]:
        return to_device, (self.numpy(), self.device)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray[Any, Any]:
        if copy is False:
            raise ValueError("an array on a GPU becomes one of NumPy's only by a copy")
        return self.numpy() if dtype is None else self.numpy().astype(dtype, copy=False)

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("an array without dimensions has no length")
        return self.shape[0]

    def __repr__(self) -> str:
        return f"weft.cuda.DeviceArray({self.shape}, {self.dtype}, GPU {self.device})"

    def __del__(self) -> None:
        address = getattr(self, "address", 0)
        if address:
            try:
                self.driver.free(address, self._gpu)
            except Exception:  # the process ends, or the GPU is lost: there is nothing to give back
                self.address = 0


@lru_cache(maxsize=8)
def array_of(driver: Any) -> type[DeviceArray]:
    """The class of arrays of a vendor."""
    return type("DeviceArray", (DeviceArray,), {"driver": driver, "__module__": __name__})


def is_available() -> bool:
    """Whether there is a GPU, a driver for it, and the package that talks to it."""
    return devices.available()


def device_count() -> int:
    """GPUs that this process sees; 0 where there are none."""
    return devices.device_count() if devices.available() else 0


def _on_the_host(array: Any) -> np.ndarray[Any, Any]:
    """An array of the host, of whatever library, or numbers, as a dense one of NumPy's."""
    facts = None if isinstance(array, (np.ndarray, DeviceArray)) else array_facts(array)
    if facts is not None and facts.device is not None:
        raise LaunchError(
            f"the {type(array).__name__} is on GPU {facts.device} already", hint="kernels take it as it is"
        )
    host = numpy_view(array, "array") if hasattr(array, "data_ptr") else np.asarray(array)
    dtype_name(host.dtype)
    return np.asarray(host, order="C")


def to_device(array: Any, device: int | None = None) -> DeviceArray:
    """A copy of an array of the host, or of numbers, on a GPU; the current one if none is given.

    NoDevice where there is none; LaunchTypeError for elements that kernels cannot have.
    """
    host = _on_the_host(array)
    return DeviceArray(host.shape, host.dtype, device).copy_from(host)


def empty(shape: int | Sequence[int], dtype: Any = np.float32, device: int | None = None) -> DeviceArray:
    """An array on a GPU whose elements are whatever lies there."""
    return DeviceArray(shape, dtype, device)


def zeros(shape: int | Sequence[int], dtype: Any = np.float32, device: int | None = None) -> DeviceArray:
    """An array of zeros on a GPU."""
    return to_device(np.zeros(shape, dtype), device)


def empty_like(array: Any) -> DeviceArray:
    """An array on the same GPU, or the current one, with the shape and type of another."""
    if not hasattr(array, "shape") or not hasattr(array, "dtype"):
        raise LaunchTypeError(f"a {type(array).__name__} has no shape and type of elements")
    place = getattr(array, "device", None)
    return DeviceArray(array.shape, array.dtype, place if isinstance(place, int) else None)


def synchronize(device: int | None = None) -> None:
    """Wait for everything that was queued. DeviceLost when a kernel went wrong."""
    (devices.current_device() if device is None else devices.device(device)).synchronize()
