"""What this machine is: its processor as LLVM names it, its caches and memory, the cores that may be used."""

from __future__ import annotations

import contextlib
import ctypes
import os
import platform
import re
import sys
from functools import lru_cache

import llvmlite
import llvmlite.binding as llvm

from weft.targets import CPU


def usable_cores() -> int:
    """Cores this process may use: its affinity, cut down to the quota of its control group."""
    count = getattr(os, "process_cpu_count", None)
    if count is not None:
        cores = count() or 1
    elif hasattr(os, "sched_getaffinity"):
        cores = len(os.sched_getaffinity(0))
    else:
        cores = os.cpu_count() or 1
    return max(1, min(cores, round(cpu_quota())))


def cpu_quota(root: str = "/") -> float:
    """Processors that the control groups of this process leave it, those around its own included; at most a million.

    Both versions of control groups; inside of a container their paths may be those of the host, which are not there,
    so the root is asked too. `root` is where /proc and /sys are.
    """
    quotas = [1e6]
    places: list[tuple[str, str]] = [("/sys/fs/cgroup", ""), ("/sys/fs/cgroup/cpu", "")]
    with contextlib.suppress(OSError), open(os.path.join(root, "proc/self/cgroup")) as file:
        for line in file:
            _, controllers, path = line.rstrip("\n").split(":", 2)
            if not controllers:
                places.append(("/sys/fs/cgroup", path))
            elif "cpu" in controllers.split(","):
                places += [(f"/sys/fs/cgroup/{name}", path) for name in ("cpu", controllers)]
    for base, path in places:
        while True:
            quotas += _quota_in(root + base + path)
            if not path.strip("/"):
                break
            path = os.path.dirname(path.rstrip("/"))
    return min(quotas)


def _quota_in(folder: str) -> list[float]:
    """The processors of one control group, where it has a limit."""
    with contextlib.suppress(OSError, ValueError), open(f"{folder}/cpu.max") as file:
        quota, period = file.read().split()
        return [] if quota == "max" else [int(quota) / int(period)]
    with (
        contextlib.suppress(OSError, ValueError),
        open(f"{folder}/cpu.cfs_quota_us") as quota_file,
        open(f"{folder}/cpu.cfs_period_us") as period_file,
    ):
        allowed = int(quota_file.read())
        return [] if allowed < 0 else [allowed / int(period_file.read())]
    return []


def host_cpu() -> CPU:
    """Facts about the processor this runs on, as LLVM and the system report them."""
    global _host
    if _host is None:
        features = llvm.get_host_cpu_features()
        if features.get("amx-tile") and not tiles_are_granted():
            features.update({name: False for name in features if name.startswith("amx-")})
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


_ARCH_PRCTL, _ASK_FOR_STATE, _TILE_DATA = 158, 0x1023, 18
"""Linux's system call of x86-64, ARCH_REQ_XCOMP_PERM of it, and the part of the state that it asks for."""


@lru_cache(maxsize=1)
def tiles_are_granted() -> bool:
    """Ask the system for tile registers (AMX), for all threads of this process; whether it gives them.

    Linux keeps them from processes that do not ask, because they make a thread's state 8 KB larger. It refuses where a
    thread has a stack for signals that this does not fit on.
    """
    if sys.platform != "linux" or platform.machine() != "x86_64":
        return False
    return bool(ctypes.CDLL(None).syscall(_ARCH_PRCTL, _ASK_FOR_STATE, _TILE_DATA) == 0)


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
