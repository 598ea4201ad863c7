"""Times that `kernel.explain` predicts beside times measured on an H100, kernel by kernel.

    python benchmarks/explain_time.py                     # needs an H100, PyTorch and Triton (for the kernels' inputs)
    python benchmarks/explain_time.py --only softmax
    python benchmarks/explain_time.py --seconds 500       # stops in time; run it again, and it goes on
    python benchmarks/explain_time.py --report            # the table of what was measured, without a GPU

The kernels are those of gpu_wider.py, on the same inputs. A time is the median of launches by events, with a cold L2
cache, less what an empty kernel takes by events, plus what the model takes a launch to be.

Kernels are split by the first bit of the SHA-256 of their names: constants may be set by looking at the ones marked
"constants", errors are reported of the others. No measurement of a kernel goes into its own prediction.
"""

# mypy: ignore-errors
from __future__ import annotations

import argparse
import hashlib
import json
import statistics
import time
from pathlib import Path
from typing import Any

TREE = f"{Path(__file__).resolve().parent.parent}/"
RESULTS = Path(__file__).resolve().parent / "results" / "explain-time.json"
LAUNCH_US = 1.24
HALVES = ("constants", "report")


def half_of(name: str) -> str:
    """Which half of the kernels one is in."""
    return HALVES[hashlib.sha256(name.encode()).digest()[0] & 1]


def measure(options: argparse.Namespace, rows: dict[str, Any]) -> None:
    """Predict and measure the kernels that are not in `rows` yet, and write after each."""
    import torch
    import triton

    import gpu_wider
    import weft
    import weft.language as tl
    from gpu import medians
    from gpu_facts import machine

    @weft.jit
    def nothing(x, BLOCK: tl.constexpr):
        pass

    begin = time.monotonic()
    triton.set_allocator(lambda size, alignment, stream: torch.empty(size, device="cuda", dtype=torch.int8))
    some = torch.empty(16, device="cuda")
    empty = 1e6 * medians(lambda: nothing[(132,)](some, BLOCK=16), seconds=0.1)[0]
    facts = machine("torch", "triton")
    for group in gpu_wider.GROUPS:
        for name, kernel, grid, args, more, _out, _expected, _tolerance in group():
            if options.only not in name or name in rows:
                continue
            if time.monotonic() - begin > options.seconds:
                return
            given = {k: getattr(tl, v) if k == "ACC" else v for k, v in more.items()}
            ours = next(getattr(file, kernel) for file in gpu_wider.OURS if hasattr(file, kernel))
            row: dict[str, Any] = {"half": half_of(name), "gpu": facts["gpu"]}
            try:
                begun = time.monotonic()
                with weft.target("cuda:90"):  # a kernel may have a parameter called target
                    e = ours.explain(*args, **given, grid=grid)
                row["seconds"] = round(time.monotonic() - begun, 2)
                row["note"] = e.counts.note.replace(TREE, "")
                if e.time is not None:
                    row |= {"predicted": e.time.microseconds, "low": e.time.low, "high": e.time.high}
                    row |= {"bound": e.time.bound, "resources": dict(e.time.resources)}
                taken = 1e6 * medians(lambda: ours[grid](*args, **given), seconds=0.1)[0]
                row["measured"] = round(taken - empty + LAUNCH_US, 2)
            except Exception as error:
                row["error"] = f"{type(error).__name__}: {str(error).strip().replace(TREE, '')[:200]}"
            rows[name] = row
            RESULTS.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")
            print(line(name, row), flush=True)


def line(name: str, row: dict[str, Any]) -> str:
    """One kernel."""
    if "predicted" not in row or "measured" not in row:
        return f"{name:48} {row.get('error') or row.get('note') or 'nothing is predicted'}"
    ratio = row["predicted"] / row["measured"]
    inside = "in" if row["low"] <= row["measured"] <= row["high"] else "OUT"
    return (
        f"{name:48} {row['measured']:9.1f} {row['predicted']:9.1f} {ratio:6.2f} {inside:>4}  {row['bound']:18} "
        f"{row['half']:9} {row['seconds']:5.1f} s"
    )


def report(rows: dict[str, Any]) -> None:
    """The table and the errors of each half."""
    print(f"{'kernel':48} {'measured':>9} {'predicted':>9} {'ratio':>6}")
    for name, row in rows.items():
        print(line(name, row))
    for half in HALVES:
        pairs = [r for r in rows.values() if r["half"] == half and "predicted" in r and "measured" in r]
        if pairs:
            errors = sorted(abs(r["predicted"] / r["measured"] - 1) for r in pairs)
            inside = sum(r["low"] <= r["measured"] <= r["high"] for r in pairs) / len(pairs)
            within = sum(e <= 0.25 for e in errors) / len(errors)
            median = statistics.median(errors)
            print(f"{half}: {len(pairs)} kernels, median error {median:.1%}, within 25 %: {within:.0%}, ", end="")
            print(f"inside of the interval: {inside:.0%}")


def main() -> None:
    """Measure what is not measured yet, then print everything."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", default="", help="kernels whose name contains this")
    parser.add_argument("--seconds", type=float, default=500.0, help="begin no kernel after so long")
    parser.add_argument("--report", action="store_true", help="print what was measured before")
    parser.add_argument("--again", action="store_true", help="forget what was measured before")
    options = parser.parse_args()
    rows = json.loads(RESULTS.read_text(encoding="utf-8")) if RESULTS.exists() and not options.again else {}
    if not options.report:
        measure(options, rows)
    report(rows)


if __name__ == "__main__":
    main()
