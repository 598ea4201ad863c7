"""Writing the native code of launches: the steps that all of it is made of."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from weft.backends.llvm.emit import Function
from weft.backends.llvm.values import I8, I64, PTR, Value, const

from .calls import TYPE, Plan
from .places import place


def at(name: str) -> Value:
    """What has a name in every process (`places`)."""
    return Value(PTR, place(name))


def python(name: str) -> Value:
    """A function of Python's C interface."""
    return at(f"python {name}")


def object_at(value: Any) -> Value:
    """A builtin object."""
    return at(f"object {getattr(value, '__name__', value)}")


def i64(value: int) -> Value:
    return const(I64, value)


NULL = Value(PTR, "null")


class Writer:
    """A function under construction, with the steps that all of this is made of."""

    def __init__(self, f: Function) -> None:
        self.f = f

    def word(self, base: Value, index: int, type: Any = I64) -> Value:
        """A word of a row."""
        return self.f.load(type, self.f.gep(I64, base, i64(index)))

    def field(self, base: Value, offset: int, type: Any) -> Value:
        """A field of a structure."""
        return self.f.load(type, self.f.gep(I8, base, i64(offset)))

    def call(self, name: str, type: Any, *args: Value) -> Value:
        """Call a function of Python's."""
        return self.call_at(python(name), type, *args)

    def call_at(self, address: Value, type: Any, *args: Value) -> Value:
        """Call a function by its address."""
        return self.f.emit(type, f"call {type} {address.name}({', '.join(map(str, args))})")

    def call_any(self, name: str, *args: Value) -> Value:
        """Call a function of Python's that takes any number of arguments, and returns an object."""
        return self.f.emit(PTR, f"call ptr (ptr, ...) {python(name).name}({', '.join(map(str, args))})")

    def call_with(self, function: Value, *args: Value) -> Value:
        """Call an object with others."""
        return self.call_any("PyObject_CallFunctionObjArgs", function, *args, NULL)

    def do(self, name: str, *args: Value) -> None:
        """Call a function of Python's that returns nothing."""
        self.f.do(f"call void {python(name).name}({', '.join(map(str, args))})")

    def eq(self, a: Value, b: Value) -> Value:
        """Whether two words are the same."""
        return self.f.icmp("eq", a, b)

    def is_null(self, a: Value) -> Value:
        """Whether a pointer is null."""
        return self.f.icmp("eq", a, NULL)

    def unless(self, condition: Value, label: str) -> None:
        """Go to a block unless a condition holds."""
        on = self.f.new_label("on")
        self.f.cond_br(condition, on, label)
        self.f.start(on)

    def if_(self, condition: Value, label: str) -> None:
        """Go to a block if a condition holds."""
        on = self.f.new_label("on")
        self.f.cond_br(condition, label, on)
        self.f.start(on)

    def class_of(self, value: Value) -> Value:
        """The class of an object."""
        return self.field(value, TYPE, PTR)

    def after(self, plan: Value, rows: Sequence[tuple[int, int]]) -> Value:
        """Where in a plan stands what follows these rows (`calls.ROWS`)."""
        words = i64(Plan.SIZE)
        for counted, size in rows:
            words = self.f.add(words, self.f.mul(self.word(plan, counted), i64(size)))
        return self.f.gep(I64, plan, words)

    def advance(self, cursor: Value, count: Value, size: int, body: Callable[[Value], None]) -> None:
        """Do something for each of `count` rows of `size` words from where `cursor` points; leave it behind them."""
        f = self.f
        with f.loop(i64(0), count, i64(1)):
            row = f.load(PTR, cursor)
            body(row)
            f.store(f.gep(I64, row, i64(size)), cursor)
