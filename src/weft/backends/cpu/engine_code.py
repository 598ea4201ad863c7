"""The native code of `engine`: a function for each of its steps, as LLVM IR."""

from __future__ import annotations

from . import pool_layout as pool
from .engine import Engine, Record
from .parts_code import PARTS
from .places import words_at

UNKNOWN_NS = 50_000_000
"""What a program is taken to cost where nothing is known and there is a thread for each."""
CHUNK_NS = 5_000_000
"""The longest that a chunk should take: bounds how long the last worker is waited for, and a program without loops
keeps Ctrl-C waiting."""
LEAST_CHUNK_NS = 1_000
"""The shortest: taking one costs some 50 ns, more where many threads take theirs at once."""
CHUNKS_PER_THREAD = 16
FIRST_CHUNK = 64
"""Programs in a chunk while a single one was measured."""
LEAST_SHARE_NS = 2_000
"""The least work that a worker which is awake is given."""
QUICK_NS = 3_000
"""Work below this is the caller's, whatever the workers do; it is measured each `SAMPLED`th time."""
SAMPLED = 16
SLICE_NS = 100_000
"""What a launch runs alone, beside those of other threads, before it asks again how many workers there are for it."""
BURST_NS = 50_000
LOOK_NS = 10_000_000
"""For how long workers may run where they were told to: then it is asked again which cores the process may use."""
LOOK_AGAIN_NS = 100_000_000
"""After this it is asked again which cores there are, where it was one."""
OUTLIER = 4.0
"""A measurement counts as no more than so many times what was known."""

_DECLARED = """
declare double @llvm.sqrt.f64(double)
declare double @llvm.minnum.f64(double, double)
declare double @llvm.maxnum.f64(double, double)
declare i64 @llvm.smin.i64(i64, i64)
declare i64 @llvm.smax.i64(i64, i64)
"""


def engine_ir(core: str) -> str:
    """All functions; `core` is the function that tells the core of its caller, or nothing."""
    asked = _LOOK_AGAIN, _ASLEEP, _MORE, _AWAKE, _wanted(), _ready(core)
    run = _together(), PARTS, _measured(), _note(), _try(), _alone(), _slice(), _grid()
    return "\n".join((_DECLARED, *asked, *run))


def _word(k: int) -> str:
    return words_at("words engine", k)


def _double(value: float) -> str:
    return f"{value:.1f}"


def _wanted() -> str:
    """How many workers pay for what is left of a grid."""
    return f"""define i64 @weft_wanted(ptr %record, i64 %left) {{
entry:
  %threads = load i64, ptr {_word(Engine.THREADS)}
  %single = icmp slt i64 %left, 2
  br i1 %single, label %none, label %several
several:
  %alone = icmp slt i64 %threads, 2
  br i1 %alone, label %narrow, label %ask
narrow:
  %once = call i64 @weft_look_again()
  ret i64 %once
ask:
  %ns.p = getelementptr i64, ptr %record, i64 {Record.NS}
  %ns.known = load double, ptr %ns.p
  %unknown = fcmp oeq double %ns.known, 0.0
  %each = icmp sle i64 %left, %threads
  %probe = xor i1 %each, true
  %first = and i1 %unknown, %probe
  br i1 %first, label %none, label %weigh
weigh:
  %ns = select i1 %unknown, double {_double(UNKNOWN_NS)}, double %ns.known
  %count = sitofp i64 %left to double
  %work = fmul double %ns, %count
  %quick = fcmp olt double %work, {_double(QUICK_NS)}
  br i1 %quick, label %none, label %much
much:
  %callers.now = load atomic i64, ptr {_word(Engine.CALLERS)} monotonic, align 8
  %callers = call i64 @llvm.smax.i64(i64 %callers.now, i64 0)
  %t0 = sub i64 %threads, %callers
  %t1 = sub i64 %t0, 1
  %l1 = sub i64 %left, 1
  %most = call i64 @llvm.smin.i64(i64 %t1, i64 %l1)
  %taken = icmp slt i64 %most, 1
  br i1 %taken, label %none, label %cores
cores:
  %wake.i = load i64, ptr {_word(Engine.WAKE)}
  %tell.i = load i64, ptr {_word(Engine.TELL)}
  %wake = sitofp i64 %wake.i to double
  %tell = sitofp i64 %tell.i to double
  %twice = fmul double %tell, 2.0
  %floor = fadd double %wake, %twice
  %pays = fcmp ogt double %work, %floor
  br i1 %pays, label %asleep, label %awake
asleep:
  %w2 = call i64 @weft_asleep(double %work, double %wake, double %tell, i64 %most)
  br label %awake
awake:
  %cold = phi i64 [ 0, %cores ], [ %w2, %asleep ]
  %hot.i = load i64, ptr {_word(Engine.HOT)}
  %hot = sitofp i64 %hot.i to double
  %twice.hot = fmul double %hot, 2.0
  %share = call double @llvm.maxnum.f64(double %twice.hot, double {_double(LEAST_SHARE_NS)})
  %shares = fdiv double %work, %share
  %shares.i = fptosi double %shares to i64
  %best = call i64 @llvm.smin.i64(i64 %shares.i, i64 %most)
  %pool = load ptr, ptr {_word(Engine.POOL)}
  %there = icmp ne ptr %pool, null
  br i1 %there, label %look, label %choose
look:
  %awake.now = call i64 @weft_awake(ptr %pool)
  %some = call i64 @llvm.smin.i64(i64 %awake.now, i64 %best)
  br label %choose
choose:
  %hands = phi i64 [ 0, %awake ], [ %some, %look ]
  %wanted = call i64 @llvm.smax.i64(i64 %hands, i64 %cold)
  %short = icmp slt i64 %wanted, %best
  br i1 %short, label %grow, label %answer
answer:
  ret i64 %wanted
grow:
  %more = call i64 @weft_more(double %work, double %tell, i64 %wanted, i64 %best)
  ret i64 %more
none:
  ret i64 0
}}
"""


_ASLEEP = """define i64 @weft_asleep(double %work, double %wake, double %tell, i64 %most) {
  %over = fsub double %work, %wake
  %half = fmul double %tell, 0.5
  %share = fdiv double %over, %half
  %root = call double @llvm.sqrt.f64(double %share)
  %root.i = fptosi double %root to i64
  %w0 = sub i64 %root.i, 1
  %w1 = call i64 @llvm.smax.i64(i64 %w0, i64 1)
  %w2 = call i64 @llvm.smin.i64(i64 %w1, i64 %most)
  ret i64 %w2
}
"""
"""How many of the workers that sleep are best woken for work that pays for one."""


_LOOK_AGAIN = f"""define i64 @weft_look_again() {{
entry:
  %pool = load ptr, ptr {_word(Engine.POOL)}
  %never = icmp eq ptr %pool, null
  br i1 %never, label %no, label %since
since:
  %looked.p = getelementptr i8, ptr %pool, i64 {pool.LOOKED}
  %looked = load i64, ptr %looked.p
  %now = call i64 @weft_time()
  %passed = sub i64 %now, %looked
  %again = icmp ugt i64 %passed, {LOOK_AGAIN_NS}
  %once = zext i1 %again to i64
  ret i64 %once
no:
  ret i64 0
}}
"""
"""Where there are workers, and the process was left one core: want one now and then, to see whether it still is."""


_MORE = f"""define i64 @weft_more(double %work, double %tell, i64 %wanted, i64 %best) {{
entry:
  %now = call i64 @weft_time()
  %last = load i64, ptr {_word(Engine.LAST)}
  %passed = sub i64 %now, %last
  %soon = icmp ult i64 %passed, {BURST_NS}
  %debt.now = load double, ptr {_word(Engine.DEBT)}
  %debt = select i1 %soon, double %debt.now, double 0.0
  %hands.i = add i64 %wanted, 1
  %best.i = add i64 %best, 1
  %hands = sitofp i64 %hands.i to double
  %all = sitofp i64 %best.i to double
  %long = fdiv double %work, %hands
  %short = fdiv double %work, %all
  %lost = fsub double %long, %short
  %sum = fadd double %debt, %lost
  %paid = fcmp ogt double %sum, %tell
  %pays = and i1 %soon, %paid
  %left = select i1 %pays, double 0.0, double %sum
  store double %left, ptr {_word(Engine.DEBT)}
  %twice = mul i64 %hands.i, 2
  %some = call i64 @llvm.smin.i64(i64 %twice, i64 %best)
  %answer = select i1 %pays, i64 %some, i64 %wanted
  ret i64 %answer
}}
"""
"""Whether to have more workers: in a burst, when what was lost without them comes to what it costs to wake them."""


_AWAKE = f"""define i64 @weft_awake(ptr %pool) {{
entry:
  br label %word
word:
  %k = phi i64 [ 0, %entry ], [ %k1, %all ]
  %count = phi i64 [ 0, %entry ], [ %more, %all ]
  %p0 = getelementptr i64, ptr %pool, i64 %k
  %p = getelementptr i8, ptr %p0, i64 {pool.AWAKE}
  %bits = load atomic i64, ptr %p monotonic, align 8
  %asleep = xor i64 %bits, -1
  %ones = call i64 @llvm.cttz.i64(i64 %asleep, i1 false)
  %more = add i64 %count, %ones
  %full = icmp eq i64 %ones, 64
  br i1 %full, label %all, label %done
all:
  %k1 = add i64 %k, 1
  %left = icmp ult i64 %k1, {pool.AWAKE_WORDS}
  br i1 %left, label %word, label %done
done:
  ret i64 %more
}}
"""
"""How many workers are awake, of the first: those take part in every launch that has any, so they do if any does."""


def _ready(core: str) -> str:
    """Whether there are workers, with room, on cores other than the caller's that were looked at lately."""
    here = f"call i32 {core}()" if core else "add i32 -1, 0"
    return f"""define i32 @weft_ready(i64 %needed) {{
entry:
  %pool = load ptr, ptr {_word(Engine.POOL)}
  %there = icmp ne ptr %pool, null
  br i1 %there, label %look, label %no
look:
  %stride.p = getelementptr i8, ptr %pool, i64 {pool.ROOM_STRIDE}
  %off.p = getelementptr i8, ptr %pool, i64 {pool.KEPT_OFF}
  %looked.p = getelementptr i8, ptr %pool, i64 {pool.LOOKED}
  %stride = load i64, ptr %stride.p
  %off = load i64, ptr %off.p
  %looked = load i64, ptr %looked.p
  %room = icmp sge i64 %stride, %needed
  %here = {here}
  %core = sext i32 %here to i64
  %away = icmp eq i64 %core, %off
  %now = call i64 @weft_time()
  %passed = sub i64 %now, %looked
  %lately = icmp ult i64 %passed, {LOOK_NS}
  %both = and i1 %room, %away
  %all = and i1 %both, %lately
  %answer = zext i1 %all to i32
  ret i32 %answer
no:
  ret i32 0
}}
"""


def _measured() -> str:
    """Take a measurement into what is known of a program's cost."""
    return f"""define void @weft_measured(ptr %record, i64 %spent, i64 %ran) {{
entry:
  %some = icmp sgt i64 %ran, 0
  br i1 %some, label %count, label %done
count:
  %ns.p = getelementptr i64, ptr %record, i64 {Record.NS}
  %count.p = getelementptr i64, ptr %record, i64 {Record.COUNT}
  %before = load double, ptr %ns.p
  %n = load i64, ptr %count.p
  %spent.f = sitofp i64 %spent to double
  %ran.f = sitofp i64 %ran to double
  %each.0 = fdiv double %spent.f, %ran.f
  %each = call double @llvm.maxnum.f64(double %each.0, double 1.0)
  %most = fmul double %before, {_double(OUTLIER)}
  %cut = call double @llvm.minnum.f64(double %each, double %most)
  %old = fmul double %before, 0.75
  %new = fmul double %cut, 0.25
  %mean = fadd double %old, %new
  %first = icmp eq i64 %n, 0
  %value = select i1 %first, double %each, double %mean
  store double %value, ptr %ns.p
  br label %done
done:
  ret void
}}
"""


def _note() -> str:
    """After a grid: when it was over, and what a program of it cost, if it did not fail."""
    return f"""define void @weft_note(ptr %record, ptr %state, i64 %begun, i64 %ended, i64 %over, i64 %ran) {{
entry:
  store i64 %over, ptr {_word(Engine.LAST)}
  %error.p = getelementptr i8, ptr %state, i64 40
  %error = load i64, ptr %error.p
  %bad = icmp ne i64 %error, 0
  br i1 %bad, label %done, label %fine
fine:
  %count.p = getelementptr i64, ptr %record, i64 {Record.COUNT}
  %count = load i64, ptr %count.p
  %spent = sub i64 %ended, %begun
  call void @weft_measured(ptr %record, i64 %spent, i64 %ran)
  %counted = add i64 %count, 1
  store i64 %counted, ptr %count.p
  br label %done
done:
  ret void
}}
"""


def _try() -> str:
    """Run one program of a kernel of which nothing is known; 1 where there is more to do."""
    return f"""define i32 @weft_try(ptr %record, ptr %args, ptr %state, ptr %mine) {{
  %fn.p = getelementptr i64, ptr %record, i64 {Record.FN}
  %fn = load ptr, ptr %fn.p
  %begun = call i64 @weft_time()
  call i64 @run.here(ptr %fn, ptr %args, ptr %state, ptr %mine, i64 1, i1 true)
  %ended = call i64 @weft_time()
  %spent = sub i64 %ended, %begun
  call void @weft_measured(ptr %record, i64 %spent, i64 1)
  %error.p = getelementptr i8, ptr %state, i64 40
  %error = load i64, ptr %error.p
  %fine = icmp eq i64 %error, 0
  %again = zext i1 %fine to i32
  ret i32 %again
}}
"""


def _together() -> str:
    """Run a grid with workers; false, and nothing is done, where another launch has them or their room is too small.

    To begin a part costs the caller about as much as a worker (HOT), which is none of its programs' cost.
    """
    return f"""define i1 @weft_together(
    ptr %record, ptr %args, ptr %state, ptr %mine, i64 %wanted, i64 %left, double %ns, i64 %cut) {{
entry:
  %fn.p = getelementptr i64, ptr %record, i64 {Record.FN}
  %fn = load ptr, ptr %fn.p
  %pool = load ptr, ptr {_word(Engine.POOL)}
  %none = icmp eq ptr %pool, null
  br i1 %none, label %no, label %measure.room
measure.room:
  %needed.p = getelementptr i64, ptr %record, i64 {Record.SCRATCH}
  %needed = load i64, ptr %needed.p
  %stride.p = getelementptr i8, ptr %pool, i64 {pool.ROOM_STRIDE}
  %room.p = getelementptr i8, ptr %pool, i64 {pool.ROOM}
  %stride = load atomic i64, ptr %stride.p acquire, align 8
  %room = load ptr, ptr %room.p
  %narrow = icmp sgt i64 %needed, %stride
  br i1 %narrow, label %no, label %claim
claim:
  %free = call i1 @claim(ptr %pool)
  br i1 %free, label %share, label %no
share:
  %workers.p = getelementptr i8, ptr %pool, i64 {pool.WORKERS}
  %workers = load i64, ptr %workers.p
  %count = call i64 @llvm.smin.i64(i64 %wanted, i64 %workers)
  %hands = add i64 %count, 1
  %parts = call i64 @llvm.smin.i64(i64 %hands, i64 {pool.MOST_PARTS})
  %before = call i64 @weft_time()
  %wake = load i64, ptr {_word(Engine.WAKE)}
  call void @foresee(ptr %pool, ptr %record, i64 %before, i64 %wake)
  %base = getelementptr i8, ptr %pool, i64 {pool.LINES}
  %size = call i64 @weft_parts(ptr %base, ptr %state, i64 %parts, i64 %left, double %ns, i64 %cut)
  %fair = sdiv i64 %size, {CHUNKS_PER_THREAD}
  %shortest = fdiv double {_double(LEAST_CHUNK_NS)}, %ns
  %shortest.i = fptosi double %shortest to i64
  %c0 = call i64 @llvm.smax.i64(i64 %fair, i64 %shortest.i)
  %large = sdiv i64 %size, 2
  %c1 = call i64 @llvm.smin.i64(i64 %c0, i64 %large)
  %c2 = call i64 @llvm.smin.i64(i64 %c1, i64 %cut)
  %c3 = call i64 @llvm.smax.i64(i64 %c2, i64 1)
  %chunk.p = getelementptr i64, ptr %state, i64 2
  store i64 %c3, ptr %chunk.p
  call void @begin(
    ptr %pool, ptr %fn, ptr %args, ptr %state, i64 %count, ptr %room, i64 %stride, ptr %base, i64 %parts)
  call void @wake(ptr %pool)
  %begun = call i64 @weft_time()
  %ran = call i64 @take_part(ptr %pool, ptr %mine, i64 0)
  %ended = call i64 @weft_time()
  %took = sub i64 %ended, %begun
  %half = sdiv i64 %took, 2
  %hot = load i64, ptr {_word(Engine.HOT)}
  %late = call i64 @llvm.smin.i64(i64 %half, i64 %hot)
  %start = add i64 %begun, %late
  %over = call i64 @end(ptr %pool, i64 %count, i64 %ended)
  call void @weft_note(ptr %record, ptr %state, i64 %start, i64 %ended, i64 %over, i64 %ran)
  ret i1 true
no:
  ret i1 false
}}
"""


def _alone() -> str:
    """Run a grid on this thread; in pieces where it is long, so that signals are looked at."""
    return f"""define void @weft_alone(
    ptr %record, ptr %args, ptr %state, ptr %mine, i64 %left, double %ns, i64 %cut) {{
entry:
  %fn.p = getelementptr i64, ptr %record, i64 {Record.FN}
  %count.p = getelementptr i64, ptr %record, i64 {Record.COUNT}
  %chunk.p = getelementptr i64, ptr %state, i64 2
  %fn = load ptr, ptr %fn.p
  %count = load i64, ptr %count.p
  %left.f = sitofp i64 %left to double
  %work = fmul double %ns, %left.f
  %quick = fcmp olt double %work, {_double(QUICK_NS)}
  %phase = and i64 %count, {SAMPLED - 1}
  %skip = icmp ne i64 %phase, 0
  %untimed = and i1 %quick, %skip
  br i1 %untimed, label %plain, label %timed
plain:
  %more = add i64 %count, 1
  store i64 %more, ptr %count.p
  store i64 %left, ptr %chunk.p
  call void %fn(ptr %args, ptr %state, ptr %mine)
  ret void
timed:
  %begun = call i64 @weft_time()
  %long = icmp slt i64 %cut, %left
  br i1 %long, label %pieced, label %whole
pieced:
  %piece = call i64 @llvm.smax.i64(i64 %cut, i64 1)
  %part = call i64 @run.here(ptr %fn, ptr %args, ptr %state, ptr %mine, i64 %piece, i1 false)
  br label %note
whole:
  store i64 %left, ptr %chunk.p
  call void %fn(ptr %args, ptr %state, ptr %mine)
  br label %note
note:
  %ran = phi i64 [ %part, %pieced ], [ %left, %whole ]
  %ended = call i64 @weft_time()
  call void @weft_note(ptr %record, ptr %state, i64 %begun, i64 %ended, i64 %ended, i64 %ran)
  ret void
}}
"""


def _slice() -> str:
    """Run some programs of a grid on this thread; gives how many are left."""
    return f"""define i64 @weft_slice(ptr %record, ptr %args, ptr %state, ptr %mine, i64 %count) {{
  %fn.p = getelementptr i64, ptr %record, i64 {Record.FN}
  %fn = load ptr, ptr %fn.p
  call i64 @run.here(ptr %fn, ptr %args, ptr %state, ptr %mine, i64 %count, i1 true)
  %at = load i64, ptr %state
  %total.p = getelementptr i64, ptr %state, i64 1
  %total = load i64, ptr %total.p
  %left = sub i64 %total, %at
  ret i64 %left
}}

define i64 @weft_wanted_beside(ptr %record, i64 %left) {{
  %callers = atomicrmw sub ptr {_word(Engine.CALLERS)}, i64 1 monotonic
  %wanted = call i64 @weft_wanted(ptr %record, i64 %left)
  %again = atomicrmw add ptr {_word(Engine.CALLERS)}, i64 1 monotonic
  ret i64 %wanted
}}
"""


def _grid() -> str:
    """Run a grid, with workers if that is wanted; beside the launches of other threads in slices on this one, and after
    each it is asked again how many workers there are for it.
    """
    return f"""define i32 @weft_grid(ptr %record, ptr %args, ptr %state, ptr %mine, i64 %wanted) {{
entry:
  %ns.p = getelementptr i64, ptr %record, i64 {Record.NS}
  %count.p = getelementptr i64, ptr %record, i64 {Record.COUNT}
  %ns.before = load double, ptr %ns.p
  %count = load i64, ptr %count.p
  %next = load i64, ptr %state
  %total.p = getelementptr i64, ptr %state, i64 1
  %total = load i64, ptr %total.p
  %left = sub i64 %total, %next
  %unknown = fcmp oeq double %ns.before, 0.0
  %threads = load i64, ptr {_word(Engine.THREADS)}
  %many = icmp sgt i64 %left, %threads
  %probe = and i1 %unknown, %many
  br i1 %probe, label %try, label %known
try:
  %again = call i32 @weft_try(ptr %record, ptr %args, ptr %state, ptr %mine)
  ret i32 %again
known:
  %ns = select i1 %unknown, double {_double(UNKNOWN_NS)}, double %ns.before
  %longest = fdiv double {_double(CHUNK_NS)}, %ns
  %longest.i = fptosi double %longest to i64
  %cut.first = call i64 @llvm.smin.i64(i64 %longest.i, i64 {FIRST_CHUNK})
  %unsure = icmp eq i64 %count, 0
  %cut = select i1 %unsure, i64 %cut.first, i64 %longest.i
  %slice.f = fdiv double {_double(SLICE_NS)}, %ns
  %slice.i = fptosi double %slice.f to i64
  %slice = call i64 @weft_within(i64 %slice.i, i64 %cut)
  %twice = mul i64 %slice, 2
  %left.f = sitofp i64 %left to double
  %work = fmul double %ns, %left.f
  %quick = fcmp olt double %work, {_double(QUICK_NS)}
  br i1 %quick, label %serial, label %enter
enter:
  %callers = atomicrmw add ptr {_word(Engine.CALLERS)}, i64 1 monotonic
  %first = icmp slt i64 %callers, 1
  br label %ask
ask:
  %some = phi i64 [ %left, %enter ], [ %less, %beside ]
  %hands = phi i64 [ %wanted, %enter ], [ %more, %beside ]
  %helped = icmp sgt i64 %hands, 0
  br i1 %helped, label %together, label %alone
together:
  %done = call i1 @weft_together(
    ptr %record, ptr %args, ptr %state, ptr %mine, i64 %hands, i64 %some, double %ns, i64 %cut)
  br i1 %done, label %over, label %busy
alone:
  br i1 %first, label %rest, label %busy
busy:
  %long = icmp sgt i64 %some, %twice
  br i1 %long, label %piece, label %rest
piece:
  %less = call i64 @weft_slice(ptr %record, ptr %args, ptr %state, ptr %mine, i64 %slice)
  %on = icmp sgt i64 %less, 0
  br i1 %on, label %beside, label %over
beside:
  %more = call i64 @weft_wanted_beside(ptr %record, i64 %less)
  br label %ask
rest:
  call void @weft_alone(ptr %record, ptr %args, ptr %state, ptr %mine, i64 %some, double %ns, i64 %cut)
  br label %over
over:
  %remaining = atomicrmw sub ptr {_word(Engine.CALLERS)}, i64 1 monotonic
  ret i32 0
serial:
  call void @weft_alone(ptr %record, ptr %args, ptr %state, ptr %mine, i64 %left, double %ns, i64 %cut)
  ret i32 0
}}
"""
