; A grid on this machine's processors, as a plan of `calls` says it.

; Run a grid whose sizes are in the state. False where an exception is set.
define i1 @weft_run_grid(ptr %plan, ptr %state, ptr %slots) {
entry:
  %mine = alloca [2 x i64], align 8
  %table = call ptr @word.ptr(ptr %plan, i64 $plan.TABLE)
  call void @set.ptr(ptr %state, i64 $state.TABLE, ptr %table)
  %nx = call i64 @get.i32(ptr %state, i64 $state.NX)
  %ny = call i64 @get.i32(ptr %state, i64 $state.NY)
  %nz = call i64 @get.i32(ptr %state, i64 $state.NZ)
  %layer = mul i64 %nx, %ny
  %total = mul i64 %layer, %nz
  %none = icmp eq i64 %total, 0
  br i1 %none, label %done, label %begin
begin:
  call void @set(ptr %state, i64 $state.TOTAL, i64 %total)
  call void @set(ptr %state, i64 $state.CHUNK, i64 %total)
  %count = call i64 @word(ptr %plan, i64 $plan.SLOTS)
  %report = getelementptr i64, ptr %slots, i64 %count ; of a kernel with checks
  store [$state.REPORT_WORDS x i64] zeroinitializer, ptr %report
  %words = add i64 %count, $state.REPORT_WORDS
  %bytes.slots = mul i64 %words, 8
  %bytes = add i64 %bytes.slots, $state.STATE_BYTES
  %wait.fn = call ptr @word.ptr(ptr %plan, i64 $plan.WAIT)
  %alone = icmp eq ptr %wait.fn, null
  br i1 %alone, label %room, label %wait
wait: ; Python runs programs that may wait for each other, in memory of its own
  %copied = call ptr @"at python PyBytes_FromStringAndSize"(ptr %state, i64 %bytes)
  %waited = call i1 @hand(ptr %wait.fn, ptr %copied)
  ret i1 %waited
room:
  %taken = call i1 @take(ptr %plan, ptr %mine)
  br i1 %taken, label %run, label %raised
run:
  %over = call i1 @run_programs(ptr %plan, ptr %state, ptr %slots, ptr %mine)
  call void @give(ptr %mine)
  br i1 %over, label %look, label %raised
look:
  %error = call i64 @get(ptr %state, i64 $state.ERROR)
  %failed = icmp ne i64 %error, 0
  br i1 %failed, label %fail, label %done
fail: ; Python raises what the state says
  %fail.fn = call ptr @word.ptr(ptr %plan, i64 $plan.FAIL)
  %told = call ptr @"at python PyBytes_FromStringAndSize"(ptr %state, i64 %bytes)
  %fine = call i1 @hand(ptr %fail.fn, ptr %told)
  ret i1 %fine
raised:
  ret i1 false
done:
  ret i1 true
}

; Hand the bytes of scratch memory that a plan needs to one of its functions; false where an exception is set.
define internal i1 @hand.bytes(ptr %plan, i64 %which) {
  %function = call ptr @word.ptr(ptr %plan, i64 %which)
  %bytes = call i64 @word(ptr %plan, i64 $plan.SCRATCH)
  %number = call ptr @"at python PyLong_FromLongLong"(i64 %bytes)
  %done = call i1 @hand(ptr %function, ptr %number)
  ret i1 %done
}

; Take the last of the free blocks of scratch memory (`pool.scratch`): its address and its bytes, 0 and 0 where none is
; needed. Python makes one where none is free or large enough. False where an exception is set.
define internal i1 @take(ptr %plan, ptr %mine) alwaysinline {
entry:
  store [2 x i64] zeroinitializer, ptr %mine
  %needed = call i64 @word(ptr %plan, i64 $plan.SCRATCH)
  %none = icmp eq i64 %needed, 0
  br i1 %none, label %yes, label %find
find:
  %count = load i64, ptr @"at words scratch"
  %last = mul i64 %count, 2
  %bytes = call i64 @word(ptr @"at words scratch", i64 %last) ; the count itself, 0, where none is free
  %large = icmp sge i64 %bytes, %needed
  br i1 %large, label %take, label %make
make:
  %made = call i1 @hand.bytes(ptr %plan, i64 $plan.ROOM)
  br i1 %made, label %find, label %no
take:
  %rest = sub i64 %count, 1
  store i64 %rest, ptr @"at words scratch"
  %first = sub i64 %last, 1
  %address = call i64 @word(ptr @"at words scratch", i64 %first)
  call void @set.word(ptr %mine, i64 0, i64 %address)
  call void @set.word(ptr %mine, i64 1, i64 %bytes)
  br label %yes
yes:
  ret i1 true
no:
  ret i1 false
}

; Put a block back, unless enough are free.
define internal void @give(ptr %mine) alwaysinline {
entry:
  %bytes = call i64 @word(ptr %mine, i64 1)
  %some = icmp ne i64 %bytes, 0
  %count = load i64, ptr @"at words scratch"
  %few = icmp slt i64 %count, $scratch.MOST
  %back = and i1 %some, %few
  br i1 %back, label %push, label %done
push:
  %more = add i64 %count, 1
  store i64 %more, ptr @"at words scratch"
  %last = mul i64 %more, 2
  %first = sub i64 %last, 1
  %address = call i64 @word(ptr %mine, i64 0)
  call void @set.word(ptr @"at words scratch", i64 %first, i64 %address)
  call void @set.word(ptr @"at words scratch", i64 %last, i64 %bytes)
  br label %done
done:
  ret void
}

; Run all programs of a state, with workers where they pay, without the interpreter's lock where it takes long. False
; where an exception is set.
define internal i1 @run_programs(ptr %plan, ptr %state, ptr %slots, ptr %mine) alwaysinline {
entry:
  %record = call ptr @word.ptr(ptr %plan, i64 $plan.RECORD)
  %needed = call i64 @word(ptr %plan, i64 $plan.SCRATCH)
  %scratch = call ptr @word.ptr(ptr %mine, i64 0)
  br label %again
again:
  %next = call i64 @get(ptr %state, i64 $state.NEXT)
  %total = call i64 @get(ptr %state, i64 $state.TOTAL)
  %left = sub i64 %total, %next
  %wanted = call i64 @"at code wanted"(ptr %record, i64 %left)
  %helped = icmp sgt i64 %wanted, 0
  br i1 %helped, label %help, label %alone
help:
  %ready = call i32 @"at code ready"(i64 %needed)
  %are.ready = icmp ne i32 %ready, 0
  br i1 %are.ready, label %free, label %prepare
prepare:
  %prepared = call i1 @hand.bytes(ptr %plan, i64 $plan.PREPARE)
  br i1 %prepared, label %free, label %raised
alone:
  %ns = call double @word.double(ptr %record, i64 $record.NS)
  %count = sitofp i64 %left to double
  %work = fmul double %ns, %count
  %known = fcmp ogt double %ns, 0.0
  %short = fcmp olt double %work, $limits.HOLD_NS
  %held = and i1 %known, %short
  br i1 %held, label %hold, label %free
hold:
  %more.held = call i32 @"at code grid"(ptr %record, ptr %slots, ptr %state, ptr %scratch, i64 %wanted)
  br label %ran
free:
  %thread = call ptr @"at python PyEval_SaveThread"()
  call void @"at code leave"(ptr %thread)
  %more.free = call i32 @"at code grid"(ptr %record, ptr %slots, ptr %state, ptr %scratch, i64 %wanted)
  %then = call i64 @"at code return"(ptr %thread)
  call void @"at python PyEval_RestoreThread"(ptr %thread)
  store ptr %thread, ptr getelementptr (i64, ptr @"at words turns", i64 $turns.HOLDER)
  %has.turn = icmp eq i64 %then, 0
  br i1 %has.turn, label %ran, label %told
told:
  call void @"at code asked"(i64 %then)
  br label %ran
ran:
  %more = phi i32 [ %more.held, %hold ], [ %more.free, %free ], [ %more.free, %told ]
  %is.more = icmp ne i32 %more, 0
  br i1 %is.more, label %again, label %done
done:
  ret i1 true
raised:
  ret i1 false
}
