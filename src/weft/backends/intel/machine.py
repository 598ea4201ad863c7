"""LLVM's SPIR-V back end as a library: LLVM IR as text in, a module of SPIR-V out.

The extensions that a module may use are an option of LLVM's, for the whole process and read with the first module: they
are named one by one, and who compiles for others has another process. Where LLVM finds no instruction for something it
ends the process, so that modules are made in compile workers (`Backend.in_worker`).

Each module is made in a process of its own. LLVM 22 remembers the labels of blocks by the places in memory of functions
that are gone: of a thousand modules in one process some fifty had a label and a type of one id. These processes are
forks of one that has LLVM and little else (`server.py`): a fork of a compile worker takes 40 ms, for its many pages.
The one for the next module is there before that is asked for.
"""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import IO

import llvmlite.binding as llvm

from weft.backends.llvm import early
from weft.backends.llvm.aborts import told
from weft.base import CompilerCrash
from weft.base.locks import renewed

from . import server
from .module import defined_twice

TRIPLE = "spirv64v1.2-unknown-unknown"
"""SPIR-V 1.2, which every consumer takes; pointers have 64 bits."""
STAGE = "spirv"
REFUSED = 3
"""The status of a child whose LLVM does not take the text."""
EXTENSIONS = (
    "SPV_INTEL_subgroup_matrix_multiply_accumulate",
    "SPV_INTEL_2d_block_io",
    "SPV_EXT_shader_atomic_float_add",
    "SPV_EXT_shader_atomic_float_min_max",
    "SPV_KHR_float_controls",
    "SPV_INTEL_subgroups",
    "SPV_KHR_shader_clock",
)
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


def prepare() -> None:
    """Have LLVM do what it does once in a process, for those that are forked of it."""
    _target()


def begin() -> None:
    """Have the process started that makes modules, in another thread; who compiles waits for it."""
    early.begin(TRIPLE, server.started)


def _parsed(text: str, machine: llvm.TargetMachine) -> llvm.ModuleRef:
    try:
        module = llvm.parse_assembly(text, llvm.create_context())
        module.triple = TRIPLE
        module.data_layout = str(machine.target_data)
        module.verify()
    except RuntimeError as error:
        raise CompilerCrash(f"LLVM refuses the code generated for this kernel: {error}", STAGE, ir=text) from error
    return module


def spirv_of(text: str, machine: llvm.TargetMachine) -> bytes:
    """The words of a module of LLVM IR, by a machine that has made none before.

    Functions are put where they are called, and what nobody uses is taken away. The device's compiler does the rest:
    passes that combine instructions make integers of any width, which SPIR-V does not have.
    """
    module = _parsed(text, machine)
    _passed(module, machine)
    code: bytes = machine.emit_object(module)
    return code


def _passed(module: llvm.ModuleRef, machine: llvm.TargetMachine) -> None:
    """Run the passes over a module."""
    passes = llvm.create_new_module_pass_manager()
    passes.add_always_inliner_pass()
    passes.add_global_dead_code_eliminate_pass()
    passes.add_aggressive_dce_pass()  # with what loops carry only for itself
    passes.run(module, llvm.create_pass_builder(machine, llvm.create_pipeline_tuning_options()))


def spirv(text: str) -> bytes:
    """The same by a process of its own; who waits for the kernel is told where LLVM gives up."""
    early.wait(TRIPLE)
    status, answer = server.asked(text.encode()) if hasattr(os, "fork") else _started(text)
    if status == REFUSED:
        raise CompilerCrash(answer.decode(), STAGE, ir=text)
    if status:
        raise CompilerCrash(f"LLVM gave up, with status {status}", STAGE, ir=text)
    if defined_twice(answer):
        raise CompilerCrash("LLVM gave two things in the module one id", STAGE, ir=text)
    return answer


def _answer(text: str, machine: llvm.TargetMachine, write: Callable[[bytes], object]) -> int:
    """What such a process does: the words, or why there are none; its status."""
    try:
        with told(text, STAGE):
            write(spirv_of(text, machine))
    except CompilerCrash as error:
        write(error.message.encode())
        return REFUSED
    return 0


@dataclass(frozen=True)
class Fork:
    """A fork of this process that is ready to make one module, and waits for its text."""

    child: int
    texts: IO[bytes]
    answers: IO[bytes]

    @classmethod
    def waiting(cls) -> Fork:
        """A new one. It ends with its answer, or when nobody can ask it any more."""
        (asked, asks), (answered, answers) = os.pipe(), os.pipe()
        child = os.fork()
        if not child:
            status = 1
            try:
                os.close(asks)
                os.close(answered)
                machine = _machine()
                _passed(_parsed("", machine), machine)  # what LLVM does once is done before it is asked
                with open(asked, "rb") as texts, open(answers, "wb") as pipe:
                    text = texts.read().decode()
                    status = _answer(text, machine, pipe.write) if text else 0
            finally:
                os._exit(status)
        os.close(asked)
        os.close(answers)
        return cls(child, open(asks, "wb"), open(answered, "rb"))

    def answer(self, text: str) -> tuple[int, bytes]:
        """Its status, and what it has written."""
        with self.texts, self.answers:
            self.texts.write(text.encode())
            self.texts.close()
            answer = self.answers.read()
        return os.waitstatus_to_exitcode(os.waitpid(self.child, 0)[1]), answer


def _started(text: str) -> tuple[int, bytes]:
    """By another Python, where there are no forks."""
    code = f"import sys; sys.path[:] = {sys.path!r}; from {__name__} import serve; serve()"
    done = subprocess.run([sys.executable, "-c", code], check=False, input=text.encode(), stdout=subprocess.PIPE)
    return done.returncode, done.stdout


def serve() -> None:
    """Be such a process: LLVM IR comes in, and what became of it goes out."""
    sys.exit(_answer(sys.stdin.buffer.read().decode(), _machine(), sys.stdout.buffer.write))
