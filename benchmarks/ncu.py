"""What the counter says a kernel does, beside what Nsight Compute measures of it on a GPU.

    python benchmarks/ncu.py                         # every kernel; needs a GPU and the program ncu
    python benchmarks/ncu.py --only convert --json
    python benchmarks/ncu.py --predict               # the predictions alone; needs neither

Each kernel is launched once, a dozen of them in each child process under ncu, for `--seconds` at most. Predicted are
the counts of `weft.sim.count` for the same lane program, or of the simulator where the counter says that data decide.
They have to be equal; the exit status is 1 where one is not, and 2 where nothing could be measured. Where ncu does not
know a metric on this GPU, or gives no opcodes, the counts that need it are left out and named. With `--save` the file
is written after each dozen.

Instructions are compared twice: those of warps, of kernels whose accesses have no masks, and those of threads whose
predicate holds, of all. Whether a warp whose threads are all masked off has executed a store is up to ptxas: with a
predicate it has, behind a conditional exit it has not. In front of asynchronous copies and of fences ptxas writes loads
of shared memory that no thread executes (`@!PT LDS RZ, [RZ]`): kernels that have them are compared by threads. What
wgmma reads of shared memory does not go through the pipe whose wavefronts ncu counts.
"""

from __future__ import annotations

import argparse
import csv
import io
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, field
from glob import glob
from pathlib import Path
from typing import Any

import numpy as np

import weft
from gpu_facts import machine
from ncu_kernels import WORKS, Work
from weft import compiler
from weft.runtime.specialize import signature_of, specialize_param
from weft.sim import Report, Uncountable, count, run

HERE = Path(__file__).resolve().parent
OPCODES = "sass__inst_executed_per_opcode"
"""Instructions that warps executed, by opcode: its instances are those."""
THREAD_OPCODES = "sass__thread_inst_executed_true_per_opcode"
"""The same of threads whose predicate held: it does not depend on whether a predicate or a branch keeps them out."""
NEWER = ("smsp__sass_", "memory_", THREAD_OPCODES)
"""How metrics begin that an older ncu may not know; they are left out where it measures nothing and says not why."""
AT_ONCE = 12
"""Kernels in one process under ncu: what a run that is cut off has measured stays."""


@dataclass(frozen=True)
class Quantity:
    """What is compared: counters of the report, or kinds of instructions; metrics, or opcodes."""

    name: str
    counters: tuple[str, ...] = ()
    kinds: str = ""
    """A regular expression."""
    metrics: tuple[tuple[str, ...], ...] = ()
    """Sums of metrics: the first that is no more than the last, which is that of the whole pipe; the last where the
    first is not there. The others are written down beside it."""
    beside: tuple[tuple[str, ...], ...] = ()
    """Sums of metrics that are written down only."""
    opcodes: tuple[str, ...] = ()
    threads: bool = False
    """Whether threads whose predicate held are counted, and not warps."""
    unless: str = ""
    """Kinds of instructions that these metrics count elsewhere: kernels that have them are left out."""

    def predicted(self, report: Report) -> int | None:
        """The count in a report of the counter or the simulator; None where the hardware's means something else.

        An access that is masked off for a whole warp is an instruction of the warp or not, as ptxas has it; kernels
        that have masks are compared by threads alone.
        """
        if self.unless and any(re.fullmatch(self.unless, kind) for kind in report.kinds):
            return None
        if self.counters:
            return sum(int(report[name]) for name in self.counters)
        warps = {kind: n for kind, n in report.kinds.items() if re.fullmatch(self.kinds, kind)}
        if self.threads:
            return sum(report.threads.get(kind, 32 * n) for kind, n in warps.items())
        if any(report.threads.get(kind, 32 * n) != 32 * n for kind, n in warps.items()):
            return None
        return sum(warps.values())

    def measured(self, found: Row) -> int | None:
        """The count of a launch under ncu; None where it says nothing of it."""
        if self.opcodes:
            opcodes = found.threads if self.threads else found.opcodes
            return None if opcodes is None else sum(opcodes.get(name, 0) for name in self.opcodes)
        known = _sums(self.metrics, found)
        first, *_, last = (known.get(" + ".join(names)) for names in (*self.metrics, self.metrics[-1]))
        if first is None or last is None:
            return last if first is None else first
        return next(n for n in known.values() if n <= last)

    def sums(self, found: Row) -> dict[str, int]:
        """All that ncu says of it, by the metrics that were added."""
        return _sums((*self.metrics, *self.beside), found)


def _sums(metrics: Iterable[tuple[str, ...]], found: Row) -> dict[str, int]:
    sums = {}
    for names in metrics:
        values = [found.metrics.get(name) for name in names]
        if all(v is not None for v in values):
            sums[" + ".join(names)] = sum(v for v in values if v is not None)
    return sums


def _sectors(*kinds: str) -> tuple[str, ...]:
    return tuple(f"l1tex__t_sectors_pipe_lsu_mem_global_op_{kind}.sum" for kind in kinds)


def _wavefronts(*kinds: str) -> tuple[str, ...]:
    return tuple(f"smsp__sass_l1tex_data_pipe_lsu_wavefronts_mem_shared_op_{kind}.sum" for kind in kinds)


def _pipe(kind: str) -> tuple[str, ...]:
    """Wavefronts in the pipe that all kinds of memory share: more, where accesses get into each other's way."""
    return (f"l1tex__data_pipe_lsu_wavefronts_mem_shared_op_{kind}.sum",)


ASYNCHRONOUS = r"copy_async\..*|bulk.*|.*tensor.*"
QUANTITIES = (
    Quantity(
        "shared load wavefronts", ("shared_load_wavefronts",),
        metrics=(_wavefronts("ld", "ldsm"), _wavefronts("ld"), _pipe("ld")), unless="atomic.shared|wgmma.*",
    ),
    Quantity(
        "shared store wavefronts", ("shared_store_wavefronts",), metrics=(_pipe("st"),), beside=(_wavefronts("st"),),
        unless=f"atomic.shared|{ASYNCHRONOUS}",
    ),
    Quantity(
        "shared wavefronts", ("shared_load_wavefronts", "shared_store_wavefronts"),
        metrics=(("memory_l1_wavefronts_shared",),), unless=f"atomic.shared|wgmma.*|{ASYNCHRONOUS}",
    ),
    Quantity("global load sectors", ("global_load_sectors",), metrics=(_sectors("ld"),), unless=ASYNCHRONOUS),
    Quantity(
        "global store sectors", ("global_store_sectors",), metrics=(_sectors("st", "red", "atom"),),
        unless=ASYNCHRONOUS,
    ),
    Quantity("shared loads", kinds=r"load\.shared\.\d+", opcodes=("LDS",), unless=r"copy_async\..*|wgmma.*"),
    Quantity("shared stores", kinds=r"store\.shared\.\d+", opcodes=("STS",)),
    Quantity("ldmatrix", kinds=r"ldmatrix\..*", opcodes=("LDSM",)),
    Quantity("stmatrix", kinds=r"stmatrix\..*", opcodes=("STSM",)),
    Quantity("global loads", kinds=r"load\.global\.\d+", opcodes=("LDG",)),
    Quantity("global stores", kinds=r"store\.global\.\d+", opcodes=("STG",)),
    Quantity("global atomics", kinds=r"atomic\.global", opcodes=("ATOMG", "ATOM", "RED", "REDG")),
    Quantity("asynchronous copies", kinds=r"copy_async\.\d+", opcodes=("LDGSTS",)),
    Quantity("shared loads of threads", kinds=r"load\.shared\.\d+", opcodes=("LDS",), threads=True),
    Quantity("shared stores of threads", kinds=r"store\.shared\.\d+", opcodes=("STS",), threads=True),
    Quantity("global loads of threads", kinds=r"load\.global\.\d+", opcodes=("LDG",), threads=True),
    Quantity("global stores of threads", kinds=r"store\.global\.\d+", opcodes=("STG",), threads=True),
    Quantity(
        "global atomics of threads", kinds=r"atomic\.global", opcodes=("ATOMG", "ATOM", "RED", "REDG"), threads=True
    ),
    Quantity("shuffles", kinds="shuffle", opcodes=("SHFL",)),
    Quantity("barriers", kinds=r"barrier\.block", opcodes=("BAR",)),
    Quantity("matrix products", kinds=r"mma\.sync\..*", opcodes=("HMMA", "IMMA", "DMMA", "QMMA")),
    Quantity("products of warp groups", kinds=r"wgmma\.m64.*", opcodes=("HGMMA", "IGMMA", "QGMMA", "BGMMA")),
)  # fmt: skip
METRICS = [
    *sorted({m for q in QUANTITIES for names in (*q.metrics, *q.beside) for m in names}),
    OPCODES,
    THREAD_OPCODES,
]


@dataclass
class Row:
    """A launch in ncu's table: the kernel's name, its metrics, and instructions by opcode where they are there."""

    kernel: str
    metrics: dict[str, int | None]
    opcodes: dict[str, int] | None
    threads: dict[str, int] | None


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
        found.append(Row(name, metrics, *(instances_of(cells.get(m) or "") for m in (OPCODES, THREAD_OPCODES))))
    return found


# --------------------------------------------------------------------------------------------------------------------
# Prediction


def predicted(work: Work, target: str) -> tuple[Report, str]:
    """What a launch does, and who says so: the counter or the simulator."""
    kernel, launch = work.kernel, work.make()
    bound, options = kernel._bind(*launch.arguments, **work.constants)
    facts = [specialize_param(p, a, fine=True) for p, a in zip(kernel.params, bound, strict=True)]
    signature, constants, attrs = signature_of(kernel.arg_names, facts, list(bound))
    source = compiler.ASTSource(kernel, signature, constants, attrs)
    options = {"default_dot_input_precision": "tf32", **options}  # as on a GPU
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
        try:
            work.kernel[launch.grid](*arguments, **work.constants)
        except weft.base.CompilationError as e:  # the others can be measured all the same
            print(f"==ERROR== {name}: {e}", file=sys.stderr)
        weft.cuda.synchronize()


def find_ncu() -> str | None:
    """The path of Nsight Compute's command line, the newest where there are several."""
    homes = [os.environ[name] for name in ("CUDA_HOME", "CUDA_PATH") if os.environ.get(name)]
    places = [*(f"{home}/bin/ncu" for home in homes), *sorted(glob("/usr/local/cuda*/bin/ncu"), reverse=True)]
    places += sorted(glob("/opt/nvidia/nsight-compute/*/ncu"), reverse=True)
    return shutil.which("ncu") or next((place for place in places if os.access(place, os.X_OK)), None)


def unknown_metrics(output: str, asked: Iterable[str]) -> list[str]:
    """The metrics that ncu says it does not know."""
    wanted = r"(?i)(failed to (find|access|collect)|unknown|not find|invalid) .*metric"
    said = [line for line in output.splitlines() if re.search(wanted, line)]
    return [name for name in asked if any(name in line for line in said)]


def _under(command: Sequence[str], seconds: float) -> tuple[str, str]:
    """(output, what went wrong) of a program, which is ended with its children when its time is over."""
    running = subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=os.name == "posix"
    )
    try:
        return running.communicate(timeout=max(1.0, seconds))
    except subprocess.TimeoutExpired:
        if os.name == "posix":
            os.killpg(running.pid, signal.SIGKILL)
        else:
            running.kill()
        output, errors = running.communicate()
        return output, f"{errors}\nended after {seconds:.0f} s"


@dataclass
class Tool:
    """Nsight Compute: its path, the metrics that it knows, those that it does not, and when its time is over."""

    path: str
    until: float
    asked: list[str] = field(default_factory=lambda: list(METRICS))
    missing: list[str] = field(default_factory=list)

    @property
    def left(self) -> float:
        """Seconds that are left."""
        return self.until - time.monotonic()

    def measure(self, names: Sequence[str]) -> tuple[list[Row], str]:
        """The rows of these kernels, and ncu's output."""
        while True:
            command = [
                *(self.path, "--clock-control", "none", "--csv", "--page", "raw", "--print-units", "base"),
                *("--print-metric-instances", "details", "--metrics", ",".join(self.asked)),
                *(sys.executable, str(Path(__file__).resolve()), "--child", *names),
            ]
            found, errors = _under(command, self.left)
            output = found + "\n" + errors
            rows = rows_of(found)
            unknown = unknown_metrics(output, self.asked) or [name for name in self.asked if name.startswith(NEWER)]
            if rows or self.left < 1 or not unknown or len(unknown) == len(self.asked):
                return rows, output
            self.missing += unknown
            self.asked = [name for name in self.asked if name not in unknown]


@dataclass
class Line:
    """A count of a kernel: what was predicted, by whom, and what was measured."""

    kernel: str
    quantity: str
    predicted: int
    by: str
    measured: int | None
    metrics: dict[str, int] = field(default_factory=dict)
    """What each of the metrics says."""

    @property
    def differs(self) -> bool:
        """Whether it was measured and is another."""
        return self.measured is not None and self.measured != self.predicted

    def text(self) -> str:
        """A line of the table."""
        if self.measured is None:
            return f"{self.kernel:36} {self.quantity:26} {self.predicted:10,} {'-':>10} {'':>7}  {self.by}"
        ratio = f"{self.measured / self.predicted:.3f}" if self.predicted else "inf" if self.measured else "1.000"
        mark = "   DIFFERS" if self.differs else ""
        return (
            f"{self.kernel:36} {self.quantity:26} {self.predicted:10,} {self.measured:10,} {ratio:>7}  {self.by}{mark}"
        )


def compared(name: str, report: Report, by: str, row: Row | None) -> list[Line]:
    """The counts of a kernel that are not zero on both sides."""
    lines = []
    for quantity in QUANTITIES:
        expected = quantity.predicted(report)
        found = quantity.measured(row) if row is not None else None
        if expected is not None and (expected or found):
            lines.append(Line(name, quantity.name, expected, by, found, quantity.sums(row) if row is not None else {}))
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
    parser.add_argument("--seconds", type=float, default=60, help="how long ncu may run in all")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--save", action="store_true", help="write the table to benchmarks/results/")
    parser.add_argument("--child", nargs="+", help=argparse.SUPPRESS)
    return parser.parse_args()


def _tool(options: argparse.Namespace) -> Tool:
    path = options.ncu or find_ncu()
    if path is None:
        print("ncu was not found: install Nsight Compute, or say --ncu PATH; --predict needs none", file=sys.stderr)
        raise SystemExit(2)
    return Tool(path, time.monotonic() + options.seconds)


@dataclass
class Table:
    """What has been compared so far."""

    target: str
    lines: list[Line] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)
    unmeasured: list[str] = field(default_factory=list)
    machine: dict[str, Any] = field(default_factory=dict)

    def facts(self) -> dict[str, Any]:
        """As plain data."""
        return {
            **self.machine,
            "target": self.target,
            "missing": [*self.missing, *(f"the kernel {name!r}" for name in self.unmeasured)],
            "lines": [{**asdict(line), "differs": line.differs} for line in self.lines],
        }

    def save(self) -> None:
        """To benchmarks/results/."""
        facts = self.facts()
        place = HERE / "results" / f"ncu-{facts['date']}.json"
        place.parent.mkdir(exist_ok=True)
        place.write_text(json.dumps(facts, indent=1) + "\n", encoding="utf-8")


def _fill(table: Table, names: Sequence[str], tool: Tool | None, save: bool) -> None:
    """Measure, predict and print a dozen at a time."""
    for start in range(0, len(names), AT_ONCE):
        some = names[start : start + AT_ONCE]
        rows: dict[str, Row] = {}
        if tool is not None and tool.left > 1:
            measured, output = tool.measure(some)
            rows = paired(some, measured)
            if not rows:
                print("ncu measured nothing:", *output.strip().splitlines()[-15:], sep="\n    ", file=sys.stderr)
            if measured and all(row.opcodes is None for row in measured) and OPCODES not in tool.missing:
                tool.missing.append(f"{OPCODES} (no instances)")
                tool.asked.remove(OPCODES)
        for name in some:
            report, by = predicted(WORKS[name], table.target)
            for line in compared(name, report, by, rows.get(name)):
                table.lines.append(line)
                print(line.text(), flush=True)
        table.unmeasured += [name for name in some if tool is not None and name not in rows]
        if tool is not None:
            table.missing = tool.missing
        if save:
            table.save()


def main() -> int:
    """Print the table; the exit status."""
    options = _arguments()
    if options.child:
        launch_here(options.child)
        return 0
    arch = int(options.target.rpartition(":")[2])
    names = [name for name, work in WORKS.items() if options.only in name and work.least <= arch]
    tool = None if options.predict else _tool(options)
    table = Table(options.target, machine=machine())
    print(f"{'kernel':36} {'count':26} {'predicted':>10} {'measured':>10} {'ratio':>7}  by")
    _fill(table, names, tool, options.save)
    facts = table.facts()
    print(last_line(table.lines, facts["missing"]))
    if options.json:
        print(json.dumps(facts, indent=1))
    if tool is not None and len(table.unmeasured) == len(names):
        return 2
    return 1 if table.unmeasured or any(line.differs for line in table.lines) else 0


if __name__ == "__main__":
    sys.exit(main())
