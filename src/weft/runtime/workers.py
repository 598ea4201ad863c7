"""Compile workers: processes that compile, so that what kills a compiler does not kill the program.

    with WorkerPool(4) as pool:
        artefact = pool.compile(work)                 # see weft.compiler.work
        future = pool.submit(compile_work, work)          # or as any executor of concurrent.futures

When LLVM gives up (out of memory, an instruction it cannot select) it ends the process it runs in; it may also never
return. In a worker both become a `CompilerCrash` that names the kernel, the stage and a file to reproduce it with, and
the next compilation gets a new worker. Processes are started when they are first needed, and then kept.

The pool is an `Executor`, and its callers use only `submit`, so another executor (of Dask, Ray or MPI) can take its
place; see `compile_many`. `ProcessPoolExecutor` itself is not enough: one death breaks the pool and every future in it,
nothing limits the time, and it imports the user's main module again.
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
from concurrent.futures import CancelledError, Executor, Future
from typing import Any

from weft.base import CompilerCrash, LaunchError, LaunchTypeError, WeftError
from weft.base.locks import renewed
from weft.compiler import Artefact, Work, compile_work

from . import knobs
from .files import PACKAGE
from .threads import Threads
from .worker import await_hello, read, write

BOOT = "import sys; sys.path[:] = {path!r}; from weft.runtime.worker import main; main({memory})"
STARTUP = 60.0
"""Seconds that a process may take to start, however short the budget of a compilation is."""
LAST_WORDS = 2000
"""Characters of what a worker said last that are kept."""


def _not_started(why: object) -> LaunchError:
    return LaunchError(
        f"a compile worker cannot be started: {why}",
        hint="workers are processes of sys.executable, with the sys.path of this one; WEFT_WORKERS says how many, and "
        "without WEFT_ISOLATE none is needed for a single kernel",
    )


class _Process:
    """One worker."""

    def __init__(self, memory: int) -> None:
        if not sys.executable:
            raise LaunchError("compile workers need to know the Python they run in, and sys.executable is empty")
        if getattr(sys, "frozen", False):
            raise LaunchError("compile workers need Python, and sys.executable is a program of its own")
        try:
            self.log = tempfile.TemporaryFile()  # noqa: SIM115 - as long as the process
        except OSError as error:
            raise LaunchError(
                f"a compile worker has no place for what it says: {error}", hint="TMPDIR names a folder for such files"
            ) from None
        self.stage, self.said = "", 0
        self.arrived = False
        """Whether it has taken the request."""
        self.overdue = False
        self.greeted = False
        # What is no string Python does not look at, and repr() may not be read. Weft's own place may be in no path.
        path = [entry for entry in sys.path if type(entry) is str] + [os.path.dirname(PACKAGE)]
        command = [sys.executable, "-c", BOOT.format(path=path, memory=memory)]
        try:
            self.child = subprocess.Popen(
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self.log,
                start_new_session=sys.platform != "win32",
            )
        except OSError as error:
            self.log.close()
            raise _not_started(error) from None

    def ask(self, request: Any, seconds: float) -> Any:
        """The result of a request. What it raised there is raised here; EOFError where the worker is dead."""
        assert self.child.stdin is not None and self.child.stdout is not None
        self.stage, self.arrived, self.overdue = "", False, False
        self.said = self.log.seek(0, os.SEEK_END)  # what it said of other kernels is behind it
        watch = self._watch(max(seconds, STARTUP))
        try:
            try:
                write(self.child.stdin, request)
            except OSError:
                raise EOFError from None
            if not self.greeted:
                await_hello(self.child.stdout)
                self.greeted = True
            while True:
                kind, value = read(self.child.stdout)
                if kind == "result":
                    return value
                if kind == "error":
                    raise value
                if not self.arrived:  # now it compiles; before, it may have been starting
                    watch.cancel()
                    watch = self._watch(seconds)
                self.stage, self.arrived = value, True
        finally:
            watch.cancel()

    def _watch(self, seconds: float) -> threading.Timer:
        """Kill it after so many seconds, unless that is cancelled; never, where Python ends and starts no threads."""
        watch = threading.Timer(seconds, self._too_late)
        watch.daemon = True
        with contextlib.suppress(RuntimeError):
            watch.start()
        return watch

    def _too_late(self) -> None:
        self.overdue = True
        self.kill()

    def kill(self) -> None:
        """Kill it, if it lives, with all that it has started, an assembler that hangs, say."""
        if self.child.returncode is None and hasattr(os, "killpg"):
            with contextlib.suppress(OSError):  # it is the first of its session, and of the group
                os.killpg(self.child.pid, signal.SIGKILL)
        self.child.kill()

    def end(self) -> int:
        """Kill it, if it lives, and close its files; its status."""
        self.kill()
        for file in (self.child.stdin, self.child.stdout, self.log):
            with contextlib.suppress(OSError):
                if file is not None:
                    file.close()
        return self.child.wait()

    def died(self) -> str:
        """How it ended, and what it said."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.child.wait(5)  # its pipe is closed, so that it is ending
        self.log.seek(self.said)
        words = self.log.read().decode(errors="replace").strip()[-LAST_WORDS:]
        status = self.end()
        cause = f"signal {signal.Signals(-status).name}" if status < 0 else f"status {status}"
        return f"ended by {cause}{': ' if words else ''}{words}"


class _Call:
    """A function that is to be called, and by whom."""

    process: _Process | None = None
    stopped = False


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
        if type(self.count) is not int or self.count < 1:
            raise LaunchError(f"a pool has a number of workers, at least 1, got {self.count!r}", hint="WEFT_WORKERS=4")
        if not isinstance(self.seconds, (int, float)) or not self.seconds > 0:
            raise LaunchError(
                f"a worker may take a number of seconds, more than 0, got {self.seconds!r}",
                hint="WEFT_WORKER_SECONDS=600",
            )
        if type(self.memory) is not int or not 0 <= self.memory <= sys.maxsize:
            raise LaunchError(
                f"a worker may have a number of bytes, 0 for as many as there are, got {self.memory!r}",
                hint="WEFT_WORKER_MEMORY=4G",
            )
        self.closed = False
        self._begin()

    def _begin(self) -> None:
        self._process = os.getpid()
        self._threads = Threads(self.count, "weft-worker")
        self._idle: queue.SimpleQueue[_Process] = queue.SimpleQueue()
        self._calls: dict[Future[Any], _Call] = {}

    def submit(self, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Future[Any]:
        """Call a function in a worker, which imports it by its name; arguments and result are pickled."""
        if os.getpid() != self._process:  # a fork: the threads and the processes are the parent's
            self._begin()
        call = _Call()
        future = self._threads.submit(self._called, call, fn, args, kwargs)
        self._calls[future] = call
        future.add_done_callback(lambda done: self._calls.pop(done, None))
        return future

    def stop(self, future: Future[Any]) -> None:
        """Cancel a call, also one that is under way: its worker is killed."""
        call = self._calls.get(future)
        if future.cancel() or call is None:
            return
        call.stopped = True
        process = call.process
        if process is not None:
            process.kill()

    def compile(self, work: Work) -> Artefact:
        """Compile, and wait for it. CompilerCrash where the worker dies or takes too long."""
        future: Future[Artefact] = self.submit(compile_work, work)
        try:
            return future.result()
        except BaseException:
            self.stop(future)
            raise

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """End the workers, after what they are at."""
        if os.getpid() != self._process:
            return
        self.closed = True
        self._threads.shutdown(wait=wait, cancel_futures=cancel_futures)
        with contextlib.suppress(queue.Empty):
            while True:
                self._idle.get_nowait().end()

    def _called(self, call: _Call, fn: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        while True:
            try:
                process, kept = self._idle.get_nowait(), True
            except queue.Empty:
                process, kept = _Process(self.memory), False
            call.process = process
            try:
                if call.stopped:
                    raise CancelledError
                value = process.ask((fn, args, kwargs), self.seconds)
            except EOFError:
                if call.stopped:
                    process.end()
                    raise CancelledError from None
                if kept and not process.arrived and not process.overdue:  # it was killed while it had nothing to do
                    process.end()
                    continue
                raise self._crash(process, fn, args) from None
            except MemoryError:
                self._idle.put(process)
                if not self.memory:
                    raise
                raise self._out_of_memory(process, fn, args, "") from None
            except BaseException:
                if process.child.poll() is None:
                    self._idle.put(process)
                else:
                    process.end()
                raise
            call.process = None
            self._idle.put(process)
            return value

    def _crash(self, process: _Process, fn: Callable[..., Any], args: tuple[Any, ...]) -> WeftError:
        """What to raise for a worker that is dead."""
        if process.overdue:
            process.end()
            at = f" (stage {process.stage})" if process.stage else ""
            message = f"{_doing(fn, args)} took more than {self.seconds:g} s{at}, and was stopped"
            hint = "WEFT_WORKER_SECONDS, or knobs.compilation.worker_seconds, allows more"
            return CompilerCrash(message, process.stage or None, hint=hint, reproducer=_reproducer(args))
        cause = process.died()
        if self.memory and re.search("out of memory|MemoryError|bad_alloc|[Cc]annot allocate|failed to map", cause):
            return self._out_of_memory(process, fn, args, f", which {cause}")
        if not process.greeted and process.child.returncode >= 0:  # it never was a worker
            return _not_started(f"{sys.executable} {cause}")
        message = f"the process that was {_doing(fn, args)} {cause}"
        killed = "it was killed from outside, by the system where memory ran out: WEFT_WORKERS=1 compiles one at a time"
        by_kill = process.child.returncode == -getattr(signal, "SIGKILL", 0)
        return CompilerCrash(
            message, process.stage or None, hint=killed if by_kill else None, reproducer=_reproducer(args)
        )

    def _out_of_memory(
        self, process: _Process, fn: Callable[..., Any], args: tuple[Any, ...], more: str
    ) -> CompilerCrash:
        at = f" (stage {process.stage})" if process.stage else ""
        message = f"{_doing(fn, args)} needs more memory than the {self.memory} bytes of a worker{at}{more}"
        hint = "WEFT_WORKER_MEMORY, or knobs.compilation.worker_memory, allows more"
        return CompilerCrash(message, process.stage or None, hint=hint, reproducer=_reproducer(args))


def _doing(fn: Callable[..., Any], args: tuple[Any, ...]) -> str:
    work = _work(args)
    return f"compiling `{work.name}`" if work is not None else f"running {getattr(fn, '__name__', fn)}()"


def _work(args: tuple[Any, ...]) -> Work | None:
    return args[0] if args and isinstance(args[0], Work) else None


def _reproducer(args: tuple[Any, ...]) -> str | None:
    work = _work(args)
    return _written(work) if work is not None else None


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


NOT_ASKED = "see what became of the executor; without `executor=`, and with WEFT_ISOLATE, Weft starts processes itself"

_pools: list[WorkerPool] = []
_lock = renewed(threading.Lock())


def default_pool() -> WorkerPool:
    """The pool of this process, as the settings are when it is first asked for."""
    with _lock:
        if not _pools or _pools[0].closed:  # at the end of Python, where a function of `atexit` launches a kernel
            _pools[:] = [WorkerPool()]
            with contextlib.suppress(RuntimeError):
                atexit.register(_pools[0].shutdown, wait=False, cancel_futures=True)
        return _pools[0]


def check_executor(executor: Any) -> None:
    """LaunchTypeError for what is no executor."""
    if not callable(getattr(executor, "submit", None)):
        raise LaunchTypeError(
            f"an executor has a method submit, got {executor!r} of type {type(executor).__name__}",
            hint="weft.WorkerPool(4), or any executor of concurrent.futures",
        )


def stop(executor: Executor, future: Future[Any]) -> None:
    """Give up what was asked of an executor."""
    if hasattr(executor, "stop"):
        executor.stop(future)
    else:
        future.cancel()


def elsewhere(executor: Executor) -> Callable[[Work], Artefact]:
    """What compiles by an executor: `compile(..., elsewhere=elsewhere(executor))`.

    What goes wrong with the executor itself, and not with the kernel, is a CompilerCrash.
    """
    check_executor(executor)

    def made(work: Work) -> Artefact:
        future: Future[Artefact] | None = None
        try:
            future = executor.submit(compile_work, work)
            artefact = future.result()
        except (WeftError, CancelledError):
            raise
        except Exception as error:
            message = f"{type(error).__name__} from the executor that was compiling `{work.name}`: {error}"
            raise CompilerCrash(message, hint=NOT_ASKED, reproducer=_written(work)) from error
        except BaseException:  # Ctrl-C, say
            if future is not None:
                stop(executor, future)
            raise
        return artefact

    return made
