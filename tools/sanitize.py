"""Tests of tests/gpu under NVIDIA's compute-sanitizer: accesses outside of memory, races in shared memory.

    python tools/sanitize.py --seconds 300                    # memcheck and racecheck, on 8 processes
    python tools/sanitize.py --checks racecheck --only test_gluon.py --out sanitized

Needs a GPU and the program compute-sanitizer, which comes with CUDA. The tests are shuffled, the same way each time,
and run in packets, each in a process of its own, until they are all done or the time is over. A packet of which the
sanitizer reports something is run again test by test, so that what is reported has a name. A table comes last; with
`--out`, what the sanitizer said goes to `sanitizer.txt` there. The exit status is 1 where something was reported, and
2 where nothing could be run.

Left out are tests that go wrong on purpose (test_faults.py), and the thousand of single instructions. The sanitizer
sees memory as it was allocated: with WEFT_FUZZ_EXACT=1, which is set here, an array of a random kernel ends where its
allocation does.
"""

from __future__ import annotations

import argparse
import os
import random
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections import Counter
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from glob import glob
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
FILES = ("test_kernels.py", "test_gluon.py", "test_random_kernels.py", "test_ttgir.py", "test_clusters.py",
         "test_hopper_stored.py", "test_scans.py", "test_products.py")  # fmt: skip
PACKET = 6
PATIENCE = 150.0
"""Seconds that a packet may take."""
FOUND = 86
"""What the sanitizer makes the exit status where it reports something."""
SUMMARY = re.compile(r"(?:ERROR|RACECHECK) SUMMARY: (\d+)")


@dataclass(frozen=True)
class Report:
    """What became of tests under a check: how many ran, what the sanitizer counted, or why there is no answer."""

    check: str
    tests: tuple[str, ...]
    passed: int
    found: int
    trouble: str
    output: str


@dataclass
class Campaign:
    """Packets of tests that wait, and the reports of those that ran."""

    tool: str
    end: float
    reports: list[Report] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def packet(self, check: str, tests: Sequence[str]) -> None:
        """Run tests; each alone, where something is reported."""
        if time.monotonic() > self.end:
            return
        report = sanitized(self.tool, check, tests)
        if (report.found or report.trouble) and len(tests) > 1:
            for test in tests:
                self.packet(check, [test])
            return
        with self.lock:
            self.reports.append(report)
        if report.found or report.trouble:
            what = report.trouble or f"{report.found} reported"
            print(f"{check} {report.tests[0]}: {what}", flush=True)


def find_tool() -> str | None:
    """Where compute-sanitizer is: on PATH, or in an installation of CUDA."""
    homes = [home for name in ("CUDA_HOME", "CUDA_PATH") if (home := os.environ.get(name))]
    places = [f"{home}/{part}/compute-sanitizer" for home in homes for part in ("bin", "compute-sanitizer")]
    places += sorted(glob("/usr/local/cuda*/bin/compute-sanitizer"), reverse=True)
    return shutil.which("compute-sanitizer") or next((p for p in places if os.access(p, os.X_OK)), None)


def collected(only: str) -> list[str]:
    """The tests by their names for pytest."""
    files = [f"tests/gpu/{name}" for name in FILES if (ROOT / "tests/gpu" / name).exists()]
    command = [sys.executable, "-m", "pytest", "--collect-only", "-q", "-p", "no:cacheprovider", *files]
    said = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False, env=environment()).stdout
    return [line for line in said.splitlines() if "::" in line and " " not in line and only in line]


def environment() -> dict[str, str]:
    """That of the tests: exact allocations, and no other plugin of pytest than they need."""
    paths = [str(ROOT / "src"), os.environ.get("PYTHONPATH", "")]
    return {**os.environ, "WEFT_FUZZ_EXACT": "1", "PYTHONPATH": os.pathsep.join(p for p in paths if p)}


def sanitized(tool: str, check: str, tests: Sequence[str]) -> Report:
    """Run tests in one process under a check. Processes that it starts, an assembler's, are left alone."""
    command = [tool, "--tool", check, "--target-processes", "application-only", "--error-exitcode", str(FOUND)]
    command += [sys.executable, "-m", "pytest", "-q", "-x", "-p", "no:cacheprovider", "--tb=short", *tests]
    child = subprocess.Popen(
        command, cwd=ROOT, env=environment(), text=True, errors="replace", start_new_session=True,
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
    )  # fmt: skip
    try:
        output, _ = child.communicate(timeout=PATIENCE)
    except subprocess.TimeoutExpired:
        os.killpg(child.pid, signal.SIGKILL)
        output, _ = child.communicate()
        return Report(check, tuple(tests), 0, 0, f"not done after {PATIENCE:.0f} s", output)
    return judged(check, tests, child.returncode, output)


def judged(check: str, tests: Sequence[str], status: int, output: str) -> Report:
    """What the output of a run says."""
    summaries = [int(n) for n in SUMMARY.findall(output)]
    passed = sum(int(n) for n in re.findall(r"(\d+) passed", output))
    trouble = ""
    if not summaries:
        trouble = f"no summary, status {status}: {(output.strip().splitlines() or ['no output'])[-1][:120]}"
    elif status not in (0, FOUND):
        trouble = f"tests failed, status {status}"
    return Report(check, tuple(tests), passed, sum(summaries), trouble, output)


def table(reports: Sequence[Report], waiting: int) -> str:
    """Tests and reports for each check, those with something reported by name."""
    lines = [f"{'check':<12}{'tests':>8}{'passed':>8}{'reported':>10}{'no answer':>11}"]
    for check in dict.fromkeys(r.check for r in reports):
        own = [r for r in reports if r.check == check]
        counts = Counter(tests=sum(len(r.tests) for r in own), passed=sum(r.passed for r in own))
        counts.update(found=sum(bool(r.found) for r in own), none=sum(bool(r.trouble) for r in own))
        lines.append(f"{check:<12}{counts['tests']:>8}{counts['passed']:>8}{counts['found']:>10}{counts['none']:>11}")
    lines += [f"  {r.check} {r.tests[0]}: {r.found} reported {r.trouble}" for r in reports if r.found or r.trouble]
    return "\n".join(lines + ([f"{waiting} tests were not reached"] if waiting > 0 else []))


def written(folder: Path, reports: Sequence[Report], summary: str) -> None:
    """The table, and of each test with something reported the sanitizer's lines, the first 150."""
    folder.mkdir(parents=True, exist_ok=True)
    parts = [summary]
    for report in reports:
        if report.found or report.trouble:
            parts += ["", "#" * 100, f"# {report.check} {report.tests[0]} {report.trouble}"]
            parts += report.output.splitlines()[:150]
    (folder / "sanitizer.txt").write_text("\n".join(parts) + "\n", encoding="utf-8")


def main() -> int:
    """Parse the command line and do it."""
    parser = argparse.ArgumentParser(description="Tests on a GPU under compute-sanitizer.")
    parser.add_argument("--checks", nargs="+", default=["memcheck", "racecheck"], help="its tools")
    parser.add_argument("--only", default="", help="tests with this in their names")
    parser.add_argument("--seconds", type=float, default=600.0, help="no packet begins later")
    parser.add_argument("--jobs", type=int, default=8, help="processes at a time")
    parser.add_argument("--out", type=Path, help="a folder for what is reported")
    options = parser.parse_args()
    tool = find_tool()
    tests = collected(options.only)
    if tool is None or not tests:
        print("compute-sanitizer was not found" if tool is None else "there are no such tests", file=sys.stderr)
        return 2
    random.Random(0).shuffle(tests)
    campaign = Campaign(tool, time.monotonic() + options.seconds)
    packets = [tests[i : i + PACKET] for i in range(0, len(tests), PACKET)]
    with ThreadPoolExecutor(options.jobs) as pool:
        running = [pool.submit(campaign.packet, check, packet) for packet in packets for check in options.checks]
        for future in running:
            future.result()
    done = sum(len(r.tests) for r in campaign.reports)
    summary = table(campaign.reports, len(tests) * len(options.checks) - done)
    print(summary, flush=True)
    if options.out is not None:
        written(options.out, campaign.reports, summary)
    if not any(r.passed for r in campaign.reports):
        return 2
    return 1 if any(r.found or r.trouble for r in campaign.reports) else 0


if __name__ == "__main__":
    sys.exit(main())
