; Whose turn it is to have the interpreter's lock, among threads that come back from launches.
;
; Who asks for the lock while another has it sleeps, and whoever gives it away has to wake it. That takes tens of
; microseconds, in which nobody runs Python; a launch and the Python around it have the lock for a few. So threads that
; come back from launches wait for each other here first, busily and for a moment, until who has the lock launches
; again: then it is free when they ask for it. Where more threads want it than can have it, those that waited in vain,
; or found enough others waiting, sleep a little.
;
; They wait in a row of places, each on a cache line of its own (PLACES, the first of them is next). Who stands in one
; watches the place before it alone, so that a turn that ends is seen by one thread, and who moves up disturbs none of
; the others. Were all to watch whose turn it is, each end of one would fetch its line for all of them, one after the
; other, and all but one in vain.

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

; Wait until it is the turn of this thread: 0. Where nobody has had a turn for some time, since whoever came back last
; does something else, one of those who wait asks for the lock all the same: then the time is given, for `weft_asked`.
; It has the turn from then on, so that nobody takes the lock before it when it is given away: it sleeps, and each time
; that it is woken in vain costs whoever woke it a system call.
define i64 @weft_return(i64 %thread) {
entry:
  %asked.p = getelementptr i64, ptr @"at words turns", i64 $turns.ASKED
  %turn = call ptr @place(i64 -1)
  %first = call i1 @occupy(ptr %turn, i64 %thread)
  br i1 %first, label %done, label %look
look:
  %pause = call i64 @word(ptr @"at words turns", i64 $turns.PAUSE)
  %paused = icmp sgt i64 %pause, 0
  br i1 %paused, label %skip, label %join
skip:
  %less = sub i64 %pause, 1
  call void @set.word(ptr @"at words turns", i64 $turns.PAUSE, i64 %less)
  br label %done
join:
  %round = phi i64 [ 0, %look ], [ %round1, %nap ]
  %before = call i64 @word(ptr @"at words turns", i64 $turns.COUNT)
  %last = call ptr @place(i64 $limits.TURN_LAST)
  %room = call i1 @occupy(ptr %last, i64 %thread)
  br i1 %room, label %wait, label %rest
wait:
  %got = call i1 @await_turn(i64 %thread)
  br i1 %got, label %hit, label %idle
idle:
  %after = call i64 @word(ptr @"at words turns", i64 $turns.COUNT)
  %same = icmp eq i64 %before, %after
  br i1 %same, label %claim, label %rest
claim: ; the first to see that this turn of this thread is a long one
  %holder = load atomic i64, ptr %turn monotonic, align 8
  %mark = add i64 %holder, %after
  %marked = atomicrmw xchg ptr %asked.p, i64 %mark monotonic
  %known = icmp eq i64 %marked, %mark
  br i1 %known, label %rest, label %usurp
usurp: ; unless it was over a moment ago
  %own.mark = add i64 %thread, %after
  %pair = cmpxchg ptr %turn, i64 %holder, i64 %thread acquire monotonic
  %mine = extractvalue { i64, i1 } %pair, 1
  br i1 %mine, label %ask, label %rest
ask:
  store atomic i64 %own.mark, ptr %asked.p monotonic, align 8
  %now = call i64 @weft_time()
  ret i64 %now
rest:
  %round1 = add i64 %round, 1
  %long = icmp ugt i64 %round1, $limits.TURN_NAPS
  br i1 %long, label %done, label %nap
nap:
  %ns = mul i64 %round1, $limits.TURN_NAP_NS
  call void @doze(i64 %ns)
  br label %join
hit:
  %misses = call i64 @word(ptr @"at words turns", i64 $turns.MISSES)
  %none = icmp eq i64 %misses, 0
  br i1 %none, label %done, label %fewer
fewer:
  %misses.less = sub i64 %misses, 1
  call void @set.word(ptr @"at words turns", i64 $turns.MISSES, i64 %misses.less)
  br label %done
done:
  ret i64 0
}

; The lock that was asked for then has been given. If that was at once, it was free, and whoever came back last may be
; waiting for something without it: where that is so too often, nobody waits here for some launches.
define void @weft_asked(i64 %then) {
entry:
  %now = call i64 @weft_time()
  %took = sub i64 %now, %then
  %blocked = icmp sgt i64 %took, $limits.TURN_FREE_NS
  br i1 %blocked, label %done, label %miss
miss:
  %misses = call i64 @word(ptr @"at words turns", i64 $turns.MISSES)
  %more = add i64 %misses, $limits.TURN_MISS
  %often = icmp ugt i64 %more, $limits.TURN_PAUSE
  %half = lshr i64 %more, 1
  %kept = select i1 %often, i64 %half, i64 %more
  call void @set.word(ptr @"at words turns", i64 $turns.MISSES, i64 %kept)
  br i1 %often, label %stop, label %done
stop:
  call void @set.word(ptr @"at words turns", i64 $turns.PAUSE, i64 $limits.TURN_PAUSE)
  br label %done
done:
  ret void
}

; Where a place in the row is; before the first is the turn itself.
define internal ptr @place(i64 %number) alwaysinline {
  %place = getelementptr [$pool.LINE x i8], ptr @"at words turns", i64 %number
  %word = getelementptr i64, ptr %place, i64 $turns.PLACES
  %next = icmp slt i64 %number, 0
  %turn = getelementptr i64, ptr @"at words turns", i64 $turns.HOLDER
  %where = select i1 %next, ptr %turn, ptr %word
  ret ptr %where
}

; Take a place, or the turn, for this thread; false where another has it, whose line is left to it.
define internal i1 @occupy(ptr %place, i64 %thread) alwaysinline {
entry:
  %other = load atomic i64, ptr %place monotonic, align 8
  %free = icmp eq i64 %other, 0
  br i1 %free, label %take, label %done
take:
  %pair = cmpxchg ptr %place, i64 0, i64 %thread acquire monotonic
  %taken = extractvalue { i64, i1 } %pair, 1
  br label %done
done:
  %mine = phi i1 [ false, %entry ], [ %taken, %take ]
  ret i1 %mine
}

; Wait busily, from the last place on; whether it is the turn of this thread. Its place is another's then.
define internal i1 @await_turn(i64 %thread) {
entry:
  %begun = call i64 @weft_time()
  br label %stand
stand:
  %number = phi i64 [ $limits.TURN_LAST, %entry ], [ %before, %move ]
  %mine = call ptr @place(i64 %number)
  %before = sub i64 %number, 1
  %next = call ptr @place(i64 %before)
  br label %look
look:
  %other = load atomic i64, ptr %next monotonic, align 8
  %free = icmp eq i64 %other, 0
  br i1 %free, label %take, label %spin
spin:
  call i1 @spin(ptr %next, i64 %other, i64 %begun, i64 $limits.SPIN_NS)
  %now = call i64 @weft_time()
  %spent = sub i64 %now, %begun
  %over = icmp ugt i64 %spent, $limits.SPIN_NS
  br i1 %over, label %tire, label %look
take:
  %moved = call i1 @occupy(ptr %next, i64 %thread)
  br i1 %moved, label %move, label %look
move:
  store atomic i64 0, ptr %mine release, align 8
  %turn = icmp slt i64 %before, 0
  br i1 %turn, label %done, label %stand
tire:
  store atomic i64 0, ptr %mine release, align 8
  br label %done
done:
  %got = phi i1 [ true, %move ], [ false, %tire ]
  ret i1 %got
}
