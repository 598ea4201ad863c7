"""Scratch memory of one program: buffers placed by lifetime, so that memory used early is used again while it is in the
cache.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from weft.backends.cpu.buffers import Buffer
from weft.backends.cpu.coords import row_major
from weft.backends.cpu.elementwise import memory_type
from weft.backends.cpu.program import Value
from weft.backends.llvm.emit import Function
from weft.backends.llvm.values import PTR, Value as Reg

ALIGN = 64


class Arena:
    """Places buffers in one block of `size` bytes (known at the end)."""

    def __init__(self, f: Function, base: Reg) -> None:
        self.f, self.base = f, base
        self.size = 0
        self.live: list[Buffer] = []
        self.made: list[tuple[Value, int, Buffer]] = []
        """All buffers: for which tile, and from which operation on."""
        self._names: dict[int, str] = {}
        self._fullest: list[Buffer] = []

    def allocate(
        self,
        value: Value,
        now: int,
        last: int,
        *,
        elem: str | None = None,
        weights: Sequence[Sequence[int]] | None = None,
        copies: int = 1,
    ) -> Buffer:
        """A buffer for a tile, in use from operation `now` to operation `last`; those whose time is over give way.

        With `copies` there is room for several of them. A result that nothing reads is in use all the same while the
        operation that writes it runs.
        """
        last = max(now, last)
        elem = elem or value.elem
        size = -(-copies * value.numel * memory_type(elem).bits // 8 // ALIGN) * ALIGN
        self.live = sorted((b for b in self.live if b.last >= now), key=lambda b: b.offset)
        offset = 0
        for b in self.live:
            if offset + size <= b.offset:
                break
            offset = max(offset, b.offset + b.size)
        address = self.base if offset == 0 else self.f.entry_value(PTR, f"getelementptr i8, {self.base}, i64 {offset}")
        buffer = Buffer(address, elem, tuple(tuple(w) for w in weights or row_major(value.shape)), offset, size, last)
        self.live.append(buffer)
        self.made.append((value, now, buffer))
        self._names[id(buffer)] = f"{value.name} {elem}[{', '.join(map(str, value.shape))}]"
        if offset + size > self.size:
            self.size = offset + size
            self._fullest = list(self.live)
        return buffer

    def largest(self, count: int = 6) -> list[list[Any]]:
        """What takes most of the memory when it is fullest: [name with type and shape, bytes], the largest first."""
        largest = sorted(self._fullest, key=lambda b: -b.size)[:count]
        return [[self._names.get(id(b), b.elem), b.size] for b in largest]
