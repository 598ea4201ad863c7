; How a grid is run: by its caller alone, or divided among it and workers.

; Run a grid, with workers if that is wanted; beside the launches of other threads in slices on this one, and after
; each it is asked again how many workers there are for it. 1 where a program's cost is known now, and all else is to
; be done.
define i32 @weft_grid(ptr %record, ptr %args, ptr %state, ptr %mine, i64 %wanted) {
entry:
  %known = call double @word.double(ptr %record, i64 $record.NS)
  %unknown = fcmp oeq double %known, 0.0
  %left = call i64 @left(ptr %state)
  %threads = call i64 @word(ptr @"at words engine", i64 $engine.THREADS)
  %many = icmp sgt i64 %left, %threads
  %untried = and i1 %unknown, %many
  br i1 %untried, label %try, label %weigh
try:
  %again = call i32 @try(ptr %record, ptr %args, ptr %state, ptr %mine)
  ret i32 %again
weigh:
  %ns = select i1 %unknown, double $limits.UNKNOWN_NS, double %known
  %longest = call i64 @programs(double $limits.CHUNK_NS, double %ns)
  %shorter = call i64 @llvm.smin.i64(i64 %longest, i64 $limits.FIRST_CHUNK)
  %count = call i64 @word(ptr %record, i64 $record.COUNT)
  %unsure = icmp eq i64 %count, 0
  %cut = select i1 %unsure, i64 %shorter, i64 %longest
  %short = call i64 @programs(double $limits.SLICE_NS, double %ns)
  %slice = call i64 @within(i64 %short, i64 %cut)
  %twice = mul i64 %slice, 2
  %quick = call i1 @is.quick(i64 %left, double %ns)
  br i1 %quick, label %serial, label %enter
enter:
  %callers = atomicrmw add ptr getelementptr (i64, ptr @"at words engine", i64 $engine.CALLERS), i64 1 monotonic
  %first = icmp slt i64 %callers, 1
  br label %ask
ask:
  %some = phi i64 [ %left, %enter ], [ %less, %beside ]
  %hands = phi i64 [ %wanted, %enter ], [ %more, %beside ]
  %helped = icmp sgt i64 %hands, 0
  br i1 %helped, label %together, label %alone
together:
  %done = call i1 @together(
    ptr %record, ptr %args, ptr %state, ptr %mine, i64 %hands, i64 %some, double %ns, i64 %cut)
  br i1 %done, label %over, label %busy
alone:
  br i1 %first, label %rest, label %busy
busy:
  %long = icmp sgt i64 %some, %twice
  br i1 %long, label %piece, label %rest
piece:
  %fn = call ptr @word.ptr(ptr %record, i64 $record.FN)
  call i64 @run.here(ptr %fn, ptr %args, ptr %state, ptr %mine, i64 %slice, i1 true)
  %less = call i64 @left(ptr %state)
  %on = icmp sgt i64 %less, 0
  br i1 %on, label %beside, label %over
beside: ; this thread, which asks, is none of the others
  atomicrmw sub ptr getelementptr (i64, ptr @"at words engine", i64 $engine.CALLERS), i64 1 monotonic
  %more = call i64 @weft_wanted(ptr %record, i64 %less)
  atomicrmw add ptr getelementptr (i64, ptr @"at words engine", i64 $engine.CALLERS), i64 1 monotonic
  br label %ask
rest:
  call void @alone(ptr %record, ptr %args, ptr %state, ptr %mine, i64 %some, double %ns, i64 %cut)
  br label %over
over:
  atomicrmw sub ptr getelementptr (i64, ptr @"at words engine", i64 $engine.CALLERS), i64 1 monotonic
  ret i32 0
serial:
  call void @alone(ptr %record, ptr %args, ptr %state, ptr %mine, i64 %left, double %ns, i64 %cut)
  ret i32 0
}

; How many programs of a state are left.
define internal i64 @left(ptr %state) alwaysinline {
  %next = call i64 @get(ptr %state, i64 $state.NEXT)
  %total = call i64 @get(ptr %state, i64 $state.TOTAL)
  %left = sub i64 %total, %next
  ret i64 %left
}

; Whether some programs take so little time that they are the caller's.
define internal i1 @is.quick(i64 %count, double %ns) alwaysinline {
  %programs = sitofp i64 %count to double
  %work = fmul double %ns, %programs
  %quick = fcmp olt double %work, $limits.QUICK_NS
  ret i1 %quick
}

; A number of programs, from one to the most.
define internal i64 @within(i64 %count, i64 %most) alwaysinline {
  %some = call i64 @llvm.smin.i64(i64 %count, i64 %most)
  %one = call i64 @llvm.smax.i64(i64 %some, i64 1)
  ret i64 %one
}

; Run one program of a kernel of which nothing is known; 1 where there is more to do.
define internal i32 @try(ptr %record, ptr %args, ptr %state, ptr %mine) {
  %fn = call ptr @word.ptr(ptr %record, i64 $record.FN)
  %begun = call i64 @weft_time()
  call i64 @run.here(ptr %fn, ptr %args, ptr %state, ptr %mine, i64 1, i1 true)
  %ended = call i64 @weft_time()
  call void @measured(ptr %record, i64 %begun, i64 %ended, i64 1)
  %error = call i64 @get(ptr %state, i64 $state.ERROR)
  %fine = icmp eq i64 %error, 0
  %again = zext i1 %fine to i32
  ret i32 %again
}

; Run a grid with workers; false, and nothing is done, where another launch has them or their room is too small. To
; begin a part costs the caller about as much as a worker (HOT), which is none of its programs' cost.
define internal i1 @together(
    ptr %record, ptr %args, ptr %state, ptr %mine, i64 %wanted, i64 %left, double %ns, i64 %cut) {
entry:
  %pool = call ptr @word.ptr(ptr @"at words engine", i64 $engine.POOL)
  %none = icmp eq ptr %pool, null
  br i1 %none, label %no, label %enter
enter: ; who enlarges the room writes its size last
  %stride.p = getelementptr i8, ptr %pool, i64 $pool.ROOM_STRIDE
  %stride = load atomic i64, ptr %stride.p acquire, align 8
  %room = call ptr @get.ptr(ptr %pool, i64 $pool.ROOM)
  %needed = call i64 @word(ptr %record, i64 $record.SCRATCH)
  %narrow = icmp sgt i64 %needed, %stride
  br i1 %narrow, label %no, label %claim
claim:
  %free = call i1 @claim(ptr %pool)
  br i1 %free, label %share, label %no
share:
  %workers = call i64 @get(ptr %pool, i64 $pool.WORKERS)
  %count = call i64 @llvm.smin.i64(i64 %wanted, i64 %workers)
  %hands = add i64 %count, 1
  %parts = call i64 @llvm.smin.i64(i64 %hands, i64 $pool.MOST_PARTS)
  %before = call i64 @weft_time()
  call void @foresee(ptr %pool, ptr %record, i64 %before)
  %base = getelementptr i8, ptr %pool, i64 $pool.LINES
  %size = call i64 @weft_parts(ptr %base, ptr %state, i64 %parts, i64 %left, double %ns, i64 %cut)
  %fair = sdiv i64 %size, $limits.CHUNKS_PER_THREAD
  %shortest = call i64 @programs(double $limits.LEAST_CHUNK_NS, double %ns)
  %longer = call i64 @llvm.smax.i64(i64 %fair, i64 %shortest)
  %half = sdiv i64 %size, 2
  %some = call i64 @llvm.smin.i64(i64 %longer, i64 %half)
  %chunk = call i64 @within(i64 %some, i64 %cut)
  call void @set(ptr %state, i64 $state.CHUNK, i64 %chunk)
  %fn = call ptr @word.ptr(ptr %record, i64 $record.FN)
  call void @begin(
    ptr %pool, ptr %fn, ptr %args, ptr %state, i64 %count, ptr %room, i64 %stride, ptr %base, i64 %parts)
  call void @wake(ptr %pool)
  %begun = call i64 @weft_time()
  %ran = call i64 @take_part(ptr %pool, ptr %mine, i64 0)
  %ended = call i64 @weft_time()
  %took = sub i64 %ended, %begun
  %half.took = sdiv i64 %took, 2
  %hot = call i64 @word(ptr @"at words engine", i64 $engine.HOT)
  %late = call i64 @llvm.smin.i64(i64 %half.took, i64 %hot)
  %start = add i64 %begun, %late
  %over = call i64 @end(ptr %pool, i64 %count, i64 %ended)
  call void @note(ptr %record, ptr %state, i64 %start, i64 %ended, i64 %over, i64 %ran)
  ret i1 true
no:
  ret i1 false
}

; Divide a grid: parts that differ by one program, the caller's longer by what it does until the others begin. Gives the
; size of theirs.
define i64 @weft_parts(ptr %base, ptr %state, i64 %parts, i64 %left, double %ns, i64 %cut) {
entry:
  %hot = call double @engine.cost(i64 $engine.HOT)
  %lead = call i64 @programs(double %hot, double %ns)
  %shared = sub i64 %left, %lead
  %equal = sdiv i64 %shared, %parts
  %size = call i64 @llvm.smax.i64(i64 %equal, i64 1)
  %even = mul i64 %size, %parts
  %odd = sub i64 %shared, %even
  %rest = call i64 @llvm.smax.i64(i64 %odd, i64 0) ; so many parts after the first have one program more
  %quick = call i64 @programs(double $limits.HEAD_NS, double %ns)
  %short = icmp sle i64 %size, %quick
  %longest = add i64 %size, 1
  %half = sdiv i64 %size, 2
  %some = call i64 @llvm.smin.i64(i64 %half, i64 %quick)
  %much = select i1 %short, i64 %longest, i64 %some
  %head = call i64 @within(i64 %much, i64 %cut)
  %own = add i64 %head, %lead
  %own.head = call i64 @within(i64 %own, i64 %cut)
  %first = call i64 @get(ptr %state, i64 $state.NEXT)
  %end = add i64 %first, %left
  %others = sub i64 %parts, 1
  %theirs = mul i64 %size, %others
  %theirs.all = add i64 %theirs, %rest
  %begin = sub i64 %end, %theirs.all
  call void @part(ptr %base, i64 0, i64 %first, i64 %begin, i64 %own.head)
  br label %next
next:
  %k = phi i64 [ 1, %entry ], [ %k1, %put ]
  %from = phi i64 [ %begin, %entry ], [ %to, %put ]
  %more = icmp slt i64 %k, %parts
  br i1 %more, label %put, label %done
put:
  %longer = icmp sle i64 %k, %rest
  %one = zext i1 %longer to i64
  %count = add i64 %size, %one
  %to = add i64 %from, %count
  call void @part(ptr %base, i64 %k, i64 %from, i64 %to, i64 %head)
  %k1 = add i64 %k, 1
  br label %next
done:
  ret i64 %size
}

define internal void @part(ptr %base, i64 %number, i64 %from, i64 %to, i64 %head) alwaysinline {
  %line = getelementptr [$pool.LINE x i8], ptr %base, i64 %number
  call void @set(ptr %line, i64 $pool.NEXT, i64 %from)
  call void @set(ptr %line, i64 $pool.END, i64 %to)
  call void @set(ptr %line, i64 $pool.HEAD, i64 %head)
  ret void
}

; Run a grid on this thread; in pieces where it is long, so that signals are looked at.
define internal void @alone(ptr %record, ptr %args, ptr %state, ptr %mine, i64 %left, double %ns, i64 %cut) {
entry:
  %fn = call ptr @word.ptr(ptr %record, i64 $record.FN)
  %count = call i64 @word(ptr %record, i64 $record.COUNT)
  %phase = and i64 %count, $limits.SAMPLED
  %skip = icmp ne i64 %phase, 0
  %quick = call i1 @is.quick(i64 %left, double %ns)
  %untimed = and i1 %quick, %skip
  br i1 %untimed, label %plain, label %timed
plain:
  %more = add i64 %count, 1
  call void @set.word(ptr %record, i64 $record.COUNT, i64 %more)
  call void @set(ptr %state, i64 $state.CHUNK, i64 %left)
  call void %fn(ptr %args, ptr %state, ptr %mine)
  ret void
timed:
  %begun = call i64 @weft_time()
  %long = icmp slt i64 %cut, %left
  br i1 %long, label %pieces, label %whole
pieces:
  %piece = call i64 @llvm.smax.i64(i64 %cut, i64 1)
  %some = call i64 @run.here(ptr %fn, ptr %args, ptr %state, ptr %mine, i64 %piece, i1 false)
  br label %note
whole:
  call void @set(ptr %state, i64 $state.CHUNK, i64 %left)
  call void %fn(ptr %args, ptr %state, ptr %mine)
  br label %note
note:
  %ran = phi i64 [ %some, %pieces ], [ %left, %whole ]
  %ended = call i64 @weft_time()
  call void @note(ptr %record, ptr %state, i64 %begun, i64 %ended, i64 %ended, i64 %ran)
  ret void
}

; After a grid: when it was over, and what a program of it cost, if it did not fail.
define internal void @note(ptr %record, ptr %state, i64 %begun, i64 %ended, i64 %over, i64 %ran) {
entry:
  call void @set.word(ptr @"at words engine", i64 $engine.LAST, i64 %over)
  %error = call i64 @get(ptr %state, i64 $state.ERROR)
  %failed = icmp ne i64 %error, 0
  br i1 %failed, label %done, label %fine
fine:
  call void @measured(ptr %record, i64 %begun, i64 %ended, i64 %ran)
  %count = call i64 @word(ptr %record, i64 $record.COUNT)
  %phase = and i64 %count, $limits.SAMPLED
  %counts = icmp eq i64 %phase, 0 ; those of which one is measured count by themselves
  br i1 %counts, label %advance, label %done
advance:
  %more = add i64 %count, 1
  call void @set.word(ptr %record, i64 $record.COUNT, i64 %more)
  br label %done
done:
  ret void
}

; Take a measurement into what is known of a program's cost.
define internal void @measured(ptr %record, i64 %begun, i64 %ended, i64 %ran) {
entry:
  %place = getelementptr i64, ptr %record, i64 $record.NS
  %before = call double @word.double(ptr %record, i64 $record.NS)
  %some = icmp sgt i64 %ran, 0
  br i1 %some, label %count, label %nothing
nothing: ; others were done before who wakes them began: programs are shorter than was thought
  %less = fmul double %before, 0.5
  br label %write
count:
  %spent = sub i64 %ended, %begun
  %time = sitofp i64 %spent to double
  %programs = sitofp i64 %ran to double
  %ratio = fdiv double %time, %programs
  %each = call double @llvm.maxnum.f64(double %ratio, double 1.0)
  %most = fmul double %before, $limits.OUTLIER
  %cut = call double @llvm.minnum.f64(double %each, double %most)
  %old = fmul double %before, 0.75
  %new = fmul double %cut, 0.25
  %mean = fadd double %old, %new
  %count.before = call i64 @word(ptr %record, i64 $record.COUNT)
  %first = icmp eq i64 %count.before, 0
  %counted = select i1 %first, double %each, double %mean
  br label %write
write:
  %value = phi double [ %counted, %count ], [ %less, %nothing ]
  %some.value = call double @llvm.maxnum.f64(double %value, double 1.0)
  %change = fsub double %some.value, %before
  %by = call double @llvm.fabs.f64(double %change)
  %little = fmul double %before, $limits.ALIKE
  %alike = fcmp ole double %by, %little ; then the line stays in the caches of all who launch
  br i1 %alike, label %done, label %store
store:
  store double %some.value, ptr %place
  br label %done
done:
  ret void
}
