"""Compile workers: processes that compile, so that what kills a compiler does not kill the program.

    with WorkerPool(4) as pool:
        artefact = pool.compile(work)                 # see weft.compiler.work
        future = pool.submit(compile_work, work)          # or as any executor of concurrent.futures

LLVM ends the process it runs in where it gives up (out of memory, an instruction it cannot select); it may also take
for ever. In a worker either is a `CompilerCrash` that names the kernel, the stage and a file to reproduce it with, and
the next compilation gets a new worker. Processes are started when they are first needed, and kept.

The pool is an `Executor`, and whatever hands work to it asks for nothing more than `submit`, so that another executor
(one of Dask, Ray or MPI) can take its place; see `compile_many`. Why not `ProcessPoolExecutor`: there one death breaks
the pool and every future in it, nothing limits the time, and the user's main module is imported again.
"""

from __future__ import annotations

import atexit
import contextlib
import os
import queue
import re
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from typing import Any

from weft.base import CompilerCrash, LaunchError, WeftError
from weft.compiler import Artefact, Work, compile_work

from . import knobs
from .worker import read, write

__all__ = ["WorkerPool", "cores", "default_pool", "elsewhere"]

BOOT = "import sys; sys.path[:] = {path!r}; from weft.runtime.worker import main; main({memory})"
LAST_WORDS = 2000
"""Characters of what a worker said last that are kept."""


class _Process:
    """One worker."""

    def __init__(self, memory: int) -> None:
        if not sys.executable:
            raise LaunchError("compile workers need to know the Python they run in, and sys.executable is empty")
        self.said = tempfile.TemporaryFile()  # noqa: SIM115 - as long as the process
        self.stage = ""
        self.overdue = False
        command = [sys.executable, "-c", BOOT.format(path=sys.path, memory=memory)]
        self.child = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self.said,
            start_new_session=sys.platform != "win32",
        )

    def ask(self, request: Any, seconds: float) -> Any:
        """The result of a request. What it raised there is raised here; EOFError where the worker is dead."""
        assert self.child.stdin is not None and self.child.stdout is not None
        self.stage, self.overdue = "", False
        watch = threading.Timer(seconds, self._too_late)
        watch.daemon = True
        watch.start()
        try:
            try:
                write(self.child.stdin, request)
            except OSError:
                raise EOFError from None
            while True:
                kind, value = read(self.child.stdout)
                if kind == "result":
                    return value
                if kind == "error":
                    raise value
                self.stage = value
        finally:
            watch.cancel()

    def _too_late(self) -> None:
        self.overdue = True
        self.child.kill()

    def end(self) -> int:
        """Kill it, if it lives; its status."""
        self.child.kill()
        for pipe in (self.child.stdin, self.child.stdout):
            with contextlib.suppress(OSError):
                if pipe is not None:
                    pipe.close()
        return self.child.wait()

    def died(self) -> str:
        """How it ended, and what it said."""
        try:
            status = self.child.wait(5)  # its pipe is closed, so that it is ending
        except subprocess.TimeoutExpired:
            status = self.end()
        self.said.seek(0)
        words = self.said.read().decode(errors="replace").strip()[-LAST_WORDS:]
        how = f"signal {signal.Signals(-status).name}" if status < 0 else f"status {status}"
        return f"ended by {how}{': ' if words else ''}{words}"


class WorkerPool(Executor):
    """Processes that compile. `seconds` is how long one compilation may take, `memory` how many bytes it may have.

    >>> from weft.compiler import as_target, IRSource
    >>> from weft.compiler import work_of
    >>> with WorkerPool(1) as pool:
    ...     facts, blobs, timings = pool.compile(work_of(IRSource('''
    ...         module { tt.func public @nothing() { tt.return } }'''), as_target("cuda:90"), {}))
    >>> facts["name"]
    'nothing'
    """

    def __init__(self, count: int | None = None, *, seconds: float | None = None, memory: int | None = None) -> None:
        self.count = count or knobs.compilation.workers or cores()
        self.seconds = seconds if seconds is not None else knobs.compilation.worker_seconds
        self.memory = memory if memory is not None else knobs.compilation.worker_memory
        self._begin()

    def _begin(self) -> None:
        self._process = os.getpid()
        self._threads = ThreadPoolExecutor(self.count, thread_name_prefix="weft-worker")
        self._idle: queue.SimpleQueue[_Process] = queue.SimpleQueue()

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """Call a function in a worker, which imports it by its name; arguments and result are pickled."""
        if os.getpid() != self._process:  # a fork: the threads and the processes are the parent's
            self._begin()
        return self._threads.submit(self._called, fn, args, kwargs)

    def compile(self, work: Work) -> Artefact:
        """Compile, and wait for it. CompilerCrash where the worker dies or takes too long."""
        artefact: Artefact = self.submit(compile_work, work).result()
        return artefact

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """End the workers, after what they are at."""
        if os.getpid() != self._process:
            return
        self._threads.shutdown(wait=wait, cancel_futures=cancel_futures)
        with contextlib.suppress(queue.Empty):
            while True:
                self._idle.get_nowait().end()

    def _called(self, fn: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        try:
            process = self._idle.get_nowait()
        except queue.Empty:
            process = _Process(self.memory)
        try:
            value = process.ask((fn, args, kwargs), self.seconds)
        except EOFError:
            raise self._crash(process, fn, args) from None
        except BaseException:
            if process.child.poll() is None:
                self._idle.put(process)
            raise
        self._idle.put(process)
        return value

    def _crash(self, process: _Process, fn: Callable[..., Any], args: tuple[Any, ...]) -> CompilerCrash:
        """What to raise for a worker that is dead."""
        work = args[0] if args and isinstance(args[0], Work) else None
        what = f"compiling `{work.name}`" if work is not None else f"running {fn.__name__}()"
        hint = None
        if process.overdue:
            process.end()
            at = f" (stage {process.stage})" if process.stage else ""
            message = f"{what} took more than {self.seconds:g} s{at}, and was stopped"
            hint = "WEFT_WORKER_SECONDS, or knobs.compilation.worker_seconds, allows more"
        else:
            message = f"the process that was {what} {process.died()}"
        file = _written(work) if work is not None else None
        return CompilerCrash(message, process.stage or None, hint=hint, reproducer=file)


def _written(work: Work) -> str | None:
    """The file to reproduce a crash with; None where none can be written."""
    name = re.sub(r"\W+", "_", work.name)[:60]
    with (
        contextlib.suppress(OSError),
        tempfile.NamedTemporaryFile(
            "w", prefix=f"weft-{name}-", suffix=f".{work.ext}", delete=False, encoding="utf-8", errors="surrogatepass"
        ) as file,
    ):
        file.write(work.reproducer())
        return file.name
    return None


def cores() -> int:
    """How many processors this process may run on."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


_pools: list[WorkerPool] = []
_lock = threading.Lock()


def default_pool() -> WorkerPool:
    """The pool of this process, as the settings are when it is first asked for."""
    with _lock:
        if not _pools:
            _pools.append(WorkerPool())
            atexit.register(_pools[0].shutdown, wait=False, cancel_futures=True)
        return _pools[0]


def elsewhere(executor: Executor) -> Callable[[Work], Artefact]:
    """What compiles by an executor: `compile(..., elsewhere=elsewhere(executor))`.

    What goes wrong with the executor itself, and not with the kernel, is a CompilerCrash.
    """

    def made(work: Work) -> Artefact:
        try:
            artefact: Artefact = executor.submit(compile_work, work).result()
        except WeftError:
            raise
        except Exception as error:
            message = f"{type(error).__name__} from the executor that was compiling `{work.name}`: {error}"
            raise CompilerCrash(message, reproducer=_written(work)) from error
        return artefact

    return made
