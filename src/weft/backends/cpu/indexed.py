"""Operations whose places depend on data: gather, histogram, and functions mapped with real control flow."""

from __future__ import annotations

from collections.abc import Callable

from weft.backends.cpu import access, forms
from weft.backends.cpu.buffers import Buffer
from weft.backends.cpu.coords import Coords, row_major
from weft.backends.cpu.elementwise import memory_type
from weft.backends.cpu.evaluate import Evaluator
from weft.backends.cpu.forms import Pointer, Uniform, Varying, form_of, vector_of
from weft.backends.cpu.program import Op, Value, element_bits
from weft.backends.cpu.roots import At, OperationRoot
from weft.backends.cpu.scan import load_elements, store_elements
from weft.backends.cpu.schedule import Scheduler, anchor
from weft.backends.cpu.telling import tell_loop
from weft.backends.llvm.values import I1, I8, I32, I64, const
from weft.base import Unsupported


class _GatherRoot(OperationRoot):
    """`tt.gather`: out[.., i, ..] = source[.., index[.., i, ..], ..]; an index beyond the axis wraps around it."""

    def __init__(self, op: Op, data: Buffer, result: Buffer) -> None:
        super().__init__(op, first=1)
        self.data, self.result = data, result

    def accesses(self) -> list[tuple[Value | Buffer, Coords, int]]:
        return [(self.result, self.coords, element_bits(self.result.elem))]

    def prepare(self, ev: Evaluator, at: At) -> Callable[[], None]:
        f, coords, lanes = ev.f, at(self.coords), ev.lanes
        axis, length = self.op.attrs["axis"], self.op.args[0].shape[self.op.attrs["axis"]]
        weights = row_major(self.op.args[0].shape)
        pieces = [
            (source, weight)
            for k, (coord, bits) in enumerate(zip(coords, weights, strict=True))
            for source, weight in (zip(coord, bits, strict=True) if k != axis else ())
        ]
        rest = forms.cast_int(f, "trunc", ev.number(pieces), I32)
        index = ev.eval(self.op.args[1], coords)
        place = vector_of(f, index, 0 if isinstance(index, Uniform) else lanes)
        whole = I32.with_lanes(place.type.lanes)
        place = f.cast("trunc" if place.type.bits > 32 else "sext", place, whole)
        place = f.and_(place, const(whole, length - 1))
        if axis + 1 < len(weights):
            place = f.shl(place, const(whole, sum(map(len, weights[axis + 1 :]))))
        assert rest is not None
        offset = forms.add(f, Uniform(place), rest) if not place.type.lanes else None
        if offset is None:
            offset = Varying(f.add(place, vector_of(f, rest, lanes)))
        type = memory_type(self.result.elem)
        form = access.load_lanes(f, type, Pointer(self.data.address, offset, type), lanes, None, None)
        there = ev.buffer_pointer(self.result, coords)
        return lambda: access.store_lanes(f, type, there, lanes, form, None)


@anchor("tt.gather")
def _gather(s: Scheduler, op: Op) -> None:
    source = op.args[0]
    data = s.materialise(source, row_major(source.shape), "elements of it are looked up")
    s.keep_whole(data)
    result = s.allocate(op.result)
    s.add_root(_GatherRoot(op, data, result))
    s.flush()  # what comes next may write over the source, at other places than are read
    s.env[op.result] = result


class _BinRoot(OperationRoot):
    """The bin of each element of a histogram, one beyond the last where it is not counted."""

    def __init__(self, op: Op, bins: Buffer) -> None:
        super().__init__(op)
        self.bins, self.count = bins, op.result.numel

    def accesses(self) -> list[tuple[Value | Buffer, Coords, int]]:
        return [(self.bins, self.coords, 32)]

    def prepare(self, ev: Evaluator, at: At) -> Callable[[], None]:
        f, coords = ev.f, at(self.coords)
        value = vector_of(f, ev.eval(self.op.args[0], coords), ev.lanes)
        wide = value.type if value.type.bits >= 32 else value.type.with_elem("i32")
        value = f.cast("sext", value, wide)
        counted = f.icmp("ult", value, const(wide, self.count))
        if len(self.op.args) > 1:
            counted = f.and_(counted, vector_of(f, ev.eval(self.op.args[1], coords), ev.lanes))
        place = f.cast("trunc", f.select(counted, value, const(wide, self.count)), wide.with_elem("i32"))
        there = ev.buffer_pointer(self.bins, coords)
        return lambda: access.store_lanes(f, I32, there, ev.lanes, form_of(place), None)


TABLE_BYTES = 16 << 10  # of all the tables of a histogram: half of a cache of the first level
TABLES = 8  # as many increments are under way before one of the first has been stored


@anchor("tt.histogram")
def _histogram(s: Scheduler, op: Op) -> None:
    """Counts of each value below the number of bins; others are not counted.

    Which bins elements belong to is computed by vectors. They are counted one by one, but neighbours in tables of their
    own, since an increment that follows another of the same place waits for it.
    """
    s.flush()
    source, count = op.args[0], op.result.numel
    places = s.temporary((source.numel,), "i32")
    s.add_root(_BinRoot(op, places))
    s.flush()
    tables = TABLES
    while tables > 1 and (tables * count * 4 > TABLE_BYTES or tables * count > source.numel):
        tables //= 2
    tables = min(tables, source.numel)
    result = s.allocate(op.result)
    pitch = count + 16  # the place beyond the last is for what is not counted
    table = s.temporary((tables * pitch,), "i32")
    tell_loop(s.remarks, op, source, scalar="two elements may count in one bin")
    f = s.f
    f.do(f"call void @llvm.memset.p0.i64(ptr align 64 {table.address.name}, i8 0, i64 {tables * pitch * 4}, i1 false)")
    f.module.declare("llvm.memset.p0.i64", I8.with_elem("void"), [table.address.type, I8, I64, I1])
    with f.loop(const(I64, 0), const(I64, source.numel), const(I64, tables), at_least_once=True) as i:
        first = f.gep(I32, places.address, i)
        for k in range(tables):
            place = f.cast("zext", f.load(I32, f.gep(I32, first, const(I64, k)), 4), I64)
            at = f.gep(I32, f.gep(I32, table.address, const(I64, k * pitch)), place)
            f.store(f.add(f.load(I32, at, 4), const(I32, 1)), at, 4)
    lanes = min(count, max(1, s.vector_bits // 32))
    type = I32.with_lanes(lanes if lanes > 1 else 0)
    with f.loop(const(I64, 0), const(I64, count), const(I64, lanes), at_least_once=True) as i:
        total = f.load(type, f.gep(I32, table.address, i), 4)
        for k in range(1, tables):
            total = f.add(total, f.load(type, f.gep(I32, f.gep(I32, table.address, i), const(I64, k * pitch)), 4))
        f.store(total, f.gep(I32, result.address, i), 4)
    s.env[op.result] = result


@anchor("tt.map_elementwise")
def _map_elementwise(s: Scheduler, op: Op) -> None:
    """A scalar function applied to each element (or to `pack` neighbours at once), with control flow of its own."""
    pack = int(op.attrs.get("pack", 1))
    block = op.regions[0][0]
    if len(op.regions[0]) > 1:
        raise Unsupported("map_elementwise with unstructured control flow", "cpu", span=op.span)
    sources = [s.materialise(a, row_major(a.shape)) for a in op.args]
    results = [s.allocate(r) for r in op.results]
    tell_loop(s.remarks, op, op.args[0], scalar="each element may take a way of its own through the function")
    f = s.f
    saved, loads = dict(s.env), list(s.pending_loads)
    with f.loop(const(I64, 0), const(I64, op.args[0].numel), const(I64, pack), at_least_once=True) as i:
        args = iter(block.args)
        for a, buffer in zip(op.args, sources, strict=True):
            for k in range(pack):
                s.env[next(args)] = load_elements(f, a, buffer, f.add(i, const(I64, k)), 1)
        for inner in block.ops[:-1]:
            s.position = inner.index
            s.operation(inner)
        s.flush()
        values = iter(block.ops[-1].args)
        for r, buffer in zip(op.results, results, strict=True):
            for k in range(pack):
                store_elements(f, r, buffer, f.add(i, const(I64, k)), s.scalar(next(values)))
    s.env.clear()
    s.env.update(saved)
    s.pending_loads = loads
    s.position = op.last
    for r, buffer in zip(op.results, results, strict=True):
        s.env[r] = buffer
