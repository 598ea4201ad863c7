"""Put each fault alone into a copy of the tree, and see which tests notice.

    cd tests && python -m mutants.run --out mutants                  # all that are written, and 60 made by rules
    cd tests && python -m mutants.run --out mutants --only rule:17   # one of them
    cd tests && python -m mutants.run --list                         # which they are

First the suite must pass in a copy without a fault. Then each fault meets the tests of its room, stopped at the first
failure; only those that survive meet the whole suite. What is done stands in `OUT/results.jsonl`, a line for each
fault, and is not done again: the run goes on where it stopped. A test that takes ten times as long as it should is a
failure too.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path

from .rules import Mutant, drawn
from .written import written

ROOT = Path(__file__).resolve().parents[2]
COPIED = ("src", "tests", "docs", "examples", "benchmarks", "tools", "pyproject.toml", "README.md", "CHANGELOG.md",
          "CONTRIBUTING.md", "Makefile", "LICENSE")  # fmt: skip
SEED = 20_000
"""The first seed of the faults made by rules; the others follow."""
BY_RULE = 60
ROOM_SECONDS, SUITE_SECONDS = 900, 2400

NEAR: dict[str, tuple[str, ...]] = {
    "analysis": ("tests/analysis", "tests/passes", "tests/lower", "tests/test_kernels.py"),
    "base": ("tests/base", "tests/frontend", "tests/runtime"),
    "backends/cpu": ("tests/test_kernels.py", "tests/fuzz", "tests/backends"),
    "backends/llvm": ("tests/vecmath", "tests/test_kernels.py", "tests/backends"),
    "backends": ("tests/assembler", "tests/backends", "tests/ptx"),
    "compat": ("tests/compat",),
    "compiler": ("tests/runtime", "tests/backends"),
    "frontend": ("tests/frontend", "tests/language", "tests/test_kernels.py"),
    "gluon": ("tests/gluon", "tests/hopper"),
    "ir": ("tests/ir", "tests/passes", "tests/test_ttir.py"),
    "language": ("tests/language", "tests/frontend", "tests/test_kernels.py"),
    "layouts": ("tests/layouts", "src/weft/layouts", "tests/lower"),
    "lower": ("tests/lower", "tests/gluon", "tests/ptx"),
    "machines": ("tests/machines", "tests/lower", "tests/sim"),
    "passes": ("tests/passes", "tests/lower", "tests/test_kernels.py"),
    "runtime": ("tests/runtime", "tests/compat"),
    "ops": ("tests/ops", "tests/analysis"),
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
    """`room`, `suite`, or `survived`."""
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

    def judged(self, mutant: Mutant, near: bool) -> Result:
        """Run the tests with the fault in place; with `near`, those of its room alone."""
        path = self.folder / mutant.path
        source = path.read_text(encoding="utf-8")
        path.write_text(mutant.applied(source), encoding="utf-8")
        start = time.monotonic()
        try:
            killed_by, stage = self.failure(room_of(mutant.path), ROOM_SECONDS), "room"
            if not killed_by and not near:
                killed_by, stage = self.failure((), SUITE_SECONDS), "suite"
        finally:
            path.write_text(source, encoding="utf-8")
        taken = time.monotonic() - start
        where = (mutant.name, mutant.path, mutant.line, mutant.rule)
        return Result(*where, killed_by, stage if killed_by else "survived", round(taken, 1))

    def failure(self, tests: tuple[str, ...], seconds: float) -> str:
        """The first test that fails, "" if none does. The faulty tree is the one that is imported."""
        own = [str(self.folder / name) for name in ("src", "tests")]
        paths = os.pathsep.join([*own, *filter(None, [os.environ.get("PYTHONPATH")])])
        with tempfile.TemporaryDirectory(prefix="weft-cache-") as cache:
            environment = {**os.environ, "PYTHONPATH": paths, "WEFT_CACHE_DIR": cache, "PYTHONDONTWRITEBYTECODE": "1"}
            command = [sys.executable, "-m", "pytest", "-x", "-q", "--tb=no", "-p", "no:cacheprovider", *tests]
            try:
                done = subprocess.run(
                    command, cwd=self.folder, env=environment, capture_output=True, text=True, timeout=seconds
                )
            except subprocess.TimeoutExpired:
                return f"no end within {seconds} s"
        if done.returncode == 0:
            return ""
        lines = (done.stdout + done.stderr).splitlines()
        failed = [line.split(" - ")[0] for line in lines if line.startswith(("FAILED ", "ERROR "))]
        return failed[0] if failed else f"status {done.returncode}: {lines[-1] if lines else ''}"


def failure_without_fault(out: Path) -> str:
    """The first test that fails in a copy without a fault; what passed once is not run again."""
    passed = out / "passes-without-a-fault"
    if passed.exists():
        return ""
    with tempfile.TemporaryDirectory(prefix="weft-mutant-") as folder:
        failure = Tree(Path(folder)).failure((), SUITE_SECONDS)
    if not failure:
        passed.touch()
    return failure


def chosen(only: str) -> list[Mutant]:
    """All faults, or the one of a name."""
    every = [*written(ROOT), *(drawn(seed, ROOT) for seed in range(SEED, SEED + BY_RULE))]
    if only.startswith("rule:"):
        return [drawn(int(only.removeprefix("rule:")), ROOT)]
    return [m for m in every if not only or m.name == only]


def told(results: list[Result], all_of_them: int) -> str:
    """The score, and what survived."""
    killed = sum(bool(r.killed_by) for r in results)
    near = sum(r.stage == "room" for r in results)
    score = f"{killed} of {len(results)} faults are noticed ({100 * killed / max(1, len(results)):.1f} %)"
    lines = [f"{score}, {near} of them by the tests of their room; {all_of_them - len(results)} are still to be run"]
    lines += [f"survived: {r.name}: {r.path}:{r.line}: {r.rule}" for r in results if not r.killed_by]
    return "\n".join(lines)


def main() -> int:
    """Run what is left to run, and print the score."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=Path("mutants"), help="a folder for the results")
    parser.add_argument("--only", default="", help="the name of one fault")
    parser.add_argument("--seconds", type=float, default=10_800, help="begin no fault after so long")
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--near", action="store_true", help="only the tests of each room; what survives is not kept")
    parser.add_argument("--list", action="store_true", help="print the faults and end")
    options = parser.parse_args()
    mutants = chosen(options.only)
    if options.list:
        print("\n".join(m.told() for m in mutants))
        return 0
    options.out.mkdir(parents=True, exist_ok=True)
    record = options.out / "results.jsonl"
    lines = record.read_text(encoding="utf-8").splitlines() if record.exists() else []
    results = {r.name: r for r in (Result(**json.loads(line)) for line in lines)}
    left = [m for m in mutants if m.name not in results]
    if not options.near and (failure := failure_without_fault(options.out)):
        print(f"without any fault the suite fails, so that nothing can be said of faults: {failure}")
        return 1
    end = time.monotonic() + options.seconds

    def judge(slot: int) -> None:
        with tempfile.TemporaryDirectory(prefix="weft-mutant-") as folder:
            tree = Tree(Path(folder))
            for mutant in left[slot :: options.jobs]:
                if time.monotonic() > end:
                    return
                result = tree.judged(mutant, options.near)
                results[mutant.name] = result
                if result.killed_by or not options.near:
                    with record.open("a", encoding="utf-8") as file:
                        file.write(json.dumps(asdict(result)) + "\n")
                print(f"{result.stage:<9}{result.seconds:>7.1f} s  {mutant.told()}  {result.killed_by}", flush=True)

    with ThreadPoolExecutor(options.jobs) as pool:
        for running in [pool.submit(judge, slot) for slot in range(options.jobs)]:
            running.result()
    print(told([results[m.name] for m in mutants if m.name in results], len(mutants)), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
