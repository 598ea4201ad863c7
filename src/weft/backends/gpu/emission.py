"""A lane program to LLVM IR.

    llir = emit_llvm(program, dialect)                  # the vendor has code made of it
    emitted = emitted_of(program, dialect, llir, code)
    emitted.code, emitted.name, emitted.threads, emitted.shared_bytes

The kernel's ABI, for whoever launches it: parameters in the program's order; a pointer is 8 bytes, an address in global
memory; integers and floats have their own size, i1 and fp8 a byte, f16 and bf16 two; a tensor map is 128 bytes by
value, aligned to 64. A program that wants global memory of its own (`scratch_bytes` for each program of the grid) has
one pointer more to all of it, aligned to 128; behind that come those that a vendor's kernels take (`Dialect.pointers`).
The block has `threads` threads along x; shared memory is dynamic, `shared_bytes` of it. With clusters, the grid counts
blocks: programs times `blocks` along x.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from weft.backends.llvm.values import vec
from weft.ir.lane import LaneProgram, Parameter
from weft.ops import ELEMENTS

from . import (
    control,
    conversions,
    diagnostics,
    division,
    elementwise,
    floats,
    integers,
    memory,
    registers,
    small_integers,
)
from .dialect import Dialect
from .emitter import Body, Emitter, Register
from .lines import Lines

# Imported to fill the table.
FAMILIES = (
    control, conversions, diagnostics, division, elementwise, floats, integers, memory, registers, small_integers,
)  # fmt: skip


@dataclass(frozen=True)
class Emitted:
    """A kernel as text for the vendor's assembler, and what a launch needs to know."""

    code: str
    llir: str
    name: str
    processor: str
    """As the vendor's assembler names it."""
    threads: int
    shared_bytes: int
    parameters: tuple[Parameter, ...]
    warps: int
    blocks: int = 1
    """Blocks of a cluster."""
    scratch_bytes: int = 0
    """Bytes of global memory for each program of the grid."""
    maxnreg: int | None = None
    most_blocks: int = 0
    """How many blocks are to run at a time on a multiprocessor; 0 is as many as fit."""
    blocks_by_memory: bool = False
    """See `LaneProgram`."""
    programs_each: int = 1
    """See `LaneProgram`; with more than 1, the last parameter is how many programs the grid has along x."""

    @property
    def metadata(self) -> dict[str, Any]:
        """What is kept of a kernel beside its text, under Triton's names."""
        return {
            "name": self.name,
            "shared": self.shared_bytes,
            "num_warps": self.warps,
            "num_ctas": self.blocks,
            "global_scratch_size": self.scratch_bytes,
            "global_scratch_align": 128 if self.scratch_bytes else 1,
            "most_blocks": self.most_blocks,
            "blocks_by_memory": self.blocks_by_memory,
            "programs_each": self.programs_each,
            "threads": self.threads,
            "arch": self.processor,
            "params": [_spelled(p) for p in self.parameters],
            "tensor_maps": [
                [p.pointee, list(p.box), p.swizzle, list(p.block), p.descriptor]
                for p in self.parameters
                if p.elem == "tensormap" and p.made is None
            ],
            "made_maps": [
                [p.name, p.pointee, list(p.box), p.swizzle, p.made.plain()]
                for p in self.parameters
                if p.made is not None
            ],
        }


def _spelled(parameter: Parameter) -> str:
    """The type of a parameter as signatures spell it."""
    name = parameter.pointee if parameter.elem == "ptr" else parameter.elem
    spelled = ELEMENTS[name].language if name in ELEMENTS else name
    return f"*{spelled}" if parameter.elem == "ptr" else spelled


def _parameter_type(e: Emitter, parameter: Parameter) -> str:
    if parameter.elem == "ptr":
        return "ptr addrspace(1)"
    if parameter.elem == "tensormap":
        return "ptr"
    type = e.llvm[parameter.elem]
    return {"i1": "i8", "half": "i16", "bfloat": "i16"}.get(type, type)


def _argument(e: Emitter, parameter: Parameter, name: str) -> Register:
    """A parameter as the register that the program works with."""
    if parameter.elem == "ptr":
        return e.ins(f"ptrtoint ptr addrspace(1) {name} to i64")
    if parameter.elem == "tensormap":
        return e.ins(f"ptrtoint ptr {name} to i64")
    type = e.llvm[parameter.elem]
    if type == "i1":
        return e.ins(f"icmp ne i8 {name}, 0")
    return e.ins(f"bitcast i16 {name} to {type}") if type in ("half", "bfloat") else name


def _identifier(name: str) -> str:
    """The name of the kernel with what assemblers allow in names."""
    if name.isidentifier() and name.isascii():
        return name
    identifier = "".join(c if c.isascii() and (c.isalnum() or c in "_$") else "_" for c in name)
    return f"_{identifier}" if not identifier or identifier[0].isdigit() else identifier


def emit_llvm(
    program: LaneProgram,
    dialect: Dialect[Emitter],
    fp_fusion: bool = True,
    maxnreg: int | None = None,
    *,
    lines: bool = True,
) -> str:
    """LLVM IR as text, of a program that the lowering checked; with `lines`, it says where in the source it is from."""
    e = Emitter(program, dialect, fp_fusion)
    attributes = f"nounwind convergent {dialect.attributes(program, maxnreg or program.registers)}"
    first = next((op.span for op in program.body.walk() if op.span is not None), None)
    if lines and first is not None:
        e.source = Lines(_identifier(program.name), first)
        e.place = e.source.suffix(first)
        attributes += f" !dbg !{e.source.program}"
    types = [_parameter_type(e, p) for p in program.parameters]
    pairs = [(f"p{i}", vec(t, 0)) for i, t in enumerate(types)]
    extra = [dialect.tensor_map if t == "ptr" else "noundef" if t.startswith("ptr") else "" for t in types]
    if program.scratch:
        pairs.append(("scratch", vec("ptr addrspace(1)", 0)))
        extra.append("noundef align 128")
    if program.programs_each > 1:
        pairs.append(("programs", vec("i32", 0)))
        extra.append("noundef")
    further = dialect.pointers(program)
    pairs += [(name, vec("ptr addrspace(1)", 0)) for name in further]
    extra += ["noundef"] * len(further)
    function = Body(e.module, _identifier(program.name), vec("void", 0), pairs, attributes, dialect.convention, extra)
    e.module.functions.append(function)
    e.start(function)
    for value, parameter, argument in zip(program.body.arguments, program.parameters, function.args, strict=False):
        e.env[value] = [_argument(e, parameter, argument.name)]
    dialect.begin(e)
    if program.programs_each > 1:
        control.programs(e, "%programs")
    else:
        e.region(program.body)
    e.do("ret void")  # after an operation that returns, from a block that nothing goes to
    e.finish()
    if program.shared_bytes:
        alignment = max(16, *(a.alignment for a in program.shared))
        e.module.globals.append(dialect.shared_memory(program, alignment))
    if e.source is not None:
        e.module.attributes += e.source.text()
    return e.module.text()


def emitted_of(
    program: LaneProgram, dialect: Dialect[Emitter], llir: str, code: str, maxnreg: int | None = None
) -> Emitted:
    """The texts with what is known of the program."""
    return Emitted(
        code,
        llir,
        _identifier(program.name),
        dialect.processor,
        program.warps * program.lanes,
        program.shared_bytes,
        program.parameters,
        program.warps,
        program.blocks,
        program.scratch,
        maxnreg or program.registers or None,
        program.most_blocks,
        program.blocks_by_memory,
        program.programs_each,
    )
