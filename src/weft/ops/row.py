"""What a row of the table of operations says.

    Row("arith.maxsi", INTEGERS, 2, on_integers(largest), of_integers=largest, neutral=least_signed, bounds=corners())

is all that the compiler has to be told of a maximum: that it takes two integers of one type and gives a third, what it
gives, that a reduction by it begins at the least number, that its bounds are among its values for theirs. The text,
the verifier, the layouts, the simulator, the foldings and the orders of reductions follow. What it is in LLVM IR stands
in `backends/llvm/elementwise.py`, under the same name.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from .bounds import Transfer
from .elements import Element
from .rounding import Array

Meaning = Callable[[Sequence[Array], str, Mapping[str, Any]], Any]
"""The result from operands, the element of the result, and attributes: `arith.cmpi` has a predicate."""

CONVERSION, QUOTIENT, DIVISION, FUNCTION = 4, 6, 8, 20
"""Costs of an element, where an addition is 1: rounding to eight bits, a floating-point quotient or root, an integer
division, a function of the library."""


class Kind(NamedTuple):
    """What the elements of the operands and the result are."""

    source: str
    """int, float, pointer or any."""
    result: str
    how: str = ""
    """same: all are of one type; wider, narrower: the result has more or fewer bits; bits: as many."""


INTEGERS, FLOATS = Kind("int", "int", "same"), Kind("float", "float", "same")


class Row(NamedTuple):
    """One operation that computes each element of its result from those at the same place."""

    name: str
    kind: Kind
    arity: int
    meaning: Meaning | None = None
    """On NumPy arrays; none for a function of a library, which has its meaning from its symbol."""
    cost: int = 1
    lane: str = ""
    """How a lane program spells it, if it is another operation there; an attribute that it sets may follow the name."""
    is_tile: bool = True
    """Whether tile IR has it; some are made by the lowering."""
    neutral: Callable[[Element], int | float] | None = None
    """What a reduction by it begins at. Only of those whose operands a reduction may take in any order."""
    commutes: bool = False
    """Whether the result keeps every bit when the operands are exchanged."""
    keeps_zero: bool = False
    """Whether it gives zero for zeros."""
    of_integers: Callable[[Any, Any, int], Any] | None = None
    """Its meaning for two numbers without an end, of Python's or in arrays, and the bits of their type; the result may
    lie beyond the type."""
    is_unsigned: bool = False
    """Whether it reads its integers without a sign."""
    wrong: str = ""
    """When debug builds report it: divisor (it is zero), amount (a shift by the width or more), range (a float that the
    integer type does not hold)."""
    bounds: Transfer | None = None
    """What is known of an integer that it gives, from what is known of its operands."""
    zero: str = ""
    """What `x op 0` comes to, and after a bar what `0 op x` does: x, or 0. Empty where nothing is known."""
    one: str = ""
    """The same for 1."""
    ones: str = ""
    """The same for a number of which every bit is 1; -1 stands for it too."""
    same: str = ""
    """The same for `x op x`."""
