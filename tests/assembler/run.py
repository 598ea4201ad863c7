"""What ptxas makes of random PTX with -O3, against what it makes of it with -O0, on the GPU of this machine.

    cd tests && python -m assembler.run --seconds 300 --out found    # PTX as Weft hands it over
    cd tests && python -m assembler.run --seconds 300 --raw          # with the known faults in it

With -O0 instructions are translated one by one, so that where the two differ ptxas has optimised wrongly. A program
that differs is cut down to the fewest steps that still differ; those with the same opcodes are counted together.
"""

from __future__ import annotations

import argparse
import ctypes
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from weft.backends.nvidia.assembler_faults import avoid_faults
from weft.backends.nvidia.driver import api
from weft.backends.nvidia.ptxas import find_tool

from .programs import FINITE, IMMEDIATES, THREADS, WORDS, Program, generate, module

BATCH = 100
SLOTS = 64
"""Values that a program may store."""
CUT = 12
"""Programs that a process cuts down; the others are only counted."""
FRESH = 1 << 41


def inputs(seed: int) -> np.ndarray[Any, np.dtype[np.uint32]]:
    """Words for the threads: corners of 8, 16 and 32 bits, alone and side by side, any bits, and small numbers."""
    rng = np.random.default_rng(seed)
    n = THREADS * WORDS
    short = np.array([*IMMEDIATES["b16"], 0, 0x8000, 0x7F, 0xFF80, 0x00FF], np.int64).astype(np.uint16)
    pairs = rng.choice(short, (2, n)).astype(np.uint32)
    long = np.array([*IMMEDIATES["b32"], 0, 0x8000, 0xFFFF8000, 0x80008000], np.int64).astype(np.uint32)
    any_bits, small = rng.integers(0, 1 << 32, n, np.uint32), rng.integers(0, 9, n)
    kinds = (pairs[0] << 16 | pairs[1], rng.choice(long, n), any_bits, small)
    words = np.choose(rng.integers(0, len(kinds), n), kinds).astype(np.uint32).reshape(WORDS, THREADS)
    words[FINITE:] &= 0xBFFFBFFF
    words[0, FINITE:WORDS] &= 0xBFFFBFFF  # those that all threads share
    return words.ravel()


class Card:
    """The GPU, through the driver alone: two pieces of memory, and modules that come and go."""

    def __init__(self) -> None:
        self.cuda = api()
        self.ask("cuInit", 0)
        device = self.ask("cuDeviceGet", 0)
        attribute = self.cuda.CUdevice_attribute
        major = self.ask("cuDeviceGetAttribute", attribute.CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, device)
        minor = self.ask("cuDeviceGetAttribute", attribute.CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, device)
        self.capability = 10 * major + minor
        context = self.ask("cuDevicePrimaryCtxRetain", device)
        self.ask("cuCtxSetCurrent", context)
        self.input = self.ask("cuMemAlloc", 4 * THREADS * WORDS)
        self.output = self.ask("cuMemAlloc", 8 * THREADS * SLOTS)
        self.values = np.array([int(self.input), int(self.output)], np.uint64)
        self.pointers = np.array([self.values.ctypes.data, self.values.ctypes.data + 8], np.uint64)

    @property
    def processor(self) -> str:
        """As ptxas names it."""
        return f"sm_{self.capability}{'a' if self.capability >= 90 else ''}"

    def ask(self, name: str, *arguments: Any) -> Any:
        """Call the driver; RuntimeError where it fails."""
        status, *results = getattr(self.cuda, name)(*arguments)
        if int(status):
            raise RuntimeError(f"{name}: {status}")
        return results[0] if results else None

    def give(self, words: np.ndarray[Any, Any]) -> None:
        """Fill the input."""
        self.ask("cuMemcpyHtoD", self.input, words.ctypes.data, words.nbytes)

    def results(self, image: bytes, programs: Sequence[Program]) -> list[bytes]:
        """What each program stores."""
        loaded = self.ask("cuModuleLoadData", image)
        out = []
        for i, program in enumerate(programs):
            size = 8 * THREADS * len(program.stored)
            self.ask("cuMemsetD8", self.output, 0xA5, size)
            function = self.ask("cuModuleGetFunction", loaded, f"k{i}".encode())
            self.ask("cuLaunchKernel", function, 1, 1, 1, THREADS, 1, 1, 0, 0, self.pointers.ctypes.data, 0)
            host = ctypes.create_string_buffer(size)
            self.ask("cuMemcpyDtoH", ctypes.addressof(host), self.output, size)
            out.append(host.raw)
        self.ask("cuModuleUnload", loaded)
        return out


class Worker:
    """Draws, assembles, runs and compares, in one process."""

    def __init__(self, raw: bool) -> None:
        self.card, self.raw = Card(), raw
        self.folder = tempfile.TemporaryDirectory(prefix="assembler-")
        tool = find_tool("ptxas")
        if tool is None:
            raise SystemExit("no ptxas: set WEFT_PTXAS, or install CUDA")
        self.tool = tool

    def assembled(self, text: str, level: str) -> bytes:
        """Machine code at one level of optimisation."""
        source, target = Path(self.folder.name, "m.ptx"), Path(self.folder.name, "m.cubin")
        source.write_text(text)
        command = [self.tool, f"-arch={self.card.processor}", level, str(source), "-o", str(target)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=300)
        if done.returncode:
            raise RuntimeError(f"ptxas {level}: {(done.stdout + done.stderr)[:2000]}")
        return target.read_bytes()

    def different(self, programs: Sequence[Program], mended: bool = False) -> list[int]:
        """Which of the programs ptxas assembles to something else with -O3; `mended`: than what is written instead with
        -O0, where -O0 has the fault too.
        """
        texts = [program.text(f"k{i}") for i, program in enumerate(programs)]
        if mended:
            texts = [avoid_faults(text, self.card.capability) for text in texts]
        plain = self.card.results(self.assembled(module(texts, self.card.processor), "-O0"), programs)
        if not self.raw:
            texts = [avoid_faults(text, self.card.capability) for text in texts]
        best = self.card.results(self.assembled(module(texts, self.card.processor), "-O3"), programs)
        return [i for i, (a, b) in enumerate(zip(plain, best, strict=True)) if a != b]

    def cut_down(self, program: Program, end: float) -> Program:
        """The program less all that it differs without; outputs first, then steps from the last."""
        changed = True
        while changed and time.monotonic() < end:
            changed = False
            for steps, stored in [
                *(([], [i]) for i in reversed(range(len(program.stored)))),
                *(([i], []) for i in reversed(range(len(program.steps)))),
            ]:
                smaller = program.without(steps, stored)
                if smaller is not None and self.different([smaller]):
                    program, changed = smaller, True
                    break
        return program


def work(first: int, step: int, seconds: float, raw: bool) -> None:
    """What a process does: batches from `first` on, every `step`th; a line for each batch and each finding."""
    end = time.monotonic() + seconds
    worker, cut = Worker(raw), 0
    for batch in range(first, 1 << 62, step):
        if time.monotonic() > end:
            return
        seeds = range(batch * BATCH, (batch + 1) * BATCH)
        programs = [generate(seed) for seed in seeds]
        worker.card.give(inputs(batch))
        for i in worker.different(programs):
            program = programs[i]
            if cut < CUT:
                cut += 1
                program = worker.cut_down(program, end + 20)
                text = program.text("k").replace("\n", "\\n")
                print(f"FAULT {program.seed} {program.shape()} | {text}", flush=True)
            else:
                print(f"FAULT {program.seed} not cut down | ", flush=True)
        print(f"DONE {len(programs)}", flush=True)


def main() -> int:
    """Run the campaign on all cores and print what was found."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=300)
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--first", type=int, default=(FRESH + int(time.time()) * 1000) // BATCH, help="the first batch")
    parser.add_argument("--raw", action="store_true", help="leave the known faults in")
    parser.add_argument("--out", type=Path, help="a folder for what is found")
    parser.add_argument("--work", default="", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.work:
        work(*map(int, options.work.split(":")), options.seconds, options.raw)
        return 0
    command = [sys.executable, "-m", "assembler.run", "--seconds", str(options.seconds), *["--raw"] * options.raw]
    children = [
        subprocess.Popen([*command, "--work", f"{options.first + i}:{options.jobs}"], stdout=subprocess.PIPE, text=True)
        for i in range(options.jobs)
    ]
    ran, kinds, first = 0, Counter[str](), dict[str, str]()
    for child in children:
        for line in (child.communicate()[0] or "").splitlines():
            word, _, rest = line.partition(" ")
            if word == "DONE":
                ran += int(rest)
            elif word == "FAULT":
                seed, _, rest = rest.partition(" ")
                kind, _, text = rest.partition(" | ")
                kinds[kind] += 1
                first.setdefault(kind, f"seed {seed}\n" + text.replace("\\n", "\n"))
    failed = sum(child.returncode != 0 for child in children)
    table = [f"{sum(kinds.values())} of {ran} programs differ between -O0 and -O3, batches from {options.first}"]
    table += [f"{count:>7}  {kind}" for kind, count in kinds.most_common()]
    print("\n".join(table[:60]), flush=True)
    if options.out is not None:
        options.out.mkdir(parents=True, exist_ok=True)
        parts = [*table, *(f"\n#### {kind}\n{text}" for kind, text in first.items())]
        Path(options.out, "assembler.txt").write_text("\n".join(parts) + "\n")
    if failed:
        print(f"{failed} processes failed", file=sys.stderr)
    return 1 if kinds or failed else 0


if __name__ == "__main__":
    sys.exit(main())
