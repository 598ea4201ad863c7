"""`weft doctor`: what is found on this machine, what is missing, and what to do.

A row is "ok", "missing" where something optional is, or "wrong" where Weft cannot work as it is. The exit code is 1 if
anything is wrong.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import re
import stat
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from importlib import metadata, util

import numpy as np

import weft
import weft.language as tl
from weft import compiler
from weft.base import WeftError, load
from weft.cli_info import version_of
from weft.cli_sizes import shown as size
from weft.runtime.cache import default_store

__all__ = ["EXTRAS", "main", "parser"]

EXTRAS = {
    "cli": ("rich", "tables in colours, and bars of progress"),
    "viz": ("matplotlib", "plots of benchmarks"),
    "torch": ("torch", "tensors as arguments, and torch.compile"),
    "cuda": ("cuda", "launches on NVIDIA GPUs"),
    "opencl": ("pyopencl", "kernels on OpenCL devices"),
}
"""The extras for users: what each brings to import, and what for."""
OLDEST = (3, 11)


@dataclass(frozen=True)
class Row:
    """Something that was looked at."""

    area: str
    what: str
    status: str
    """"ok", "missing", "wrong"."""
    found: str
    do: str = ""


def parser(name: str = "doctor") -> argparse.ArgumentParser:
    """What the command takes."""
    doctor = argparse.ArgumentParser(
        "weft doctor", description="Report what Weft finds on this machine, what is missing, and what to do."
    )
    doctor.add_argument("--json", action="store_true", help="print JSON")
    return doctor


def rows() -> Iterator[Row]:
    """All that is looked at."""
    yield from _python()
    yield from _processor()
    yield _cache()
    yield _works()
    yield from _devices()
    yield from _extras()


def _python() -> Iterator[Row]:
    fine = sys.version_info >= OLDEST
    yield Row("Python", "python", "ok" if fine else "wrong", platform.python_version(), "" if fine else "take 3.11 on")
    yield Row("Python", "weft", "ok", weft.__version__)
    for package, least in required().items():
        version = version_of(package)
        if version is None:
            yield Row("Python", package, "wrong", "not installed", f"pip install '{package}>={least}'")
        elif _parts(version) < _parts(least):
            yield Row("Python", package, "wrong", f"{version}, {least} is needed", f"pip install '{package}>={least}'")
        else:
            yield Row("Python", package, "ok", version)


def required() -> dict[str, str]:
    """The packages that Weft needs, with the oldest version of each; {} where Weft itself is not installed."""
    try:
        requirements = metadata.requires("weft") or []
    except metadata.PackageNotFoundError:
        return {}
    matches = (re.fullmatch(r"([\w.-]+)>=([\w.]+)", text) for text in requirements)
    return {match[1]: match[2] for match in matches if match}


def _parts(version: str) -> tuple[int, ...]:
    """A version that can be compared.

    >>> _parts("0.100.1") > _parts("0.50"), _parts("2.4.0rc1")
    (True, (2, 4, 0))
    """
    return tuple(int(part) for part in re.findall(r"\d+", re.match(r"[\d.]*", version)[0]))  # type: ignore[index]


def _processor() -> Iterator[Row]:
    cpu = compiler.host_cpu()
    yield Row("Processor", "processor", "ok", f"{cpu.name}, {platform.machine()}, {platform.system()}")
    yield Row("Processor", "vectors", "ok", f"{8 * cpu.vector_bytes} bits")
    cores, threads = os.cpu_count() or 1, compiler.get_num_threads()
    few = f"; {cores} are there, WEFT_NUM_THREADS sets how many are used" if threads < cores else ""
    yield Row("Processor", "threads", "ok", f"{threads}{few}")


def _cache() -> Row:
    """The folder of compiled kernels: whose it is, who may write, how much is in it."""
    store = default_store()
    if store is None:
        return Row("Cache", "kernel cache", "missing", "off", "unset WEFT_NO_CACHE, or each process compiles anew")
    refusal = store.refusal()
    if refusal is not None:
        text, _, hint = refusal.partition("; ")
        return Row("Cache", "kernel cache", "wrong", text, hint or "WEFT_CACHE_DIR names another folder")
    if not os.path.isdir(store.directory):
        return Row("Cache", "kernel cache", "ok", f"{store.directory}, made with the first kernel")
    mode = stat.filemode(os.stat(store.directory).st_mode)
    entries = list(store.entries(check=False))
    full = f"{len(entries)} kernels, {size(sum(e.size for e in entries))} of {size(store.size_cap)}"
    return Row("Cache", "kernel cache", "ok", f"{store.directory}, {mode}, {full}")


@weft.jit
def _double(x, n, BLOCK: tl.constexpr):  # type: ignore[no-untyped-def]
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(x + i, tl.load(x + i, mask=i < n) * 2, mask=i < n)


def _works() -> Row:
    """Whether a kernel compiles here, and gives what it should."""
    x = np.arange(100, dtype=np.float32)
    begin = time.perf_counter()
    try:
        with weft.target("cpu"):
            _double[(2,)](x, 100, BLOCK=64)
    except (WeftError, OSError) as error:
        return Row("Processor", "a kernel", "wrong", str(error).splitlines()[0], "please report this")
    took = f"{1e3 * (time.perf_counter() - begin):.0f} ms"
    if not (x == 2 * np.arange(100)).all():
        return Row("Processor", "a kernel", "wrong", "gives wrong numbers", "please report this")
    return Row("Processor", "a kernel", "ok", f"compiled, or found in the cache, and right, in {took}")


def _devices() -> Iterator[Row]:
    devices = load("weft.compiler.devices")
    advice = devices.advice()
    for what, text in (devices.found() | devices.tools()).items():
        missing = text.startswith("none")
        yield Row("GPUs", what, "missing" if missing else "ok", text, advice.get(what, "") if missing else "")


def _extras() -> Iterator[Row]:
    for extra, (module, purpose) in EXTRAS.items():
        if util.find_spec(module) is None:
            yield Row("Extras", extra, "missing", "not installed", f"pip install 'weft[{extra}]': {purpose}")
        else:
            yield Row("Extras", extra, "ok", purpose)


SIGNS = {"ok": "ok", "missing": "--", "wrong": "!!"}


def _text(found: Sequence[Row]) -> str:
    lines: list[str] = []
    for i, row in enumerate(found):
        if not i or found[i - 1].area != row.area:
            lines += ["", row.area] if i else [row.area]
        lines.append(f"  {SIGNS[row.status]}  {row.what:<14} {row.found}")
        if row.do:
            lines.append(f"{'':21}{row.do}")
    wrong = sum(row.status == "wrong" for row in found)
    last = f"{wrong} to fix (!!)" if wrong else "Weft works here. What is missing (--) is optional."
    return "\n".join([*lines, "", last])


def main(arguments: Sequence[str]) -> int:
    """Print what is found; 1 if something is wrong."""
    options = parser().parse_args(arguments)
    found = sorted(rows(), key=lambda row: ("Python", "Processor", "Cache", "GPUs", "Extras").index(row.area))
    if options.json:
        print(json.dumps([asdict(row) for row in found], indent=1))
    else:
        print(_text(found))
    return int(any(row.status == "wrong" for row in found))
