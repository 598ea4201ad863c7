"""A random kernel on a GPU: launched twice on the same numbers, and twice on numbers that are not whole.

On whole numbers every result is exact, so that it is NumPy's. On others sums are rounded, so that it depends on their
order; what is checked then is that both launches give the same bits. Arrays lie between bytes that must stay as they
are.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from weft.runtime import gpu_arrays as cuda

from .arrays import Block, blocks
from .elements import Array, is_float
from .program import Program

ALIGNED = 256  # bytes; of an allocation, and of each guard
GUARD = 0xA5
EXACT = os.environ.get("WEFT_FUZZ_EXACT") == "1"
"""Whether allocations end where arrays do, so that a tool that knows allocations sees what goes beyond."""

__all__ = ["difference_on_gpu"]


@dataclass(frozen=True)
class Part:
    """An array in the memory of a GPU, as a launch takes it."""

    address: int
    dtype: np.dtype[Any]
    shape: tuple[int, ...]
    device: int

    @property
    def __cuda_array_interface__(self) -> dict[str, Any]:
        kind = cuda.typestr(self.dtype)
        return {"shape": self.shape, "typestr": kind, "data": (self.address, False), "version": 3, "strides": None}


class Placed:
    """A block on the GPU between two guards; a tight one ends where a guard begins, whatever its alignment."""

    def __init__(self, block: Block) -> None:
        self.block = block
        size = block.values.nbytes
        room = -(-max(1, size) // ALIGNED) * ALIGNED
        self.start = ALIGNED + (room - size if block.tight else 0)
        whole = self.start + size if EXACT else room + 2 * ALIGNED
        host = np.full(whole, GUARD, np.uint8)
        host[self.start : self.start + size] = block.values.view(np.uint8)
        self.memory = cuda.to_device(host)

    def parts(self) -> dict[str, Part]:
        """The arrays that lie here."""
        dtype, memory = self.block.values.dtype, self.memory
        address = memory.address + self.start
        return {
            name: Part(address + start * dtype.itemsize, dtype, (n,), memory.device)
            for name, (start, n) in self.block.parts.items()
        }

    def back(self) -> dict[str, Array]:
        """What the arrays hold now. RuntimeError where a guard was written."""
        host, values = self.memory.numpy(), self.block.values
        inside = host[self.start : self.start + values.nbytes].copy().view(values.dtype)
        host[self.start : self.start + values.nbytes] = GUARD
        if (host != GUARD).any():
            where = int(np.flatnonzero(host != GUARD)[0]) - self.start
            raise RuntimeError(f"byte {where} of {values.nbytes} of {', '.join(self.block.parts)} was written")
        return {name: inside[start : start + n] for name, (start, n) in self.block.parts.items()}


def _launched(kernel: Any, program: Program, options: Mapping[str, Any], rough: bool) -> dict[str, Array]:
    """What the arrays hold after one launch."""
    placed = [Placed(block) for block in blocks(program, rough)]
    parts = {name: part for p in placed for name, part in p.parts().items()}
    arguments = program.arguments({a.name: parts[a.name] for a in program.arrays})
    kernel[(program.programs,)](**arguments, **program.launch_values(), **options)
    cuda.synchronize()
    return {name: values for p in placed for name, values in p.back().items()}


def _other_bits(program: Program, first: dict[str, Array], second: dict[str, Array], rough: bool) -> str:
    """Where two launches on the same numbers gave other bits."""
    for array in program.arrays:
        if rough and array.kind == "atomic" and is_float(array.elem):
            continue  # the order of these additions is left open
        a, b = (run[array.name].view(np.uint8) for run in (first, second))
        if not np.array_equal(a, b):
            at = np.flatnonzero(a != b) // first[array.name].dtype.itemsize
            numbers = "other numbers" if rough else "whole numbers"
            return f"{array.name} has other bits the second time, on {numbers}, at {len(set(at))} places, first {at[0]}"
    return ""


def difference_on_gpu(kernel: Any, program: Program, expected: dict[str, Array], options: Mapping[str, Any]) -> str:
    """What the kernel does on the GPU otherwise than the interpreter, or otherwise the second time; "" if nothing."""
    first = _launched(kernel, program, options, rough=False)
    what = program.compared(expected, first)
    if what:
        return what
    second = _launched(kernel, program, options, rough=False)
    what = _other_bits(program, first, second, rough=False)
    if what or not any(is_float(a.elem) for a in program.arrays):
        return what
    runs = [_launched(kernel, program, options, rough=True) for _ in range(2)]
    return _other_bits(program, *runs, rough=True)
