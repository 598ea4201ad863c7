"""Many seeds, on all cores: each slice of them in a process of its own, so that a crash is one finding and not the end.

Each seed has a verdict, and what is not right is printed as one line, `MISMATCH seed variant what`:

PASS          as it should be
MISMATCH      other values than the interpreter's, or other ones the second time
CRASH         an exception, or the end of the process
TIMEOUT       no end within PATIENCE
UNSUPPORTED   Weft says that the target cannot do it, or has too little of something
ASSEMBLER     on a GPU: right where ptxas does not optimise, so that it has optimised wrongly

On a GPU a fault is the end of its process too: the seed has crashed, and a new process goes on with the next one.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

from gpu.sharing import variables
from weft.base import DeviceLost, OutOfResources, Unsupported, progress

from .compare import ASSEMBLER, EVERY, difference, generate, kind_of

SLICE = 200
"""Seeds of a process, at most. On a GPU a process takes seconds to begin."""
SLICES = 4
"""Processes, one after the other, that a job runs at least, so that all end at about the same time."""
PATIENCE = 60.0  # seconds that a seed may take
STILLBORN = 20  # processes that crash at once, after which a campaign is given up
LOST = 75  # status of a process whose GPU is lost
GPU_IS_MISSING = 69  # status of a campaign that cannot begin
VERDICTS = ("PASS", "MISMATCH", "CRASH", "TIMEOUT", "UNSUPPORTED")
"""Those of every table; `ASSEMBLER` stands in it where there are any."""
ASK = """
from weft.base import NoDevice
from weft.compiler import devices
try:
    print(devices.current_device().capability)
except NoDevice as error:
    print(str(error).splitlines()[0])
"""


@dataclass(frozen=True)
class Finding:
    """A seed that has another verdict than PASS, and why."""

    verdict: str
    seed: int
    variant: str
    what: str

    def __str__(self) -> str:
        return f"{self.verdict} {self.seed} {self.variant} {self.what}"

    @property
    def command(self) -> str:
        """What runs it again, and prints the smallest kernel that fails alike."""
        return f"python -m fuzz.run --seed {self.seed} --variant {self.variant} --reduce    # {self.verdict}"

    @property
    def kind(self) -> str:
        """What is counted together."""
        if self.verdict == "MISMATCH" and self.what.startswith("difference"):
            return "other bits the second time" if "the second time" in self.what else "other values than NumPy's"
        return self.what.split(":")[0]


@dataclass
class Campaign:
    """Seeds first .. last, all in the same variants (or each in one, in turn), for so many seconds."""

    first: int
    last: int
    variants: Sequence[str]
    in_turn: bool
    seconds: float
    jobs: int
    command: Sequence[str] = (sys.executable, "-m", "fuzz.run", "--batch")
    """What runs a batch; called with pairs `seed:variant`."""
    right: Sequence[str] = ("PASS",)
    """The verdicts that nobody has to look at."""
    gpus: int = 1
    """How many GPUs the processes share."""
    done: Counter[str] = field(default_factory=Counter)
    """Kernels that were run, by variant."""
    findings: list[Finding] = field(default_factory=list)
    took: float = 0.0
    kernels: int = 0
    """How many have ended, for the progress that a terminal shows."""
    stillborn: int = 0
    """Processes, one after the other, that crashed before they finished a kernel."""

    def run(self) -> None:
        """Run it, printing findings as they come."""
        start = time.monotonic()
        self.end = start + self.seconds
        self.lock = threading.Lock()
        self.slice = max(1, min(SLICE, (self.last - self.first) // (self.jobs * SLICES)))
        slices = iter(range(self.first, self.last, self.slice))

        def take(slot: int) -> None:
            while time.monotonic() < self.end:
                with self.lock:
                    first = next(slices, None)
                if first is None:
                    return
                self._slice(first, slot)

        each = 1 if self.in_turn else len(self.variants)
        number = each * (self.last - self.first) if self.seconds > 1e8 else None
        with progress("fuzzing, kernels", number) as self.told, ThreadPoolExecutor(self.jobs) as pool:
            for running in [pool.submit(take, slot) for slot in range(self.jobs)]:
                running.result()
        self.took = time.monotonic() - start

    def table(self) -> str:
        """What was run and what was found, as a short table."""
        variants = list(dict.fromkeys(self.variants))
        counts = {v: Counter(f.verdict for f in self.findings if f.variant == v) for v in variants}
        for variant, counted in counts.items():
            counted["PASS"] = self.done[variant] - sum(counted.values())
        counts["all"] = sum(counts.values(), Counter())
        verdicts = [*VERDICTS, *sorted(set(counts["all"]) - set(VERDICTS))]
        lines = [
            f"{len(self.wrong)} findings, {sum(self.done.values())} run, seeds from {self.first}, {self.took:.0f} s",
            " " * 24 + "".join(f"{verdict:>13}" for verdict in verdicts),
        ]
        for variant in [*variants, *(["all"] if len(variants) > 1 else [])]:
            lines.append(f"{variant:<24}" + "".join(f"{counts[variant][verdict]:>13}" for verdict in verdicts))
        kinds = Counter((f.verdict, f.variant, f.kind) for f in self.findings)
        lines += [f"    {v:<13}{variant:<24}{kind:<44}{n:>6}" for (v, variant, kind), n in kinds.most_common()]
        lines += [f.command for f in self.wrong]
        return "\n".join(lines)

    @property
    def wrong(self) -> list[Finding]:
        """What somebody has to look at."""
        return [f for f in self.findings if f.verdict not in self.right]

    def write(self, folder: Path) -> None:
        """The table, the findings, and their kernels' sources, into one file of a folder."""
        folder.mkdir(parents=True, exist_ok=True)
        parts = [self.table(), *map(str, self.wrong)]
        for finding in self.wrong:
            program = generate(finding.seed, EVERY[finding.variant])
            parts += ["", "#" * 100, f"# {finding}", program.told()]
        (folder / "findings.txt").write_text("\n".join(parts) + "\n", encoding="utf-8")

    def _slice(self, first: int, slot: int) -> None:
        work = list(pairs(first, min(first + self.slice, self.last), self.variants, self.in_turn))
        while work and time.monotonic() < self.end:
            at, status = self._child(work, slot)
            self.stillborn = self.stillborn + 1 if status.startswith("CRASH") and at == 0 else 0
            if self.stillborn >= STILLBORN:
                self.end = 0.0  # it is not the kernels
            if status:
                verdict, _, what = status.partition(" ")
                self._report(Finding(verdict, *work[at], what))
                at += 1
            with self.lock:
                self.done.update(variant for _, variant in work[:at])
            work = work[at:]

    def _child(self, work: Sequence[tuple[int, str]], slot: int) -> tuple[int, str]:
        """Run pairs in a child process; gives how many were finished, and what became of the next one."""
        names = " ".join(f"{seed}:{variant}" for seed, variant in work)
        with tempfile.TemporaryFile() as errors:
            child = subprocess.Popen(
                [*self.command, names],
                stdout=subprocess.PIPE,
                stderr=errors,
                text=True,
                env={**os.environ, **variables(slot, self.gpus)},
            )
            finished, code = self._watch(child)
            if code == "" and child.returncode not in (0, LOST):
                errors.seek(0)
                said = errors.read().decode(errors="replace").strip().splitlines()
                code = f"CRASH status {child.returncode}{', ' + said[-1][:200] if said else ''}"
        return finished, code.strip()

    def _watch(self, child: subprocess.Popen[str]) -> tuple[int, str]:
        """Read what a child says until it ends, is out of time (a blank), or takes too long."""
        hung = threading.Event()

        def stop() -> None:
            hung.set()
            child.kill()

        finished = 0
        assert child.stdout is not None
        timer = threading.Timer(PATIENCE, stop)
        timer.start()
        for line in child.stdout:
            if not line.startswith("DONE"):
                verdict, seed, variant, what = line.rstrip().split(" ", 3)
                self._report(Finding(verdict, int(seed), variant, what))
                continue
            finished += 1
            timer.cancel()
            with self.lock:
                self.kernels += 1
                self.told(self.kernels)
            if time.monotonic() > self.end:
                child.kill()
                child.wait()
                return finished, " "
            timer = threading.Timer(PATIENCE, stop)
            timer.start()
        child.wait()
        timer.cancel()
        return finished, f"TIMEOUT no end within {PATIENCE:g} s" if hung.is_set() else ""

    def _report(self, finding: Finding) -> None:
        with self.lock:
            self.findings.append(finding)
        if finding.verdict not in self.right:
            print(finding, flush=True)


def pairs(first: int, last: int, variants: Sequence[str], in_turn: bool) -> Iterator[tuple[int, str]]:
    """Which seeds are run in which variants."""
    for seed in range(first, last):
        for variant in [variants[seed % len(variants)]] if in_turn else variants:
            yield seed, variant


def batch(work: str) -> None:
    """What a child process does: run `seed:variant ...`, a line for each that is finished."""
    for pair in work.split():
        seed, _, variant = pair.partition(":")
        lost, verdict = False, "MISMATCH"
        try:
            what = difference(generate(int(seed), EVERY[variant]), EVERY[variant])
            verdict = "ASSEMBLER" if what.startswith(ASSEMBLER) else verdict
            what = what and f"difference: {what}"
        except Exception as error:
            what, lost = kind_of(error), isinstance(error, DeviceLost)
            verdict = "UNSUPPORTED" if isinstance(error, Unsupported | OutOfResources) else "CRASH"
        if what:
            print(f"{verdict} {seed} {variant} {what}")
        print(f"DONE {pair}", flush=True)
        if lost:
            os._exit(LOST)


def gpu_here() -> tuple[int, str]:
    """The compute capability of this machine's GPU, or 0 and why there is none; asked in a process of its own."""
    answer = subprocess.run([sys.executable, "-c", ASK], capture_output=True, text=True, check=False)
    said = (answer.stdout + answer.stderr).strip().splitlines() or [f"status {answer.returncode}"]
    return (int(said[-1]), "") if said[-1].isdigit() else (0, said[-1])
