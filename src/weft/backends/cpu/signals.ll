; How native code lets Python handle its signals, and print: `signals` says when and why.

; Whether to leave the program: 1, or 0. First let another thread have the core: one that this one may wait for.
define i32 @weft_poll(ptr %state) {
  call void @yield()
  %leave = call i32 @look(ptr %state)
  ret i32 %leave
}

; The same in a program that waits for nobody, which keeps the core that it has.
define i32 @weft_look(ptr %state) {
  %leave = call i32 @look(ptr %state)
  ret i32 %leave
}

define internal i32 @look(ptr %state) {
entry:
  %error = getelementptr i8, ptr %state, i64 $state.ERROR
  %left = call i1 @is.left(ptr %state)
  br i1 %left, label %leave, label %around
around: ; is this the state of a thread in a launch that is left?
  %whole = call ptr @get.ptr(ptr %state, i64 $state.WHOLE)
  %is.whole = icmp eq ptr %whole, null
  br i1 %is.whole, label %who, label %ask
ask:
  %all.left = call i1 @is.left(ptr %whole)
  br i1 %all.left, label %follow, label %who
follow:
  atomicrmw or ptr %error, i64 $signals.LEAVE monotonic
  br label %leave
who:
  %thread = call i64 @thread()
  %main = call i64 @get(ptr @"at words signals", i64 $signals.MAIN)
  %is.main = icmp eq i64 %thread, %main
  br i1 %is.main, label %when, label %stay
when:
  %now = call i64 @weft_time()
  %last = call i64 @get(ptr @"at words signals", i64 $signals.LAST)
  %passed = sub i64 %now, %last
  %soon = icmp ult i64 %passed, $signals.INTERVAL_NS
  br i1 %soon, label %stay, label %handle
handle:
  call void @set(ptr @"at words signals", i64 $signals.LAST, i64 %now)
  %lock = call i32 @"at python PyGILState_Ensure"()
  %handled = call i32 @"at python PyErr_CheckSignals"()
  %fine = icmp eq i32 %handled, 0
  br i1 %fine, label %unlock, label %raised
raised:
  call void @keep(ptr %state)
  br label %unlock
unlock:
  %answer = phi i32 [ 0, %handle ], [ 1, %raised ]
  call void @"at python PyGILState_Release"(i32 %lock)
  ret i32 %answer
leave:
  ret i32 1
stay:
  ret i32 0
}

; Whether a launch is being left.
define internal i1 @is.left(ptr %state) alwaysinline {
  %error.p = getelementptr i8, ptr %state, i64 $state.ERROR
  %error = load atomic i64, ptr %error.p monotonic, align 8
  %left = icmp slt i64 %error, 0
  ret i1 %left
}

; Keep what was raised, in place of what nobody came for; and mark the state.
define internal void @keep(ptr %state) {
  %kind = getelementptr i8, ptr @"at words signals", i64 $signals.KIND
  %value = getelementptr i8, ptr @"at words signals", i64 $signals.VALUE
  %traceback = getelementptr i8, ptr @"at words signals", i64 $signals.TRACEBACK
  %old.kind = load ptr, ptr %kind
  %old.value = load ptr, ptr %value
  %old.traceback = load ptr, ptr %traceback
  call void @"at python Py_DecRef"(ptr %old.kind)
  call void @"at python Py_DecRef"(ptr %old.value)
  call void @"at python Py_DecRef"(ptr %old.traceback)
  call void @"at python PyErr_Fetch"(ptr %kind, ptr %value, ptr %traceback)
  %error = getelementptr i8, ptr %state, i64 $state.ERROR
  atomicrmw or ptr %error, i64 $signals.LEAVE monotonic
  ret void
}

@four.numbers = private constant [5 x i8] c"LLLL\00"

; Call what the state has for printing, a Python function of four numbers, unless the launch is being left.
define void @weft_print(ptr %state, i64 %index, i64 %program, ptr %data, i64 %size) {
entry:
  %left = call i1 @is.left(ptr %state)
  br i1 %left, label %done, label %print
print:
  %printer = call ptr @get.ptr(ptr %state, i64 $state.PRINTER)
  %lock = call i32 @"at python PyGILState_Ensure"()
  %answer = call ptr (ptr, ptr, ...) @"at python PyObject_CallFunction"(
    ptr %printer, ptr @four.numbers, i64 %index, i64 %program, ptr %data, i64 %size)
  %raised = icmp eq ptr %answer, null
  br i1 %raised, label %keep, label %drop
keep:
  call void @keep(ptr %state)
  br label %unlock
drop:
  call void @"at python Py_DecRef"(ptr %answer)
  br label %unlock
unlock:
  call void @"at python PyGILState_Release"(i32 %lock)
  br label %done
done:
  ret void
}
