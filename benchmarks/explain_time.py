"""Times that `kernel.explain` predicts beside times measured on an H100 or H200, kernel by kernel.

    python benchmarks/explain_time.py                     # needs the GPU, PyTorch and Triton (for the kernels' inputs)
    python benchmarks/explain_time.py --only softmax
    python benchmarks/explain_time.py --seconds 500       # stops in time; run it again, and it goes on
    python benchmarks/explain_time.py --measure           # measures, and leaves the predictions to another run
    python benchmarks/explain_time.py --predict           # predicts again, and measures nothing
    python benchmarks/explain_time.py --report            # the table of what was measured, without a GPU
    python benchmarks/explain_time.py --bounds            # what bounds each, by ncu (explain_bounds.py)

The kernels are those of explain_sets.py. A time is the median of what CUPTI says of launches (PyTorch's profiler), from
the start of the kernel on the GPU to its end, after a kernel that has overwritten the L2 cache; where there is no
profiler, of events, less what an empty kernel takes.

Kernels are split by the first bit of the SHA-256 of their names: constants may be set by looking at the ones marked
"constants", errors are reported of the others. No measurement of a kernel goes into its own prediction. Kernels are
measured one after the other; what is predicted, by several processes, when all have been measured.
"""

# mypy: ignore-errors
from __future__ import annotations

import argparse
import hashlib
import json
import os
import statistics
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import explain_bounds
from explain_sets import SETS, Case, cases_of

TREE = f"{Path(__file__).resolve().parent.parent}/"
RESULTS = Path(__file__).resolve().parent / "results"
READ_AT_MOST = 1 << 20
"""Bytes of an array of integers up to which a prediction knows what it holds."""
LAUNCH_US = 1.24
"""What is added to a time by events, of which that of an empty kernel was taken."""
HALVES = ("constants", "report")
ROW = "ROW "
"""How lines begin that a process has for the one that started it."""


def half_of(name: str) -> str:
    """Which half of the kernels one is in."""
    return HALVES[hashlib.sha256(name.encode()).digest()[0] & 1]


def set_of(name: str) -> str:
    """Which set it belongs to."""
    start = name.partition(":")[0]
    return start if start in SETS else SETS[0]


# -- in a process of its own -------------------------------------------------------------------------------------------


def say(name: str, row: dict[str, Any]) -> None:
    """Tell the parent of it."""
    print(f"{ROW}{json.dumps([name, row])}", flush=True)


def measure(cases: Iterator[Case], until: float) -> None:
    """The time of each."""
    import torch

    import weft
    import weft.language as tl
    from gpu_facts import machine

    @weft.jit
    def nothing(x, BLOCK: tl.constexpr):
        pass

    some = torch.empty(16, device="cuda")
    empty = by_events(lambda: nothing[(132,)](some, BLOCK=16))
    gpu = machine()["gpu"]
    for case in cases:
        row: dict[str, Any] = {"half": half_of(case.name), "gpu": gpu}
        try:

            def call(case: Case = case) -> None:
                case.kernel[case.grid](*case.args, **case.more)

            row["events"] = round(by_events(call) - empty + LAUNCH_US, 2)
            found = by_profiler(call, case.kernel.__name__)
            row["measured"] = found or row["events"]
        except Exception as error:
            row["error"] = said(error)
        say(case.name, row)
        if time.monotonic() > until:
            return


def said(error: Exception) -> str:
    """In short."""
    return f"{type(error).__name__}: {str(error).strip().replace(TREE, '')[:200]}"


def by_events(call: Callable[[], None], rounds: int = 30) -> float:
    """Microseconds between two events around a launch."""
    import torch

    flush = torch.empty(256 << 20, dtype=torch.int8, device="cuda")
    for _ in range(3):
        call()
    marks = [torch.cuda.Event(enable_timing=True) for _ in range(2 * rounds)]
    for k in range(rounds):
        flush.zero_()
        marks[2 * k].record()
        call()
        marks[2 * k + 1].record()
    torch.cuda.synchronize()
    return 1e3 * statistics.median(marks[2 * k].elapsed_time(marks[2 * k + 1]) for k in range(rounds))


def by_profiler(call: Callable[[], None], name: str, rounds: int = 30) -> float | None:
    """Microseconds of a kernel by CUPTI; None where it has nothing to say."""
    import torch
    from torch.profiler import ProfilerActivity, profile

    flush = torch.empty(256 << 20, dtype=torch.int8, device="cuda")
    with profile(activities=[ProfilerActivity.CUDA]) as found:
        for _ in range(rounds):
            flush.zero_()
            call()
        torch.cuda.synchronize()
    times = [e.time_range.elapsed_us() for e in found.events() if e.name == name or e.name.startswith(f"{name}(")]
    return round(statistics.median(times), 2) if times else None


def given(value: Any) -> Any:
    """An argument for explain: small arrays of integers, which may bound loops, as NumPy arrays that it reads."""
    import torch

    is_read = isinstance(value, torch.Tensor) and not value.is_floating_point() and value.nbytes <= READ_AT_MOST
    return value.cpu().numpy() if is_read else value


def predict(cases: Iterator[Case], until: float, device: str) -> None:
    """What is explained of each."""
    import weft

    for case in cases:
        row: dict[str, Any] = {"half": half_of(case.name)}
        try:
            begun = time.monotonic()
            with weft.target("cuda:90", device=device):  # a kernel may have a parameter called target
                e = case.kernel.explain(*map(given, case.args), **case.more, grid=case.grid)
            row |= {"seconds": round(time.monotonic() - begun, 2), "note": e.counts.note.replace(TREE, "")}
            row["device"] = device
            if e.occupancy is not None:
                row |= {"registers": e.occupancy.registers, "blocks": e.occupancy.blocks}
            if e.time is not None:
                row |= {"predicted": e.time.microseconds, "low": e.time.low, "high": e.time.high}
                row |= {"bound": e.time.bound, "resources": dict(e.time.resources)}
                row |= {"utilisation": dict(e.time.utilisation)}
        except Exception as error:
            row["unexplained"] = said(error)
        say(case.name, row)
        if time.monotonic() > until:
            return


def child(options: argparse.Namespace) -> None:
    """Measure or predict what is not known yet of a set, or every so-manyth of it."""
    known = set(json.loads(os.environ.get("EXPLAIN_KNOWN") or sys.stdin.read()))  # ncu keeps standard input
    part, parts = options.part

    def wanted(name: str) -> bool:
        mine = hashlib.sha256(name.encode()).digest()[1] % parts == part
        return options.only in name and name not in known and mine

    import torch

    if options.set != "inductor":
        import triton

        triton.set_allocator(lambda size, alignment, stream: torch.empty(size, device="cuda", dtype=torch.int8))
    until = time.monotonic() + options.seconds
    if options.child == "measure":
        measure(cases_of(options.set, wanted), until)
    elif options.child == "bounds":
        explain_bounds.profile(cases_of(options.set, wanted), until)
    else:
        predict(cases_of(options.set, wanted), until, "H200" if "H200" in options.device else "")


# -- in the process that starts them -----------------------------------------------------------------------------------


class Table:
    """What is known, in a file."""

    def __init__(self, path: Path, again: bool) -> None:
        self.path, self.lock = path, threading.Lock()
        self.rows = json.loads(path.read_text(encoding="utf-8")) if path.exists() and not again else {}

    def add(self, name: str, row: dict[str, Any]) -> None:
        """More of a kernel."""
        with self.lock:
            self.rows.setdefault(name, {}).update(row)
            self.path.write_text(json.dumps(self.rows, indent=1) + "\n", encoding="utf-8")

    def run(self, options: argparse.Namespace, step: str, which: str, part: int, parts: int, until: float) -> None:
        """A process for a part of a set; what it says goes into the table."""
        key = ("measured", "error") if step == "measure" else ("predicted", "note", "unexplained")
        known = [name for name, row in self.rows.items() if any(k in row for k in key)]
        seconds = until - time.monotonic()
        if seconds < 5:
            return
        command = [sys.executable, __file__, "--child", step, "--set", which, "--part", str(part), str(parts)]
        command += ["--device", options.device, "--only", options.only, "--seconds", str(seconds)]
        running = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
            env={**os.environ, "OMP_NUM_THREADS": "1"},
        )  # fmt: skip
        errors: list[str] = []
        reader = threading.Thread(target=lambda: errors.extend(running.stderr))
        reader.start()
        running.stdin.write(json.dumps(known))
        running.stdin.close()
        for line in running.stdout:
            if line.startswith(ROW):
                name, row = json.loads(line.removeprefix(ROW))
                self.add(name, row)
                value = row.get("measured") or row.get("predicted") or row.get("error") or row.get("unexplained")
                print(f"{step:8} {name:50} {value}", flush=True)
            else:
                print(line, end="")
        if running.wait():
            print(f"{step} {which}: ended with {running.returncode}: {''.join(errors)[-1500:]}", flush=True)
        reader.join()


def line(name: str, row: dict[str, Any]) -> str:
    """One kernel."""
    if "predicted" not in row or "measured" not in row:
        why = row.get("error") or row.get("unexplained") or row.get("note") or "nothing is predicted"
        return f"{name:48} {why}"
    ratio = row["predicted"] / row["measured"]
    inside = "in" if row["low"] <= row["measured"] <= row["high"] else "OUT"
    return (
        f"{name:48} {row['measured']:9.1f} {row['predicted']:9.1f} {ratio:6.2f} {inside:>4} "
        f"{row['low']:9.1f} {row['high']:9.1f} {row['bound']:18} {row['half']:9} {row.get('seconds', 0):5.1f} s"
    )


def report(rows: dict[str, Any]) -> None:
    """The table, and the errors of each half and of the sets in it."""
    print(f"{'kernel':48} {'measured':>9} {'predicted':>9} {'ratio':>6}")
    for name, row in rows.items():
        print(line(name, row))
    for half in HALVES:
        for which in ("", *SETS):
            pairs = [
                r
                for name, r in rows.items()
                if r.get("half") == half and "predicted" in r and "measured" in r and which in ("", set_of(name))
            ]
            if pairs:
                print(f"{half}{f', {which}' if which else ''}: {summary(pairs)}")


def summary(pairs: list[dict[str, Any]]) -> str:
    """How near they are, in words."""
    errors = sorted(abs(r["predicted"] / r["measured"] - 1) for r in pairs)
    inside = sum(r["low"] <= r["measured"] <= r["high"] for r in pairs) / len(pairs)
    within = sum(e <= 0.25 for e in errors) / len(errors)
    width = statistics.median((r["high"] - r["low"]) / r["measured"] for r in pairs)
    return (
        f"{len(pairs)} kernels, median error {statistics.median(errors):.1%}, within 25 %: {within:.0%}, "
        f"inside of the interval: {inside:.0%}, which is {width:.0%} wide in the median"
    )


def results_of(device: str) -> Path:
    """The file of a device's results."""
    return RESULTS / ("explain-time-h200.json" if "H200" in device else "explain-time.json")


def main() -> None:
    """Measure what is not measured yet, predict, and print everything."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", default="", help="kernels whose name contains this")
    parser.add_argument("--sets", default=",".join(SETS), help="some of the sets")
    parser.add_argument("--seconds", type=float, default=500.0, help="begin no kernel after so long")
    parser.add_argument("--processes", type=int, default=8, help="that predict at a time")
    parser.add_argument("--measure", action="store_true", help="predict nothing")
    parser.add_argument("--predict", action="store_true", help="predict again, and measure nothing")
    parser.add_argument("--report", action="store_true", help="print what was measured before")
    parser.add_argument("--device", default="", help="whose results to print, or to predict on another: H200")
    parser.add_argument("--again", action="store_true", help="forget what was measured before")
    parser.add_argument("--bounds", action="store_true", help="measure what bounds kernels, by ncu, and nothing else")
    parser.add_argument("--child", choices=("measure", "predict", "bounds"), help=argparse.SUPPRESS)
    parser.add_argument("--set", help=argparse.SUPPRESS)
    parser.add_argument("--part", nargs=2, type=int, default=(0, 1), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        child(options)
        return
    until = time.monotonic() + options.seconds
    if not options.report:
        from gpu_facts import machine

        options.device = options.device or machine()["gpu"]
    table = Table(results_of(options.device), options.again)
    if options.bounds:
        bounds(options, table.rows, until)
        return
    if not options.report:
        work(options, table, until)
    report(table.rows)


def bounds(options: argparse.Namespace, rows: dict[str, Any], until: float) -> None:
    """Measure what bounds kernels, and print where that is not what was predicted."""
    path = results_of(options.device).with_name(results_of(options.device).name.replace("time", "bounds"))

    def command(which: str, seconds: float) -> list[str]:
        options_ = ("--child", "bounds", "--set", which, "--only", options.only, "--seconds", str(seconds))
        return [sys.executable, __file__, *options_, "--device", options.device or "H100"]

    if not options.report:
        explain_bounds.measure(path, command, until)
    if path.exists():
        explain_bounds.report(rows, json.loads(path.read_text(encoding="utf-8")))


def work(options: argparse.Namespace, table: Table, until: float) -> None:
    """All that is asked for."""
    sets = options.sets.split(",")
    if options.predict:
        for row in table.rows.values():
            for key in ("predicted", "low", "high", "note", "unexplained"):
                row.pop(key, None)
    for which in () if options.predict else sets:
        table.run(options, "measure", which, 0, 1, until)
    if options.measure:
        return
    for which in sets:
        parts = 1 if which == "inductor" else options.processes  # a graph is compiled as a whole
        threads = [
            threading.Thread(target=table.run, args=(options, "predict", which, part, parts, until))
            for part in range(parts)
        ]
        for each in threads:
            each.start()
        for each in threads:
            each.join()


if __name__ == "__main__":
    main()
