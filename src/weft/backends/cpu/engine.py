"""How a grid is run: by its caller alone, or with so many workers, taken in so large pieces; native code and its words.

    record = Record(address of the kernel, bytes of scratch memory)     # what is known of a kernel: a program's cost
    weft_wanted(record, programs)        -> workers that pay, 0 where the caller alone is done as soon
    weft_ready(bytes of scratch memory)  -> 1: there are workers, with room, on cores that they may use (`Pool.prepare`)
    weft_grid(record, args, state, scratch, wanted)                     -> 1: a program's cost is known now, ask again

A worker that sleeps costs its caller a system call, and begins tens of microseconds later; one that has just ended
something looks for more for a while (`pool.SPIN_NS`), and begins within one. So it depends on the workers what pays:

    asleep     work of more than WAKE ns; with w workers it takes about TELL * w + (work + WAKE * w) / (w + 1)
    awake      work of more than a few times HOT ns, on as many as are awake
    in a burst (the caller ended another launch less than BURST_NS ago) a worker is woken for less, since it will be
               awake for the next launch

WAKE, TELL and HOT are this machine's (`costs`). A program's cost is what the caller measures of its own part, so that
waiting and waking are not in it; one measurement out of proportion (the system had something else to do) counts little.
"""

from __future__ import annotations

import ctypes
from collections.abc import Mapping

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
QUICK_NS = 3_000
"""Work below this is the caller's, whatever the workers do; it is measured each `SAMPLED`th time."""
SAMPLED = 16
BURST_NS = 50_000
LOOK_NS = 10_000_000
"""For how long workers may run where they were told to: then it is asked again which cores the process may use."""
OUTLIER = 4.0
"""A measurement counts as no more than so many times what was known."""

ALL = (1 << 63) - 1


class Engine:
    """Words that all launches of a process look at."""

    THREADS, POOL, WAKE, TELL, HOT, LAST = range(6)

    def __init__(self) -> None:
        self.words = (ctypes.c_int64 * 8)()
        self.set_costs(wake=30_000, tell=3_000, hot=1_000)

    @property
    def threads(self) -> int:
        """Threads that a launch may use, the caller included; 0 as long as nobody has asked."""
        return self.words[self.THREADS]

    @threads.setter
    def threads(self, count: int) -> None:
        self.words[self.THREADS] = count

    def set_costs(self, *, wake: int, tell: int, hot: int) -> None:
        """What was measured, in nanoseconds."""
        self.words[self.WAKE], self.words[self.TELL], self.words[self.HOT] = wake, tell, hot


ENGINE = Engine()


class Record:
    """Words about one kernel in memory."""

    FN, NS, COUNT, SCRATCH, TABLE = range(5)  # NS is a double

    def __init__(self, address: int, scratch_bytes: int) -> None:
        self.words = (ctypes.c_int64 * 8)(address, 0, 0, scratch_bytes)
        self.address = ctypes.addressof(self.words)
        self._ns = ctypes.c_double.from_buffer(self.words, 8 * self.NS)

    @property
    def ns(self) -> float:
        """Nanoseconds that one thread takes for one program; 0 while nothing is known."""
        return self._ns.value

    @ns.setter
    def ns(self, value: float) -> None:
        self._ns.value = value


def _double(value: float) -> str:
    return f"{value:.1f}"


def engine_ir(clock: int, offsets: Mapping[str, int], core: int) -> str:
    """`weft_wanted`, `weft_ready` and `weft_grid`; `clock` is the number of the system's clock, `offsets` are those of
    the pool, and `core` is the address of what tells the core of its caller, or 0.
    """
    spinning, busy, room, stride = (offsets[name] for name in ("spinning", "busy", "room", "stride"))
    here = f"call i32 inttoptr (i64 {core} to ptr)()" if core else "add i32 -1, 0"

    def word(k: int) -> str:
        return f"inttoptr (i64 {ctypes.addressof(ENGINE.words) + 8 * k} to ptr)"

    return f"""
declare double @llvm.sqrt.f64(double)
declare double @llvm.minnum.f64(double, double)
declare double @llvm.maxnum.f64(double, double)
declare i64 @llvm.smin.i64(i64, i64)
declare i64 @llvm.smax.i64(i64, i64)
define i64 @weft_wanted(ptr %record, i64 %left) {{
entry:
  %threads = load i64, ptr {word(Engine.THREADS)}
  %alone = icmp slt i64 %threads, 2
  %single = icmp slt i64 %left, 2
  %no = or i1 %alone, %single
  br i1 %no, label %none, label %ask
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
  %t1 = sub i64 %threads, 1
  %l1 = sub i64 %left, 1
  %most = call i64 @llvm.smin.i64(i64 %t1, i64 %l1)
  %wake.i = load i64, ptr {word(Engine.WAKE)}
  %tell.i = load i64, ptr {word(Engine.TELL)}
  %wake = sitofp i64 %wake.i to double
  %tell = sitofp i64 %tell.i to double
  %twice = fmul double %tell, 2.0
  %floor = fadd double %wake, %twice
  %pays = fcmp ogt double %work, %floor
  br i1 %pays, label %asleep, label %awake
asleep:
  %over = fsub double %work, %wake
  %share = fdiv double %over, %tell
  %root = call double @llvm.sqrt.f64(double %share)
  %root.i = fptosi double %root to i64
  %w0 = sub i64 %root.i, 1
  %w1 = call i64 @llvm.smax.i64(i64 %w0, i64 1)
  %w2 = call i64 @llvm.smin.i64(i64 %w1, i64 %most)
  br label %awake
awake:
  %cold = phi i64 [ 0, %much ], [ %w2, %asleep ]
  %pool = load ptr, ptr {word(Engine.POOL)}
  %there = icmp ne ptr %pool, null
  br i1 %there, label %look, label %choose
look:
  %spinning.p = getelementptr i8, ptr %pool, i64 {spinning}
  %spinning = load atomic i64, ptr %spinning.p monotonic, align 8
  %hot.i = load i64, ptr {word(Engine.HOT)}
  %hot = sitofp i64 %hot.i to double
  %hot2 = fmul double %hot, 2.0
  %parts = fdiv double %work, %hot2
  %parts.i = fptosi double %parts to i64
  %h0 = call i64 @llvm.smin.i64(i64 %spinning, i64 %parts.i)
  %h1 = call i64 @llvm.smin.i64(i64 %h0, i64 %most)
  %h2 = call i64 @llvm.smax.i64(i64 %h1, i64 %cold)
  br label %choose
choose:
  %better = phi i64 [ %cold, %awake ], [ %h2, %look ]
  %some = icmp sgt i64 %better, 0
  br i1 %some, label %answer, label %burst
burst:
  %enough = fcmp ogt double %work, %twice
  br i1 %enough, label %when, label %answer
when:
  %now = call i64 @weft_clock(i32 {clock})
  %last = load i64, ptr {word(Engine.LAST)}
  %passed = sub i64 %now, %last
  %soon = icmp ult i64 %passed, {BURST_NS}
  %one = zext i1 %soon to i64
  br label %answer
answer:
  %wanted = phi i64 [ %better, %choose ], [ 0, %burst ], [ %one, %when ]
  ret i64 %wanted
none:
  ret i64 0
}}

define i32 @weft_ready(i64 %needed) {{
entry:
  %pool = load ptr, ptr {word(Engine.POOL)}
  %there = icmp ne ptr %pool, null
  br i1 %there, label %look, label %no
look:
  %stride.p = getelementptr i8, ptr %pool, i64 {stride}
  %off.p = getelementptr i8, ptr %pool, i64 {offsets["off"]}
  %looked.p = getelementptr i8, ptr %pool, i64 {offsets["looked"]}
  %stride = load i64, ptr %stride.p
  %off = load i64, ptr %off.p
  %looked = load i64, ptr %looked.p
  %room = icmp sge i64 %stride, %needed
  %here = {here}
  %core = sext i32 %here to i64
  %away = icmp eq i64 %core, %off
  %now = call i64 @weft_clock(i32 {clock})
  %passed = sub i64 %now, %looked
  %lately = icmp ult i64 %passed, {LOOK_NS}
  %both = and i1 %room, %away
  %all = and i1 %both, %lately
  %answer = zext i1 %all to i32
  ret i32 %answer
no:
  ret i32 0
}}

define void @weft_measured(ptr %record, i64 %spent, i64 %ran) {{
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

define i32 @weft_grid(ptr %record, ptr %args, ptr %state, ptr %mine, i64 %wanted) {{
entry:
  %fn.p = getelementptr i64, ptr %record, i64 {Record.FN}
  %ns.p = getelementptr i64, ptr %record, i64 {Record.NS}
  %count.p = getelementptr i64, ptr %record, i64 {Record.COUNT}
  %fn = load ptr, ptr %fn.p
  %ns.before = load double, ptr %ns.p
  %count = load i64, ptr %count.p
  %next = load i64, ptr %state
  %total.p = getelementptr i64, ptr %state, i64 1
  %total = load i64, ptr %total.p
  %chunk.p = getelementptr i64, ptr %state, i64 2
  %error.p = getelementptr i8, ptr %state, i64 40
  %left = sub i64 %total, %next
  %left.f = sitofp i64 %left to double
  %unsure = icmp eq i64 %count, 0
  %unknown = fcmp oeq double %ns.before, 0.0
  %threads = load i64, ptr {word(Engine.THREADS)}
  %many = icmp sgt i64 %left, %threads
  %probe = and i1 %unknown, %many
  br i1 %probe, label %try, label %known
try:
  store i64 1, ptr %chunk.p
  %p0 = call i64 @weft_clock(i32 {clock})
  %tried = call i64 @weft_help(ptr %fn, ptr %args, ptr %state, ptr %mine, i64 1)
  %p1 = call i64 @weft_clock(i32 {clock})
  %p.spent = sub i64 %p1, %p0
  call void @weft_measured(ptr %record, i64 %p.spent, i64 1)
  %p.error = load i64, ptr %error.p
  %p.bad = icmp ne i64 %p.error, 0
  %p.again = xor i1 %p.bad, true
  %p.answer = zext i1 %p.again to i32
  ret i32 %p.answer
known:
  %ns = select i1 %unknown, double {_double(UNKNOWN_NS)}, double %ns.before
  %work = fmul double %ns, %left.f
  %longest = fdiv double {_double(CHUNK_NS)}, %ns
  %longest.i = fptosi double %longest to i64
  %cut.first = call i64 @llvm.smin.i64(i64 %longest.i, i64 {FIRST_CHUNK})
  %cut = select i1 %unsure, i64 %cut.first, i64 %longest.i
  %helped = icmp sgt i64 %wanted, 0
  br i1 %helped, label %together, label %serial
together:
  %pool = load ptr, ptr {word(Engine.POOL)}
  %none = icmp eq ptr %pool, null
  br i1 %none, label %serial, label %measure.room
measure.room:
  %needed.p = getelementptr i64, ptr %record, i64 {Record.SCRATCH}
  %needed = load i64, ptr %needed.p
  %stride.p = getelementptr i8, ptr %pool, i64 {stride}
  %room.p = getelementptr i8, ptr %pool, i64 {room}
  %stride = load atomic i64, ptr %stride.p acquire, align 8
  %room = load ptr, ptr %room.p
  %narrow = icmp sgt i64 %needed, %stride
  br i1 %narrow, label %serial, label %claim
claim:
  %busy = getelementptr i8, ptr %pool, i64 {busy}
  %pair = cmpxchg ptr %busy, i64 0, i64 1 acquire monotonic
  %free = extractvalue {{ i64, i1 }} %pair, 1
  br i1 %free, label %share, label %serial
share:
  %hands = add i64 %wanted, 1
  %pieces = mul i64 %hands, {CHUNKS_PER_THREAD}
  %fair = sdiv i64 %left, %pieces
  %shortest = fdiv double {_double(LEAST_CHUNK_NS)}, %ns
  %shortest.i = fptosi double %shortest to i64
  %c0 = call i64 @llvm.smax.i64(i64 %fair, i64 %shortest.i)
  %half = mul i64 %hands, 2
  %large = sdiv i64 %left, %half
  %c1 = call i64 @llvm.smin.i64(i64 %c0, i64 %large)
  %c2 = call i64 @llvm.smin.i64(i64 %c1, i64 %cut)
  %c3 = call i64 @llvm.smax.i64(i64 %c2, i64 1)
  store i64 %c3, ptr %chunk.p
  call void @weft_begin(ptr %pool, ptr %fn, ptr %args, ptr %state, i64 %wanted, ptr %room, i64 %stride)
  %s0 = call i64 @weft_clock(i32 {clock})
  %s.ran = call i64 @weft_help(ptr %fn, ptr %args, ptr %state, ptr %mine, i64 {ALL})
  %s1 = call i64 @weft_clock(i32 {clock})
  call void @weft_end(ptr %pool, ptr %state)
  store atomic i64 0, ptr %busy release, align 8
  %s2 = call i64 @weft_clock(i32 {clock})
  br label %measure
serial:
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
  ret i32 0
timed:
  %t0 = call i64 @weft_clock(i32 {clock})
  %long = icmp slt i64 %cut, %left
  br i1 %long, label %pieced, label %whole
pieced:
  %c4 = call i64 @llvm.smax.i64(i64 %cut, i64 1)
  store i64 %c4, ptr %chunk.p
  %t.ran = call i64 @weft_help(ptr %fn, ptr %args, ptr %state, ptr %mine, i64 {ALL})
  %t1.pieced = call i64 @weft_clock(i32 {clock})
  br label %measure
whole:
  store i64 %left, ptr %chunk.p
  call void %fn(ptr %args, ptr %state, ptr %mine)
  %t1 = call i64 @weft_clock(i32 {clock})
  br label %measure
measure:
  %begun = phi i64 [ %s0, %share ], [ %t0, %pieced ], [ %t0, %whole ]
  %ended = phi i64 [ %s1, %share ], [ %t1.pieced, %pieced ], [ %t1, %whole ]
  %over = phi i64 [ %s2, %share ], [ %t1.pieced, %pieced ], [ %t1, %whole ]
  %ran = phi i64 [ %s.ran, %share ], [ %t.ran, %pieced ], [ %left, %whole ]
  store i64 %over, ptr {word(Engine.LAST)}
  %error = load i64, ptr %error.p
  %bad = icmp ne i64 %error, 0
  br i1 %bad, label %failed, label %note
note:
  %spent = sub i64 %ended, %begun
  call void @weft_measured(ptr %record, i64 %spent, i64 %ran)
  %counted = add i64 %count, 1
  store i64 %counted, ptr %count.p
  ret i32 0
failed:
  ret i32 0
}}
"""
