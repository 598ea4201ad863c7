"""The code of a launch in native code, as LLVM IR; `calls` says what it does and what a plan is."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

from weft.backends.llvm.emit import Function, Module
from weft.backends.llvm.values import DOUBLE, FLOAT, I1, I8, I32, I64, PTR, Value, const

from .calls import MOST_ARRAYS, MOST_SLOTS, NDARRAY, TYPE, Book, Check, Kind, Plan
from .engine import Record
from .native import STATE_BYTES, native
from .pool import scratch

_ptr = ctypes.c_void_p
HOLD_NS = 5_000.0
"""Work up to this keeps the interpreter's lock: to give it away and get it back from another thread takes longer."""
MOST_GRID = ((1 << 31) - 1, 65535, 65535)


def _at(address: int) -> Value:
    return Value(PTR, f"inttoptr (i64 {address} to ptr)")


def _python(name: str) -> Value:
    """A function of Python's C interface."""
    return _at(ctypes.cast(getattr(ctypes.pythonapi, name), _ptr).value or 0)


def _object(value: Any) -> Value:
    """An object that lives as long as the process."""
    return _at(id(value))


def _i64(value: int) -> Value:
    return const(I64, value)


_NULL = Value(PTR, "null")


class _Writer:
    """A function under construction, with the steps that all of this is made of."""

    def __init__(self, f: Function) -> None:
        self.f = f

    def word(self, base: Value, index: int, type: Any = I64) -> Value:
        """A word of a row."""
        return self.f.load(type, self.f.gep(I64, base, _i64(index)))

    def field(self, base: Value, offset: int, type: Any) -> Value:
        """A field of a structure."""
        return self.f.load(type, self.f.gep(I8, base, _i64(offset)))

    def call(self, name: str, type: Any, *args: Value) -> Value:
        """Call a function of Python's."""
        return self.call_at(_python(name), type, *args)

    def call_at(self, address: Value, type: Any, *args: Value) -> Value:
        """Call a function by its address."""
        return self.f.emit(type, f"call {type} {address.name}({', '.join(map(str, args))})")

    def do(self, name: str, *args: Value) -> None:
        """Call a function of Python's that returns nothing."""
        self.f.do(f"call void {_python(name).name}({', '.join(map(str, args))})")

    def eq(self, a: Value, b: Value) -> Value:
        """Whether two words are the same."""
        return self.f.icmp("eq", a, b)

    def is_null(self, a: Value) -> Value:
        """Whether a pointer is null."""
        return self.f.icmp("eq", a, _NULL)

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

    def advance(self, cursor: Value, count: Value, size: int, body: Callable[[Value], None]) -> None:
        """Do something for each of `count` rows of `size` words from where `cursor` points; leave it behind them."""
        f = self.f
        with f.loop(_i64(0), count, _i64(1)):
            row = f.load(PTR, cursor)
            body(row)
            f.store(f.gep(I64, row, _i64(size)), cursor)


def text() -> str:
    """The module, with addresses of this process in it."""
    module = Module()
    _write_integer(module)
    _write_span(module)
    _write_sizes(module)
    _write_match(module)
    _write_grid(module)
    _write_run(module)
    _write_call(module)
    return module.text()


def _write_span(module: Module) -> None:
    """weft_span(sizes, strides, dimensions, unit, bytes of an element, out): the bytes from an array's address on in
    which its elements lie, (0, 0) for an empty one, as `arrays.span_of` has it. Gives whether it is empty.
    """
    params = [("sizes", PTR), ("strides", PTR), ("nd", I64), ("unit", I64), ("bytes", I64), ("out", PTR)]
    f = module.function("weft_span", I1, params, linkage="internal")
    sizes, strides, nd, unit, bytes_, out = f.args
    low, high, empty = f.variable(_i64(0)), f.variable(bytes_), f.variable(const(I1, 0))
    with f.loop(_i64(0), nd, _i64(1)) as k:
        size, stride = f.load(I64, f.gep(I64, sizes, k)), f.load(I64, f.gep(I64, strides, k))
        f.when(f.icmp("eq", size, _i64(0)), lambda: f.store(const(I1, 1), empty))
        step = f.mul(f.mul(f.sub(size, _i64(1)), stride), unit)
        down = f.icmp("slt", step, _i64(0))
        f.store(f.add(f.load(I64, low), f.select(down, step, _i64(0))), low)
        f.store(f.add(f.load(I64, high), f.select(down, _i64(0), step)), high)
    none = f.load(I1, empty)
    f.store(f.select(none, _i64(0), f.load(I64, low)), f.gep(I64, out, _i64(1)))
    f.store(f.select(none, _i64(0), f.load(I64, high)), f.gep(I64, out, _i64(2)))
    f.ret(none)


def _write_integer(module: Module) -> None:
    """weft_integer(object, out): whether it is an int of 64 bits, and which."""
    f = module.function("weft_integer", I1, [("value", PTR), ("out", PTR)], linkage="internal")
    w = _Writer(f)
    value, out = f.args
    w.unless(w.eq(w.class_of(value), _object(int)), "no")
    over = f.alloca(I32, 1, 8)
    number = w.call("PyLong_AsLongLongAndOverflow", I64, value, over)
    f.store(number, out)
    f.ret(f.icmp("eq", f.load(I32, over), const(I32, 0)))
    f.start("no")
    f.ret(const(I1, 0))


def _write_match(module: Module) -> None:
    """weft_match(plan, args, count, names, slots, spans): 1: all is as a plan says, and the slots are filled; 0: it is
    not; 2: so has Python said, and while it ran the plans may have changed.
    """
    params = [("plan", PTR), ("args", PTR), ("count", I64), ("names", PTR), ("slots", PTR), ("spans", PTR)]
    f = module.function("weft_match", I32, params, linkage="internal")
    w = _Writer(f)
    plan, args, count, names, slots, spans = f.args
    number = f.alloca(I64, 1, 8)
    cursor = f.alloca(PTR, 1, 8)
    f.store(f.gep(I64, plan, _i64(Plan.SIZE)), cursor)
    w.unless(w.eq(w.word(plan, Plan.ARGUMENTS), count), "no")
    _match_names(w, w.word(plan, Plan.KEYWORDS, PTR), names)

    # The empty slots stand last; what the checks need of them is written after.
    rows = (Plan.CHECKS, Check.SIZE), (Plan.PAIRS, 3), (Plan.WATCHED, 3), (Plan.EMPTY, 1), (Plan.NAMES, 3)
    before = [f.mul(w.word(plan, counted), _i64(size)) for counted, size in rows]
    total = before[0]
    for more in before[1:]:
        total = f.add(total, more)
    template = f.gep(I64, f.load(PTR, cursor), total)
    with f.loop(_i64(0), w.word(plan, Plan.SLOTS), _i64(1)) as k:
        f.store(f.load(I64, f.gep(I64, template, k)), f.gep(I64, slots, k))

    w.advance(cursor, w.word(plan, Plan.CHECKS), Check.SIZE, lambda row: _check(w, row, args, slots, spans, number))
    w.advance(cursor, w.word(plan, Plan.PAIRS), 3, lambda row: _apart(w, row, spans))

    def same(row: Value) -> None:
        found = w.call("PyDict_GetItem", PTR, w.word(row, 0, PTR), w.word(row, 1, PTR))
        w.unless(w.eq(found, w.word(row, 2, PTR)), "no")

    w.advance(cursor, w.word(plan, Plan.WATCHED), 3, same)
    w.advance(
        cursor,
        w.word(plan, Plan.EMPTY),
        1,
        lambda row: w.unless(w.eq(w.call("PyList_Size", I64, w.word(row, 0, PTR)), _i64(0)), "no"),
    )
    changed = w.word(plan, Plan.CHANGED, PTR)
    ask, yes = f.new_label("ask"), f.new_label("yes")
    f.cond_br(w.is_null(changed), yes, ask)
    f.start(ask)
    answer = w.call("PyObject_CallNoArgs", PTR, changed)
    w.if_(w.is_null(answer), "raised")
    w.do("Py_DecRef", answer)
    f.ret(f.select(w.eq(answer, _object(False)), const(I32, 1), const(I32, 2)))
    f.start(yes)
    f.ret(const(I32, 1))
    f.start("raised")
    w.do("PyErr_Clear")
    f.ret(const(I32, 2))
    f.start("no")
    f.ret(const(I32, 0))


def _match_names(w: _Writer, wanted: Value, names: Value) -> None:
    """Go to `no` unless the keywords of a call are those that were, in their order."""
    f = w.f
    compare, done = f.new_label("names"), f.new_label("named")
    w.unless(w.eq(w.is_null(wanted), w.is_null(names)), "no")
    f.cond_br(w.is_null(wanted), done, compare)
    f.start(compare)
    count = w.call("PyTuple_Size", I64, wanted)
    w.unless(w.eq(count, w.call("PyTuple_Size", I64, names)), "no")
    with f.loop(_i64(0), count, _i64(1)) as k:
        w.unless(w.eq(w.call("PyTuple_GetItem", PTR, wanted, k), w.call("PyTuple_GetItem", PTR, names, k)), "no")
    f.br(done)
    f.start(done)


def _check(w: _Writer, row: Value, args: Value, slots: Value, spans: Value, number: Value) -> None:
    """Look at one argument; go to `no` where it is not as it has to be."""
    f = w.f
    place = w.word(row, Check.PLACE)
    given, kept, there = f.new_label("given"), f.new_label("default"), f.new_label("argument")
    value = f.alloca(PTR, 1, 8)
    f.cond_br(f.icmp("sge", place, _i64(0)), given, kept)
    f.start(given)
    f.store(f.load(PTR, f.gep(I64, args, place)), value)
    f.br(there)
    f.start(kept)
    f.store(w.word(row, Check.OBJECT, PTR), value)
    f.br(there)
    f.start(there)
    x, want, slot = f.load(PTR, value), w.word(row, Check.WANT, PTR), w.word(row, Check.SLOT)
    labels = [f.new_label(name) for name in ("same", "int", "float", "bool", "array", "tensor")]
    done = f.new_label("checked")
    kind = w.word(row, Check.KIND)
    cases = " ".join(f"i64 {k}, label %{label}" for k, label in enumerate(labels))
    f.do(f"switch i64 {kind.name}, label %no [ {cases} ]")

    def put(bits: Value) -> None:
        f.when(f.icmp("sge", slot, _i64(0)), lambda: f.store(bits, f.gep(I64, slots, slot)))
        f.br(done)

    f.start(labels[Kind.SAME])
    _check_same(w, x, want, number, done)

    f.start(labels[Kind.INT])
    w.unless(f.call("weft_integer", I1, [x, number]), "no")
    integer = f.load(I64, number)
    w.unless(f.icmp("sge", integer, w.word(row, Check.LOW)), "no")
    w.unless(f.icmp("sle", integer, w.word(row, Check.HIGH)), "no")
    w.if_(w.eq(integer, w.word(row, Check.ELEMENT)), "no")
    _check_alignment(w, integer, row)
    put(integer)

    f.start(labels[Kind.FLOAT])
    w.unless(w.eq(w.class_of(x), _object(float)), "no")
    double = w.call("PyFloat_AsDouble", DOUBLE, x)
    single = f.cast("zext", f.bitcast(f.cast("fptrunc", double, FLOAT), I32), I64)
    narrow = w.eq(w.word(row, Check.ELEMENT), _i64(32))
    put(f.select(narrow, single, f.bitcast(double, I64)))

    f.start(labels[Kind.BOOL])
    true = w.eq(x, _object(True))
    w.unless(f.emit(I1, f"or {true}, {w.eq(x, _object(False)).name}"), "no")
    put(f.cast("zext", true, I64))

    address, sizes, strides, unit, nd = (f.alloca(t, 1, 8) for t in (I64, PTR, PTR, I64, I64))
    measured = f.new_label("placed")
    f.start(labels[Kind.ARRAY])
    w.unless(w.eq(w.class_of(x), want), "no")
    w.unless(w.eq(w.field(x, NDARRAY["descr"], I64), w.word(row, Check.ELEMENT)), "no")
    flags = f.cast("zext", w.field(x, NDARRAY["flags"], I32), I64)
    w.unless(w.eq(f.and_(flags, w.word(row, Check.WRITTEN)), w.word(row, Check.WRITTEN)), "no")
    f.store(w.field(x, NDARRAY["data"], I64), address)
    f.store(w.field(x, NDARRAY["dims"], PTR), sizes)
    f.store(w.field(x, NDARRAY["strides"], PTR), strides)
    f.store(_i64(1), unit)
    f.store(f.cast("sext", w.field(x, NDARRAY["nd"], I32), I64), nd)
    f.br(measured)

    f.start(labels[Kind.TENSOR])
    w.unless(w.eq(w.class_of(x), want), "no")
    told = f.alloca(I64, 6, 8)  # DLTensor
    failed = f.new_label("untold")
    described = w.call_at(w.word(row, Check.LOW, PTR), I32, x, told)
    w.unless(w.eq(described, const(I32, 0)), failed)
    w.unless(w.eq(w.field(told, 8, I32), const(I32, 1)), "no")  # in the host's memory
    element = f.cast("zext", w.field(told, 20, I32), I64)
    w.unless(w.eq(element, w.word(row, Check.ELEMENT)), "no")
    f.store(f.add(w.field(told, 0, I64), w.field(told, 40, I64)), address)
    f.store(w.field(told, 24, PTR), sizes)
    f.store(w.field(told, 32, PTR), strides)
    f.store(w.word(row, Check.BYTES), unit)
    f.store(f.cast("sext", w.field(told, 16, I32), I64), nd)
    f.br(measured)
    f.start(failed)
    w.do("PyErr_Clear")
    f.br("no")

    f.start(measured)
    at, own = f.load(I64, address), f.gep(I64, spans, f.mul(w.word(row, Check.ARRAY), _i64(3)))
    f.store(at, own)
    dimensions = [f.load(PTR, sizes), f.load(PTR, strides), f.load(I64, nd), f.load(I64, unit)]
    empty = f.call("weft_span", I1, [*dimensions, w.word(row, Check.BYTES), own])
    somewhere = f.emit(I1, f"or {f.icmp('ne', at, _i64(0))}, {empty.name}")
    w.unless(somewhere, "no")
    _check_alignment(w, at, row)
    put(at)

    f.start(done)


def _check_same(w: _Writer, x: Value, want: Value, number: Value, done: str) -> None:
    """Go to `done` for the same object, an equal int or str, or a float of the same bits; else to `no`."""
    f = w.f
    w.if_(w.eq(x, want), done)
    kind = w.class_of(x)
    w.unless(w.eq(kind, w.class_of(want)), "no")
    integer, text, real, other = (f.new_label(n) for n in ("isint", "isstr", "isfloat", "other"))
    f.cond_br(w.eq(kind, _object(int)), integer, other)
    f.start(integer)
    w.unless(f.call("weft_integer", I1, [x, number]), "no")
    one = f.load(I64, number)
    w.unless(f.call("weft_integer", I1, [want, number]), "no")
    f.cond_br(w.eq(one, f.load(I64, number)), done, "no")
    f.start(other)
    neither = f.new_label("neither")
    f.cond_br(w.eq(kind, _object(str)), text, neither)
    f.start(text)
    f.cond_br(w.eq(w.call("PyUnicode_Compare", I32, x, want), const(I32, 0)), done, "no")
    f.start(neither)
    f.cond_br(w.eq(kind, _object(float)), real, "no")
    f.start(real)
    bits = [f.bitcast(w.call("PyFloat_AsDouble", DOUBLE, v), I64) for v in (x, want)]
    f.cond_br(w.eq(*bits), done, "no")


def _check_alignment(w: _Writer, value: Value, row: Value) -> None:
    """Go to `no` unless a number is a multiple of 16 where ALIGNED is 1, and none where it is 2."""
    f = w.f
    odd = f.icmp("ne", f.and_(value, _i64(15)), _i64(0))
    asked = w.word(row, Check.ALIGNED)
    wrong = f.select(odd, w.eq(asked, _i64(1)), w.eq(asked, _i64(2)))
    w.if_(wrong, "no")


def _apart(w: _Writer, row: Value, spans: Value) -> None:
    """Go to `no` where two arrays overlap; unless the third word says so, they may begin at the same place."""
    f = w.f
    a, b = (f.gep(I64, spans, f.mul(w.word(row, k), _i64(3))) for k in (0, 1))
    distance = f.sub(w.word(b, 0), w.word(a, 0))
    before = f.icmp("slt", w.word(a, 1), f.add(distance, w.word(b, 2)))
    behind = f.icmp("slt", f.add(distance, w.word(b, 1)), w.word(a, 2))
    apart = f.icmp("ne", f.add(w.word(row, 2), distance), distance)
    counts = f.emit(I1, f"or {apart}, {f.icmp('ne', distance, _i64(0)).name}")
    meet = f.emit(I1, f"and {f.emit(I1, f'and {before}, {behind.name}')}, {counts.name}")
    w.if_(meet, "no")


def _write_sizes(module: Module) -> None:
    """weft_sizes(grid, state): put the sizes of a grid into a state where it is a tuple of one to three ints, or an
    int; false where it is something else or an int is out of its range.
    """
    f = module.function("weft_sizes", I1, [("grid", PTR), ("state", PTR)], linkage="internal")
    w = _Writer(f)
    grid, state = f.args
    sizes = [f.gep(I8, state, _i64(24 + 4 * k)) for k in range(3)]
    for size in sizes:
        f.store(const(I32, 1), size)
    number = f.alloca(I64, 1, 8)
    row, several = f.new_label("single"), f.new_label("several")
    f.cond_br(w.eq(w.class_of(grid), _object(tuple)), several, row)

    def put(item: Value, axis: int) -> None:
        w.unless(f.call("weft_integer", I1, [item, number]), "no")
        w.unless(f.icmp("ule", f.load(I64, number), _i64(MOST_GRID[axis])), "no")
        f.store(f.cast("trunc", f.load(I64, number), I32), sizes[axis])

    f.start(row)
    w.unless(w.eq(w.class_of(grid), _object(int)), "no")
    put(grid, 0)
    f.ret(const(I1, 1))
    f.start(several)
    count = w.call("PyTuple_Size", I64, grid)
    w.unless(f.icmp("ult", f.sub(count, _i64(1)), _i64(3)), "no")
    for axis in range(3):
        if axis:
            w.if_(w.eq(count, _i64(axis)), "yes")
        put(w.call("PyTuple_GetItem", PTR, grid, _i64(axis)), axis)
    f.br("yes")
    f.start("yes")
    f.ret(const(I1, 1))
    f.start("no")
    f.ret(const(I1, 0))


def _write_grid(module: Module) -> None:
    """weft_ask(plan, grid, args, state): the sizes of any grid. 0: they are in the state; 1: an exception is set; 2:
    the general function has to say what is wrong, and nothing has been called yet.
    """
    f = module.function("weft_ask", I32, [(n, PTR) for n in ("plan", "grid", "args", "state")], linkage="internal")
    w = _Writer(f)
    plan, grid, args, state = f.args
    w.if_(f.call("weft_sizes", I1, [grid, state]), "fine")
    w.if_(w.eq(w.class_of(grid), _object(tuple)), "odd")
    w.unless(w.eq(w.call("PyCallable_Check", I32, grid), const(I32, 1)), "odd")
    named = w.call("PyDict_New", PTR)
    w.if_(w.is_null(named), "raised")
    rows = (Plan.CHECKS, Check.SIZE), (Plan.PAIRS, 3), (Plan.WATCHED, 3), (Plan.EMPTY, 1)
    skipped = _i64(Plan.SIZE)
    for counted, size in rows:
        skipped = f.add(skipped, f.mul(w.word(plan, counted), _i64(size)))
    cursor = f.variable(_NULL)
    f.store(f.gep(I64, plan, skipped), cursor)

    def name(row: Value) -> None:
        place = w.word(row, 1)
        given = f.icmp("sge", place, _i64(0))
        from_args = f.gep(I64, args, f.select(given, place, _i64(0)))
        value = f.select(given, f.load(PTR, from_args), w.word(row, 2, PTR))
        w.call("PyDict_SetItem", I32, named, w.word(row, 0, PTR), value)

    w.advance(cursor, w.word(plan, Plan.NAMES), 3, name)
    asked = f.emit(
        PTR,
        f"call ptr (ptr, ...) {_python('PyObject_CallFunctionObjArgs').name}"
        f"({w.word(plan, Plan.ASK, PTR)}, {grid}, {named}, ptr null)",
    )
    w.do("Py_DecRef", named)
    w.if_(w.is_null(asked), "raised")
    direct = f.call("weft_sizes", I1, [asked, state])
    convert, plain = f.new_label("convert"), f.new_label("plain")
    f.cond_br(direct, plain, convert)
    f.start(plain)
    w.do("Py_DecRef", asked)
    f.br("fine")
    f.start(convert)
    sizes = f.emit(
        PTR,
        f"call ptr (ptr, ...) {_python('PyObject_CallFunctionObjArgs').name}"
        f"({w.word(plan, Plan.SIZES, PTR)}, {asked}, ptr null)",
    )
    w.do("Py_DecRef", asked)
    w.if_(w.is_null(sizes), "raised")
    f.call("weft_sizes", I1, [sizes, state])
    w.do("Py_DecRef", sizes)
    f.br("fine")
    f.start("fine")
    f.ret(const(I32, 0))
    f.start("raised")
    f.ret(const(I32, 1))
    f.start("odd")
    f.ret(const(I32, 2))


def _write_run(module: Module) -> None:
    """weft_go(plan, state, slots): run a grid. False where an exception is set.

    Scratch memory is the last of the free blocks, as in Python, where one is made if none is free or large enough.
    """
    f = module.function("weft_go", I1, [("plan", PTR), ("state", PTR), ("slots", PTR)], linkage="internal")
    w = _Writer(f)
    plan, state, slots = f.args
    record, needed = w.word(plan, Plan.RECORD, PTR), w.word(plan, Plan.SCRATCH)
    sizes = [f.cast("zext", w.field(state, 24 + 4 * k, I32), I64) for k in range(3)]
    total = f.mul(f.mul(sizes[0], sizes[1]), sizes[2])
    w.if_(w.eq(total, _i64(0)), "done")
    f.store(total, f.gep(I64, state, _i64(1)))
    f.store(total, f.gep(I64, state, _i64(2)))
    free = _at(ctypes.addressof(scratch.words))
    mine, bytes_ = f.variable(_NULL), f.variable(_i64(0))

    find, made, taken, ready = (f.new_label(n) for n in ("find", "make", "taken", "room"))
    f.cond_br(w.eq(needed, _i64(0)), ready, find)
    f.start(find)
    blocks = f.load(I64, free)
    block = f.gep(I64, free, f.sub(f.mul(blocks, _i64(2)), _i64(1)))
    w.unless(f.icmp("sgt", blocks, _i64(0)), made)
    f.cond_br(f.icmp("sge", w.word(block, 1), needed), taken, made)
    f.start(made)
    _tell(w, w.word(plan, Plan.ROOM, PTR), needed, "raised")
    f.br(find)
    f.start(taken)
    f.store(f.sub(blocks, _i64(1)), free)
    f.store(w.word(block, 0, PTR), mine)
    f.store(w.word(block, 1), bytes_)
    f.br(ready)
    f.start(ready)
    codes = native().addresses
    again = f.new_label("again")
    f.br(again)
    f.start(again)
    left = f.sub(total, f.load(I64, state))
    wanted = w.call_at(_at(codes["wanted"]), I64, record, left)
    alone, helped = f.new_label("alone"), f.new_label("helped")
    f.cond_br(f.icmp("sgt", wanted, _i64(0)), helped, alone)
    f.start(helped)
    w.if_(f.icmp("ne", w.call_at(_at(codes["ready"]), I32, needed), const(I32, 0)), alone)
    _tell(w, w.word(plan, Plan.PREPARE, PTR), needed, "unprepared")
    f.br(alone)
    f.start(alone)
    ns = w.word(record, Record.NS, DOUBLE)
    work = f.fmul(ns, f.cast("sitofp", left, DOUBLE))
    known = f.fcmp("ogt", ns, const(DOUBLE, 0.0))
    short = f.emit(I1, f"and {f.fcmp('olt', work, const(DOUBLE, HOLD_NS))}, {known.name}")
    kept = f.emit(I1, f"and {short}, {f.icmp('eq', wanted, _i64(0)).name}")
    thread = f.variable(_NULL)

    def leave() -> None:
        f.store(w.call("PyEval_SaveThread", PTR), thread)

    f.when(f.emit(I1, f"xor {kept}, true"), leave)
    more = w.call_at(_at(codes["grid"]), I32, record, slots, state, f.load(PTR, mine), wanted)
    f.when(f.icmp("ne", f.load(PTR, thread), _NULL), lambda: w.do("PyEval_RestoreThread", f.load(PTR, thread)))
    f.store(_NULL, thread)
    w.if_(f.icmp("ne", more, const(I32, 0)), again)
    over = f.variable(const(I1, 1))
    f.br("give")

    f.start("give")

    def give() -> None:
        count = f.load(I64, free)

        def push() -> None:
            block = f.gep(I64, free, f.add(f.mul(count, _i64(2)), _i64(1)))
            f.store(f.load(PTR, mine), block)
            f.store(f.load(I64, bytes_), f.gep(I64, block, _i64(1)))
            f.store(f.add(count, _i64(1)), free)

        f.when(f.icmp("slt", count, _i64(scratch.MOST)), push)

    f.when(f.icmp("ne", needed, _i64(0)), give)
    w.unless(f.load(I1, over), "raised")
    w.unless(w.eq(w.field(state, 40, I64), _i64(0)), "failed")
    f.br("done")
    f.start("done")
    f.ret(const(I1, 1))

    f.start("failed")  # FAIL raises what the state says
    size = f.add(f.mul(w.word(plan, Plan.SLOTS), _i64(8)), _i64(STATE_BYTES))
    told = w.call("PyBytes_FromStringAndSize", PTR, state, size)
    w.if_(w.is_null(told), "raised")
    answer = w.call("PyObject_CallOneArg", PTR, w.word(plan, Plan.FAIL, PTR), told)
    w.do("Py_DecRef", told)
    w.if_(w.is_null(answer), "raised")
    w.do("Py_DecRef", answer)
    f.br("done")

    f.start("unprepared")
    f.store(const(I1, 0), over)
    f.br("give")
    f.start("raised")
    f.ret(const(I1, 0))


def _tell(w: _Writer, function: Value, number: Value, failed: str) -> None:
    """Call a function of Python with a number; go to a block where it raises."""
    size = w.call("PyLong_FromLongLong", PTR, number)
    w.if_(w.is_null(size), failed)
    answer = w.call("PyObject_CallOneArg", PTR, function, size)
    w.do("Py_DecRef", size)
    w.if_(w.is_null(answer), failed)
    w.do("Py_DecRef", answer)


def _write_call(module: Module) -> None:
    """weft_call(self, args, count, names): the function that Python calls; `self` is (book, what it keeps)."""
    f = module.function("weft_call", PTR, [("self", PTR), ("args", PTR), ("count", I64), ("names", PTR)])
    w = _Writer(f)
    self, args, count, names = f.args
    state = f.alloca(I64, STATE_BYTES // 8 + MOST_SLOTS, 64)
    slots = f.gep(I8, state, _i64(STATE_BYTES))
    spans = f.alloca(I64, 3 * (MOST_ARRAYS + 1), 8)  # arrays of no pair share the last
    book = w.call("PyByteArray_AsString", PTR, w.call("PyTuple_GetItem", PTR, self, _i64(0)))
    current = f.variable(_NULL)
    w.if_(w.eq(count, _i64(0)), "general")
    f.store(w.word(book, Book.FIRST, PTR), current)
    f.br("look")
    f.start("look")
    plan = f.load(PTR, current)
    w.if_(w.is_null(plan), "general")
    owner = w.word(plan, Plan.OWNER, PTR)
    w.do("Py_IncRef", owner)  # what is asked may be Python's, which another thread may use to replace the plan
    answer = f.call("weft_match", I32, [plan, args, count, names, slots, spans])
    w.if_(w.eq(answer, const(I32, 1)), "fits")
    f.store(w.word(plan, Plan.NEXT, PTR), current)
    w.do("Py_DecRef", owner)
    f.cond_br(w.eq(answer, const(I32, 0)), "look", "general")

    f.start("fits")
    for offset in (0, 32, 40, 48, 56):
        f.store(_i64(0), f.gep(I8, state, _i64(offset)))
    f.store(w.word(plan, Plan.TABLE), f.gep(I8, state, _i64(64)))
    kernel = w.word(plan, Plan.KERNEL, PTR)
    w.do("Py_IncRef", kernel)
    asked = f.call("weft_ask", I32, [plan, f.load(PTR, args), args, state])
    w.if_(w.eq(asked, const(I32, 2)), "odd")
    w.if_(w.eq(asked, const(I32, 1)), "raised")
    w.unless(f.call("weft_go", I1, [plan, state, slots]), "raised")
    w.do("Py_DecRef", owner)
    f.ret(kernel)

    f.start("raised")
    w.do("Py_DecRef", owner)
    w.do("Py_DecRef", kernel)
    f.ret(_NULL)
    f.start("odd")
    w.do("Py_DecRef", owner)
    w.do("Py_DecRef", kernel)
    f.br("general")
    f.start("general")
    f.ret(w.call("PyObject_Vectorcall", PTR, w.word(book, Book.GENERAL, PTR), args, count, names))
