"""Cold compiles to machine code: each kernel in a fresh process with an empty cache, Weft and Triton in turns.

    python benchmarks/gpu_cold.py --capability 90

Needs the package triton and ptxas, but no GPU. Seconds are those of compiling, from the Python source to the cubin;
imports are not in them.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from gpu_cases import cases

HERE = Path(__file__).resolve()


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


def seconds(side: str, name: str, capability: int) -> float:
    """The same in a process of its own, with caches of its own."""
    with tempfile.TemporaryDirectory() as folder:
        places = {"TRITON_CACHE_DIR": f"{folder}/triton", "WEFT_CACHE_DIR": f"{folder}/weft"}
        command = [sys.executable, str(HERE), "--child", side, name, "--capability", str(capability)]
        done = subprocess.run(command, capture_output=True, text=True, env={**os.environ, **places}, check=False)
    if done.returncode:
        raise RuntimeError(f"{side}, {name}: {done.stderr.strip()[-500:]}")
    return float(done.stdout.split()[-1])


def rows(capability: int, repeat: int = 3) -> Iterator[tuple[str, float, float]]:
    """(kernel, seconds of Weft, seconds of Triton): the medians of processes that take turns."""
    for name in cases("weft"):
        pairs = [[seconds(side, name, capability) for side in ("weft", "triton")] for _ in range(repeat)]
        yield name, statistics.median(p[0] for p in pairs), statistics.median(p[1] for p in pairs)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--capability", type=int, default=90)
    parser.add_argument("--repeat", type=int, default=3)
    parser.add_argument("--child", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        print(seconds_here(*options.child, options.capability))
        return
    print(f"{'kernel':28} {'Weft ms':>9} {'Triton ms':>10} {'ratio':>6}")
    ratios = []
    for name, ours, theirs in rows(options.capability, options.repeat):
        ratios.append(ours / theirs)
        print(f"{name:28} {1e3 * ours:9.1f} {1e3 * theirs:10.1f} {ratios[-1]:6.2f}", flush=True)
    print(f"geometric mean of Weft's time over Triton's: {statistics.geometric_mean(ratios):.2f}")


if __name__ == "__main__":
    main()
