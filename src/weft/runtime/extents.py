"""How large the memory is that an array lies in: a kernel reaches all of it from any view.

    memory_bytes(x[:10])            # the bytes of x, of which x[:10] is a view; None where nobody knows
    is_within(x[:10], 1 << 31)      # whether it has at most so many

Kernels for some GPUs are compiled for that: where two elements lie less than 2 GiB apart, a distance has 32 bits.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from .arrays import array_facts, is_tensor
from .device import devices
from .tensors import TensorWrapper


def is_within(array: Any, limit: int) -> bool:
    """Whether it is known that an array lies in memory of at most so many bytes."""
    size = memory_bytes(array)
    return size is not None and size <= limit


def memory_bytes(array: Any) -> int | None:
    """The bytes of the memory that an array is all or a part of; None where that cannot be told."""
    if is_tensor(array):
        return int(array.untyped_storage().nbytes())
    if hasattr(array, "ptr_range"):  # what libraries tell Triton
        return int(array.ptr_range())
    if isinstance(array, TensorWrapper):
        return memory_bytes(array.base)
    if isinstance(array, np.ndarray):
        return array.nbytes if array.base is None else _owned_by(array.base)
    facts = array_facts(array)
    if facts is None or facts.device is None:
        return None
    allocation = getattr(devices.driver(), "allocation_bytes", None)
    size: int | None = None if allocation is None else allocation(facts.address)
    return None if size is None or size < facts.span[1] - facts.span[0] else size  # of parts that are mapped in a row


def _owned_by(owner: Any) -> int | None:
    """The bytes of the memory of an owner of NumPy's arrays: an array, a tensor, a buffer, or what leads to one."""
    if isinstance(owner, np.ndarray) or is_tensor(owner):
        return memory_bytes(owner)
    try:
        return memoryview(owner).nbytes
    except TypeError:
        owner = getattr(owner, "base", None)
        return None if owner is None else _owned_by(owner)
