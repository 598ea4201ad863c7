; What callers and workers do with the words of a pool: `pool_layout` says where each is and what it means.

; Have the workers for this thread; false where another has them. `@release` gives them back.
define internal i1 @claim(ptr %pool) alwaysinline {
  %busy = getelementptr i8, ptr %pool, i64 $pool.BUSY
  %pair = cmpxchg ptr %busy, i64 0, i64 1 acquire monotonic
  %free = extractvalue { i64, i1 } %pair, 1
  ret i1 %free
}

define internal void @release(ptr %pool) alwaysinline {
  %busy = getelementptr i8, ptr %pool, i64 $pool.BUSY
  store atomic i64 0, ptr %busy release, align 8
  ret void
}

; Where the post of a worker is, or of a guest.
define internal ptr @post(ptr %pool, i64 %index) alwaysinline {
  %posts = getelementptr i8, ptr %pool, i64 $pool.POSTS
  %post = getelementptr [$pool.LINE x i8], ptr %posts, i64 %index
  ret ptr %post
}

; Where the monitor that a worker sleeps on is.
define internal ptr @monitor(ptr %pool, i64 %index) alwaysinline {
  %monitors = getelementptr i8, ptr %pool, i64 $pool.MONITORS
  %monitor = getelementptr [$pool.LINE x i8], ptr %monitors, i64 %index
  ret ptr %monitor
}

; Wake who sleeps on a monitor. Who is about to sleep has the lock; who wakes needs it, so it is free by then.
define internal void @rouse(ptr %monitor) {
  call void @lock(ptr %monitor)
  call void @unlock(ptr %monitor)
  call void @signal(ptr %monitor)
  ret void
}

; Where the bit that says whether a worker is awake is: its word, and the bit in it.
define internal ptr @awake.word(ptr %pool, i64 %index) alwaysinline {
  %words = getelementptr i8, ptr %pool, i64 $pool.AWAKE
  %number = lshr i64 %index, 6
  %word = getelementptr i64, ptr %words, i64 %number
  ret ptr %word
}

define internal i64 @awake.bit(i64 %index) alwaysinline {
  %place = and i64 %index, 63
  %bit = shl i64 1, %place
  ret i64 %bit
}

; Wait as long as a word has a value, without a break, until %ns after %begun at most; whether it has another.
define internal i1 @spin(ptr %word, i64 %value, i64 %begun, i64 %ns) {
entry:
  br label %look
look:
  %k = phi i64 [ 0, %entry ], [ %k1, %pause ], [ 0, %clock ]
  %now = load atomic i64, ptr %word seq_cst, align 8
  %same = icmp eq i64 %now, %value
  br i1 %same, label %pause, label %done
pause:
  call void $system.PAUSE
  %k1 = add i64 %k, 1
  %more = icmp ult i64 %k1, $limits.SPINS
  br i1 %more, label %look, label %clock
clock:
  %time = call i64 @weft_time()
  %spent = sub i64 %time, %begun
  %over = icmp ugt i64 %spent, %ns
  br i1 %over, label %done, label %look
done:
  %other = xor i1 %same, true
  ret i1 %other
}
