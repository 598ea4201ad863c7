"""What every value of the language and every type of it can do, and the mark of a builtin.

A value of the language (a tile, a tuple, a constexpr, a class of the user's) is some IR values in a fixed order; its
type knows how many and how to put them together again:

    handles = []; value._flatten_ir(handles)                 # the IR values of `value`
    again, cursor = value.type._unflatten_ir(handles, 0)     # the same value over other handles

The frontend carries values through loops and branches by these two alone.

A builtin is a Python function that builds IR; it is given the semantic (`_semantic=`) by the frontend and refuses to
run without.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any, ClassVar, TypeVar

from weft.base import OutsideKernelError, shorten

TRITON_BUILTIN = "__triton_builtin__"
"""Name of the attribute that marks a builtin; user code asks for it by this name."""

GIVEN: Any = None
"""The default of `_semantic`: the frontend gives builtins one, and `builtin` refuses a call that has none."""

F = TypeVar("F", bound=Callable[..., Any])


class base_value:
    """A value that kernels compute with; `type` is a `base_type`.

    >>> issubclass(tl.tensor, tl.base_value), issubclass(gl.shared_memory_descriptor, gl.base_value)
    (True, True)
    """

    type: base_type

    def _flatten_ir(self, handles: list[Any]) -> None:
        """Append the IR values this value consists of."""
        raise NotImplementedError(f"{type(self).__name__} has no IR values")


class base_type:
    """The type of a `base_value`.

    >>> isinstance(tl.float32, tl.base_type), tl.pointer_type(tl.float32) == tl.pointer_type(tl.float16)
    (True, False)
    """

    way_out: ClassVar[str] = ""
    """What to do with values of this type where they are refused; errors that name the type say it."""

    def __eq__(self, other: object) -> bool:
        raise NotImplementedError(f"{type(self).__name__} does not say when two of it are equal")

    def __ne__(self, other: object) -> bool:
        return not self == other

    def __hash__(self) -> int:
        return hash(type(self))

    def _unflatten_ir(self, handles: list[Any], cursor: int) -> tuple[Any, int]:
        """Make a value of this type from `handles[cursor:]`; also returns the position after what it took."""
        raise NotImplementedError(f"{type(self).__name__} cannot be made from IR values")

    def _flatten_ir_types(self, builder: Any, out: list[Any]) -> None:
        """Append the IR types of the values that `_flatten_ir` appends."""
        raise NotImplementedError(f"{type(self).__name__} has no IR types")

    def _as_carried(self) -> base_type:
        """The type as loops compare it in the parts of a value: what a value is waiting for does not count there."""
        return self

    def mangle(self) -> str:
        """A short name, part of names of functions."""
        raise NotImplementedError(f"{type(self).__name__} has no short name")


def _mark(wrapper: Any, fn: Any) -> None:
    code = fn.__code__
    names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    wrapper.__dict__[TRITON_BUILTIN] = True
    wrapper.__dict__["_wants_generator"] = "_generator" in names


def builtin(fn: F) -> F:
    """Mark a function as one that builds IR: inside kernels only, called with `_semantic=`."""

    @functools.wraps(fn)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        if kwargs.get("_semantic") is None:
            try:
                raise OutsideKernelError(
                    f"`{fn.__name__}` builds kernel code and works only inside a kernel: did you forget to add @jit? "
                    "(`_semantic` argument must be provided outside of JIT functions.)"
                )
            except OutsideKernelError as error:
                shorten(error)
                raise
        return fn(*args, **kwargs)

    _mark(wrapper, fn)
    return wrapper  # type: ignore[return-value]


def builtin_named(name: str, meaning: str, fn: F) -> F:
    """A builtin that a function made, one of a family, with a name and a docstring of its own."""
    fn.__name__ = fn.__qualname__ = name
    fn.__doc__ = meaning
    return builtin(fn)


def standard_function(fn: F) -> F:
    """Mark a function of the library that Triton writes as a kernel: a builtin whose signature shows what users see."""
    signature = inspect.signature(fn)
    hidden = ("_semantic", "_generator")
    wrapper: Any = builtin(fn)
    wrapper.__signature__ = signature.replace(
        parameters=[p for name, p in signature.parameters.items() if name not in hidden]
    )
    return wrapper  # type: ignore[no-any-return]


def is_builtin(fn: object) -> bool:
    """Is this a function that builds IR (one marked by `builtin`)?"""
    return getattr(fn, TRITON_BUILTIN, False) is True
