"""What the counter says a kernel does, beside what Nsight Compute measures of it on a GPU.

    python benchmarks/ncu.py                         # every kernel; needs a GPU and the program ncu
    python benchmarks/ncu.py --only convert --json
    python benchmarks/ncu.py --predict               # the predictions alone; needs neither

Each kernel is launched once, in a child process under ncu. Predicted are the counts of `weft.sim.count` for the same
lane program, or of the simulator where the counter says that data decide. They have to be equal; the exit status is 1
where one is not, and 2 where nothing could be measured. Where ncu does not know a metric on this GPU, or gives no
opcodes, the counts that need it are left out and named.
"""

from __future__ import annotations

import argparse
import csv
import datetime
import io
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from glob import glob
from pathlib import Path
from typing import Any

import numpy as np

import weft
from ncu_kernels import WORKS, Work
from weft import compiler
from weft.runtime.specialize import signature_of, specialize_param
from weft.sim import Report, Uncountable, count, run

HERE = Path(__file__).resolve().parent
OPCODES = "sass__inst_executed_per_opcode"
"""Instructions that warps executed, by opcode: its instances are those."""


@dataclass(frozen=True)
class Quantity:
    """What is compared: counters of the report, or kinds of instructions; metrics that are added, or opcodes."""

    name: str
    counter: str = ""
    kinds: str = ""
    """A regular expression."""
    metrics: tuple[str, ...] = ()
    opcodes: tuple[str, ...] = ()

    def predicted(self, report: Report) -> int:
        """The count in a report of the counter or the simulator."""
        if self.counter:
            return int(report[self.counter])
        return sum(n for kind, n in report.kinds.items() if re.fullmatch(self.kinds, kind))

    def measured(self, found: Row) -> int | None:
        """The count of a launch under ncu; None where it says nothing of it."""
        if self.opcodes:
            return None if found.opcodes is None else sum(found.opcodes.get(name, 0) for name in self.opcodes)
        values = [found.metrics.get(name) for name in self.metrics]
        known = [int(v) for v in values if v is not None]
        return sum(known) if values[0] is not None else None


def _sectors(kind: str) -> str:
    return f"l1tex__t_sectors_pipe_lsu_mem_global_op_{kind}.sum"


def _wavefronts(kind: str) -> str:
    return f"l1tex__data_pipe_lsu_wavefronts_mem_shared_op_{kind}.sum"


QUANTITIES = (
    Quantity("shared load wavefronts", "shared_load_wavefronts", metrics=(_wavefronts("ld"),)),
    Quantity("shared store wavefronts", "shared_store_wavefronts", metrics=(_wavefronts("st"),)),
    Quantity("global load sectors", "global_load_sectors", metrics=(_sectors("ld"),)),
    Quantity("global store sectors", "global_store_sectors", metrics=tuple(map(_sectors, ("st", "red", "atom")))),
    Quantity("shared loads", kinds=r"load\.shared\.\d+", opcodes=("LDS",)),
    Quantity("shared stores", kinds=r"store\.shared\.\d+", opcodes=("STS",)),
    Quantity("ldmatrix", kinds=r"ldmatrix\..*", opcodes=("LDSM",)),
    Quantity("stmatrix", kinds=r"stmatrix\..*", opcodes=("STSM",)),
    Quantity("global loads", kinds=r"load\.global\.\d+", opcodes=("LDG",)),
    Quantity("global stores", kinds=r"store\.global\.\d+", opcodes=("STG",)),
    Quantity("global atomics", kinds=r"atomic\.global", opcodes=("ATOMG", "ATOM", "RED", "REDG")),
    Quantity("shuffles", kinds="shuffle", opcodes=("SHFL",)),
    Quantity("barriers", kinds=r"barrier\.block", opcodes=("BAR",)),
    Quantity("matrix products", kinds=r"mma\.sync\..*", opcodes=("HMMA", "IMMA", "DMMA", "QMMA")),
)
METRICS = [*sorted({name for quantity in QUANTITIES for name in quantity.metrics}), OPCODES]


@dataclass
class Row:
    """A launch in ncu's table: the kernel's name, its metrics, and instructions by opcode where they are there."""

    kernel: str
    metrics: dict[str, int | None]
    opcodes: dict[str, int] | None


def number_of(text: str) -> int | None:
    """The number in a cell; None where there is none.

    >>> number_of("1,234"), number_of("12 (LDG: 8; STG: 4)"), number_of("n/a")
    (1234, 12, None)
    """
    match = re.match(r"\s*([\d,]+)(?:\.0+)?(?:\s|$)", text)
    return int(match[1].replace(",", "")) if match else None


def instances_of(text: str) -> dict[str, int] | None:
    """The instances in a cell by name; modifiers of opcodes are left off.

    >>> instances_of("12 (LDG: 8; HMMA.16816.F32: 3; HMMA: 1)")
    {'LDG': 8, 'HMMA': 4}
    >>> instances_of("12 (8; 4)"), instances_of("12")
    (None, None)
    """
    match = re.search(r"\((.*)\)\s*$", text)
    parts = re.findall(r"([A-Z][A-Z0-9_.]*): ([\d,]+)", match[1]) if match else []
    found: dict[str, int] = {}
    for name, n in parts:
        opcode = name.partition(".")[0]
        found[opcode] = found.get(opcode, 0) + int(n.replace(",", ""))
    return found or None


def rows_of(text: str) -> list[Row]:
    """The launches in what `ncu --csv --page raw` prints: a line of names, one of units, one for each launch."""
    lines = text.splitlines()
    begin = next((i for i, line in enumerate(lines) if line.startswith('"ID"')), None)
    if begin is None:
        return []
    table = list(csv.DictReader(io.StringIO("\n".join(lines[begin:]))))
    found = []
    for cells in table:
        if not (cells.get("ID") or "").strip().isdigit():
            continue  # the line of units
        metrics = {name: number_of(cells.get(name) or "") for name in METRICS}
        name = re.sub(r"\(.*", "", cells["Kernel Name"]).strip()
        found.append(Row(name, metrics, instances_of(cells.get(OPCODES) or "")))
    return found


# --------------------------------------------------------------------------------------------------------------------
# Prediction


def predicted(work: Work, target: str) -> tuple[Report, str]:
    """What a launch does, and who says so: the counter or the simulator."""
    kernel, launch = work.kernel, work.make()
    bound, options = kernel._bind(*launch.arguments, **work.constants)
    facts = [specialize_param(p, a) for p, a in zip(kernel.params, bound, strict=True)]
    signature, constants, attrs = signature_of(kernel.arg_names, facts, list(bound))
    source = compiler.ASTSource(kernel, signature, constants, attrs)
    program = compiler.lane_program(source, target, options)
    named = dict(zip(kernel.arg_names, bound, strict=True))
    arguments = {p.name: named[p.name] for p in program.parameters}
    scalars = {name: v for name, v in arguments.items() if not isinstance(v, np.ndarray)}
    try:
        report = count(program, launch.grid, scalars)
        if report.exact:
            return report, "counter"
    except Uncountable:
        pass
    return run(program, launch.grid, arguments), "simulator"


# --------------------------------------------------------------------------------------------------------------------
# Measurement


def launch_here(names: Sequence[str]) -> None:
    """In the child process: each kernel once."""
    for name in names:
        work = WORKS[name]
        launch = work.make()
        arguments = [weft.cuda.to_device(a) if isinstance(a, np.ndarray) else a for a in launch.arguments]
        work.kernel[launch.grid](*arguments, **work.constants)
        weft.cuda.synchronize()


def find_ncu() -> str | None:
    """The path of Nsight Compute's command line, the newest where there are several."""
    homes = [os.environ[name] for name in ("CUDA_HOME", "CUDA_PATH") if os.environ.get(name)]
    places = [*(f"{home}/bin/ncu" for home in homes), *sorted(glob("/usr/local/cuda*/bin/ncu"), reverse=True)]
    places += sorted(glob("/opt/nvidia/nsight-compute/*/ncu"), reverse=True)
    return shutil.which("ncu") or next((place for place in places if os.access(place, os.X_OK)), None)


def unknown_metrics(output: str, asked: Iterable[str]) -> list[str]:
    """The metrics that ncu says it does not know."""
    said = [line for line in output.splitlines() if re.search(r"(?i)(failed to find|unknown|not find) .*metric", line)]
    return [name for name in asked if any(name in line for line in said)]


def measure(ncu: str, names: Sequence[str]) -> tuple[list[Row], list[str], str]:
    """The rows of these kernels, the metrics that there are not, and ncu's output."""
    asked, missing = list(METRICS), list[str]()
    while True:
        command = [
            *(ncu, "--clock-control", "none", "--csv", "--page", "raw", "--print-units", "base"),
            *("--print-metric-instances", "details", "--metrics", ",".join(asked)),
            *(sys.executable, str(Path(__file__).resolve()), "--child", *names),
        ]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        output = done.stdout + "\n" + done.stderr
        unknown = unknown_metrics(output, asked)
        rows = rows_of(done.stdout)
        if rows or not unknown or len(unknown) == len(asked):
            return rows, missing, output
        missing += unknown
        asked = [name for name in asked if name not in unknown]


@dataclass
class Line:
    """A count of a kernel: what was predicted, by whom, and what was measured."""

    kernel: str
    quantity: str
    predicted: int
    by: str
    measured: int | None

    @property
    def differs(self) -> bool:
        """Whether it was measured and is another."""
        return self.measured is not None and self.measured != self.predicted

    def text(self) -> str:
        """A line of the table."""
        if self.measured is None:
            return f"{self.kernel:36} {self.quantity:24} {self.predicted:10,} {'-':>10} {'':>7}  {self.by}"
        ratio = f"{self.measured / self.predicted:.3f}" if self.predicted else "inf" if self.measured else "1.000"
        mark = "   DIFFERS" if self.differs else ""
        return (
            f"{self.kernel:36} {self.quantity:24} {self.predicted:10,} {self.measured:10,} {ratio:>7}  {self.by}{mark}"
        )


def compared(name: str, report: Report, by: str, row: Row | None) -> list[Line]:
    """The counts of a kernel that are not zero on both sides."""
    lines = []
    for quantity in QUANTITIES:
        expected = quantity.predicted(report)
        found = quantity.measured(row) if row is not None else None
        if expected or found:
            lines.append(Line(name, quantity.name, expected, by, found))
    return lines


def last_line(lines: Sequence[Line], unmeasured: Sequence[str]) -> str:
    """How many of the counts are as predicted."""
    measured = [line for line in lines if line.measured is not None]
    wrong = [line for line in measured if line.differs]
    kernels = len({line.kernel for line in measured})
    text = f"{len(measured) - len(wrong)} of {len(measured)} counts of {kernels} kernels are as predicted"
    if wrong:
        text += f"; {len(wrong)} differ, in {len({line.kernel for line in wrong})} kernels"
    return text + (f"; not measured: {', '.join(unmeasured)}" if unmeasured else "")


def paired(names: Sequence[str], rows: Sequence[Row]) -> dict[str, Row]:
    """The row of each kernel: launches come in the order of the names, the names of the functions must agree."""
    found, left = {}, list(rows)
    for name in names:
        wanted = WORKS[name].kernel.__name__
        if left and left[0].kernel == wanted:
            found[name] = left.pop(0)
    return found


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default="", help="kernels whose name contains this")
    parser.add_argument("--predict", action="store_true", help="predict only")
    parser.add_argument("--target", default="sim:cuda:90", help="what is predicted for: sim:cuda:80 or sim:cuda:90")
    parser.add_argument("--ncu", default=None, help="the path of ncu")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--save", action="store_true", help="write the table to benchmarks/results/")
    parser.add_argument("--child", nargs="+", help=argparse.SUPPRESS)
    return parser.parse_args()


def _measured(options: argparse.Namespace, names: Sequence[str]) -> tuple[dict[str, Row], list[str]]:
    """Rows by kernel, and what could not be measured; ends the process where nothing could."""
    ncu = options.ncu or find_ncu()
    if ncu is None:
        print("ncu was not found: install Nsight Compute, or say --ncu PATH; --predict needs none", file=sys.stderr)
        raise SystemExit(2)
    rows, missing, output = measure(ncu, names)
    if not rows:
        print("ncu measured nothing:", *output.strip().splitlines()[-15:], sep="\n    ", file=sys.stderr)
        raise SystemExit(2)
    if all(row.opcodes is None for row in rows) and OPCODES not in missing:
        missing.append(f"{OPCODES} (no instances)")
    found = paired(names, rows)
    missing += [f"the kernel {name!r}" for name in names if name not in found]
    return found, missing


def main() -> int:
    """Print the table; the exit status."""
    options = _arguments()
    if options.child:
        launch_here(options.child)
        return 0
    names = [name for name in WORKS if options.only in name]
    rows, missing = ({}, []) if options.predict else _measured(options, names)
    print(f"{'kernel':36} {'count':24} {'predicted':>10} {'measured':>10} {'ratio':>7}  by")
    lines: list[Line] = []
    for name in names:
        report, by = predicted(WORKS[name], options.target)
        for line in compared(name, report, by, rows.get(name)):
            lines.append(line)
            print(line.text(), flush=True)
    print(last_line(lines, missing))
    facts: dict[str, Any] = {
        "date": datetime.date.today().isoformat(),
        "target": options.target,
        "missing": missing,
        "lines": [{**asdict(line), "differs": line.differs} for line in lines],
    }
    if options.json:
        print(json.dumps(facts, indent=1))
    if options.save:
        place = HERE / "results" / f"ncu-{facts['date']}.json"
        place.parent.mkdir(exist_ok=True)
        place.write_text(json.dumps(facts, indent=1) + "\n", encoding="utf-8")
    unmeasured = not options.predict and any(name not in rows for name in names)
    return 1 if unmeasured or any(line.differs for line in lines) else 0


if __name__ == "__main__":
    sys.exit(main())
