"""Errors of a call of a kernel: wrong arguments, grid or options. `errors.py` tells the family they belong to."""

from __future__ import annotations

from typing import Any, Self

from .errors import WeftError, as_users_find_them

__all__ = [
    "CapturedGlobalError",
    "LaunchError",
    "LaunchOverflowError",
    "LaunchTypeError",
    "NoDevice",
    "OptionError",
    "OutsideKernelError",
    "SpecializationError",
    "UnknownKeyword",
]


class LaunchError(WeftError, ValueError):
    """A launch has a wrong argument, grid or option; `argument` is the name of the parameter.

    >>> @weft.jit
    ... def double(x):
    ...     i = tl.arange(0, 4)
    ...     tl.store(x + i, tl.load(x + i) * 2)
    >>> try:
    ...     double[(1,)](np.zeros(4), np.zeros(4))
    ... except Exception as error:
    ...     isinstance(error, weft.LaunchError)
    True
    """

    def __init__(self, message: str, argument: str | None = None, *, hint: str | None = None) -> None:
        super().__init__(message)
        self.argument = argument
        self.hint = hint

    @classmethod
    def read_only(cls, name: str) -> LaunchError:
        """The error that a kernel stores to an argument which may not be written to."""
        copy = "pass a writeable copy, np.array(x), x.copy()"
        hint = f"{copy}, or set x.flags.writeable = True where the memory is yours"
        return LaunchError(f"argument `{name}` is read-only, and the kernel stores to it", name, hint=hint)

    def of_argument(self, name: str) -> Self:
        """This error, with the parameter that it is about where it names none."""
        if self.argument is None:
            self.argument = name
            self.message = f"argument `{name}`: {self.message}"
            self.args = (self.message,)
        return self

    def __str__(self) -> str:
        return self.message + (f"\nhint: {WeftError.as_told(self.hint)}" if self.hint else "")


class OptionError(LaunchError, AssertionError):
    """The value of an option, as num_warps or num_stages, is none that it can have; Triton asserts that it is.

    >>> @weft.jit
    ... def fill(x):
    ...     tl.store(x, 1.0)
    >>> try:
    ...     fill[(1,)](np.zeros(1, np.float32), num_warps=3)
    ... except weft.OptionError as error:
    ...     print(error.message)
    num_warps must be a power of 2, and on a GPU at most 32, got 3
    """


class LaunchOverflowError(LaunchError, OverflowError):
    """A call of a kernel with an integer that no type holds.

    >>> try:
    ...     evaluate("n + 1", n=2**70)
    ... except weft.LaunchOverflowError as error:
    ...     print(error.argument)
    n
    """


class LaunchTypeError(LaunchError, TypeError):
    """A call of a kernel with an argument of a type it cannot take, or with too few or too many.

    >>> @weft.jit
    ... def fill(x):
    ...     tl.store(x, 1.0)
    >>> try:
    ...     fill[(1,)]([0.0, 0.0])
    ... except weft.LaunchTypeError as error:
    ...     print(error.argument)
    x
    """


class UnknownKeyword(LaunchError, KeyError):
    """A launch names something that is neither a parameter of the kernel nor an option.

    >>> @weft.jit
    ... def fill(x):
    ...     tl.store(x, 1.0)
    >>> try:
    ...     fill[(1,)](np.zeros(1, np.float32), num_wraps=8)
    ... except weft.UnknownKeyword as error:
    ...     print(error.hint)
    did you mean `num_warps`?
    """


class NoDevice(LaunchError, RuntimeError):
    """A launch is for a GPU, and there is none, or what it takes to reach it is missing.

    >>> issubclass(weft.NoDevice, weft.LaunchError)
    True
    """


class CapturedGlobalError(LaunchError, RuntimeError):
    """A global that a compiled kernel captured is no longer what it was: `name`, its value `before` and `now`.

    >>> scale = tl.constexpr(2)
    >>> @weft.jit
    ... def fill(x):
    ...     tl.store(x, scale)
    >>> x = np.zeros(1, np.float32)
    >>> launched = fill[(1,)](x)
    >>> scale = tl.constexpr(3)
    >>> try:
    ...     fill[(1,)](x)
    ... except weft.CapturedGlobalError as error:
    ...     print(error.name, error.before, error.now)
    scale constexpr[2] constexpr[3]
    """

    def __init__(self, name: str, before: Any, now: Any, kernel: str, place: str) -> None:
        super().__init__(
            f"Global variable {name} has changed since we compiled this kernel, from {before} to {now}: "
            f"`{kernel}` ({place}) reads it as a constant",
            hint=f"pass `{name}` as a constexpr argument if it is meant to change, or call {kernel}.reset() to forget "
            "what was compiled",
        )
        self.name, self.before, self.now = name, before, now


class SpecializationError(LaunchError, RuntimeError):
    """`preload` was given the specialisation of another kernel, or one with constants that are not here.

    >>> issubclass(weft.SpecializationError, weft.LaunchError)
    True
    """


class OutsideKernelError(LaunchError, RuntimeError):
    """Something that has a meaning only in kernels was called from Python.

    >>> try:
    ...     tl.program_id(0)
    ... except weft.OutsideKernelError as error:
    ...     print(error.message.split(":")[0])
    `program_id` builds kernel code and works only inside a kernel
    """


__test__ = as_users_find_them(globals(), __all__)
