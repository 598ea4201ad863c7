"""Whether the arguments of a call are as a plan says, in native code; see `calls`."""

from __future__ import annotations

from collections.abc import Callable

from weft.backends.llvm.emit import Module
from weft.backends.llvm.values import DOUBLE, FLOAT, I1, I32, I64, PTR, Value, const

from .calls import MOST_PARTS, NDARRAY, ROWS, Check, Kind, Plan, part
from .calls_writer import Writer, i64, object_at


def write_span(module: Module) -> None:
    """weft_span(sizes, strides, dimensions, unit, bytes of an element, out): the bytes from an array's address on in
    which its elements lie, (0, 0) for an empty one, as `arrays.span_of` has it. Gives whether it is empty.
    """
    params = [("sizes", PTR), ("strides", PTR), ("nd", I64), ("unit", I64), ("bytes", I64), ("out", PTR)]
    f = module.function("weft_span", I1, params, linkage="internal")
    sizes, strides, nd, unit, bytes_, out = f.args
    low, high, empty = f.variable(i64(0)), f.variable(bytes_), f.variable(const(I1, 0))
    with f.loop(i64(0), nd, i64(1)) as k:
        size, stride = f.load(I64, f.gep(I64, sizes, k)), f.load(I64, f.gep(I64, strides, k))
        f.when(f.icmp("eq", size, i64(0)), lambda: f.store(const(I1, 1), empty))
        step = f.mul(f.mul(f.sub(size, i64(1)), stride), unit)
        down = f.icmp("slt", step, i64(0))
        f.store(f.add(f.load(I64, low), f.select(down, step, i64(0))), low)
        f.store(f.add(f.load(I64, high), f.select(down, i64(0), step)), high)
    none = f.load(I1, empty)
    f.store(f.select(none, i64(0), f.load(I64, low)), f.gep(I64, out, i64(1)))
    f.store(f.select(none, i64(0), f.load(I64, high)), f.gep(I64, out, i64(2)))
    f.ret(none)


def write_integer(module: Module) -> None:
    """weft_integer(object, out): whether it is an integer of 64 bits, and which; the object is known to be some."""
    f = module.function("weft_integer", I1, [("value", PTR), ("out", PTR)], linkage="internal")
    w = Writer(f)
    value, out = f.args
    over = f.alloca(I32, 1, 8)
    number = w.call("PyLong_AsLongLongAndOverflow", I64, value, over)
    f.store(number, out)
    f.ret(f.icmp("eq", f.load(I32, over), const(I32, 0)))


def write_match(module: Module) -> None:
    """weft_match(plan, args, count, names, slots, spans): 1: all is as a plan says, and the slots are filled; 0: it is
    not; 2: so has Python said, and while it ran the plans may have changed.
    """
    params = [("plan", PTR), ("args", PTR), ("count", I64), ("names", PTR), ("slots", PTR), ("spans", PTR)]
    f = module.function("weft_match", I32, params, linkage="internal")
    w = Writer(f)
    plan, args, count, names, slots, spans = f.args
    number, parts = f.alloca(I64, 1, 8), f.alloca(PTR, MOST_PARTS, 8)
    cursor = f.alloca(PTR, 1, 8)
    f.store(f.gep(I64, plan, i64(Plan.SIZE)), cursor)
    w.unless(w.eq(w.word(plan, Plan.ARGUMENTS), count), "no")
    _match_names(w, w.word(plan, Plan.KEYWORDS, PTR), names)

    # The empty slots stand last; what the checks need of them is written after.
    template = w.after(plan, ROWS)
    with f.loop(i64(0), w.word(plan, Plan.SLOTS), i64(1)) as k:
        f.store(f.load(I64, f.gep(I64, template, k)), f.gep(I64, slots, k))

    def check(row: Value) -> None:
        _check(w, row, _argument(w, row, args, parts), slots, spans, number, parts)

    w.advance(cursor, w.word(plan, Plan.CHECKS), Check.SIZE, check)
    w.advance(cursor, w.word(plan, Plan.PAIRS), 6, lambda row: _apart(w, row, spans))

    def same(row: Value) -> None:
        found = w.call("PyDict_GetItem", PTR, w.word(row, 0, PTR), w.word(row, 1, PTR))
        w.unless(w.eq(found, w.word(row, 2, PTR)), "no")

    w.advance(cursor, w.word(plan, Plan.WATCHED), 3, same)

    def as_full(row: Value) -> None:
        some = f.icmp("ne", w.call("PyList_Size", I64, w.word(row, 0, PTR)), i64(0))
        w.unless(w.eq(f.cast("zext", some, I64), w.word(row, 1)), "no")

    w.advance(cursor, w.word(plan, Plan.LISTS), 2, as_full)
    changed = w.word(plan, Plan.CHANGED, PTR)
    ask, yes = f.new_label("ask"), f.new_label("yes")
    f.cond_br(w.is_null(changed), yes, ask)
    f.start(ask)
    answer = w.call("PyObject_CallNoArgs", PTR, changed)
    w.if_(w.is_null(answer), "raised")
    w.do("Py_DecRef", answer)
    f.ret(f.select(w.eq(answer, object_at(False)), const(I32, 1), const(I32, 2)))
    f.start(yes)
    f.ret(const(I32, 1))
    f.start("raised")
    w.do("PyErr_Clear")
    f.ret(const(I32, 2))
    f.start("no")
    f.ret(const(I32, 0))


def _match_names(w: Writer, wanted: Value, names: Value) -> None:
    """Go to `no` unless the keywords of a call are those that were, in their order."""
    f = w.f
    compare, done = f.new_label("names"), f.new_label("named")
    w.unless(w.eq(w.is_null(wanted), w.is_null(names)), "no")
    f.cond_br(w.is_null(wanted), done, compare)
    f.start(compare)
    count = w.call("PyTuple_Size", I64, wanted)
    w.unless(w.eq(count, w.call("PyTuple_Size", I64, names)), "no")
    with f.loop(i64(0), count, i64(1)) as k:
        w.unless(w.eq(w.call("PyTuple_GetItem", PTR, wanted, k), w.call("PyTuple_GetItem", PTR, names, k)), "no")
    f.br(done)
    f.start(done)


def _argument(w: Writer, row: Value, args: Value, parts: Value) -> Value:
    """The object that a check is of."""
    f = w.f
    place = w.word(row, Check.PLACE)
    kept, item = f.gep(I64, row, i64(Check.OBJECT)), f.gep(I64, parts, f.sub(i64(part(0)), place))
    elsewhere = f.select(w.eq(place, i64(-1)), kept, item)
    return f.load(PTR, f.select(f.icmp("sge", place, i64(0)), f.gep(I64, args, place), elsewhere))


def _check(w: Writer, row: Value, x: Value, slots: Value, spans: Value, number: Value, parts: Value) -> None:
    """Look at one argument; go to `no` where it is not as it has to be."""
    f = w.f
    want, slot = w.word(row, Check.WANT, PTR), w.word(row, Check.SLOT)
    labels = [f.new_label(name) for name in ("same", "int", "float", "bool", "array", "tensor", "tuple")]
    done = f.new_label("checked")
    kind = w.word(row, Check.KIND)
    cases = " ".join(f"i64 {k}, label %{label}" for k, label in enumerate(labels))
    f.do(f"switch i64 {kind.name}, label %no [ {cases} ]")

    def put(bits: Value) -> None:
        f.when(f.icmp("sge", slot, i64(0)), lambda: f.store(bits, f.gep(I64, slots, slot)))
        f.br(done)

    f.start(labels[Kind.SAME])
    _check_same(w, x, want, number, done)

    f.start(labels[Kind.INT])
    w.unless(w.eq(w.class_of(x), want), "no")
    w.unless(f.call("weft_integer", I1, [x, number]), "no")
    integer = f.load(I64, number)
    w.unless(f.icmp("sge", integer, w.word(row, Check.LOW)), "no")
    w.unless(f.icmp("sle", integer, w.word(row, Check.HIGH)), "no")
    w.if_(w.eq(integer, w.word(row, Check.ELEMENT)), "no")
    _check_alignment(w, integer, row)
    put(integer)

    f.start(labels[Kind.FLOAT])
    w.unless(w.eq(w.class_of(x), want), "no")
    double = w.call("PyFloat_AsDouble", DOUBLE, x)
    single = f.cast("zext", f.bitcast(f.cast("fptrunc", double, FLOAT), I32), I64)
    narrow = w.eq(w.word(row, Check.ELEMENT), i64(32))
    put(f.select(narrow, single, f.bitcast(double, I64)))

    f.start(labels[Kind.BOOL])
    true = w.eq(x, want)
    w.unless(f.emit(I1, f"or {true}, {w.eq(x, w.word(row, Check.LOW, PTR)).name}"), "no")
    put(f.cast("zext", true, I64))

    f.start(labels[Kind.TUPLE])
    w.unless(w.eq(w.class_of(x), want), "no")
    count = w.word(row, Check.LOW)
    w.unless(w.eq(w.call("PyTuple_Size", I64, x), count), "no")
    mine = f.gep(I64, parts, w.word(row, Check.HIGH))
    with f.loop(i64(0), count, i64(1)) as k:
        f.store(w.call("PyTuple_GetItem", PTR, x, k), f.gep(I64, mine, k))
    f.br(done)

    _check_array(w, row, x, (labels[Kind.ARRAY], labels[Kind.TENSOR]), spans, put)
    f.start(done)


def _check_array(
    w: Writer, row: Value, x: Value, labels: tuple[str, str], spans: Value, put: Callable[[Value], None]
) -> None:
    """Look at an array of NumPy, or a tensor; note where it lies."""
    f = w.f
    address, sizes, strides, unit, nd = (f.alloca(t, 1, 8) for t in (I64, PTR, PTR, I64, I64))
    measured = f.new_label("placed")
    f.start(labels[0])
    w.unless(w.eq(w.class_of(x), w.word(row, Check.WANT, PTR)), "no")
    w.unless(w.eq(w.field(x, NDARRAY["descr"], I64), w.word(row, Check.ELEMENT)), "no")
    flags = f.cast("zext", w.field(x, NDARRAY["flags"], I32), I64)
    w.unless(w.eq(f.and_(flags, w.word(row, Check.WRITTEN)), w.word(row, Check.WRITTEN)), "no")
    f.store(w.field(x, NDARRAY["data"], I64), address)
    f.store(w.field(x, NDARRAY["dims"], PTR), sizes)
    f.store(w.field(x, NDARRAY["strides"], PTR), strides)
    f.store(i64(1), unit)
    f.store(f.cast("sext", w.field(x, NDARRAY["nd"], I32), I64), nd)
    f.br(measured)

    f.start(labels[1])
    w.unless(w.eq(w.class_of(x), w.word(row, Check.WANT, PTR)), "no")
    told = f.alloca(I64, 6, 8)  # DLTensor
    failed = f.new_label("untold")
    described = w.call_at(w.word(row, Check.LOW, PTR), I32, x, told)
    w.unless(w.eq(described, const(I32, 0)), failed)
    negative = w.call("PyObject_CallOneArg", PTR, w.word(row, Check.HIGH, PTR), x)
    w.if_(w.is_null(negative), failed)
    w.do("Py_DecRef", negative)
    w.unless(w.eq(negative, object_at(False)), "no")  # its memory has the negatives of its elements
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
    at, own = f.load(I64, address), f.gep(I64, spans, f.mul(w.word(row, Check.ARRAY), i64(3)))
    f.store(at, own)
    dimensions = [f.load(PTR, sizes), f.load(PTR, strides), f.load(I64, nd), f.load(I64, unit)]
    empty = f.call("weft_span", I1, [*dimensions, w.word(row, Check.BYTES), own])
    somewhere = f.emit(I1, f"or {f.icmp('ne', at, i64(0))}, {empty.name}")
    w.unless(somewhere, "no")
    _check_alignment(w, at, row)
    put(at)


def _check_same(w: Writer, x: Value, want: Value, number: Value, done: str) -> None:
    """Go to `done` for the same object, an equal int or str, or a float of the same bits; else to `no`."""
    f = w.f
    w.if_(w.eq(x, want), done)
    kind = w.class_of(x)
    w.unless(w.eq(kind, w.class_of(want)), "no")
    integer, text, real, other = (f.new_label(n) for n in ("isint", "isstr", "isfloat", "other"))
    f.cond_br(w.eq(kind, object_at(int)), integer, other)
    f.start(integer)
    w.unless(f.call("weft_integer", I1, [x, number]), "no")
    one = f.load(I64, number)
    w.unless(f.call("weft_integer", I1, [want, number]), "no")
    f.cond_br(w.eq(one, f.load(I64, number)), done, "no")
    f.start(other)
    neither = f.new_label("neither")
    f.cond_br(w.eq(kind, object_at(str)), text, neither)
    f.start(text)
    f.cond_br(w.eq(w.call("PyUnicode_Compare", I32, x, want), const(I32, 0)), done, "no")
    f.start(neither)
    f.cond_br(w.eq(kind, object_at(float)), real, "no")
    f.start(real)
    bits = [f.bitcast(w.call("PyFloat_AsDouble", DOUBLE, v), I64) for v in (x, want)]
    f.cond_br(w.eq(*bits), done, "no")


def _check_alignment(w: Writer, value: Value, row: Value) -> None:
    """Go to `no` unless a number is a multiple of 16 where ALIGNED is 1, and none where it is 2."""
    f = w.f
    odd = f.icmp("ne", f.and_(value, i64(15)), i64(0))
    asked = w.word(row, Check.ALIGNED)
    wrong = f.select(odd, w.eq(asked, i64(1)), w.eq(asked, i64(2)))
    w.if_(wrong, "no")


def _apart(w: Writer, row: Value, spans: Value) -> None:
    """Go to `no` where two arrays overlap; unless the third word says so, they may begin at the same place. With a
    fourth, they may overlap where their distance, from the fifth on and modulo the fourth, is more than the sixth.
    """
    f = w.f
    a, b = (f.gep(I64, spans, f.mul(w.word(row, k), i64(3))) for k in (0, 1))
    distance = f.sub(w.word(b, 0), w.word(a, 0))
    before = f.icmp("slt", w.word(a, 1), f.add(distance, w.word(b, 2)))
    behind = f.icmp("slt", f.add(distance, w.word(b, 1)), w.word(a, 2))
    apart = f.icmp("ne", f.add(w.word(row, 2), distance), distance)
    counts = f.emit(I1, f"or {apart}, {f.icmp('ne', distance, i64(0)).name}")
    meet = f.emit(I1, f"and {f.emit(I1, f'and {before}, {behind.name}')}, {counts.name}")
    overlap, on = f.new_label("overlap"), f.new_label("apart")
    f.cond_br(meet, overlap, on)
    f.start(overlap)
    step = w.word(row, 3)
    w.if_(w.eq(step, i64(0)), "no")
    place = f.bin("srem", f.sub(distance, w.word(row, 4)), step)
    place = f.select(f.icmp("slt", place, i64(0)), f.add(place, step), place)
    f.cond_br(f.icmp("sgt", place, w.word(row, 5)), on, "no")
    f.start(on)
