"""Run code objects of ours in tinygrad's emulator: small kernels, and every instruction of the tables by itself.

    make amd-emulate EMULATOR=folder                           # a clone of github.com/tinygrad/tinygrad; some minutes
    cd tests && python -m amd.emulated ../../tinygrad --only product --processors gfx942

Prints a line for each, and at the end how many were executed by the emulator and which by formulas of ours alone
(meanings.py), because the emulator lacks them or has them wrong. Where the folder, its emulator or a clang is missing
it says so and succeeds: nothing was checked.
"""

from __future__ import annotations

import argparse
import re
import sys
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import numpy as np

from weft.backends.amd import messages
from weft.machines import machine_of
from weft.targets.amd import INSTRUCTIONS

from . import kernels, single
from .emulate import Emulator, Missing, find_clang
from .single import Outcome

KERNEL_PROCESSORS = ("gfx942", "gfx1201")

_emulator: Emulator


def _begin(folder: str) -> None:
    global _emulator
    _emulator = Emulator(Path(folder))


def small(name: str, processor: str) -> Outcome:
    """Compile and run a small kernel, and compare what it leaves in its arguments."""
    case = kernels.SMALL[name]
    given = case.arguments(np.random.default_rng(1))
    copied = {n: a.copy() if isinstance(a, np.ndarray) else a for n, a in given.items()}
    expected = case.expected(copied)
    code = kernels.compiled(case, given, f"hip:{processor}")
    threads = case.warps * machine_of(f"hip:{processor}").lanes
    _emulator.own.clear()
    begin = time.perf_counter()
    memory = np.zeros(messages.RECORDS + messages.CAPACITY, np.uint8)
    variables = {messages.VARIABLE: memory.ctypes.data} if code.metadata.messages else {}
    try:
        _emulator.run(
            code.asm["hsaco"], code.metadata.name, list(given.values()), case.grid, threads, variables=variables
        )
    except RuntimeError as error:
        return Outcome(name, processor, f"wrong: {str(error).splitlines()[0][:200]}")
    for argument, values in expected.items():
        got = given[argument].reshape(-1).astype(np.float64)
        differ = int((got != np.asarray(values).reshape(-1).astype(np.float64)).sum())
        if differ:
            return Outcome(name, processor, f"wrong: {differ} of {got.size} elements of {argument} differ")
    asked, lost, failed, *program = messages.HEAD.unpack(memory[: messages.RECORDS].tobytes())
    records = memory[messages.RECORDS : messages.RECORDS + asked].tobytes()
    said = sorted(messages.lines(code.metadata.messages, records))
    if failed:
        said.append(f"{code.metadata.messages[failed - 1][0]} in {program}")
    if lost or said != case.said(copied):
        return Outcome(name, processor, f"wrong: it said {said}, and {lost} lines are lost")
    text = f"executed, no error, {time.perf_counter() - begin:.1f} s"
    return Outcome(
        name, processor, text + (f"; by formulas: {', '.join(sorted(_emulator.own))}" if _emulator.own else "")
    )


def one(work: tuple[str, str, str]) -> Outcome:
    """What becomes of a piece of work."""
    kind, name, processor = work
    if kind == "kernel":
        return small(name, processor)
    if kind == "access":
        return single.access(_emulator, name, processor)
    return single.outcome(_emulator, INSTRUCTIONS[name])


def work(only: str, processors: tuple[str, ...]) -> Iterator[tuple[str, str, str]]:
    """All pieces, those of one processor behind each other: what was compiled is used again."""
    for processor in processors:
        small = (name for name, case in kernels.SMALL.items() if processor not in case.not_emulated)
        yield from (("kernel", name, processor) for name in small if only in name)
        yield from (("access", name, processor) for name in single.ACCESSES if only in name)
    yield from (
        ("entry", name, "") for name, entry in INSTRUCTIONS.items() if only in name and single.stands_alone(entry)
    )


def main(arguments: list[str] | None = None) -> int:
    """Print what becomes of each; 1 where something is wrong."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("emulator", type=Path, nargs="?")
    parser.add_argument("--only", default="", help="what has this in its name")
    parser.add_argument("--processors", default=",".join(KERNEL_PROCESSORS), help="for kernels and accesses")
    parser.add_argument("--jobs", type=int, default=2)
    options = parser.parse_args(arguments)
    try:
        if options.emulator is None:
            raise Missing("no folder is given: EMULATOR=folder is a clone of tinygrad/tinygrad")
        find_clang()
        Emulator.check(options.emulator)
    except Missing as missing:
        print(f"skipped: {missing}")
        return 0
    pieces = list(work(options.only, tuple(options.processors.split(","))))
    kinds: Counter[str] = Counter()
    wrong: list[Outcome] = []
    with ProcessPoolExecutor(options.jobs, get_context("spawn"), _begin, (str(options.emulator.resolve()),)) as pool:
        for found in pool.map(one, pieces, chunksize=max(1, min(20, len(pieces) // options.jobs))):
            print(found, flush=True)
            kinds[re.split(r" \(|[,:]", found.text)[0]] += 1
            wrong += [found] if found.is_wrong else []
    print("; ".join(f"{count} {kind}" for kind, count in kinds.items()))
    for found in wrong:
        print(f"WRONG: {found}")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
