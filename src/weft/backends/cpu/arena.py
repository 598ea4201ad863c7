"""Scratch memory of one program: buffers placed by lifetime, so that memory used early is used again while it is in the
cache.
"""

from __future__ import annotations

from collections.abc import Sequence

from weft.backends.cpu.elementwise import memory_type
from weft.backends.cpu.evaluate import Buffer
from weft.backends.llvm.emit import PTR, Function
from weft.backends.llvm.emit import Value as Reg

ALIGN = 64


class Arena:
    """Places buffers in one block of `size` bytes (known at the end)."""

    def __init__(self, f: Function, base: Reg) -> None:
        self.f, self.base = f, base
        self.size = 0
        self.live: list[Buffer] = []

    def allocate(self, elem: str, numel: int, weights: Sequence[Sequence[int]], now: int, last: int) -> Buffer:
        """A buffer in use from operation `now` to operation `last`; those whose time is over give way.

        A result that nothing reads is in use all the same while the operation that writes it runs.
        """
        last = max(now, last)
        size = -(-numel * memory_type(elem).bits // 8 // ALIGN) * ALIGN
        self.live = sorted((b for b in self.live if b.last >= now), key=lambda b: b.offset)
        offset = 0
        for b in self.live:
            if offset + size <= b.offset:
                break
            offset = max(offset, b.offset + b.size)
        self.size = max(self.size, offset + size)
        address = self.base if offset == 0 else self.f.entry_value(PTR, f"getelementptr i8, {self.base}, i64 {offset}")
        buffer = Buffer(address, elem, tuple(tuple(w) for w in weights), offset, size, last)
        self.live.append(buffer)
        return buffer
