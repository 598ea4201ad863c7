"""Tiles that lie in scratch memory."""

from __future__ import annotations

from dataclasses import dataclass

from weft.backends.llvm.values import Value as Reg


@dataclass(eq=False)
class Buffer:
    """A tile in scratch memory: its address, its element, and for each bit of each coordinate the bit of the element
    offset it is.
    """

    address: Reg
    elem: str
    weights: tuple[tuple[int, ...], ...]
    offset: int = 0
    size: int = 0
    last: int = 0
