"""Small arithmetic for launch code; works on numbers, and on constexprs inside kernels."""

from __future__ import annotations

from typing import Any

from weft.language.callable import ConstexprFunction

__all__ = ["cdiv", "next_power_of_2"]


class _OfIntegers(ConstexprFunction):
    """A constexpr function that is called often on the host with plain integers: those skip the unwrapping."""

    def __call__(self, *args: Any, _semantic: Any = None, **kwargs: Any) -> Any:
        for arg in args:
            if arg.__class__ is not int:
                return super().__call__(*args, _semantic=_semantic, **kwargs)
        return self.fn(*args, **kwargs)


@_OfIntegers
def cdiv(x: int, y: int) -> int:
    """x / y rounded up.

    >>> cdiv(10, 4)
    3
    """
    return (x + y - 1) // y


@_OfIntegers
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
