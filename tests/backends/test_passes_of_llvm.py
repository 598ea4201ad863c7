"""What LLVM's passes do with a module: which functions become part of others, and what is left of it."""

from __future__ import annotations

from weft.backends.cpu.host import host_cpu
from weft.backends.llvm.emit import Module
from weft.backends.llvm.machine import optimised
from weft.backends.llvm.values import PTR, VOID, vec

F32 = vec("float", 0)

MODULE = """
define internal float @asks(float %x) alwaysinline {
  %y = fmul float %x, 2.0
  ret float %y
}

define internal float @stays(float %x, i32 %always) {
  %known = icmp eq i32 %always, 7
  %y = fmul float %x, 3.0
  %z = select i1 %known, float %y, float %x
  ret float %z
}

define internal float @unused(float %x) {
  ret float %x
}

define void @kernel(ptr %p) {
  %spill = alloca float
  %x = load float, ptr %p
  store float %x, ptr %spill
  %again = load float, ptr %spill
  %a = call float @asks(float %again)
  %b = call float @stays(float %a, i32 7)
  %c = call float @stays(float %b, i32 7)
  store float %c, ptr %p
  ret void
}
"""


def passed(text: str) -> str:
    return str(optimised(text, host_cpu())[0])


def test_a_function_that_asks_becomes_part_of_its_callers_and_others_do_not() -> None:
    text = passed(MODULE)
    assert "@asks" not in text and text.count("call float @stays") == 2


def test_constants_are_known_in_the_functions_that_they_are_given_to_and_no_longer_passed() -> None:
    text = passed(MODULE)
    assert "icmp" not in text and "select" not in text and "i32 7" not in text


def test_what_nobody_calls_and_memory_of_one_value_are_gone() -> None:
    text = passed(MODULE)
    assert "@unused" not in text and "alloca" not in text


def test_a_function_called_once_becomes_part_of_its_caller_and_one_called_twice_does_not() -> None:
    module = Module()
    for name in ("once", "twice"):
        f = module.function(name, F32, [("x", F32)], "memory(none) nounwind willreturn", "internal")
        f.ret(f.fmul(f.args[0], f.args[0]))
    f = module.function("kernel", VOID, [("p", PTR)])
    x = f.load(F32, f.args[0])
    for name in ("once", "twice", "twice"):
        x = f.call(name, F32, [x])
    f.store(x, f.args[0])
    f.ret()
    module.inline_single()
    text = passed(module.text())
    assert "@once" not in text and text.count("call float @twice") == 2
