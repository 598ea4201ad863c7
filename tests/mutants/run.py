"""Put each fault alone into a copy of the tree, and see which tests notice.

    cd tests && python -m mutants.run --out mutants                  # all that are written, and 60 made by rules
    cd tests && python -m mutants.run --out mutants --only rule:17   # one of them
    cd tests && python -m mutants.run --list                         # which they are

First the suite must pass in a copy without a fault. Then each fault meets the tests of its room, stopped at the first
failure; only those that survive meet the rest of the suite. `--jobs` says how many processes run tests, `--rooms` how
many faults meet the tests of their rooms at once, `--suites` how many meet the rest. What is done stands in
`OUT/results.jsonl`, a line for each fault and stage, and is not done again: the run goes on where it stopped. A test
that takes ten times as long as it should is a failure too.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import deque
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path

from .rules import Mutant, drawn
from .written import written

ROOT = Path(__file__).resolve().parents[2]
COPIED = ("src", "tests", "docs", "examples", "benchmarks", "tools", "pyproject.toml", "README.md", "CHANGELOG.md",
          "CONTRIBUTING.md", "Makefile", "LICENSE", "conftest.py")  # fmt: skip
SEED = 20_000
"""The first seed of the faults made by rules; the others follow."""
BY_RULE = 60
ROOM_SECONDS, SUITE_SECONDS = 900, 2400

NEAR: dict[str, tuple[str, ...]] = {
    "analysis": (
        "tests/analysis",
        "tests/remarks",
        "tests/digests",
        "tests/passes",
        "tests/lower",
        "tests/test_kernels.py",
    ),
    "base": ("tests/base", "tests/frontend", "tests/runtime"),
    "checking": ("tests/checking",),
    "backends/cpu": ("tests/digests", "tests/test_kernels.py", "tests/fuzz", "tests/backends", "tests/runtime"),
    "backends/llvm": ("tests/digests", "tests/language", "tests/vecmath", "tests/test_kernels.py", "tests/backends"),
    "backends": ("tests/digests", "tests/assembler", "tests/ptx", "tests/backends", "tests/gluon"),
    "compat": ("tests/compat",),
    "compiler": ("tests/runtime", "tests/backends", "tests/gluon"),
    "explain": ("tests/explain",),
    "frontend": ("tests/frontend", "tests/language", "tests/ops", "tests/test_kernels.py"),
    "gluon": ("tests/gluon", "tests/hopper"),
    "ir": ("tests/ir", "tests/malformed", "tests/digests", "tests/passes", "tests/test_ttir.py"),
    "language": ("tests/language", "tests/frontend", "tests/digests", "tests/test_kernels.py", "tests/fuzz"),
    "layouts": ("tests/layouts", "src/weft/layouts", "tests/digests", "tests/lower", "tests/gluon"),
    "lower": (
        "tests/digests",
        "tests/remarks",
        "tests/language",
        "tests/lower",
        "tests/ptx",
        "tests/hopper",
        "tests/gluon",
    ),
    "machines": ("tests/digests", "tests/machines", "tests/lower", "tests/sim"),
    "passes": ("tests/digests", "tests/remarks", "tests/passes", "tests/lower", "tests/test_kernels.py"),
    "writing": ("tests/writing",),
    "runtime": ("tests/runtime", "tests/compat"),
    "ops": ("tests/ops", "tests/analysis", "tests/language"),
    "sim": ("tests/sim", "tests/ptx", "tests/lower"),
    "targets": ("tests/targets", "tests/sim", "tests/backends"),
    "view": ("tests/view",),
}
"""The tests of each room, those that are likeliest to notice first."""


def room_of(path: str) -> tuple[str, ...]:
    """The tests that are likeliest to notice a fault in a file.

    >>> room_of("src/weft/view/page.py")
    ('tests/view',)
    """
    return next(tests for name, tests in NEAR.items() if path.startswith(f"src/weft/{name}"))


@dataclass(frozen=True)
class Result:
    """What became of a fault."""

    name: str
    path: str
    line: int
    rule: str
    killed_by: str
    """The first test that failed; empty where none did."""
    stage: str
    """Of what tests: `room` or `suite`."""
    seconds: float


class Tree:
    """A copy of the project, with one fault at a time."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        for name in COPIED:
            source = ROOT / name
            if source.is_dir():
                shutil.copytree(source, folder / name, ignore=shutil.ignore_patterns("__pycache__", ".*_cache"))
            elif source.exists():
                shutil.copy(source, folder / name)

    def in_room(self, mutant: Mutant, processes: int) -> Result:
        """Run the tests of the room with the fault in place."""
        return self._judged(mutant, "room", (*room_of(mutant.path), *_by(processes)), ROOM_SECONDS)

    def in_suite(self, mutant: Mutant, processes: int) -> Result:
        """Run all other tests with the fault in place."""
        others = [f"--ignore={name}" for name in room_of(mutant.path)]
        return self._judged(mutant, "suite", (*others, *_by(processes)), SUITE_SECONDS)

    def _judged(self, mutant: Mutant, stage: str, tests: Sequence[str], seconds: float) -> Result:
        path = self.folder / mutant.path
        source = path.read_text(encoding="utf-8")
        path.write_text(mutant.applied(source), encoding="utf-8")
        start = time.monotonic()
        try:
            killed_by = self.failure(tests, seconds)
        finally:
            path.write_text(source, encoding="utf-8")
        taken = round(time.monotonic() - start, 1)
        return Result(mutant.name, mutant.path, mutant.line, mutant.rule, killed_by, stage, taken)

    def failure(self, tests: Sequence[str], seconds: float) -> str:
        """The first test that fails, "" if none does. The faulty tree is the one that is imported."""
        own = [str(self.folder / name) for name in ("src", "tests")]
        paths = os.pathsep.join([*own, *filter(None, [os.environ.get("PYTHONPATH")])])
        with tempfile.TemporaryDirectory(prefix="weft-cache-") as cache:
            environment = {**os.environ, "PYTHONPATH": paths, "WEFT_CACHE_DIR": cache, "PYTHONDONTWRITEBYTECODE": "1"}
            command = [sys.executable, "-m", "pytest", "-x", "-q", "--tb=no", "-p", "no:cacheprovider", *tests]
            process = subprocess.Popen(
                command, cwd=self.folder, env=environment, text=True, start_new_session=True,
                stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
            )  # fmt: skip
            try:
                lines = process.communicate(timeout=seconds)[0].splitlines()
            except subprocess.TimeoutExpired:
                return f"no end within {seconds} s"
            finally:  # workers of the tests, too
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
                process.wait()
        if process.returncode == 0:
            return ""
        failed = [line.split(" - ")[0] for line in lines if line.startswith(("FAILED ", "ERROR "))]
        return failed[0] if failed else f"status {process.returncode}: {lines[-1] if lines else ''}"


def _by(processes: int) -> tuple[str, ...]:
    return ("-n", str(processes)) if processes > 1 else ()


class Record:
    """What is known of each fault of this tree, in a file that a later run goes on with."""

    def __init__(self, path: Path, mutants: Sequence[Mutant]) -> None:
        self.path = path
        self.mutants = mutants
        lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
        known = {(r.name, r.path, r.line, r.rule): r for r in (Result(**json.loads(line)) for line in lines)}
        keys = {m.name: (m.name, m.path, m.line, m.rule) for m in mutants}
        self.results = {name: known[key] for name, key in keys.items() if key in known}

    def add(self, mutant: Mutant, result: Result) -> None:
        """Keep a result, and print it."""
        self.results[mutant.name] = result
        with self.path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(asdict(result)) + "\n")
        end = result.killed_by or "not noticed"
        print(f"{result.stage:<6}{result.seconds:>7.1f} s  {mutant.told()}  {end}", flush=True)

    def left(self, stage: str) -> list[Mutant]:
        """Which faults have still to meet the tests of a stage."""
        if stage == "room":
            return [m for m in self.mutants if m.name not in self.results]
        return [m for m in self.mutants if (r := self.results.get(m.name)) and r.stage == "room" and not r.killed_by]

    def told(self) -> str:
        """The score, and what survived."""
        results = [self.results[m.name] for m in self.mutants if m.name in self.results]
        killed = [r for r in results if r.killed_by]
        survived = [r for r in results if r.stage == "suite" and not r.killed_by]
        near = sum(r.stage == "room" for r in killed)
        done = len(killed) + len(survived)
        score = f"{len(killed)} of {done} faults are noticed ({100 * len(killed) / max(1, done):.1f} %)"
        lines = [f"{score}, {near} of them by the tests of their room; {len(self.mutants) - done} are still to be run"]
        return "\n".join(lines + [f"survived: {r.name}: {r.path}:{r.line}: {r.rule}" for r in survived])


def failure_without_fault(out: Path, processes: int) -> str:
    """The first test that fails in a copy without a fault; what passed once is not run again."""
    passed = out / "passes-without-a-fault"
    if passed.exists():
        return ""
    with tempfile.TemporaryDirectory(prefix="weft-mutant-") as folder:
        failure = Tree(Path(folder)).failure(_by(processes), SUITE_SECONDS)
    if not failure:
        passed.touch()
    return failure


def chosen(only: str) -> list[Mutant]:
    """All faults, or the one of a name."""
    every = [*written(ROOT), *(drawn(seed, ROOT) for seed in range(SEED, SEED + BY_RULE))]
    if only.startswith("rule:"):
        return [drawn(int(only.removeprefix("rule:")), ROOT)]
    return [m for m in every if not only or m.name == only]


def main() -> int:
    """Run what is left to run, and print the score."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("mutants"), help="a folder for the results")
    parser.add_argument("--only", default="", help="the name of one fault")
    parser.add_argument("--seconds", type=float, default=10_800, help="begin no fault after so long")
    parser.add_argument("--jobs", type=int, default=2, help="processes that run tests")
    parser.add_argument(
        "--rooms", type=int, default=0, help="faults at once in their rooms; as many as jobs, if not said"
    )
    parser.add_argument("--suites", type=int, default=1, help="faults at once in the whole suite")
    parser.add_argument("--near", action="store_true", help="only the tests of each room")
    parser.add_argument("--list", action="store_true", help="print the faults and end")
    options = parser.parse_args()
    mutants = chosen(options.only)
    if options.list:
        print("\n".join(m.told() for m in mutants))
        return 0
    options.out.mkdir(parents=True, exist_ok=True)
    begun = time.monotonic()
    record = Record(options.out / "results.jsonl", mutants)
    if not options.near and (failure := failure_without_fault(options.out, options.jobs)):
        print(f"without any fault the suite fails, so that nothing can be said of faults: {failure}")
        return 1
    begin_none_after = begun + options.seconds

    def judge(stage: str, at_once: int) -> None:
        """Have all faults that are left for a stage meet its tests."""
        waiting, processes = deque(record.left(stage)), max(1, options.jobs // at_once)

        def some() -> None:
            with tempfile.TemporaryDirectory(prefix="weft-mutant-") as folder:
                tree = Tree(Path(folder))
                while waiting and time.monotonic() < begin_none_after:
                    mutant = waiting.popleft()
                    record.add(mutant, (tree.in_room if stage == "room" else tree.in_suite)(mutant, processes))

        with ThreadPoolExecutor(at_once) as pool:
            for running in [pool.submit(some) for _ in range(at_once)]:
                running.result()

    judge("room", options.rooms or options.jobs)
    if not options.near:
        judge("suite", options.suites)
    print(record.told())
    print(f"this run took {(time.monotonic() - begun) / 60:.0f} minutes with {options.jobs} processes", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
