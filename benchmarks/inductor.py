"""`torch.compile` on the CPU: kernels that Inductor writes for Triton, run by Weft, against its C++ back end.

    python benchmarks/inductor.py                    # 30 graphs; PyTorch and a C++ compiler must be installed
    python benchmarks/inductor.py --only norm --threads 2 --json
    python benchmarks/inductor.py --more             # 42 others (inductor_more.py)
    python benchmarks/inductor.py --wide             # 135 more (inductor_wide.py, inductor_neighbours.py)
    python benchmarks/inductor.py --show --only norm # the kernels that Inductor wrote

Each graph (inductor_graphs.py) is compiled anew by either, which is timed, the results are compared, and both are run
in turns with as many threads; medians count. "reached" is how many times faster Weft is. What is neither's, such as
products, which both leave to PyTorch, is in both times. OpenMP's threads wait for each other: on a machine that others
use too, `--threads 1` gives ratios that mean something.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import statistics
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from time import perf_counter
from typing import Any

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
FOLDER = tempfile.mkdtemp(prefix="weft-inductor-")
os.environ["TORCHINDUCTOR_CACHE_DIR"] = FOLDER + "/inductor"
os.environ["WEFT_CACHE_DIR"] = FOLDER + "/weft"
os.environ["TORCHINDUCTOR_COMPILE_THREADS"] = "1"
os.environ["TORCHINDUCTOR_FX_GRAPH_CACHE"] = os.environ["TORCHINDUCTOR_AUTOGRAD_CACHE"] = "0"

import weft.compat  # noqa: E402

weft.compat.install()

import torch  # noqa: E402

from inductor_graphs import GRAPHS, Work  # noqa: E402
from inductor_more import MORE  # noqa: E402
from inductor_neighbours import NEIGHBOURS  # noqa: E402
from inductor_wide import WIDE  # noqa: E402
from measure import interleaved  # noqa: E402
from weft.backends.cpu.driver import set_num_threads  # noqa: E402

LEAST, LEAST_OF_ONE, AIM = 1.0, 0.7, 1.4


def compiled(make: Callable[[], Work], backend: str) -> tuple[Callable[[], Any], float, Any]:
    """A graph compiled for a back end, the seconds that its first run took, and what it gave."""
    torch.manual_seed(0)
    work, args, leaves = make()
    call = torch.compile(work, options={"cpu_backend": backend})

    def run() -> Any:
        return torch.autograd.grad(call(*args), leaves) if leaves else call(*args)

    begin = perf_counter()
    result = run()
    return run, perf_counter() - begin, result


def flat(result: Any) -> list[torch.Tensor]:
    """The tensors of a result."""
    return [result] if isinstance(result, torch.Tensor) else [t for part in result for t in flat(part)]


def check(name: str, ours: Any, theirs: Any) -> None:
    """A figure for a wrong result is no figure."""
    for a, b in zip(flat(ours), flat(theirs), strict=True):
        if a.dtype.is_floating_point and a.itemsize == 1:  # torch.testing compares fp8 by bits only
            a, b = a.float(), b.float()
        tolerance = 2e-2 if a.dtype in (torch.bfloat16, torch.float16) else 2e-3
        torch.testing.assert_close(a, b, rtol=tolerance, atol=tolerance, msg=lambda text: f"{name}: {text}")


def measured(name: str, make: Callable[[], Work], budget: float, runs: int) -> dict[str, Any]:
    """One line of the table."""
    torch._dynamo.reset()
    theirs, their_compile, expected = compiled(make, "cpp")
    ours, our_compile, got = compiled(make, "triton")
    check(name, got, expected)
    a, b = interleaved([ours, theirs], budget, most=max(60, 4 * runs), runs=runs)
    return {
        "graph": name,
        "reached": b.median / a.median,
        "weft_ms": a.median * 1e3,
        "cpp_ms": b.median * 1e3,
        "spread": max(a.spread, b.spread),
        "weft_compile_s": our_compile,
        "cpp_compile_s": their_compile,
    }


def show(make: Callable[[], Work]) -> None:
    """Print the program that Inductor wrote for Weft."""
    from torch._inductor.utils import run_and_get_code  # type: ignore[attr-defined]

    work, args, leaves = make()
    call = torch.compile(work, options={"cpu_backend": "triton"})

    def run() -> Any:
        return torch.autograd.grad(call(*args), leaves) if leaves else call(*args)

    _, codes = run_and_get_code(run)
    print(*codes, sep="\n")


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="graphs whose names contain one of some words, with commas between")
    parser.add_argument("--more", action="store_true", help="the graphs of inductor_more.py instead")
    parser.add_argument("--wide", action="store_true", help="those of inductor_wide.py and inductor_neighbours.py")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--budget", type=float, default=2.0, help="seconds of measuring for each graph")
    parser.add_argument("--runs", type=int, default=2, help="runs in a row that count, behind one that wakes threads")
    parser.add_argument("--show", action="store_true", help="print what Inductor writes, and measure nothing")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    set_num_threads(options.threads)
    graphs = [*WIDE, *NEIGHBOURS] if options.wide else MORE if options.more else GRAPHS
    chosen = [(n, make) for n, make in graphs if any(word in n for word in options.only.split(","))]
    if options.show:
        for _, make in chosen:
            show(make)
        return
    rows = []
    for name, make in chosen:
        row = measured(name, make, options.budget, options.runs)
        rows.append(row)
        if not options.json:
            print(
                f"{name:24s} {row['reached']:5.2f}x  {row['weft_ms']:8.3f} ms against {row['cpp_ms']:8.3f}"
                f"  spread {row['spread']:4.0%}  compiled in {row['weft_compile_s']:5.2f} s against"
                f" {row['cpp_compile_s']:5.2f}",
                flush=True,
            )
    if options.json:
        print(json.dumps(rows, indent=1))
    elif rows:
        reached = [row["reached"] for row in rows]
        mean = math.exp(statistics.fmean(map(math.log, reached)))
        least = min(rows, key=lambda row: row["reached"])
        compile_ratio = math.exp(
            statistics.fmean(math.log(row["cpp_compile_s"] / row["weft_compile_s"]) for row in rows)
        )
        print(
            f"\n{len(rows)} graphs: {mean:.2f}x in the geometric mean (at least {LEAST}, aim {AIM}), least"
            f" {least['reached']:.2f}x ({least['graph']}; at least {LEAST_OF_ONE}), compiled"
            f" {compile_ratio:.2f} times as fast"
        )


if __name__ == "__main__":
    main()
