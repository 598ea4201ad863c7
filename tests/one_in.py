"""Tests of which `make test` runs some and `make test-long` the rest."""

from __future__ import annotations

from collections.abc import Iterable
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
