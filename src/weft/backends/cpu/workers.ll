; The life of workers, who take part in jobs; `jobs.ll` has the caller's part.

; A worker: looks at its post for a while, then sleeps; takes the job that is posted, until it is told to stop. Where
; the next launch is expected later than it may look out, it naps until shortly before, and then looks.
define void @weft_worker(ptr %pool, i64 %index) {
entry:
  %post = call ptr @post(ptr %pool, i64 %index)
  %monitor = call ptr @monitor(ptr %pool, i64 %index)
  %word = call ptr @awake.word(ptr %pool, i64 %index)
  %bit = call i64 @awake.bit(i64 %index)
  %others = xor i64 %bit, -1
  %job = getelementptr i8, ptr %pool, i64 $pool.FN
  atomicrmw or ptr %word, i64 %bit seq_cst
  br label %idle
idle:
  %nap.p = getelementptr i8, ptr %pool, i64 $pool.NAP
  %nap.now = load atomic i64, ptr %nap.p monotonic, align 8
  %naps = icmp ne i64 %nap.now, 0
  %glance = select i1 %naps, i64 $limits.GLANCE_NS, i64 $limits.SPIN_NS
  br label %attend
attend:
  %patience = phi i64 [ %glance, %idle ], [ $limits.WATCH_NS, %dawn ]
  %nap = phi i64 [ %nap.now, %idle ], [ 0, %dawn ]
  %begun = call i64 @weft_time()
  %called = call i1 @spin(ptr %post, i64 $pool.CLOSED, i64 %begun, i64 %patience)
  br i1 %called, label %take, label %tire
tire: ; who posts and then sees this bit wakes nobody: so the post is looked at once more after it
  call void @lock(ptr %monitor)
  atomicrmw and ptr %word, i64 %others seq_cst
  br label %sleep
sleep:
  %stop.p = getelementptr i8, ptr %pool, i64 $pool.STOP
  %stop = load atomic i64, ptr %stop.p monotonic, align 8
  %stopped = icmp ne i64 %stop, 0
  br i1 %stopped, label %leave, label %look
look:
  %says = load atomic i64, ptr %post seq_cst, align 8
  %opened = icmp eq i64 %says, $pool.OPENED
  br i1 %opened, label %rise, label %wait
wait:
  %long = icmp eq i64 %nap, 0
  br i1 %long, label %rest, label %doze
rest:
  call void @wait(ptr %monitor)
  br label %sleep
doze:
  %dozed = call i64 @weft_time()
  call void @nap(ptr %monitor, i64 %nap)
  %woke = call i64 @weft_time()
  %slept = sub i64 %woke, %dozed
  %late = sub i64 %slept, %nap
  %in.time = icmp slt i64 %late, 0 ; it was called
  br i1 %in.time, label %dawn, label %learn
learn:
  %usual.p = getelementptr i8, ptr %pool, i64 $pool.LATE
  %usual = load atomic i64, ptr %usual.p monotonic, align 8
  %more = icmp sgt i64 %late, %usual
  %step = select i1 %more, i64 $limits.LATE_STEP_NS, i64 -$limits.LATE_STEP_NS
  %next = add i64 %usual, %step
  %most = call i64 @llvm.smin.i64(i64 %next, i64 $limits.MOST_LATE_NS)
  %learnt = call i64 @llvm.smax.i64(i64 %most, i64 0)
  store atomic i64 %learnt, ptr %usual.p monotonic, align 8
  br label %dawn
dawn:
  atomicrmw or ptr %word, i64 %bit seq_cst
  call void @unlock(ptr %monitor)
  br label %attend
rise:
  atomicrmw or ptr %word, i64 %bit seq_cst
  call void @unlock(ptr %monitor)
  br label %take
take:
  call void @llvm.prefetch.p0(ptr %job, i32 0, i32 3, i32 1)
  %pair = cmpxchg ptr %post, i64 $pool.OPENED, i64 $pool.TAKEN acquire monotonic
  %mine = extractvalue { i64, i1 } %pair, 1
  br i1 %mine, label %work, label %idle
work:
  call void @work(ptr %pool, i64 %index)
  br label %idle
leave:
  call void @unlock(ptr %monitor)
  ret void
}

; Do a job that is taken: wake others, run a part of it and what others leave, say so.
define internal void @work(ptr %pool, i64 %index) {
entry:
  %number = add i64 %index, 1
  call void @wake(ptr %pool)
  %scratch = call ptr @get.ptr(ptr %pool, i64 $pool.SCRATCH)
  %stride = call i64 @get(ptr %pool, i64 $pool.STRIDE)
  %skip = mul i64 %index, %stride
  %mine = getelementptr i8, ptr %scratch, i64 %skip
  call i64 @take_part(ptr %pool, ptr %mine, i64 %number)
  %post = call ptr @post(ptr %pool, i64 %index)
  atomicrmw xchg ptr %post, i64 $pool.CLOSED seq_cst
  %sleeps.p = getelementptr i8, ptr %pool, i64 $pool.SLEEPS
  %sleeps = load atomic i64, ptr %sleeps.p seq_cst, align 8
  %told = icmp ne i64 %sleeps, 0
  br i1 %told, label %tell, label %done
tell:
  call void @rouse(ptr %pool)
  br label %done
done:
  ret void
}

; Wake the workers that are wanted and sleep. It takes longer than many a part to do that, so all who are awake do it
; together, each the next that nobody has called, before their parts.
define internal void @wake(ptr %pool) {
entry:
  %called = getelementptr i8, ptr %pool, i64 $pool.CALLED
  %wanted = call i64 @get(ptr %pool, i64 $pool.WANTED)
  br label %next
next:
  %first = load atomic i64, ptr %called monotonic, align 8
  %left = icmp slt i64 %first, %wanted
  br i1 %left, label %claim, label %done
claim:
  %index = atomicrmw add ptr %called, i64 1 seq_cst
  %mine = icmp slt i64 %index, %wanted
  br i1 %mine, label %look, label %done
look:
  %word = call ptr @awake.word(ptr %pool, i64 %index)
  %bit = call i64 @awake.bit(i64 %index)
  %bits = load atomic i64, ptr %word seq_cst, align 8
  %own = and i64 %bits, %bit
  %asleep = icmp eq i64 %own, 0
  br i1 %asleep, label %tell, label %next
tell:
  %monitor = call ptr @monitor(ptr %pool, i64 %index)
  call void @rouse(ptr %monitor)
  br label %next
done:
  ret void
}

; A worker for one job: join the one that is open to guests, if there is and it wants more, and come back.
define void @weft_guest(ptr %pool) {
entry:
  call void @lock(ptr %pool)
  %open = call i64 @get(ptr %pool, i64 $pool.OPEN)
  %guests = call i64 @get(ptr %pool, i64 $pool.GUESTS)
  %welcome = icmp slt i64 %guests, %open
  br i1 %welcome, label %join, label %leave
join:
  %more = add i64 %guests, 1
  call void @set(ptr %pool, i64 $pool.GUESTS, i64 %more)
  %workers = call i64 @get(ptr %pool, i64 $pool.WORKERS)
  %index = add i64 %workers, %guests
  %post = call ptr @post(ptr %pool, i64 %index)
  store atomic i64 $pool.TAKEN, ptr %post release, align 8
  call void @unlock(ptr %pool)
  call void @work(ptr %pool, i64 %index)
  ret void
leave:
  call void @unlock(ptr %pool)
  ret void
}

; Tell the workers to leave.
define void @weft_stop(ptr %pool) {
entry:
  %stop = getelementptr i8, ptr %pool, i64 $pool.STOP
  store atomic i64 1, ptr %stop monotonic, align 8
  %workers = call i64 @get(ptr %pool, i64 $pool.WORKERS)
  br label %next
next:
  %k = phi i64 [ 0, %entry ], [ %k1, %tell ]
  %left = icmp slt i64 %k, %workers
  br i1 %left, label %tell, label %done
tell:
  %monitor = call ptr @monitor(ptr %pool, i64 %k)
  call void @rouse(ptr %monitor)
  %k1 = add i64 %k, 1
  br label %next
done:
  ret void
}
