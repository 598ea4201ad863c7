"""Stand-ins for arrays: one without memory, and one that looks at memory as another type.

kernel.warmup(MockTensor("fp32"), MockTensor("fp32"), 1024, grid=(1,))
kernel[grid](reinterpret(bytes_array, tl.float8e5), ...)
"""

from __future__ import annotations

from typing import Any

import numpy as np

from weft.base import LaunchError, LaunchTypeError, shortened

from .arrays import array_facts, dtype_name


def looks_like_dtype(value: Any) -> bool:
    """Is it an element type of PyTorch or NumPy (and so, in a warm-up, stands for an array)?"""
    return isinstance(value, np.dtype) or (type(value).__name__ == "dtype" and type(value).__module__ == "torch")


class MockTensor:
    """A stand-in for an array of which only the type is known; its address counts as divisible by 16.

    >>> weft.MockTensor(tl.float32).dtype
    weft.language.float32
    """

    def __init__(self, dtype: Any, shape: Any = None) -> None:
        self.dtype = dtype
        self.shape = [1] if shape is None else list(shape)

    @staticmethod
    def wrap_dtype(value: Any) -> Any:
        """An element type becomes a stand-in, anything else stays."""
        return MockTensor(value) if looks_like_dtype(value) else value

    def stride(self, dim: int | None = None) -> Any:
        """Strides of a contiguous array of this shape, in elements, or one of them."""
        strides = [1]
        for size in self.shape[:0:-1]:
            strides.append(strides[-1] * size)
        strides.reverse()
        return tuple(strides) if dim is None else strides[dim]

    @staticmethod
    def data_ptr() -> int:
        """No memory."""
        return 0

    @staticmethod
    def ptr_range() -> int:
        """No memory."""
        return 0


@shortened
def like(shape: Any, dtype: Any) -> MockTensor:
    """A stand-in for an array, with a shape and a type but no data, for `kernel.explain` and `kernel.warmup`.

    >>> x = like((4096, 1000), "fp16")
    >>> x.shape, x.stride(0)
    ([4096, 1000], 1000)
    """
    sizes = shape if isinstance(shape, (tuple, list)) else (shape,)
    if not all(isinstance(size, (int, np.integer)) and size >= 0 for size in sizes):
        raise LaunchTypeError(
            f"the sizes of an array are integers that are not negative, got {shape!r}",
            hint='weft.like((4096, 1000), "fp32")',
        )
    return MockTensor(dtype, sizes)


class TensorWrapper:
    """The memory of `base` viewed with another element type, made by `reinterpret`.

    >>> halves = weft.reinterpret(np.zeros(4, np.int16), tl.float16)
    >>> type(halves).__name__, halves.dtype, halves.shape, halves.element_size()
    ('TensorWrapper', weft.language.float16, (4,), 2)
    """

    def __init__(self, base: Any, dtype: Any) -> None:
        self.base = base
        self.dtype = dtype
        self.data = getattr(base, "data", base)
        self.device = getattr(base, "device", "cpu")
        self.shape = tuple(base.shape)

    @property
    def writeable(self) -> bool:
        """Whether its memory may be written to."""
        facts = array_facts(self.base)
        return facts is None or facts.writeable

    def data_ptr(self) -> int:
        """The address of the first element."""
        if hasattr(self.base, "data_ptr"):
            return int(self.base.data_ptr())
        facts = array_facts(self.base)
        if facts is None:
            raise LaunchTypeError(f"{type(self.base).__name__} is not an array")
        return facts.address

    def numel(self) -> int:
        """The number of elements."""
        return int(np.prod(self.shape, dtype=np.int64))

    def stride(self, *args: Any) -> Any:
        """Strides in elements, or one of them."""
        base = self.base
        if callable(getattr(base, "stride", None)):
            return base.stride(*args)
        strides = tuple(s // base.dtype.itemsize for s in base.strides)
        return strides[args[0]] if args else strides

    def element_size(self) -> int:
        """Bytes of an element."""
        size = getattr(self.base, "element_size", None)
        return int(size()) if size is not None else int(self.base.dtype.itemsize)

    def is_contiguous(self) -> bool:
        """Are the elements dense and in order?"""
        check = getattr(self.base, "is_contiguous", None)
        return bool(check()) if check is not None else bool(self.base.flags.c_contiguous)

    def cpu(self) -> TensorWrapper:
        """The same, in host memory."""
        return TensorWrapper(self.base.cpu() if hasattr(self.base, "cpu") else self.base, self.dtype)

    def copy_(self, other: Any) -> None:
        """Take over the bits of another."""
        if hasattr(self.base, "copy_"):
            self.base.copy_(other.base)
        else:
            self.base[...] = other.base

    def clone(self) -> TensorWrapper:
        """A copy."""
        return TensorWrapper(self.base.clone() if hasattr(self.base, "clone") else self.base.copy(), self.dtype)

    def to(self, device: Any) -> TensorWrapper:
        """The same, on a device."""
        return TensorWrapper(self.base.to(device) if hasattr(self.base, "to") else self.base, self.dtype)

    def new_empty(self, sizes: Any) -> TensorWrapper:
        """An uninitialised array of the same type."""
        base = self.base.new_empty(sizes) if hasattr(self.base, "new_empty") else np.empty(sizes, self.base.dtype)
        return TensorWrapper(base, self.dtype)

    def __str__(self) -> str:
        return f"TensorWrapper[{self.dtype}]({self.base})"


@shortened
def reinterpret(tensor: Any, dtype: Any) -> Any:
    """View an array's memory with another element type of the same size (`dtype` may be a type of `tl`).

    >>> x = np.zeros(4, np.uint8)
    >>> weft.reinterpret(x, tl.int8).dtype
    weft.language.int8
    """
    if isinstance(tensor, TensorWrapper):
        return tensor.base if dtype == tensor.base.dtype else TensorWrapper(tensor.base, dtype)
    if array_facts(tensor) is None:
        raise LaunchTypeError(f"cannot reinterpret a {type(tensor).__name__}: it is not an array")
    try:
        dtype_name(dtype)
    except TypeError:
        raise LaunchError(f"{dtype!r} is not an element type") from None
    return TensorWrapper(tensor, dtype)
