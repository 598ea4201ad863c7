"""Operations whose places depend on data: gather, histogram, and functions mapped with real control flow."""

from __future__ import annotations

from weft.backends.cpu.coords import row_major
from weft.backends.cpu.program import Op
from weft.backends.cpu.scan import load_elements, store_elements
from weft.backends.cpu.schedule import Scheduler, anchor
from weft.backends.cpu.telling import tell_loop
from weft.backends.llvm.emit import Function
from weft.backends.llvm.values import I1, I8, I32, I64, const
from weft.backends.llvm.values import Value as Reg
from weft.base import Unsupported


@anchor("tt.gather")
def _gather(s: Scheduler, op: Op) -> None:
    """out[.., i, ..] = source[.., index[.., i, ..], ..]; an index beyond the axis wraps around it."""
    source, index = op.args
    axis = op.attrs["axis"]
    shape, length = index.shape, source.shape[axis]
    inner = 1
    for size in source.shape[axis + 1 :]:
        inner *= size
    data, where = s.materialise(source, row_major(source.shape)), s.materialise(index, row_major(shape))
    result = s.allocate(op.result)
    tell_loop(s.remarks, op, index, scalar="elements are looked up one by one")
    f = s.f
    with f.loop(const(I64, 0), const(I64, index.numel), const(I64, 1), at_least_once=True) as i:
        at = f.cast("sext", load_elements(f, index, where, i, 1), I64)
        wrapped = f.and_(at, const(I64, length - 1))
        column = f.bin("urem", i, const(I64, inner))
        outer = f.bin("udiv", i, const(I64, inner * shape[axis]))
        offset = f.add(f.mul(f.add(f.mul(outer, const(I64, length)), wrapped), const(I64, inner)), column)
        store_elements(f, op.result, result, i, load_elements(f, source, data, offset, 1))
    s.env[op.result] = result


@anchor("tt.histogram")
def _histogram(s: Scheduler, op: Op) -> None:
    """Counts of each value below the number of bins; others are not counted."""
    source = op.args[0]
    data = s.materialise(source, row_major(source.shape))
    mask = s.materialise(op.args[1], row_major(source.shape)) if len(op.args) > 1 else None
    result = s.allocate(op.result)
    tell_loop(s.remarks, op, source, scalar="two elements may count in one bin")
    f, bins = s.f, op.result.numel
    f.do(f"call void @llvm.memset.p0.i64(ptr align 64 {result.address.name}, i8 0, i64 {bins * 4}, i1 false)")
    f.module.declare("llvm.memset.p0.i64", I8.with_elem("void"), [result.address.type, I8, I64, I1])
    with f.loop(const(I64, 0), const(I64, source.numel), const(I64, 1), at_least_once=True) as i:
        value = f.cast("sext", load_elements(f, source, data, i, 1), I64)
        counted = f.icmp("ult", value, const(I64, bins))
        if mask is not None:
            counted = f.and_(counted, load_elements(f, op.args[1], mask, i, 1))
        _count(f, result.address, value, counted)
    s.env[op.result] = result


def _count(f: Function, bins: Reg, value: Reg, counted: Reg) -> None:
    safe = f.select(counted, value, const(I64, 0))
    at = f.gep(I32, bins, safe)
    f.store(f.add(f.load(I32, at, 4), f.cast("zext", counted, I32)), at, 4)


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
                reg = s.env[next(values)]
                assert isinstance(reg, Reg)
                store_elements(f, r, buffer, f.add(i, const(I64, k)), reg)
    s.env.clear()
    s.env.update(saved)
    s.pending_loads = loads
    s.position = op.last
    for r, buffer in zip(op.results, results, strict=True):
        s.env[r] = buffer
