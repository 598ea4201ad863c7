"""How a bulk tensor copy divides a buffer: into boxes, with the swizzle mode that reproduces the buffer's layout.

A box of a tensor goes to shared memory row after row, and a swizzle xors the numbers of the 16-byte chunks: both are
linear, so a mode of the copy engine is a LinearLayout from offsets to coordinates. A buffer can be filled by it if that
map divides the buffer's layout from the left; the quotient says which boxes there are.

>>> from weft.layouts import NVMMASharedLayout
>>> boxes_of(NVMMASharedLayout(128, 16, 2).to_linear([64, 128]), 2)
Boxes(box=(64, 64), swizzle=128, offsets=(0, 8192), starts=((0, 0), (0, 64)))

Two blocks of a cluster that hold the same each begin a half:

>>> boxes_of(NVMMASharedLayout(128, 16, 2, cga_layout=[[0, 0]]).to_linear([64, 64]), 2)
Boxes(box=(32, 64), swizzle=128, offsets=(0, 4096), starts=((0, 0), (32, 0)))
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import prod

from weft.layouts import LinearLayout, coordinates_of, f2
from weft.targets.nvidia import MOST_PIXELS, SWIZZLES

from .matrices import of_block

LONGEST = 256
"""Elements of a box along one dimension."""


@dataclass(frozen=True)
class Boxes:
    """`box` is the outermost dimension first; of each box where it begins, in bytes and in coordinates."""

    box: tuple[int, ...]
    swizzle: int
    offsets: tuple[int, ...]
    starts: tuple[tuple[int, ...], ...]

    @property
    def bytes_of_map(self) -> tuple[int, ...]:
        """The box as a tensor map has it: the innermost dimension first."""
        return self.box[::-1]

    def bytes(self, width: int) -> int:
        """The size of a box whose elements have `width` bytes."""
        return prod(self.box) * width


def boxes_of(memory: LinearLayout, width: int) -> Boxes | None:
    """The fewest boxes that a buffer of elements of `width` bytes falls into; None where no mode gives its layout.

    In a cluster they are those of one block. If several blocks hold the same, there is a box for each of them to begin,
    as far as boxes can be halved.
    """
    shape = tuple(of_block(memory).out_dims.values())
    blocks = memory.bases["block"] if memory.has_in("block") else ()
    shared = 1 << sum(not any(basis) for basis in blocks)
    largest: Boxes | None = None
    for swizzle in SWIZZLES:
        for box in _candidates(shape, swizzle, width):
            boxes = divided(memory, box, swizzle, width)
            if boxes is not None and (largest is None or _cost(boxes, shared) < _cost(largest, shared)):
                largest = boxes
    return largest


def _cost(boxes: Boxes, shared: int) -> tuple[int, int]:
    """How many of `shared` blocks have no box to begin, then how many boxes there are: less is better."""
    return max(0, shared - len(boxes.offsets)), len(boxes.offsets)


def columns_of(memory: LinearLayout, width: int) -> Boxes | None:
    """The same for a copy of images, whose box has all pixels and the channels that the swizzle takes at a time.

    >>> from weft.layouts import NVMMASharedLayout
    >>> columns_of(NVMMASharedLayout(32, 32, 2).to_linear([512, 16]), 4)
    Boxes(box=(512, 8), swizzle=32, offsets=(0, 16384), starts=((0, 0), (0, 8)))
    """
    shape = tuple(of_block(memory).out_dims.values())
    if len(shape) != 2 or shape[0] > MOST_PIXELS:
        return None
    candidates = [
        divided(memory, (shape[0], min(shape[1], LONGEST if swizzle == 16 else swizzle // width)), swizzle, width)
        for swizzle in SWIZZLES
    ]
    return min((x for x in candidates if x is not None), key=lambda x: len(x.offsets), default=None)


def boxes_within(memory: LinearLayout, boxes: Boxes, begin: int, width: int) -> Boxes | None:
    """The same boxes where they are in a larger buffer, of which they fill a part; offsets are from where it begins.

    That is byte `begin`, where the first element is. None where the buffer does not consist of boxes of that size and
    swizzle, or where the part begins within a pattern of the swizzle.

    >>> from weft.layouts import NVMMASharedLayout
    >>> half = boxes_of(NVMMASharedLayout(128, 16, 2).to_linear([64, 128]), 2)
    >>> half.offsets, boxes_within(NVMMASharedLayout(128, 16, 2).to_linear([128, 128]), half, 8192, 2).offsets
    ((0, 8192), (0, 16384))
    """
    if len(memory.out_dims) != len(boxes.box) or begin % max(128, 8 * boxes.swizzle):
        return None
    every = divided(memory, boxes.box, boxes.swizzle, width)
    if every is None:
        return None
    places = dict(zip(every.starts, every.offsets, strict=True))
    if any(start not in places for start in boxes.starts):
        return None
    return replace(boxes, offsets=tuple(places[start] for start in boxes.starts))


def _candidates(shape: Sequence[int], swizzle: int, width: int) -> list[tuple[int, ...]]:
    """Boxes in the order of their sizes: the inner dimension first, the others as each before them is whole."""
    inner = min(shape[-1], LONGEST if swizzle == 16 else swizzle // width)
    if inner * width < 16:
        return []
    box = [1] * (len(shape) - 1) + [inner]
    boxes = [tuple(box)]
    for d in range(len(shape) - 2, -1, -1):
        while box[d] < min(shape[d], LONGEST):
            box[d] *= 2
            boxes.append(tuple(box))
        if box[d] < shape[d]:
            break
    return boxes


def divided(memory: LinearLayout, box: tuple[int, ...], swizzle: int, width: int) -> Boxes | None:
    """The boxes of this size, if those of this mode are what the buffer consists of."""
    bases = memory.bases["offset"]
    size = 1
    for n in box:
        size *= n
    inside = size.bit_length() - 1
    if len(bases) < inside:
        return None
    for i in range(inside):
        if tuple(bases[i]) != coordinates_of(_swizzled(width << i, swizzle) // width, box):
            return None
    rest = bases[inside:]
    if any(x % n for basis in rest for x, n in zip(basis, box, strict=True)):
        return None
    numbers = f2.span([1 << i for i in range(len(rest))])
    starts = []
    for number in numbers:
        at = [0] * len(box)
        for i, basis in enumerate(rest):
            if number >> i & 1:
                at = [a ^ b for a, b in zip(at, basis, strict=True)]
        starts.append(tuple(at))
    return Boxes(box, swizzle, tuple(n * size * width for n in numbers), tuple(starts))


def _swizzled(x: int, swizzle: int) -> int:
    return x ^ (x >> 3 & (swizzle // 16 - 1) << 4)
