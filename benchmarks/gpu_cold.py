"""Cold compiles to machine code: each in a fresh process with an empty cache, Weft and Triton in turns.

    python benchmarks/gpu_cold.py --capability 90 --seconds 75

Needs the package triton and ptxas, but no GPU. Seconds are those of compiling, from the Python source to the cubin.
Imports are not in them: for each side one process imports all, and forks for each compile. What a side does once in a
process before its first compile (Triton hashes its own files) is not in them either, but is given beside them. All
kernels are compiled once before any is a second time; when the time is over, the medians are of what there is.
"""

from __future__ import annotations

import argparse
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
    "weft": ("weft.runtime", "weft.compiler", "weft.frontend", "weft.passes", "weft.lower", "weft.backends.nvidia"),
    "triton": ("triton.compiler", "triton.backends.nvidia", "triton.experimental.gluon"),
}
"""The packages all of whose modules a process imports before it is asked to compile."""


def prepare(side: str) -> float:
    """Import all that compiling needs; gives the seconds of what else is done once in a process."""
    for name in NEEDED[side]:
        package = importlib.import_module(name)
        for module in pkgutil.iter_modules(package.__path__, f"{name}."):
            importlib.import_module(module.name)
    cases(side)
    begin = time.perf_counter()
    if side == "triton":
        importlib.import_module("triton.runtime.cache").triton_key()
    return time.perf_counter() - begin


def seconds_here(side: str, name: str, capability: int) -> float:
    """Compile a kernel in this process, where nothing was compiled before."""
    case = cases(side)[name]
    source = case.source()
    if side == "weft":
        from weft.compiler import GPUTarget
        from weft.compiler import compile as compile_source

        begin = time.perf_counter()
        cubin = compile_source(source, GPUTarget("cuda", capability, 32), case.options).asm["cubin"]
    else:
        import triton
        from triton.backends.compiler import GPUTarget as TheirTarget

        begin = time.perf_counter()
        cubin = triton.compile(source, TheirTarget("cuda", capability, 32), dict(case.options)).asm["cubin"]
    taken = time.perf_counter() - begin
    if bytes(cubin[:4]) != b"\x7fELF":
        raise SystemExit(f"{side} made no machine code of {name}: is there a ptxas?")
    return taken


def serve(side: str, capability: int) -> None:
    """Compile what is asked for on the standard input, each in a child; answer with seconds, or what went wrong."""
    print(prepare(side), flush=True)
    for line in sys.stdin:
        child = os.fork()
        if not child:
            signal.alarm(LONGEST_S)
            _answer(side, line.strip(), capability)
        _, status = os.waitpid(child, 0)
        if status:
            print(f"failed: status {os.waitstatus_to_exitcode(status)}", flush=True)


def _answer(side: str, name: str, capability: int) -> None:
    """In a child: compile with caches of its own, and end."""
    status = 1
    with tempfile.TemporaryDirectory() as folder:
        os.environ |= {"TRITON_CACHE_DIR": f"{folder}/triton", "WEFT_CACHE_DIR": f"{folder}/weft"}
        try:
            print(seconds_here(side, name, capability), flush=True)
            status = 0
        except (Exception, SystemExit) as error:
            print(f"{type(error).__name__}: {error}", file=sys.stderr)
    os._exit(status)


class Server:
    """A process that compiles for one side."""

    def __init__(self, side: str, capability: int) -> None:
        self.side = side
        command = [sys.executable, str(HERE), "--serve", side, "--capability", str(capability)]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.once = self._answer("its imports")

    def seconds(self, name: str) -> float:
        """What compiling a kernel takes. RuntimeError where it fails."""
        assert self.process.stdin is not None
        self.process.stdin.write(f"{name}\n")
        self.process.stdin.flush()
        return self._answer(name)

    def _answer(self, name: str) -> float:
        assert self.process.stdout is not None
        answer = self.process.stdout.readline().strip()
        try:
            return float(answer)
        except ValueError:
            raise RuntimeError(f"{self.side}, {name}: {answer or 'the process ended'}") from None

    def close(self) -> None:
        """End it."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait(10)


def rows(capability: int, repeat: int = 3, seconds: float = 75) -> Iterator[tuple[str, float, float]]:
    """(kernel, seconds of Weft, seconds of Triton): medians of up to `repeat` compiles, while there is time.

    The first is `ONCE`, what is done once in a process.
    """
    until = time.monotonic() + seconds
    servers = [Server(side, capability) for side in ("weft", "triton")]
    taken: dict[str, list[list[float]]] = {}
    try:
        for _ in range(repeat):
            for name in cases("weft"):
                if time.monotonic() < until:
                    taken.setdefault(name, []).append([server.seconds(name) for server in servers])
    finally:
        for server in servers:
            server.close()
    yield ONCE, servers[0].once, servers[1].once
    for name, pairs in taken.items():
        yield name, statistics.median(p[0] for p in pairs), statistics.median(p[1] for p in pairs)


def means(own: float, other: float, found: Iterable[tuple[str, float, float]]) -> tuple[float, float]:
    """Weft's time over Triton's, on geometric average: of any kernel, and of the first of a process."""
    times = [(ours, theirs) for _, ours, theirs in found]
    mean = statistics.geometric_mean(a / b for a, b in times)
    return mean, statistics.geometric_mean((own + a) / (other + b) for a, b in times)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--capability", type=int, default=90)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=75, help="no compile begins after that")
    parser.add_argument("--serve", choices=sorted(NEEDED), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve:
        serve(options.serve, options.capability)
        return
    print(f"{'kernel':28} {'Weft ms':>9} {'Triton ms':>10} {'ratio':>6}")
    (_, own, other), *found = rows(options.capability, options.repeat, options.seconds)
    print(f"{ONCE:28} {1e3 * own:9.1f} {1e3 * other:10.1f}")
    for name, ours, theirs in found:
        print(f"{name:28} {1e3 * ours:9.1f} {1e3 * theirs:10.1f} {ours / theirs:6.2f}")
    mean, first = means(own, other, found)
    print(f"geometric mean of Weft's time over Triton's: {mean:.2f}; of the first kernel of a process: {first:.2f}")


if __name__ == "__main__":
    main()
