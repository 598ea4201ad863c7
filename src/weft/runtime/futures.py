"""Compiling many kernels at once: inside `AsyncCompileMode`, warm-ups hand their work to an executor.

with ThreadPoolExecutor(8) as executor, AsyncCompileMode(executor):
    a = kernel.warmup(..., grid=(1,))        # a FutureKernel
    b = kernel.warmup(..., grid=(1,))
# leaving the block waits for all of them
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from contextvars import ContextVar, copy_context
from types import TracebackType
from typing import TYPE_CHECKING, Any

from .warned import on_behalf

if TYPE_CHECKING:
    from concurrent.futures import Executor, Future


class FutureKernel:
    """A kernel that is still being compiled; `result()` waits for it.

    >>> from concurrent.futures import ThreadPoolExecutor
    >>> @weft.jit
    ... def nothing(x):
    ...     pass
    >>> with ThreadPoolExecutor(1) as executor, AsyncCompileMode(executor):
    ...     kernel = nothing.warmup(weft.like((1,), "fp32"), grid=(1,), target="sim:cuda:80")
    >>> type(kernel).__name__, kernel.result().name
    ('FutureKernel', 'nothing')
    """

    def __init__(self, finish: Callable[[Any], None], future: Future[Any]) -> None:
        self._finish = finish
        self.future = future
        self.kernel: Any = None

    def result(self, ignore_errors: bool = False) -> Any:
        """The compiled kernel; None when compiling it failed and errors are to be ignored."""
        if self.kernel is not None:
            return self.kernel
        try:
            kernel = self.future.result()
        except Exception:
            if ignore_errors:
                return None
            raise
        self._finish(kernel)
        self.kernel = kernel
        return kernel

    def __getattr__(self, name: str) -> Any:
        return getattr(self.result(), name)


def unless_failed(kernel: Any) -> Any:
    """A kernel, or one that is being compiled; None where that has failed, so that it is compiled again."""
    if not isinstance(kernel, FutureKernel) or not kernel.future.done():
        return kernel
    return None if kernel.future.cancelled() or kernel.future.exception() is not None else kernel


active_mode: ContextVar[AsyncCompileMode | None] = ContextVar("weft_async_compile", default=None)
"""The mode that is on in this context."""


class AsyncCompileMode:
    """Inside a `with`, kernels are compiled by `executor`; a kernel that is needed twice is compiled once.

    `executor` has threads of this process; with `workers`, another executor, they have code made by its processes:
    that is `compile_many`, which may be called inside of itself. Without `wait` the end of the block does not wait for
    what is under way.

    >>> from concurrent.futures import ThreadPoolExecutor
    >>> @weft.jit
    ... def copy(x, out, B: tl.constexpr):
    ...     i = tl.arange(0, B)
    ...     tl.store(out + i, tl.load(x + i))
    >>> x = weft.like((64,), "fp32")
    >>> with ThreadPoolExecutor(2) as executor, AsyncCompileMode(executor):
    ...     small, large = (copy.warmup(x, x, B=size, grid=(1,), target="sim:cuda:80") for size in (32, 64))
    >>> "tensor<32x" in small.asm["ttir"], "tensor<64x" in large.asm["ttir"]
    (True, True)
    """

    def __init__(
        self, executor: Executor, *, ignore_errors: bool = False, workers: Executor | None = None, wait: bool = True
    ) -> None:
        self.executor = executor
        self.ignore_errors = ignore_errors
        self.workers = workers
        self.wait = wait
        self.future_kernels: dict[str, FutureKernel] = {}
        self._outer: AsyncCompileMode | None = None

    def submit(self, key: str, work: Callable[[], Any], finish: Callable[[Any], None]) -> FutureKernel:
        """Compile something, unless it is under way."""
        submitted = self.future_kernels.get(key)
        if submitted is not None:
            return submitted
        work = on_behalf(work)
        future = self.executor.submit(copy_context().run, work) if self.workers else self.executor.submit(work)
        kernel = FutureKernel(finish, future)
        self.future_kernels[key] = kernel
        return kernel

    def __enter__(self) -> AsyncCompileMode:
        self._outer = active_mode.get()
        if self._outer is not None and self.workers is None:
            raise RuntimeError("another AsyncCompileMode is on already")
        active_mode.set(self)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        active_mode.set(self._outer)
        for kernel in () if not self.wait else self.future_kernels.values():
            with contextlib.suppress(*((Exception,) if error is not None else ())):
                kernel.result(self.ignore_errors)
