"""Layouts read from their pictures: what `triton-tensor-layout` prints, and Gluon's `format_tensor_view` and
`format_hardware_view` (text.py writes the same).

    [[ T0:0| T4:0,  T0:1| T4:1]         each element, with the threads and registers that hold it
     [ T1:0| T5:0,  T1:1| T5:1]]
    Warp0:                              each register of a warp's lanes, a line each
    (0,0), (0,2)
    [[(0:0),(0:1)]                      of shared memory: the element at each offset, and one a line
     [(1:1),(1:0)]]
    Offset: 0 -> (0,0)

    >>> read_view("[[T0:0, T0:1]\\n [T1:0, T1:1]]", lanes=2).bases
    {'register': ((0, 1),), 'lane': ((1, 0),), 'warp': (), 'block': ()}

A picture says where every element is; that it is linear is checked, element by element.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from math import prod
from typing import Any

from weft.base import LayoutError

from .dims import coordinates_of
from .linear import LinearLayout

__all__ = ["read_view"]

HOLDER = re.compile(r"(?:B(\d+):)?T(\d+):(\d+)", re.ASCII)
PIECE = re.compile(r"\[|\]|\(\s*\d+(?:\s*:\s*\d+)*\)|(?:B\d+:)?T\d+:\d+(?:\s*\|\s*(?:B\d+:)?T\d+:\d+)*|,", re.ASCII)
POINT = re.compile(r"\(([\d,\s]*)\)", re.ASCII)
PLACES = ("register", "lane", "warp", "block")
Places = dict[tuple[int, ...], tuple[int, ...]]
"""The coordinates of the element at each place."""


def read_view(text: str, lanes: int | None = None) -> LinearLayout:
    """The layout of a picture in text; LayoutError where it is none, is not whole, or is not linear.

    `lanes` is the number of threads of a warp, which pictures of tiles do not say; 32, or all where there are fewer.

    >>> from weft.layouts import BlockedLayout
    >>> layout = BlockedLayout([1, 2], [4, 8], [2, 1], [1, 0])
    >>> read_view(layout.format_tensor_view([8, 16])) == layout.to_linear([8, 16])
    True
    """
    lines = [line for line in text.splitlines() if line.strip()]
    if not lines:
        raise LayoutError("there is no picture of a layout in the text: it is empty")
    if lines[0].lstrip().startswith("["):
        shape, elements = _nested(text)
        if HOLDER.match(elements[0]):
            return _linear(_held(elements, shape, lanes), PLACES, shape)
        points: Places = {(offset, 0): _numbers(element, ":") for offset, element in enumerate(elements)}
        return _linear(points, ("offset", "block"), shape)
    places, names = _by_place(lines)
    sizes = [max(axis) + 1 for axis in zip(*places.values())]
    return _linear(places, names, sizes)


def _nested(text: str) -> tuple[list[int], list[str]]:
    """(the shape of a picture in brackets, its elements in order)."""
    stack: list[list[Any]] = [[]]
    for match in re.finditer(r"\S+?(?=[\[\],]|\s|$)|[\[\],]", text):  # nothing but pieces may be there
        if not re.match(r"[\[\](),:|BT\d]", match[0]):
            raise LayoutError(f"a picture of a layout has no {match[0][:20]!r} in it", hint="give the picture alone")
    for match in PIECE.finditer(text):
        piece = match[0]
        if piece == "[":
            stack.append([])
        elif piece == "]":
            if len(stack) < 2:
                raise LayoutError("the picture of a layout has a ']' without its '['")
            stack[-2].append(stack.pop())
        elif piece != ",":
            stack[-1].append(piece)
    if len(stack) != 1 or len(stack[0]) != 1:
        raise LayoutError("the picture of a layout is cut: not all of its brackets are closed")
    shape, level = [], stack[0]
    while level and isinstance(level[0], list):
        sizes = {len(inner) for inner in level}
        if len(sizes) != 1 or not all(isinstance(inner, list) for inner in level):
            raise LayoutError(
                f"the rows of the picture have {', '.join(map(str, sorted(sizes)))} elements, not the same"
            )
        shape.append(sizes.pop())
        level = [element for inner in level for element in inner]
    if not level:
        raise LayoutError("the picture of a layout has no element")
    return shape, level


def _held(elements: Sequence[str], shape: Sequence[int], lanes: int | None) -> Places:
    """The element at each (register, lane, warp, block), from the holders of each element."""
    holders: dict[tuple[int, int, int], int] = {}
    for at, element in enumerate(elements):
        for block, thread, register in HOLDER.findall(element):
            holders[int(block or 0), int(thread), int(register)] = at
    threads = 1 + max(thread for _, thread, _ in holders)
    width = min(32, threads) if lanes is None else lanes
    return {
        (register, thread % width, thread // width, block): coordinates_of(at, shape)
        for (block, thread, register), at in holders.items()
    }


def _by_place(lines: Iterable[str]) -> tuple[Places, tuple[str, ...]]:
    """(the element at each place, the names of places) of a picture of the hardware."""
    places: Places = {}
    block = warp = register = 0
    memory = False
    for line in lines:
        if found := re.fullmatch(r"\s*Block:?\s*(\d+):\s*", line):
            block = int(found[1])
        elif found := re.fullmatch(r"\s*Warp(\d+):\s*", line):
            warp, register = int(found[1]), 0
        elif found := re.fullmatch(r"\s*Offset:\s*(\d+)\s*->\s*(\(.*\))\s*", line):
            places[int(found[1]), block], memory = _numbers(found[2], ","), True
        elif POINT.sub("", line).replace(",", "").strip():
            raise LayoutError(
                f"expected a picture of a layout, found the line {line.strip()[:60]!r}",
                hint="triton-tensor-layout, format_tensor_view and format_hardware_view print such pictures",
            )
        else:
            for lane, point in enumerate(POINT.findall(line)):
                places[register, lane, warp, block] = _numbers(point, ",")
            register += 1
    if not places or len({len(point) for point in places.values()}) != 1:
        raise LayoutError("the picture of a layout has no elements, or of different numbers of coordinates")
    return places, ("offset", "block") if memory else PLACES


def _numbers(text: str, between: str) -> tuple[int, ...]:
    return tuple(int(part) for part in text.strip("() ").split(between))


def _linear(places: Places, names: Sequence[str], shape: Sequence[int]) -> LinearLayout:
    """The linear layout that has these elements at these places."""
    sizes = [max(axis) + 1 for axis in zip(*places)]
    for name, size in (*zip(names, sizes), *((f"dim{i}", size) for i, size in enumerate(shape))):
        if size & (size - 1):
            raise LayoutError(f"the picture has {size} of {name}, which is no power of two", hint="is it cut?")
    if len(places) != prod(sizes):
        missing = next(
            place for at in range(prod(sizes)) if (place := coordinates_of(at, sizes[::-1])[::-1]) not in places
        )
        shown = ", ".join(f"{name} {x}" for name, x in zip(names, missing))
        raise LayoutError(f"the picture has no element at {shown}", hint="is it cut?")
    bases = {
        name: [places[tuple(1 << i if d == at else 0 for d in range(len(names)))] for i in range(size.bit_length() - 1)]
        for at, (name, size) in enumerate(zip(names, sizes))
    }
    dims = {f"dim{i}": size for i, size in enumerate(shape)}
    linear = LinearLayout(bases, dims, require_surjective=False)
    for place, point in places.items():
        found = tuple(linear.apply(dict(zip(names, place))).values())
        if found != point:
            shown = ", ".join(f"{name} {x}" for name, x in zip(names, place))
            raise LayoutError(
                f"the picture does not show a linear layout: {shown} has {point}, and the xor of its bits is {found}",
                hint="warps of other sizes than 32 are given by `lanes`" if "lane" in names else None,
            )
    return linear
