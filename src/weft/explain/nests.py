"""How the CPU runs a kernel: its loops over tiles and what of them is vectors, its products, what is kept in memory."""

from __future__ import annotations

from collections.abc import Sequence

from weft.base import Span
from weft.base.remarks import InMemory, LoopNest, NotFused, ProductWaits, RegisterBlock, Site

from .record import Explanation

__all__ = ["nest_tables"]

Rows = Sequence[Sequence[str]]


def nest_tables(e: Explanation) -> list[tuple[str, Rows]]:
    """The tables that only kernels for a CPU have, each with its title; the first row has the names of the columns."""
    return [
        ("Loops over tiles", _nest_rows(e)),
        ("Products", _product_rows(e)),
        ("Tiles kept in memory", _kept_rows(e)),
        ("Loops that are apart", _apart_rows(e)),
    ]


def _nest_rows(e: Explanation) -> Rows:
    rows = [("line", "over", "vectors", "along", "at a time", "iterations", "fused", "for", "also")]
    for r in e.remarks.of(LoopNest):
        along = ", ".join(map(str, r.along))
        what = ", ".join(dict.fromkeys(site_text(site) for site in r.does))
        also = "; ".join((*([r.scalar] if r.scalar else []), *r.versions))
        vectors = f"{r.lanes} x {r.bits} bits" if r.lanes > 1 else "none"
        sizes = (str(r.unrolled), f"{r.iterations:,}", str(r.fused))
        rows.append((place_text(r.span), "x".join(map(str, r.shape)) or "one", vectors, along, *sizes, what, also))
    return rows if len(rows) > 1 else []


def _product_rows(e: Explanation) -> Rows:
    rows = [
        ("line", "size", "elements", "packed as", "instruction", "rows", "vectors", "lanes", "read in place", "sums")
    ]
    waits = {r.span: r for r in e.remarks.of(ProductWaits)}
    for r in e.remarks.of(RegisterBlock):
        there = [side for side, is_there in zip(("left", "right"), r.in_place, strict=True) if is_there]
        wait = waits.get(r.span)
        sums = f"once for {wait.iterations} iterations" if wait is not None else ""
        size, block = "x".join(map(str, r.shape)), (str(r.rows), str(r.vectors), str(r.lanes))
        rows.append((place_text(r.span), size, r.elements, r.packed, r.instruction, *block, ", ".join(there), sums))
    return rows if len(rows) > 1 else []


def _kept_rows(e: Explanation) -> Rows:
    rows = [("line", "tile", "variable", "why")]
    rows += [(place_text(r.span), r.tile, r.variable, r.why) for r in e.remarks.of(InMemory)]
    return rows if len(rows) > 1 else []


def _apart_rows(e: Explanation) -> Rows:
    rows = [("line", "what", "not in the loops of", "why")]
    rows += [(place_text(r.span), r.what.what, site_text(r.into), r.reason) for r in e.remarks.of(NotFused)]
    return rows if len(rows) > 1 else []


def place_text(span: Span | None) -> str:
    """A line, in a table."""
    return str(span.line) if span is not None else "-"


def site_text(site: Site) -> str:
    """What stands in a line, in a table."""
    return f"{site.what} ({site.span.line})" if site.span is not None else site.what
