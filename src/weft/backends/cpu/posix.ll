; What native code asks of a system with POSIX threads; `windows.ll` has the same for Windows. A mutex and a condition
; have 64 bits a word here, as pointers, times and the numbers of threads have.

define internal void @lock(ptr %pool) alwaysinline {
  %mutex = getelementptr i8, ptr %pool, i64 $pool.MUTEX
  call i32 @"at system pthread_mutex_lock"(ptr %mutex)
  ret void
}

define internal void @unlock(ptr %pool) alwaysinline {
  %mutex = getelementptr i8, ptr %pool, i64 $pool.MUTEX
  call i32 @"at system pthread_mutex_unlock"(ptr %mutex)
  ret void
}

; Sleep, without the lock, until a condition is told.
define internal void @wait(ptr %pool, ptr %condition) alwaysinline {
  %mutex = getelementptr i8, ptr %pool, i64 $pool.MUTEX
  call i32 @"at system pthread_cond_wait"(ptr %condition, ptr %mutex)
  ret void
}

define internal void @signal(ptr %condition) alwaysinline {
  call i32 @"at system pthread_cond_signal"(ptr %condition)
  ret void
}

; Sleep, without the lock, until a job is said to be done, or for INTERVAL_NS; longer if the clock is set back.
define internal void @nap(ptr %pool) {
  %until = alloca [2 x i64], align 8 ; struct timespec
  call i32 @"at system clock_gettime"(i32 0, ptr %until)
  %second = call i64 @get(ptr %until, i64 0)
  %part = call i64 @get(ptr %until, i64 8)
  %end = add i64 %part, $signals.INTERVAL_NS
  %more = udiv i64 %end, 1000000000
  %rest = urem i64 %end, 1000000000
  %last = add i64 %second, %more
  call void @set(ptr %until, i64 0, i64 %last)
  call void @set(ptr %until, i64 8, i64 %rest)
  %mutex = getelementptr i8, ptr %pool, i64 $pool.MUTEX
  %done = getelementptr i8, ptr %pool, i64 $pool.DONE
  call i32 @"at system pthread_cond_timedwait"(ptr %done, ptr %mutex, ptr %until)
  ret void
}

; Nanoseconds of the clock that never goes back: what kernels take for a GPU's timer.
define i64 @weft_time() {
  %time = alloca [2 x i64], align 8 ; struct timespec
  call i32 @"at system clock_gettime"(i32 $system.MONOTONIC, ptr %time)
  %second = call i64 @get(ptr %time, i64 0)
  %part = call i64 @get(ptr %time, i64 8)
  %whole = mul i64 %second, 1000000000
  %ns = add i64 %whole, %part
  ret i64 %ns
}

; Let another thread have the core: one that this one may be waiting for.
define internal void @yield() alwaysinline {
  call i32 @"at system sched_yield"()
  ret void
}

; The number that Python has for this thread.
define internal i64 @thread() alwaysinline {
  %number = call i64 @"at python PyThread_get_thread_ident"()
  ret i64 %number
}
