"""Anchors that only make a nest or a scalar: stores, reductions, atomics, program ids, assertions, prints.

An anchor is a function that gets the scheduler and the operation, and leaves what the operation yields in `env`:

    @anchor("tt.unsplat")
    def _unsplat(s: Scheduler, op: Op) -> None:
        s.flush()                                           # close the open nest
        s.env[op.result] = ...

Those with more to them have files of their own: control, dot, scan, indexed.
"""

from __future__ import annotations

from functools import reduce

from weft.backends.cpu.buffers import Buffer
from weft.backends.cpu.elementwise import llvm_type, memory_type
from weft.backends.cpu.evaluate import Evaluator
from weft.backends.cpu.forms import Uniform
from weft.backends.cpu.program import Op
from weft.backends.cpu.reduce import ReduceRoot
from weft.backends.cpu.roots import AssertRoot, AtomicRoot, CheckRoot, StoreRoot, atomic
from weft.backends.cpu.schedule import Scheduler, anchor
from weft.backends.llvm.values import I1, I32, I64, Value as Reg, const
from weft.ir import CLOCKS, FIXED_REGISTERS, register_of


@anchor("tt.store")
def _store(s: Scheduler, op: Op) -> None:
    if op.args[0].is_tile:
        s.add_root(StoreRoot(op))
        return
    s.flush()
    s.settle_loads([op], {op})
    f = s.f
    address, value = s.scalar(op.args[0]), s.scalar(op.args[1])
    if op.args[1].elem == "i1":
        value = f.cast("zext", value, memory_type("i1"))
    if op.args[1].elem == "ptr":
        value = f.cast("ptrtoint", value, llvm_type("i64"))
    align = max(1, value.type.bits // 8)
    if len(op.args) > 2:
        f.when(s.scalar(op.args[2]), lambda: f.store(value, address, align))
    else:
        f.store(value, address, align)


@anchor("tt.load")
def _load(s: Scheduler, op: Op) -> None:
    """A load of a scalar, and of a volatile tile, which is loaded here and once."""
    s.flush()
    if op.result.is_tile:
        s.materialise(op.result)
        return
    form = Evaluator(s.f, s.env, ())._load_now(op, ())
    assert isinstance(form, Uniform)
    s.env[op.result] = form.value


@anchor("tt.reduce")
def _reduce(s: Scheduler, op: Op) -> None:
    outputs: list[Buffer | None] = [s.allocate(r) if r.is_tile else None for r in op.results]
    s.add_root(ReduceRoot(op, outputs, s.failed))
    for r, buffer in zip(op.results, outputs, strict=True):
        if buffer is not None:
            s.env[r] = buffer  # reading it closes the nest first: see together.py


@anchor("tt.atomic_rmw", "tt.atomic_cas", "tt.atomic_load", "tt.atomic_store")
def _atomic(s: Scheduler, op: Op) -> None:
    s.flush()
    if op.args[0].is_tile:
        result = s.allocate(op.result) if op.results and op.result.users else None
        s.add_root(AtomicRoot(op, result))
        s.flush()
        if result is not None:
            s.env[op.result] = result
        return
    s.settle_loads([op], {op})
    address, *args = map(s.scalar, op.args)
    old = atomic(s.f, op, address, args)
    if op.results:
        s.env[op.result] = old


@anchor("tt.unsplat")
def _unsplat(s: Scheduler, op: Op) -> None:
    s.flush()
    source = op.args[0]
    ev = Evaluator(s.f, s.env, ())
    form = ev.eval(source, tuple(() for _ in source.shape))
    assert isinstance(form, Uniform)
    s.env[op.result] = form.value


@anchor("tt.get_program_id", "tt.get_num_programs")
def _program(s: Scheduler, op: Op) -> None:
    axis = op.attrs["axis"]
    axis = {"x": 0, "y": 1, "z": 2}.get(axis, axis)
    s.env[op.result] = s.context.program_id(axis) if op.name == "tt.get_program_id" else s.context.num_programs[axis]


@anchor("tt.elementwise_inline_asm")
def _register(s: Scheduler, op: Op) -> None:
    """Assembly that reads a register; what came before it is done when a clock is read."""
    s.flush()
    name, elem = register_of(op.source) or "", llvm_type(op.result.elem)
    if name in CLOCKS:
        value = s.f.bin("lshr", s.context.emit_time(s.f), const(I64, CLOCKS[name]))
    elif name == "smid":
        value = s.context.thread_number
    elif name in FIXED_REGISTERS:
        value = const(I32, FIXED_REGISTERS[name])
    else:
        register, _, axis = name.partition(".")
        number = "xyz".index(axis)
        value = s.context.num_programs[number] if register.startswith("n") else s.context.program_id(number)
    narrower = value.type.bits > elem.bits
    s.env[op.result] = value if value.type == elem else s.f.cast("trunc" if narrower else "zext", value, elem)


@anchor("gpu.barrier", "ttg.barrier", "tt.debug_barrier", "ttg.local_barrier", "llvm.intr.assume", "ub.poison")
def _nothing(s: Scheduler, op: Op) -> None:
    for r in op.results:
        if not r.is_tile:
            s.env[r] = const(llvm_type(r.elem), 0)


@anchor("tt.assert")
def _assert(s: Scheduler, op: Op) -> None:
    index = s.context.add_assert(op)

    def report(failed: Reg) -> None:
        s.f.when(failed, lambda: s.context.report(s.f, index))

    if op.args[0].is_tile:
        s.flush()
        s.add_root(AssertRoot(op, report))
        s.flush()
        return
    condition, *masks = map(s.scalar, op.args)
    report(reduce(s.f.and_, masks, s.f.xor(condition, const(I1, 1))))


@anchor("weft.check")
def _check(s: Scheduler, op: Op) -> None:
    index = s.context.add_check(op)

    def report(place: Reg, values: list[Reg]) -> None:
        s.context.report_place(s.f, index, place, values)

    if op.args[0].is_tile:
        s.flush()
        s.add_root(CheckRoot(op, report))
        s.flush()
        s.context.stop_if_reported(s.f)
        return
    holds, *values = map(s.scalar, op.args)
    s.f.when(s.f.xor(holds, const(I1, 1)), lambda: report(const(I64, 0), values))
    s.context.stop_if_reported(s.f)


@anchor("tt.print")
def _print(s: Scheduler, op: Op) -> None:
    s.flush()
    index = s.context.add_print(op)
    if not op.args:
        s.context.emit_print(s.f, index, 0, None, 0)
        return
    for k, a in enumerate(op.args):
        if a.is_tile:
            buffer = s.materialise(a)
            size = a.numel * memory_type(a.elem).bits // 8
            s.context.emit_print(s.f, index, k, buffer.address, size)
        else:
            reg = s.scalar(a)
            slot = s.f.alloca(memory_type("i64"), 1, 8)
            value = s.f.cast("zext", reg, memory_type("i1")) if reg.type.elem == "i1" else reg
            s.f.store(value, slot)
            s.context.emit_print(s.f, index, k, slot, max(1, value.type.bits // 8))
