"""Pictures of layouts and plans for notebooks and documents: `to_svg`, `to_html`; static, so that they survive export.

Importing this room, or asking a layout in a notebook for its picture, provides the `_repr_html_` of all layouts and
plans (weft/layouts/pictures.py), of at most some 60 KB.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from html import escape
from typing import Any

from weft.base import LayoutError
from weft.layouts import AffineLayout, Layout, LinearLayout, PaddedSharedLayout
from weft.layouts.pictures import provide
from weft.layouts.plan import Gather, LocalAccess, Plan, Reduction

from .expressions import as_linear
from .grid import Grid, hardware_grid, matrix_grid, tile_grid
from .natural import natural_shape
from .steps import plan_steps
from .svg import render_svg

Planned = Plan | Gather | Reduction | LocalAccess
Picture = LinearLayout | AffineLayout | Layout | Planned
VIEWS = ("tile", "hardware", "matrix")
LIMIT = (32, 32)
"""Rows and columns of pictures in notebooks, which are kept in the notebook; larger ones are cut, and say so."""
SMALLER = ((32, 32), (16, 32), (16, 16), (8, 16))
MOST_BYTES = 56_000
"""Of a picture in HTML; where it has a colour for every cell, less of it is shown."""


def grid_of(
    layout: LinearLayout | AffineLayout | Layout,
    shape: Sequence[int] | None = None,
    view: str = "tile",
    *,
    limit: tuple[int, int] | None = LIMIT,
    element_bits: int = 32,
    dims: Sequence[str] | None = None,
) -> Grid:
    """One of the three views of a layout; without `shape`, of the smallest tile that shows all of a named layout.

    `dims` are names for dim0, dim1, ...
    """
    if view not in VIEWS:
        raise LayoutError(f"there is no view {view!r}; there are {', '.join(VIEWS)}")
    if not isinstance(layout, (LinearLayout, AffineLayout, Layout)):
        raise LayoutError(
            f"a picture needs a layout, got {layout!r} of type {type(layout).__name__}",
            hint="weft.view.parse_layout reads an expression" if isinstance(layout, str) else None,
        )
    draw = tile_grid if view == "tile" else hardware_grid
    if isinstance(layout, AffineLayout):
        return matrix_grid(layout.linear) if view == "matrix" else draw(layout, limit, element_bits)
    linear = as_linear(layout, natural_shape(layout) if shape is None else shape, dims)
    if view == "matrix":
        return matrix_grid(linear)
    pads = layout.interval_padding_pairs if isinstance(layout, PaddedSharedLayout) else ()
    return draw(linear, limit, element_bits, pads)


def _parts(plan: Planned, limit: tuple[int, int] | None) -> list[tuple[str, Grid]]:
    """What a plan is about, with names."""
    if isinstance(plan, Plan):
        return [("before", tile_grid(plan.src, limit)), ("after", tile_grid(plan.dst, limit))]
    if isinstance(plan, Gather):
        return [("source", tile_grid(plan.source, limit)), ("index and result", tile_grid(plan.index, limit))]
    if isinstance(plan, Reduction):
        return [("before", tile_grid(plan.layout, limit)), ("after", tile_grid(plan.result, limit))]
    return [("offsets and blocks of registers", hardware_grid(plan.place, limit))]


def to_svg(
    picture: Picture,
    shape: Sequence[int] | None = None,
    view: str = "tile",
    *,
    limit: tuple[int, int] | None = LIMIT,
    element_bits: int = 32,
    dims: Sequence[str] | None = None,
) -> str:
    """A layout as SVG, or a plan: the tile before and after it, or what it is about.

    `dims` are names for the dimensions of the tile, in place of dim0, dim1, ... The matrix of an affine layout is that
    of its linear part.

    >>> from weft.layouts import BlockedLayout
    >>> to_svg(BlockedLayout([1, 2], [2, 2], [1, 1], [1, 0])).count("<rect")  # the ground, 1 warp
    2
    """
    if isinstance(picture, Planned):
        return side_by_side([render_svg(grid, name) for name, grid in _parts(picture, limit)])
    name = repr(picture) if isinstance(picture, Layout) else ""
    return render_svg(grid_of(picture, shape, view, limit=limit, element_bits=element_bits, dims=dims), name)


def _size(svg: str) -> tuple[int, int]:
    head = svg[: svg.index(">")]
    width, height = (int(head.split(f' {name}="')[1].split('"')[0]) for name in ("width", "height"))
    return width, height


def side_by_side(pictures: Sequence[str]) -> str:
    """Several SVG pictures as one."""
    sizes = [_size(p) for p in pictures]
    width, height = sum(w for w, _ in sizes) + 16 * (len(sizes) - 1), max(h for _, h in sizes)
    at, parts = 0, []
    for picture, (w, _) in zip(pictures, sizes, strict=True):
        parts.append(picture.replace("<svg ", f'<svg x="{at}" ', 1))
        at += w + 16
    body = "\n".join(parts)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}" '
        f'role="img">\n{body}\n</svg>'
    )


def to_html(picture: Picture, shape: Sequence[int] | None = None) -> str:
    """A layout or a plan as a piece of HTML of at most 60 KB: the picture and the facts in text. Needs no script."""
    body, facts = "", picture.explain() if isinstance(picture, Planned) else str(picture).strip("\n")
    if isinstance(picture, Plan):
        steps = "".join(f"<li><b>{s.kind}</b>: {escape(s.text)}</li>" for s in plan_steps(picture))
        body = f"<ol>{steps}</ol>" if steps else "<p>Nothing has to be done.</p>"
    elif isinstance(picture, Layout):
        facts = str(as_linear(picture, natural_shape(picture) if shape is None else shape)).strip("\n")
    for limit in SMALLER:
        svg = to_svg(picture, shape, limit=limit)
        if len(svg.encode()) <= MOST_BYTES:
            break
    summary = "cost" if isinstance(picture, Planned) else "bases"
    return (
        f'<div style="overflow-x:auto">{svg}</div>{body}'
        f"<details><summary>{summary}</summary><pre>{escape(facts)}</pre></details>"
    )


def _quiet(draw: Callable[[Any], str]) -> Callable[[Any], str | None]:
    """A notebook shows the plain text of what cannot be drawn."""

    def shown(self: Any) -> str | None:
        try:
            return draw(self)
        except LayoutError:
            return None

    return shown


def register() -> None:
    """Draw the pictures that notebooks ask layouts and plans for."""
    provide(_quiet(to_html))
