"""Offsets that are known to wrap when a kernel is compiled (`weft.analysis.wrapped_offsets`), told once for each place.

They are kept with the compiled kernel, so that a kernel that comes from the cache tells them too.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping
from typing import Any

from weft.base import Note, OffsetOverflowWarning, Span

_told: set[tuple[str, int, int]] = set()


def warn_of_wrapping(wrapped: Iterable[Mapping[str, Any]]) -> None:
    """Warn of each operation that wraps, if it has not been told yet in this process."""
    for facts in wrapped:
        warning = _warning(facts)
        span = warning.span or Span("<ttir>", 1, 0)
        place = span.file, span.line, span.col
        if place not in _told:
            warnings.warn_explicit(warning, OffsetOverflowWarning, span.file, span.line)
            _told.add(place)


def told_of_wrapping(facts: Mapping[str, Any]) -> tuple[Span | None, str]:
    """Where an offset wraps, and what is to be said of it."""
    warning = _warning(facts)
    return warning.span, warning.message


def _warning(facts: Mapping[str, Any]) -> OffsetOverflowWarning:
    """The warning that the facts about one operation are."""
    span = Span(**facts["span"]) if facts["span"] else None
    access = Span(**facts["access_span"]) if facts["access_span"] else None
    of = f" of `{facts['array']}`" if facts["array"] else ""
    where = f"in program (0, 0, 0) of kernel `{facts['kernel']}`"
    if facts["last_iteration"]:
        where += ", in the last iteration of the loop"
    if facts["shape"]:
        where += f", at position {list(facts['position'])} of a tile of shape {list(facts['shape'])}"
    if facts["masked"]:
        where += "; it does no harm where the mask is false"
    return OffsetOverflowWarning(
        f"an {facts['type']} offset wraps: the exact {facts['operation']} is {facts['exact']}, "
        f"{_limit(facts['type'], facts['exact'])}",
        span,
        notes=(Note(f"it is an offset{of} in this {facts['access']}", access), Note(where)),
        hint="widen an operand first: x.to(tl.int64)",
    )


def _limit(type: str, exact: int) -> str:
    """The end of a type on the side of a number that it does not hold."""
    bits = int(type.rpartition("int")[2]) - (not type.startswith("u"))
    if exact > 0:
        return f"and the largest {type} is {2**bits - 1}"
    return f"and the smallest {type} is {0 if type.startswith('u') else -(2**bits)}"
