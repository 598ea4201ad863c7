; Objects handed to functions of Python.

; Hand an object, which is new or null, to a function of Python; false where an exception is set.
define internal i1 @hand(ptr %function, ptr %object) {
entry:
  %none = icmp eq ptr %object, null
  br i1 %none, label %raised, label %call
call:
  %answer = call ptr @"at python PyObject_CallOneArg"(ptr %function, ptr %object)
  call void @"at python Py_DecRef"(ptr %object)
  %failed = icmp eq ptr %answer, null
  br i1 %failed, label %raised, label %drop
drop:
  call void @"at python Py_DecRef"(ptr %answer)
  ret i1 true
raised:
  ret i1 false
}
