"""Many seeds, on all cores: each slice of them in a process of its own, so that a crash is one finding and not the end.

A finding is one line, `FAIL seed variant what`.
"""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

from .compare import SIMULATED, VARIANTS, difference, generate, kind_of

SLICE = 50
PATIENCE = 60.0  # seconds that a seed may take


@dataclass
class Campaign:
    """Seeds first .. last, all in the same variants (or each in one, in turn), for so many seconds."""

    first: int
    last: int
    variants: Sequence[str]
    in_turn: bool
    seconds: float
    jobs: int
    done: int = 0
    findings: list[str] = field(default_factory=list)

    def run(self) -> None:
        """Run it, printing findings as they come."""
        self.end = time.monotonic() + self.seconds
        self.lock = threading.Lock()
        slices = iter(range(self.first, self.last, SLICE))

        def take() -> None:
            while time.monotonic() < self.end:
                with self.lock:
                    first = next(slices, None)
                if first is None:
                    return
                self._slice(first)

        with ThreadPoolExecutor(self.jobs) as pool:
            for running in [pool.submit(take) for _ in range(self.jobs)]:
                running.result()
        print(f"{len(self.findings)} findings, {self.done} kernels, seeds from {self.first}", flush=True)

    def _slice(self, first: int) -> None:
        work = list(pairs(first, min(first + SLICE, self.last), self.variants, self.in_turn))
        while work and time.monotonic() < self.end:
            at, status = self._child(work)
            if status:
                seed, variant = work[at]
                self._report(f"FAIL {seed} {variant} {status}")
                at += 1
            with self.lock:
                self.done += at
            work = work[at:]

    def _child(self, work: Sequence[tuple[int, str]]) -> tuple[int, str]:
        """Run pairs in a child process; gives how many were finished, and what became of the next one."""
        names = " ".join(f"{seed}:{variant}" for seed, variant in work)
        command = [sys.executable, "-m", "fuzz.run", "--batch", names]
        child = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
        hung = threading.Event()

        def stop() -> None:
            hung.set()
            child.kill()

        finished = 0
        assert child.stdout is not None
        timer = threading.Timer(PATIENCE, stop)
        timer.start()
        for line in child.stdout:
            if line.startswith("FAIL"):
                self._report(line.rstrip())
                continue
            finished += 1
            timer.cancel()
            if time.monotonic() > self.end:
                child.kill()
                child.wait()
                return finished, ""
            timer = threading.Timer(PATIENCE, stop)
            timer.start()
        code = child.wait()
        timer.cancel()
        return finished, "takes too long" if hung.is_set() else f"crash: status {code}" if code else ""

    def _report(self, line: str) -> None:
        with self.lock:
            self.findings.append(line)
        print(line, flush=True)


def pairs(first: int, last: int, variants: Sequence[str], in_turn: bool) -> Iterator[tuple[int, str]]:
    """Which seeds are run in which variants."""
    for seed in range(first, last):
        for variant in [variants[seed % len(variants)]] if in_turn else variants:
            yield seed, variant


def batch(work: str) -> None:
    """What a child process does: run `seed:variant ...`, a line for each that is finished."""
    for pair in work.split():
        seed, _, variant = pair.partition(":")
        try:
            how = {**VARIANTS, **SIMULATED}[variant]
            what = difference(generate(int(seed), how.apart), how)
            what = what and f"difference: {what}"
        except Exception as error:
            what = kind_of(error)
        if what:
            print(f"FAIL {seed} {variant} {what}")
        print(f"DONE {pair}", flush=True)
