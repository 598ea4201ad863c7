"""What this machine is: its processor as LLVM names it, its caches and memory, the cores that may be used."""

from __future__ import annotations

import contextlib
import os
import re
import subprocess
import sys
from functools import lru_cache

import llvmlite
import llvmlite.binding as llvm

from weft.base import LaunchError
from weft.targets import CPU

__all__ = ["cpu_named", "host_cpu", "llvm_version", "usable_cores"]


def usable_cores() -> int:
    """Cores this process may use: its affinity, cut down to the quota of its control group."""
    count = getattr(os, "process_cpu_count", None)
    if count is not None:
        cores = count() or 1
    elif hasattr(os, "sched_getaffinity"):
        cores = len(os.sched_getaffinity(0))
    else:
        cores = os.cpu_count() or 1
    with contextlib.suppress(OSError, ValueError), open("/sys/fs/cgroup/cpu.max") as file:
        quota, period = file.read().split()
        if quota != "max":
            cores = min(cores, max(1, round(int(quota) / int(period))))
    return max(1, cores)


def host_cpu() -> CPU:
    """Facts about the processor this runs on, as LLVM and the system report them."""
    global _host
    if _host is None:
        features = llvm.get_host_cpu_features()
        _host = CPU(
            name=llvm.get_host_cpu_name(),
            triple=llvm.get_process_triple(),
            features=tuple(sorted(name for name, on in features.items() if on)),
            feature_string=features.flatten(),
            cores=usable_cores(),
            memory_bytes=_memory_bytes(),
            **_cache_sizes(),
        )
    return _host


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
    found = [line for line in done.stderr.splitlines() if "is not a recognized" in line]
    if found or done.returncode < 0:
        said = found[0].partition(" (")[0] if found else f"LLVM fails on {name!r} with features {features!r}"
        raise LaunchError(
            f"{said}",
            "cpu",
            hint="names and features are those of LLVM: `weft info` shows this machine's; cpu='x86-64-v3', "
            "features='+avx2,+fma'",
        )


def _memory_bytes() -> int:
    """The memory of this machine, cut down to the limit of the control group; 0 where the system does not tell."""
    size = 0
    with contextlib.suppress(AttributeError, OSError, ValueError):
        size = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    with contextlib.suppress(OSError, ValueError), open("/sys/fs/cgroup/memory.max") as file:
        size = min(size, int(file.read()))  # "max" is no number: no limit
    return max(0, size)


def _cache_sizes() -> dict[str, int]:
    """Sizes in bytes of the caches of one core, where the system tells (Linux)."""
    sizes: dict[str, int] = {}
    base = "/sys/devices/system/cpu/cpu0/cache"
    with contextlib.suppress(OSError, ValueError):
        for index in sorted(os.listdir(base)):
            if not index.startswith("index"):
                continue
            fact = {}
            for name in ("level", "type", "size"):
                with open(f"{base}/{index}/{name}") as file:
                    fact[name] = file.read().strip()
            match = re.fullmatch(r"(\d+)([KMG]?)", fact["size"])
            if match and fact["type"] != "Instruction":
                unit = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30}[match[2]]
                sizes[f"l{fact['level']}_bytes"] = int(match[1]) * unit
    return {name: size for name, size in sizes.items() if name in ("l1_bytes", "l2_bytes", "l3_bytes")}


_host: CPU | None = None


def llvm_version() -> str:
    """The versions of LLVM and of its binding, for cache keys."""
    return f"{llvmlite.__version__}/{'.'.join(map(str, llvm.llvm_version_info))}"
