"""Cold compiles to machine code: each in a fresh process with an empty cache, Weft and Triton in turns.

    python benchmarks/gpu_cold.py --target cuda:90 --seconds 75
    python benchmarks/gpu_cold.py --target hip:gfx942

Needs the package triton (of this Python, or the one that TRITON_PYTHON names), and ptxas for NVIDIA's GPUs; no GPU.
Seconds are those of compiling, from the Python source to the cubin, or to the code object of AMD's GPUs (in the process
that compiles: a worker, which a user's first kernel starts beside it, has imported all).
Imports are not in them: a process imports all, says that it is ready, and compiles one kernel when it is told to. (It
is not forked from one that has imported all: then up to half of the time of a small kernel went into copying the pages
of memory that Python counts references in.) What a side does once in a process before its first compile (Triton hashes
its own files) is not in them either, but is given beside them. All kernels are compiled once before any is a second
time; when the time is over, the medians are of what there is.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import importlib
import os
import pkgutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

from gpu_cases import cases

HERE = Path(__file__).resolve()
ONCE = "once in a process"
LONGEST_S = 60
"""What one compile may take."""
NEEDED = {
    "weft": ("weft.runtime", "weft.compiler", "weft.frontend", "weft.passes", "weft.lower", "weft.backends.{vendor}"),
    "triton": ("triton.compiler", "triton.backends.{vendor}", "triton.experimental.gluon"),
}
"""The packages all of whose modules a process imports before it is asked to compile."""
VENDORS = {"cuda": "nvidia", "hip": "amd"}
CODE = {"cuda": "cubin", "hip": "hsaco"}


def imported(packages: Iterable[str], vendor: str) -> None:
    """Import packages with all of their modules."""
    for wanted in packages:
        name = wanted.format(vendor=vendor)
        package = importlib.import_module(name)
        for module in pkgutil.iter_modules(package.__path__, f"{name}."):
            importlib.import_module(module.name)


def prepare(side: str, target: str) -> float:
    """Import all that compiling needs; gives the seconds of what else is done once in a process."""
    imported(NEEDED[side], VENDORS[target.partition(":")[0]])
    cases(side)
    begin = time.perf_counter()
    if side == "triton":
        importlib.import_module("triton.runtime.cache").triton_key()
    return time.perf_counter() - begin


def seconds_here(side: str, name: str, target: str) -> float:
    """Compile a kernel in this process, where nothing was compiled before."""
    case = cases(side)[name]
    source = case.source()
    backend, _, arch = target.partition(":")
    lanes = 64 if arch in ("gfx90a", "gfx942", "gfx950") else 32
    processor: int | str = int(arch) if arch.isdigit() else arch
    if side == "weft":
        from weft.compiler import GPUTarget, compile as compile_source

        begin = time.perf_counter()
        cubin = compile_source(source, GPUTarget(backend, processor, lanes), case.options).asm[CODE[backend]]
    else:
        import triton
        from triton.backends.compiler import GPUTarget as TheirTarget

        begin = time.perf_counter()
        theirs = TheirTarget(backend, processor, lanes)
        cubin = triton.compile(source, theirs, dict(case.options)).asm[CODE[backend]]
    taken = time.perf_counter() - begin
    if bytes(cubin[:4]) != b"\x7fELF":
        raise SystemExit(f"{side} made no machine code of {name}: is there a ptxas?")
    return taken


def serve(side: str, name: str, target: str) -> None:
    """Get ready, answer with the seconds of what is done once; when told to, compile, and answer with the seconds."""
    print(prepare(side, target), flush=True)
    if not sys.stdin.readline():
        return
    signal.alarm(LONGEST_S)
    with tempfile.TemporaryDirectory() as folder:
        os.environ |= {"TRITON_CACHE_DIR": f"{folder}/triton", "WEFT_CACHE_DIR": f"{folder}/weft"}
        print(seconds_here(side, name, target), flush=True)


class Process:
    """A process that compiles one kernel, for one side, when it is asked for the seconds."""

    def __init__(self, side: str, name: str, target: str) -> None:
        self.side, self.name = side, name
        python = os.environ.get("TRITON_PYTHON", sys.executable) if side == "triton" else sys.executable
        command = [python, str(HERE), "--serve", side, "--only", name, "--target", target]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def once(self) -> float:
        """Wait until it is ready; the seconds of what is done once in a process."""
        return self._answer()

    def seconds(self) -> float:
        """What compiling the kernel takes. RuntimeError where it fails."""
        assert self.process.stdin is not None
        self.process.stdin.write("\n")
        self.process.stdin.close()
        found = self._answer()
        self.process.wait(LONGEST_S)
        return found

    def _answer(self) -> float:
        assert self.process.stdout is not None
        answer = self.process.stdout.readline().strip()
        try:
            return float(answer)
        except ValueError:
            raise RuntimeError(f"{self.side}, {self.name}: {answer or 'the process ended'}") from None


def pair(name: str, target: str) -> tuple[list[float], list[float]]:
    """(seconds of what is done once, seconds of compiling a kernel), each of Weft and of Triton."""
    processes = [Process(side, name, target) for side in ("weft", "triton")]  # which get ready side by side
    try:
        return [p.once() for p in processes], [p.seconds() for p in processes]
    finally:
        for p in processes:
            p.process.kill()


def rows(target: str, repeat: int = 3, seconds: float = 75, together: int = 1) -> Iterator[tuple[str, float, float]]:
    """(kernel, seconds of Weft, seconds of Triton): medians of up to `repeat` compiles, while there is time.

    The first is `ONCE`, what is done once in a process. So many kernels are compiled at the same time as `together`
    says, each in processes of its own.
    """
    until = time.monotonic() + seconds
    taken: dict[str, list[list[float]]] = {}
    once: list[list[float]] = []
    names = [name for _ in range(repeat) for name in cases("weft")]
    with concurrent.futures.ThreadPoolExecutor(together) as threads:
        for name, measured in zip(names, threads.map(lambda name: in_time(name, target, until), names), strict=True):
            if measured is not None:
                once.append(measured[0])
                taken.setdefault(name, []).append(measured[1])
    yield ONCE, statistics.median(p[0] for p in once), statistics.median(p[1] for p in once)
    for name, pairs in taken.items():
        yield name, statistics.median(p[0] for p in pairs), statistics.median(p[1] for p in pairs)


def in_time(name: str, target: str, until: float) -> tuple[list[float], list[float]] | None:
    """`pair`, or None when the time is over."""
    return pair(name, target) if time.monotonic() < until else None


def means(own: float, other: float, found: Iterable[tuple[str, float, float]]) -> tuple[float, float]:
    """Weft's time over Triton's, on geometric average: of any kernel, and of the first of a process."""
    times = [(ours, theirs) for _, ours, theirs in found]
    mean = statistics.geometric_mean(a / b for a, b in times)
    return mean, statistics.geometric_mean((own + a) / (other + b) for a, b in times)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--target", default="cuda:90")
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=75, help="no compile begins after that")
    parser.add_argument("--serve", choices=sorted(NEEDED), help=argparse.SUPPRESS)
    parser.add_argument("--only", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve:
        serve(options.serve, options.only, options.target)
        return
    print(f"{'kernel':28} {'Weft ms':>9} {'Triton ms':>10} {'ratio':>6}")
    (_, own, other), *found = rows(options.target, options.repeat, options.seconds)
    print(f"{ONCE:28} {1e3 * own:9.1f} {1e3 * other:10.1f}")
    for name, ours, theirs in found:
        print(f"{name:28} {1e3 * ours:9.1f} {1e3 * theirs:10.1f} {ours / theirs:6.2f}")
    mean, first = means(own, other, found)
    print(f"geometric mean of Weft's time over Triton's: {mean:.2f}; of the first kernel of a process: {first:.2f}")


if __name__ == "__main__":
    main()
