# mypy: ignore-errors
"""What bounds a kernel by Nsight Compute's utilisation, beside what `kernel.explain` says: explain_time.py --bounds.

A launch is bound by the resource that is used the most, if that is 60 % of what it could be or more, and otherwise by
latency: that is the rule of Nsight Compute's own summary. The same rule is applied to the utilisation that is predicted
(`e.time.utilisation`), which is that of ncu: of the peak, as the mean of all multiprocessors, with caches that ncu has
emptied. `e.time.bound` is compared as well, which is of a launch that has to write back what others left in L2. What
shared memory and the L1 cache do is done by one unit; the start of blocks, the launch and atomic operations that meet
are waiting, for which ncu has no metric. Where ncu shows two within three hundredths, one of them may be called the
greatest as well as the other: how many agree if that is allowed is told apart.

    python benchmarks/explain_time.py --bounds --seconds 400       # needs the GPU and ncu; resumes
    python benchmarks/explain_time.py --bounds --report
"""

from __future__ import annotations

import csv
import io
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from explain_sets import SETS, Case

BUSY = 0.6
"""The utilisation from which on a resource bounds a launch."""
TIE = 0.03
"""Utilisations that differ by no more are alike."""
ELAPSED = ".avg.pct_of_peak_sustained_elapsed"
UTILISATION = {
    "DRAM": (f"dram__throughput{ELAPSED}",),
    "L2": (f"lts__t_sectors{ELAPSED}", f"lts__d_sectors{ELAPSED}", f"l1tex__m_xbar2l1tex_read_bytes{ELAPSED}"),
    "L1": (f"l1tex__data_pipe_lsu_wavefronts{ELAPSED}", f"l1tex__lsuin_requests{ELAPSED}",
           f"l1tex__data_bank_reads{ELAPSED}", f"l1tex__data_bank_writes{ELAPSED}"),
    "issue": (f"sm__inst_issued{ELAPSED}",),
    "integers and choices": (f"sm__inst_executed_pipe_alu{ELAPSED}", f"sm__pipe_alu_cycles_active{ELAPSED}"),
    "floats": (f"sm__pipe_fmaheavy_cycles_active{ELAPSED}", f"sm__inst_executed_pipe_fma{ELAPSED}"),
    "special functions": (f"sm__inst_executed_pipe_xu{ELAPSED}",),
    "matrix units": (f"sm__pipe_tensor_cycles_active{ELAPSED}",),
    "double precision": (f"sm__pipe_fp64_cycles_active{ELAPSED}", f"sm__inst_executed_pipe_fp64{ELAPSED}"),
}  # fmt: skip
"""The metrics of a resource, in per cent; the greatest counts, of those that this ncu knows."""
BESIDE = (
    *("gpu__time_duration.sum", "dram__bytes_read.sum", "dram__bytes_write.sum", "lts__t_bytes.sum"),
    *(f"smsp__inst_executed{pipe}.sum" for pipe in ("", "_pipe_alu", "_pipe_fma", "_pipe_fmaheavy", "_pipe_xu")),
    *(f"smsp__inst_executed_pipe_{pipe}.sum" for pipe in ("lsu", "uniform", "fp64", "cbu", "adu")),
    *("sm__cycles_active.avg", "sm__cycles_elapsed.max", "smsp__warps_active.avg.per_cycle_active"),
)
"""What else is written down, to find out why a prediction is off."""
MERGED = {"shared memory": "L1"}
GROUP_SECONDS = 150.0
"""How long one process measures before what it has found is read: ncu prints it at its end."""
MARK = "CASE "


def bound_of(used: dict[str, float]) -> str:
    """The resource that bounds a launch, of which parts are used: the most of them, or latency."""
    name = max(used, key=lambda each: used[each], default="latency")
    return name if used.get(name, 0.0) >= BUSY else "latency"


def shown(row: dict[str, Any]) -> str:
    """What bounds a kernel by what was measured."""
    return bound_of({name: part / 100 for name, part in row["used"].items()})


def alike(row: dict[str, Any]) -> set[str]:
    """What may be said to bound a kernel by what was measured, where some are alike."""
    used = {name: part / 100 for name, part in row["used"].items()}
    most = max(used.values(), default=0.0)
    found = {name for name, part in used.items() if part >= max(most, BUSY) - TIE}
    return found | ({"latency"} if most < BUSY + TIE else set())


def predicted(row: dict[str, Any]) -> str:
    """What bounds it by the utilisation that was predicted."""
    used: dict[str, float] = {}
    for name, part in row["utilisation"].items():
        name = MERGED.get(name, name)
        if name in UTILISATION:
            used[name] = max(used.get(name, 0.0), part)
    return bound_of(used)


def named(row: dict[str, Any]) -> str:
    """What is said to bound it."""
    name = MERGED.get(row["bound"], row["bound"])
    return name if name in UTILISATION else "latency"


def profile(cases: Iterator[Case], until: float) -> None:
    """In the process under ncu: each kernel once to be compiled, and once to be measured."""
    import torch

    driver = torch.cuda.cudart()
    for case in cases:
        try:
            case.kernel[case.grid](*case.args, **case.more)
            torch.cuda.synchronize()
            driver.cudaProfilerStart()
            try:
                case.kernel[case.grid](*case.args, **case.more)
                torch.cuda.synchronize()
            finally:
                driver.cudaProfilerStop()
            print(f"{MARK}{json.dumps([case.name, case.kernel.__name__])}", file=sys.stderr, flush=True)
        except Exception as error:
            print(f"{case.name}: {type(error).__name__}: {str(error)[:200]}", file=sys.stderr, flush=True)
        if time.monotonic() > until:
            return


def known_metrics(ncu: str) -> list[str]:
    """Of the metrics those that this ncu has on this GPU."""
    asked = [*BESIDE, *(metric for metrics in UTILISATION.values() for metric in metrics)]
    done = subprocess.run([ncu, "--query-metrics"], capture_output=True, text=True, timeout=120, check=False)
    names = {line.split()[0] for line in done.stdout.splitlines() if line.strip()}
    found = [metric for metric in asked if metric.partition(".")[0] in names]
    missing = [metric for metric in asked if metric not in found]
    if missing:
        print(f"ncu does not know {', '.join(missing)}", flush=True)
    return found or asked


def rows_of(output: str) -> list[tuple[str, dict[str, float]]]:
    """The kernels and what was measured of them, in the order of the launches."""
    start = output.find('"ID"')
    found = []
    for cells in csv.DictReader(io.StringIO(output[start:])) if start >= 0 else ():
        if (cells.get("ID") or "").strip().isdigit():
            name = (cells.get("Kernel Name") or "").partition("(")[0].strip()
            found.append((name, {key: _number(text or "") for key, text in cells.items() if key and "__" in key}))
    return found


def _number(text: str) -> float:
    try:
        return float(text.replace(",", ""))
    except ValueError:
        return 0.0


def row_of(values: dict[str, float]) -> dict[str, Any]:
    """What is kept of a kernel."""
    used = {
        name: round(max(values[metric] for metric in metrics if metric in values), 1)
        for name, metrics in UTILISATION.items()
        if any(metric in values for metric in metrics)
    }
    return {"used": used, "beside": {metric: values[metric] for metric in BESIDE if metric in values}}


def measure(path: Path, command: Callable[[str, float], list[str]], until: float) -> None:
    """Measure what is not in the file yet; `command` makes the process of a set that stops after some seconds."""
    from ncu import find_ncu

    ncu = find_ncu()
    if ncu is None:
        print("ncu was not found: install Nsight Compute")
        return
    rows = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    metrics = ",".join(known_metrics(ncu))
    for which in SETS:
        while (left := until - time.monotonic()) > 20:
            seconds = min(GROUP_SECONDS, left - 15)
            before = len(rows)
            done = subprocess.run(
                [ncu, "--csv", "--page", "raw", "--print-units", "base", "--clock-control", "none",
                 "--profile-from-start", "off", "--metrics", metrics, *command(which, seconds)],
                env={**os.environ, "EXPLAIN_KNOWN": json.dumps(list(rows))},
                capture_output=True, text=True, check=False,
            )  # fmt: skip
            said = (done.stderr + done.stdout).splitlines()
            measured = rows_of(done.stdout)
            for name, kernel in (json.loads(line[len(MARK) :]) for line in said if line.startswith(MARK)):
                at = next((i for i, each in enumerate(measured) if each[0] == kernel), None)
                if at is not None:
                    rows[name] = row_of(measured[at][1])
                    del measured[: at + 1]
            path.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")
            print(f"{which}: {len(rows) - before} kernels more, {len(rows)} in all", flush=True)
            if len(rows) == before:
                print("\n".join(line for line in said if not line.startswith(MARK))[-1500:], flush=True)
                break


def report(rows: dict[str, Any], measured: dict[str, Any]) -> None:
    """Kernels whose bound is another, and how many agree."""
    agreed: dict[str, list[tuple[bool, bool, bool]]] = {}
    for name, row in measured.items():
        if "utilisation" not in rows.get(name, {}):
            continue
        ours, theirs = predicted(rows[name]), shown(row)
        here = agreed.setdefault(rows[name]["half"], [])
        here.append((ours == theirs, ours in alike(row), named(rows[name]) == theirs))
        if ours != theirs:
            used = ", ".join(f"{k} {v:.0f}" for k, v in sorted(row["used"].items(), key=lambda kv: -kv[1])[:4])
            tie = " (alike)" if ours in alike(row) else ""
            print(f"{name:48} predicted {ours:20} measured {theirs:20} ({used}){tie}")
    for half, same in sorted(agreed.items()):
        by_utilisation, if_alike, by_name = (sum(each[i] for each in same) for i in range(3))
        print(
            f"{half}: of {len(same)} kernels the bound by utilisation is that of ncu for {by_utilisation}, or alike "
            f"for {if_alike}; e.time.bound is that of ncu for {by_name}"
        )
