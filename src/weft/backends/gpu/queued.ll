; A launch on a GPU, as a plan of `calls` says it: `queued` says what the words of a queue are.

; Queue a grid whose sizes are in the state. False where an exception is set.
define i1 @weft_queue(ptr %plan, ptr %state, ptr %slots) {
entry:
  %config = alloca [$queue.CONFIG_WORDS x i64], align 16
  %maps = alloca [$queue.MOST_MAPS x [$lookup.BYTES x i8]], align 64
  %programs = alloca i64, align 8
  %queue = call ptr @word.ptr(ptr %plan, i64 $plan.QUEUE)
  %nx = call i64 @get.i32(ptr %state, i64 $state.NX)
  %ny = call i64 @get.i32(ptr %state, i64 $state.NY)
  %nz = call i64 @get.i32(ptr %state, i64 $state.NZ)
  %layer = mul i64 %nx, %ny
  %total = mul i64 %layer, %nz
  %none = icmp eq i64 %total, 0
  br i1 %none, label %done, label %look
look:
  %found = call i32 @look_up(ptr %queue, ptr %slots, ptr %maps)
  switch i32 %found, label %raised [ i32 0, label %note i32 1, label %other ]
other: ; Python launches what needs no maps
  %told = call i1 @instead(ptr %plan, ptr %queue, i64 %nx, i64 %ny, i64 %nz, ptr %slots)
  ret i1 %told
note:
  %noted = call i1 @note(ptr %queue, i64 %nx, i64 %ny, i64 %nz)
  br i1 %noted, label %where, label %raised
where:
  %ask = call ptr @word.ptr(ptr %queue, i64 $queue.STREAM)
  %handle = call ptr @"at python PyObject_CallNoArgs"(ptr %ask)
  %unknown = icmp eq ptr %handle, null
  br i1 %unknown, label %raised, label %write
write: ; what the configuration has that is the same for all launches, and then the rest
  %fixed = getelementptr i64, ptr %queue, i64 $queue.CONFIG
  %same = load [$queue.CONFIG_WORDS x i64], ptr %fixed
  store [$queue.CONFIG_WORDS x i64] %same, ptr %config
  %sizes = getelementptr i8, ptr %state, i64 $state.NX
  %grid = load [3 x i32], ptr %sizes
  store [3 x i32] %grid, ptr %config
  %each = call i64 @word(ptr %queue, i64 $queue.EACH)
  %at.a.time = call i64 @word(ptr %queue, i64 $queue.AT_A_TIME)
  %plane = mul i64 %ny, %nz
  %before = sub i64 %each, 1
  %rounded = add i64 %nx, %before
  %least = udiv i64 %rounded, %each ; blocks, with as many programs each as may be: see `blocks_along_x`
  %room = udiv i64 %at.a.time, %plane
  %is.more = icmp ugt i64 %room, %least
  %blocks = select i1 %is.more, i64 %room, i64 %least
  %are.fewer = icmp ult i64 %blocks, %nx
  %started = select i1 %are.fewer, i64 %blocks, i64 %nx
  %started.x = trunc i64 %started to i32
  store i32 %started.x, ptr %config
  store i64 %nx, ptr %programs
  %stream = call i64 @"at python PyLong_AsUnsignedLongLongMask"(ptr %handle)
  call void @set(ptr %config, i64 $queue.STREAM_AT, i64 %stream)
  call void @"at python Py_DecRef"(ptr %handle)
  br label %try
try:
  %tries = phi i64 [ 0, %write ], [ %tries1, %again ]
  %status = call i32 @launch(ptr %queue, ptr %config, ptr %slots, ptr %maps, ptr %programs)
  %failed = icmp ne i32 %status, 0
  br i1 %failed, label %tell, label %done
tell: ; Python raises what the status says, unless the launch is to be tried once more
  %tries1 = add i64 %tries, 1
  %wide = zext i32 %status to i64
  %fail = call ptr @word.ptr(ptr %queue, i64 $queue.FAIL)
  %status.object = call ptr @"at python PyLong_FromLongLong"(i64 %wide)
  %tries.object = call ptr @"at python PyLong_FromLongLong"(i64 %tries)
  %answer = call ptr (ptr, ...) @"at python PyObject_CallFunctionObjArgs"(
    ptr %fail, ptr %status.object, ptr %tries.object, ptr null)
  call void @"at python Py_DecRef"(ptr %status.object)
  call void @"at python Py_DecRef"(ptr %tries.object)
  %is.told = icmp eq ptr %answer, null
  br i1 %is.told, label %raised, label %again
again:
  call void @"at python Py_DecRef"(ptr %answer)
  br label %try
raised:
  ret i1 false
done:
  ret i1 true
}

; Hand a launch to the driver, in the context of its GPU, without the interpreter's lock: the driver waits where its
; queue is full. The driver's status.
define internal i32 @launch(ptr %queue, ptr %config, ptr %slots, ptr %maps, ptr %programs) {
entry:
  %parameters = alloca [$queue.MOST_POINTERS x ptr], align 8
  %now.at = alloca i64, align 8
  %places = call ptr @word.ptr(ptr %queue, i64 $queue.PLACES)
  %count = call i64 @word(ptr %queue, i64 $queue.PARAMETERS)
  br label %next
next:
  %k = phi i64 [ 0, %entry ], [ %k1, %point ]
  %more = icmp slt i64 %k, %count
  br i1 %more, label %point, label %leave
point:
  %place = call i64 @word(ptr %places, i64 %k)
  %number = sub i64 -1, %place
  %slot = getelementptr i64, ptr %slots, i64 %place
  %map = getelementptr [$lookup.BYTES x i8], ptr %maps, i64 %number
  %is.slot = icmp sge i64 %place, 0
  %at = select i1 %is.slot, ptr %slot, ptr %map
  %parameter = getelementptr ptr, ptr %parameters, i64 %k
  store ptr %at, ptr %parameter
  %k1 = add i64 %k, 1
  br label %next
leave: ; one more, which a kernel has whose blocks execute several programs
  %last = getelementptr ptr, ptr %parameters, i64 %count
  store ptr %programs, ptr %last
  %function = call ptr @word.ptr(ptr %queue, i64 $queue.FUNCTION)
  %kernel = call ptr @word.ptr(ptr %queue, i64 $queue.KERNEL)
  %context = call i64 @word(ptr %queue, i64 $queue.CONTEXT)
  %thread = call ptr @"at python PyEval_SaveThread"()
  %only = icmp eq i64 %context, 0
  br i1 %only, label %here, label %where
where:
  %current = call ptr @word.ptr(ptr %queue, i64 $queue.CURRENT)
  store i64 0, ptr %now.at
  call i32 %current(ptr %now.at)
  %now = load i64, ptr %now.at
  %is.here = icmp eq i64 %now, %context
  br i1 %is.here, label %here, label %there
here:
  %status.here = call i32 %function(ptr %config, ptr %kernel, ptr %parameters, ptr null)
  br label %return
there:
  %push = call ptr @word.ptr(ptr %queue, i64 $queue.PUSH)
  %pushed = call i32 %push(i64 %context)
  %entered = icmp eq i32 %pushed, 0
  br i1 %entered, label %in, label %return
in:
  %status.there = call i32 %function(ptr %config, ptr %kernel, ptr %parameters, ptr null)
  %pop = call ptr @word.ptr(ptr %queue, i64 $queue.POP)
  call i32 %pop(ptr %now.at)
  br label %return
return:
  %status = phi i32 [ %status.here, %here ], [ %pushed, %there ], [ %status.there, %in ]
  call void @"at python PyEval_RestoreThread"(ptr %thread)
  ret i32 %status
}

; Find the tensor maps of a launch by the values that they are made of, and copy them to where parameters are. 0: all are
; there; 1: there is none for these values; 2: an exception is set.
define internal i32 @look_up(ptr %queue, ptr %slots, ptr %maps) {
entry:
  %first = call ptr @word.ptr(ptr %queue, i64 $queue.LOOKUPS)
  %last = call ptr @word.ptr(ptr %queue, i64 $queue.LOOKUPS_END)
  br label %next
next:
  %row = phi ptr [ %first, %entry ], [ %row1, %copied ]
  %more = icmp ne ptr %row, %last
  br i1 %more, label %key, label %all
key:
  %key.new = call ptr @values(ptr %row, ptr %slots)
  %no.key = icmp eq ptr %key.new, null
  br i1 %no.key, label %raised, label %find
find:
  %table = call ptr @word.ptr(ptr %row, i64 $lookup.TABLE)
  %made = call ptr @"at python PyObject_GetItem"(ptr %table, ptr %key.new)
  call void @"at python Py_DecRef"(ptr %key.new)
  %failed = icmp eq ptr %made, null
  br i1 %failed, label %raised, label %look
look:
  %is.none = icmp eq ptr %made, @"at object None"
  br i1 %is.none, label %none, label %begin
begin:
  %from = call ptr @"at python PyBytes_AsString"(ptr %made)
  %count = call i64 @word(ptr %row, i64 $lookup.MAPS)
  %number = call i64 @word(ptr %row, i64 $lookup.FIRST_MAP)
  %to = getelementptr [$lookup.BYTES x i8], ptr %maps, i64 %number
  br label %copy
copy:
  %k = phi i64 [ 0, %begin ], [ %k1, %copy ]
  %source = getelementptr [$lookup.BYTES x i8], ptr %from, i64 %k
  %target = getelementptr [$lookup.BYTES x i8], ptr %to, i64 %k
  %map = load [$lookup.WORDS x i64], ptr %source, align 1
  store [$lookup.WORDS x i64] %map, ptr %target
  %k1 = add i64 %k, 1
  %several = icmp slt i64 %k1, %count
  br i1 %several, label %copy, label %copied
copied:
  call void @"at python Py_DecRef"(ptr %made)
  %row1 = getelementptr i64, ptr %row, i64 $lookup.SIZE
  br label %next
none:
  call void @"at python Py_DecRef"(ptr %made)
  ret i32 1
raised:
  ret i32 2
all:
  ret i32 0
}

; The values that a row of maps is made of, as a new tuple; null where an exception is set.
define internal ptr @values(ptr %row, ptr %slots) {
entry:
  %numbers = call ptr @word.ptr(ptr %row, i64 $lookup.NUMBERS)
  %count = call i64 @word(ptr %row, i64 $lookup.COUNT)
  %tuple = call ptr @"at python PyTuple_New"(i64 %count)
  %none = icmp eq ptr %tuple, null
  br i1 %none, label %done, label %next
next:
  %k = phi i64 [ 0, %entry ], [ %k1, %put ]
  %more = icmp slt i64 %k, %count
  br i1 %more, label %make, label %done
make:
  %slot = call i64 @word(ptr %numbers, i64 %k)
  %value = call i64 @word(ptr %slots, i64 %slot)
  %number = call ptr @"at python PyLong_FromLongLong"(i64 %value)
  %no.memory = icmp eq ptr %number, null
  br i1 %no.memory, label %drop, label %put
put:
  call i32 @"at python PyTuple_SetItem"(ptr %tuple, i64 %k, ptr %number)
  %k1 = add i64 %k, 1
  br label %next
drop:
  call void @"at python Py_DecRef"(ptr %tuple)
  br label %done
done:
  %made = phi ptr [ %tuple, %entry ], [ %tuple, %next ], [ null, %drop ]
  ret ptr %made
}

; Have Python launch, with the sizes of the grid and the bytes of the slots. False where an exception is set.
define internal i1 @instead(ptr %plan, ptr %queue, i64 %nx, i64 %ny, i64 %nz, ptr %slots) {
  %function = call ptr @word.ptr(ptr %queue, i64 $queue.INSTEAD)
  %count = call i64 @word(ptr %plan, i64 $plan.SLOTS)
  %bytes = mul i64 %count, 8
  %grid = call ptr (ptr, ...) @"at python Py_BuildValue"(ptr @sizes, i64 %nx, i64 %ny, i64 %nz)
  %values = call ptr @"at python PyBytes_FromStringAndSize"(ptr %slots, i64 %bytes)
  %answer = call ptr (ptr, ...) @"at python PyObject_CallFunctionObjArgs"(
    ptr %function, ptr %grid, ptr %values, ptr null)
  call void @"at python Py_DecRef"(ptr %grid)
  call void @"at python Py_DecRef"(ptr %values)
  call void @"at python Py_DecRef"(ptr %answer)
  %done = icmp ne ptr %answer, null
  ret i1 %done
}

@sizes = private constant [6 x i8] c"(LLL)\00"

; Note a launch, its name and grid, for errors that are found later; a grid like that of the last launch has its tuple.
; False where an exception is set.
define internal i1 @note(ptr %queue, i64 %nx, i64 %ny, i64 %nz) {
entry:
  %list = call ptr @word.ptr(ptr %queue, i64 $queue.NOTED)
  %far = shl i64 %ny, 32
  %plane = or i64 %nx, %far
  %plane.before = call i64 @word(ptr %queue, i64 $queue.PLANE)
  %nz.before = call i64 @word(ptr %queue, i64 $queue.LAYERS)
  %same.plane = icmp eq i64 %plane, %plane.before
  %same.nz = icmp eq i64 %nz, %nz.before
  %same = and i1 %same.plane, %same.nz
  br i1 %same, label %note, label %make
make:
  %name = call ptr @word.ptr(ptr %queue, i64 $queue.NAME)
  %made = call ptr (ptr, ...) @"at python Py_BuildValue"(ptr @name.and.sizes, ptr %name, i64 %nx, i64 %ny, i64 %nz)
  %none = icmp eq ptr %made, null
  br i1 %none, label %raised, label %keep
keep:
  call i32 @"at python PyList_SetItem"(ptr %list, i64 0, ptr %made)
  call void @set.word(ptr %queue, i64 $queue.PLANE, i64 %plane)
  call void @set.word(ptr %queue, i64 $queue.LAYERS, i64 %nz)
  br label %note
note:
  %told = call ptr @"at python PyList_GetItem"(ptr %list, i64 0)
  %function = call ptr @word.ptr(ptr %queue, i64 $queue.NOTE)
  %answer = call ptr @"at python PyObject_CallOneArg"(ptr %function, ptr %told)
  %failed = icmp eq ptr %answer, null
  br i1 %failed, label %raised, label %drop
drop:
  call void @"at python Py_DecRef"(ptr %answer)
  ret i1 true
raised:
  ret i1 false
}

@name.and.sizes = private constant [7 x i8] c"(OLLL)\00"
