"""The life of workers, as LLVM IR.

    weft_worker  looks at its own post for a while, then sleeps; takes the job that is posted, until it is told to stop
    weft_job     wakes two more, runs a part (`job_code`), says so
    weft_guest   takes part in one job that programs wait in

The two ends of a job are the caller's: `job_code`.
"""

from __future__ import annotations

from . import pool_layout as pool
from .pool_text import SPIN_NS, SPINS, Text


def workers_ir(t: Text) -> str:
    """All functions."""
    return "\n".join((_worker(t), _job(t), _rouse(t), _wake(t), _guest(t), _stop(t)))


def _worker(t: Text) -> str:
    """A worker: look for a job for a while, sleep, take the job that is posted, until it is told to stop."""
    return f"""define void @weft_worker(ptr %pool, i64 %index) {{
entry:
  {t.post("%index")}
  {t.bit("%index")}
  {t.condition("%index")}
  %job = getelementptr i8, ptr %pool, i64 {pool.FN}
  %rest = xor i64 %bit, -1
  %awake = atomicrmw or ptr %word, i64 %bit seq_cst
  br label %idle
idle:
  %begun = call i64 @weft_time()
  br label %spin
spin:
  %k = phi i64 [ 0, %idle ], [ %k1, %spin.more ], [ 0, %clock ]
  %p1 = load atomic i64, ptr %post acquire, align 8
  %open1 = icmp eq i64 %p1, {pool.OPENED}
  br i1 %open1, label %take, label %spin.more
spin.more:
  {t.pause}
  %k1 = add i64 %k, 1
  %look = icmp uge i64 %k1, {SPINS}
  br i1 %look, label %clock, label %spin
clock:
  %now = call i64 @weft_time()
  %spent = sub i64 %now, %begun
  %enough = icmp ugt i64 %spent, {SPIN_NS}
  br i1 %enough, label %tire, label %spin
tire:
  {t.lock()}
  %asleep = atomicrmw and ptr %word, i64 %rest seq_cst
  br label %sleep
sleep:
  {t.at("stop", pool.STOP)}
  %stopping = icmp ne i64 %stop, 0
  br i1 %stopping, label %leave, label %again
again:
  %p2 = load atomic i64, ptr %post seq_cst, align 8
  %open2 = icmp eq i64 %p2, {pool.OPENED}
  br i1 %open2, label %rise, label %wait
wait:
  {t.call(pool.WAIT_FN, "%condition.o", pool.MUTEX, extra=t.forever)}
  br label %sleep
rise:
  %risen = atomicrmw or ptr %word, i64 %bit seq_cst
  {t.unlock()}
  br label %take
take:
  call void @llvm.prefetch.p0(ptr %job, i32 0, i32 3, i32 1)
  %pair = cmpxchg ptr %post, i64 {pool.OPENED}, i64 {pool.TAKEN} acquire monotonic
  %mine = extractvalue {{ i64, i1 }} %pair, 1
  br i1 %mine, label %work, label %idle
work:
  call void @weft_job(ptr %pool, i64 %index)
  br label %idle
leave:
  {t.unlock()}
  ret void
}}
"""


def _job(t: Text) -> str:
    """What is done with a job that is taken: wake others, run a part, say so."""
    return f"""define void @weft_job(ptr %pool, i64 %index) {{
entry:
  {t.post("%index")}
  {t.at("fn", pool.FN, kind="ptr")}
  {t.at("args", pool.ARGS, kind="ptr")}
  {t.at("state", pool.STATE, kind="ptr")}
  {t.at("scratch", pool.SCRATCH, kind="ptr")}
  {t.at("stride", pool.STRIDE)}
  {t.at("base", pool.BASE, kind="ptr")}
  {t.at("parts", pool.PARTS)}
  %number = add i64 %index, 1
  %double = mul i64 %number, 2
  call void @weft_wake(ptr %pool, i64 %double)
  %skip = mul i64 %index, %stride
  %mine = getelementptr i8, ptr %scratch, i64 %skip
  %ran = call i64 @weft_help(
    ptr %fn, ptr %args, ptr %state, ptr %mine, ptr %base, i64 %number, i64 %parts, i64 {pool.ALL})
  %before = atomicrmw xchg ptr %post, i64 {pool.CLOSED} seq_cst
  {t.at("sleeps", pool.SLEEPS, "seq_cst")}
  %waits = icmp ne i64 %sleeps, 0
  br i1 %waits, label %tell, label %done
tell:
  {t.lock()}
  {t.call(pool.BROADCAST_FN, pool.DONE)}
  {t.unlock()}
  br label %done
done:
  ret void
}}
"""


def _rouse(t: Text) -> str:
    """Wake a worker, if it sleeps."""
    return f"""define void @weft_rouse(ptr %pool, i64 %index) {{
entry:
  {t.bit("%index")}
  {t.condition("%index")}
  %awake = load atomic i64, ptr %word seq_cst, align 8
  %is = and i64 %awake, %bit
  %asleep = icmp eq i64 %is, 0
  br i1 %asleep, label %tell, label %done
tell:
  {t.lock()}
  {t.call(pool.SIGNAL_FN, "%condition.o")}
  {t.unlock()}
  br label %done
done:
  ret void
}}
"""


def _wake(t: Text) -> str:
    """Wake two workers, from one on, if they are wanted and sleep: each thread those that follow from its number, so
    that nobody wakes many, a system call each.
    """
    return f"""define void @weft_wake(ptr %pool, i64 %first) {{
entry:
  {t.at("wanted", pool.WANTED)}
  %one = icmp slt i64 %first, %wanted
  br i1 %one, label %rouse, label %done
rouse:
  call void @weft_rouse(ptr %pool, i64 %first)
  %second = add i64 %first, 1
  %two = icmp slt i64 %second, %wanted
  br i1 %two, label %rouse.too, label %done
rouse.too:
  call void @weft_rouse(ptr %pool, i64 %second)
  br label %done
done:
  ret void
}}
"""


def _guest(t: Text) -> str:
    """A worker for one job: join the one that is open to guests, if there is and it wants more, and come back."""
    return f"""define void @weft_guest(ptr %pool) {{
entry:
  {t.lock()}
  {t.at("open", pool.OPEN)}
  {t.at("guests", pool.GUESTS)}
  {t.at("workers", pool.WORKERS)}
  %index = add i64 %workers, %guests
  %go = icmp slt i64 %guests, %open
  br i1 %go, label %join, label %no
join:
  %more = add i64 %guests, 1
  store i64 %more, ptr %guests.p
  {t.post("%index")}
  store atomic i64 {pool.TAKEN}, ptr %post release, align 8
  {t.unlock()}
  call void @weft_job(ptr %pool, i64 %index)
  ret void
no:
  {t.unlock()}
  ret void
}}
"""


def _stop(t: Text) -> str:
    """Tell the workers to leave."""
    return f"""define void @weft_stop(ptr %pool) {{
entry:
  {t.lock()}
  {t.put(pool.STOP, "1")}
  {t.at("workers", pool.WORKERS)}
  br label %next
next:
  %k = phi i64 [ 0, %entry ], [ %k1, %tell ]
  %left = icmp slt i64 %k, %workers
  br i1 %left, label %tell, label %done
tell:
  {t.condition("%k")}
  {t.call(pool.SIGNAL_FN, "%condition.o")}
  %k1 = add i64 %k, 1
  br label %next
done:
  {t.unlock()}
  ret void
}}
"""
