"""Pictures of layouts as grids of cells, before they are drawn on a terminal or as SVG.

tile_grid      the tile: which place, or which offset, each element has
hardware_grid  the inverse: which element each place, or each bank, has
matrix_grid    the matrix over F2
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from weft.base import LayoutError
from weft.layouts import AffineLayout, LinearLayout, coordinates_of
from weft.machines import DEFAULT

from .colours import RGB, bank_colour, blank, input_colour, place_colour

PLACES = ("register", "lane", "warp", "block")
Pads = Sequence[Sequence[int]]
"""(interval, padding) of a PaddedSharedLayout, in elements."""
Map = LinearLayout | AffineLayout
LARGEST = 1 << 22
BANKS, WORD = DEFAULT.banks, DEFAULT.bank_bytes


@dataclass(frozen=True)
class Cell:
    """One cell: a short text for coloured pictures, a complete one for plain ones, the colour, what that stands for."""

    short: str
    full: str
    fill: RGB
    group: str = ""


@dataclass(frozen=True)
class Grid:
    """Rows of cells with headers; `whole` is the size before it was cut.

    `legend` is for the complete texts of cells, `short_legend` for the short ones with their colours.
    """

    title: str
    legend: tuple[str, ...]
    row_names: tuple[str, ...]
    column_names: tuple[str, ...]
    cells: tuple[tuple[Cell, ...], ...]
    whole: tuple[int, int]
    swatches: tuple[tuple[str, RGB], ...] = field(default=())
    short_legend: tuple[str, ...] = field(default=())

    @property
    def note(self) -> str | None:
        """That the picture was cut, if it was."""
        shown = (len(self.row_names), len(self.column_names))
        if shown == self.whole:
            return None
        return f"cut: {shown[0]} of {self.whole[0]} rows and {shown[1]} of {self.whole[1]} columns are shown"


def ordered_outs(layout: Map) -> list[str]:
    """The output dimensions from the slowest (rows) to the fastest (columns): dim0, dim1, ..., or as they come."""
    names = list(layout.out_dims)
    if all(n.startswith("dim") and n[3:].isdigit() for n in names):
        return sorted(names, key=lambda n: int(n[3:]))
    return names


def _checked(layout: Map) -> None:
    places, elements = (sum(size.bit_length() - 1 for size in d.values()) for d in (layout.in_dims, layout.out_dims))
    if max(places, elements) > LARGEST.bit_length() - 1:
        raise LayoutError(
            f"the layout has 2^{places} places and 2^{elements} elements, "
            f"pictures are drawn of 2^{LARGEST.bit_length() - 1} at most",
            hint="take a smaller tile: layouts repeat",
        )


def _element_numbers(layout: Map) -> np.ndarray[tuple[int, ...], np.dtype[np.int64]]:
    """For each place, in order, the number of its element, the last dimension of the tile the fastest."""
    return layout.transpose_outs(ordered_outs(layout)[::-1]).table()


def _split_place(place: int, layout: Map) -> dict[str, int]:
    coordinates = {}
    for name, size in layout.in_dims.items():
        coordinates[name] = place % size
        place //= size
    return coordinates


def padded(offset: int, pads: Pads) -> int:
    """The place in memory of an offset, both in elements: after every `interval`, `padding` elements are left out.

    >>> [padded(x, [(4, 2)]) for x in (3, 4, 8)]
    [3, 6, 12]
    """
    return offset + sum(offset // interval * padding for interval, padding in pads)


def _is_distributed(layout: Map) -> bool:
    return bool(layout.in_dims) and all(n in PLACES for n in layout.in_dims)


class _Painter:
    """Texts and colours of the places of one layout."""

    def __init__(self, layout: Map, element_bits: int, pads: Pads = ()) -> None:
        self.layout = layout
        self.pads = pads
        self.ins = layout.in_dims
        self.bits = element_bits
        self.distributed = _is_distributed(layout)
        self.shown = [n for n in ("block", "warp", "lane", "register") if self.ins.get(n, 1) > 1] or ["register"]

    def fill(self, place: dict[str, int]) -> RGB:
        if self.distributed:
            warps = self.ins.get("warp", 1) * self.ins.get("block", 1)
            warp = place.get("warp", 0) + self.ins.get("warp", 1) * place.get("block", 0)
            return place_colour(warp, warps, place.get("lane", 0), self.ins.get("lane", 1))
        if "offset" in self.ins:
            return bank_colour(padded(place["offset"], self.pads) * self.bits // 8 // WORD % BANKS, BANKS)
        first = next(iter(place), None)
        return input_colour(0) if first is None else place_colour(0, 1, place[first], self.ins[first])

    def group(self, place: dict[str, int]) -> str:
        """What the colour stands for."""
        if self.distributed:
            named = [f"{n} {place[n]}" for n in ("block", "warp", "lane") if self.ins.get(n, 1) > 1]
            return ", ".join(named)
        if "offset" in self.ins:
            return f"bank {padded(place['offset'], self.pads) * self.bits // 8 // WORD % BANKS}"
        first = next(iter(place), None)
        return "" if first is None else f"{first} {place[first]}"

    def cell(self, place: dict[str, int], more: str = "") -> Cell:
        """The cell of an element that a place has; `more` where others have it as well."""
        return Cell(self.short(place) + more, self.full(place) + more, self.fill(place), self.group(place))

    def short(self, place: dict[str, int]) -> str:
        if self.distributed:
            return str(place.get("register", 0))
        if "offset" in place:
            return str(padded(place["offset"], self.pads))
        return self.full(place)

    def full(self, place: dict[str, int]) -> str:
        if self.distributed:
            return ":".join(str(place.get(n, 0)) for n in self.shown)
        shown = {n: padded(v, self.pads) if n == "offset" else v for n, v in place.items()}
        return ":".join(str(v) for n, v in reversed(shown.items()) if self.ins[n] > 1 or len(place) == 1)

    @property
    def legend(self) -> str:
        names = self.shown if self.distributed else [n for n, s in reversed(self.ins.items()) if s > 1]
        return (":".join(names) if names else "one place") + (" (with padding)" if self.pads else "")

    @property
    def short_legend(self) -> str:
        """What the short text and the colour say."""
        if self.distributed:
            hues = [n for n, dims in (("hue", ("block", "warp")), ("shade", ("lane",))) if set(dims) & set(self.shown)]
            colours = ", ".join(f"{n} the {'warp' if n == 'hue' else 'lane'}" for n in hues)
            return "register" + (f"; {colours}" if colours else "")
        return self.legend + ("; colour the bank" if "offset" in self.ins else "")

    @property
    def swatches(self) -> tuple[tuple[str, RGB], ...]:
        if not self.distributed:
            return ()
        warps, blocks = self.ins.get("warp", 1), self.ins.get("block", 1)
        lanes = self.ins.get("lane", 1)
        swatches = []
        for w in range(min(warps * blocks, 16)):
            name = f"warp {w % warps}" + (f" of block {w // warps}" if blocks > 1 else "")
            swatches.append((name, place_colour(w, warps * blocks, lanes // 2, lanes)))
        return tuple(swatches)


def _cut(rows: int, columns: int, limit: tuple[int, int] | None) -> tuple[int, int]:
    return (rows, columns) if limit is None else (min(rows, limit[0]), min(columns, limit[1]))


def tile_grid(layout: Map, limit: tuple[int, int] | None = None, element_bits: int = 32, pads: Pads = ()) -> Grid:
    """The tile, each element with the place that has it; `+` marks elements that other places have as well.

    The last dimension runs from left to right, all others from top to bottom. `limit` cuts to so many rows and columns;
    `pads` are the pairs of a PaddedSharedLayout.
    """
    _checked(layout)
    painter = _Painter(layout, element_bits, pads)
    names = ordered_outs(layout)
    sizes = [layout.out_dims[n] for n in names]
    total, columns = int(np.prod(sizes, dtype=np.int64)), sizes[-1] if sizes else 1
    numbers = _element_numbers(layout)
    first = np.full(total, -1, np.int64)
    first[numbers[::-1]] = np.arange(len(numbers))[::-1]
    holders = np.bincount(numbers, minlength=total)
    rows, cols = _cut(total // columns, columns, limit)
    cells = []
    for r in range(rows):
        line = []
        for c in range(cols):
            at = r * columns + c
            if first[at] < 0:
                line.append(Cell("", ".", blank()))
                continue
            place = _split_place(int(first[at]), layout)
            more = "+" if holders[at] > 1 else ""
            line.append(painter.cell(place, more))
        cells.append(tuple(line))
    remarks = []
    copies = int(holders.max(initial=0))
    if copies > 1:
        remarks.append(f"+ the first of {copies} places that have the element")
    if (holders == 0).any():
        remarks.append(". no place has the element")
    outer = [coordinates_of(r, sizes[:-1]) for r in range(rows)]
    shape = " x ".join(f"{n} {s}" for n, s in zip(names, sizes))
    return Grid(
        f"tile {shape}",
        (f"each element: {painter.legend}", *remarks),
        tuple(",".join(map(str, o)) or "0" for o in outer),
        tuple(map(str, range(cols))),
        tuple(cells),
        (total // columns, columns),
        painter.swatches,
        (f"each element: {painter.short_legend}", *remarks),
    )


def hardware_grid(layout: Map, limit: tuple[int, int] | None = None, element_bits: int = 32, pads: Pads = ()) -> Grid:
    """The hardware, each place with the element it has.

    Registers: a row for each lane of each warp. Shared memory: a row for each 128 bytes, which are all banks once, with
    the gaps that padding leaves.
    """
    _checked(layout)
    painter = _Painter(layout, element_bits, pads)
    names = ordered_outs(layout)
    sizes = [layout.out_dims[n] for n in names]
    ins = layout.in_dims
    first = "offset" if "offset" in ins else None
    order = [n for n in PLACES if n in ins] if painter.distributed else sorted(ins, key=lambda n: n != first)
    view = layout.transpose_ins(order)
    numbers = view.transpose_outs(names[::-1]).table()
    if first:
        places, columns = _memory(view, element_bits, pads)
        head = f"a row for each {BANKS * WORD} bytes, elements of {element_bits} bits"
    else:
        places = np.arange(len(numbers))
        columns = ins.get("register", 1) if painter.distributed else next(iter(ins.values()), 1)
        head = "a row for each lane, a column for each register"
        head = head if painter.distributed else "a column for each value of the first input"
    rows, cols = _cut(len(places) // columns, columns, limit)
    row_names, cells = [], []
    for r in range(rows):
        row = places[r * columns : r * columns + cols].tolist()
        row_names.append(_row_name(r, columns, view, painter, element_bits, len(places)))
        cells.append(tuple(_place_cell(p, numbers, view, painter, sizes) for p in row))
    legend = (head, f"each place: the element ({', '.join(names)})", *([". padding"] if pads else []))
    return Grid(
        "hardware",
        legend,
        tuple(row_names),
        tuple(map(str, range(cols))),
        tuple(cells),
        (len(places) // columns, columns),
        painter.swatches,
    )


def _memory(view: Map, element_bits: int, pads: Pads) -> tuple[np.ndarray[Any, np.dtype[np.int64]], int]:
    """(the place of `view` at each element of memory, block after block, -1 in gaps; how many are in a row)."""
    offsets = view.in_dims["offset"]
    length = padded(offsets - 1, pads) + 1
    columns = min(1 << (length - 1).bit_length(), max(1, BANKS * WORD * 8 // element_bits))
    rows = -(-length // columns)
    every = np.arange(math.prod(view.in_dims.values()))
    places = np.full(len(every) // offsets * rows * columns, -1, np.int64)
    offset = every % offsets
    places[every // offsets * rows * columns + offset + sum(offset // i * p for i, p in pads)] = every
    return places, columns


def _place_cell(
    number: int, numbers: np.ndarray[Any, np.dtype[np.int64]], view: Map, painter: _Painter, sizes: list[int]
) -> Cell:
    if number < 0:
        return Cell("", ".", blank())
    text = ",".join(map(str, coordinates_of(int(numbers[number]), sizes)))
    place = _split_place(number, view)
    return Cell(text, text, painter.fill(place), painter.group(place))


def _row_name(row: int, columns: int, view: Map, painter: _Painter, element_bits: int, total: int) -> str:
    ins = painter.ins
    if "offset" in ins:
        blocks = ins.get("block", 1)
        rows = total // columns // blocks
        return (f"b{row // rows} " if blocks > 1 else "") + str(row % rows * columns * element_bits // 8)
    place = _split_place(row * columns, view)
    if painter.distributed:
        letters = {"block": "b", "warp": "w", "lane": "t"}
        return " ".join(f"{letters[n]}{place[n]}" for n in ("block", "warp", "lane") if ins.get(n, 1) > 1) or "0"
    return ",".join(str(v) for v in list(place.values())[1:]) or "0"


def matrix_grid(layout: LinearLayout) -> Grid:
    """The matrix: a row for each bit of the output, a column for each bit of the input, the lowest first."""
    rows = [f"{n}.{i}" for n in ordered_outs(layout) for i in range(layout.out_log(n))]
    columns = [f"{'reg' if n == 'register' else n}.{i}" for n in layout.in_dims for i in range(layout.in_log(n))]
    owners = [(at, n) for at, n in enumerate(layout.in_dims) for _ in range(layout.in_log(n))]
    matrix = layout.transpose_outs(ordered_outs(layout)).matrix()
    cells = []
    for r in range(len(rows)):
        line = []
        for c in range(len(columns)):
            bit = bool(matrix[r, c])
            at, name = owners[c]
            line.append(Cell("1", "1", input_colour(at), name) if bit else Cell("", ".", blank()))
        cells.append(tuple(line))
    return Grid(
        "matrix over F2",
        ("rows are bits of the output, columns bits of the input",),
        tuple(rows),
        tuple(columns),
        tuple(cells),
        (len(rows), len(columns)),
        tuple((n, input_colour(at)) for at, n in enumerate(layout.in_dims)),
    )
