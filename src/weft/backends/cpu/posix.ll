; What native code asks of a system with POSIX threads; `windows.ll` has the same for Windows. A monitor is a mutex, and
; CONDITION bytes behind it a condition. Pointers, times and the numbers of threads have 64 bits here.

define internal void @lock(ptr %monitor) alwaysinline {
  call i32 @"at system pthread_mutex_lock"(ptr %monitor)
  ret void
}

define internal void @unlock(ptr %monitor) alwaysinline {
  call i32 @"at system pthread_mutex_unlock"(ptr %monitor)
  ret void
}

; Sleep, without the lock, until a signal.
define internal void @wait(ptr %monitor) alwaysinline {
  %condition = getelementptr i8, ptr %monitor, i64 $pool.CONDITION
  call i32 @"at system pthread_cond_wait"(ptr %condition, ptr %monitor)
  ret void
}

define internal void @signal(ptr %monitor) alwaysinline {
  %condition = getelementptr i8, ptr %monitor, i64 $pool.CONDITION
  call i32 @"at system pthread_cond_signal"(ptr %condition)
  ret void
}

; The same for %ns at most; longer if the clock is set back.
define internal void @nap(ptr %monitor, i64 %ns) {
  %until = alloca [2 x i64], align 8 ; struct timespec
  call i32 @"at system clock_gettime"(i32 0, ptr %until)
  %second = call i64 @get(ptr %until, i64 0)
  %part = call i64 @get(ptr %until, i64 8)
  %end = add i64 %part, %ns
  %more = udiv i64 %end, 1000000000
  %rest = urem i64 %end, 1000000000
  %last = add i64 %second, %more
  call void @set(ptr %until, i64 0, i64 %last)
  call void @set(ptr %until, i64 8, i64 %rest)
  %condition = getelementptr i8, ptr %monitor, i64 $pool.CONDITION
  call i32 @"at system pthread_cond_timedwait"(ptr %condition, ptr %monitor, ptr %until)
  ret void
}

; Sleep for about so long.
define internal void @doze(i64 %ns) {
  %time = alloca [2 x i64], align 8 ; struct timespec
  call void @set(ptr %time, i64 0, i64 0)
  call void @set(ptr %time, i64 8, i64 %ns)
  call i32 @"at system nanosleep"(ptr %time, ptr null)
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
