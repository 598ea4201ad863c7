"""The LLVM IR of rows is for any vendor: LLVM makes code of it for AMD's GPUs and of SPIR-V as for NVIDIA's."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import llvmlite.binding as llvm
import pytest

from children import environment
from weft.backends.llvm.elementwise import Asked, meaning_of, type_of
from weft.backends.llvm.emit import Module
from weft.backends.llvm.values import VOID, vec

from .texts import Kernel, kernels


@dataclass(frozen=True)
class Vendor:
    """How code for a target is made."""

    triple: str
    cpu: str = ""
    stack: int = 0
    pointer: str = "ptr addrspace(1)"
    convention: str = ""


VENDORS = {
    "nvidia": Vendor("nvptx64-nvidia-cuda", "sm_80"),
    "amd": Vendor("amdgcn-amd-amdhsa", "gfx942", stack=5, convention="amdgpu_kernel"),
    "intel": Vendor("spirv64-unknown-unknown", convention="spir_kernel"),
}


WITHOUT_128_BITS = ("math.sin", "math.cos", "math.tan")
"""What SPIR-V has no integers for: the upper halves of products of 64 bits, by which large angles are reduced."""


def module(name: str, lanes: int = 0) -> str:
    """A kernel for each row and type, which stores what it gives for operands in memory."""
    vendor = VENDORS[name]
    made = Module()
    made.stack = vendor.stack
    for kernel in kernels():
        for n, case in enumerate(kernel.cases):
            wide = case.row.name in WITHOUT_128_BITS or (case.row.name, case.result) == ("tt.mulhiui", "i64")
            if case.row.kind.how != "halves" and not (wide and name == "intel"):
                _function(made, vendor, f"f{len(made.functions)}", kernel, n, lanes)
    return made.text()


def _function(made: Module, vendor: Vendor, name: str, kernel: Kernel, n: int, lanes: int) -> None:
    case, pointer = kernel.cases[n], vec(vendor.pointer, 0)
    f = made.function(name, VOID, [(f"p{i}", pointer) for i in range(4)], linkage=vendor.convention)
    operands = [f.load(type_of(f, elem, lanes), f.args[i]) for i, elem in enumerate(kernel.sources)]
    meaning = meaning_of(case.row.name)
    assert meaning is not None
    f.store(meaning(f, Asked(case.row.name, kernel.sources, case.result, case.attrs), operands), f.args[3])
    f.ret()


def emit(name: str) -> None:
    """Make code for a vendor, in this process: what LLVM has no instruction for ends it."""
    vendor = VENDORS[name]
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    machine = llvm.Target.from_triple(vendor.triple).create_target_machine(cpu=vendor.cpu, opt=1)
    parsed = llvm.parse_assembly(module(name))
    parsed.triple, parsed.data_layout = vendor.triple, str(machine.target_data)
    parsed.verify()
    print(len(machine.emit_assembly(parsed).splitlines()))


@pytest.mark.slow
@pytest.mark.parametrize("vendor", VENDORS)
def test_every_row_is_code_for(vendor: str) -> None:
    command = [sys.executable, "-c", f"from ops.test_vendors import emit; emit({vendor!r})"]
    folder = Path(__file__).resolve().parents[1]
    done = subprocess.run(command, capture_output=True, text=True, cwd=folder, env=environment())
    assert not done.returncode, done.stderr[-2000:]
    assert int(done.stdout) > 1000
