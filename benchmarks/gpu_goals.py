"""The table of goals for NVIDIA GPUs (goals.py): measures every row, and says which hold.

    python benchmarks/gpu_goals.py                        # everything; or: make gpu-bench
    python benchmarks/gpu_goals.py --rows attention,products --seconds 120
    python benchmarks/gpu_goals.py --rows attention --only d64
    python benchmarks/gpu_goals.py --report h100          # the saved results of a card; needs no GPU

Prints each line with the configuration that won, and at the end the table: row, what is wanted, the aim, the least that
was reached and where, and whether the goal holds. The exit status is 1 if one does not (or was not measured), and 2
without a GPU. Ratios are wanted on every card; TFLOP/s without another side beside them only on an H100.

Rows are measured by the scripts that goals.py names, each in a process of its own. While one is measured, as many
processes as there are processors compile the kernels of those that follow, without launching them. Results are kept in
`benchmarks/results/goals-CARD.json` after each row, with the card, its driver and versions: what a run does not measure
(`--rows`, `--only`, or because `--seconds` were over) stays there as it was, and each line has its date.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import contextlib
import datetime
import importlib
import importlib.util
import json
import multiprocessing
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from goals import NOT_MEASURED, ROWS, Line, Verdict, short_of, table
from gpu_facts import card_of, machine

HERE = Path(__file__).resolve().parent
NEEDED = ("torch", "triton")
COMPILE_MOST_S = 150.0
"""A row waits so long for its kernels; what is not compiled then, its own process compiles."""
STUCK_S = 90.0
"""A process that says nothing for so long after the time is over, or in the middle of a line, is ended."""


# -- results ----------------------------------------------------------------------------------------------------------


@dataclass
class Results:
    """What has been measured on a card, by row: all parts of the row, and the lines of those that were measured.

    A line is kept with its part and its date. The machine is that of the last run.
    """

    card: str
    machine: dict[str, Any]
    rows: dict[str, dict[str, list[Any]]]

    @staticmethod
    def place(card: str) -> Path:
        """Where they are kept."""
        return HERE / "results" / f"goals-{card}.json"

    @classmethod
    def load(cls, card: str) -> Results:
        """Those that are kept of a card; none at first."""
        place = cls.place(card)
        kept = json.loads(place.read_text(encoding="utf-8")) if place.exists() else {"machine": {}, "rows": {}}
        return cls(card, kept["machine"], kept["rows"])

    def save(self) -> None:
        """Keep them; whoever reads the file at that time sees the old or the new one."""
        new = self.place(self.card).with_suffix(".new")
        new.parent.mkdir(exist_ok=True)
        text = json.dumps({"machine": self.machine, "rows": self.rows}, indent=1)
        new.write_text(text + "\n", encoding="utf-8")
        new.replace(self.place(self.card))

    def take(self, row: str, parts: Sequence[str], measured: Mapping[str, Sequence[Line]], date: str) -> None:
        """Take over what was measured of a row, all of whose parts are listed: the other parts stay as they are."""
        new = [{"part": p, "date": date, **line.as_json()} for p, lines in measured.items() for line in lines]
        old = [line for line in self.kept(row) if line["part"] in parts and line["part"] not in measured]
        lines = sorted(old + new, key=lambda line: parts.index(line["part"]))
        self.rows[row] = {"parts": list(parts), "lines": lines}

    def kept(self, row: str) -> list[dict[str, Any]]:
        """The lines that are kept of a row."""
        return self.rows.get(row, {}).get("lines", [])

    def lines(self, row: str) -> list[Line]:
        """The lines of a row, with one for each part that was not measured."""
        lines = [Line(**{k: v for k, v in line.items() if k not in ("part", "date")}) for line in self.kept(row)]
        measured = {line["part"] for line in self.kept(row)}
        missing = [part for part in self.rows.get(row, {}).get("parts", []) if part not in measured]
        return lines + [Line(part, error=NOT_MEASURED) for part in missing]

    def verdicts(self, rows: Iterable[str]) -> list[tuple[str, Verdict]]:
        """What came of every goal of some rows."""
        card = str(self.machine.get("gpu", self.card.upper()))
        return [(row, verdict) for row in rows for verdict in ROWS[row].verdicts(self.lines(row), card)]

    def report(self, rows: Sequence[str], as_json: bool) -> int:
        """Print the table of some rows; 1 if a goal is not met."""
        verdicts = self.verdicts(rows)
        short = sum(not verdict.is_met for _, verdict in verdicts)
        dates = sorted({line["date"] for row in rows for line in self.kept(row)})
        if as_json:
            names = ("work", "wanted", "aim", "reached", "configuration", "holds")
            goals = [
                {"row": row, **dict(zip(names, v.cells(), strict=True)), "is_met": v.is_met} for row, v in verdicts
            ]
            lines = {row: self.kept(row) for row in rows}
            print(json.dumps({"machine": self.machine, "goals": goals, "lines": lines}, indent=1))
            return int(short > 0)
        facts = ", ".join(f"{k} {v}" if k != "gpu" else str(v) for k, v in self.machine.items() if k != "date" and v)
        print(f"\n{facts}; measured {' to '.join(dict.fromkeys((dates[0], dates[-1]))) if dates else 'never'}")
        print(table(verdicts))
        print(f"{len(verdicts) - short} of {len(verdicts)} goals hold")
        return int(short > 0)


Told = Callable[[Line], None]


# -- a process that measures a row ------------------------------------------------------------------------------------


def parts_of(row: str) -> list[str]:
    """The parts of a row."""
    named = importlib.import_module(ROWS[row].script).parts()
    return [part for part in named if re.search(ROWS[row].parts, part)]


def measure(row: str) -> int:
    """Measure the parts that stdin names, when it does: each answer is a line of JSON on what was stdout."""
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    script = importlib.import_module(ROWS[row].script)
    import torch

    asked = sys.stdin.readline()
    if not asked:
        return 0
    parts, until = json.loads(asked)
    for part in parts:
        if time.time() > until:
            break
        answers.write(json.dumps({"begin": part}) + "\n")
        try:
            for line in script.measure(part):
                answers.write(json.dumps({"line": line.as_json()}) + "\n")
            torch.cuda.empty_cache()
        except (Exception, SystemExit) as error:  # what is wrong falls short; the next part is another matter
            told = f"{type(error).__name__}: {' '.join(str(error).split())[:300]}"
            answers.write(json.dumps({"line": Line(part, error=told).as_json()}) + "\n")
            torch.cuda.synchronize()  # raises where the GPU's context is lost: the parent begins another process
        answers.write(json.dumps({"end": part}) + "\n")
    return 0


class Child:
    """A process that measures a row, and has imported everything before it is asked to."""

    def __init__(self, row: str) -> None:
        self.row = row
        command = [sys.executable, __file__, "--measure", row]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def run(self, parts: Sequence[str], until: float) -> Iterator[tuple[str, Any]]:
        """(what, value) of its answers, in their order; it is ended if it is stuck."""
        assert self.process.stdin is not None and self.process.stdout is not None
        with contextlib.suppress(BrokenPipeError):
            self.process.stdin.write(json.dumps([list(parts), until]) + "\n")
            self.process.stdin.flush()
        reader = concurrent.futures.ThreadPoolExecutor(1)
        try:
            while True:
                wait = max(0.0, until - time.time()) + STUCK_S
                try:
                    answer = reader.submit(self.process.stdout.readline).result(wait)
                except TimeoutError:
                    return
                if not answer:
                    return
                yield from json.loads(answer).items()
        finally:
            self.end()
            reader.shutdown()

    def end(self) -> None:
        """End the process."""
        self.process.kill()
        self.process.wait()


def lines_of(row: str, parts: Sequence[str], until: float, child: Child, told: Told) -> dict[str, list[Line]]:
    """What was measured, by part, of those that there was time for; what ends its process has a line that says so."""
    lines: dict[str, list[Line]] = {}
    left = list(parts)

    def take(part: str, line: Line) -> None:
        lines.setdefault(part, []).append(line)
        told(line)

    while left:
        current = ""
        for what, value in child.run(left, until):
            if what == "line":
                take(current, Line(**value))
            else:
                current = value if what == "begin" else ""
                if what == "end":
                    lines.setdefault(value, [])
                    left.remove(value)
        if not current and (not left or time.time() > until):
            break
        for part in [current] if current else list(left):  # without any: it cannot even begin
            if not any(line.name == part and line.error for line in lines.get(part, ())):
                take(part, Line(part, error=f"its process ended by {child.process.returncode}"))
            left.remove(part)
        if left:
            if time.time() > until:
                break
            child = Child(row)
    return lines


# -- processes that compile -------------------------------------------------------------------------------------------


def prepare(row: str, part: str, share: int, shares: int) -> None:
    """Compile a share of the kernels of a part. (What fails here fails again, and is told, when it is measured.)"""
    script = importlib.import_module(ROWS[row].script)
    from gpu_sides import compile_only

    compile_only(share, shares)
    script.prepare(part)


class Compilers:
    """The processes that compile ahead."""

    def __init__(self) -> None:
        self.workers = max(1, (os.cpu_count() or 1) - 2)
        context = multiprocessing.get_context("spawn")
        self.pool = concurrent.futures.ProcessPoolExecutor(self.workers, context)

    def parts(self, rows: Sequence[str]) -> dict[str, list[str]]:
        """The parts of each row."""
        asked = [self.pool.submit(parts_of, row) for row in rows]
        return {row: one.result() for row, one in zip(rows, asked, strict=True)}

    def begin(self, row: str, parts: Sequence[str]) -> list[concurrent.futures.Future[None]]:
        """Have the kernels of a row compiled, each part by several processes if there are few."""
        shares = max(1, -(-2 * self.workers // max(1, len(parts))))
        return [self.pool.submit(prepare, row, part, i, shares) for part in parts for i in range(shares)]

    def end(self) -> None:
        """End all processes."""
        for process in list(self.pool._processes.values()):
            process.terminate()
        self.pool.shutdown(wait=False, cancel_futures=True)


def run(results: Results, rows: Sequence[str], only: str, seconds: float, out: Any) -> None:
    """Measure rows one after the other, each when its kernels are compiled."""
    begin, until = time.monotonic(), time.time() + seconds
    compilers = Compilers()
    try:
        every = compilers.parts(rows)
        words = only.split(",")
        parts = {row: [part for part in every[row] if any(word in part for word in words)] for row in rows}
        compiling = {row: compilers.begin(row, parts[row]) for row in rows}
        child: Child | None = Child(rows[0])
        for at, row in enumerate(rows):
            wait = max(0.0, min(COMPILE_MOST_S, until - time.time()))
            done, late = concurrent.futures.wait(compiling[row], wait)
            failed = sum(future.exception() is not None for future in done)
            print(
                f"\n{row}: {len(parts[row])} parts, after {time.monotonic() - begin:.0f} s"
                + (f", {len(late)} compilations late" if late else "")
                + (f", {failed} failed" if failed else ""),
                file=out,
                flush=True,
            )
            assert child is not None
            this, child = child, Child(rows[at + 1]) if at + 1 < len(rows) else None

            def told(line: Line, row: str = row) -> None:
                print(line.shown() + short_of(row, line, results.machine["gpu"]), file=out, flush=True)

            measured = lines_of(row, parts[row], until, this, told)
            if left := [part for part in parts[row] if part not in measured]:
                print(f"the time is over before {', '.join(left)}", file=out)
            results.take(row, every[row], measured, str(results.machine["date"]))
            results.save()
    finally:
        compilers.end()
    print(f"all after {time.monotonic() - begin:.0f} s", file=out)


def need_gpu() -> bool:
    """Whether there is a GPU, and the packages that are compared with; if not, why is printed."""
    tool = HERE.parent / "tools" / "need_gpu.py"
    if subprocess.run([sys.executable, str(tool)], stdout=subprocess.DEVNULL, check=False).returncode:
        return False
    if lacking := [name for name in NEEDED if importlib.util.find_spec(name) is None]:
        print(f"no {' and '.join(lacking)}, with which Weft is compared: pip install -e '.[bench]'", file=sys.stderr)
    return not lacking


def commit() -> str:
    """The commit that is measured, with a mark if files differ; "" outside of a repository."""
    command = ["git", "-C", str(HERE), "describe", "--always", "--dirty", "--exclude=*"]
    try:
        return subprocess.run(command, capture_output=True, text=True, check=False, timeout=10).stdout.strip()
    except OSError:
        return ""


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, and print the table; 1 if a goal does not hold, 2 without a GPU."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rows", default=",".join(ROWS), help="some of: " + ", ".join(ROWS))
    parser.add_argument("--only", default="", help="parts of rows whose names contain one of these words")
    parser.add_argument("--seconds", type=float, default=900, help="begin no part after so many seconds")
    parser.add_argument("--json", action="store_true", help="print the table and all lines as JSON")
    parser.add_argument(
        "--report", metavar="CARD", help="print what is kept of a card, such as h100, and measure nothing"
    )
    parser.add_argument("--measure", help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.measure:
        return measure(options.measure)
    rows = options.rows.split(",")
    if unknown := [row for row in rows if row not in ROWS]:
        parser.error(f"no row is named {', '.join(unknown)}; there are {', '.join(ROWS)}")
    if options.report:
        if not Results.place(options.report).exists():
            kept = sorted(p.stem.removeprefix("goals-") for p in (HERE / "results").glob("goals-*.json"))
            parser.error(
                f"nothing is kept of the card {options.report}; there are results of {', '.join(kept) or 'none'}"
            )
        return Results.load(options.report).report(rows, options.json)
    if not need_gpu():
        return 2
    facts = machine(*NEEDED) | {"commit": commit(), "date": datetime.datetime.now(datetime.UTC).date().isoformat()}
    results = Results.load(card_of(str(facts["gpu"])))
    results.machine = facts
    run(results, rows, options.only, options.seconds, sys.stderr if options.json else sys.stdout)
    return results.report(rows, options.json)


if __name__ == "__main__":
    sys.exit(main())
