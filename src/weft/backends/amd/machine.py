"""LLVM's AMDGPU back end as a library: LLVM IR as text in, assembly or an object file out.

The IR is verified before any pass runs, because what LLVM does with broken IR is end the process. Where it finds no
instruction for something it ends it too: kernels for AMD's GPUs are compiled in workers (`Backend.in_worker`), where
that is a CompilerCrash. Emission changes a module, so that each output is made from the text anew.
"""

from __future__ import annotations

import threading
from functools import lru_cache

import llvmlite.binding as llvm

from weft.backends.llvm import early
from weft.backends.llvm.aborts import told
from weft.backends.llvm.names import further_names
from weft.base.locks import renewed

from ..gpu.machine import first_passes, parsed
from .local_size import in_object, in_text, unseen_bytes
from .processor import Processor

TRIPLE = "amdgcn-amd-amdhsa"
STAGE = "amdgcn"
WHOLE_PHIS = "--amdgpu-codegenprepare-break-large-phis=0"
"""Vectors that loops carry stay whole: accumulators, to which matrix instructions add in place (`groups`)."""


@lru_cache(maxsize=1)
def _initialize() -> llvm.Target:
    llvm.set_option("weft", "--amdgpu-mfma-vgpr-form")  # results of products are in common registers
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    llvm.set_option("weft", WHOLE_PHIS)
    return llvm.Target.from_triple(TRIPLE)


_one_at_a_time = renewed(threading.Lock())


@lru_cache(maxsize=16)
def _machine(processor: Processor, level: int = 3) -> llvm.TargetMachine:
    with _one_at_a_time:
        target = _initialize()
        return target.create_target_machine(cpu=processor.name, features=processor.features, opt=level, reloc="pic")


NOTHING = "define amdgpu_kernel void @nothing() {\n  ret void\n}\n"


def begin(processor: Processor) -> None:
    """Have what LLVM does once in a process done in another thread; who compiles waits for it."""
    early.begin(processor, lambda: _machine(processor).emit_object(_optimized(NOTHING, _machine(processor))))


def _optimized(text: str, machine: llvm.TargetMachine) -> llvm.ModuleRef:
    """The module, ready for instructions to be selected."""
    module = parsed(text, machine, TRIPLE, STAGE)
    builder = llvm.create_pass_builder(machine, llvm.create_pipeline_tuning_options(speed_level=2))
    first_passes().run(module, builder)
    if (named := further_names(str(module))) is not None:
        module = parsed(named, machine, TRIPLE, STAGE)
    return module


def object_code(text: str, processor: Processor) -> bytes:
    """The relocatable object of a module of LLVM IR."""
    early.wait(processor)
    machine = _machine(processor)
    with told(text, STAGE):
        code: bytes = machine.emit_object(_optimized(text, machine))
    return in_object(code, unseen_bytes(text))


def assembly(text: str, processor: Processor) -> str:
    """The same as text."""
    early.wait(processor)
    machine = _machine(processor)
    with told(text, STAGE):
        written = str(machine.emit_assembly(_optimized(text, machine)))
    return in_text(written, unseen_bytes(text))
