"""Compiling many kernels at once, in processes.

    kernels = weft.compile_many([
        lambda: softmax.warmup(x, y, n, BLOCK=1024, grid=(1,)),      # a warm-up, as many as one wants
        lambda: matmul.warmup(a, b, c, m, n, k, grid=(1,)),          # of a tuned kernel: all its configurations
        weft.ASTSource(kernel, signature, constexprs),               # or whatever weft.compile takes
        ("kernel.ttir", "cuda:90", {"num_warps": 8}),                # with target and options
    ])

Kernels are traced here, one after the other; what takes time is done by compile workers, on all cores.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterable
from concurrent.futures import CancelledError, Executor, Future
from typing import Any

from weft.base import LaunchTypeError, shortened
from weft.base.locks import renewed

from .compiling import compile
from .futures import AsyncCompileMode, FutureKernel
from .threads import Threads
from .warned import on_behalf
from .workers import check_executor, cores, default_pool, stop

__all__ = ["compile_many", "cores"]

MOST = 32
"""Kernels that are under way at a time where the executor does not say how many it compiles."""


@shortened
def compile_many(
    items: Iterable[Any],
    *,
    executor: Executor | None = None,
    return_exceptions: bool = False,
    progress: Callable[[int, int], None] | None = None,
) -> list[Any]:
    """Compile many kernels in compile workers; returns the results in order.

    An item is a function without arguments that warms kernels up and returns what `warmup` gave, or what
    `weft.compile` takes: a source, the path of a `.ttir` or `.ttgir` file, or a tuple of it with target and options.
    Without an `executor` the pool of this process is used. The workers of any other (Dask, Ray or MPI) call functions
    of Weft, so they need Weft. With `return_exceptions`, an exception is returned in place of the kernel that failed;
    otherwise the first exception is raised after all have ended, with a note that lists the failures. Ctrl-C stops
    all at once. `progress(done, total)` is called after each.

    >>> from weft.compiler import IRSource
    >>> source = IRSource("module { tt.func public @nothing() { tt.return } }")
    >>> [kernel.name for kernel in compile_many([(source, "cuda:90"), (source, "cuda:80")])]
    ['nothing', 'nothing']
    """
    work = [_checked(item) for item in items]
    workers = _Stoppable(executor if executor is not None else default_pool())
    results: list[Any] = []
    threads = Threads(workers.count or MOST, "weft-many")
    try:
        begun = [_begun(item, threads, workers) for item in work]
        for done, waiting in enumerate(begun, 1):
            try:
                results.append(waiting())
            except Exception as error:
                results.append(error)
            if progress is not None:
                progress(done, len(work))
    except BaseException:  # Ctrl-C, say: nothing of it goes on
        threads.shutdown(wait=False, cancel_futures=True)
        workers.stop()
        raise
    threads.shutdown()
    failed = [k for k, result in enumerate(results) if isinstance(result, Exception)]
    if failed and not return_exceptions:
        results[failed[0]].add_note(_which(failed, len(results)))
        raise results[failed[0]]
    return results


def _which(failed: list[int], count: int) -> str:
    """Which of the items failed.

    >>> _which([1, 3], 5)
    'this is item 1 of compile_many (of 0 to 4); item 3 failed as well, which return_exceptions=True gives'
    """
    text = f"this is item {failed[0]} of compile_many (of 0 to {count - 1})"
    others = ", ".join(map(str, failed[1:6])) + (", ..." if len(failed) > 6 else "")
    several = "items" if len(failed) > 2 else "item"
    return f"{text}; {several} {others} failed as well, which return_exceptions=True gives" if others else text


class _Stoppable(Executor):
    """An executor, and what was asked of it and is not done: that can be stopped."""

    def __init__(self, executor: Executor) -> None:
        check_executor(executor)
        count = getattr(executor, "count", None)
        self.count: int | None = count if isinstance(count, int) else None
        self._executor = executor
        self._waiting: set[Future[Any]] = set()
        self._lock = renewed(threading.Lock())
        self._stopped = False

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """Have a function called."""
        with self._lock:
            if self._stopped:
                raise CancelledError
            future = self._executor.submit(fn, *args, **kwargs)
            self._waiting.add(future)
        future.add_done_callback(self._waiting.discard)
        return future

    def stop(self) -> None:
        """End what is under way, and begin nothing more."""
        with self._lock:
            self._stopped = True
        for future in list(self._waiting):
            stop(self._executor, future)


def _checked(item: Any) -> Any:
    """An item, which must be something to compile."""
    if callable(item) or isinstance(item, (str, os.PathLike)) or hasattr(item, "make_ir"):
        return item
    if isinstance(item, tuple) and 1 <= len(item) <= 3:
        return item
    raise LaunchTypeError(
        f"compile_many takes functions without arguments, sources and tuples (source, target, options), got {item!r}",
        hint="weft.compile_many([lambda: kernel.warmup(..., grid=(1,)), (source, 'cuda:90', {'num_warps': 8})])",
    )


def _begun(item: Any, threads: Executor, workers: Executor) -> Callable[[], Any]:
    """Begin an item; what waits for it and gives what it became."""
    if not callable(item):
        source, *rest = item if isinstance(item, tuple) else (item,)
        future = threads.submit(on_behalf(compile), source, *rest, executor=workers)
        return future.result
    mode = AsyncCompileMode(threads, workers=workers, wait=False)
    try:
        with mode:
            begun = item()
    except Exception as error:
        failed = error
        return lambda: _raised(failed)

    def finished() -> Any:
        for kernel in mode.future_kernels.values():  # also what the function did not return
            kernel.result()
        return _finished(begun)

    return finished


def _raised(error: Exception) -> Any:
    raise error


def _finished(begun: Any) -> Any:
    """Kernels in the place of those that were being compiled."""
    if isinstance(begun, FutureKernel):
        return begun.result()
    if type(begun) is dict:
        return {name: _finished(kernel) for name, kernel in begun.items()}
    return type(begun)(_finished(kernel) for kernel in begun) if type(begun) in (list, tuple) else begun
