"""Memory that kernels ask for while they run, by `set_allocator`.

On a CPU no kernel asks: descriptors made in a kernel live on its stack.  On a GPU those that make descriptors do; where
no allocator is set, Weft's own memory is used.
"""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar
from typing import Any

Allocator = Callable[[int, int, int | None], Any]
"""(size, alignment, stream) -> something with data_ptr()."""


class NullAllocator:
    """What is there before an allocator is set."""

    def __call__(self, size: int, alignment: int, stream: int | None) -> Any:
        raise RuntimeError(
            "the kernel needs memory while it runs, and no allocator was set: call weft.set_allocator(fn) with "
            "fn(size, alignment, stream) first"
        )


_allocator: ContextVar[Allocator | None] = ContextVar("weft_allocator", default=None)
_profile_allocator: ContextVar[Allocator | None] = ContextVar("weft_profile_allocator", default=None)


def set_allocator(allocator: Allocator) -> None:
    """Set the function `(size, alignment, stream)` that allocates memory for kernels that need some while they run.

    It holds in the current context (`contextvars`):

    >>> from contextvars import copy_context
    >>> context = copy_context()
    >>> context.run(weft.set_allocator, lambda size, alignment, stream: np.empty(size, np.uint8))
    >>> context.run(get_allocator)(16, 8, None).nbytes
    16
    """
    _allocator.set(allocator)


def get_allocator() -> Allocator:
    """The allocator of this context."""
    return _allocator.get() or NullAllocator()


def has_allocator() -> bool:
    """Whether one was set."""
    return _allocator.get() is not None


def set_profile_allocator(allocator: Allocator | None) -> None:
    """Use a function for memory that profilers need while a kernel runs."""
    _profile_allocator.set(allocator)
