; What native code asks of Windows; `posix.ll` has the same for other systems, and says what each is for. Locks and
; conditions are a word each, of zeros at first; times are milliseconds, so that no nap is a short one.

define internal void @lock(ptr %monitor) alwaysinline {
  call void @"at system AcquireSRWLockExclusive"(ptr %monitor)
  ret void
}

define internal void @unlock(ptr %monitor) alwaysinline {
  call void @"at system ReleaseSRWLockExclusive"(ptr %monitor)
  ret void
}

define internal void @wait(ptr %monitor) alwaysinline {
  %condition = getelementptr i8, ptr %monitor, i64 $pool.CONDITION
  call i32 @"at system SleepConditionVariableSRW"(ptr %condition, ptr %monitor, i32 -1, i32 0) ; for ever
  ret void
}

define internal void @signal(ptr %monitor) alwaysinline {
  %condition = getelementptr i8, ptr %monitor, i64 $pool.CONDITION
  call void @"at system WakeConditionVariable"(ptr %condition)
  ret void
}

define internal void @nap(ptr %monitor, i64 %ns) {
  %condition = getelementptr i8, ptr %monitor, i64 $pool.CONDITION
  %whole = udiv i64 %ns, 1000000
  %ms = trunc i64 %whole to i32
  call i32 @"at system SleepConditionVariableSRW"(ptr %condition, ptr %monitor, i32 %ms, i32 0)
  ret void
}

define internal void @doze(i64 %ns) {
  call void @"at system Sleep"(i32 1)
  ret void
}

define i64 @weft_time() {
  %count.p = alloca i64, align 8
  %frequency.p = alloca i64, align 8
  call i32 @"at system QueryPerformanceCounter"(ptr %count.p)
  call i32 @"at system QueryPerformanceFrequency"(ptr %frequency.p)
  %count = load i64, ptr %count.p
  %frequency = load i64, ptr %frequency.p
  %second = udiv i64 %count, %frequency
  %part = urem i64 %count, %frequency
  %whole = mul i64 %second, 1000000000
  %scaled = mul i64 %part, 1000000000
  %rest = udiv i64 %scaled, %frequency
  %ns = add i64 %whole, %rest
  ret i64 %ns
}

define internal void @yield() alwaysinline {
  call i32 @"at system SwitchToThread"()
  ret void
}

define internal i64 @thread() alwaysinline {
  %number.c = call i32 @"at python PyThread_get_thread_ident"()
  %number = zext i32 %number.c to i64
  ret i64 %number
}
