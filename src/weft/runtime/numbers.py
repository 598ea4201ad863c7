"""Small arithmetic for launch code; works on numbers, and on constexprs inside kernels."""

from __future__ import annotations

from weft.language.callable import constexpr_function

__all__ = ["cdiv", "next_power_of_2"]


@constexpr_function
def cdiv(x: int, y: int) -> int:
    """x / y rounded up.

    >>> cdiv(10, 4)
    3
    """
    return (x + y - 1) // y


@constexpr_function
def next_power_of_2(n: int) -> int:
    """The smallest power of 2 that is at least n.

    >>> next_power_of_2(17)
    32
    """
    n -= 1
    n |= n >> 1
    n |= n >> 2
    n |= n >> 4
    n |= n >> 8
    n |= n >> 16
    n |= n >> 32
    return n + 1
