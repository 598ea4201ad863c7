"""The code of a launch in native code, as LLVM IR; `calls` says what it does and what a plan is."""

from __future__ import annotations

from weft.backends.llvm.emit import Module
from weft.backends.llvm.values import DOUBLE, I1, I8, I32, I64, PTR, Value, const

from .calls import MOST_ARRAYS, MOST_SLOTS, ROWS, Book, Plan
from .calls_match import write_integer, write_match, write_span
from .calls_writer import NULL, Writer, at, i64, object_at, python
from .engine import Record
from .pool import scratch
from .state import STATE_BYTES

HOLD_NS = 5_000.0
"""Work up to this keeps the interpreter's lock: to give it away and get it back from another thread takes longer."""
MOST_GRID = ((1 << 31) - 1, 65535, 65535)


def text() -> str:
    """The module."""
    module = Module()
    write_integer(module)
    write_span(module)
    _write_size(module)
    _write_three(module)
    _write_sizes(module)
    write_match(module)
    _write_named(module)
    _write_grid(module)
    _write_run(module)
    _write_between_hooks(module)
    _write_call(module)
    return module.text()


def _write_size(module: Module) -> None:
    """weft_size(item, most, place): put a size of a grid at a place where it is an integer from 0 to the most."""
    f = module.function("weft_size", I1, [("item", PTR), ("most", I64), ("place", PTR)], linkage="internal")
    w = Writer(f)
    item, most, place = f.args
    size = w.call("PyNumber_AsSsize_t", I64, item, NULL)
    w.unless(f.icmp("ule", size, most), "no")
    f.store(f.cast("trunc", size, I32), place)
    f.ret(const(I1, 1))
    f.start("no")
    w.do("PyErr_Clear")  # of what is no integer at all
    f.ret(const(I1, 0))


def _put_size(w: Writer, item: Value, axis: int, state: Value) -> None:
    """Put the size of a grid along an axis into a state; go to `no` where it is none."""
    place = w.f.gep(I8, state, i64(24 + 4 * axis))
    w.unless(w.f.call("weft_size", I1, [item, i64(MOST_GRID[axis]), place]), "no")


def _write_three(module: Module) -> None:
    """weft_three(items, state): put three sizes into a state; false where they are no sizes."""
    f = module.function("weft_three", I1, [("items", PTR), ("state", PTR)], linkage="internal")
    w = Writer(f)
    items, state = f.args
    for axis in range(3):
        _put_size(w, w.word(items, axis, PTR), axis, state)
    f.ret(const(I1, 1))
    f.start("no")
    f.ret(const(I1, 0))


def _write_sizes(module: Module) -> None:
    """weft_sizes(grid, state): put the sizes of a grid into a state where it is a tuple or a list of one to three
    integers, or an integer; false where it is something else or an integer is out of its range.
    """
    f = module.function("weft_sizes", I1, [("grid", PTR), ("state", PTR)], linkage="internal")
    w = Writer(f)
    grid, state = f.args
    for axis in range(3):
        f.store(const(I32, 1), f.gep(I8, state, i64(24 + 4 * axis)))
    single, several = f.new_label("single"), f.new_label("several")
    is_list = w.eq(w.class_of(grid), object_at(list))
    is_tuple = f.icmp("ne", w.call("PyType_IsSubtype", I32, w.class_of(grid), object_at(tuple)), const(I32, 0))
    f.cond_br(f.emit(I1, f"or {is_list}, {is_tuple.name}"), several, single)
    f.start(single)
    _put_size(w, grid, 0, state)
    f.ret(const(I1, 1))
    f.start(several)
    count = w.call_at(f.select(is_list, python("PyList_Size"), python("PyTuple_Size")), I64, grid)
    item = f.select(is_list, python("PyList_GetItem"), python("PyTuple_GetItem"))
    w.unless(f.icmp("ult", f.sub(count, i64(1)), i64(3)), "no")
    for axis in range(3):
        if axis:
            w.if_(w.eq(count, i64(axis)), "yes")
        _put_size(w, w.call_at(item, PTR, grid, i64(axis)), axis, state)
    f.br("yes")
    f.start("yes")
    f.ret(const(I1, 1))
    f.start("no")
    f.ret(const(I1, 0))


def _write_named(module: Module) -> None:
    """weft_named(plan, args): the arguments of a launch by their names, as a new dictionary; null where one is set."""
    f = module.function("weft_named", PTR, [("plan", PTR), ("args", PTR)], linkage="internal")
    w = Writer(f)
    plan, args = f.args
    named = w.call("PyDict_New", PTR)
    w.if_(w.is_null(named), "raised")
    cursor = f.variable(NULL)
    f.store(w.after(plan, ROWS[:-1]), cursor)

    def name(row: Value) -> None:
        place = w.word(row, 1)
        given = f.icmp("sge", place, i64(0))
        value = f.load(PTR, f.select(given, f.gep(I64, args, place), f.gep(I64, row, i64(2))))
        w.call("PyDict_SetItem", I32, named, w.word(row, 0, PTR), value)

    w.advance(cursor, w.word(plan, Plan.NAMES), 3, name)
    f.br("raised")
    f.start("raised")
    f.ret(named)


def _write_grid(module: Module) -> None:
    """weft_ask(plan, grid, args, state): the sizes of any grid. 0: they are in the state; 1: an exception is set; 2:
    the general function has to say what is wrong, and nothing has been called yet.
    """
    f = module.function("weft_ask", I32, [(n, PTR) for n in ("plan", "grid", "args", "state")], linkage="internal")
    w = Writer(f)
    plan, grid, args, state = f.args
    three, one = f.new_label("three"), f.new_label("one")
    f.cond_br(w.eq(w.word(plan, Plan.SIZES_FIRST), i64(0)), one, three)
    f.start(three)
    f.cond_br(f.call("weft_three", I1, [args, state]), "fine", "odd")
    f.start(one)
    direct, function = f.new_label("direct"), f.new_label("function")
    f.cond_br(w.eq(w.call("PyCallable_Check", I32, grid), const(I32, 1)), function, direct)
    f.start(direct)
    f.cond_br(f.call("weft_sizes", I1, [grid, state]), "fine", "odd")
    f.start(function)
    named = f.call("weft_named", PTR, [plan, args])
    w.if_(w.is_null(named), "raised")
    asked = w.call_with(w.word(plan, Plan.ASK, PTR), grid, named)
    w.do("Py_DecRef", named)
    w.if_(w.is_null(asked), "raised")
    convert, plain = f.new_label("convert"), f.new_label("plain")
    f.cond_br(f.call("weft_sizes", I1, [asked, state]), plain, convert)
    f.start(plain)
    w.do("Py_DecRef", asked)
    f.br("fine")
    f.start(convert)
    sizes = w.call_with(w.word(plan, Plan.SIZES, PTR), asked)
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
    w = Writer(f)
    plan, state, slots = f.args
    needed = w.word(plan, Plan.SCRATCH)
    sizes = [f.cast("zext", w.field(state, 24 + 4 * k, I32), I64) for k in range(3)]
    total = f.mul(f.mul(sizes[0], sizes[1]), sizes[2])
    w.if_(w.eq(total, i64(0)), "done")
    f.store(total, f.gep(I64, state, i64(1)))
    f.store(total, f.gep(I64, state, i64(2)))
    mine, bytes_ = f.variable(NULL), f.variable(i64(0))

    _take(w, plan, needed, mine, bytes_)
    _run_programs(w, plan, state, slots, total, mine)
    over = f.variable(const(I1, 1))
    f.br("give")

    f.start("give")

    f.when(f.icmp("ne", needed, i64(0)), lambda: _give(w, mine, bytes_))
    w.unless(f.load(I1, over), "raised")
    w.unless(w.eq(w.field(state, 40, I64), i64(0)), "failed")
    f.br("done")
    f.start("done")
    f.ret(const(I1, 1))

    f.start("failed")
    _fail(w, plan, state)
    f.br("done")

    f.start("unprepared")
    f.store(const(I1, 0), over)
    f.br("give")
    f.start("raised")
    f.ret(const(I1, 0))


def _take(w: Writer, plan: Value, needed: Value, mine: Value, bytes_: Value) -> None:
    """Take a free block of scratch memory; have Python make one where none is free or large enough."""
    f, free = w.f, at("words scratch")
    find, made, taken, ready = (f.new_label(n) for n in ("find", "make", "taken", "room"))
    f.cond_br(w.eq(needed, i64(0)), ready, find)
    f.start(find)
    blocks = f.load(I64, free)
    block = f.gep(I64, free, f.sub(f.mul(blocks, i64(2)), i64(1)))
    w.unless(f.icmp("sgt", blocks, i64(0)), made)
    f.cond_br(f.icmp("sge", w.word(block, 1), needed), taken, made)
    f.start(made)
    _tell(w, w.word(plan, Plan.ROOM, PTR), needed, "raised")
    f.br(find)
    f.start(taken)
    f.store(f.sub(blocks, i64(1)), free)
    f.store(w.word(block, 0, PTR), mine)
    f.store(w.word(block, 1), bytes_)
    f.br(ready)
    f.start(ready)


def _give(w: Writer, mine: Value, bytes_: Value) -> None:
    """Put a block of scratch memory back, unless enough are free."""
    f, free = w.f, at("words scratch")
    count = f.load(I64, free)

    def push() -> None:
        block = f.gep(I64, free, f.add(f.mul(count, i64(2)), i64(1)))
        f.store(f.load(PTR, mine), block)
        f.store(f.load(I64, bytes_), f.gep(I64, block, i64(1)))
        f.store(f.add(count, i64(1)), free)

    f.when(f.icmp("slt", count, i64(scratch.MOST)), push)


def _run_programs(w: Writer, plan: Value, state: Value, slots: Value, total: Value, mine: Value) -> None:
    """Run all programs of a state, with workers where they pay, without the interpreter's lock where it takes long."""
    f, record, needed = w.f, w.word(plan, Plan.RECORD, PTR), w.word(plan, Plan.SCRATCH)
    again = f.new_label("again")
    f.br(again)
    f.start(again)
    left = f.sub(total, f.load(I64, state))
    wanted = w.call_at(at("code wanted"), I64, record, left)
    alone, helped = f.new_label("alone"), f.new_label("helped")
    f.cond_br(f.icmp("sgt", wanted, i64(0)), helped, alone)
    f.start(helped)
    w.if_(f.icmp("ne", w.call_at(at("code ready"), I32, needed), const(I32, 0)), alone)
    _tell(w, w.word(plan, Plan.PREPARE, PTR), needed, "unprepared")
    f.br(alone)
    f.start(alone)
    ns = w.word(record, Record.NS, DOUBLE)
    work = f.fmul(ns, f.cast("sitofp", left, DOUBLE))
    known = f.fcmp("ogt", ns, const(DOUBLE, 0.0))
    short = f.emit(I1, f"and {f.fcmp('olt', work, const(DOUBLE, HOLD_NS))}, {known.name}")
    kept = f.emit(I1, f"and {short}, {f.icmp('eq', wanted, i64(0)).name}")
    thread = f.variable(NULL)

    def leave() -> None:
        f.store(w.call("PyEval_SaveThread", PTR), thread)

    f.when(f.emit(I1, f"xor {kept}, true"), leave)
    more = w.call_at(at("code grid"), I32, record, slots, state, f.load(PTR, mine), wanted)
    f.when(f.icmp("ne", f.load(PTR, thread), NULL), lambda: w.do("PyEval_RestoreThread", f.load(PTR, thread)))
    f.store(NULL, thread)
    w.if_(f.icmp("ne", more, const(I32, 0)), again)


def _fail(w: Writer, plan: Value, state: Value) -> None:
    """Have Python raise what a state says."""
    f = w.f
    size = f.add(f.mul(w.word(plan, Plan.SLOTS), i64(8)), i64(STATE_BYTES))
    told = w.call("PyBytes_FromStringAndSize", PTR, state, size)
    w.if_(w.is_null(told), "raised")
    answer = w.call("PyObject_CallOneArg", PTR, w.word(plan, Plan.FAIL, PTR), told)
    w.do("Py_DecRef", told)
    w.if_(w.is_null(answer), "raised")
    w.do("Py_DecRef", answer)


def _tell(w: Writer, function: Value, number: Value, failed: str) -> None:
    """Call a function of Python with a number; go to a block where it raises."""
    size = w.call("PyLong_FromLongLong", PTR, number)
    w.if_(w.is_null(size), failed)
    answer = w.call("PyObject_CallOneArg", PTR, function, size)
    w.do("Py_DecRef", size)
    w.if_(w.is_null(answer), failed)
    w.do("Py_DecRef", answer)


def _write_between_hooks(module: Module) -> None:
    """weft_between_hooks(plan, args, state, slots): run a grid, with what is to be called before and after it; the
    second also where a program fails, as `finally` has it. False where an exception is set.
    """
    names = ("plan", "args", "state", "slots")
    f = module.function("weft_between_hooks", I1, [(n, PTR) for n in names], linkage="internal")
    w = Writer(f)
    plan, args, state, slots = f.args
    enter, hooked = w.word(plan, Plan.ENTER, PTR), f.new_label("hooked")
    w.unless(w.is_null(enter), hooked)
    f.ret(f.call("weft_go", I1, [plan, state, slots]))

    f.start(hooked)
    named = f.call("weft_named", PTR, [plan, args])
    w.if_(w.is_null(named), "raised")
    sizes = [w.field(state, 24 + 4 * axis, I32) for axis in range(3)]
    format_ = f.entry_value(PTR, "alloca i64, align 8")
    f.store(i64(int.from_bytes(b"(iii)", "little")), format_)
    grid = w.call_any("Py_BuildValue", format_, *sizes)
    told = w.call_with(enter, grid, named)
    w.do("Py_DecRef", named)
    w.do("Py_DecRef", grid)
    w.if_(w.is_null(told), "raised")
    done = f.call("weft_go", I1, [plan, state, slots])
    error = [f.alloca(PTR, 1, 8) for _ in range(3)]
    w.do("PyErr_Fetch", *error)
    answer = w.call("PyObject_CallOneArg", PTR, w.word(plan, Plan.LEAVE, PTR), told)
    w.do("Py_DecRef", told)
    left, lost = f.new_label("left"), f.new_label("lost")
    f.cond_br(w.is_null(answer), lost, left)
    f.start(left)
    w.do("Py_DecRef", answer)
    w.do("PyErr_Restore", *(f.load(PTR, part) for part in error))
    f.ret(done)
    f.start(lost)
    for part in error:
        w.do("Py_DecRef", f.load(PTR, part))  # none is of no account
    f.br("raised")
    f.start("raised")
    f.ret(const(I1, 0))


def _write_call(module: Module) -> None:
    """weft_call(self, args, count, names): the function that Python calls; `self` is (book, what it keeps)."""
    f = module.function("weft_call", PTR, [("self", PTR), ("args", PTR), ("count", I64), ("names", PTR)])
    w = Writer(f)
    self, args, count, names = f.args
    state = f.alloca(I64, STATE_BYTES // 8 + MOST_SLOTS, 64)
    slots = f.gep(I8, state, i64(STATE_BYTES))
    spans = f.alloca(I64, 3 * (MOST_ARRAYS + 1), 8)  # arrays of no pair share the last
    book = w.call("PyByteArray_AsString", PTR, w.call("PyTuple_GetItem", PTR, self, i64(0)))
    current = f.variable(NULL)
    w.if_(w.eq(count, i64(0)), "general")
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
    for offset in (0, 32, 40, 48, 56, 72):
        f.store(i64(0), f.gep(I8, state, i64(offset)))
    f.store(w.word(plan, Plan.TABLE), f.gep(I8, state, i64(64)))
    kernel = w.word(plan, Plan.KERNEL, PTR)
    w.do("Py_IncRef", kernel)
    asked = f.call("weft_ask", I32, [plan, f.load(PTR, args), args, state])
    w.if_(w.eq(asked, const(I32, 2)), "odd")
    w.if_(w.eq(asked, const(I32, 1)), "raised")
    w.unless(f.call("weft_between_hooks", I1, [plan, args, state, slots]), "raised")
    w.do("Py_DecRef", owner)
    f.ret(kernel)

    f.start("raised")
    w.do("Py_DecRef", owner)
    w.do("Py_DecRef", kernel)
    f.ret(NULL)
    f.start("odd")
    w.do("Py_DecRef", owner)
    w.do("Py_DecRef", kernel)
    f.br("general")
    f.start("general")
    f.ret(w.call("PyObject_Vectorcall", PTR, w.word(book, Book.GENERAL, PTR), args, count, names))
