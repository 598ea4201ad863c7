"""The table of operations that compute each element of their result from those at the same place.

>>> ROWS["arith.maxsi"].arity, ROWS["arith.maxsi"].commutes
(2, True)
>>> compute("arith.divsi", [np.array([-7, 5]), np.array([2, 0])], "i64", {})
array([-3,  0])

Who wants a list of operations makes it from the facts of the rows (`row.Row`), so that a new row is in all of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from .casts import CAST_ROWS
from .floats import FLOAT_ROWS
from .integers import INTEGER_ROWS
from .row import Row

__all__ = ["ELEMENTWISE", "PACKING", "ROWS", "compute"]

ROWS: dict[str, Row] = {row.name: row for row in (*INTEGER_ROWS, *FLOAT_ROWS, *CAST_ROWS)}
"""By name; those of tile IR and those of lane programs, which mostly are the same."""

ELEMENTWISE = frozenset(name for name, row in ROWS.items() if row.is_tile)
"""The operations of tile IR that compute each element for itself, wherever it lies."""

PACKING = frozenset(("tt.map_elementwise", "tt.elementwise_inline_asm"))
"""Operations that are given several elements at a time, those that lie in one thread beside each other: what they give
for an element may depend on the layout."""


def compute(name: str, operands: Sequence[np.ndarray[Any, Any]], elem: str, attrs: Mapping[str, Any]) -> Any:
    """The result of an operation on arrays, of element type `elem`; of those with two results both."""
    meaning = ROWS[name].meaning
    assert meaning is not None, name
    return meaning(operands, elem, attrs)
