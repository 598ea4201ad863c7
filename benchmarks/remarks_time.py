"""What remarks cost: the time that the kernels of tests/kernels take to compile with the collector over without it.

    python benchmarks/remarks_time.py [--target cuda:90] [--rounds 7] [--only softmax]

Both are measured in one process, alternately, kernel by kernel, in seconds of the processor (other work on the machine
changes these less), and the least of each counts; everything is imported and each kernel was compiled once. Nothing is
read from a cache or written to one.
"""

from __future__ import annotations

import argparse
import gc
import sys
import time
from math import exp, log
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests"))

import weft  # noqa: E402
from kernels import load_cases  # noqa: E402
from weft.base.remarks import NO_REMARKS, RemarkCollector  # noqa: E402
from weft.compiler import cpu_stages, gpu_stages  # noqa: E402
from weft.runtime import knobs  # noqa: E402


def compile_once(case: Any, target: str, *, remarks: bool) -> tuple[float, int]:
    """Seconds that a kernel takes, its tracing included, and how many remarks it has."""
    types, values, attributes = case.signature(case.make_inputs())
    source = weft.ASTSource(case.kernel, types, values, attributes)
    for module in (cpu_stages, gpu_stages):
        vars(module)["RemarkCollector"] = RemarkCollector if remarks else lambda: NO_REMARKS
    gc.collect()  # of what others have left
    begin = time.process_time()
    kernel = weft.compile(source, target, case.options)
    return time.process_time() - begin, len(kernel.remarks)


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--target", default="cuda:90")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--only", default="")
    asked = parser.parse_args()
    knobs.cache.disabled = True
    gc.freeze()
    ratios, total, count = [], [0.0, 0.0], 0
    for name, case in load_cases("weft").items():
        if asked.only not in name:
            continue
        try:
            for remarks in (True, False):
                compile_once(case, asked.target, remarks=remarks)
        except weft.WeftError:
            continue
        least, found = [1e9, 1e9], 0
        for k in range(2 * asked.rounds):
            remarks = bool(k & 1) ^ bool(k & 2)  # off on, on off, ...
            seconds, told = compile_once(case, asked.target, remarks=remarks)
            least[remarks], found = min(least[remarks], seconds), max(found, told)
        ratios.append(least[1] / least[0])
        total, count = [a + b for a, b in zip(total, least, strict=True)], count + found
        print(f"{name:40} {least[0] * 1e3:8.2f} ms {least[1] * 1e3:8.2f} ms {ratios[-1]:7.3f} {found:5} remarks")
    mean = exp(sum(map(log, ratios)) / len(ratios))
    print(f"{len(ratios)} kernels for {asked.target}, {count} remarks: {mean:.4f} times as long (geometric mean),")
    print(f"{total[1] / total[0]:.4f} times as long all together, {max(ratios):.3f} at most")


if __name__ == "__main__":
    main()
