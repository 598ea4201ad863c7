"""What is done with a module of LLVM IR before LLVM selects a GPU's instructions."""

from __future__ import annotations

import llvmlite.binding as llvm

from weft.base import CompilerCrash


def parsed(text: str, machine: llvm.TargetMachine, triple: str, stage: str) -> llvm.ModuleRef:
    """A module for a machine, verified: what LLVM does with broken IR is end the process. CompilerCrash where it is."""
    try:
        module = llvm.parse_assembly(text)
        module.triple = triple
        module.data_layout = str(machine.target_data)
        module.verify()
    except RuntimeError as error:
        raise CompilerCrash(f"LLVM refuses the code generated for this kernel: {error}", stage, ir=text) from error
    return module


def first_passes() -> llvm.ModulePassManager:
    """What is left to do for every kernel.

    The emitter writes nothing twice that dominates, so that numbering values would find little; hoisting out of loops
    is done on machine code, which knows what it costs in registers. All of LLVM's own pipeline takes ten times as long,
    and its code up to a quarter more registers.
    """
    passes = llvm.create_new_module_pass_manager()
    passes.add_always_inliner_pass()
    passes.add_simplify_cfg_pass()
    passes.add_instruction_combine_pass()
    passes.add_simplify_cfg_pass()
    return passes
