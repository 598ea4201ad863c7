"""The two ends of a job for workers, and what each thread does in one, as LLVM IR.

    weft_begin   a caller puts the job down, and posts it to the workers that it wants
    weft_help    runs a part in chunks, and then chunks of the parts of others that are left; the caller too
    weft_end     the caller takes back what nobody has taken, and waits for the rest

A worker has the same part of the same grid in each launch, so that what it reads and writes may still be in the caches
of its core: to fetch it from those of another takes longer than from its own second level. Nothing that two threads
write in a launch lies in one cache line, but for the mask of the parts that are left.
"""

from __future__ import annotations

from . import pool_layout as pool
from .pool_text import SPIN_NS, SPINS, Text
from .signals import INTERVAL_NS, LEAVE, LONG
from .state import CHUNK, ERROR, ERROR_PID, STATE_BYTES, THREADS, TOTAL, WHOLE

_DECLARED = """
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)
declare void @llvm.prefetch.p0(ptr, i32, i32, i32)
declare i64 @llvm.cttz.i64(i64, i1)
declare i64 @llvm.fshr.i64(i64, i64, i64)
"""


def jobs_ir(t: Text, windows: bool) -> str:
    """All functions."""
    ends = _run(t), _begin(t), _end(t), _working(t), _nap(t, windows), _call_one()
    return "\n".join((t.declare, _DECLARED, *ends, _CANCEL, _HELP))


def _run(t: Text) -> str:
    """Run all of a state with up to %wanted workers and guests, who take programs one after the other as any is free;
    0, and nothing, when the pool is busy with another thread's launch.

    One native call from the first to the last, so that no exception can come between: workers never outlive their job.
    `weft_grid` has the like of it, with parts and measurements.
    """
    return f"""define i32 @weft_run(
    ptr %pool, ptr %fn, ptr %args, ptr %state, ptr %mine, i64 %wanted, ptr %theirs, i64 %stride) {{
entry:
  %busy = getelementptr i8, ptr %pool, i64 {pool.BUSY}
  %pair = cmpxchg ptr %busy, i64 0, i64 1 acquire monotonic
  %free = extractvalue {{ i64, i1 }} %pair, 1
  br i1 %free, label %run, label %no
run:
  {t.lock()}
  {t.put(pool.GUESTS, "0")}
  call void @weft_begin(
    ptr %pool, ptr %fn, ptr %args, ptr %state, i64 %wanted, ptr %theirs, i64 %stride, ptr %state, i64 1)
  {t.at("workers", pool.WORKERS)}
  %many = sub i64 %wanted, %workers
  {t.put(pool.OPEN, "%many")}
  {t.unlock()}
  call void @weft_wake(ptr %pool, i64 0)
  %ran = call i64 @weft_help(ptr %fn, ptr %args, ptr %state, ptr %mine, ptr %state, i64 0, i64 1, i64 {pool.ALL})
  {t.lock()}
  {t.put(pool.OPEN, "0")}
  {t.at("guests", pool.GUESTS)}
  {t.at("posted", pool.WANTED)}
  {t.unlock()}
  %lines = add i64 %posted, %guests
  call void @weft_end(ptr %pool, i64 %lines)
  store atomic i64 0, ptr %busy release, align 8
  ret i32 1
no:
  ret i32 0
}}
"""


def _begin(t: Text) -> str:
    """Post a job to %wanted workers, the first that there are, with %stride bytes of scratch memory for each. Its
    parts, from %base on, are ready: whoever has done its own looks at all others.
    """
    return f"""define void @weft_begin(
    ptr %pool, ptr %fn, ptr %args, ptr %state, i64 %wanted, ptr %scratch, i64 %stride, ptr %base, i64 %parts) {{
entry:
  {t.put(pool.FN, "%fn", "ptr")}
  {t.put(pool.ARGS, "%args", "ptr")}
  {t.put(pool.STATE, "%state", "ptr")}
  {t.put(pool.SCRATCH, "%scratch", "ptr")}
  {t.put(pool.STRIDE, "%stride")}
  {t.put(pool.BASE, "%base", "ptr")}
  {t.put(pool.PARTS, "%parts")}
  %unused = sub i64 64, %parts
  %mask = lshr i64 -1, %unused
  {t.put(pool.MASK, "%mask")}
  {t.at("workers", pool.WORKERS)}
  %few = icmp slt i64 %wanted, %workers
  %count = select i1 %few, i64 %wanted, i64 %workers
  {t.put(pool.WANTED, "%count")}
  %some = icmp sgt i64 %count, 0
  br i1 %some, label %tell, label %done
tell:
  %k = phi i64 [ 0, %entry ], [ %k1, %tell ]
  {t.post("%k")}
  store atomic i64 {pool.OPENED}, ptr %post release, align 8
  %k1 = add i64 %k, 1
  %more = icmp slt i64 %k1, %count
  br i1 %more, label %tell, label %done
done:
  ret void
}}
"""


def _end(t: Text) -> str:
    """Close the job: nobody takes it any more; wait for those who did, and look at signals meanwhile."""
    return f"""define void @weft_end(ptr %pool, i64 %lines) {{
entry:
  {t.at("state", pool.STATE, kind="ptr")}
  {t.at("base", pool.BASE, kind="ptr")}
  {t.at("parts", pool.PARTS)}
  %some = icmp sgt i64 %lines, 0
  br i1 %some, label %close, label %done
close:
  %c = phi i64 [ 0, %entry ], [ %c1, %next ]
  %j = phi i64 [ 0, %entry ], [ %j1, %next ]
  {t.post("%c")}
  %p = load atomic i64, ptr %post acquire, align 8
  %open = icmp eq i64 %p, {pool.OPENED}
  br i1 %open, label %take.back, label %next
take.back:
  %pair = cmpxchg ptr %post, i64 {pool.OPENED}, i64 {pool.CLOSED} monotonic monotonic
  %back = extractvalue {{ i64, i1 }} %pair, 1
  br label %next
next:
  %away = phi i1 [ false, %close ], [ %back, %take.back ]
  %here = xor i1 %away, true
  %one = zext i1 %here to i64
  %j1 = add i64 %j, %one
  %c1 = add i64 %c, 1
  %more = icmp slt i64 %c1, %lines
  br i1 %more, label %close, label %closed
closed:
  {t.put(pool.JOINED, "%j1")}
  %w0 = call i64 @weft_working(ptr %pool, i64 0, i64 %lines)
  %none = icmp sge i64 %w0, %lines
  br i1 %none, label %done, label %begin
begin:
  %begun = call i64 @weft_time()
  br label %spin
spin:
  %k = phi i64 [ 0, %begin ], [ %k1, %pause ], [ 0, %clock ]
  %w = phi i64 [ %w0, %begin ], [ %w1, %pause ], [ %w1, %clock ]
  %w1 = call i64 @weft_working(ptr %pool, i64 %w, i64 %lines)
  %over = icmp sge i64 %w1, %lines
  br i1 %over, label %done, label %pause
pause:
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
  %sleeps.p = getelementptr i8, ptr %pool, i64 {pool.SLEEPS}
  %said = atomicrmw xchg ptr %sleeps.p, i64 1 seq_cst
  %w2 = call i64 @weft_working(ptr %pool, i64 0, i64 %lines)
  %over2 = icmp sge i64 %w2, %lines
  br i1 %over2, label %unblock, label %sleep
sleep:
  call void @weft_nap(ptr %pool)
  {t.unlock()}
  %leave = call i32 @weft_poll(ptr %state)
  %leaving = icmp ne i32 %leave, 0
  br i1 %leaving, label %cancel, label %block
cancel:
  call void @weft_cancel(ptr %base, i64 %parts)
  br label %block
unblock:
  store atomic i64 0, ptr %sleeps.p monotonic, align 8
  {t.unlock()}
  br label %done
done:
  ret void
}}
"""


def _call_one() -> str:
    """Call the first worker, and have it write down when it begins, to see what that costs (`waking`): the time when it
    was called, or 0 where another launch has the workers. `weft_settle` ends it.

    The words of %told are for that time, and for when the caller was done with calling; the state is all zeros.
    """
    return f"""define i64 @weft_call_one(ptr %pool, ptr %state, ptr %told) {{
entry:
  %busy = getelementptr i8, ptr %pool, i64 {pool.BUSY}
  %pair = cmpxchg ptr %busy, i64 0, i64 1 acquire monotonic
  %free = extractvalue {{ i64, i1 }} %pair, 1
  br i1 %free, label %call, label %no
call:
  %total.p = getelementptr i8, ptr %state, i64 {TOTAL}
  %chunk.p = getelementptr i8, ptr %state, i64 {CHUNK}
  store i64 1, ptr %total.p
  store i64 1, ptr %chunk.p
  %begun = call i64 @weft_time()
  call void @weft_begin(
    ptr %pool, ptr @weft_arrived, ptr %told, ptr %state, i64 1, ptr null, i64 0, ptr %state, i64 1)
  call void @weft_wake(ptr %pool, i64 0)
  %called = call i64 @weft_time()
  %called.p = getelementptr i64, ptr %told, i64 1
  store i64 %called, ptr %called.p
  ret i64 %begun
no:
  ret i64 0
}}

define void @weft_arrived(ptr %told, ptr %state, ptr %scratch) {{
  %now = call i64 @weft_time()
  store atomic i64 %now, ptr %told release, align 8
  ret void
}}

define void @weft_settle(ptr %pool) {{
  call void @weft_end(ptr %pool, i64 1)
  %busy = getelementptr i8, ptr %pool, i64 {pool.BUSY}
  store atomic i64 0, ptr %busy release, align 8
  ret void
}}
"""


def _working(t: Text) -> str:
    """The first of some workers, from one on, that has taken the job and is not done; their number if none has."""
    return f"""define i64 @weft_working(ptr %pool, i64 %from, i64 %lines) {{
entry:
  br label %look
look:
  %c = phi i64 [ %from, %entry ], [ %c1, %next ]
  %left = icmp slt i64 %c, %lines
  br i1 %left, label %ask, label %done
ask:
  {t.post("%c")}
  %p = load atomic i64, ptr %post seq_cst, align 8
  %taken = icmp eq i64 %p, {pool.TAKEN}
  br i1 %taken, label %done, label %next
next:
  %c1 = add i64 %c, 1
  br label %look
done:
  ret i64 %c
}}
"""


def _nap(t: Text, windows: bool) -> str:
    """Sleep until somebody says that a job is done, a tenth of a second at most; longer if the clock is set back."""
    if windows:
        wait = t.call(pool.NAP_FN, pool.DONE, pool.MUTEX, extra=f", i32 {INTERVAL_NS // 1_000_000}, i32 0")
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
  {t.call(pool.NAP_FN, pool.DONE, pool.MUTEX, extra=", ptr %until")}
  ret void
}}
"""


_CANCEL = f"""define void @weft_cancel(ptr %base, i64 %parts) {{
entry:
  br label %part
part:
  %k = phi i64 [ 0, %entry ], [ %k1, %part ]
  %skip = mul i64 %k, {pool.LINE}
  %line = getelementptr i8, ptr %base, i64 %skip
  %end.p = getelementptr i8, ptr %line, i64 {pool.END}
  %end = load i64, ptr %end.p
  store atomic i64 %end, ptr %line monotonic, align 8
  %k1 = add i64 %k, 1
  %more = icmp slt i64 %k1, %parts
  br i1 %more, label %part, label %done
done:
  ret void
}}
"""
"""Nobody is to begin any more of a job."""

assert pool.NEXT == 0 and TOTAL == pool.END  # a state is a part, of all programs

_HELP = f"""define i64 @weft_help(
    ptr %fn, ptr %args, ptr %shared, ptr %scratch, ptr %base, i64 %number, i64 %parts, i64 %most) {{
entry:
  %own = alloca [{STATE_BYTES} x i8], align 64
  call void @llvm.memcpy.p0.p0.i64(ptr align 8 %own, ptr align 8 %shared, i64 {STATE_BYTES}, i1 false)
  %chunk.p = getelementptr i8, ptr %shared, i64 16
  %chunk = load i64, ptr %chunk.p
  %own.total = getelementptr i8, ptr %own, i64 {TOTAL}
  %own.error = getelementptr i8, ptr %own, i64 {ERROR}
  %own.pid = getelementptr i8, ptr %own, i64 {ERROR_PID}
  store i64 0, ptr %own.error
  store i64 0, ptr %own.pid
  %own.threads = getelementptr i8, ptr %own, i64 {THREADS}
  %own.whole = getelementptr i8, ptr %own, i64 {WHOLE}
  store ptr %shared, ptr %own.whole
  %number.i = trunc i64 %number to i32
  %within = icmp ult i64 %number, %parts
  br i1 %within, label %begin, label %wrap
wrap:
  %rest = urem i64 %number, %parts
  br label %begin
begin:
  %own.part = phi i64 [ %number, %entry ], [ %rest, %wrap ]
  %single = icmp eq i64 %parts, 1
  br i1 %single, label %ready, label %ask
ask:
  %own.skip = mul i64 %own.part, {pool.LINE}
  %own.head = add i64 %own.skip, {pool.HEAD}
  %head.p = getelementptr i8, ptr %base, i64 %own.head
  %head = load i64, ptr %head.p
  br label %ready
ready:
  %start = phi i64 [ %chunk, %begin ], [ %head, %ask ]
  br label %part
part:
  %at = phi i64 [ %own.part, %ready ], [ %following, %others ]
  %n0 = phi i64 [ 0, %ready ], [ %n, %others ]
  %ran0 = phi i64 [ 0, %ready ], [ %ran, %others ]
  %step0 = phi i64 [ %start, %ready ], [ %chunk, %others ]
  %skip = mul i64 %at, {pool.LINE}
  %line = getelementptr i8, ptr %base, i64 %skip
  %total.p = getelementptr i8, ptr %line, i64 {pool.END}
  %total = load i64, ptr %total.p
  br label %loop
loop:
  %n = phi i64 [ %n0, %part ], [ %n1, %next ]
  %ran = phi i64 [ %ran0, %part ], [ %ran1, %next ]
  %step = phi i64 [ %step0, %part ], [ %chunk, %next ]
  %full = icmp uge i64 %n, %most
  br i1 %full, label %finished, label %claim
claim:
  %first = atomicrmw add ptr %line, i64 %step monotonic
  %over = icmp sge i64 %first, %total
  br i1 %over, label %exhausted, label %run
run:
  %last = add i64 %first, %step
  %cut = icmp slt i64 %last, %total
  %end = select i1 %cut, i64 %last, i64 %total
  store atomic i64 %first, ptr %own monotonic, align 8
  store i64 %end, ptr %own.total
  store i32 %number.i, ptr %own.threads
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
exhausted:
  br i1 %single, label %finished, label %strike
strike:
  %mask.p = getelementptr i8, ptr %base, i64 {pool.MASK - pool.LINES}
  %bit = shl i64 1, %at
  %struck = xor i64 %bit, -1
  %before = atomicrmw and ptr %mask.p, i64 %struck monotonic
  %left = and i64 %before, %struck
  %none = icmp eq i64 %left, 0
  br i1 %none, label %finished, label %others
others:
  %after = add i64 %at, 1
  %turned = call i64 @llvm.fshr.i64(i64 %left, i64 %left, i64 %after)
  %steps = call i64 @llvm.cttz.i64(i64 %turned, i1 true)
  %place = add i64 %after, %steps
  %following = and i64 %place, 63
  br label %part
fail:
  %shared.error = getelementptr i8, ptr %shared, i64 {ERROR}
  %shared.pid = getelementptr i8, ptr %shared, i64 {ERROR_PID}
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
  %marked = atomicrmw or ptr %shared.error, i64 %leave monotonic
  call void @weft_cancel(ptr %base, i64 %parts)
  ret i64 %ran
finished:
  ret i64 %ran
}}
"""
"""Run at most %most chunks of %shared, through a state of its own: of the part that is this thread's by its number,
then of those that follow; gives how many programs that were. A part begins with its next program and its end, so a
whole state is one.
"""
