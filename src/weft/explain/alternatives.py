"""What-ifs of the page: the launch explained again with something changed, each compared with the present one.

An alternative that cannot be compiled, or that does not fit into the machine, is shown with the reason.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from weft.base import WeftError, progress
from weft.machines import machine_of

from .difference import difference
from .page import difference_data, rendered
from .paged import page_data
from .record import Explanation

__all__ = ["page_with"]

MOST_CHANGES = 80
"""Differences of an alternative that the page holds."""


def page_with(e: Explanation, wanted: Sequence[Mapping[str, Any]] | None) -> str:
    """The page of an explanation with its alternatives; None for those that suggest themselves.

    ValueError for an explanation that knows no launch.
    """
    if e.again is None:
        raise ValueError(f"the launch of {e.kernel} is not known any more: alternatives need the kernel itself")
    changes = e.again.suggestions(e) if wanted is None else list(wanted)
    shown: list[Any] = [page_data(e)]
    told: list[dict[str, Any]] = []
    with progress(f"explaining {e.kernel}, alternatives", len(changes)) as told_of:
        for at, each in enumerate(changes):
            told_of(at)
            _add(e, each, shown, told)
    return rendered(e.kernel, shown, told)


def _add(e: Explanation, each: Mapping[str, Any], shown: list[Any], told: list[dict[str, Any]]) -> None:
    """Explain one alternative: what is to be shown of it, and what is told in the list."""
    label = ", ".join(f"{name}={_text(value)}" for name, value in each.items())
    row: dict[str, Any] = {"label": label, "changes": {name: _text(value) for name, value in each.items()}}
    told.append(row)
    try:
        other = e.what_if(**each)
        _check_fits(other)
    except WeftError as error:
        first = next(iter(str(error).splitlines()), type(error).__name__)
        row["error"] = first.rpartition("error: ")[2]
        return
    changed = difference(e, other)
    row["index"], row["count"] = len(shown), len(changed.changes)
    row["difference"] = difference_data(changed)[:MOST_CHANGES]
    if other.grid != e.grid:
        row["note"] = f"grid {'x'.join(map(str, other.grid))}"
    shown.append(page_data(other))


def _check_fits(e: Explanation) -> None:
    """WeftError where a block takes more shared memory than a multiprocessor has."""
    if e.occupancy is not None and e.occupancy.shared_bytes > machine_of(e.target).shared_bytes:
        room = machine_of(e.target).shared_bytes
        raise WeftError(f"a block takes {e.occupancy.shared_bytes:,} bytes of shared memory, there are {room:,}")


def _text(value: Any) -> str:
    return str(value.value if hasattr(value, "value") else value)
