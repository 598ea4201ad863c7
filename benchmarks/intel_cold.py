"""Cold compiles for Intel's GPUs beside those for cuda:90, without ptxas: each in a fresh process with an empty cache.

    python benchmarks/intel_cold.py                       # or make intel-cold
    python benchmarks/intel_cold.py --target xpu:bmg --repeat 5

Both begin with the Python source. What is compared are all stages of Weft's own up to the last that LLVM makes: PTX,
and the words of SPIR-V. Both are measured in turns, and the fastest of each counts: other work only adds. As in
`gpu_cold.py`, a process has imported all when it is told to compile, and compiles one kernel.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from gpu_cases import cases
from gpu_cold import NEEDED, imported

HERE = Path(__file__).resolve()
BESIDE = "cuda:90"
VENDORS = {"cuda": "nvidia", "xpu": "intel"}
STAGES = ("ttir", "lane", "llir", "ptx", "spirv")
"""Those whose seconds count, as `timings` of a kernel has them."""


def seconds_here(name: str, target: str) -> dict[str, float]:
    """Compile a kernel in this process, where nothing was compiled before; the seconds of each stage."""
    from weft.compiler import as_target, compile as compile_source

    case = cases("weft")[name]
    kernel = compile_source(case.source(), as_target(target), case.options)
    return {stage: kernel.timings.get(stage, 0.0) for stage in STAGES}


def serve(name: str, target: str) -> None:
    """Get ready; when told to, compile, and answer with the seconds of each stage."""
    backend = target.partition(":")[0]
    imported(NEEDED["weft"], VENDORS[backend])
    __import__("importlib").import_module(f"weft.compiler.{VENDORS[backend]}")
    begin_of(target)
    print("ready", flush=True)
    if sys.stdin.readline():
        with tempfile.TemporaryDirectory() as folder:
            os.environ["WEFT_CACHE_DIR"] = folder
            print(*seconds_here(name, target).values(), flush=True)


def begin_of(target: str) -> None:
    """What a back end begins while the first kernel is traced, and that it is done: LLVM's targets."""
    from weft.compiler import as_target
    from weft.compiler.backends import backend_of

    backend_of(as_target(target).machine).begin(as_target(target).machine)
    time.sleep(0.3)


def measured(name: str, target: str) -> dict[str, float]:
    """The seconds of each stage, in a process of its own."""
    command = [sys.executable, str(HERE), "--serve", name, "--target", target]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None and process.stdout is not None
        process.stdout.readline()
        process.stdin.write("\n")
        process.stdin.flush()
        answer = process.stdout.readline().split()
    return dict(zip(STAGES, map(float, answer), strict=True))


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--target", default="xpu:pvc")
    parser.add_argument("--repeat", type=int, default=7)
    parser.add_argument("--only", default="", help="kernels with that in their name")
    parser.add_argument("--serve", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve:
        serve(options.serve, options.target)
        return
    print(f"{'kernel':28} {options.target + ' ms':>12} {BESIDE + ' ms':>12} {'ratio':>6}   LLVM's stages")
    ratios = []
    for name in (n for n in cases("weft") if options.only in n):
        turns = [[measured(name, t) for t in (options.target, BESIDE)] for _ in range(options.repeat)]
        fastest = [min(times, key=lambda m: sum(m.values())) for times in zip(*turns, strict=True)]
        own, other = (sum(m.values()) for m in fastest)
        llvm = [m["llir"] + m["ptx"] + m["spirv"] for m in fastest]
        ratios.append(own / other)
        last = f"{1e3 * llvm[0]:.1f} and {1e3 * llvm[1]:.1f} ms"
        print(f"{name:28} {1e3 * own:12.1f} {1e3 * other:12.1f} {own / other:6.2f}   {last}", flush=True)
    print(f"geometric mean of the ratios: {statistics.geometric_mean(ratios):.2f}")


if __name__ == "__main__":
    main()
