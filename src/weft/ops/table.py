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

from .bounds import Bounds, any_of, fitted
from .casts import CAST_ROWS
from .floats import FLOAT_ROWS
from .integers import INTEGER_ROWS
from .row import Row

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


_OF_ADDRESSES = ("arith.addi", "arith.subi", "arith.muli", "arith.shli")


def bounds_of(name: str, operands: Sequence[Bounds], bits: int, source_bits: int = 0, wrapping: bool = True) -> Bounds:
    """What is known of an integer of so many bits that an operation gives; `source_bits` are those of its operands.

    With `wrapping=False` sums and products, which addresses are made of, are taken not to wrap.

    >>> bounds_of("arith.addi", [Bounds(0, 100, 4), Bounds(8, 8, 8)], 32)
    Bounds(low=8, high=108, multiple=4)
    """
    row = ROWS.get(name)
    if row is None or row.bounds is None:
        return any_of(bits)
    if row.is_unsigned:
        operands = [x.unsigned(source_bits or bits) for x in operands]
    return fitted(row.bounds(row.of_integers, operands, bits), bits, wrapping or name not in _OF_ADDRESSES)
