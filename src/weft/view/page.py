"""The page: one HTML file that needs nothing else, with everything it shows inside it."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from importlib import resources
from typing import Any

from weft.base import LayoutError
from weft.layouts import LinearLayout
from weft.layouts.plan import Plan

from .steps import plan_steps

__all__ = ["DATA_MARK", "PageLayout", "layout_data", "render_page", "render_viewer"]

MOST_BITS = 18
DATA_MARK = "@DATA@"
"""Where the page without data wants its data, as JSON without any `<`."""
SCRIPTS = (
    *("f2.js", "checks.js", "map.js", "linear.js"),  # the algebra
    *(
        "parts.js",
        "zoo.js",
        "matrix.js",
        "memory.js",
        "grammar.js",
        "blame.js",
        "ir.js",
        "cute.js",
        "evaluate.js",
    ),  # layouts as they are written
    *("colours.js", "tile.js", "canvas.js", "banks.js", "planner.js", "player.js"),  # what is drawn and played
    *("state.js", "panels.js", "inspector.js", "access.js", "conversion.js", "algebra.js", "app.js"),  # the page
)


@dataclass(frozen=True)
class PageLayout:
    """A layout as it is written, with the linear layout it stands for, and the gaps that padding leaves in it.

    `pads` are the pairs (interval, padding) of a PaddedSharedLayout, in elements.
    """

    text: str
    linear: LinearLayout
    pads: Sequence[Sequence[int]] = ()


def _file(name: str) -> str:
    return (resources.files(__package__) / "page" / name).read_text(encoding="utf-8")


def layout_data(layout: LinearLayout) -> dict[str, Any]:
    """A linear layout as the page's scripts read it: the names and bits of its inputs and outputs, and its columns."""
    bits = max(layout.total_in_log, layout.total_out_log)
    if bits > MOST_BITS:
        raise LayoutError(
            f"the page draws tiles and memories of up to 2^{MOST_BITS} elements, the layout has 2^{bits}",
            hint="take a smaller shape: layouts repeat",
        )
    return {
        "ins": [[n, size.bit_length() - 1] for n, size in layout.in_dims.items()],
        "outs": [[n, size.bit_length() - 1] for n, size in layout.out_dims.items()],
        "columns": list(layout.columns),
    }


def _plan(plan: Plan, a: PageLayout, b: PageLayout) -> dict[str, Any]:
    return {
        "kind": plan.kind,
        "scope": plan.scope,
        "bits": plan.element_bits,
        "target": plan.machine.name,
        "explain": plan.explain(),
        "src": layout_data(plan.src),
        "dst": layout_data(plan.dst),
        "source": layout_data(a.linear),
        "result": layout_data(b.linear),
        "steps": [
            {"kind": s.kind, "text": s.text, "map": s.map and layout_data(s.map), "masks": dict(s.masks)}
            for s in plan_steps(plan)
        ],
    }


def render_page(
    a: PageLayout,
    shape: Sequence[int],
    *,
    b: PageLayout | None = None,
    shared: PageLayout | None = None,
    plan: Plan | None = None,
    element_bits: int = 32,
    view: str = "tile",
    title: str = "Weft layouts",
    dims: Sequence[str] | None = None,
    opens: str = "tile",
) -> str:
    """The page for a layout, or two side by side, a shared layout to access, and the plan from `a` to `b`.

    `dims` are names for dim0, dim1, ...; `opens` says what stands at its top: the `tile`, or the `banks` of the memory.
    """
    layouts = [x for x in (a, b, shared) if x is not None]
    data = {
        "shape": list(shape),
        "bits": element_bits,
        "a": a.text,
        "b": b.text if b else None,
        "s": shared.text if shared else None,
        "view": view,
        "dims": list(dims or ()),
        "opens": opens,
        "given": [
            {"text": x.text, "shape": list(shape), "layout": layout_data(x.linear), "pads": x.pads or None}
            for x in layouts
        ],
        "plan": _plan(plan, a, b) if plan and b else None,
    }
    text = json.dumps(data, separators=(",", ":")).replace("<", "\\u003c")
    return render_viewer(title).replace(DATA_MARK, text)


def render_viewer(title: str = "Weft layouts") -> str:
    """The page without data, for others that show many layouts and put the data of each in place of `DATA_MARK`."""
    parts = {
        "@TITLE@": escape(title),
        "@STYLE@": _file("page.css"),
        "@SCRIPT@": "\n".join(_file(name) for name in SCRIPTS),
    }
    return re.sub("|".join(parts), lambda match: parts[match.group()], _file("page.html"))
