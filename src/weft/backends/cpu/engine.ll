; How many workers a grid is given: `engine` says by what.

; How many workers pay for the %left programs of a grid.
define i64 @weft_wanted(ptr %record, i64 %left) {
entry:
  %threads = call i64 @word(ptr @"at words engine", i64 $engine.THREADS)
  %single = icmp slt i64 %left, 2
  br i1 %single, label %none, label %several
several:
  %alone = icmp slt i64 %threads, 2
  br i1 %alone, label %narrow, label %ask
narrow:
  %once = call i64 @look_again()
  ret i64 %once
ask: ; where nothing is known one program is run first, unless there is a thread for each
  %known = call double @word.double(ptr %record, i64 $record.NS)
  %unknown = fcmp oeq double %known, 0.0
  %many = icmp sgt i64 %left, %threads
  %try = and i1 %unknown, %many
  br i1 %try, label %none, label %weigh
weigh:
  %ns = select i1 %unknown, double $limits.UNKNOWN_NS, double %known
  %count = sitofp i64 %left to double
  %work = fmul double %ns, %count
  %quick = fcmp olt double %work, $limits.QUICK_NS
  br i1 %quick, label %none, label %share
share: ; who launches has a core
  %callers.p = getelementptr i64, ptr @"at words engine", i64 $engine.CALLERS
  %callers.now = load atomic i64, ptr %callers.p monotonic, align 8
  %callers = call i64 @llvm.smax.i64(i64 %callers.now, i64 0)
  %free = sub i64 %threads, %callers
  %fewer = call i64 @llvm.smin.i64(i64 %free, i64 %left)
  %most = sub i64 %fewer, 1
  %taken = icmp slt i64 %most, 1
  br i1 %taken, label %none, label %asleep
asleep: ; how many are best woken: with w of them it takes about TELL * w / 2 + (work + WAKE * w) / (w + 1)
  %wake = call double @engine.cost(i64 $engine.WAKE)
  %tell = call double @engine.cost(i64 $engine.TELL)
  %twice = fmul double %tell, 2.0
  %floor = fadd double %wake, %twice
  %pays = fcmp ogt double %work, %floor
  %over = fsub double %work, %wake
  %half = fmul double %tell, 0.5
  %halves = fdiv double %over, %half
  %some = call double @llvm.maxnum.f64(double %halves, double 4.0)
  %root = call double @llvm.sqrt.f64(double %some)
  %threads.best = fptosi double %root to i64
  %workers.best = sub i64 %threads.best, 1
  %cold.best = call i64 @llvm.smin.i64(i64 %workers.best, i64 %most)
  %cold = select i1 %pays, i64 %cold.best, i64 0
  %hot = call double @engine.cost(i64 $engine.HOT)
  %hot.twice = fmul double %hot, 2.0
  %least = call double @llvm.maxnum.f64(double %hot.twice, double $limits.LEAST_SHARE_NS)
  %shares = call i64 @programs(double %work, double %least)
  %best = call i64 @llvm.smin.i64(i64 %shares, i64 %most)
  %pool = call ptr @word.ptr(ptr @"at words engine", i64 $engine.POOL)
  %awake = call i64 @awake(ptr %pool)
  %warm = call i64 @llvm.smin.i64(i64 %awake, i64 %best)
  %wanted = call i64 @llvm.smax.i64(i64 %warm, i64 %cold)
  %few = icmp slt i64 %wanted, %best
  br i1 %few, label %grow, label %answer
grow:
  %more = call i64 @more(double %work, double %tell, i64 %wanted, i64 %best)
  ret i64 %more
answer:
  ret i64 %wanted
none:
  ret i64 0
}

define internal double @engine.cost(i64 %number) alwaysinline {
  %ns = call i64 @word(ptr @"at words engine", i64 %number)
  %cost = sitofp i64 %ns to double
  ret double %cost
}

; How many programs of %ns take some time.
define internal i64 @programs(double %time, double %ns) alwaysinline {
  %ratio = fdiv double %time, %ns
  %count = fptosi double %ratio to i64
  ret i64 %count
}

; Where there are workers, and the process was left one core: want one now and then, to see whether it still is.
define internal i64 @look_again() {
entry:
  %pool = call ptr @word.ptr(ptr @"at words engine", i64 $engine.POOL)
  %none = icmp eq ptr %pool, null
  br i1 %none, label %no, label %since
since:
  %looked = call i64 @get(ptr %pool, i64 $pool.LOOKED)
  %now = call i64 @weft_time()
  %passed = sub i64 %now, %looked
  %again = icmp ugt i64 %passed, $limits.LOOK_AGAIN_NS
  %once = zext i1 %again to i64
  ret i64 %once
no:
  ret i64 0
}

; Whether to have more workers: in a burst, when what was lost without them comes to what it costs to wake them.
define internal i64 @more(double %work, double %tell, i64 %wanted, i64 %best) {
  %now = call i64 @weft_time()
  %last = call i64 @word(ptr @"at words engine", i64 $engine.LAST)
  %passed = sub i64 %now, %last
  %soon = icmp ult i64 %passed, $limits.BURST_NS
  %debt.before = call double @word.double(ptr @"at words engine", i64 $engine.DEBT)
  %debt = select i1 %soon, double %debt.before, double 0.0
  %threads = add i64 %wanted, 1
  %threads.best = add i64 %best, 1
  %hands = sitofp i64 %threads to double
  %hands.best = sitofp i64 %threads.best to double
  %long = fdiv double %work, %hands
  %short = fdiv double %work, %hands.best
  %lost = fsub double %long, %short
  %sum = fadd double %debt, %lost
  %enough = fcmp ogt double %sum, %tell
  %pays = and i1 %soon, %enough
  %left = select i1 %pays, double 0.0, double %sum
  store double %left, ptr getelementptr (i64, ptr @"at words engine", i64 $engine.DEBT)
  %twice = mul i64 %threads, 2
  %some = call i64 @llvm.smin.i64(i64 %twice, i64 %best)
  %answer = select i1 %pays, i64 %some, i64 %wanted
  ret i64 %answer
}

; How many workers are awake, of the first: those take part in every launch that has any, so they do if any does. None,
; where there is no pool.
define internal i64 @awake(ptr %pool) {
entry:
  %none = icmp eq ptr %pool, null
  br i1 %none, label %no, label %word
word:
  %k = phi i64 [ 0, %entry ], [ %k1, %all ]
  %place = call ptr @awake.word(ptr %pool, i64 %k)
  %bits = load atomic i64, ptr %place monotonic, align 8
  %asleep = xor i64 %bits, -1
  %ones = call i64 @llvm.cttz.i64(i64 %asleep, i1 false)
  %count = add i64 %k, %ones
  %full = icmp eq i64 %ones, 64
  br i1 %full, label %all, label %done
all:
  %k1 = add i64 %k, 64
  %more = icmp ult i64 %k1, $pool.MOST
  br i1 %more, label %word, label %done
done:
  ret i64 %count
no:
  ret i64 0
}

; Whether there are workers, with room, on cores other than the caller's that were looked at lately.
define i32 @weft_ready(i64 %needed) {
entry:
  %pool = call ptr @word.ptr(ptr @"at words engine", i64 $engine.POOL)
  %none = icmp eq ptr %pool, null
  br i1 %none, label %no, label %look
look:
  %stride = call i64 @get(ptr %pool, i64 $pool.ROOM_STRIDE)
  %room = icmp sge i64 %stride, %needed
  %core.c = $system.CORE
  %core = sext i32 %core.c to i64
  %off = call i64 @get(ptr %pool, i64 $pool.KEPT_OFF)
  %away = icmp eq i64 %core, %off
  %looked = call i64 @get(ptr %pool, i64 $pool.LOOKED)
  %now = call i64 @weft_time()
  %passed = sub i64 %now, %looked
  %lately = icmp ult i64 %passed, $limits.LOOK_NS
  %both = and i1 %room, %away
  %all = and i1 %both, %lately
  %answer = zext i1 %all to i32
  ret i32 %answer
no:
  ret i32 0
}
