"""`must_use_result`: functions whose result must not be dropped (`advance` gives a new pointer, it moves nothing)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar, overload

F = TypeVar("F", bound=Callable[..., Any])


@overload
def must_use_result(x: str, s: Any = True) -> Callable[[F], F]: ...
@overload
def must_use_result(x: F, s: Any = True) -> F: ...
def must_use_result(x: Any, s: Any = True) -> Any:
    """Mark a function whose result a kernel must use; `s` may be a text that says why.

    Works as `@must_use_result`, and as `@must_use_result("why")`.

    >>> @weft.must_use_result
    ... @weft.jit
    ... def twice(x):
    ...     return x + x
    >>> evaluate("twice(x)", x=[1, 2], twice=twice)
    array([2, 4], dtype=int32)
    """
    if isinstance(x, str):
        return lambda fn: must_use_result(fn, x)
    x._must_use_result = s
    return x
