"""Load compiled kernels into this process and run them on all cores.

A kernel is a native function `void name(ptr args, ptr state, ptr scratch)`.  `state` says which programs of the grid
are still to be done; any number of threads may call the function on the same state, each takes chunks of programs
until none is left.  So a launch is: fill `args` and `state`, wake some workers, take part, wait for those that joined.

    kernel = LoadedKernel(binary.object, binary.metadata)
    launch = kernel.launcher("<QQQq")           # one struct code for each argument slot
    launch(nx, ny, nz, address_x, address_y, address_out, n)

The workers are Python threads that spend their life in native code (`_NATIVE`): they spin for a moment, then sleep on a
condition variable, and hold no lock of the interpreter, so a launch releases the GIL for as long as it runs.
What the caller must not do is stay in native code for long, or Ctrl-C would not be seen: it takes a limited number of
chunks at a time (`weft_help`) and comes up for air between.

A launch that is too small to be worth waking anyone stays on the calling thread.  What a program costs is learnt from
the launches before (`_ns`).
"""

from __future__ import annotations

import atexit
import contextlib
import ctypes
import os
import platform
import re
import struct
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from time import perf_counter_ns
from typing import Any

import llvmlite
import llvmlite.binding as llvm
import numpy as np

from weft.base import CompilerCrash, DeviceAssertionError, Span
from weft.targets.cpu import CPU

from .printing import Printer

__all__ = ["LoadedKernel", "Pool", "get_num_threads", "host_cpu", "llvm_version", "set_num_threads", "usable_cores"]

# struct {i64 next, total, chunk; i32 nx, ny, nz, reserved; i64 error, error_pid; ptr print_fn}
STATE_FORMAT = "qqqiiiiqqQ"
STATE_BYTES = struct.calcsize("<" + STATE_FORMAT)
_NEXT, _TOTAL, _CHUNK, _ERROR, _ERROR_PID = 0, 1, 2, 5, 6  # as i64 indices

WAKE_NS = 30_000
"""Work below this is not worth waking a worker for: waking costs 5 to 50 us."""
AIR_NS = 50_000_000
"""How long the caller may stay in native code: bounds the time until Ctrl-C is seen."""
CHUNK_NS = 5_000_000
"""The longest a chunk should take: bounds how long the last worker is waited for."""
CHUNKS_PER_THREAD = 16
FIRST_CHUNK = 64
"""Programs in a chunk while nothing is known about their cost."""

_i64 = ctypes.c_int64
_ptr = ctypes.c_void_p


# --------------------------------------------------------------------------------------------------------------------
# The machine


def usable_cores() -> int:
    """Cores this process may use: its affinity, cut down to the quota of its control group."""
    count = getattr(os, "process_cpu_count", None)
    if count is not None:
        cores = count() or 1
    elif hasattr(os, "sched_getaffinity"):
        cores = len(os.sched_getaffinity(0))
    else:
        cores = os.cpu_count() or 1
    with contextlib.suppress(OSError, ValueError), open("/sys/fs/cgroup/cpu.max") as file:
        quota, period = file.read().split()
        if quota != "max":
            cores = min(cores, max(1, round(int(quota) / int(period))))
    return max(1, cores)


def host_cpu() -> CPU:
    """Facts about the processor this runs on, as LLVM and the system report them."""
    global _host
    if _host is None:
        features = llvm.get_host_cpu_features()
        _host = CPU(
            name=llvm.get_host_cpu_name(),
            triple=llvm.get_process_triple(),
            features=tuple(sorted(name for name, on in features.items() if on)),
            feature_string=features.flatten(),
            cores=usable_cores(),
            **_cache_sizes(),
        )
    return _host


def _cache_sizes() -> dict[str, int]:
    """Sizes in bytes of the caches of one core, where the system tells (Linux)."""
    sizes: dict[str, int] = {}
    base = "/sys/devices/system/cpu/cpu0/cache"
    with contextlib.suppress(OSError, ValueError):
        for index in sorted(os.listdir(base)):
            if not index.startswith("index"):
                continue
            fact = {}
            for name in ("level", "type", "size"):
                with open(f"{base}/{index}/{name}") as file:
                    fact[name] = file.read().strip()
            match = re.fullmatch(r"(\d+)([KMG]?)", fact["size"])
            if match and fact["type"] != "Instruction":
                unit = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30}[match[2]]
                sizes[f"l{fact['level']}_bytes"] = int(match[1]) * unit
    return {name: size for name, size in sizes.items() if name in ("l1_bytes", "l2_bytes", "l3_bytes")}


_host: CPU | None = None


def llvm_version() -> str:
    """The versions of LLVM and of its binding, for cache keys."""
    return f"{llvmlite.__version__}/{'.'.join(map(str, llvm.llvm_version_info))}"


# --------------------------------------------------------------------------------------------------------------------
# Native code that serves every kernel

# The pool, as bytes; locks have 128 bytes each, more than any system needs.
_MUTEX, _WORK, _DONE = 0, 128, 256
_EPOCH, _ACTIVE, _OPEN, _WANTED, _JOINED, _STOP = 384, 448, 456, 464, 472, 480
_FN, _ARGS, _STATE, _SCRATCH, _STRIDE = 488, 496, 504, 512, 520
_LOCK_FN, _UNLOCK_FN, _WAIT_FN, _SIGNAL_FN, _BROADCAST_FN = 528, 536, 544, 552, 560
POOL_BYTES = 640

SPINS = 1000
"""Rounds of a busy wait before sleeping, each a pause instruction (15 to 140 cycles)."""


def _native_ir(machine: str, windows: bool) -> str:
    """The worker loop, the caller's part and the two ends of a job, as LLVM IR."""
    if machine in ("x86_64", "amd64", "i686", "x86"):
        pause, declare = "call void @llvm.x86.sse2.pause()", "declare void @llvm.x86.sse2.pause()"
    elif machine in ("aarch64", "arm64"):
        pause, declare = "call void @llvm.aarch64.hint(i32 1)", "declare void @llvm.aarch64.hint(i32)"
    else:
        pause, declare = 'call void asm sideeffect "", ""()', ""
    names = iter(range(10_000))

    def call(fn: int, *operands: int, extra: str = "") -> str:
        """Call the system function whose address stands at offset `fn` of the pool."""
        n = next(names)
        lines = [f"%f{n}p = getelementptr i8, ptr %pool, i64 {fn}", f"%f{n} = load ptr, ptr %f{n}p"]
        for k, offset in enumerate(operands):
            lines.append(f"%o{n}_{k} = getelementptr i8, ptr %pool, i64 {offset}")
        arguments = ", ".join(f"ptr %o{n}_{k}" for k in range(len(operands)))
        lines.append(f"call i32 %f{n}({arguments}{extra})")
        return "\n  ".join(lines)

    def at(name: str, offset: int, atomic: str = "") -> str:
        """%name = the i64 at an offset of the pool."""
        order = f" {atomic}, align 8" if atomic else ", align 8"
        return (
            f"%{name}.p = getelementptr i8, ptr %pool, i64 {offset}\n  "
            f"%{name} = load {'atomic ' if atomic else ''}i64, ptr %{name}.p{order}"
        )

    def put(offset: int, value: str, kind: str = "i64", atomic: str = "") -> str:
        n = next(names)
        order = f" {atomic}, align 8" if atomic else ", align 8"
        return (
            f"%s{n} = getelementptr i8, ptr %pool, i64 {offset}\n  "
            f"store {'atomic ' if atomic else ''}{kind} {value}, ptr %s{n}{order}"
        )

    forever = ", i32 -1, i32 0" if windows else ""  # SleepConditionVariableSRW(cv, lock, INFINITE, 0)
    lock, unlock = call(_LOCK_FN, _MUTEX), call(_UNLOCK_FN, _MUTEX)
    return f"""
{declare}

define void @weft_worker(ptr %pool) {{
entry:
  br label %idle
idle:
  %seen = phi i64 [ 0, %entry ], [ %e3, %rest ], [ %e3, %work.done ]
  br label %spin
spin:
  %k = phi i64 [ 0, %idle ], [ %k1, %spin.more ]
  {at("e1", _EPOCH, "acquire")}
  %new1 = icmp ne i64 %e1, %seen
  br i1 %new1, label %take, label %spin.more
spin.more:
  {pause}
  %k1 = add i64 %k, 1
  %enough = icmp uge i64 %k1, {SPINS}
  br i1 %enough, label %take, label %spin
take:
  {lock}
  br label %sleep
sleep:
  {at("stop", _STOP)}
  %stopping = icmp ne i64 %stop, 0
  br i1 %stopping, label %leave, label %look
look:
  {at("e3", _EPOCH, "acquire")}
  %new3 = icmp ne i64 %e3, %seen
  br i1 %new3, label %join, label %wait
wait:
  {call(_WAIT_FN, _WORK, _MUTEX, extra=forever)}
  br label %sleep
join:
  {at("open", _OPEN)}
  {at("joined", _JOINED)}
  {at("wanted", _WANTED)}
  %isopen = icmp ne i64 %open, 0
  %room = icmp slt i64 %joined, %wanted
  %go = and i1 %isopen, %room
  br i1 %go, label %work, label %rest
rest:
  {call(_UNLOCK_FN, _MUTEX)}
  br label %idle
work:
  %joined1 = add i64 %joined, 1
  store i64 %joined1, ptr %joined.p
  {at("active", _ACTIVE)}
  %active1 = add i64 %active, 1
  store atomic i64 %active1, ptr %active.p monotonic, align 8
  {at("fni", _FN)}
  {at("argsi", _ARGS)}
  {at("statei", _STATE)}
  {at("scratchi", _SCRATCH)}
  {at("stride", _STRIDE)}
  %fn = inttoptr i64 %fni to ptr
  %args = inttoptr i64 %argsi to ptr
  %state = inttoptr i64 %statei to ptr
  %skip = mul i64 %joined, %stride
  %minei = add i64 %scratchi, %skip
  %mine = inttoptr i64 %minei to ptr
  {call(_UNLOCK_FN, _MUTEX)}
  call void %fn(ptr %args, ptr %state, ptr %mine)
  {call(_LOCK_FN, _MUTEX)}
  {at("left", _ACTIVE)}
  %left1 = sub i64 %left, 1
  store atomic i64 %left1, ptr %left.p release, align 8
  %last = icmp eq i64 %left1, 0
  br i1 %last, label %tell, label %work.done.pre
tell:
  {call(_BROADCAST_FN, _DONE)}
  br label %work.done.pre
work.done.pre:
  {call(_UNLOCK_FN, _MUTEX)}
  br label %work.done
work.done:
  br label %idle
leave:
  {call(_UNLOCK_FN, _MUTEX)}
  ret void
}}

; Offer a job to at most %wanted workers.
define void @weft_begin(ptr %pool, ptr %fn, ptr %args, ptr %state, i64 %wanted) {{
  {call(_LOCK_FN, _MUTEX)}
  {put(_FN, "%fn", "ptr")}
  {put(_ARGS, "%args", "ptr")}
  {put(_STATE, "%state", "ptr")}
  {put(_WANTED, "%wanted")}
  {put(_JOINED, "0")}
  {put(_OPEN, "1")}
  {at("e", _EPOCH)}
  %e1 = add i64 %e, 1
  {put(_EPOCH, "%e1", atomic="release")}
  {call(_BROADCAST_FN, _WORK)}
  {call(_UNLOCK_FN, _MUTEX)}
  ret void
}}

; Close the job: nobody joins any more; wait for those who did.
define void @weft_end(ptr %pool) {{
entry:
  {call(_LOCK_FN, _MUTEX)}
  {put(_OPEN, "0")}
  {call(_UNLOCK_FN, _MUTEX)}
  br label %spin
spin:
  %k = phi i64 [ 0, %entry ], [ %k1, %more ]
  {at("a1", _ACTIVE, "acquire")}
  %none = icmp eq i64 %a1, 0
  br i1 %none, label %done, label %more
more:
  {pause}
  %k1 = add i64 %k, 1
  %enough = icmp uge i64 %k1, {SPINS}
  br i1 %enough, label %block, label %spin
block:
  {call(_LOCK_FN, _MUTEX)}
  br label %test
test:
  {at("a2", _ACTIVE, "acquire")}
  %none2 = icmp eq i64 %a2, 0
  br i1 %none2, label %unblock, label %sleep
sleep:
  {call(_WAIT_FN, _DONE, _MUTEX, extra=forever)}
  br label %test
unblock:
  {call(_UNLOCK_FN, _MUTEX)}
  br label %done
done:
  ret void
}}

define void @weft_stop(ptr %pool) {{
  {call(_LOCK_FN, _MUTEX)}
  {put(_STOP, "1")}
  {at("e", _EPOCH)}
  %e1 = add i64 %e, 1
  {put(_OPEN, "0")}
  {put(_EPOCH, "%e1", atomic="release")}
  {call(_BROADCAST_FN, _WORK)}
  {call(_UNLOCK_FN, _MUTEX)}
  ret void
}}

; Run at most %most chunks of %shared, through the state %own; 1 when nothing is left, else 0.
define i32 @weft_help(ptr %fn, ptr %args, ptr %shared, ptr %own, ptr %scratch, i64 %most) {{
entry:
  %total.p = getelementptr i8, ptr %shared, i64 8
  %chunk.p = getelementptr i8, ptr %shared, i64 16
  %total = load i64, ptr %total.p
  %chunk = load i64, ptr %chunk.p
  %own.total = getelementptr i8, ptr %own, i64 8
  %own.error = getelementptr i8, ptr %own, i64 40
  %own.pid = getelementptr i8, ptr %own, i64 48
  br label %loop
loop:
  %n = phi i64 [ 0, %entry ], [ %n1, %next ]
  %full = icmp uge i64 %n, %most
  br i1 %full, label %pause, label %claim
claim:
  %first = atomicrmw add ptr %shared, i64 %chunk monotonic
  %over = icmp sge i64 %first, %total
  br i1 %over, label %finished, label %run
run:
  %last = add i64 %first, %chunk
  %cut = icmp slt i64 %last, %total
  %end = select i1 %cut, i64 %last, i64 %total
  store atomic i64 %first, ptr %own monotonic, align 8
  store i64 %end, ptr %own.total
  call void %fn(ptr %args, ptr %own, ptr %scratch)
  %e = load atomic i64, ptr %own.error acquire, align 8
  %bad = icmp ne i64 %e, 0
  br i1 %bad, label %fail, label %next
next:
  %n1 = add i64 %n, 1
  br label %loop
fail:
  %shared.error = getelementptr i8, ptr %shared, i64 40
  %shared.pid = getelementptr i8, ptr %shared, i64 48
  %pair = cmpxchg ptr %shared.error, i64 0, i64 %e acq_rel monotonic
  %won = extractvalue {{ i64, i1 }} %pair, 1
  br i1 %won, label %tell, label %cancel
tell:
  %pid = load i64, ptr %own.pid
  store i64 %pid, ptr %shared.pid
  br label %cancel
cancel:
  store atomic i64 %total, ptr %shared monotonic, align 8
  ret i32 1
finished:
  ret i32 1
pause:
  ret i32 0
}}
"""


def _system_functions() -> dict[int, int]:
    """Offsets in the pool and the addresses of the functions of the system that lock, wait and wake."""
    if sys.platform == "win32":
        library = ctypes.WinDLL("kernel32")
        names = {
            _LOCK_FN: "AcquireSRWLockExclusive",
            _UNLOCK_FN: "ReleaseSRWLockExclusive",
            _WAIT_FN: "SleepConditionVariableSRW",
            _SIGNAL_FN: "WakeConditionVariable",
            _BROADCAST_FN: "WakeAllConditionVariable",
        }
    else:
        library = ctypes.CDLL(None)
        names = {
            _LOCK_FN: "pthread_mutex_lock",
            _UNLOCK_FN: "pthread_mutex_unlock",
            _WAIT_FN: "pthread_cond_wait",
            _SIGNAL_FN: "pthread_cond_signal",
            _BROADCAST_FN: "pthread_cond_broadcast",
        }
    return {offset: ctypes.cast(getattr(library, name), _ptr).value or 0 for offset, name in names.items()}


class _Loader:
    """The process-wide LLVM linker: object files in, addresses out."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._count = 0
        llvm.initialize_native_target()
        llvm.initialize_native_asmprinter()
        self._machine = llvm.Target.from_default_triple().create_target_machine(jit=True)
        self._lljit = llvm.create_lljit_compiler(self._machine, suppress_errors=True)

    def load(self, code: bytes, names: Sequence[str]) -> tuple[Any, list[int]]:
        """Link an object file; a handle to keep, and the addresses of `names`."""
        with self._lock:
            self._count += 1
            builder = llvm.JITLibraryBuilder().add_object_img(code).add_current_process()
            for name in names:
                builder = builder.export_symbol(name)
            try:
                tracker = builder.link(self._lljit, f"weft.{self._count}")
            except RuntimeError as error:
                raise CompilerCrash(f"the object of {names[0]} does not link: {error}", "loading") from error
            return tracker, [int(tracker[name]) for name in names]

    def compile(self, text: str) -> bytes:
        """The object of a module of LLVM IR, not optimised much: for the code of this file only."""
        machine = llvm.Target.from_default_triple().create_target_machine(opt=1, jit=True)
        module = llvm.parse_assembly(text)
        module.verify()
        code: bytes = machine.emit_object(module)
        return code


class _Native:
    """The functions of `_native_ir`, callable."""

    def __init__(self, loader: _Loader) -> None:
        windows = sys.platform == "win32"
        names = ["weft_worker", "weft_begin", "weft_end", "weft_stop", "weft_help"]
        code = loader.compile(_native_ir(platform.machine().lower(), windows))
        self._keep, addresses = loader.load(code, names)
        worker, begin, end, stop, help_ = addresses
        self.worker = ctypes.CFUNCTYPE(None, _ptr)(worker)
        self.begin = ctypes.CFUNCTYPE(None, _ptr, _ptr, _ptr, _ptr, _i64)(begin)
        self.end = ctypes.CFUNCTYPE(None, _ptr)(end)
        self.stop = ctypes.CFUNCTYPE(None, _ptr)(stop)
        self.help = ctypes.CFUNCTYPE(ctypes.c_int32, _ptr, _ptr, _ptr, _ptr, _ptr, _i64)(help_)


_setup_lock = threading.Lock()
_loader_instance: _Loader | None = None
_native_instance: _Native | None = None


def _loader() -> _Loader:
    global _loader_instance
    if _loader_instance is None:
        with _setup_lock:
            if _loader_instance is None:
                _loader_instance = _Loader()
    return _loader_instance


def _native() -> _Native:
    global _native_instance
    if _native_instance is None:
        loader = _loader()
        with _setup_lock:
            if _native_instance is None:
                _native_instance = _Native(loader)
    return _native_instance


# --------------------------------------------------------------------------------------------------------------------
# Memory


def _aligned(size: int, alignment: int = 64) -> tuple[Any, int]:
    """Uninitialised memory: an object that keeps it alive, and its aligned address."""
    memory = np.empty(size + alignment, np.uint8)
    return memory, (int(memory.ctypes.data) + alignment - 1) & -alignment


class _Scratch:
    """Scratch memory of callers; used last in, first out, so that it stays warm and is not touched again to clear it."""

    def __init__(self) -> None:
        self._free: list[tuple[int, int, Any]] = []

    def take(self, size: int) -> tuple[int, int, Any]:
        """(address, size, keeper) of at least `size` bytes."""
        try:
            block = self._free.pop()
        except IndexError:
            block = (0, 0, None)
        if block[1] < size:
            rounded = max(1 << (size - 1).bit_length(), 1 << 14)
            memory, address = _aligned(rounded)
            block = (address, rounded, memory)
        return block

    def give(self, block: tuple[int, int, Any]) -> None:
        if len(self._free) < 64:
            self._free.append(block)


_scratch = _Scratch()


# --------------------------------------------------------------------------------------------------------------------
# The pool


class Pool:
    """Worker threads that take part in launches; one job at a time, a second launch meanwhile runs on its own thread."""

    def __init__(self, workers: int) -> None:
        self.workers = workers
        self._busy = threading.Lock()
        self._native = _native()
        self._keep, self._address = _aligned(POOL_BYTES)
        ctypes.memset(self._address, 0, POOL_BYTES)
        for offset, function in _system_functions().items():
            _i64.from_address(self._address + offset).value = function
        if sys.platform != "win32":
            library = ctypes.CDLL(None)
            for init, offset in (("mutex", _MUTEX), ("cond", _WORK), ("cond", _DONE)):
                getattr(library, f"pthread_{init}_init")(_ptr(self._address + offset), None)
        self._scratch_bytes = 0
        self._scratch: Any = None
        self._threads = [
            threading.Thread(target=self._native.worker, args=(self._address,), name=f"weft-{i}", daemon=True)
            for i in range(workers)
        ]
        for thread in self._threads:
            thread.start()

    def try_begin(self, fn: int, args: int, state: int, wanted: int, scratch_bytes: int) -> bool:
        """Offer a job to `wanted` workers; False when the pool is busy with another thread's launch."""
        if not self._busy.acquire(blocking=False):
            return False
        if scratch_bytes > self._scratch_bytes:
            size = max(1 << (scratch_bytes - 1).bit_length(), 1 << 14)
            self._scratch, address = _aligned(size * self.workers)
            self._scratch_bytes = size
            _i64.from_address(self._address + _SCRATCH).value = address
            _i64.from_address(self._address + _STRIDE).value = size
        self._native.begin(self._address, fn, args, state, wanted)
        return True

    def end(self) -> None:
        """Wait for the workers that joined."""
        self._native.end(self._address)
        self._busy.release()

    def stop(self) -> None:
        """End the worker threads."""
        self._native.stop(self._address)
        for thread in self._threads:
            thread.join(timeout=1.0)


_pool: Pool | None = None
_pool_lock = threading.Lock()
_num_threads: int | None = None


def get_num_threads() -> int:
    """Threads a launch may use, the caller included: `WEFT_NUM_THREADS`, or the usable cores."""
    global _num_threads
    if _num_threads is None:
        text = os.environ.get("WEFT_NUM_THREADS", "")
        _num_threads = int(text) if text.isdigit() and int(text) > 0 else usable_cores()
    return _num_threads


def set_num_threads(count: int) -> None:
    """Use `count` threads from the next launch on."""
    global _num_threads, _pool
    if count < 1:
        raise ValueError(f"the number of threads must be at least 1, got {count}")
    with _pool_lock:
        old, _pool, _num_threads = _pool, None, count
    if old is not None:
        with old._busy:
            old.stop()


def _get_pool(threads: int) -> Pool:
    global _pool
    pool = _pool
    if pool is None:
        with _pool_lock:
            if _pool is None:
                _pool = Pool(threads - 1)
            pool = _pool
    return pool


def _after_fork() -> None:
    """In the child of a fork there are no workers, and locks may be in any state: begin anew."""
    global _pool, _pool_lock, _setup_lock
    _pool = None
    _pool_lock = threading.Lock()
    _setup_lock = threading.Lock()
    if _loader_instance is not None:
        _loader_instance._lock = threading.Lock()


def _at_exit() -> None:
    global _pool
    pool, _pool = _pool, None
    if pool is not None and pool._busy.acquire(timeout=1.0):
        pool.stop()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
atexit.register(_at_exit)


# --------------------------------------------------------------------------------------------------------------------
# Kernels


class LoadedKernel:
    """A compiled kernel in memory, ready to run; `metadata` is that of the binary."""

    def __init__(self, code: bytes, metadata: Mapping[str, Any]) -> None:
        self.name: str = metadata["name"]
        self.scratch_bytes: int = int(metadata.get("scratch_bytes", 0))
        self.asserts: list[dict[str, Any]] = list(metadata.get("asserts", ()))
        self._printer = Printer(metadata["prints"]) if metadata.get("prints") else None
        self._tracker, (self.address,) = _loader().load(code, [self.name])
        self._call = ctypes.CFUNCTYPE(None, _ptr, _ptr, _ptr)(self.address)
        self._ns = 0.0  # nanoseconds of one thread for one program, 0 while unknown

    def launcher(self, args_format: str) -> Callable[..., None]:
        """A function (nx, ny, nz, *values) that runs a grid; `args_format` has a struct code for every value."""
        whole = struct.Struct("<" + STATE_FORMAT + args_format)
        pack = whole.pack_into
        free: list[tuple[Any, Any, int, int]] = []
        call, scratch_bytes, printer = self._call, self.scratch_bytes, self._printer
        print_fn = printer.address if printer is not None else 0
        run_many, fail = self._run_many, self._fail
        take, give = _scratch.take, _scratch.give

        def launch(nx: int, ny: int, nz: int, *values: Any) -> None:
            try:
                context = free.pop()
            except IndexError:
                context = _new_context(whole.size)
            memory, words, state, args = context
            total = nx * ny * nz
            pack(memory, 0, 0, total, total, nx, ny, nz, 0, 0, 0, print_fn, *values)
            block = take(scratch_bytes) if scratch_bytes else None
            if printer is not None:
                printer.grid = (nx, ny)
            if total == 1:
                call(args, state, block[0] if block else 0)
            elif total > 1:
                run_many(words, args, state, block[0] if block else 0, total)
            if block:
                give(block)
            if words[_ERROR]:
                fail(words[_ERROR], words[_ERROR_PID], nx, ny)
            if printer is not None:
                printer.raise_pending()
            free.append(context)

        return launch

    def launch(self, args: bytes | bytearray, grid: Sequence[int]) -> None:
        """Run a grid on a buffer of argument slots (8 bytes each)."""
        nx, ny, nz = (*grid, 1, 1, 1)[:3]
        self.launcher(f"{len(args) // 8}Q")(nx, ny, nz, *struct.unpack(f"<{len(args) // 8}Q", args))

    def _run_many(self, words: Any, args: int, state: int, scratch: int, total: int) -> None:
        """Run programs 0 .. total of the state, on as many threads as they are worth."""
        threads = 1 if self._printer is not None else get_num_threads()
        begin = perf_counter_ns()
        per_program = self._ns
        if per_program == 0.0:
            # Nothing is known: the first program tells the order of magnitude.
            words[_CHUNK] = 1
            own = (ctypes.c_char * STATE_BYTES)()
            self._own_state(own, state)
            _native().help(self.address, args, state, ctypes.addressof(own), scratch, 1)
            per_program = max(1.0, float(perf_counter_ns() - begin))
        left = total - words[_NEXT]
        work = per_program * left
        if threads > 1 and left > 1 and work > WAKE_NS:
            wanted = min(threads - 1, left - 1, int(work // (WAKE_NS / 2)))
            words[_CHUNK] = _chunk(left, wanted + 1, per_program, self._ns == 0.0)
            pool = _get_pool(threads)
            if pool.try_begin(self.address, args, state, wanted, self.scratch_bytes):
                try:
                    self._take_part(words, args, state, scratch, work / (wanted + 1))
                except BaseException:
                    words[_NEXT] = total  # nobody takes another chunk
                    raise
                finally:
                    pool.end()
                used = wanted + 1
            else:
                self._take_part(words, args, state, scratch, work)
                used = 1
        else:
            words[_CHUNK] = _chunk(left, 1, per_program, self._ns == 0.0)
            self._take_part(words, args, state, scratch, work)
            used = 1
        spent = (perf_counter_ns() - begin) * used / total
        self._ns = spent if self._ns == 0.0 else 0.75 * self._ns + 0.25 * spent

    def _take_part(self, words: Any, args: int, state: int, scratch: int, expected_ns: float) -> None:
        """Run chunks on the calling thread until none is left; long work comes up between for signals."""
        if expected_ns < AIR_NS and self._ns != 0.0:
            self._call(args, state, scratch)
            return
        own = (ctypes.c_char * STATE_BYTES)()
        self._own_state(own, state)
        helper, own_address, most = _native().help, ctypes.addressof(own), 1
        while True:
            begin = perf_counter_ns()
            if helper(self.address, args, state, own_address, scratch, most):
                return
            spent = perf_counter_ns() - begin
            if spent < AIR_NS // 2:
                most *= 2
            elif spent > AIR_NS and most > 1:
                most //= 2

    @staticmethod
    def _own_state(own: Any, state: int) -> None:
        ctypes.memmove(own, state, STATE_BYTES)
        ctypes.memset(ctypes.addressof(own) + 40, 0, 16)

    def _fail(self, error: int, pid: int, nx: int, ny: int) -> None:
        """Raise what the kernel's error slot says."""
        program = (pid % nx, pid // nx % ny, pid // (nx * ny))
        fact: dict[str, Any] = self.asserts[error - 1] if 0 < error <= len(self.asserts) else {}
        span = None
        if fact.get("file"):
            line, column = int(fact.get("line", 1)), int(fact.get("col", 0))
            span = Span(fact["file"], line, column, fact.get("end_line"), fact.get("end_col"))
        raise DeviceAssertionError(
            fact.get("message", f"error {error}"), span, program, fact.get("func") or None, kernel=self.name
        )


def _chunk(left: int, threads: int, per_program: float, unsure: bool) -> int:
    """Programs taken at a time: enough chunks to balance, none too long."""
    chunk = left // (threads * CHUNKS_PER_THREAD)
    chunk = min(chunk, int(CHUNK_NS / per_program))
    return max(1, min(chunk, FIRST_CHUNK) if unsure else chunk)


def _new_context(size: int) -> tuple[Any, Any, int, int]:
    """Memory for the state and arguments of one launch: (bytes, words, address of the state, address of the arguments)."""
    memory = (ctypes.c_char * size)()
    state = ctypes.addressof(memory)
    words = (_i64 * (size // 8)).from_buffer(memory)
    return memory, words, state, state + STATE_BYTES
