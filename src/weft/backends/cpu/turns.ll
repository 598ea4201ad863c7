; Whose turn it is to have the interpreter's lock, among threads that come back from launches.
;
; Who asks for the lock while another has it sleeps, and whoever gives it away has to wake it. That takes tens of
; microseconds, in which nobody runs Python; a launch and the Python around it have the lock for a few. So threads that
; come back from launches wait for each other here first, busily and for a moment, until who has the lock launches
; again: then it is free when they ask for it. Where more threads want it than can have it, those that waited in vain,
; or found enough others waiting, sleep a little.

; This thread, which launches, has given the lock away.
define void @weft_leave(i64 %thread) {
entry:
  %holder.p = getelementptr i64, ptr @"at words turns", i64 $turns.HOLDER
  %holder = load atomic i64, ptr %holder.p monotonic, align 8
  %mine = icmp eq i64 %holder, %thread
  br i1 %mine, label %leave, label %done
leave:
  %count = call i64 @word(ptr @"at words turns", i64 $turns.COUNT)
  %more = add i64 %count, 1
  call void @set.word(ptr @"at words turns", i64 $turns.COUNT, i64 %more)
  store atomic i64 0, ptr %holder.p release, align 8
  br label %done
done:
  ret void
}

; Wait until it is the turn of this thread; or nobody has had a turn for some time, since whoever came back last does
; something else: it may be waiting, without the lock. Where that is so too often, nobody waits here for some launches.
define void @weft_return(i64 %thread) {
entry:
  %waiting.p = getelementptr i64, ptr @"at words turns", i64 $turns.WAITING
  %first = call i1 @take_turn(i64 %thread)
  br i1 %first, label %done, label %ask
ask:
  %pause = call i64 @word(ptr @"at words turns", i64 $turns.PAUSE)
  %paused = icmp sgt i64 %pause, 0
  br i1 %paused, label %skip, label %join
skip:
  %less = sub i64 %pause, 1
  call void @set.word(ptr @"at words turns", i64 $turns.PAUSE, i64 %less)
  br label %done
join:
  %round = phi i64 [ 0, %ask ], [ %round1, %nap ]
  %others = atomicrmw add ptr %waiting.p, i64 1 monotonic
  %before = call i64 @word(ptr @"at words turns", i64 $turns.COUNT)
  %few = icmp slt i64 %others, $limits.TURN_WAITERS
  br i1 %few, label %wait, label %many
wait:
  %got = call i1 @await_turn(i64 %thread)
  atomicrmw sub ptr %waiting.p, i64 1 monotonic
  %after = call i64 @word(ptr @"at words turns", i64 $turns.COUNT)
  %idle = icmp eq i64 %before, %after
  %over = or i1 %got, %idle
  br i1 %over, label %learn, label %rest
many:
  atomicrmw sub ptr %waiting.p, i64 1 monotonic
  br label %rest
rest:
  %round1 = add i64 %round, 1
  %long = icmp ugt i64 %round1, $limits.TURN_NAPS
  br i1 %long, label %done, label %nap
nap:
  call void @doze(i64 $limits.TURN_NAP_NS)
  br label %join
learn:
  %misses = call i64 @word(ptr @"at words turns", i64 $turns.MISSES)
  br i1 %got, label %hit, label %miss
hit:
  %none = icmp eq i64 %misses, 0
  br i1 %none, label %done, label %fewer
fewer:
  %misses.less = sub i64 %misses, 1
  call void @set.word(ptr @"at words turns", i64 $turns.MISSES, i64 %misses.less)
  br label %done
miss:
  %misses.more = add i64 %misses, $limits.TURN_MISS
  %often = icmp ugt i64 %misses.more, $limits.TURN_PAUSE
  %half = lshr i64 %misses.more, 1
  %kept = select i1 %often, i64 %half, i64 %misses.more
  call void @set.word(ptr @"at words turns", i64 $turns.MISSES, i64 %kept)
  br i1 %often, label %stop, label %done
stop:
  call void @set.word(ptr @"at words turns", i64 $turns.PAUSE, i64 $limits.TURN_PAUSE)
  br label %done
done:
  ret void
}

define internal i1 @take_turn(i64 %thread) alwaysinline {
  %holder.p = getelementptr i64, ptr @"at words turns", i64 $turns.HOLDER
  %pair = cmpxchg ptr %holder.p, i64 0, i64 %thread acquire monotonic
  %mine = extractvalue { i64, i1 } %pair, 1
  ret i1 %mine
}

; Wait busily; whether it is the turn of this thread.
define internal i1 @await_turn(i64 %thread) {
entry:
  %holder.p = getelementptr i64, ptr @"at words turns", i64 $turns.HOLDER
  %begun = call i64 @weft_time()
  br label %look
look:
  %holder = load atomic i64, ptr %holder.p monotonic, align 8
  %free = icmp eq i64 %holder, 0
  br i1 %free, label %take, label %spin
spin:
  call i1 @spin(ptr %holder.p, i64 %holder, i64 %begun, i64 $limits.SPIN_NS)
  %now = call i64 @weft_time()
  %spent = sub i64 %now, %begun
  %over = icmp ugt i64 %spent, $limits.SPIN_NS
  br i1 %over, label %done, label %look
take:
  %mine = call i1 @take_turn(i64 %thread)
  br i1 %mine, label %done, label %look
done:
  %turn = phi i1 [ false, %spin ], [ true, %take ]
  ret i1 %turn
}
