"""LLVM's NVPTX back end as a library: LLVM IR as text in, PTX out.

The IR is verified before any pass runs, because what LLVM does with broken IR is end the process.
"""

from __future__ import annotations

import re
import threading
from dataclasses import dataclass
from functools import lru_cache

import llvmlite.binding as llvm

from weft.backends.llvm import early
from weft.backends.llvm.aborts import told
from weft.backends.llvm.names import further_names
from weft.base import Unsupported
from weft.base.locks import renewed
from weft.base.remarks import NO_REMARKS, RemarkCollector
from weft.machines import Machine

from ..gpu.machine import first_passes, parsed
from .assembler_faults import avoid_faults
from .kept_operands import keep_operands

TRIPLE = "nvptx64-nvidia-cuda"
VERSIONS = (74, 75, 76, 77, 78, 80, 81, 82, 83, 84, 85, 86, 87, 88)
"""The versions of PTX that LLVM writes, times ten."""


OLDEST = {100: 86, 103: 88, 120: 87, 121: 88}
"""The first versions of PTX, times ten, that know processors which 8.0 does not."""


@dataclass(frozen=True)
class PTXTarget:
    """A processor: its compute capability times ten, and its name for LLVM and ptxas."""

    capability: int
    processor: str

    @property
    def oldest(self) -> int:
        """The oldest version of PTX, times ten, that what is emitted for every kernel needs."""
        return OLDEST.get(self.capability, 80)


@lru_cache(maxsize=16)
def ptx_target(machine: Machine) -> PTXTarget:
    """The processor that a machine is: `cuda:90` is sm_90a, what is built for that processor alone.

    >>> from weft.machines import machine_of
    >>> ptx_target(machine_of("cuda:90")).processor, ptx_target(machine_of("cuda:80")).processor
    ('sm_90a', 'sm_80')
    """
    if machine.vendor != "nvidia":
        raise Unsupported("compiling for an NVIDIA GPU", machine.name)
    return PTXTarget(machine.generation, f"sm_{machine.generation}{'' if machine.portable else 'a'}")


@lru_cache(maxsize=1)
def _initialize() -> llvm.Target:
    llvm.set_option("weft", "--nvptx-short-ptr")  # addresses in shared memory have 32 bits
    llvm.set_option("weft", "--disable-nvptx-load-store-vectorizer")  # accesses are as wide as the lane program says
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    return llvm.Target.from_triple(TRIPLE)


_one_at_a_time = renewed(threading.Lock())


@lru_cache(maxsize=32)
def _machine(processor: str, version: int, level: int = 3) -> llvm.TargetMachine:
    with _one_at_a_time:
        machine = _initialize().create_target_machine(cpu=processor, features=f"+ptx{version}", opt=level)
        machine.set_asm_verbosity(True)  # a comment at each block says which of the LLVM IR it is
        return machine


NOTHING = "define ptx_kernel void @nothing() {\n  ret void\n}\n"


def begin(target: PTXTarget) -> None:
    """Have what LLVM does once in a process done in another thread; `assembly` waits for it."""
    early.begin(target, lambda: _written(NOTHING, target, target.oldest))


NAMES = 512
"""Further names (see `names`) from which on LLVM numbers values block by block before it selects instructions, not in
the whole function. The pass that does looks at all it knows whenever it removes an instruction, as it does each name:
400 loads whose masks differ took 1.2 s of a second pass that now takes 0.2. Nothing else depends on the level."""


def _passes(ordered: bool, rotated: bool) -> llvm.ModulePassManager:
    """What is left to do before instructions are selected.

    With `ordered`, sums are put in order, what a loop leaves as it is first. Tiles whose rows are not known to be
    aligned are accessed element by element, and the addresses are then one addition each, to what two or three
    registers hold, and not two: attention in f16 (128 x 64, a head of 64, causal) spilled 112 bytes of such arrays on
    9.0 and now none, in bf16 (128 x 128, 128) 440 and now none. Other kernels have little of it: their registers go up
    and down by a few. On 8.0, where operands of products are in registers too, ptxas spills more than before.

    With `rotated`, loops are entered by a test of their own. LLVM counts iterations before it selects instructions;
    where a loop is not entered so, it asks every loop before it whether there is one: 200 loops of `while`, one after
    the other, took 1.6 s, and take 0.3.
    """
    passes = first_passes()
    if ordered:
        passes.add_reassociate_pass()
        passes.add_instruction_combine_pass()
    if rotated:
        passes.add_loop_rotate_pass()
    return passes


CALL = re.compile(r" // callseq \d+(?:, \d+)?$", re.MULTILINE)
"""A comment of LLVM's that numbers the calls of a process: the text would depend on what was compiled before."""


def assembly(
    text: str,
    target: PTXTarget,
    version: int = 0,
    *,
    ordered: bool = False,
    rotated: bool = False,
    remarks: RemarkCollector = NO_REMARKS,
) -> str:
    """The PTX of a module of LLVM IR; `version` is the version of PTX that it needs, times ten. See `_passes`."""
    early.wait(target)
    return _written(text, target, version, ordered, rotated, remarks)


def _written(
    text: str,
    target: PTXTarget,
    version: int,
    ordered: bool = False,
    rotated: bool = False,
    remarks: RemarkCollector = NO_REMARKS,
) -> str:
    wanted = max(version, target.oldest)
    chosen = next((v for v in VERSIONS if v >= wanted), VERSIONS[-1])
    machine = _machine(target.processor, chosen)
    with told(text, "ptx"):
        module = parsed(text, machine, TRIPLE, "ptx")
        builder = llvm.create_pass_builder(machine, llvm.create_pipeline_tuning_options(speed_level=2))
        _passes(ordered, rotated).run(module, builder)
        if (named := further_names(str(module))) is not None:
            if named.count(" = freeze ") > NAMES:
                machine = _machine(target.processor, chosen, level=2)
            module = parsed(named, machine, TRIPLE, "ptx")
        ptx = str(machine.emit_assembly(module))
        return keep_operands(avoid_faults(CALL.sub("", ptx), target.capability, remarks), remarks)
