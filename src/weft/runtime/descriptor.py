"""Tensor descriptors made on the host: an array, the shape of it to look at, and the block that is moved at a time.

desc = TensorDescriptor(x, shape=[M, N], strides=[N, 1], block_shape=[64, 64])
desc = TensorDescriptor.from_tensor(x, [64, 64])
"""

from __future__ import annotations

import operator
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from weft.base import LaunchError, shorten, shortened

from .arrays import ArrayFacts, address_of, array_facts, dtype_name, element_bytes


def handed_on(name: str, value: TensorDescriptor) -> str:
    """Source of what a launch hands on for a descriptor of that name and this one's class, of a tensor on a GPU."""
    address = f"{name}.base.data_ptr()"
    if hasattr(value, "layout"):
        return f"({name}, {address})"
    return f"({address}, {name}.padding == 'nan', *{name}.shape, *{name}.strides)"


def extent(tensor: Any) -> tuple[list[int], list[int]]:
    """Shape and strides of an array, in elements."""
    if callable(getattr(tensor, "stride", None)):
        return list(tensor.shape), list(tensor.stride())
    if not all(hasattr(tensor, name) for name in ("dtype", "shape", "strides")):
        _array_facts(tensor)
        raise LaunchError(
            f"a {type(tensor).__name__} does not say its shape", hint="give TensorDescriptor shape and strides"
        )
    itemsize = tensor.dtype.itemsize
    return list(tensor.shape), [s // itemsize for s in tensor.strides]


def _integers(name: str, values: Sequence[Any]) -> list[int]:
    if isinstance(values, (tuple, list)) and {*map(type, values)} == {int}:
        return [*values]
    try:
        return [operator.index(getattr(v, "value", v)) for v in values]
    except TypeError as error:
        listed = list(values) if isinstance(values, Iterable) else repr(values)
        raise LaunchError(f"{name} of a tensor descriptor must hold integers, got {listed}") from error


def _array_facts(base: Any) -> ArrayFacts:
    facts = array_facts(base)
    if facts is None:
        raise LaunchError(f"the base of a tensor descriptor must be an array, got {type(base).__name__}")
    return facts


@dataclass
class TensorDescriptor:
    """A view of `base` that kernels load and store block by block; elements outside of it read as `padding`.

    The rules are those of the hardware that has descriptors, so that a kernel runs on every target: 1 to 5 dimensions,
    the last one contiguous, address and other strides multiples of 16 bytes.

    >>> x = np.zeros((4, 8), np.float32)
    >>> weft.TensorDescriptor.from_tensor(x, [2, 4]).strides
    [8, 1]
    """

    base: Any
    shape: list[int]
    strides: list[int]
    block_shape: list[int]
    padding: str = "zero"

    images: ClassVar[bool] = False
    """Whether the block is of pixels and channels, whatever dimensions the array has."""

    def __post_init__(self) -> None:
        try:
            self._check()
        except LaunchError as error:
            shorten(error)
            raise

    def _check(self) -> None:
        self.shape = _integers("shape", self.shape)
        self.strides = _integers("strides", self.strides)
        self.block_shape = _integers("block_shape", self.block_shape)
        rank = len(self.shape)
        if not 1 <= rank <= 5:
            raise LaunchError(f"a tensor descriptor has 1 to 5 dimensions, got the shape {self.shape}")
        for name, values in (("strides", self.strides), *([] if self.images else [("block_shape", self.block_shape)])):
            if len(values) != rank:
                raise LaunchError(
                    f"{name} {values} of a tensor descriptor must have one entry for each of {self.shape}"
                )
        element, address = self._array()
        size = element_bytes(element)
        if address % 16:
            raise LaunchError(
                f"the base of a tensor descriptor must be 16-byte aligned, its address is {address:#x}",
                hint="a copy is aligned: x.clone() in PyTorch, x.copy() elsewhere",
            )
        if min(self.shape) < 1:
            raise LaunchError(f"the shape of a tensor descriptor must be positive, got {self.shape}")
        if any(n < 1 or n & (n - 1) for n in self.block_shape):
            raise LaunchError(f"the block shape of a tensor descriptor must be powers of 2, got {self.block_shape}")
        if self.strides[-1] != 1:
            raise LaunchError(
                f"the last dimension of a tensor descriptor must be contiguous, got strides {self.strides}"
            )
        for stride in self.strides[:-1]:
            if stride * size % 16:
                raise LaunchError(
                    f"strides of a tensor descriptor must be multiples of 16 bytes, "
                    f"got {self.strides} elements of {size} bytes"
                )
        if self.padding not in ("zero", "nan"):
            raise LaunchError(f'the padding of a tensor descriptor is "zero" or "nan", got {self.padding!r}')
        if self.padding == "nan" and element[:2] not in ("fp", "bf"):
            raise LaunchError(f'padding "nan" needs floating point elements, the array holds {element}')
        self._check_layout(element)

    def _check_layout(self, element: str) -> None:
        """Whether blocks lie in shared memory in a way that fits them; here the compiler chooses one."""

    @staticmethod
    @shortened
    def from_tensor(tensor: Any, block_shape: Sequence[int], padding: str = "zero") -> TensorDescriptor:
        """Describe the whole of an array, with its own shape and strides."""
        shape, strides = extent(tensor)
        return TensorDescriptor(tensor, shape, strides, list(block_shape), padding)

    def _array(self) -> tuple[str, int]:
        """(type of the elements, address): of arrays of NumPy and tensors of PyTorch, which may be described anew for
        each launch, without looking at all that arrays may be.
        """
        base = self.base
        if type(base) is np.ndarray:
            return dtype_name(base.dtype), address_of(base)
        if type(base).__module__ == "torch" and type(base).__name__ == "Tensor":
            with suppress(RuntimeError):  # one without memory, such as a sparse one: what it is is said below
                address = base.data_ptr()
                if address and not (base.is_neg() or base.is_nested):
                    return dtype_name(base.dtype), address
        facts = self._facts()
        return facts.element, facts.address

    def _facts(self) -> ArrayFacts:
        """The array, as it is now: `base` can be assigned to."""
        return _array_facts(self.base)

    @property
    def signature(self) -> str:
        """Its type in a signature: tensordesc<fp16[64, 64]>."""
        return self._signature(self._facts())

    def _signature(self, facts: ArrayFacts) -> str:
        return f"tensordesc<{facts.element}{[int(n) for n in self.block_shape]}>"

    @property
    def known(self) -> str:
        """What kernels are specialised for: R where rows are known to be multiples of 16 bytes, Z where padding is 0.

        Strides are such multiples, so rows that follow each other without gaps are.
        """
        whole = self.shape[-1] % 16 == 0 or (len(self.shape) > 1 and self.shape[-1] == self.strides[-2])
        return ("R" if whole else "") + ("Z" if self.padding == "zero" else "")

    @property
    def device(self) -> int | None:
        """The number of the GPU that the array is on; None for the host."""
        return self._facts().device

    def slots(self) -> tuple[int, ...]:
        """What is handed to the kernel: address, padding, shape, strides."""
        return self._slots(self._facts())

    def _slots(self, facts: ArrayFacts) -> tuple[int, ...]:
        return (facts.address, int(self.padding == "nan"), *self.shape, *self.strides)

    def bound(self) -> tuple[str, int | None, tuple[int, ...]]:
        """(signature, device, slots), which all ask what the array is: that is asked once."""
        facts = self._facts()
        return self._signature(facts), facts.device, self._slots(facts)
