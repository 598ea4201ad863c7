"""LLVM as a library: parse, optimise, and emit an object or assembly for a CPU.

The IR is verified before any pass runs, because what LLVM does with broken IR is end the process.
"""

from __future__ import annotations

from functools import lru_cache

import llvmlite.binding as llvm

from weft.base import CompilerCrash
from weft.targets import CPU

from . import early
from .aborts import told

# On Windows an object that computes with floats refers to this symbol, which a linker would find in the C library.
_USES_FLOATS = "@_fltused = weak_odr hidden constant i32 0\n"


@lru_cache(maxsize=1)
def initialize() -> str:
    """Register the native target; gives the default triple."""
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    return str(llvm.get_process_triple())


@lru_cache(maxsize=1)
def initialize_others() -> None:
    """Register every target that LLVM has, for processors of other families than this one."""
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()


@lru_cache(maxsize=8)
def target_machine(cpu: CPU) -> llvm.TargetMachine:
    """LLVM's target machine for a processor."""
    if cpu.triple != initialize():
        initialize_others()
    flags = cpu.feature_string
    if cpu.vector_bytes == 64:  # LLVM would rather use half of a 512-bit register
        flags += ",-prefer-256-bit"
    target = llvm.Target.from_triple(cpu.triple)
    return target.create_target_machine(cpu=cpu.name, features=flags, opt=2, reloc="pic", codemodel="default")


def parse(text: str) -> llvm.ModuleRef:
    """Parse and verify LLVM assembly."""
    initialize()
    try:
        module = llvm.parse_assembly(text)
        module.verify()
    except RuntimeError as error:
        raise CompilerCrash(f"LLVM refuses the code generated for this kernel: {error}") from error
    return module


def optimised(text: str, cpu: CPU) -> tuple[llvm.ModuleRef, llvm.TargetMachine]:
    """Parse and run the passes of LLVM that pay here.

    These are what goes across functions, and then the simplification of each function as `-O2` has it. The rest of
    `-O2` is another round of the same and vectorisers, and finds next to nothing in code that is made of vectors:
    without it, a cold compile takes 0.9 times as long. It also inlines what it thinks fit; here, a function that is
    to become a part of its callers says `alwaysinline`.
    """
    machine = target_machine(cpu)
    if "windows" in machine.triple and "@_fltused" not in text:
        text += _USES_FLOATS
    module = parse(text)
    module.triple = machine.triple
    module.data_layout = str(machine.target_data)
    options = llvm.create_pipeline_tuning_options(speed_level=2)
    options.loop_vectorization = False
    options.slp_vectorization = False
    options.loop_unrolling = False  # nests are unrolled where it pays
    builder = llvm.create_pass_builder(machine, options)
    across = llvm.create_new_module_pass_manager()
    across.add_always_inliner_pass()
    across.add_ipsccp_pass()
    across.add_dead_arg_elimination_pass()
    across.add_global_dead_code_eliminate_pass()
    across.run(module, builder)
    for function in module.functions:
        if not function.is_declaration:
            builder.getFunctionPassManager().run(function, builder)
    return module, machine


NOTHING = "define void @nothing() {\n  ret void\n}\n"


def begin(cpu: CPU) -> None:
    """Have what LLVM does once in a process done in another thread; `compile_object` waits for it."""
    early.begin(cpu, lambda: _object(NOTHING, cpu))


def compile_object(text: str, cpu: CPU) -> bytes:
    """The object code of a module."""
    early.wait(cpu)
    return _object(text, cpu)


def _object(text: str, cpu: CPU) -> bytes:
    with told(text, "object"):
        module, machine = optimised(text, cpu)
        return bytes(machine.emit_object(module))


def assembly(text: str, cpu: CPU) -> str:
    """The assembly of a module, as it is in the object."""
    with told(text, "asm"):
        module, machine = optimised(text, cpu)
        return str(machine.emit_assembly(module))
