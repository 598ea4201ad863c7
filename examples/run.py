"""Run every example on real input, check it against NumPy in float64, and print one table.

    python examples/run.py                  # all
    python examples/run.py softmax matmul   # some
    python examples/run.py --quick          # fewer repetitions
    python examples/run.py --json           # the same as JSON, for programs

"numpy" and "torch" say how many times faster than those the kernel is on this machine; PyTorch is used when it happens
to be installed, with its own choice of threads.
"""

from __future__ import annotations

import argparse
import importlib
import json
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent))

from common import Work
from weft.base import progress

ALL = (
    "vector_add",
    "softmax",
    "layer_norm",
    "rms_norm",
    "matmul",
    "batched_matmul",
    "matmul_block_pointers",
    "matmul_descriptors",
    "low_precision",
    "flash_attention",
    "dropout",
    "cross_entropy",
    "rotary",
    "sorting",
    "prefix_sum",
    "histogram",
    "gather_scatter",
)
HERE = Path(__file__).resolve().parent
EXAMPLES = tuple(name for name in ALL if (HERE / f"{name}.py").exists())
"""Those that are here: an installed Weft has two."""
COLUMNS = ("kernel", "size", "time", "rate", "numpy", "torch", "error")


def best_time(work: Callable[[], object], budget: float, at_most: int, told: Callable[[], None]) -> float:
    """The shortest of several runs, in seconds; the first, which may compile or touch memory, does not count."""
    work()
    times = []
    begin = time.perf_counter()
    while len(times) < at_most and (not times or time.perf_counter() - begin < budget):
        told()
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return min(times)


def measure(name: str, work: Work, torch: Any, budget: float, told: Callable[[], None]) -> dict[str, Any]:
    """Run, check and time one piece of work."""
    start = time.perf_counter()
    work.run()
    first = time.perf_counter() - start
    error = work.error()
    told()
    seconds = best_time(work.run, budget, 100, told)
    row: dict[str, Any] = {
        "kernel": name,
        "size": work.size,
        "seconds": seconds,
        "first_call_seconds": first,
        "error": error,
        "tolerance": work.tolerance,
        "ok": error <= work.tolerance,
    }
    if work.flops:
        row["gflops"] = work.flops / seconds / 1e9
    if work.bytes:
        row["gbytes"] = work.bytes / seconds / 1e9
    if work.numpy:
        row["numpy"] = best_time(work.numpy, budget, 20, told) / seconds
    if torch is not None and work.torch:
        row["torch"] = best_time(work.torch(torch), budget, 20, told) / seconds
    return row


def cells(row: Mapping[str, Any]) -> tuple[str, ...]:
    """One line of the table as text."""
    if "problem" in row:
        return row["kernel"], row["size"], "FAILED", "", "", "", ""
    seconds = row["seconds"]
    duration = f"{seconds * 1e3:.2f} ms" if seconds >= 1e-3 else f"{seconds * 1e6:.0f} us"
    rate = f"{row['gflops']:.1f} GFLOP/s" if "gflops" in row else f"{row['gbytes']:.1f} GB/s" if "gbytes" in row else ""
    ratios = [f"{row[other]:.1f}x" if other in row else "" for other in ("numpy", "torch")]
    verdict = f"{row['error']:.0e}" if row["error"] else "exact"
    return row["kernel"], row["size"], duration, rate, *ratios, verdict if row["ok"] else f"WRONG {verdict}"


WIDTHS = (22, 35, 10, 14, 8, 8, 8)


def line(texts: tuple[str, ...]) -> str:
    """Texts in columns: names to the left, numbers to the right."""
    parts = [text.ljust(width) if i < 2 else text.rjust(width) for i, (text, width) in enumerate(zip(texts, WIDTHS))]
    return " ".join(parts).rstrip()


def report(examples: Mapping[str, Callable[[], Iterator[Work]]], as_json: bool = False, quick: bool = False) -> int:
    """Run the examples, print the table as it grows, and return the exit status: 0 when everything was right."""
    try:
        import torch
    except ModuleNotFoundError:
        torch = None
    rows = []
    if not as_json:
        print(line(COLUMNS))
    for name, works in examples.items():
        generator = works()
        while True:
            work = next(generator, None)
            if work is None:
                break
            try:
                with progress(f"running {name}") as told:
                    row = measure(name, work, torch, 0.02 if quick else 0.3, told)
            except Exception as problem:  # the other examples still run; the status says that this one did not
                row = {
                    "kernel": name,
                    "size": work.size,
                    "ok": False,
                    "problem": f"{type(problem).__name__}: {problem}",
                }
            rows.append(row)
            if not as_json:
                print(line(cells(row)), flush=True)
    wrong = [row for row in rows if not row["ok"]]
    for row in wrong:
        if "problem" in row:
            print(f"\n{row['kernel']}, {row['size']}: {row['problem']}", file=sys.stderr)
    if as_json:
        print(json.dumps(rows, indent=1))
    else:
        print(
            f"\n{len(rows) - len(wrong)} of {len(rows)} agree with float64"
            + ("" if torch else "; PyTorch is not installed")
        )
    return 1 if wrong else 0


def parser(name: str | None = None) -> argparse.ArgumentParser:
    """What the command line takes; `name` is what the command is called in its help."""
    made = argparse.ArgumentParser(name, description="Run the examples, check them and time them.")
    made.add_argument("names", nargs="*", metavar="NAME", help=f"which examples: {', '.join(EXAMPLES)}")
    made.add_argument("--json", action="store_true", help="print JSON instead of a table")
    made.add_argument("--quick", action="store_true", help="time each kernel for a moment only")
    return made


def main(arguments: Sequence[str] | None = None, name: str | None = None) -> int:
    """The command line."""
    taken = parser(name)
    options = taken.parse_args(arguments)
    unknown = [name for name in options.names if name not in EXAMPLES]
    if unknown:
        taken.error(f"no example called {', '.join(unknown)}; there are {', '.join(EXAMPLES)}")
    chosen = options.names or EXAMPLES
    return report({name: importlib.import_module(name).works for name in chosen}, options.json, options.quick)


if __name__ == "__main__":
    sys.exit(main())
