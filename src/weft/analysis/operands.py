"""What a value is computed of, the first of it first: for analyses that ask of the operands by recursion.

A kernel may compute an index in thousands of steps, and Python's stack has room for a thousand calls. So where an
analysis is `DEEP` calls deep, it asks of everything below in this order, and every question finds its answers.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from xdsl.ir import OpResult, SSAValue

__all__ = ["DEEP", "operands_first"]

DEEP: Final = 50


def operands_first(value: SSAValue, wanted: Callable[[OpResult], bool]) -> list[SSAValue]:
    """The wanted results of operations that a value is computed of, without itself; not through those unwanted."""
    order: list[SSAValue] = []
    seen: set[SSAValue] = set()
    stack = [(value, False)]
    while stack:
        found, done = stack.pop()
        if done:
            order.append(found)
        elif found not in seen:
            seen.add(found)
            if found is not value:
                stack.append((found, True))
            assert isinstance(found, OpResult)
            stack += [(x, False) for x in found.op.operands if isinstance(x, OpResult) and x not in seen and wanted(x)]
    return order
