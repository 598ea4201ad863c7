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

from collections.abc import Callable, Iterable
from concurrent.futures import Executor, ThreadPoolExecutor
from typing import Any

from .compiling import compile
from .futures import AsyncCompileMode, FutureKernel
from .workers import cores, default_pool

__all__ = ["compile_many", "cores"]

MOST = 32
"""Kernels that are under way at a time where the executor does not say how many it compiles."""


def compile_many(
    items: Iterable[Any],
    *,
    executor: Executor | None = None,
    return_exceptions: bool = False,
    progress: Callable[[int, int], None] | None = None,
) -> list[Any]:
    """Compile many kernels, by compile workers; what each became, in order.

    An item is a function without arguments that warms kernels up and returns what `warmup` gave, or what
    `weft.compile` takes: a source, the path of a `.ttir` or `.ttgir` file, or a tuple of it with target and options.
    Without an `executor` the pool of this process is used; any other (of Dask, Ray or MPI) is given functions of
    Weft to call, so that its workers need Weft. With `return_exceptions` what fails is returned in the place of its
    kernel; without it the first one that fails is raised, after all have ended. `progress` is called with how many are
    done, and of how many.

    >>> from weft.compiler import IRSource
    >>> source = IRSource("module { tt.func public @nothing() { tt.return } }")
    >>> [kernel.name for kernel in compile_many([(source, "cuda:90"), (source, "cuda:80")])]
    ['nothing', 'nothing']
    """
    work = list(items)
    workers = executor if executor is not None else default_pool()
    at_once = getattr(workers, "count", None) or MOST
    results: list[Any] = []
    with ThreadPoolExecutor(at_once, thread_name_prefix="weft-many") as threads:
        begun = [_begun(item, threads, workers) for item in work]
        for done, waiting in enumerate(begun, 1):
            try:
                results.append(waiting())
            except Exception as error:
                results.append(error)
            if progress is not None:
                progress(done, len(work))
    failed = next((result for result in results if isinstance(result, Exception)), None)
    if failed is not None and not return_exceptions:
        raise failed
    return results


def _begun(item: Any, threads: Executor, workers: Executor) -> Callable[[], Any]:
    """Begin an item; what waits for it and gives what it became."""
    if not callable(item):
        source, *rest = item if isinstance(item, tuple) else (item,)
        future = threads.submit(compile, source, *rest, executor=workers)
        return future.result
    try:
        with AsyncCompileMode(threads, ignore_errors=True, workers=workers, wait=False):
            made = item()
    except Exception as error:
        failed = error
        return lambda: _raised(failed)
    return lambda: _finished(made)


def _raised(error: Exception) -> Any:
    raise error


def _finished(made: Any) -> Any:
    """Kernels in the place of those that were being compiled."""
    if isinstance(made, FutureKernel):
        return made.result()
    return [_finished(kernel) for kernel in made] if isinstance(made, list) else made
