"""Errors about layouts: both drawn small, and the conversion that would fix it."""

from __future__ import annotations

from collections.abc import Sequence
from math import prod
from typing import Any

from weft.base import LayoutError
from weft.layouts import DistributedLayout, LinearLayout, sketch

from .types import distributed_type, unresolved


def _shown(title: str, layout: DistributedLayout, shape: Sequence[int]) -> list[str]:
    lines = [f"{title}: {layout!r}"]
    return lines if unresolved(layout) else [*lines, *sketch(layout, shape)]


def layouts_differ(operation: str, left: distributed_type, right: distributed_type, names: Any = None) -> LayoutError:
    """The error for two tiles that meet in an operation and lie differently."""
    first, second = names or ("left", "right")
    lines = [f"Layout mismatch in {operation}: {left.layout!r} vs {right.layout!r}"]
    lines += _shown(f"  {first} {list(left.shape)}", left.layout, left.shape)
    lines += _shown(f"  {second} {list(right.shape)}", right.layout, right.shape)
    free = ""
    resolved = left.shape == right.shape and not unresolved(left.layout) and not unresolved(right.layout)
    if resolved and left.layout.to_linear(left.shape) == right.layout.to_linear(right.shape):
        lines.append("  both put every element in the same place, under two names")
        free = ", assert_trivial=True"
    return LayoutError(
        "\n".join(lines), hint=f"convert one of them: gl.convert_layout({second}, {left.layout!r}{free})"
    )


def not_trivial(value: distributed_type, layout: DistributedLayout, moves: str) -> TypeError:
    """The error for a conversion that was promised to move nothing."""
    lines = [f"layout conversion from {value.layout!r} to {layout!r} is not trivial: {moves}"]
    lines += _shown("  from", value.layout, value.shape)
    lines += _shown("  to", layout, value.shape)
    error = TypeError("\n".join(lines))
    error.add_note("leave out assert_trivial=True, or choose a layout in which every thread keeps its elements")
    return error


def check_threads(layout: DistributedLayout, shape: Sequence[int], warps: int, lanes: int, ctas: int) -> None:
    """LayoutError where a layout is for another number of lanes, warps or blocks than there are."""
    if unresolved(layout):
        return
    linear: LinearLayout = layout.to_linear(shape)
    counts = {dim: linear.in_dims.get(dim, 1) for dim in ("lane", "warp", "block")}
    for dim, wanted, threads, option in (
        ("lane", lanes, "threads in a warp", "threads_per_warp"),
        ("warp", warps, "warps", "warps_per_cta"),
        ("block", ctas, "blocks in a cluster", "cga_layout"),
    ):
        if counts[dim] != wanted:
            raise _wrong_number(layout, dim, counts[dim], wanted, threads, option)


def _of_lanes(layout: DistributedLayout, wanted: int) -> str:
    """What to change in a layout that is for warps of another size."""
    while (parent := getattr(layout, "parent", None)) is not None:
        layout = parent
    if hasattr(layout, "threads_per_warp"):
        return f"the entries of threads_per_warp must multiply to {wanted}"
    if hasattr(layout, "lane_bases"):
        return f"lane_bases needs {wanted.bit_length() - 1} bases"
    fitting = sorted(kind.__name__ for kind in DistributedLayout.__subclasses__() if kind.warp_threads == wanted)
    return f"where a warp has {wanted} threads, the result of a matrix instruction is in {' or '.join(fitting)}"


def _wrong_number(
    layout: DistributedLayout, dim: str, count: int, wanted: int, threads: str, option: str
) -> LayoutError:
    facts = {"lane": f"a warp has {wanted}", "warp": f"there are {wanted} here", "block": f"the cluster has {wanted}"}
    hints = {
        "lane": _of_lanes(layout, wanted),
        "warp": f"the entries of warps_per_cta must multiply to {wanted}, or launch with num_warps={count}",
        "block": f"cga_layout needs {wanted.bit_length() - 1} bases, or launch with num_ctas={count}",
    }
    sizes = getattr(layout, option, None)
    product = ""
    if sizes and len(sizes) > 1 and dim != "block":
        product = f"; {option} is {' * '.join(map(str, sizes))} = {prod(sizes)}"
    return LayoutError(f"the layout {layout!r} is for {count} {threads}, and {facts[dim]}{product}", hint=hints[dim])
