"""`LayoutLink`: the layout of something (a variable at a breakpoint, a tile of a kernel), with the ways to look at it.

print(link)       the command that makes the page
link.to_html()    the page, as text for a file
link              in a notebook, the picture of the layout
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from weft.base import LayoutError
from weft.base.remarks import LayoutChanged, LayoutChosen, Remarks
from weft.layouts import Layout, LinearLayout

from .expressions import as_linear, parse_layout
from .natural import name_of
from .page import PageLayout, render_page
from .pictures import to_html

__all__ = ["LayoutLink", "link_to", "links_of"]


@dataclass(frozen=True)
class LayoutLink:
    """The layout of a tile of this shape, with elements of so many bits, and the page that shows it.

    >>> link = link_to("#ttg.blocked<{sizePerThread = [1, 2], threadsPerWarp = [4, 8], warpsPerCTA = [1, 1], "
    ...                "order = [1, 0]}>", (4, 16), 16, "x")
    >>> print(link)
    x: weft layout show 'BlockedLayout([1, 2], [4, 8], [1, 1], [1, 0])' --shape 4x16 --bits 16 --html layout.html
    """

    text: str
    """The layout as an expression."""
    shape: tuple[int, ...]
    element_bits: int = 32
    name: str = ""
    """What has the layout, in the source."""
    pads: tuple[tuple[int, int], ...] = ()

    @property
    def layout(self) -> LinearLayout | Layout:
        """The layout itself."""
        return parse_layout(self.text, self.shape)

    @property
    def linear(self) -> LinearLayout:
        """Its linear map, from places to the coordinates of the tile."""
        return as_linear(self.layout, self.shape)

    @property
    def command(self) -> str:
        """What shows it in a shell."""
        shape = "x".join(map(str, self.shape))
        bits = self.element_bits
        return f"weft layout show {shlex.quote(self.text)} --shape {shape} --bits {bits} --html layout.html"

    def to_html(self) -> str:
        """The page: one file that needs nothing else."""
        shown = PageLayout(self.text, self.linear, self.pads)
        in_memory = self.linear.has_in("offset")
        return render_page(
            shown,
            self.shape,
            shared=shown if in_memory else None,
            element_bits=self.element_bits,
            title=f"{self.name or 'layout'}: {self.text}",
            opens="banks" if in_memory else "tile",
        )

    def _repr_html_(self) -> str:
        return to_html(self.layout, self.shape)

    def __str__(self) -> str:
        return f"{self.name}: {self.command}" if self.name else self.command


def link_to(
    layout: str | LinearLayout | Layout,
    shape: Sequence[int],
    element_bits: int = 32,
    name: str = "",
    pads: Sequence[Sequence[int]] = (),
) -> LayoutLink:
    """The link to a layout, given as it is or as text of layout IR."""
    found = parse_layout(layout, shape) if isinstance(layout, str) else layout
    pairs = tuple((int(interval), int(padding)) for interval, padding in pads)
    return LayoutLink(name_of(found, shape) or repr(found), tuple(shape), element_bits, name, pairs)


def links_of(remarks: Remarks, bits_of: Mapping[str, int]) -> list[LayoutLink]:
    """A link for each layout that the compiler chose for tiles; `bits_of` has the widths of types of elements."""
    links = []
    for remark in remarks.of(LayoutChosen):
        of_tile = (c for c in remarks.of(LayoutChanged) if (c.tile, c.span) == (remark.tile, remark.span))
        text = [remark.layout, *(c.after for c in of_tile)][-1]
        *sizes, element = remark.tile.split("x")
        at = f"{remark.span.file}:{remark.span.line} " if remark.span is not None else ""
        try:
            name = at + ", ".join(remark.variables)
            links.append(link_to(text, [int(size) for size in sizes], bits_of.get(element, 32), name.strip()))
        except LayoutError:  # of no registers
            continue
    return links
