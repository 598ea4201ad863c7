"""Threads that a program which ends does not wait for.

    threads = Threads(4, "weft-worker")
    threads.submit(pool.ask, work).result()

`ThreadPoolExecutor` makes Python wait at its end for whatever its threads are at, which for a compilation that hangs is
the whole of its time budget; and nothing can be given to it from then on, while a function of `atexit` may launch a
kernel. These threads are daemons, and where no thread can be started any more, the caller does the work.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from concurrent.futures import Executor, Future
from typing import Any

from weft.base.locks import renewed

_Task = tuple[Future[Any], Callable[..., Any], tuple[Any, ...], dict[str, Any]]
_Tasks = queue.SimpleQueue[_Task | None]


class Threads(Executor):
    """Up to `count` threads, each started when all before it are at work."""

    def __init__(self, count: int, name: str) -> None:
        self._count, self._name = count, name
        self._tasks: _Tasks = queue.SimpleQueue()
        self._waiting = threading.Semaphore(0)
        """Counts the threads that have nothing to do."""
        self._threads: list[threading.Thread] = []
        self._lock = renewed(threading.Lock())
        self.closed = False

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """Have a function called."""
        future: Future[Any] = Future()
        with self._lock:
            if self.closed:
                raise RuntimeError("it was shut down")
            self._tasks.put((future, fn, args, kwargs))
            if self._waiting.acquire(blocking=False) or len(self._threads) == self._count:
                return future
            thread = threading.Thread(
                target=_work, args=(self._tasks, self._waiting), name=f"{self._name}_{len(self._threads)}", daemon=True
            )
            try:
                thread.start()
            except RuntimeError:  # Python is ending, or there are as many threads as the system allows
                if self._threads:
                    return future
            else:
                self._threads.append(thread)
                return future
        task = self._tasks.get()  # no thread does it, so the caller does
        if task is not None:
            _do(*task)
        return future

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """End the threads, after what they are at, and what waits unless that is cancelled."""
        with self._lock:
            self.closed = True
            while cancel_futures:
                try:
                    task = self._tasks.get_nowait()
                except queue.Empty:
                    break
                if task is not None:
                    task[0].cancel()
            for _ in self._threads:
                self._tasks.put(None)
        for thread in self._threads if wait else ():
            thread.join()

    def __del__(self) -> None:
        if not self.closed:
            self.shutdown(wait=False)


def _work(tasks: _Tasks, waiting: threading.Semaphore) -> None:
    """What a thread does. It has no reference to the executor, so that one which nobody has any more ends it."""
    while True:
        try:
            task = tasks.get_nowait()
        except queue.Empty:
            waiting.release()
            task = tasks.get()
        if task is None:
            return
        _do(*task)
        del task


def _do(future: Future[Any], fn: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    if not future.set_running_or_notify_cancel():
        return
    try:
        result = fn(*args, **kwargs)
    except BaseException as error:
        future.set_exception(error)
    else:
        future.set_result(result)
