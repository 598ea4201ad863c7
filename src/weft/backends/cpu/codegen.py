"""Compiling a module of tile IR for the CPU: one LLVM function for the kernel, one that runs programs of the
grid, an object.

The object exports `void <name>(ptr args, ptr state, ptr scratch)`. `args` has an eight-byte slot for each parameter,
`state` tells which programs of the grid are left; the function takes chunks of them until none are, so any number of
threads may call it at once.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from xdsl.dialects.builtin import ModuleOp

from weft.backends.cpu import (  # noqa: F401  (they register their anchors)
    anchors,
    control,
    dot,
    exchange,
    indexed,
    plans,
    scan,
    tiles,
)
from weft.backends.cpu.arena import Arena
from weft.backends.cpu.control import emit_blocks
from weft.backends.cpu.elementwise import llvm_type
from weft.backends.cpu.host import host_cpu
from weft.backends.cpu.named import cpu_named
from weft.backends.cpu.networks import gather_networks
from weft.backends.cpu.options import CPUOptions
from weft.backends.cpu.polling import Polling
from weft.backends.cpu.prefetch import next_program
from weft.backends.cpu.program import Block, FunctionProgram, Op, read_function
from weft.backends.cpu.schedule import Scheduler
from weft.backends.cpu.state import CHUNK, ERROR, ERROR_PID, NX, NY, NZ, TABLE, THREADS, TOTAL
from weft.backends.cpu.telling import tell_buffers
from weft.backends.cpu.waiting import may_wait
from weft.backends.llvm import half, machine, vecmath
from weft.backends.llvm.emit import Function, Module
from weft.backends.llvm.values import I1, I8, I32, I64, PTR, VOID, Value as Reg, const
from weft.base import CompilationError
from weft.base.remarks import NO_REMARKS, RemarkCollector
from weft.ir import register_of
from weft.targets import CPU, FEATURES

POLL_FN, PRINT_FN, TIME_FN = 0, 8, 16  # offsets in the table
FOUND, FOUND_PID, FOUND_PLACE, FOUND_VALUES = 0, 8, 16, 24  # offsets in the report of a kernel with checks


SHORT = 60
"""Lines of LLVM IR up to which a program becomes a part of the loop over programs: a call of it, and what all programs
have in common, take as long as thirty numbers are added up. Compiling them together takes longer: with 400 a cold
compile took 1.05 times as long (geometric mean of 27 kernels)."""


@dataclass
class CPUBinary:
    """A compiled kernel: LLVM IR, object code, and what the launcher must know."""

    llir: str
    object: bytes
    metadata: dict[str, Any]


def named(options: CPUOptions) -> CPU:
    """The processor that the code is for."""
    return cpu_named(options.cpu, options.features, options.triple)


def assembly(llir: str, options: CPUOptions) -> str:
    """The assembly of the object that LLVM IR became."""
    return machine.assembly(llir, named(options))


class Context:
    """What the emission of one kernel shares: ids, options, tables of asserts and prints."""

    def __init__(
        self,
        options: CPUOptions,
        cpu: CPU,
        vector_bits: int,
        remarks: RemarkCollector = NO_REMARKS,
    ) -> None:
        self.remarks = remarks
        self.assume_no_alias, self.vector_bits, self.cpu = options.assume_no_alias, vector_bits, cpu
        self.matrix_units = options.matrix_units
        self.product_features = cpu.every_feature if options.matrix_units else frozenset[str]()
        self.tiles = False
        """Whether some product is computed by tile registers."""
        self.fetch_ahead = next_program
        self.program_ids: list[Reg] = []
        self.numbered_axes = 1
        """Along how many axes of the grid programs ask where they are."""
        self.num_programs: list[Reg] = []
        self.state: Reg = Reg(PTR, "null")
        self.pid: Reg = const(I64, 0)
        self.found: Reg = Reg(PTR, "null")
        self.asserts: list[dict[str, Any]] = []
        self.prints: list[dict[str, Any]] = []
        self.polls = False
        self.clocks = False
        self.thread_number: Reg = const(I32, 0)
        """The number of the thread that runs the program, in kernels that ask for it."""
        self.polling: Polling

    def program_id(self, axis: int) -> Reg:
        """Where a program is along an axis of the grid."""
        self.numbered_axes = max(self.numbered_axes, axis + 1)
        return self.program_ids[axis]

    def total_programs(self, f: Function) -> Reg:
        """The number of programs in the launch; the total in the state may be that of a part of it."""
        x, y, z = (f.cast("zext", n, I64) for n in self.num_programs)
        return f.mul(f.mul(x, y), z)

    def add_assert(self, op: Op) -> int:
        """Note an assertion; gives its number, from 1."""
        span = op.span
        self.asserts.append(
            {
                "message": str(op.attrs.get("message", "")),
                "file": span.file if span else "",
                "line": span.line if span else 0,
                "col": span.col if span else 0,
                "end_line": span.end_line if span else None,
                "end_col": span.end_col if span else None,
            }
        )
        return len(self.asserts)

    def add_check(self, op: Op) -> int:
        """Note a `weft.check`; gives its number, from 1, among assertions and checks."""
        index = self.add_assert(op)
        fact = self.asserts[-1]
        names = ("what", "relation", "bytes", "arrays", "masked", "sources", "type")
        fact.update({name: op.attrs[name] for name in names if name in op.attrs})
        fact["shape"] = list(op.args[0].shape)
        return index

    def report_place(self, f: Function, index: int, place: Reg, values: list[Reg]) -> None:
        """Report a check that does not hold at a place.

        What is told is what the first program to fail says; the same check may tell it of a place further ahead, as
        the places of a tile are not looked at in their order.
        """

        def word(offset: int) -> Reg:
            return f.gep(I8, self.found, const(I64, offset))

        pair = _noted_first(f, word(FOUND), index)
        seen = f.emit(I64, f"extractvalue {{ i64, i1 }} {pair.name}, 0")
        first = f.emit(I1, f"extractvalue {{ i64, i1 }} {pair.name}, 1")
        before = f.emit(I64, f"load atomic i64, {word(FOUND_PLACE)} acquire, align 8")  # written last: see below
        is_same = f.and_(f.icmp("eq", seen, const(I64, index)), f.icmp("eq", f.load(I64, word(FOUND_PID), 8), self.pid))
        ahead = f.and_(is_same, f.icmp("slt", place, before))

        def tell() -> None:
            f.store(self.pid, word(FOUND_PID))
            for k, value in enumerate(values):
                f.store(value, word(FOUND_VALUES + 8 * k))
            f.do(f"store atomic {place}, {word(FOUND_PLACE)} release, align 8")

        f.when(f.emit(I1, f"or {first}, {ahead.name}"), tell)
        self.report(f, index)

    def stop_if_reported(self, f: Function) -> None:
        """End the program where a check has failed, in this program or another.

        What comes after could rest on what was left out: a loop that waits for a value, a pointer read from a table.
        """
        word = f.gep(I8, self.found, const(I64, FOUND))
        reported = f.icmp("ne", f.emit(I64, f"load atomic i64, {word} monotonic, align 8"), const(I64, 0))

        f.when(reported, lambda: _leave(f))

    def add_print(self, op: Op) -> int:
        """Note a print, once for each operand; gives the number of the first, from 0."""
        index = len(self.prints)
        signed = op.attrs.get("isSigned") or []
        for k in range(max(1, len(op.args))):
            a = op.args[k] if op.args else None
            self.prints.append(
                {
                    "prefix": op.attrs.get("prefix", ""),
                    "hex": bool(op.attrs.get("hex", False)),
                    "dtype": a.elem if a else "",
                    "shape": list(a.shape) if a else [],
                    "operand": k,
                    "operands": len(op.args),
                    "signed": bool(signed[k]) if k < len(signed) else True,
                }
            )
        return index

    def report(self, f: Function, index: int) -> None:
        """Put an assertion's number into the error slot if it is the first."""
        pair = _noted_first(f, f.gep(I8, self.state, const(I64, ERROR)), index)
        first = f.emit(I1, f"extractvalue {{ i64, i1 }} {pair.name}, 1")
        f.when(first, lambda: f.store(self.pid, f.gep(I8, self.state, const(I64, ERROR_PID))))

    def emit_print(self, f: Function, index: int, operand: int, data: Reg | None, size: int) -> None:
        """Call back into the launcher with an operand's bytes."""
        address = data.name if data is not None else "null"
        arguments = f"{self.state}, i64 {index + operand}, i64 {self.pid.name}, ptr {address}, i64 {size}"
        f.do(f"call void {self._function(f, PRINT_FN).name}({arguments})")
        self.after_others(f)

    def _function(self, f: Function, offset: int) -> Reg:
        """One of the functions that a launch gives."""
        table = f.load(PTR, f.gep(I8, self.state, const(I64, TABLE)), 8)
        return f.load(PTR, f.gep(I8, table, const(I64, offset)), 8)

    def emit_time(self, f: Function) -> Reg:
        """Nanoseconds of the system's clock, read in its place: no load or store moves across the call."""
        self.clocks = True
        return f.emit(I64, f"call i64 {self._function(f, TIME_FN).name}()")

    def emit_poll(self, f: Function) -> None:
        """Leave the program where a signal's handler wants the launch to end.

        What the call touches is said to be nothing that the program sees, so that it keeps no load from being moved.
        """
        self.polls = True
        attributes = "nounwind willreturn cold memory(inaccessiblemem: readwrite)"
        answer = f.emit(I32, f"call i32 {self._function(f, POLL_FN).name}({self.state}) {attributes}")
        f.when(f.icmp("ne", answer, const(I32, 0)), lambda: _leave(f))
        self.after_others(f)

    def after_others(self, f: Function) -> None:
        """At the beginning, and after a call of what may use tile registers too."""
        if self.tiles:
            tiles.configure(f)


def _noted_first(f: Function, slot: Reg, number: int) -> Reg:
    """Put a number into a slot that holds 0: what was there before, and whether that was 0."""
    return f.emit(I64.with_elem("{ i64, i1 }"), f"cmpxchg {slot}, i64 0, i64 {number} monotonic monotonic, align 8")


def _leave(f: Function) -> None:
    """End the program here; what is emitted next is never reached."""
    f.ret()
    f.start(f.new_label("left"))


def compile_module(
    module: ModuleOp,
    parameters: list[str] | None,
    options: CPUOptions | None = None,
    remarks: RemarkCollector = NO_REMARKS,
) -> CPUBinary:
    """Compile the kernel in a module of tile IR of the stage `cpu`; `parameters` are the types of its slots."""
    options = options or CPUOptions()
    func = next((op for op in module.body.block.ops if op.name == "tt.func"), None)
    if func is None or parameters is None:
        raise CompilationError("the module has no kernel: expected a `tt.func`")
    program = read_function(func)
    text, metadata = emit(program, options, parameters, remarks)
    obj = machine.compile_object(text, named(options))
    return CPUBinary(text, obj, metadata)


def emit(
    program: FunctionProgram, options: CPUOptions, parameters: list[str], remarks: RemarkCollector = NO_REMARKS
) -> tuple[str, dict[str, Any]]:
    """The LLVM IR of a kernel and its metadata; `parameters` are the types that a launch gives it."""
    cpu = named(options)
    vector_bits = options.vector_bits or 8 * cpu.vector_bytes
    context = Context(options, cpu, vector_bits, remarks)
    gather_networks(program)
    module = Module()
    module.masked_bits = cpu.masked_bits
    module.branches_at_masks = cpu.branches_at_masks
    module.converts_half = cpu.converts_half
    module.fuses = not cpu.is_x86 or cpu.has("fma")
    module.hides_bounds = cpu.arch == "aarch64"
    module.splits_pairs = cpu.is_x86
    module.swapped_bits = 128 if cpu.is_x86 and cpu.has("cx16") else 64
    module.gathers_words = cpu.has("avx512f")  # LLVM does without AVX2's gathers, which are slow on many processors
    vecmath.configure(module, avx512=vector_bits == 512 and cpu.has("avx512f") and cpu.has("avx512vl"))
    slots = [(f"p{i}", llvm_type(p.elem)) for i, p in enumerate(program.params)]
    checks, numbered = has_checks(program), _asks_for_thread(program)
    extra = [*((name, I32) for name in ("x", "y", "z", "nx", "ny", "nz")), ("pid", I64), ("state", PTR)]
    extra += [("found", PTR)] * checks + [("thread", I32)] * numbered + [("scratch", PTR)]
    attributes = ["noundef"] * (len(slots) + len(extra) - 1) + ["noalias align 64"]
    body = module.function("weft.program", VOID, [*slots, *extra], "nounwind", "internal", attributes)
    if options.enable_fp_fusion:
        body.fast = "contract "
    args = body.args[len(slots) :]
    context.program_ids, context.num_programs = args[0:3], args[3:6]
    context.pid, context.state = args[6], args[7]
    if checks:
        context.found = args[8]
    if numbered:
        context.thread_number = args[-2]
    context.tiles = _any(program.blocks, lambda op: plans.is_in_tiles(op, context.product_features))
    context.polling = Polling(program.blocks, context.emit_poll, tiles.AT_ONCE if context.tiles else 1)
    arena = Arena(body, args[-1])
    scheduler = Scheduler(body, program, arena, context)
    for value, reg in zip(program.params, body.args, strict=False):
        scheduler.env[value] = reg
    emit_blocks(scheduler, program.blocks)
    tell_buffers(arena, program, remarks)
    if len(body.lines) <= SHORT:
        body.inline()
    _worker(module, program, slots, context, checks=checks, numbered=numbered)
    if not cpu.converts_half:
        half.define_conversions(module)
    asked = options.cpu or options.features
    told = FEATURES.get(cpu.arch, ()) if asked else ()
    needs = [feature for feature in cpu.features if feature in told and not feature.startswith("amx")]  # see "tiles"
    metadata = {
        "name": program.name,
        "params": parameters,
        "scratch_bytes": arena.size,
        "scratch_largest": arena.largest(),
        "asserts": context.asserts,
        **({"checks": True, "checked": _checked(program)} if checks else {}),
        "prints": context.prints,
        **({"made_for": [cpu.name, cpu.triple]} if cpu.triple != host_cpu().triple else {}),
        **({"needs": needs} if needs else {}),
        "polls": context.polls,
        **({"clocks": True} if context.clocks else {}),
        **({"tiles": True} if context.tiles else {}),
        "waits": may_wait(program.blocks),
        "alias_pairs": scheduler.aliases.listed(),
    }
    module.inline_single()
    return module.text(), metadata


def _any(blocks: list[Block], holds: Callable[[Op], bool]) -> bool:
    """Whether something holds of any operation, at whatever depth."""
    ops = (op for block in blocks for op in block.ops)
    return any(holds(op) or any(_any(region, holds) for region in op.regions) for op in ops)


def has_checks(program: FunctionProgram) -> bool:
    """Whether any operation of a kernel is a `weft.check`."""
    return _any(program.blocks, lambda op: op.name == "weft.check")


def _asks_for_thread(program: FunctionProgram) -> bool:
    """Whether a kernel asks which thread runs it."""
    return _any(program.blocks, lambda op: op.name == "tt.elementwise_inline_asm" and register_of(op.source) == "smid")


def _checked(program: FunctionProgram) -> list[dict[str, Any]]:
    """The slots of the arrays whose limits a launch of a kernel with checks gives."""
    return [{"slot": slot, "name": program.names[slot]} for slot in program.checked]


def _worker(
    module: Module,
    program: FunctionProgram,
    slots: list[tuple[str, Any]],
    context: Context,
    *,
    checks: bool,
    numbered: bool,
) -> None:
    """The exported function: take chunks of programs from the state until there are none.

    `checks`: what a check finds is written behind the arguments. `numbered`: programs ask which thread they run on:
    those that come here count themselves, from 0.
    """
    f = module.function(_quoted(program.name), VOID, [("args", PTR), ("state", PTR), ("scratch", PTR)], "nounwind")
    args, state, scratch = f.args
    values = [f.load(type, f.gep(I64, args, const(I64, i)), 8) for i, (_, type) in enumerate(slots)]

    def field(offset: int, type: Any) -> Reg:
        return f.load(type, f.gep(I8, state, const(I64, offset)))

    report = [f.gep(I64, args, const(I64, len(slots)))] if checks else []
    if numbered:
        place = f.gep(I8, state, const(I64, THREADS))
        report.append(f.emit(I32, f"atomicrmw add {place}, i32 1 monotonic, align 4"))
    total, chunk = field(TOTAL, I64), field(CHUNK, I64)
    nx, ny, nz = field(NX, I32), field(NY, I32), field(NZ, I32)
    head, run, done = f.new_label("take"), f.new_label("run"), f.new_label("finished")
    context.after_others(f)
    f.br(head)
    f.start(head)
    first = f.emit(I64, f"atomicrmw add ptr {state.name}, i64 {chunk.name} monotonic, align 8")
    f.cond_br(f.icmp("slt", first, total), run, done)
    f.start(run)
    end = f.intrinsic("smin", I64, [f.add(first, chunk), total])

    counts = [nx, ny, nz][: context.numbered_axes]

    def one(pid: Reg, place: list[Reg]) -> list[Reg]:
        xyz = [*place, *[const(I32, 0)] * (3 - len(place))]
        f.call_void("weft.program", [*values, *xyz, nx, ny, nz, pid, state, *report, scratch])
        if context.polls or context.prints:  # programs may end because the launch is to end
            error = f.emit(I64, f"load atomic i64, {f.gep(I8, state, const(I64, ERROR))} monotonic, align 8")
            on = f.new_label("on")
            f.cond_br(f.icmp("slt", error, const(I64, 0)), done, on)
            f.start(on)
        return _next_place(f, place, counts)

    f.loop_carrying(first, end, const(I64, 1), _place(f, first, counts), one, at_least_once=True)
    f.br(head)
    f.start(done)
    if context.tiles:
        tiles.release(f)
    if context.cpu.is_x86 and module.streams:  # stores went around the cache, and have to be seen by others
        f.call_void("llvm.x86.sse.sfence", [])
    f.ret()


def _place(f: Function, pid: Reg, counts: list[Reg]) -> list[Reg]:
    """Where a program is along the axes of a grid, by its number in the grid."""
    place, rest = [], pid
    for count in counts:
        wide = f.cast("zext", count, I64)
        place.append(f.cast("trunc", f.bin("urem", rest, wide), I32))
        rest = f.bin("udiv", rest, wide)
    return place


def _next_place(f: Function, place: list[Reg], counts: list[Reg]) -> list[Reg]:
    """Where the next program is: a division takes as long as a short program does."""
    following, more = [], const(I1, 1)
    for number, count in zip(place, counts, strict=True):
        number = f.add(number, f.cast("zext", more, number.type))
        more = f.icmp("eq", number, count)
        following.append(f.select(more, const(number.type, 0), number))
    return following


def _quoted(name: str) -> str:
    return name if name.replace("_", "").isalnum() else '"' + name.replace('"', "_") + '"'
