; A job for workers, from its caller's side, and what each thread does in one.
;
; A worker has the same part of the same grid in each launch, so that what it reads and writes may still be in the
; caches of its core: to fetch it from those of another takes longer than from its own second level. Nothing that two
; threads write in a launch lies in one cache line, but for the mask of the parts that are left.

; Run all of a state with up to %wanted workers and guests, who take programs one after the other as any is free; 0, and
; nothing, when the pool is busy with another thread's launch.
;
; This is one native call from the first to the last, so that no exception can come between: workers never outlive their
; job. `weft_grid` has the like of it, with parts and measurements.
define i32 @weft_run(
    ptr %pool, ptr %fn, ptr %args, ptr %state, ptr %mine, i64 %wanted, ptr %theirs, i64 %stride) {
entry:
  %free = call i1 @claim(ptr %pool)
  br i1 %free, label %run, label %busy
run:
  call void @lock(ptr %pool)
  call void @set(ptr %pool, i64 $pool.GUESTS, i64 0)
  call void @begin(
    ptr %pool, ptr %fn, ptr %args, ptr %state, i64 %wanted, ptr %theirs, i64 %stride, ptr %state, i64 1)
  %workers = call i64 @get(ptr %pool, i64 $pool.WORKERS)
  %open = sub i64 %wanted, %workers
  call void @set(ptr %pool, i64 $pool.OPEN, i64 %open)
  call void @unlock(ptr %pool)
  call void @wake(ptr %pool)
  call i64 @take_part(ptr %pool, ptr %mine, i64 0)
  call void @lock(ptr %pool)
  call void @set(ptr %pool, i64 $pool.OPEN, i64 0)
  %guests = call i64 @get(ptr %pool, i64 $pool.GUESTS)
  %posted = call i64 @get(ptr %pool, i64 $pool.WANTED)
  call void @unlock(ptr %pool)
  %lines = add i64 %posted, %guests
  %ended = call i64 @weft_time()
  call i64 @end(ptr %pool, i64 %lines, i64 %ended)
  ret i32 1
busy:
  ret i32 0
}

; Post a job to %wanted workers, the first that there are, with %stride bytes of scratch memory for each. Its parts,
; from %base on, are ready: whoever has done its own looks at all others.
define internal void @begin(
    ptr %pool, ptr %fn, ptr %args, ptr %state, i64 %wanted, ptr %scratch, i64 %stride, ptr %base, i64 %parts) {
entry:
  call void @set.ptr(ptr %pool, i64 $pool.FN, ptr %fn)
  call void @set.ptr(ptr %pool, i64 $pool.ARGS, ptr %args)
  call void @set.ptr(ptr %pool, i64 $pool.STATE, ptr %state)
  call void @set.ptr(ptr %pool, i64 $pool.SCRATCH, ptr %scratch)
  call void @set(ptr %pool, i64 $pool.STRIDE, i64 %stride)
  call void @set.ptr(ptr %pool, i64 $pool.BASE, ptr %base)
  call void @set(ptr %pool, i64 $pool.PARTS, i64 %parts)
  %unused = sub i64 64, %parts
  %mask = lshr i64 -1, %unused
  call void @set(ptr %pool, i64 $pool.MASK, i64 %mask)
  %workers = call i64 @get(ptr %pool, i64 $pool.WORKERS)
  %count = call i64 @llvm.smin.i64(i64 %wanted, i64 %workers)
  call void @set(ptr %pool, i64 $pool.WANTED, i64 %count)
  call void @set(ptr %pool, i64 $pool.CALLED, i64 $pool.MOST) ; until all posts are there
  br label %next
next:
  %k = phi i64 [ 0, %entry ], [ %k1, %tell ]
  %left = icmp slt i64 %k, %count
  br i1 %left, label %tell, label %told
tell:
  %post = call ptr @post(ptr %pool, i64 %k)
  store atomic i64 $pool.OPENED, ptr %post release, align 8
  %k1 = add i64 %k, 1
  br label %next
told: ; who is awake now sees its post before it sleeps
  fence seq_cst
  %awake = call i64 @awake(ptr %pool)
  %all = icmp sge i64 %awake, %count
  br i1 %all, label %done, label %some
some:
  %called = getelementptr i8, ptr %pool, i64 $pool.CALLED
  store atomic i64 %awake, ptr %called seq_cst, align 8
  br label %done
done:
  ret void
}

; End a job: nobody takes it any more; wait for those who did, which began at %ended, and give the workers back. Gives
; when that was.
define internal i64 @end(ptr %pool, i64 %lines, i64 %ended) {
entry:
  br label %close
close:
  %c = phi i64 [ 0, %entry ], [ %c1, %take.back ]
  %joined = phi i64 [ 0, %entry ], [ %joined1, %take.back ]
  %open = icmp slt i64 %c, %lines
  br i1 %open, label %take.back, label %closed
take.back:
  %posted = call ptr @post(ptr %pool, i64 %c)
  %pair = cmpxchg ptr %posted, i64 $pool.OPENED, i64 $pool.CLOSED monotonic monotonic
  %late = extractvalue { i64, i1 } %pair, 1
  %came = xor i1 %late, true
  %one = zext i1 %came to i64
  %joined1 = add i64 %joined, %one
  %c1 = add i64 %c, 1
  br label %close
closed:
  call void @set(ptr %pool, i64 $pool.JOINED, i64 %joined)
  br label %next
next:
  %k = phi i64 [ 0, %closed ], [ %k1, %watch ], [ %k1, %sleep ]
  %left = icmp slt i64 %k, %lines
  br i1 %left, label %watch, label %done
watch:
  %k1 = add i64 %k, 1
  %post = call ptr @post(ptr %pool, i64 %k)
  %over = call i1 @spin(ptr %post, i64 $pool.TAKEN, i64 %ended, i64 $limits.SPIN_NS)
  br i1 %over, label %next, label %sleep
sleep:
  call void @sleep(ptr %pool, ptr %post)
  br label %next
done:
  %now = call i64 @weft_time()
  call void @set(ptr %pool, i64 $pool.OVER, i64 %now)
  call void @release(ptr %pool)
  ret i64 %now
}

; Foresee when the launch after this one comes: as long after it as the last two times, or the sooner of them. After a
; pause all is slow, so that the first launch of a kernel for a while is no example for those that follow. Workers nap
; until shortly before. Where none was awake in time for a third time in a row, they do not nap after that kernel for
; one, three, seven times: what the caller did in between had their cores, as OpenMP's threads have, and who looks out
; only delays that.
define internal void @foresee(ptr %pool, ptr %record, i64 %now) {
entry:
  %nap.p = getelementptr i8, ptr %pool, i64 $pool.NAP
  %last = call ptr @get.ptr(ptr %pool, i64 $pool.GAP)
  %over = call i64 @get(ptr %pool, i64 $pool.OVER)
  %gap = sub i64 %now, %over
  %soon = icmp ult i64 %gap, $limits.FORESIGHT_NS
  br i1 %soon, label %note, label %look
note:
  %before = call i64 @get(ptr %last, i64 $pool.GAP_LAST)
  call void @set(ptr %last, i64 $pool.GAP_LAST, i64 %gap)
  call void @set(ptr %last, i64 $pool.GAP_BEFORE, i64 %before)
  %napped = load i64, ptr %nap.p
  %foreseen = icmp ne i64 %napped, 0
  br i1 %foreseen, label %judge, label %look
judge:
  %bits.p = call ptr @awake.word(ptr %pool, i64 0)
  %bits = load atomic i64, ptr %bits.p monotonic, align 8
  %missed = icmp eq i64 %bits, 0
  %misses = call i64 @get(ptr %last, i64 $pool.GAP_MISSES)
  %twice = shl i64 %misses, 1
  %more = or i64 %twice, 1
  %most = call i64 @llvm.smin.i64(i64 %more, i64 $limits.MOST_MISSES)
  %learnt = select i1 %missed, i64 %most, i64 0
  %pause = lshr i64 %learnt, 2 ; none for the first two
  call void @set(ptr %last, i64 $pool.GAP_MISSES, i64 %learnt)
  call void @set(ptr %last, i64 $pool.GAP_PAUSE, i64 %pause)
  br label %look
look:
  %address = ptrtoint ptr %record to i64
  %high = lshr i64 %address, 6
  %kernel = urem i64 %high, $pool.GAP_KERNELS
  %gaps = getelementptr i8, ptr %pool, i64 $pool.GAPS
  %both = getelementptr [2 x [$pool.GAP_BYTES x i8]], ptr %gaps, i64 %kernel
  %seen = call i64 @get(ptr %both, i64 $pool.GAP_SEEN)
  call void @set(ptr %both, i64 $pool.GAP_SEEN, i64 %now)
  %since = sub i64 %now, %seen
  %late.again = icmp ugt i64 %since, $limits.PAUSE_NS
  %place = zext i1 %late.again to i64
  %this = getelementptr [$pool.GAP_BYTES x i8], ptr %both, i64 %place
  call void @set.ptr(ptr %pool, i64 $pool.GAP, ptr %this)
  %once = call i64 @get(ptr %this, i64 $pool.GAP_LAST)
  %again = call i64 @get(ptr %this, i64 $pool.GAP_BEFORE)
  %next = call i64 @llvm.smin.i64(i64 %once, i64 %again)
  %late = icmp sgt i64 %next, $limits.SOON_NS
  %paused = call i64 @get(ptr %this, i64 $pool.GAP_PAUSE)
  %less = sub i64 %paused, 1
  %left = call i64 @llvm.smax.i64(i64 %less, i64 0)
  call void @set(ptr %this, i64 $pool.GAP_PAUSE, i64 %left)
  %may = icmp eq i64 %paused, 0
  %does = and i1 %late, %may
  %late.usual = call i64 @get(ptr %pool, i64 $pool.LATE)
  %early = add i64 %late.usual, $limits.EARLY_NS
  %rest = sub i64 %next, %early
  %nap = call i64 @llvm.smax.i64(i64 %rest, i64 0)
  %some = select i1 %does, i64 %nap, i64 0
  store atomic i64 %some, ptr %nap.p monotonic, align 8
  ret void
}

; Sleep until a worker is done with its job; look at signals now and then.
define internal void @sleep(ptr %pool, ptr %post) {
entry:
  %sleeps = getelementptr i8, ptr %pool, i64 $pool.SLEEPS
  call void @lock(ptr %pool)
  atomicrmw xchg ptr %sleeps, i64 1 seq_cst
  br label %look
look:
  %says = load atomic i64, ptr %post seq_cst, align 8
  %taken = icmp eq i64 %says, $pool.TAKEN
  br i1 %taken, label %nap, label %done
nap:
  call void @nap(ptr %pool, i64 $signals.INTERVAL_NS)
  call void @unlock(ptr %pool)
  %state = call ptr @get.ptr(ptr %pool, i64 $pool.STATE)
  %polled = call i32 @weft_poll(ptr %state)
  %leaving = icmp ne i32 %polled, 0
  br i1 %leaving, label %cancel, label %again
cancel:
  %base = call ptr @get.ptr(ptr %pool, i64 $pool.BASE)
  %parts = call i64 @get(ptr %pool, i64 $pool.PARTS)
  call void @cancel(ptr %base, i64 %parts)
  br label %again
again:
  call void @lock(ptr %pool)
  br label %look
done:
  store atomic i64 0, ptr %sleeps monotonic, align 8
  call void @unlock(ptr %pool)
  ret void
}

; Nobody is to begin any more of a job.
define internal void @cancel(ptr %base, i64 %parts) {
entry:
  br label %part
part:
  %k = phi i64 [ 0, %entry ], [ %k1, %part ]
  %line = getelementptr [$pool.LINE x i8], ptr %base, i64 %k
  %end = call i64 @get(ptr %line, i64 $pool.END)
  store atomic i64 %end, ptr %line monotonic, align 8
  %k1 = add i64 %k, 1
  %more = icmp slt i64 %k1, %parts
  br i1 %more, label %part, label %done
done:
  ret void
}

; Call the first worker, and have it write down when it begins, to see what that costs (`waking`): the time when it was
; called, or 0 where another launch has the workers. `weft_settle` ends it.
;
; The words of %told are for that time, and for when the caller was done with calling; the state is all zeros.
define i64 @weft_call_one(ptr %pool, ptr %state, ptr %told) {
entry:
  %free = call i1 @claim(ptr %pool)
  br i1 %free, label %call, label %busy
call:
  call void @set(ptr %state, i64 $state.TOTAL, i64 1)
  call void @set(ptr %state, i64 $state.CHUNK, i64 1)
  %begun = call i64 @weft_time()
  call void @begin(ptr %pool, ptr @arrive, ptr %told, ptr %state, i64 1, ptr null, i64 0, ptr %state, i64 1)
  call void @wake(ptr %pool)
  %called = call i64 @weft_time()
  call void @set(ptr %told, i64 8, i64 %called)
  ret i64 %begun
busy:
  ret i64 0
}

define internal void @arrive(ptr %told, ptr %state, ptr %scratch) {
  %now = call i64 @weft_time()
  store atomic i64 %now, ptr %told release, align 8
  ret void
}

define void @weft_settle(ptr %pool) {
  %now = call i64 @weft_time()
  call i64 @end(ptr %pool, i64 1, i64 %now)
  ret void
}

; Take part in the job of a pool.
define internal i64 @take_part(ptr %pool, ptr %scratch, i64 %number) {
  %fn = call ptr @get.ptr(ptr %pool, i64 $pool.FN)
  %args = call ptr @get.ptr(ptr %pool, i64 $pool.ARGS)
  %state = call ptr @get.ptr(ptr %pool, i64 $pool.STATE)
  %base = call ptr @get.ptr(ptr %pool, i64 $pool.BASE)
  %parts = call i64 @get(ptr %pool, i64 $pool.PARTS)
  %ran = call i64 @run(
    ptr %fn, ptr %args, ptr %state, ptr %scratch, ptr %base, i64 %number, i64 %parts, i1 false)
  ret i64 %ran
}

; Run a grid on this thread, in chunks, or one chunk of it.
define internal i64 @run.here(ptr %fn, ptr %args, ptr %state, ptr %scratch, i64 %chunk, i1 %once) {
  call void @set(ptr %state, i64 $state.CHUNK, i64 %chunk)
  %ran = call i64 @run(
    ptr %fn, ptr %args, ptr %state, ptr %scratch, ptr %state, i64 0, i64 1, i1 %once)
  ret i64 %ran
}

; Strike a part out of the mask of those of which programs are left; gives which that are.
define internal i64 @strike(ptr %base, i64 %part) alwaysinline {
entry:
  %mask = getelementptr i8, ptr %base, i64 $pool.MASK_FROM_LINES
  %bit = shl i64 1, %part
  %rest = xor i64 %bit, -1
  %now = load atomic i64, ptr %mask monotonic, align 8
  %own = and i64 %now, %bit
  %struck = icmp eq i64 %own, 0
  br i1 %struck, label %done, label %write
write:
  %before = atomicrmw and ptr %mask, i64 %rest monotonic
  br label %done
done:
  %seen = phi i64 [ %now, %entry ], [ %before, %write ]
  %left = and i64 %seen, %rest
  ret i64 %left
}

; Run chunks of %shared, or one, through a state of its own: of the part that is this thread's by its number, then of
; those that follow; gives how many programs that were. A part begins with its next program, its end, and how many are
; taken first; so a whole state is one.
define internal i64 @run(
    ptr %fn, ptr %args, ptr %shared, ptr %scratch, ptr %base, i64 %number, i64 %parts, i1 %once) {
entry:
  %own = alloca [$state.STATE_BYTES x i8], align 64
  call void @llvm.memcpy.p0.p0.i64(ptr align 8 %own, ptr align 8 %shared, i64 $state.STATE_BYTES, i1 false)
  call void @set(ptr %own, i64 $state.ERROR, i64 0)
  call void @set(ptr %own, i64 $state.ERROR_PID, i64 0)
  call void @set.ptr(ptr %own, i64 $state.WHOLE, ptr %shared)
  %threads = getelementptr i8, ptr %own, i64 $state.THREADS
  %thread = trunc i64 %number to i32
  %chunk = call i64 @get(ptr %shared, i64 $state.CHUNK)
  %single = icmp eq i64 %parts, 1
  %first.part = urem i64 %number, %parts
  %first.line = getelementptr [$pool.LINE x i8], ptr %base, i64 %first.part
  %head = call i64 @get(ptr %first.line, i64 $pool.HEAD)
  br label %part
part:
  %at = phi i64 [ %first.part, %entry ], [ %following, %others ]
  %ran.before = phi i64 [ 0, %entry ], [ %ran, %others ]
  %step.before = phi i64 [ %head, %entry ], [ %chunk, %others ]
  %line = getelementptr [$pool.LINE x i8], ptr %base, i64 %at
  %total = call i64 @get(ptr %line, i64 $pool.END)
  br label %claim
claim:
  %ran = phi i64 [ %ran.before, %part ], [ %ran1, %next ]
  %step = phi i64 [ %step.before, %part ], [ %chunk, %next ]
  %begin = atomicrmw add ptr %line, i64 %step monotonic
  %some = icmp slt i64 %begin, %total
  br i1 %some, label %take, label %exhausted
take:
  %last = add i64 %begin, %step
  %rest = icmp slt i64 %last, %total
  %few = icmp slt i64 %parts, 3 ; where the other of two is looked at once, the mask is no shorter way
  %more = or i1 %rest, %few
  br i1 %more, label %call, label %empty
empty: ; nobody else need look here
  call i64 @strike(ptr %base, i64 %at)
  br label %call
call:
  %end = call i64 @llvm.smin.i64(i64 %last, i64 %total)
  store atomic i64 %begin, ptr %own monotonic, align 8
  call void @set(ptr %own, i64 $state.TOTAL, i64 %end)
  store i32 %thread, ptr %threads
  call void %fn(ptr %args, ptr %own, ptr %scratch)
  call i32 @look(ptr %own)
  %error.p = getelementptr i8, ptr %own, i64 $state.ERROR
  %error = load atomic i64, ptr %error.p acquire, align 8
  %did = sub i64 %end, %begin
  %ran1 = add i64 %ran, %did
  %failed = icmp ne i64 %error, 0
  br i1 %failed, label %fail, label %next
next:
  br i1 %once, label %done, label %claim
exhausted: ; the only part has no mask
  br i1 %single, label %done, label %strike
strike:
  %left = call i64 @strike(ptr %base, i64 %at)
  %none = icmp eq i64 %left, 0
  br i1 %none, label %done, label %others
others: ; the next that is left, counted round
  %after = add i64 %at, 1
  %turned = call i64 @llvm.fshr.i64(i64 %left, i64 %left, i64 %after)
  %steps = call i64 @llvm.cttz.i64(i64 %turned, i1 true)
  %place = add i64 %after, %steps
  %following = and i64 %place, 63
  br label %part
fail: ; the first error is the launch's; that somebody leaves is noted beside it
  %leave = and i64 %error, $signals.LEAVE
  %told = xor i64 %error, %leave
  %shared.error = getelementptr i8, ptr %shared, i64 $state.ERROR
  %pair = cmpxchg ptr %shared.error, i64 0, i64 %told acq_rel monotonic
  %won = extractvalue { i64, i1 } %pair, 1
  br i1 %won, label %tell, label %cancel
tell:
  %pid = call i64 @get(ptr %own, i64 $state.ERROR_PID)
  call void @set(ptr %shared, i64 $state.ERROR_PID, i64 %pid)
  br label %cancel
cancel:
  atomicrmw or ptr %shared.error, i64 %leave monotonic
  call void @cancel(ptr %base, i64 %parts)
  br label %done
done:
  %all = phi i64 [ %ran, %exhausted ], [ %ran, %strike ], [ %ran1, %next ], [ %ran1, %cancel ]
  ret i64 %all
}
