"""Copies of blocks of tensors between global and local memory by gfx1250's tensor data mover, and the wait for them.

    tensor_load_to_lds        one wave begins a copy of a tile; a descriptor in scalar registers says what and where
    tensor_store_from_lds     the other way
    s_wait_tensorcnt n        until at most n of this wave's are under way; they end in their order
    s_wait_dscnt n            the same of accesses to local memory by its instructions, with which copies have no order

A descriptor is groups of words; dimension 0 is the innermost, whose elements follow each other. By LLVM's intrinsics,
and as Triton 3.6.0 fills it in; there was no processor to confirm it.

    group 0   word 0   1 for a copy that takes place, 0 for one that does not
              word 1   address in local memory
              words 2, 3   address in global memory, 57 bits; the highest two bits are 2
    group 1   word 0   bits 16, 17: log2 of an element's bytes; bit 20: gaps; bits 22 to 24: a gap after 2^(n + 1) words
                       of 4 bytes; bits 25 to 31:
                       of n + 1 words; bit 18: arrive at a barrier (`mbarriers`), when this copy and those before it
                       are done
              word 1   bits 0 to 15: where the barrier is, in units of 8 bytes
              word 1   bits 16 to 31, word 2, word 3 up to bit 15: sizes 0 and 1 of the tensor from the tile on
              word 3   bits 16 to 31, word 4: sizes 0, 1, 2 of the tile, of 16 bits
              words 5 to 7   strides of dimensions 1 and 2 in elements, of 48 bits
    group 2   sizes 2 and 3 of the tensor; word 2, word 3 up to bit 15: stride of dimension 3; bits 16 to 31: size 3 of
              the tile
    group 3   stride of dimension 4, of 48 bits; size 4 of the tensor, of 32; size 4 of the tile, of 16

What of a tile is outside of the tensor is 0 when it is loaded, and is not stored.

>>> words = [1, 256, 4096, 2 << 30], [1 << 16, 3 << 16, 2 << 16, 4 << 16, 2, 8, 0, 0]
>>> tile = Tile.decoded(*words)
>>> tile.sizes, tile.tensor, tile.strides
((4, 2), (3, 2), (1, 8))
>>> address, inside, shared = tile.elements()
>>> address.tolist(), inside.tolist(), shared.tolist()
([4096, 4098, 4100, 4102, 4112, 4114, 4116, 4118], [True, True, True, False, True, True, True, False], \
[256, 258, 260, 262, 264, 266, 268, 270])
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from ..instruction import Array, Effects, Instruction, Operand, Reach
from .mbarriers import on_mbarrier
from .products import GFX1250, constant

TENSORS = ("tensor_load_to_lds", "tensor_store_from_lds")
TENSOR_WAIT, LOCAL_WAIT = "s_wait_tensorcnt", "s_wait_dscnt"
TO = "to"
"""An operand that is no argument: word 1 of group 0 once more, so that it is seen which memory a copy is of."""
BARRIER = "barrier"
"""Another one, of a copy that arrives at a barrier: where that is."""


@dataclass(frozen=True)
class Tile:
    """What a descriptor says; the innermost dimension is the first."""

    enabled: bool
    shared: int
    address: int
    width: int
    """Bytes of an element."""
    tensor: tuple[int, ...]
    """The sizes of the tensor, from where the tile begins."""
    sizes: tuple[int, ...]
    strides: tuple[int, ...]
    gap: tuple[int, int]
    """(bytes between gaps in local memory, bytes of a gap); (0, 0) for none."""
    barrier: int = -1
    """The address of a barrier at which the copy arrives; -1 for none."""

    @classmethod
    def decoded(cls, first: Sequence[int], second: Sequence[int], *more: Sequence[int]) -> Tile:
        """What the words of the groups say; with two groups of two dimensions."""
        a, b = ([int(x) & 0xFFFFFFFF for x in group] for group in (first, second))
        tensor = [b[1] >> 16 | (b[2] & 0xFFFF) << 16, b[2] >> 16 | (b[3] & 0xFFFF) << 16]
        sizes, strides = [b[3] >> 16, b[4] & 0xFFFF], [1, b[5] | (b[6] & 0xFFFF) << 32]
        if more:
            c, d = ([int(x) & 0xFFFFFFFF for x in group] for group in more)
            tensor += [c[0], c[1], d[1] >> 16 | (d[2] & 0xFFFF) << 16]
            sizes += [b[4] >> 16, c[3] >> 16, d[2] >> 16]
            strides += [b[6] >> 16 | b[7] << 16, c[2] | (c[3] & 0xFFFF) << 32, d[0] | (d[1] & 0xFFFF) << 32]
        while len(sizes) > 1 and not sizes[-1]:  # dimensions that a tile does not have
            for x in (tensor, sizes, strides):
                x.pop()
        gap = 4 << (b[0] >> 22 & 7) + 1, 4 * ((b[0] >> 25) + 1)
        return cls(
            bool(a[0] & 1), a[1], a[2] | (a[3] & (1 << 25) - 1) << 32, 1 << (b[0] >> 16 & 3), tuple(tensor),
            tuple(sizes), tuple(strides), gap if b[0] >> 20 & 1 else (0, 0),
            (b[1] & 0xFFFF) * 8 if b[0] >> 18 & 1 else -1,
        )  # fmt: skip

    @property
    def bytes(self) -> int:
        """Of all elements."""
        return prod(self.sizes) * self.width

    def elements(self) -> tuple[Array, Array, Array]:
        """Of each element, as they follow each other in local memory: its global address, whether it is inside of the
        tensor, its place in local memory."""
        at: list[Any] = list(np.indices(self.sizes[::-1]).reshape(len(self.sizes), -1)[::-1])
        address = self.address + self.width * sum(x * s for x, s in zip(at, self.strides, strict=True))
        inside = np.all([x < size for x, size in zip(at, self.tensor, strict=True)], axis=0)
        place = np.arange(len(inside)) * self.width
        interval, padding = self.gap
        if interval:
            place = place + place // interval * padding
        return np.asarray(address), np.asarray(inside), self.shared + place


def tensor_instructions() -> Iterator[Instruction]:
    """All entries of this file: copies of up to two dimensions, of up to five, the wait."""
    groups = (("place", 4), ("inner", 8), ("outer", 4), ("outermost", 4))
    for name in TENSORS:
        for dimensions, count in ((2, 2), (5, 4)):
            used = groups[:count]
            intrinsic = f"llvm.amdgcn.{name.replace('_', '.')}" + (".d2" if dimensions == 2 else "")
            operands = (Operand(TO, "i32", 1, "r"), *(Operand(n, "i32", words, "r") for n, words in used))
            arguments = (*((f"<{words} x i32>", n) for n, words in used), *constant(0))
            stores = name == TENSORS[0]
            for arrives in (False, True)[: 1 + stores]:
                yield Instruction(
                    f"{name}.{dimensions}d" + ".arriving" * arrives, GFX1250, intrinsic,
                    (*operands, Operand(BARRIER, "i32", 1, "r")) if arrives else operands, cost=4, touches="bulk",
                    width=4, stores=stores, params={"arguments": arguments, "returns": ()},
                )  # fmt: skip
    for name in (TENSOR_WAIT, LOCAL_WAIT):
        yield Instruction(
            name, GFX1250, f"llvm.amdgcn.{name.replace('_', '.')}", (Operand("pending", "i32", 1, "n"),),
            touches="sync", params={"arguments": (("i16", "pending"),), "returns": ()},
        )  # fmt: skip


def effects(entry: Instruction) -> Effects:
    """What others have to be ordered with: of a copy the memory of the whole wave, some time later."""
    if entry.name == TENSOR_WAIT:
        return Effects(waits="bulk")
    if entry.touches == "barrier":
        return on_mbarrier(entry)
    if entry.name.endswith(".arriving"):
        return Effects((Reach(BARRIER, 8, "atomic"), Reach(TO, 1, "write", later="barrier")))
    if entry.touches == "bulk":
        return Effects((Reach(TO, 1, "write" if entry.stores else "read", later="bulk"),))
    return entry.effects()
