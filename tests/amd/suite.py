"""Every kernel of tests/kernels as a code object for every processor, checked (`container`), and its waits (`waits`).

    cd tests && PYTHONPATH=../src:. python -m amd.suite [--only NAME] [--target gfx942] [--jobs 2]

Prints what is wrong, and how many there were.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import weft
from kernels import load_cases
from weft.base import WeftError
from weft.machines import MACHINES
from weft.ops.elements import BY_LANGUAGE
from weft.runtime import knobs

from .container import problems
from .waits import check

CASES = load_cases("weft")
PROCESSORS = tuple(m.name.partition(":")[2] for m in MACHINES.values() if m.vendor == "amd")


def compiled(name: str, processor: str) -> Any:
    """A kernel of the suite, as its data specialises it."""
    case = CASES[name]
    types, values, attributes = case.signature(case.make_inputs())
    return weft.compile(weft.ASTSource(case.kernel, types, values, attributes), f"hip:{processor}", case.options)


def sizes(kernel: Any) -> list[int]:
    """Bytes of the arguments that a launch hands over."""
    given = [8 if p.startswith("*") else BY_LANGUAGE[p].bytes for p in kernel.metadata.params]
    return [*given, *([8] if kernel.metadata.global_scratch_size else [])]


def wrong(name: str, processor: str) -> list[str]:
    """What is wrong with one kernel."""
    try:
        kernel = compiled(name, processor)
    except WeftError as error:
        return [f"{type(error).__name__}: {error}"]
    found = problems(kernel.asm["hsaco"], processor, sizes(kernel))
    taken = kernel.metadata.taken
    if (taken["shared"], taken["threads"]) != (kernel.metadata.shared, kernel.metadata.threads):
        found.append(f"the code object has {taken}, the kernel {kernel.metadata.shared} bytes of LDS")
    return found + [str(fault) for fault in check(kernel.asm["amdgcn"])]


def main(arguments: list[str]) -> int:
    """All of them, or some."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", help="a part of the names of kernels")
    parser.add_argument("--target", action="append", help="a processor; all of them otherwise")
    parser.add_argument("--jobs", type=int, default=1)
    given = parser.parse_args(arguments)
    tasks = [(n, p) for n in CASES if given.only in n for p in given.target or PROCESSORS]
    faults = 0
    with knobs.cache.scope(), ThreadPoolExecutor(given.jobs) as pool:
        knobs.cache.disabled = True
        for task, found in zip(tasks, pool.map(lambda task: wrong(*task), tasks), strict=True):
            faults += bool(found)
            for problem in found:
                print(f"{task[0]} on {task[1]}: {problem}")
    print(f"{len(tasks)} code objects, {faults} with faults")
    return 1 if faults else 0


def every() -> Iterator[tuple[str, str]]:
    """All names and processors."""
    return ((name, processor) for name in CASES for processor in PROCESSORS)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
