"""Native code that serves every kernel: the worker loop, the two ends of a job, the caller's part.

The code is LLVM IR, so that it exists wherever LLVM does; locks and condition variables are the system's.
"""

from __future__ import annotations

import ctypes
import itertools
import platform
import struct
import sys
import threading

from . import loader as loader_module
from .engine import ALL
from .engine_code import engine_ir
from .loader import Loader, loader
from .signals import INTERVAL_NS, LEAVE, LONG, Signals

__all__ = ["STATE_BYTES", "STATE_FORMAT", "Loader", "Native", "after_fork", "loader", "native", "system_functions"]

_i64 = ctypes.c_int64
_ptr = ctypes.c_void_p

STATE_FORMAT = "qqqiiiiqqQQ"
"""struct {i64 next, total, chunk; i32 nx, ny, nz, threads; i64 error, error_pid; ptr printer, table}: what is left of
a launch, how many threads have a number (`Context.thread_number`), what went wrong, the Python function that prints,
and `Signals.table`."""
THREADS = 36
"""Offset of `threads` in the state."""
STATE_BYTES = struct.calcsize("<" + STATE_FORMAT)

# The pool, as bytes; locks have 128 bytes each, more than any system needs.
MUTEX, WORK, DONE = 0, 128, 256
EPOCH, ACTIVE, OPEN, WANTED, JOINED, STOP = 384, 448, 456, 464, 472, 480
FN, ARGS, STATE, SCRATCH, STRIDE = 488, 496, 504, 512, 520
LOCK_FN, UNLOCK_FN, WAIT_FN, SIGNAL_FN, BROADCAST_FN, NAP_FN = 528, 536, 544, 552, 560, 568
BUSY = 576
ROOM, ROOM_STRIDE = 584, 592  # the workers' scratch memory, and how much each has of it
SPINNING = 640  # on a line of its own: workers that are awake and look for work
ASLEEP, TO_WAKE = 648, 656  # workers that wait for a signal; how many of them whoever wakes up has to wake
KEPT_OFF, LOOKED = 704, 712  # the core that no worker may run on, and when that was decided; read by callers only
POOL_BYTES = 768

SPIN_NS = 40_000
"""How long a worker that has nothing to do looks for more before it sleeps, and a caller for the end of its workers:
long enough to be awake still when the next launch follows at once, and not so long that others miss the core."""
SPINS = 16
"""Looks between two looks at the clock, each with a pause instruction (15 to 140 cycles)."""
WOKEN_AT_ONCE = 2
"""Workers that a thread wakes, a system call each; those wake as many more, until all that are wanted are awake."""


class _Text:
    """Pieces of LLVM IR that work on the fields of the pool; names of temporaries count up."""

    def __init__(self, machine: str, windows: bool) -> None:
        self._names = itertools.count()
        self.forever = ", i32 -1, i32 0" if windows else ""  # SleepConditionVariableSRW(cv, lock, INFINITE, 0)
        if machine in ("x86_64", "amd64", "i686", "x86"):
            self.pause, self.declare = "call void @llvm.x86.sse2.pause()", "declare void @llvm.x86.sse2.pause()"
        elif machine in ("aarch64", "arm64"):
            self.pause, self.declare = "call void @llvm.aarch64.hint(i32 1)", "declare void @llvm.aarch64.hint(i32)"
        else:
            self.pause, self.declare = 'call void asm sideeffect "", ""()', ""

    def call(self, fn: int, *operands: int, extra: str = "") -> str:
        """Call the system function whose address stands at offset `fn` of the pool."""
        n = next(self._names)
        lines = [f"%f{n}p = getelementptr i8, ptr %pool, i64 {fn}", f"%f{n} = load ptr, ptr %f{n}p"]
        for k, offset in enumerate(operands):
            lines.append(f"%o{n}_{k} = getelementptr i8, ptr %pool, i64 {offset}")
        arguments = ", ".join(f"ptr %o{n}_{k}" for k in range(len(operands)))
        lines.append(f"call i32 %f{n}({arguments}{extra})")
        return "\n  ".join(lines)

    def at(self, name: str, offset: int, atomic: str = "") -> str:
        """%name = the i64 at an offset of the pool."""
        order = f" {atomic}, align 8" if atomic else ", align 8"
        return (
            f"%{name}.p = getelementptr i8, ptr %pool, i64 {offset}\n  "
            f"%{name} = load {'atomic ' if atomic else ''}i64, ptr %{name}.p{order}"
        )

    def put(self, offset: int, value: str, kind: str = "i64", atomic: str = "") -> str:
        """Store a value at an offset of the pool."""
        n = next(self._names)
        order = f" {atomic}, align 8" if atomic else ", align 8"
        return (
            f"%s{n} = getelementptr i8, ptr %pool, i64 {offset}\n  "
            f"store {'atomic ' if atomic else ''}{kind} {value}, ptr %s{n}{order}"
        )

    def change(self, offset: int, by: str) -> str:
        """Count at an offset of the pool, whose lock is held: "add" or "sub" one."""
        n = next(self._names)
        return (
            f"%c{n}.p = getelementptr i8, ptr %pool, i64 {offset}\n  %c{n} = load i64, ptr %c{n}.p\n  "
            f"%c{n}.n = {by} i64 %c{n}, 1\n  store i64 %c{n}.n, ptr %c{n}.p"
        )

    def lock(self) -> str:
        """Take the pool's lock."""
        return self.call(LOCK_FN, MUTEX)

    def unlock(self) -> str:
        """Give it back."""
        return self.call(UNLOCK_FN, MUTEX)

    def wait(self, condition: int) -> str:
        """Sleep until a condition is signalled; the lock is free meanwhile."""
        return self.call(WAIT_FN, condition, MUTEX, extra=self.forever)


def _worker(t: _Text) -> str:
    """A worker: look for a job for a while, sleep, join the job that is open, until it is told to stop."""
    return f"""define void @weft_worker(ptr %pool) {{
entry:
  %spinning.p = getelementptr i8, ptr %pool, i64 {SPINNING}
  br label %idle
idle:
  %seen = phi i64 [ 0, %entry ], [ %e3, %rest ], [ %e3, %work.done ]
  %begun = call i64 @weft_time()
  %s.in = atomicrmw add ptr %spinning.p, i64 1 monotonic
  br label %spin
spin:
  %k = phi i64 [ 0, %idle ], [ %k1, %spin.more ], [ 0, %clock ]
  {t.at("e1", EPOCH, "acquire")}
  %new1 = icmp ne i64 %e1, %seen
  br i1 %new1, label %take, label %spin.more
spin.more:
  {t.pause}
  %k1 = add i64 %k, 1
  %look = icmp uge i64 %k1, {SPINS}
  br i1 %look, label %clock, label %spin
clock:
  %now = call i64 @weft_time()
  %spent = sub i64 %now, %begun
  %enough = icmp ugt i64 %spent, {SPIN_NS}
  br i1 %enough, label %take, label %spin
take:
  %s.out = atomicrmw sub ptr %spinning.p, i64 1 monotonic
  {t.lock()}
  br label %sleep
sleep:
  {t.at("stop", STOP)}
  %stopping = icmp ne i64 %stop, 0
  br i1 %stopping, label %leave, label %look.again
look.again:
  {t.at("e3", EPOCH, "acquire")}
  %new3 = icmp ne i64 %e3, %seen
  br i1 %new3, label %join, label %wait
wait:
  {t.change(ASLEEP, "add")}
  {t.wait(WORK)}
  {t.change(ASLEEP, "sub")}
  br label %sleep
join:
  call void @weft_wake(ptr %pool)
{_join_job(t)}leave:
  {t.unlock()}
  ret void
}}
"""


def _wake(t: _Text) -> str:
    """Wake some of the workers that are to be woken; the pool's lock is held."""
    return f"""define void @weft_wake(ptr %pool) {{
entry:
  %left.p = getelementptr i8, ptr %pool, i64 {TO_WAKE}
  br label %next
next:
  %k = phi i64 [ 0, %entry ], [ %k1, %tell ]
  %left = load i64, ptr %left.p
  %none = icmp sle i64 %left, 0
  %enough = icmp uge i64 %k, {WOKEN_AT_ONCE}
  %over = or i1 %none, %enough
  br i1 %over, label %done, label %tell
tell:
  %left1 = sub i64 %left, 1
  store i64 %left1, ptr %left.p
  {t.call(SIGNAL_FN, WORK)}
  %k1 = add i64 %k, 1
  br label %next
done:
  ret void
}}
"""


def _guest(t: _Text) -> str:
    """A worker for one job: join the one that is open, if there is and it wants more, and come back."""
    return f"""define void @weft_guest(ptr %pool) {{
entry:
  {t.lock()}
{_join_job(t)}idle:
  ret void
}}
"""


def _join_job(t: _Text) -> str:
    """What a worker does, its lock held: if a job is open that wants more, count itself in, run chunks, count itself
    out; if not, go on at %idle."""
    return f"""  {t.at("open", OPEN)}
  {t.at("joined", JOINED)}
  {t.at("wanted", WANTED)}
  %isopen = icmp ne i64 %open, 0
  %room = icmp slt i64 %joined, %wanted
  %go = and i1 %isopen, %room
  br i1 %go, label %work, label %rest
rest:
  {t.unlock()}
  br label %idle
work:
  %joined1 = add i64 %joined, 1
  store i64 %joined1, ptr %joined.p
  {t.at("active", ACTIVE)}
  %active1 = add i64 %active, 1
  store atomic i64 %active1, ptr %active.p monotonic, align 8
  {t.at("fni", FN)}
  {t.at("argsi", ARGS)}
  {t.at("statei", STATE)}
  {t.at("scratchi", SCRATCH)}
  {t.at("stride", STRIDE)}
  %fn = inttoptr i64 %fni to ptr
  %args = inttoptr i64 %argsi to ptr
  %state = inttoptr i64 %statei to ptr
  %skip = mul i64 %joined, %stride
  %minei = add i64 %scratchi, %skip
  %mine = inttoptr i64 %minei to ptr
  {t.unlock()}
  call void %fn(ptr %args, ptr %state, ptr %mine)
  {t.lock()}
  {t.at("left", ACTIVE)}
  %left1 = sub i64 %left, 1
  store atomic i64 %left1, ptr %left.p release, align 8
  %last = icmp eq i64 %left1, 0
  br i1 %last, label %tell, label %work.done.pre
tell:
  {t.call(BROADCAST_FN, DONE)}
  br label %work.done.pre
work.done.pre:
  {t.unlock()}
  br label %work.done
work.done:
  br label %idle
"""


_RUN = f"""define i32 @weft_run(
    ptr %pool, ptr %fn, ptr %args, ptr %state, ptr %mine, i64 %wanted, ptr %theirs, i64 %stride) {{
entry:
  %busy = getelementptr i8, ptr %pool, i64 {BUSY}
  %pair = cmpxchg ptr %busy, i64 0, i64 1 acquire monotonic
  %free = extractvalue {{ i64, i1 }} %pair, 1
  br i1 %free, label %run, label %no
run:
  call void @weft_begin(ptr %pool, ptr %fn, ptr %args, ptr %state, i64 %wanted, ptr %theirs, i64 %stride)
  %ran = call i64 @weft_help(ptr %fn, ptr %args, ptr %state, ptr %mine, i64 {ALL})
  call void @weft_end(ptr %pool, ptr %state)
  store atomic i64 0, ptr %busy release, align 8
  ret i32 1
no:
  ret i32 0
}}
"""
"""Run all of a state with up to %wanted workers; 0, and nothing, when the pool is busy with another thread's launch.

One native call from the first to the last, so that no exception can come between: workers never outlive their job.
`weft_grid` has the like of it, with measurements.
"""


def _begin(t: _Text) -> str:
    """Offer a job to at most %wanted workers, with %stride bytes of scratch memory for each; wake those it takes."""
    return f"""define void @weft_begin(
    ptr %pool, ptr %fn, ptr %args, ptr %state, i64 %wanted, ptr %scratch, i64 %stride) {{
entry:
  {t.lock()}
  {t.put(FN, "%fn", "ptr")}
  {t.put(ARGS, "%args", "ptr")}
  {t.put(STATE, "%state", "ptr")}
  {t.put(SCRATCH, "%scratch", "ptr")}
  {t.put(STRIDE, "%stride")}
  %threads = getelementptr i8, ptr %state, i64 {THREADS}
  store i32 1, ptr %threads
  {t.put(WANTED, "%wanted")}
  {t.put(JOINED, "0")}
  {t.put(OPEN, "1")}
  {t.at("spinning", SPINNING, "monotonic")}
  {t.at("asleep", ASLEEP)}
  {t.at("e", EPOCH)}
  %e1 = add i64 %e, 1
  {t.put(EPOCH, "%e1", atomic="release")}
  %lack = sub i64 %wanted, %spinning
  %few = icmp slt i64 %lack, %asleep
  %wake = select i1 %few, i64 %lack, i64 %asleep
  {t.put(TO_WAKE, "%wake")}
  %some = icmp sgt i64 %wake, 0
  br i1 %some, label %tell, label %done
tell:
  call void @weft_wake(ptr %pool)
  br label %done
done:
  {t.unlock()}
  ret void
}}
"""


def _end(t: _Text) -> str:
    """Close the job: nobody joins any more; wait for those who did, and look at signals meanwhile."""
    return f"""define void @weft_end(ptr %pool, ptr %state) {{
entry:
  {t.lock()}
  {t.put(OPEN, "0")}
  {t.put(TO_WAKE, "0")}
  {t.unlock()}
  br label %first
first:
  {t.at("a0", ACTIVE, "acquire")}
  %none0 = icmp eq i64 %a0, 0
  br i1 %none0, label %done, label %begin
begin:
  %begun = call i64 @weft_time()
  br label %spin
spin:
  %k = phi i64 [ 0, %begin ], [ %k1, %more ], [ 0, %clock ]
  {t.at("a1", ACTIVE, "acquire")}
  %none = icmp eq i64 %a1, 0
  br i1 %none, label %done, label %more
more:
  {t.pause}
  %k1 = add i64 %k, 1
  %look = icmp uge i64 %k1, {SPINS}
  br i1 %look, label %clock, label %spin
clock:
  %now = call i64 @weft_time()
  %spent = sub i64 %now, %begun
  %enough = icmp ugt i64 %spent, {SPIN_NS}
  br i1 %enough, label %block, label %spin
block:
  {t.lock()}
  br label %test
test:
  {t.at("a2", ACTIVE, "acquire")}
  %none2 = icmp eq i64 %a2, 0
  br i1 %none2, label %unblock, label %sleep
sleep:
  call void @weft_nap(ptr %pool)
  {t.unlock()}
  %leave = call i32 @weft_poll(ptr %state)
  %leaving = icmp ne i32 %leave, 0
  br i1 %leaving, label %cancel, label %block
cancel:
  %total.p = getelementptr i8, ptr %state, i64 8
  %total = load i64, ptr %total.p
  store atomic i64 %total, ptr %state monotonic, align 8
  br label %block
unblock:
  {t.unlock()}
  br label %done
done:
  ret void
}}
"""


def _nap(t: _Text, windows: bool) -> str:
    """Sleep until somebody says that a job is done, a tenth of a second at most; longer if the clock is set back."""
    if windows:
        wait = t.call(NAP_FN, DONE, MUTEX, extra=f", i32 {INTERVAL_NS // 1_000_000}, i32 0")
        return f"define void @weft_nap(ptr %pool) {{\n  {wait}\n  ret void\n}}\n"
    narrow = "add i64 0," if LONG == "i64" else "trunc i64"
    to = "" if LONG == "i64" else f"to {LONG}"
    return f"""define void @weft_nap(ptr %pool) {{
  %until = alloca [2 x {LONG}], align 8
  %now = call i64 @weft_clock(i32 0)
  %end = add i64 %now, {INTERVAL_NS}
  %whole = udiv i64 %end, 1000000000
  %part = urem i64 %end, 1000000000
  %seconds = {narrow} %whole {to}
  %rest = {narrow} %part {to}
  %rest.p = getelementptr {LONG}, ptr %until, i64 1
  store {LONG} %seconds, ptr %until
  store {LONG} %rest, ptr %rest.p
  {t.call(NAP_FN, DONE, MUTEX, extra=", ptr %until")}
  ret void
}}
"""


def _stop(t: _Text) -> str:
    """Tell the workers to leave."""
    return f"""define void @weft_stop(ptr %pool) {{
  {t.lock()}
  {t.put(STOP, "1")}
  {t.at("e", EPOCH)}
  %e1 = add i64 %e, 1
  {t.put(OPEN, "0")}
  {t.put(EPOCH, "%e1", atomic="release")}
  {t.call(BROADCAST_FN, WORK)}
  {t.unlock()}
  ret void
}}
"""


_HELP = f"""define i64 @weft_help(ptr %fn, ptr %args, ptr %shared, ptr %scratch, i64 %most) {{
entry:
  %own = alloca [{STATE_BYTES} x i8], align 8
  call void @llvm.memcpy.p0.p0.i64(ptr align 8 %own, ptr align 8 %shared, i64 {STATE_BYTES}, i1 false)
  %total.p = getelementptr i8, ptr %shared, i64 8
  %chunk.p = getelementptr i8, ptr %shared, i64 16
  %total = load i64, ptr %total.p
  %chunk = load i64, ptr %chunk.p
  %own.total = getelementptr i8, ptr %own, i64 8
  %own.error = getelementptr i8, ptr %own, i64 40
  %own.pid = getelementptr i8, ptr %own, i64 48
  store i64 0, ptr %own.error
  store i64 0, ptr %own.pid
  %own.threads = getelementptr i8, ptr %own, i64 {THREADS}
  br label %loop
loop:
  %n = phi i64 [ 0, %entry ], [ %n1, %next ]
  %ran = phi i64 [ 0, %entry ], [ %ran1, %next ]
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
  store i32 0, ptr %own.threads
  call void %fn(ptr %args, ptr %own, ptr %scratch)
  %polled = call i32 @weft_look(ptr %own)
  %error = load atomic i64, ptr %own.error acquire, align 8
  %bad = icmp ne i64 %error, 0
  br i1 %bad, label %fail, label %next
next:
  %n1 = add i64 %n, 1
  %did = sub i64 %end, %first
  %ran1 = add i64 %ran, %did
  br label %loop
fail:
  %shared.error = getelementptr i8, ptr %shared, i64 40
  %shared.pid = getelementptr i8, ptr %shared, i64 48
  %leave = and i64 %error, {LEAVE}
  %told = and i64 %error, {~LEAVE}
  %pair = cmpxchg ptr %shared.error, i64 0, i64 %told acq_rel monotonic
  %won = extractvalue {{ i64, i1 }} %pair, 1
  br i1 %won, label %tell, label %cancel
tell:
  %pid = load i64, ptr %own.pid
  store i64 %pid, ptr %shared.pid
  br label %cancel
cancel:
  %before = atomicrmw or ptr %shared.error, i64 %leave monotonic
  store atomic i64 %total, ptr %shared monotonic, align 8
  ret i64 %ran
finished:
  ret i64 %ran
pause:
  ret i64 %ran
}}
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)
"""
"""Run at most %most chunks of %shared, through a state of its own; gives how many programs that were."""


def _native_ir(machine: str, windows: bool, signals: Signals) -> str:
    """The worker loop, the caller's part and the two ends of a job, as LLVM IR."""
    t = _Text(machine, windows)
    offsets = {"spinning": SPINNING, "busy": BUSY, "room": ROOM, "stride": ROOM_STRIDE}
    offsets |= {"off": KEPT_OFF, "looked": LOOKED}
    grid = engine_ir(offsets, core_function())
    ends = _begin(t), _end(t), _nap(t, windows), _stop(t)
    return "\n".join((t.declare, signals.ir(), _worker(t), _wake(t), _guest(t), _RUN, *ends, _HELP, grid))


def system_functions() -> dict[int, int]:
    """Offsets in the pool and the addresses of the functions of the system that lock, wait and wake."""
    if sys.platform == "win32":
        library = ctypes.WinDLL("kernel32")
        names = {
            LOCK_FN: "AcquireSRWLockExclusive",
            UNLOCK_FN: "ReleaseSRWLockExclusive",
            WAIT_FN: "SleepConditionVariableSRW",
            NAP_FN: "SleepConditionVariableSRW",
            SIGNAL_FN: "WakeConditionVariable",
            BROADCAST_FN: "WakeAllConditionVariable",
        }
    else:
        library = ctypes.CDLL(None)
        names = {
            LOCK_FN: "pthread_mutex_lock",
            UNLOCK_FN: "pthread_mutex_unlock",
            WAIT_FN: "pthread_cond_wait",
            NAP_FN: "pthread_cond_timedwait",
            SIGNAL_FN: "pthread_cond_signal",
            BROADCAST_FN: "pthread_cond_broadcast",
        }
    return {offset: ctypes.cast(getattr(library, name), _ptr).value or 0 for offset, name in names.items()}


def core_function() -> int:
    """The address of the system's function that tells the core on which its caller runs; 0 where there is none."""
    here = getattr(ctypes.CDLL(None), "sched_getcpu", None) if sys.platform == "linux" else None
    return 0 if here is None else ctypes.cast(here, _ptr).value or 0


_TABLE = ("poll", "print", "time")
"""What generated code finds in the state's table."""


class Native:
    """The functions of `_native_ir`, callable."""

    def __init__(self, linker: Loader) -> None:
        windows = sys.platform == "win32"
        self.signals = Signals()
        names = [f"weft_{name}" for name in ("worker", "guest", "run", "wanted", "ready", "grid", "stop", *_TABLE)]
        code = linker.compile(_native_ir(platform.machine().lower(), windows, self.signals))
        self._keep, addresses = linker.load(code, names)
        worker, guest, run, wanted, ready, grid, stop, *table = addresses
        self.worker = ctypes.CFUNCTYPE(None, _ptr)(worker)
        self.guest = ctypes.CFUNCTYPE(None, _ptr)(guest)
        self.run = ctypes.CFUNCTYPE(ctypes.c_int32, _ptr, _ptr, _ptr, _ptr, _ptr, _i64, _ptr, _i64)(run)
        self.wanted = ctypes.PYFUNCTYPE(_i64, _ptr, _i64)(wanted)
        self.ready = ctypes.PYFUNCTYPE(ctypes.c_int32, _i64)(ready)
        self.grid = ctypes.CFUNCTYPE(ctypes.c_int32, _ptr, _ptr, _ptr, _ptr, _i64)(grid)
        self.stop = ctypes.CFUNCTYPE(None, _ptr)(stop)
        self.addresses = {"wanted": wanted, "ready": ready, "grid": grid}
        for place, address in enumerate(table):
            self.signals.table[place] = address


_setup_lock = threading.RLock()
_native_instance: Native | None = None


def native() -> Native:
    """The native functions, compiled when first asked for."""
    global _native_instance
    if _native_instance is None:
        with _setup_lock:
            if _native_instance is None:
                _native_instance = Native(loader())
    return _native_instance


def after_fork() -> None:
    """In the child of a fork locks may be in any state: make new ones."""
    global _setup_lock
    _setup_lock = threading.RLock()
    loader_module.after_fork()
    if _native_instance is not None:
        _native_instance.signals.main_thread(threading.get_ident())
