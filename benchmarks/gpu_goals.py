"""The table of goals for NVIDIA GPUs (goals.py): measures every row, and says which hold.

    python benchmarks/gpu_goals.py                        # everything; or: make gpu-bench
    python benchmarks/gpu_goals.py --rows attention,products --seconds 120
    python benchmarks/gpu_goals.py --rows attention --only d64
    python benchmarks/gpu_goals.py --report h100          # the saved results of a card; needs no GPU
    python benchmarks/gpu_goals.py --report h100,h200 --markdown    # the table of docs/explanation/performance.md

Prints each line with the configuration that won, and at the end the table: row, what is wanted, the aim, the least that
was reached and where, and whether the goal holds. The exit status is 1 if one does not (or was not measured), and 2
without a GPU. Ratios are wanted on every card; TFLOP/s without another side beside them only on an H100.

Rows are measured by the scripts that goals.py names, each in a process of its own. While one is measured, as many
processes as there are processors compile the kernels of those that follow, without launching them; but what measures
the processors, such as compiling, waits until they are done. Results are kept in
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
import os
import re
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from goals import NOT_MEASURED, ROWS, Line, Verdict, markdown, short_of, table
from gpu_facts import card_of, machine

HERE = Path(__file__).resolve().parent
NEEDED = ("torch", "triton")
COMPILE_MOST_S = 150.0
"""A row waits so long for its kernels; what is not compiled then, its own process compiles."""
STUCK_S = 90.0
"""A process that measures is ended if it says nothing for so long after the time is over."""
Answer = Callable[[Any], None]
Told = Callable[[Line], None]


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


# -- processes --------------------------------------------------------------------------------------------------------
# They are told what to do by lines of JSON on stdin, and answer by lines of JSON on what was their stdout; what
# libraries print goes to stderr.


class Child:
    """A process of this file: `measure` or `compile`."""

    def __init__(self, what: str, row: str = "", quiet: bool = False) -> None:
        command = [sys.executable, __file__, "--child", what, "--rows", row]
        error = subprocess.DEVNULL if quiet else None
        pipe = subprocess.PIPE
        self.process = subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=error, text=True)

    def tell(self, value: Any) -> None:
        """Tell it something; whether it has ended is seen when it does not answer."""
        assert self.process.stdin is not None
        with contextlib.suppress(BrokenPipeError):
            self.process.stdin.write(json.dumps(value) + "\n")
            self.process.stdin.flush()

    def answer(self) -> Any:
        """Its next answer; None if it has ended."""
        assert self.process.stdout is not None
        text = self.process.stdout.readline()
        return json.loads(text) if text else None

    def end(self) -> int:
        """End the process; its status."""
        self.process.kill()
        return self.process.wait()


def answering() -> Answer:
    """What answers, in a child."""
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)
    return lambda value: print(json.dumps(value), file=answers)


def told(error: BaseException) -> str:
    """An error in a line."""
    return f"{type(error).__name__}: {' '.join(str(error).split())[:300]}"


# -- that measure


def measure(row: str) -> int:
    """In a child: import what measures a row, and measure the parts that are asked for, when they are."""
    answer = answering()
    script = importlib.import_module(ROWS[row].script)
    import torch

    asked = sys.stdin.readline()
    if not asked:
        return 0
    parts, until = json.loads(asked)
    for part in parts:
        if time.time() > until:
            break
        answer(["begin", part])
        try:
            for line in script.measure(part):
                answer(["line", line.as_json()])
            torch.cuda.empty_cache()
        except (Exception, SystemExit) as error:  # what is wrong falls short; the next part is another matter
            answer(["line", Line(part, error=told(error)).as_json()])
            torch.cuda.synchronize()  # raises where the GPU's context is lost: the parent begins another process
        answer(["end", part])
    return 0


def answers_of(child: Child, parts: Sequence[str], until: float) -> Iterator[tuple[str, Any]]:
    """(what, value) of the answers of a child that measures; it is ended if it is stuck."""
    child.tell([list(parts), until])
    reader = concurrent.futures.ThreadPoolExecutor(1)
    try:
        while (one := reader.submit(child.answer).result(max(0.0, until - time.time()) + STUCK_S)) is not None:
            yield one
    except TimeoutError:
        pass
    finally:
        child.end()
        reader.shutdown()


def lines_of(row: str, parts: Sequence[str], until: float, child: Child, show: Told) -> dict[str, list[Line]]:
    """What was measured, by part, of those that there was time for; what ends its process has a line that says so."""
    lines: dict[str, list[Line]] = {}
    left = list(parts)

    def take(part: str, line: Line) -> None:
        lines.setdefault(part, []).append(line)
        show(line)

    while left:
        current = ""
        for what, value in answers_of(child, left, until):
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
                take(part, Line(part, error=f"its process ended by {child.end()}"))
            left.remove(part)
        if left:
            if time.time() > until:
                break
            child = Child("measure", row)
    return lines


# -- that compile


def parts_of(row: str) -> list[str]:
    """The parts of a row."""
    named = importlib.import_module(ROWS[row].script).parts()
    return [part for part in named if re.search(ROWS[row].parts, part)]


def prepare(row: str, part: str, share: int, shares: int) -> None:
    """Compile a share of the kernels of a part."""
    script = importlib.import_module(ROWS[row].script)
    import torch

    from gpu_sides import compile_only

    compile_only(share, shares)
    script.prepare(part)
    torch.cuda.empty_cache()


def compile_what_is_told() -> int:
    """In a child: do what is asked, and answer what it gives. (What fails here fails again when it is measured.)"""
    answer = answering()
    for line in sys.stdin:
        what, *arguments = json.loads(line)
        try:
            answer([True, {"parts": parts_of, "prepare": prepare}[what](*arguments)])
        except (Exception, SystemExit) as error:
            answer([False, told(error)])
    return 0


class Compilers:
    """The processes that compile ahead, each behind a thread that gives it one part after the other."""

    def __init__(self) -> None:
        self.workers = max(1, (os.cpu_count() or 1) - 2)
        self.threads = concurrent.futures.ThreadPoolExecutor(self.workers)
        self.mine = threading.local()
        self.children: list[Child] = []

    def ask(self, *task: Any) -> Any:
        """In a thread: have its process do something."""
        child: Child | None = getattr(self.mine, "child", None)
        if child is None:
            child = self.mine.child = Child("compile", quiet=True)
            self.children.append(child)
        child.tell(task)
        answer = child.answer()
        if answer is None:  # the next part gets another process
            self.mine.child = None
            raise RuntimeError(f"its process ended by {child.end()}")
        fine, value = answer
        if not fine:
            raise RuntimeError(value)
        return value

    def parts(self, rows: Sequence[str]) -> dict[str, list[str]]:
        """The parts of each row."""
        asked = [self.threads.submit(self.ask, "parts", row) for row in rows]
        return {row: one.result() for row, one in zip(rows, asked, strict=True)}

    def begin(self, row: str, parts: Sequence[str]) -> list[concurrent.futures.Future[None]]:
        """Have the kernels of a row compiled, each part by several processes if there are few."""
        shares = max(1, -(-2 * self.workers // max(1, len(parts))))
        return [self.threads.submit(self.ask, "prepare", row, p, i, shares) for p in parts for i in range(shares)]

    def end(self) -> None:
        """End all processes."""
        self.threads.shutdown(wait=False, cancel_futures=True)
        for child in self.children:
            child.end()


# -- a run ------------------------------------------------------------------------------------------------------------


def run(results: Results, rows: Sequence[str], only: str, seconds: float, out: Any) -> None:
    """Measure rows one after the other, each when its kernels are compiled."""
    begin, until = time.monotonic(), time.time() + seconds
    compilers = Compilers()
    try:
        every = compilers.parts(rows)
        words = only.split(",")
        parts = {row: [part for part in every[row] if any(word in part for word in words)] for row in rows}
        compiling = {row: compilers.begin(row, parts[row]) for row in rows}
        child: Child | None = Child("measure", rows[0])
        for at, row in enumerate(rows):
            wait = max(0.0, min(COMPILE_MOST_S, until - time.time()))
            ahead = compiling.values() if ROWS[row].times_host else [compiling[row]]
            done, late = concurrent.futures.wait([future for futures in ahead for future in futures], wait)
            failed = [str(error) for future in done if (error := future.exception())]
            print(
                f"\n{row}: {len(parts[row])} parts, after {time.monotonic() - begin:.0f} s"
                + (f", {len(late)} compilations late" if late else "")
                + (f", {len(failed)} failed, such as by {failed[0]}" if failed else ""),
                file=out,
                flush=True,
            )
            assert child is not None
            this, child = child, Child("measure", rows[at + 1]) if at + 1 < len(rows) else None

            def show(line: Line, row: str = row) -> None:
                print(line.shown() + short_of(row, line, results.machine["gpu"]), file=out, flush=True)

            measured = lines_of(row, parts[row], until, this, show)
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


def report_kept(cards: Sequence[str], rows: Sequence[str], options: Any, parser: argparse.ArgumentParser) -> int:
    """Print what is kept of some cards; 1 if a goal is not met on one of them."""
    if unknown := [card for card in cards if not Results.place(card).exists()]:
        kept = sorted(place.stem.removeprefix("goals-") for place in (HERE / "results").glob("goals-*.json"))
        parser.error(f"nothing is kept of the card {unknown[0]}; there are results of {', '.join(kept) or 'none'}")
    results = [Results.load(card) for card in cards]
    if options.markdown:
        print(markdown({one.card.upper(): one.verdicts(rows) for one in results}))
        return int(not all(verdict.is_met for one in results for _, verdict in one.verdicts(rows)))
    return max([one.report(rows, options.json) for one in results])


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, and print the table; 1 if a goal does not hold, 2 without a GPU."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    usual = ",".join(name for name, row in ROWS.items() if not row.is_asked)
    others = ", ".join(name for name, row in ROWS.items() if row.is_asked)
    parser.add_argument("--rows", default=usual, help=f"some of {usual}, or: {others}")
    parser.add_argument("--only", default="", help="parts of rows whose names contain one of these words")
    parser.add_argument("--seconds", type=float, default=900, help="begin no part after so many seconds")
    parser.add_argument("--json", action="store_true", help="print the table and all lines as JSON")
    parser.add_argument("--report", metavar="CARD", help="print what is kept of cards (h100), and measure nothing")
    parser.add_argument("--markdown", action="store_true", help="with --report: one table in Markdown for all cards")
    parser.add_argument("--child", choices=("measure", "compile"), help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if options.child:
        return measure(options.rows) if options.child == "measure" else compile_what_is_told()
    rows = options.rows.split(",")
    if unknown := [row for row in rows if row not in ROWS]:
        parser.error(f"no row is named {', '.join(unknown)}; there are {', '.join(ROWS)}")
    if options.report:
        return report_kept(options.report.split(","), rows, options, parser)
    if not need_gpu():
        return 2
    facts = machine(*NEEDED) | {"commit": commit(), "date": datetime.datetime.now(datetime.UTC).date().isoformat()}
    results = Results.load(card_of(str(facts["gpu"])))
    results.machine = facts
    run(results, rows, options.only, options.seconds, sys.stderr if options.json else sys.stdout)
    return results.report(rows, options.json)


if __name__ == "__main__":
    sys.exit(main())
