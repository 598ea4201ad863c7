"""Arrays of the host as NumPy's, in the same memory, whatever made them.

NumPy's own protocols do not carry everything that a kernel takes: PyTorch refuses `.numpy()` for bfloat16, for 8-bit
floats and for what has a gradient; wrapped tensors have no protocol at all. Address, shape and strides are enough.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np

from weft.base import LaunchTypeError
from weft.ops.dtypes import SIGNATURE_DTYPES

from .arrays import ANYWHERE, ArrayFacts, host_facts
from .protocols import described


def dtype_of(name: str) -> np.dtype[Any]:
    """The type of elements by its name in a signature, as NumPy's.

    >>> dtype_of("fp32"), dtype_of("bf16")
    (dtype('float32'), dtype(bfloat16))
    """
    return SIGNATURE_DTYPES[name]


class _Memory:
    """A range of host memory for NumPy; keeps its owner alive."""

    def __init__(self, owner: Any, facts: ArrayFacts) -> None:
        self.owner = owner
        low, high = facts.span
        self.__array_interface__ = {
            "version": 3, "typestr": "|u1", "shape": (high - low,), "data": (facts.address + low, not facts.writeable),
        }  # fmt: skip


def numpy_view(value: Any, name: str) -> np.ndarray[Any, Any]:
    """The array that an argument is, as NumPy's and in the same memory.

    LaunchTypeError, with the argument's name, for what is no array or does not say how large it is; LaunchError for an
    array that is not in the host's memory.
    """
    if isinstance(value, np.ndarray):
        return value
    facts = host_facts(value)
    if facts is None:
        raise LaunchTypeError(f"the argument {name} is no array of the host", name)
    if facts.span == ANYWHERE:
        raise LaunchTypeError(f"the argument {name} does not say how large it is", name, hint="pass an array")
    dtype = dtype_of(facts.element)
    if hasattr(value, "data_ptr") and callable(getattr(value, "stride", None)):
        shape = tuple(int(n) for n in value.shape)
        strides = tuple(int(s) * dtype.itemsize for s in value.stride())
    elif hasattr(value, "__array_interface__"):  # which NumPy itself reads less patiently than `host_facts`
        described_as = described(value, "__array_interface__")
        shape = described_as.shape
        strides = described_as.strides or tuple(dtype.itemsize * math.prod(shape[k + 1 :]) for k in range(len(shape)))
    else:  # all from its first element on
        facts = replace(facts, span=(0, facts.span[1]))
        shape, strides = (facts.span[1] // dtype.itemsize,), (dtype.itemsize,)
    if 0 in shape:
        return np.empty(0, dtype)
    memory = np.asarray(_Memory((value, facts.keeper), facts))
    return np.ndarray(shape, dtype, memory, -facts.span[0], strides)
