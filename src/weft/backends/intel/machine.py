"""LLVM's SPIR-V back end as a library: LLVM IR as text in, a module of SPIR-V out.

The extensions that a module may use are an option of LLVM's, for the whole process and read with the first module: they
are named one by one, and who compiles for others has another process. Where LLVM finds no instruction for something it
ends the process, so that modules are made in compile workers (`Backend.in_worker`).
"""

from __future__ import annotations

import threading
from functools import lru_cache

import llvmlite.binding as llvm

from weft.backends.llvm import early
from weft.backends.llvm.aborts import told
from weft.base import CompilerCrash
from weft.base.locks import renewed

from .module import defined_twice

TRIPLE = "spirv64v1.2-unknown-unknown"
"""SPIR-V 1.2, which every consumer takes; pointers have 64 bits."""
STAGE = "spirv"
EXTENSIONS = (
    "SPV_INTEL_subgroup_matrix_multiply_accumulate",
    "SPV_INTEL_2d_block_io",
    "SPV_EXT_shader_atomic_float_add",
    "SPV_EXT_shader_atomic_float_min_max",
    "SPV_KHR_float_controls", "SPV_INTEL_subgroups",
)
ATTEMPTS = 32
"""LLVM 22 gives a block the id of a type in one module of some dozens, by where its objects lie in memory."""
NOTHING = "define spir_kernel void @nothing() {\n  ret void\n}\n"
_one_at_a_time = renewed(threading.Lock())


@lru_cache(maxsize=1)
def _target() -> llvm.Target:
    with _one_at_a_time:
        llvm.initialize_all_targets()
        llvm.initialize_all_asmprinters()
        llvm.set_option("weft", "--spirv-ext=" + ",".join(f"+{name}" for name in EXTENSIONS))
        return llvm.Target.from_triple(TRIPLE)


def _machine() -> llvm.TargetMachine:
    """A new one for each module, as it remembers types; higher levels combine instructions, into products of bits."""
    return _target().create_target_machine(opt=0)


def begin() -> None:
    """Have what LLVM does once in a process done in another thread; who compiles waits for it."""
    early.begin(TRIPLE, lambda: spirv_of(NOTHING))


def _parsed(text: str, machine: llvm.TargetMachine) -> llvm.ModuleRef:
    try:
        module = llvm.parse_assembly(text, llvm.create_context())
        module.triple = TRIPLE
        module.data_layout = str(machine.target_data)
        module.verify()
    except RuntimeError as error:
        raise CompilerCrash(f"LLVM refuses the code generated for this kernel: {error}", STAGE, ir=text) from error
    return module


def spirv_of(text: str) -> bytes:
    """The words of a module of LLVM IR.

    Functions are put where they are called, and what nobody uses is taken away. The device's compiler does the rest:
    passes that combine instructions make integers of any width, which SPIR-V does not have.
    """
    machine = _machine()
    module = _parsed(text, machine)
    passes = llvm.create_new_module_pass_manager()
    passes.add_always_inliner_pass()
    passes.add_global_dead_code_eliminate_pass()
    passes.add_dead_code_elimination_pass()
    passes.run(module, llvm.create_pass_builder(machine, llvm.create_pipeline_tuning_options()))
    code: bytes = machine.emit_object(module)
    return code


def spirv(text: str) -> bytes:
    """The same, when what LLVM does once in a process is done; who waits for the kernel is told where LLVM gives up."""
    early.wait(TRIPLE)
    with told(text, STAGE):
        for _ in range(ATTEMPTS):
            code = spirv_of(text)
            if not defined_twice(code):
                return code
    raise CompilerCrash("LLVM gave two things in the module one id, each time that it was asked", STAGE, ir=text)
