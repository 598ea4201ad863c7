"""Tests of which `make test` runs some and `make test-long` the rest."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Any

import pytest


def one_in(many: int, cases: Iterable[Any], always: Iterable[Any] = ()) -> list[Any]:
    """Cases for `parametrize`: the first of `many` in a row and those to run always as they are, the others as slow.

    >>> [case if isinstance(case, str) else "slow" for case in one_in(3, "abcd", always="c")]
    ['a', 'slow', 'c', 'd']
    """
    kept = list(always)

    def slow(case: Any) -> Any:
        return pytest.param(*(case if isinstance(case, tuple) else (case,)), marks=pytest.mark.slow)

    return [case if i % many == 0 or case in kept else slow(case) for i, case in enumerate(cases)]


def some(table: Sequence[Mapping[str, Hashable]], many: int) -> set[int]:
    """Which rows of a table of cases are one in `many`, or more if it takes more to have every value of every column.

    Rows that have most values for the first time come first: of the product of four shapes and three types, those of
    the diagonal. A column in which most values are there once, as the name of a case, is not looked at.

    >>> table = [{"shape": shape, "dtype": dtype} for shape in (1, 2, 4, 8) for dtype in ("f16", "f32", "i32")]
    >>> sorted(some(table, 100))  # the first three shapes with a type of their own, and the fourth
    [0, 4, 8, 9]
    >>> sorted(some([{"case": i} for i in range(7)], 3))
    [0, 3, 6]
    """
    columns = [name for name in table[0] if len({row.get(name) for row in table}) * 2 <= len(table)]
    rows = [{(name, row.get(name)) for name in columns} for row in table]
    kept, seen = set[int](), set[tuple[str, Hashable]]()
    for new in range(len(columns), 0, -1):
        for i, row in enumerate(rows):
            if len(row - seen) >= new:
                kept.add(i)
                seen |= row
    for i in range(0, len(rows), many):
        if len(kept) * many < len(rows):
            kept.add(i)
    return kept


def thin(items: Iterable[pytest.Item]) -> None:
    """Mark as slow what a test marked `thinned(many)` leaves to `make test-long`."""
    tests: dict[str, list[pytest.Item]] = {}
    for item in items:
        if item.get_closest_marker("thinned") is not None and item.get_closest_marker("slow") is None:
            tests.setdefault(item.nodeid.partition("[")[0], []).append(item)
    for cases in tests.values():
        marker = cases[0].get_closest_marker("thinned")
        assert marker is not None
        kept = some([_row(item) for item in cases], *marker.args)
        for i, item in enumerate(cases):
            if i not in kept:
                item.add_marker(pytest.mark.slow)


def _row(item: pytest.Item) -> dict[str, Hashable]:
    values: dict[str, Any] = item.callspec.params  # type: ignore[attr-defined]
    return {name: repr(value) for name, value in values.items()}
