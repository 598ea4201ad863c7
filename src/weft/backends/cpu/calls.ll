; A launch in native code, from Python's call on: `calls` says what it does, and what a plan is.

; The function that Python calls; %self is (book, what it keeps).
define ptr @weft_call(ptr %self, ptr %args, i64 %count, ptr %names) {
entry:
  %state = alloca [$calls.FRAME_BYTES x i8], align 64
  %slots = getelementptr i8, ptr %state, i64 $state.STATE_BYTES
  %bytes = call ptr @"at python PyTuple_GetItem"(ptr %self, i64 0)
  %book = call ptr @"at python PyByteArray_AsString"(ptr %bytes)
  %first = call ptr @word.ptr(ptr %book, i64 $book.FIRST)
  %bare = icmp eq i64 %count, 0
  br i1 %bare, label %general, label %look
look:
  %plan = phi ptr [ %first, %entry ], [ %next, %other ]
  %last = icmp eq ptr %plan, null
  br i1 %last, label %general, label %match
match: ; what is asked may be Python's, which another thread may use to replace the plan
  %owner = call ptr @word.ptr(ptr %plan, i64 $plan.OWNER)
  call void @"at python Py_IncRef"(ptr %owner)
  %answer = call i32 @match(ptr %plan, ptr %args, i64 %count, ptr %names, ptr %slots)
  switch i32 %answer, label %changed [ i32 0, label %other i32 1, label %fits ]
other:
  %next = call ptr @word.ptr(ptr %plan, i64 $plan.NEXT)
  call void @"at python Py_DecRef"(ptr %owner)
  br label %look
changed:
  call void @"at python Py_DecRef"(ptr %owner)
  br label %general
fits:
  store [$calls.STATE_WORDS x i64] zeroinitializer, ptr %state
  %kernel = call ptr @word.ptr(ptr %plan, i64 $plan.KERNEL)
  call void @"at python Py_IncRef"(ptr %kernel)
  %asked = call i32 @ask(ptr %plan, ptr %args, ptr %state)
  switch i32 %asked, label %odd [ i32 0, label %run i32 1, label %raised ]
run:
  %done = call i1 @between_hooks(ptr %plan, ptr %args, ptr %state, ptr %slots)
  br i1 %done, label %over, label %raised
over:
  call void @"at python Py_DecRef"(ptr %owner)
  ret ptr %kernel
raised:
  call void @"at python Py_DecRef"(ptr %owner)
  call void @"at python Py_DecRef"(ptr %kernel)
  ret ptr null
odd:
  call void @"at python Py_DecRef"(ptr %owner)
  call void @"at python Py_DecRef"(ptr %kernel)
  br label %general
general:
  %function = call ptr @word.ptr(ptr %book, i64 $book.GENERAL)
  %result = call ptr @"at python PyObject_Vectorcall"(ptr %function, ptr %args, i64 %count, ptr %names)
  ret ptr %result
}

; Whether a call is as a plan says: 1, and the slots are filled; or 0; or 2: not so, and as Python has been asked, the
; plans may be others now.
define internal i32 @match(ptr %plan, ptr %args, i64 %count, ptr %names, ptr %slots) {
entry:
  %frame = alloca [4 x ptr], align 8 ; what checks look at
  %parts = alloca [$calls.MOST_PARTS x ptr], align 8
  %spans = alloca [$calls.SPAN_WORDS x i64], align 8
  call void @set.ptr(ptr %frame, i64 $frame.ARGS, ptr %args)
  call void @set.ptr(ptr %frame, i64 $frame.SLOTS, ptr %slots)
  call void @set.ptr(ptr %frame, i64 $frame.PARTS, ptr %parts)
  call void @set.ptr(ptr %frame, i64 $frame.SPANS, ptr %spans)
  %arguments = call i64 @word(ptr %plan, i64 $plan.ARGUMENTS)
  %as.many = icmp eq i64 %count, %arguments
  br i1 %as.many, label %keywords, label %no
keywords:
  %keys = call ptr @word.ptr(ptr %plan, i64 $plan.KEYWORDS)
  %named = icmp ne ptr %keys, %names ; both are null, as a rule
  br i1 %named, label %compare, label %checks
compare:
  %alike = call i1 @same_names(ptr %keys, ptr %names)
  br i1 %alike, label %checks, label %no
checks:
  %check = call ptr @word.ptr(ptr %plan, i64 $plan.CHECKS)
  %pair = call ptr @word.ptr(ptr %plan, i64 $plan.PAIRS)
  %fine = call i1 @all(ptr %check, ptr %pair, i64 $check.SIZE, ptr @check, ptr %frame)
  br i1 %fine, label %pairs, label %no
pairs:
  %watched = call ptr @word.ptr(ptr %plan, i64 $plan.WATCHED)
  %apart = call i1 @all(ptr %pair, ptr %watched, i64 6, ptr @apart, ptr %frame)
  br i1 %apart, label %watch, label %no
watch:
  %list = call ptr @word.ptr(ptr %plan, i64 $plan.LISTS)
  %same = call i1 @all(ptr %watched, ptr %list, i64 3, ptr @unchanged, ptr %frame)
  br i1 %same, label %lists, label %no
lists:
  %name = call ptr @word.ptr(ptr %plan, i64 $plan.NAMES)
  %full = call i1 @all(ptr %list, ptr %name, i64 2, ptr @as_full, ptr %frame)
  br i1 %full, label %captures, label %no
captures:
  %has.changed = call ptr @word.ptr(ptr %plan, i64 $plan.CHANGED)
  %known = icmp eq ptr %has.changed, null
  br i1 %known, label %yes, label %ask
ask:
  %answer = call ptr @"at python PyObject_CallNoArgs"(ptr %has.changed)
  %raised = icmp eq ptr %answer, null
  br i1 %raised, label %clear, label %answered
answered:
  call void @"at python Py_DecRef"(ptr %answer)
  %is.same = icmp eq ptr %answer, @"at object False"
  br i1 %is.same, label %yes, label %changed
clear:
  call void @"at python PyErr_Clear"()
  br label %changed
yes:
  ret i32 1
changed:
  ret i32 2
no:
  ret i32 0
}

; Whether something holds for all rows of some words each. The next row is stored at once: as this code is not
; optimised, each row would else wait for the one before.
define internal i1 @all(ptr %from, ptr %to, i64 %words, ptr %holds, ptr %frame) alwaysinline {
entry:
  %cursor = alloca ptr, align 8
  store ptr %from, ptr %cursor
  br label %next
next:
  %row = load ptr, ptr %cursor
  %more = icmp ne ptr %row, %to
  br i1 %more, label %look, label %done
look:
  %row1 = getelementptr i64, ptr %row, i64 %words
  store ptr %row1, ptr %cursor
  %fine = call i1 %holds(ptr %row, ptr %frame)
  br i1 %fine, label %next, label %done
done:
  %all = xor i1 %more, true
  ret i1 %all
}

; Whether the keywords of a call are those that were, in their order; one of both may be null.
define internal i1 @same_names(ptr %wanted, ptr %names) alwaysinline {
entry:
  %none.wanted = icmp eq ptr %wanted, null
  %none.given = icmp eq ptr %names, null
  %one = or i1 %none.wanted, %none.given
  br i1 %one, label %no, label %sizes
sizes:
  %count = call i64 @"at python PyTuple_Size"(ptr %wanted)
  %given = call i64 @"at python PyTuple_Size"(ptr %names)
  %as.many = icmp eq i64 %count, %given
  br i1 %as.many, label %next, label %no
next:
  %k = phi i64 [ 0, %sizes ], [ %k1, %same ]
  %more = icmp slt i64 %k, %count
  br i1 %more, label %compare, label %yes
compare:
  %a = call ptr @"at python PyTuple_GetItem"(ptr %wanted, i64 %k)
  %b = call ptr @"at python PyTuple_GetItem"(ptr %names, i64 %k)
  %is.same = icmp eq ptr %a, %b
  br i1 %is.same, label %same, label %no
same:
  %k1 = add i64 %k, 1
  br label %next
yes:
  ret i1 true
no:
  ret i1 false
}

; Look at one argument, or a part of one: whether it is as it has to be. What it is goes into its slot.
define internal i1 @check(ptr %row, ptr %frame) alwaysinline {
entry:
  %x = call ptr @argument(ptr %row, ptr %frame)
  %kind = call i64 @word(ptr %row, i64 $check.KIND)
  %want = call ptr @word.ptr(ptr %row, i64 $check.WANT)
  %class = call ptr @get.ptr(ptr %x, i64 $calls.TYPE)
  %of.class = icmp eq ptr %class, %want
  %of.any = icmp ult i64 %kind, $kind.OF_CLASS
  %may = or i1 %of.class, %of.any
  br i1 %may, label %which, label %no
which:
  %check = call ptr @word.ptr(ptr @checks, i64 %kind)
  %fine = call i1 %check(ptr %row, ptr %frame, ptr %x)
  ret i1 %fine
no:
  ret i1 false
}

@checks = private constant [9 x ptr] [ ; by `Kind`
  ptr @check.same, ptr @check.bool, ptr @check.int, ptr @check.float, ptr @check.array, ptr @check.tensor,
  ptr @check.tuple, ptr @check.list, ptr @check.fields
]

; The object that a check is of: an argument, a part of a tuple (from -2 down), or what stands in the row.
define internal ptr @argument(ptr %row, ptr %frame) alwaysinline {
  %place = call i64 @word(ptr %row, i64 $check.PLACE)
  %args = call ptr @get.ptr(ptr %frame, i64 $frame.ARGS)
  %parts = call ptr @get.ptr(ptr %frame, i64 $frame.PARTS)
  %number = sub i64 -2, %place
  %argument = getelementptr ptr, ptr %args, i64 %place
  %part = getelementptr ptr, ptr %parts, i64 %number
  %kept = getelementptr ptr, ptr %row, i64 $check.OBJECT
  %is.given = icmp sge i64 %place, 0
  %is.kept = icmp eq i64 %place, -1
  %other = select i1 %is.kept, ptr %kept, ptr %part
  %at = select i1 %is.given, ptr %argument, ptr %other
  %x = load ptr, ptr %at
  ret ptr %x
}

; Put a number into the slot of an argument.
define internal void @put(ptr %row, ptr %frame, i64 %bits) alwaysinline {
  %slots = call ptr @get.ptr(ptr %frame, i64 $frame.SLOTS)
  %slot = call i64 @word(ptr %row, i64 $check.SLOT)
  call void @set.word(ptr %slots, i64 %slot, i64 %bits)
  ret void
}

; The same object, an equal int or str, or a float of the same bits.
define internal i1 @check.same(ptr %row, ptr %frame, ptr %x) {
entry:
  %want = call ptr @word.ptr(ptr %row, i64 $check.WANT)
  %identical = icmp eq ptr %x, %want
  br i1 %identical, label %yes, label %classes
classes:
  %class = call ptr @get.ptr(ptr %x, i64 $calls.TYPE)
  %class.wanted = call ptr @get.ptr(ptr %want, i64 $calls.TYPE)
  %alike = icmp eq ptr %class, %class.wanted
  br i1 %alike, label %which, label %no
which:
  %is.float = icmp eq ptr %class, @"at object float"
  br i1 %is.float, label %floats, label %others
floats:
  %a = call double @"at python PyFloat_AsDouble"(ptr %x)
  %b = call double @"at python PyFloat_AsDouble"(ptr %want)
  %bits = bitcast double %a to i64
  %bits.wanted = bitcast double %b to i64
  %same = icmp eq i64 %bits, %bits.wanted
  ret i1 %same
others:
  %is.int = icmp eq ptr %class, @"at object int"
  %is.str = icmp eq ptr %class, @"at object str"
  %either = or i1 %is.int, %is.str
  br i1 %either, label %compare, label %no
compare:
  %compared = call i32 @"at python PyObject_RichCompareBool"(ptr %x, ptr %want, i32 2) ; Py_EQ
  %equal = icmp eq i32 %compared, 1
  ret i1 %equal
yes:
  ret i1 true
no:
  ret i1 false
}

define internal i1 @check.bool(ptr %row, ptr %frame, ptr %x) {
  %true = call ptr @word.ptr(ptr %row, i64 $check.WANT)
  %false = call ptr @word.ptr(ptr %row, i64 $check.LOW)
  %is.true = icmp eq ptr %x, %true
  %is.false = icmp eq ptr %x, %false
  %bits = zext i1 %is.true to i64
  call void @put(ptr %row, ptr %frame, i64 %bits)
  %either = or i1 %is.true, %is.false
  ret i1 %either
}

define internal i1 @check.int(ptr %row, ptr %frame, ptr %x) {
  %over.p = alloca i32, align 4
  %number = call i64 @"at python PyLong_AsLongLongAndOverflow"(ptr %x, ptr %over.p)
  call void @put(ptr %row, ptr %frame, i64 %number)
  %over = load i32, ptr %over.p
  %fits = icmp eq i32 %over, 0
  %low = call i64 @word(ptr %row, i64 $check.LOW)
  %high = call i64 @word(ptr %row, i64 $check.HIGH)
  %but = call i64 @word(ptr %row, i64 $check.ELEMENT)
  %above = icmp sge i64 %number, %low
  %below = icmp sle i64 %number, %high
  %other = icmp ne i64 %number, %but
  %aligned = call i1 @aligned(ptr %row, i64 %number)
  %a = and i1 %fits, %above
  %b = and i1 %below, %other
  %c = and i1 %a, %b
  %fine = and i1 %c, %aligned
  ret i1 %fine
}

; Whether a number leaves one of the remainders by 16 that a check allows.
define internal i1 @aligned(ptr %row, i64 %number) alwaysinline {
  %rest = and i64 %number, 15
  %allowed = call i64 @word(ptr %row, i64 $check.REMAINDERS)
  %down = lshr i64 %allowed, %rest
  %fine = trunc i64 %down to i1
  ret i1 %fine
}

define internal i1 @check.float(ptr %row, ptr %frame, ptr %x) {
  %double = call double @"at python PyFloat_AsDouble"(ptr %x)
  %bits.64 = bitcast double %double to i64
  %single = fptrunc double %double to float
  %bits.32 = bitcast float %single to i32
  %wide = zext i32 %bits.32 to i64
  %element = call i64 @word(ptr %row, i64 $check.ELEMENT)
  %narrow = icmp eq i64 %element, 32
  %bits = select i1 %narrow, i64 %wide, i64 %bits.64
  call void @put(ptr %row, ptr %frame, i64 %bits)
  ret i1 true
}

define internal i1 @check.tuple(ptr %row, ptr %frame, ptr %x) {
  %count = call i64 @"at python PyTuple_Size"(ptr %x)
  %fine = call i1 @check.parts(ptr %row, ptr %frame, ptr %x, i64 %count, ptr @"at python PyTuple_GetItem")
  ret i1 %fine
}

define internal i1 @check.list(ptr %row, ptr %frame, ptr %x) {
  %count = call i64 @"at python PyList_Size"(ptr %x)
  %fine = call i1 @check.parts(ptr %row, ptr %frame, ptr %x, i64 %count, ptr @"at python PyList_GetItem")
  ret i1 %fine
}

define internal i1 @check.fields(ptr %row, ptr %frame, ptr %x) {
  %names = call ptr @word.ptr(ptr %row, i64 $check.ELEMENT)
  %count = call i64 @word(ptr %row, i64 $check.LOW)
  %pair = alloca [2 x ptr], align 8
  call void @set.ptr(ptr %pair, i64 0, ptr %x)
  call void @set.ptr(ptr %pair, i64 8, ptr %names)
  %fine = call i1 @check.parts(ptr %row, ptr %frame, ptr %pair, i64 %count, ptr @field)
  ret i1 %fine
}

; An attribute of an object, by the number of its name; the object keeps it, its class having no ways of its own. None
; where there is none.
define internal ptr @field(ptr %pair, i64 %k) {
entry:
  %x = call ptr @word.ptr(ptr %pair, i64 0)
  %names = call ptr @word.ptr(ptr %pair, i64 1)
  %name = call ptr @"at python PyTuple_GetItem"(ptr %names, i64 %k)
  %value = call ptr @"at python PyObject_GetAttr"(ptr %x, ptr %name)
  %missing = icmp eq ptr %value, null
  br i1 %missing, label %clear, label %found
clear:
  call void @"at python PyErr_Clear"()
  ret ptr @"at object None"
found:
  call void @"at python Py_DecRef"(ptr %value)
  ret ptr %value
}

; So many parts, which %get gives by their number, and which have checks of their own.
define internal i1 @check.parts(ptr %row, ptr %frame, ptr %x, i64 %count, ptr %get) {
entry:
  %wanted = call i64 @word(ptr %row, i64 $check.LOW)
  %fine = icmp eq i64 %count, %wanted
  %parts = call ptr @get.ptr(ptr %frame, i64 $frame.PARTS)
  %first = call i64 @word(ptr %row, i64 $check.HIGH)
  %own = getelementptr ptr, ptr %parts, i64 %first
  br label %next
next:
  %k = phi i64 [ 0, %entry ], [ %k1, %note ]
  %left = icmp slt i64 %k, %count
  %more = and i1 %fine, %left
  br i1 %more, label %note, label %done
note:
  %part = call ptr %get(ptr %x, i64 %k)
  %place = getelementptr ptr, ptr %own, i64 %k
  store ptr %part, ptr %place
  %k1 = add i64 %k, 1
  br label %next
done:
  ret i1 %fine
}

define internal i1 @check.array(ptr %row, ptr %frame, ptr %x) {
  %type = call i64 @get(ptr %x, i64 $ndarray.DESCR)
  %element = call i64 @word(ptr %row, i64 $check.ELEMENT)
  %of.type = icmp eq i64 %type, %element
  %flags = call i64 @get.i32(ptr %x, i64 $ndarray.FLAGS)
  %needed = call i64 @word(ptr %row, i64 $check.WRITTEN)
  %some = and i64 %flags, %needed
  %writable = icmp eq i64 %some, %needed
  %address = call i64 @get(ptr %x, i64 $ndarray.DATA)
  %sizes = call ptr @get.ptr(ptr %x, i64 $ndarray.DIMS)
  %strides = call ptr @get.ptr(ptr %x, i64 $ndarray.STRIDES)
  %nd = call i64 @get.i32(ptr %x, i64 $ndarray.ND)
  %placed = call i1 @placed(ptr %row, ptr %frame, i64 %address, ptr %sizes, ptr %strides, i64 1, i64 %nd)
  %a = and i1 %of.type, %writable
  %fine = and i1 %a, %placed
  ret i1 %fine
}

define internal i1 @check.tensor(ptr %row, ptr %frame, ptr %x) {
entry:
  %told = alloca [48 x i8], align 8 ; struct DLTensor
  %tell = call ptr @word.ptr(ptr %row, i64 $check.LOW)
  %failed = call i32 %tell(ptr %x, ptr %told)
  %known = icmp eq i32 %failed, 0
  br i1 %known, label %which, label %raised
which:
  %is.negative = call ptr @word.ptr(ptr %row, i64 $check.HIGH)
  %is.told = icmp eq ptr %is.negative, null
  br i1 %is.told, label %read, label %ask
read:
  %within = call i64 @word(ptr @"at words tensors", i64 $tensors.WITHIN)
  %tensor = call ptr @get.ptr(ptr %x, i64 %within)
  %keys.at = call i64 @word(ptr @"at words tensors", i64 $tensors.KEYS)
  %keys = call i64 @get(ptr %tensor, i64 %keys.at)
  %bit = call i64 @word(ptr @"at words tensors", i64 $tensors.NEGATIVE)
  %bits = and i64 %keys, %bit
  %read.positive = icmp eq i64 %bits, 0
  br label %look
ask:
  %negative = call ptr @"at python PyObject_CallOneArg"(ptr %is.negative, ptr %x)
  %unknown = icmp eq ptr %negative, null
  br i1 %unknown, label %raised, label %answered
answered:
  call void @"at python Py_DecRef"(ptr %negative)
  %asked.positive = icmp eq ptr %negative, @"at object False"
  br label %look
look: ; is it in the memory that it has to be in, and not the negative of what is there?
  %as.it.is = phi i1 [ %read.positive, %read ], [ %asked.positive, %answered ]
  %device = call i64 @get(ptr %told, i64 8)
  %device.wanted = call i64 @word(ptr %row, i64 $check.DEVICE)
  %here = icmp eq i64 %device, %device.wanted
  %type = call i64 @get.i32(ptr %told, i64 20)
  %element = call i64 @word(ptr %row, i64 $check.ELEMENT)
  %of.type = icmp eq i64 %type, %element
  %data = call i64 @get(ptr %told, i64 0)
  %offset = call i64 @get(ptr %told, i64 40)
  %address = add i64 %data, %offset
  %nd = call i64 @get.i32(ptr %told, i64 16)
  %sizes = call ptr @get.ptr(ptr %told, i64 24)
  %strides = call ptr @get.ptr(ptr %told, i64 32)
  %unit = call i64 @word(ptr %row, i64 $check.BYTES)
  %placed = call i1 @placed(ptr %row, ptr %frame, i64 %address, ptr %sizes, ptr %strides, i64 %unit, i64 %nd)
  %a = and i1 %as.it.is, %here
  %b = and i1 %of.type, %placed
  %fine = and i1 %a, %b
  ret i1 %fine
raised:
  call void @"at python PyErr_Clear"()
  ret i1 false
}

; Note where an array lies: its address, and, of an array of a pair, the bytes from there on in which its elements are,
; 0 and 0 for an empty one, as `arrays.span_of` has it. Whether that is somewhere, and aligned as it has to be.
define internal i1 @placed(
    ptr %row, ptr %frame, i64 %address, ptr %sizes, ptr %strides, i64 %unit, i64 %nd) alwaysinline {
entry:
  call void @put(ptr %row, ptr %frame, i64 %address)
  %array = call i64 @word(ptr %row, i64 $check.ARRAY)
  %nowhere = icmp eq i64 %address, 0
  %of.pair = icmp ne i64 %array, $calls.MOST_ARRAYS
  %extent = or i1 %nowhere, %of.pair
  br i1 %extent, label %begin, label %done
begin:
  %span = call ptr @span(ptr %frame, i64 %array)
  %bytes = call i64 @word(ptr %row, i64 $check.BYTES)
  call void @set.word(ptr %span, i64 0, i64 %address)
  call void @set.word(ptr %span, i64 1, i64 0)
  call void @set.word(ptr %span, i64 2, i64 %bytes)
  br label %next
next:
  %k = phi i64 [ 0, %begin ], [ %k1, %axis ]
  %more = icmp slt i64 %k, %nd
  br i1 %more, label %axis, label %done
axis:
  %stride = call i64 @word(ptr %strides, i64 %k)
  %size = call i64 @word(ptr %sizes, i64 %k)
  %k1 = add i64 %k, 1
  %last = sub i64 %size, 1
  %steps = mul i64 %last, %stride
  %step = mul i64 %steps, %unit
  %down = call i64 @llvm.smin.i64(i64 %step, i64 0)
  %up = call i64 @llvm.smax.i64(i64 %step, i64 0)
  %low = call i64 @word(ptr %span, i64 1)
  %high = call i64 @word(ptr %span, i64 2)
  %lower = add i64 %low, %down
  %higher = add i64 %high, %up
  call void @set.word(ptr %span, i64 1, i64 %lower)
  call void @set.word(ptr %span, i64 2, i64 %higher)
  %none = icmp eq i64 %size, 0
  br i1 %none, label %empty, label %next
empty:
  call void @set.word(ptr %span, i64 1, i64 0)
  call void @set.word(ptr %span, i64 2, i64 0)
  br label %done
done:
  %is.empty = phi i1 [ false, %entry ], [ false, %next ], [ true, %empty ]
  %there = icmp ne i64 %address, 0
  %somewhere = or i1 %there, %is.empty
  %aligned = call i1 @aligned(ptr %row, i64 %address)
  %fine = and i1 %somewhere, %aligned
  ret i1 %fine
}

define internal ptr @span(ptr %frame, i64 %array) alwaysinline {
  %spans = call ptr @get.ptr(ptr %frame, i64 $frame.SPANS)
  %span = getelementptr [3 x i64], ptr %spans, i64 %array
  ret ptr %span
}

; Whether two arrays do not overlap; unless the third word says so, they may begin at the same place. With a fourth,
; they may overlap where their distance, from the fifth on and modulo the fourth, is more than the sixth.
define internal i1 @apart(ptr %row, ptr %frame) alwaysinline {
entry:
  %a.number = call i64 @word(ptr %row, i64 0)
  %b.number = call i64 @word(ptr %row, i64 1)
  %a = call ptr @span(ptr %frame, i64 %a.number)
  %b = call ptr @span(ptr %frame, i64 %b.number)
  %a.address = call i64 @word(ptr %a, i64 0)
  %a.from = call i64 @word(ptr %a, i64 1)
  %a.to = call i64 @word(ptr %a, i64 2)
  %b.address = call i64 @word(ptr %b, i64 0)
  %b.low = call i64 @word(ptr %b, i64 1)
  %b.high = call i64 @word(ptr %b, i64 2)
  %distance = sub i64 %b.address, %a.address
  %b.from = add i64 %distance, %b.low
  %b.to = add i64 %distance, %b.high
  %before = icmp sge i64 %a.from, %b.to
  %behind = icmp sge i64 %b.from, %a.to
  %strict = call i64 @word(ptr %row, i64 2)
  %differ = or i64 %strict, %distance
  %allowed = icmp eq i64 %differ, 0
  %apart = or i1 %before, %behind
  %fine = or i1 %apart, %allowed
  br i1 %fine, label %yes, label %overlap
overlap:
  %step = call i64 @word(ptr %row, i64 3)
  %columns = icmp ne i64 %step, 0
  br i1 %columns, label %beside, label %no
beside:
  %origin = call i64 @word(ptr %row, i64 4)
  %beyond = sub i64 %distance, %origin
  %rest = srem i64 %beyond, %step
  %negative = icmp slt i64 %rest, 0
  %more = add i64 %rest, %step
  %place = select i1 %negative, i64 %more, i64 %rest
  %width = call i64 @word(ptr %row, i64 5)
  %is.beside = icmp sgt i64 %place, %width
  ret i1 %is.beside
yes:
  ret i1 true
no:
  ret i1 false
}

; Whether a dictionary still has a value.
define internal i1 @unchanged(ptr %row, ptr %frame) alwaysinline {
  %dictionary = call ptr @word.ptr(ptr %row, i64 0)
  %name = call ptr @word.ptr(ptr %row, i64 1)
  %value = call ptr @word.ptr(ptr %row, i64 2)
  %now = call ptr @"at python PyDict_GetItem"(ptr %dictionary, ptr %name)
  %same = icmp eq ptr %now, %value
  ret i1 %same
}

; Whether a list has items, or has none, as it was.
define internal i1 @as_full(ptr %row, ptr %frame) alwaysinline {
  %list = call ptr @word.ptr(ptr %row, i64 0)
  %full = call i64 @word(ptr %row, i64 1)
  %count = call i64 @"at python PyList_Size"(ptr %list)
  %some = icmp ne i64 %count, 0
  %is.full = zext i1 %some to i64
  %same = icmp eq i64 %is.full, %full
  ret i1 %same
}

; The sizes of any grid. 0: they are in the state; 1: an exception is set; 2: the general function has to say what is
; wrong, and nothing has been called yet.
define internal i32 @ask(ptr %plan, ptr %args, ptr %state) {
entry:
  %sizes.first = call i64 @word(ptr %plan, i64 $plan.SIZES_FIRST)
  %three = icmp ne i64 %sizes.first, 0
  br i1 %three, label %numbers, label %one
numbers:
  %are.three = call i1 @put_sizes(ptr %args, i64 3, ptr @word.ptr, ptr %state)
  br i1 %are.three, label %fine, label %odd
one:
  %grid = call ptr @word.ptr(ptr %args, i64 0)
  %callable = call i32 @"at python PyCallable_Check"(ptr %grid)
  %is.function = icmp eq i32 %callable, 1
  br i1 %is.function, label %function, label %direct
direct:
  %is.grid = call i1 @sizes_of(ptr %grid, ptr %state)
  br i1 %is.grid, label %fine, label %odd
function:
  %named = call ptr @named(ptr %plan, ptr %args)
  %no.names = icmp eq ptr %named, null
  br i1 %no.names, label %raised, label %call
call:
  %ask = call ptr @word.ptr(ptr %plan, i64 $plan.ASK)
  %asked = call ptr (ptr, ...) @"at python PyObject_CallFunctionObjArgs"(
    ptr %ask, ptr %grid, ptr %named, ptr null)
  call void @"at python Py_DecRef"(ptr %named)
  %failed = icmp eq ptr %asked, null
  br i1 %failed, label %raised, label %answered
answered:
  %told = call i1 @sizes_of(ptr %asked, ptr %state)
  br i1 %told, label %drop, label %convert
convert:
  %sizes = call ptr @word.ptr(ptr %plan, i64 $plan.SIZES)
  %converted = call ptr @"at python PyObject_CallOneArg"(ptr %sizes, ptr %asked)
  call void @"at python Py_DecRef"(ptr %asked)
  %is.none = icmp eq ptr %converted, null
  br i1 %is.none, label %raised, label %again
again:
  call i1 @sizes_of(ptr %converted, ptr %state)
  br label %drop
drop:
  %answer = phi ptr [ %asked, %answered ], [ %converted, %again ]
  call void @"at python Py_DecRef"(ptr %answer)
  br label %fine
fine:
  ret i32 0
raised:
  ret i32 1
odd:
  ret i32 2
}

; Put the sizes of a grid into a state where it is a tuple or a list of one to three integers, or an integer; false
; where it is something else, or an integer is out of its range.
define internal i1 @sizes_of(ptr %grid, ptr %state) {
entry:
  %own = alloca ptr, align 8
  %class = call ptr @get.ptr(ptr %grid, i64 $calls.TYPE)
  %is.list = icmp eq ptr %class, @"at object list"
  br i1 %is.list, label %list, label %other
list:
  %items = call i64 @"at python PyList_Size"(ptr %grid)
  %are.sizes = call i1 @put_sizes(ptr %grid, i64 %items, ptr @"at python PyList_GetItem", ptr %state)
  ret i1 %are.sizes
other:
  %is.tuple = call i32 @"at python PyType_IsSubtype"(ptr %class, ptr @"at object tuple")
  %several = icmp ne i32 %is.tuple, 0
  br i1 %several, label %tuple, label %one
tuple:
  %parts = call i64 @"at python PyTuple_Size"(ptr %grid)
  %are.too = call i1 @put_sizes(ptr %grid, i64 %parts, ptr @"at python PyTuple_GetItem", ptr %state)
  ret i1 %are.too
one:
  store ptr %grid, ptr %own
  %is.one = call i1 @put_sizes(ptr %own, i64 1, ptr @word.ptr, ptr %state)
  ret i1 %is.one
}

@most = private constant [3 x i64] [i64 2147483647, i64 65535, i64 65535]

; Put one to three sizes into a state; %get gives them by their number. The other sizes are 1.
define internal i1 @put_sizes(ptr %items, i64 %count, ptr %get, ptr %state) {
entry:
  %sizes = getelementptr i8, ptr %state, i64 $state.NX
  store [3 x i32] [i32 1, i32 1, i32 1], ptr %sizes
  %before = sub i64 %count, 1
  %fits = icmp ult i64 %before, 3
  br i1 %fits, label %next, label %no
next:
  %k = phi i64 [ 0, %entry ], [ %k1, %put ]
  %item = call ptr %get(ptr %items, i64 %k)
  %size = call i64 @"at python PyNumber_AsSsize_t"(ptr %item, ptr null)
  %most = call i64 @word(ptr @most, i64 %k)
  %within = icmp ule i64 %size, %most
  br i1 %within, label %put, label %clear
put:
  %place = getelementptr i32, ptr %sizes, i64 %k
  %narrow = trunc i64 %size to i32
  store i32 %narrow, ptr %place
  %k1 = add i64 %k, 1
  %more = icmp slt i64 %k1, %count
  br i1 %more, label %next, label %yes
yes:
  ret i1 true
clear: ; of what is no integer at all
  call void @"at python PyErr_Clear"()
  br label %no
no:
  ret i1 false
}

; The arguments of a launch by their names, as a new dictionary; null where an exception is set.
define internal ptr @named(ptr %plan, ptr %args) {
entry:
  %pair = alloca [2 x ptr], align 8
  %named = call ptr @"at python PyDict_New"()
  %none = icmp eq ptr %named, null
  br i1 %none, label %done, label %enter
enter:
  call void @set.ptr(ptr %pair, i64 0, ptr %args)
  call void @set.ptr(ptr %pair, i64 8, ptr %named)
  %from = call ptr @word.ptr(ptr %plan, i64 $plan.NAMES)
  %to = call ptr @word.ptr(ptr %plan, i64 $plan.END)
  call i1 @all(ptr %from, ptr %to, i64 3, ptr @name, ptr %pair)
  br label %done
done:
  ret ptr %named
}

define internal i1 @name(ptr %row, ptr %pair) {
  %args = call ptr @word.ptr(ptr %pair, i64 0)
  %named = call ptr @word.ptr(ptr %pair, i64 1)
  %name = call ptr @word.ptr(ptr %row, i64 0)
  %place = call i64 @word(ptr %row, i64 1)
  %is.given = icmp sge i64 %place, 0
  %argument = getelementptr ptr, ptr %args, i64 %place
  %default = getelementptr ptr, ptr %row, i64 2
  %at = select i1 %is.given, ptr %argument, ptr %default
  %value = load ptr, ptr %at
  call i32 @"at python PyDict_SetItem"(ptr %named, ptr %name, ptr %value)
  ret i1 true
}

; Run a grid, with what is to be called before and after it; the second also where a program fails, as `finally` has it.
; False where an exception is set.
define internal i1 @between_hooks(ptr %plan, ptr %args, ptr %state, ptr %slots) {
entry:
  %kind = alloca ptr, align 8 ; an exception
  %value = alloca ptr, align 8
  %traceback = alloca ptr, align 8
  %run = call ptr @word.ptr(ptr %plan, i64 $plan.RUN)
  %enter = call ptr @word.ptr(ptr %plan, i64 $plan.ENTER)
  %no.hooks = icmp eq ptr %enter, null
  br i1 %no.hooks, label %plain, label %hooked
plain:
  %ran = call i1 %run(ptr %plan, ptr %state, ptr %slots)
  ret i1 %ran
hooked:
  %named = call ptr @named(ptr %plan, ptr %args)
  %no.names = icmp eq ptr %named, null
  br i1 %no.names, label %raised, label %tell
tell:
  %nx = call i64 @get.i32(ptr %state, i64 $state.NX)
  %ny = call i64 @get.i32(ptr %state, i64 $state.NY)
  %nz = call i64 @get.i32(ptr %state, i64 $state.NZ)
  %grid = call ptr (ptr, ...) @"at python Py_BuildValue"(ptr @three.sizes, i64 %nx, i64 %ny, i64 %nz)
  %told = call ptr (ptr, ...) @"at python PyObject_CallFunctionObjArgs"(
    ptr %enter, ptr %grid, ptr %named, ptr null)
  call void @"at python Py_DecRef"(ptr %named)
  call void @"at python Py_DecRef"(ptr %grid)
  %untold = icmp eq ptr %told, null
  br i1 %untold, label %raised, label %launch
launch:
  %done = call i1 %run(ptr %plan, ptr %state, ptr %slots)
  call void @"at python PyErr_Fetch"(ptr %kind, ptr %value, ptr %traceback)
  %leave = call ptr @word.ptr(ptr %plan, i64 $plan.LEAVE)
  %left = call i1 @hand(ptr %leave, ptr %told)
  %kind.now = load ptr, ptr %kind
  %value.now = load ptr, ptr %value
  %traceback.now = load ptr, ptr %traceback
  br i1 %left, label %restore, label %lose
restore:
  call void @"at python PyErr_Restore"(ptr %kind.now, ptr %value.now, ptr %traceback.now)
  ret i1 %done
lose: ; those that are null are of no account
  call void @"at python Py_DecRef"(ptr %kind.now)
  call void @"at python Py_DecRef"(ptr %value.now)
  call void @"at python Py_DecRef"(ptr %traceback.now)
  br label %raised
raised:
  ret i1 false
}

@three.sizes = private constant [6 x i8] c"(LLL)\00"
