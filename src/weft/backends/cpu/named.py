"""Processors by name: those that LLVM knows, beside the one this runs on."""

from __future__ import annotations

import subprocess
import sys
from functools import lru_cache

import llvmlite.binding as llvm

from weft.base import LaunchError
from weft.targets import CPU

from .host import host_cpu


@lru_cache(maxsize=8)
def cpu_named(name: str = "", features: str = "") -> CPU:
    """The processor of LLVM's name `name` and features such as "+avx2,-fma"; without a name the one this runs on."""
    if not name:
        return host_cpu()
    _check_known(name, features)
    enabled = sorted(f[1:] for f in features.split(",") if f.startswith("+"))
    return CPU(name, llvm.get_process_triple(), tuple(enabled), features)


_PROBE = """
import sys
import llvmlite.binding as llvm
llvm.initialize_native_target()
llvm.initialize_native_asmprinter()
target = llvm.Target.from_triple(llvm.get_process_triple())
machine = target.create_target_machine(cpu=sys.argv[1], features=sys.argv[2])
machine.emit_object(llvm.parse_assembly("define void @f() { ret void }"))
"""


def _check_known(name: str, features: str) -> None:
    """Refuse a processor or a feature that LLVM does not know.

    LLVM has no way to ask: it writes to stderr and goes on, or ends the process.  So another process tries.
    """
    try:
        command = [sys.executable, "-c", _PROBE, name, features]
        done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    except (OSError, subprocess.TimeoutExpired):  # it cannot be tried here
        return
    complaints = [line for line in done.stderr.splitlines() if "is not a recognized" in line]
    if complaints or done.returncode < 0:
        complaint = (
            complaints[0].partition(" (")[0] if complaints else f"LLVM fails on {name!r} with features {features!r}"
        )
        raise LaunchError(
            f"{complaint}",
            "cpu",
            hint="names and features are those of LLVM: `weft info` shows this machine's; cpu='x86-64-v3', "
            "features='+avx2,+fma'",
        )
